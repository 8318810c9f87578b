//! A run as something to hand over: a notebook, a script, or markdown with its charts beside it.

use base64::Engine as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Services;
use super::replay::CleanRoom;
use crate::agent::run::{Artifact, Run};
use crate::config::Settings;
use crate::report::{self, ReportOptions, escape};
use crate::store::RunStore;

/// What a run is exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    /// A Jupyter notebook with outputs.
    Notebook,
    /// A Python script of the steps that led to the answer.
    Script,
    /// The report.
    Markdown,
}

/// An export, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Its text.
    pub text: String,
    /// Artifacts that the text links to and that belong beside it, with their paths relative to it.
    pub beside: Vec<(String, Artifact)>,
    /// What a person should know of it: differences that a replay found, or why there was none.
    pub remarks: Vec<String>,
}

/// Makes an export of a run. Notebooks and scripts are replayed in a fresh sandbox first.
///
/// `name` is the file name that the export will have: a report's charts belong into a folder named after it.
pub async fn export(
    services: &dyn Services,
    settings: &Settings,
    store: &RunStore,
    run: &Run,
    kind: ExportKind,
    name: Option<&str>,
    cancel: &CancellationToken,
) -> Exported {
    let room = CleanRoom { services, settings, store, run, cancel };
    match kind {
        ExportKind::Script => {
            let lineage = room.lineage(true).await;
            Exported { text: report::script(run, &lineage), beside: Vec::new(), remarks: lineage.remarks() }
        }
        ExportKind::Notebook => {
            let lineage = room.lineage(false).await;
            let notebook = report::notebook(run, &lineage, &|name| contents(run, name));
            let text = serde_json::to_string_pretty(&notebook).unwrap_or_default();
            Exported { text, beside: Vec::new(), remarks: lineage.remarks() }
        }
        ExportKind::Markdown => markdown(store, run, name),
    }
}

/// The report with the charts that it shows.
fn markdown(store: &RunStore, run: &Run, name: Option<&str>) -> Exported {
    let folder = name.map(|name| format!("{}-artifacts", name.rsplit_once('.').map_or(name, |(stem, _)| stem)));
    let Some(folder) = folder else {
        return Exported { text: report::markdown(run, &ReportOptions::default()), beside: Vec::new(), remarks: Vec::new() };
    };
    let link = escape::link_target(&folder);
    let options = ReportOptions { artifacts: format!("{link}/"), earlier: Some(format!("{link}/earlier/")) };
    let mut beside: Vec<(String, Artifact)> =
        run.artifacts.iter().map(|artifact| (format!("{folder}/{}", artifact.name), artifact.clone())).collect();
    if let Some(changes) = &run.changes
        && let Ok(earlier) = store.load(&changes.earlier)
    {
        let shown = |artifact: &&Artifact| changes.charts.iter().any(|chart| chart.before.as_ref() == Some(&artifact.name));
        beside.extend(
            earlier.artifacts.iter().filter(shown).map(|artifact| (format!("{folder}/earlier/{}", artifact.name), artifact.clone())),
        );
    }
    Exported { text: report::markdown(run, &options), beside, remarks: Vec::new() }
}

/// The contents of an artifact as a notebook holds them: its MIME type, and text, base64 text or JSON.
fn contents(run: &Run, name: &str) -> Option<(String, Value)> {
    let artifact = run.artifacts.iter().find(|artifact| artifact.name == name)?;
    let data = std::fs::read(&artifact.path).ok()?;
    let kind = match name {
        name if name.ends_with(".plotly.json") => "application/vnd.plotly.v1+json",
        name if name.ends_with(".vl.json") => "application/vnd.vegalite.v5+json",
        _ => artifact.mime.as_str(),
    };
    let value = if kind.ends_with("json") {
        serde_json::from_slice(&data).ok()?
    } else if kind.starts_with("text/") || kind.ends_with("xml") {
        Value::String(String::from_utf8(data).ok()?)
    } else {
        Value::String(base64::engine::general_purpose::STANDARD.encode(data))
    };
    Some((kind.to_owned(), value))
}
