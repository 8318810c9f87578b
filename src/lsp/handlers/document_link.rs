//! `textDocument/documentLink`: links of a report that is open in the editor lead to its artifacts.

use tower_lsp::gen_lsp_types as lsp;

use crate::lsp::state::State;
use crate::lsp::uris::{self, Virtual};

/// Links of one report at most.
const MAX_LINKS: usize = 200;

/// Answers the request. Targets are files of that run's own artifacts and nothing else.
pub fn document_link(state: &State, params: &lsp::DocumentLinkParams) -> Option<Vec<lsp::DocumentLink>> {
    let uri = &params.text_document.uri;
    let Some(Virtual::Report(run)) = Virtual::parse(uri) else { return None };
    let document = state.documents.get(uri)?;
    let entry = state.runs.get(&run);
    let store = match entry {
        Some(entry) => entry.session.store().clone(),
        None => state.sessions.of_run(&run)?.store().clone(),
    };
    let text = document.text.as_str();
    let links = text
        .match_indices("](artifacts/")
        .filter_map(|(at, mark)| {
            let start = at + 2;
            let name_start = at + mark.len();
            let end = name_start + text[name_start..].find(')')?;
            let target = format!("codeinterp:/runs/{run}/artifacts/{}", &text[name_start..end]);
            let Some(Virtual::Artifact(_, name)) = url::Url::parse(&target).ok().and_then(|uri| Virtual::parse(&uri)) else { return None };
            let path = store.artifact_path(&run, &name).ok()?;
            Some(lsp::DocumentLink {
                range: document.text.range(&(start..end), state.features.encoding),
                target: uris::file(&path),
                tooltip: Some(format!("Open {name}")),
                data: None,
            })
        })
        .take(MAX_LINKS)
        .collect();
    Some(links)
}
