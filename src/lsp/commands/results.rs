//! Runs, reports and artifacts: lists, and what is opened on the screen.

use std::sync::Arc;

use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use super::{blocking, find, no_run};
use crate::agent::ports::StoreError;
use crate::agent::run::Run;
use crate::lsp::capabilities::ClientFeatures;
use crate::lsp::convert::failed;
use crate::lsp::event::Reply;
use crate::lsp::ext::{self, ArtifactRow, RunRow};
use crate::lsp::outbox::Outbox;
use crate::lsp::state::State;
use crate::lsp::uris;
use crate::session::Session;

/// Runs that are listed.
const MAX_LISTED: usize = 200;

/// `codeinterp.listRuns`
pub fn list_runs(state: &State, argument: ext::UriArgument, reply: Reply<Option<Value>>) {
    let sessions = state.all_sessions();
    let features = state.features.clone();
    blocking(reply, move || {
        let mut runs: Vec<(Arc<Session>, Arc<Run>)> =
            sessions.iter().flat_map(|session| session.runs().into_iter().map(|run| (Arc::clone(session), run))).collect();
        // Ids begin with the time.
        runs.sort_by(|(_, a), (_, b)| b.run.cmp(&a.run));
        let wanted = |run: &Run| argument.uri.as_ref().is_none_or(|uri| run.uri.as_deref() == Some(uri.as_str()));
        let rows: Vec<RunRow> =
            runs.iter().filter(|(_, run)| wanted(run)).take(MAX_LISTED).map(|(session, run)| row(session, run, &features)).collect();
        Ok(Some(json!(rows)))
    });
}

fn row(session: &Session, run: &Run, features: &ClientFeatures) -> RunRow {
    RunRow {
        run: run.run.clone(),
        status: run.status.as_str(),
        question: run.question.clone(),
        uri: run.uri.clone(),
        document: document(session, &run.run, features),
        artifacts: run
            .artifacts
            .iter()
            .map(|artifact| ArtifactRow {
                name: artifact.name.clone(),
                mime: artifact.mime.clone(),
                path: artifact.path.clone(),
                step: artifact.step,
            })
            .collect(),
    }
}

fn document(session: &Session, run: &str, features: &ClientFeatures) -> String {
    if features.shows_virtual_documents() {
        return uris::report(run);
    }
    let path = session.store().run_dir(run).join("report.md");
    uris::file(&path).map_or_else(|| uris::report(run), |uri| uri.to_string())
}

/// `codeinterp.clearHints`: at once on the screen, and kept, so that they stay away when the server is started anew.
pub fn clear_hints(state: &mut State, argument: ext::UriArgument, reply: Reply<Option<Value>>) {
    let runs = state.runs.hide(argument.uri.as_ref());
    if state.features.inlay_hint_refresh {
        state.outbox.refresh_hints();
    }
    let sessions = match &argument.uri {
        Some(uri) => vec![state.session_for(uri)],
        None => state.all_sessions(),
    };
    blocking(reply, move || {
        let kept = |error: StoreError| failed(format!("the hints are cleared until the server is started anew, but not for good: {error}"));
        for session in &sessions {
            let store = session.store();
            let ids: Vec<String> = runs.iter().filter(|(of, _)| Arc::ptr_eq(of, session)).map(|(_, id)| id.clone()).collect();
            store.clear_hints(argument.uri.as_ref().map(Url::as_str), &ids).map_err(kept)?;
        }
        Ok(Some(json!({})))
    });
}

/// `codeinterp.openReport`; none given: that of the latest run.
pub fn open_report(state: &State, argument: ext::RunArgument, reply: Reply<Option<Value>>) {
    let latest = || state.runs.latest().map(|entry| entry.id.clone());
    let wanted = argument.run.or_else(latest);
    let (sessions, features, outbox) = (state.all_sessions(), state.features.clone(), state.outbox.clone());
    let runtime = tokio::runtime::Handle::current();
    blocking(reply, move || {
        let newest = || sessions.iter().flat_map(|session| session.runs()).map(|run| run.run.clone()).max();
        let Some(run) = wanted.or_else(newest) else { return Err(failed("there is no run yet; analyse a file first")) };
        let (session, _) = find(&sessions, &run).ok_or_else(|| no_run(&run))?;
        let target = document(&session, &run, &features);
        let path = session.store().run_dir(&run).join("report.md");
        if let Ok(uri) = Url::parse(&target) {
            runtime.spawn(show(outbox, features, uri, false, path.display().to_string()));
        }
        Ok(Some(json!({})))
    });
}

/// `codeinterp.openArtifact`
pub fn open_artifact(state: &State, argument: ext::ArtifactArgument, reply: Reply<Option<Value>>) {
    let (sessions, features, outbox) = (state.all_sessions(), state.features.clone(), state.outbox.clone());
    let runtime = tokio::runtime::Handle::current();
    blocking(reply, move || {
        let (session, record) = find(&sessions, &argument.run).ok_or_else(|| no_run(&argument.run))?;
        let path = session.store().artifact_path(&argument.run, &argument.name).map_err(|error| failed(error.to_string()))?;
        let mime = record.artifacts.iter().find(|artifact| artifact.name == argument.name).map(|artifact| artifact.mime.as_str());
        // Editors show no pictures as text. Pages stay in the editor: a browser would load what they link to.
        let external = mime.is_some_and(|mime| mime.starts_with("image/") && mime != "image/svg+xml" || mime == "application/pdf");
        if let Some(uri) = uris::file(&path) {
            runtime.spawn(show(outbox, features, uri, external, path.display().to_string()));
        }
        Ok(Some(json!({})))
    });
}

/// Shows a document, or says where it is.
async fn show(outbox: Outbox, features: ClientFeatures, uri: Url, external: bool, path: String) {
    let params = lsp::ShowDocumentParams { uri, external: Some(external), take_focus: Some(false), selection: None };
    if !(features.show_document && outbox.show_document(params).await) {
        outbox.show(lsp::MessageType::Info, format!("codeinterp: it is in {path}"));
    }
}
