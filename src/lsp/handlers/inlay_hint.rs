//! `textDocument/inlayHint`: columns on the header line, results on the lines that were asked about.

use std::collections::BTreeMap;

use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use crate::lsp::analysis;
use crate::lsp::event::Reply;
use crate::lsp::hints::{self, LineHint};
use crate::lsp::main_loop::answer;
use crate::lsp::state::State;
use crate::profile::live::{self, LiveProfile};

/// Takes the request; it is answered when the columns are known.
pub fn inlay_hint(state: &mut State, params: lsp::InlayHintParams, reply: Reply<Option<Vec<lsp::InlayHint>>>) {
    let lsp::InlayHintParams { text_document: lsp::TextDocumentIdentifier { uri }, range, .. } = params;
    if state.settings.hints.enabled && state.settings.hints.columns {
        analysis::when_profiled(
            state,
            &uri.clone(),
            Box::new(move |state, seen| answer(reply, Some(hints_in(state, &uri, &range, seen.profile)))),
        );
    } else {
        answer(reply, Some(hints_in(state, &uri, &range, None)));
    }
}

fn hints_in(state: &State, uri: &Url, range: &lsp::Range, profile: Option<&LiveProfile>) -> Vec<lsp::InlayHint> {
    let Some(document) = state.documents.get(uri) else { return Vec::new() };
    if !state.settings.hints.enabled {
        return Vec::new();
    }
    let mut lines: BTreeMap<u32, LineHint> = BTreeMap::new();
    if let Some(profile) = profile.filter(|profile| !profile.columns.is_empty()) {
        lines.entry(0).or_default().columns = Some(live::header_hint(profile));
    }
    // Newest first: a line shows its newest result.
    for entry in state.runs.about(uri).filter(|entry| !entry.hidden) {
        let line = lines.entry(entry.anchor.line()).or_default();
        if line.result.is_empty()
            && let Some(record) = entry.record()
        {
            line.result = hints::result(entry, &record);
        }
    }
    let last = document.text.line_count().saturating_sub(1);
    lines
        .into_iter()
        .filter(|(line, _)| (range.start.line..=range.end.line).contains(line) && (*line as usize) <= last)
        .filter_map(|(line, hint)| {
            let end = document.text.line_range(line as usize).end;
            hint.at(document.text.position(end, state.features.encoding))
        })
        .collect()
}
