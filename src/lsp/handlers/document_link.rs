//! `textDocument/documentLink`: links of a report that is open in the editor lead to its artifacts.

use std::sync::Arc;

use tower_lsp::gen_lsp_types as lsp;

use crate::lsp::documents::{Encoding, Text};
use crate::lsp::event::Reply;
use crate::lsp::main_loop::answer;
use crate::lsp::state::State;
use crate::lsp::uris::{self, Virtual};
use crate::store::RunStore;

/// Links of one report at most.
const MAX_LINKS: usize = 200;

/// Takes the request; it is answered from another thread, where files may be looked at.
pub fn document_link(state: &State, params: lsp::DocumentLinkParams, reply: Reply<Option<Vec<lsp::DocumentLink>>>) {
    let uri = params.text_document.uri;
    let (Some(Virtual::Report(run)), Some(document)) = (Virtual::parse(&uri), state.documents.get(&uri)) else {
        return answer(reply, None);
    };
    let known = state.runs.get(&run).map(|entry| Arc::clone(&entry.session));
    let (sessions, text, encoding) = (Arc::clone(&state.sessions), document.text.clone(), state.features.encoding);
    tokio::task::spawn_blocking(move || {
        let session = known.or_else(|| sessions.of_run(&run));
        answer(reply, session.map(|session| links(&text, &run, session.store(), encoding)));
    });
}

/// Targets are files of that run's own artifacts and nothing else.
fn links(text: &Text, run: &str, store: &RunStore, encoding: Encoding) -> Vec<lsp::DocumentLink> {
    let report = text.as_str();
    report
        .match_indices("](artifacts/")
        .filter_map(|(at, mark)| {
            let start = at + 2;
            let name_start = at + mark.len();
            let end = name_start + report[name_start..].find(')')?;
            let target = format!("codeinterp:/runs/{run}/artifacts/{}", &report[name_start..end]);
            let Some(Virtual::Artifact(_, name)) = url::Url::parse(&target).ok().and_then(|uri| Virtual::parse(&uri)) else { return None };
            let path = store.artifact_path(run, &name).ok()?;
            Some(lsp::DocumentLink {
                range: text.range(&(start..end), encoding),
                target: uris::file(&path),
                tooltip: Some(format!("Open {name}")),
                data: None,
            })
        })
        .take(MAX_LINKS)
        .collect()
}
