//! `codeinterp runs export`: a run as a notebook, a script, or markdown with its charts beside it.

use std::io::Write;
use std::path::Path;

use base64::Engine as _;

use super::runs::ExportFormat;
use crate::agent::run::{ErrorKind, Run, RunError};
use crate::report::{self, ReportOptions};
use crate::store::files::write_beneath;

/// Writes the export to `out`, or to standard output.
pub(super) fn run(run: &Run, to: ExportFormat, out: Option<&Path>) -> Result<(), RunError> {
    let text = match to {
        ExportFormat::Notebook => notebook(run)?,
        ExportFormat::Script => report::script(run),
        ExportFormat::Markdown => report::markdown(run, &options(out)),
    };
    let Some(out) = out else {
        // A closed pipe is the reader's choice.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        return Ok(());
    };
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let (Some(folder), Some(name)) = (out.parent(), out.file_name()) else {
        return Err(RunError::new(ErrorKind::Usage, format!("{} is not a file name", out.display()), "Name a file with --out."));
    };
    write_beneath(folder, Path::new(name), text.as_bytes()).map_err(|error| RunError::from(&error))?;
    if to == ExportFormat::Markdown {
        for artifact in &run.artifacts {
            let data = std::fs::read(&artifact.path)
                .map_err(|error| RunError::new(ErrorKind::Output, format!("{}: {error}", artifact.path.display()), "Run it again."))?;
            write_beneath(folder, &Path::new(&beside(&out)).join(&artifact.name), &data).map_err(|error| RunError::from(&error))?;
        }
    }
    println!("{}", out.display());
    Ok(())
}

fn notebook(run: &Run) -> Result<String, RunError> {
    let image = |name: &str| {
        let artifact = run.artifacts.iter().find(|artifact| artifact.name == name)?;
        let data = std::fs::read(&artifact.path).ok()?;
        let text = artifact.mime.starts_with("text/") || artifact.mime.ends_with("json") || artifact.mime.ends_with("xml");
        if text { String::from_utf8(data).ok() } else { Some(base64::engine::general_purpose::STANDARD.encode(data)) }
    };
    serde_json::to_string_pretty(&report::notebook(run, &image))
        .map_err(|error| RunError::new(ErrorKind::Run, error.to_string(), "Please report it."))
}

/// The folder of artifacts beside an exported report: `x.md` has `x-artifacts/`.
fn beside(out: &Path) -> String {
    format!("{}-artifacts", out.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default())
}

fn options(out: Option<&Path>) -> ReportOptions {
    match out {
        Some(out) => ReportOptions { artifacts: format!("{}/", report::escape::link_target(&beside(out))) },
        None => ReportOptions::default(),
    }
}
