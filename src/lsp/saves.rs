//! Results that follow their data: with `live` on, what stands on a document is run again when the document, or another
//! file that it is about, is saved. No model is asked: the same code runs on the text of today, in the order of the
//! lines, and a repetition that a newer save has overtaken is dropped.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use super::anchor::Anchor;
use super::commands::{self, selection};
use super::runs::{NewRun, RunEntry};
use super::state::State;
use crate::agent::ports::FileSource;
use crate::agent::run::{RunStatus, SelectionInfo};
use crate::session::request::RunSelection;
use crate::session::{RunFile, RunKind, RunRequest, Session};

/// Where results stand: the document, the line that they end (none for those about all of it), and whether they are code's.
type Place = (Url, Option<u32>, bool);

/// What is to be done about the results at one place.
enum Due {
    /// They are run again, and this repetition, which a newer save has overtaken, is dropped.
    Now(Box<Again>, Option<String>),
    /// The run of this number has to end first: only then is its code known.
    Later(u64),
}

/// A repetition, ready to be queued.
struct Again {
    session: Arc<Session>,
    request: RunRequest,
    new: NewRun,
}

/// A document was saved.
pub fn saved(state: &mut State, uri: &Url) {
    if !state.settings.live {
        return;
    }
    let mut seen = HashSet::new();
    let mut due = BTreeMap::new();
    for (number, entry) in state.runs.newest_first() {
        let Some(own) = entry.uri.as_ref().filter(|own| *own == uri || entry.files.contains(uri)) else { continue };
        if entry.hidden || entry.status == RunStatus::Cancelled {
            continue;
        }
        let place: Place = (own.clone(), (!entry.anchor.whole).then_some(entry.anchor.line()), entry.code);
        if !seen.insert(place.clone()) || !entry.anchor.stale {
            continue;
        }
        if !entry.status.is_final() && !entry.by_save {
            due.insert(place, Due::Later(number));
        } else if let Some(again) = again(state, own, entry) {
            let overtaken = (!entry.status.is_final()).then(|| entry.id.clone());
            due.insert(place, Due::Now(Box::new(again), overtaken));
        }
    }
    for due in due.into_values() {
        match due {
            Due::Later(number) => state.runs.run_again_at_its_end(number),
            Due::Now(again, overtaken) => {
                if let Some(run) = overtaken {
                    again.session.cancel(Some(&run));
                }
                commands::queue(state, again.session, again.request, again.new);
            }
        }
    }
}

/// The repetition of a run on the text of today; `None` where there is nothing to repeat.
fn again(state: &State, uri: &Url, entry: &RunEntry) -> Option<Again> {
    let anchor = Anchor { stale: unsaved(state, uri) || entry.files.iter().any(|file| unsaved(state, file)), ..entry.anchor };
    let new =
        NewRun { uri: Some(uri.clone()), files: entry.files.clone(), anchor, code: entry.code, by_save: true, title: entry.title.clone() };
    let request = if entry.code {
        let document = state.documents.get(uri)?;
        let lines = anchor.first as usize..=anchor.last as usize;
        let code: String = lines.flat_map(|line| [document.text.line(line), "\n"]).collect();
        if code.trim().is_empty() {
            return None;
        }
        RunRequest::code(code, uri, anchor.first, anchor.last)
    } else {
        let record = entry.record()?;
        if record.steps.is_empty() && record.changes.is_none() && entry.status.is_final() {
            return None;
        }
        // A repetition that is dropped leaves nothing to repeat.
        let parent = if entry.status.is_final() { entry.id.clone() } else { record.parent.clone()? };
        let mut request = RunRequest::new(RunKind::Rerun { parent }, Vec::new());
        request.uri = Some(uri.to_string());
        if !anchor.whole {
            let (file, selection) = selected(state, uri, &anchor)?;
            request.files.push(file);
            request.selection = Some(selection);
        }
        request
    };
    Some(Again { session: Arc::clone(&entry.session), request, new })
}

/// Whether the editor shows something else than was saved.
fn unsaved(state: &State, uri: &Url) -> bool {
    state.documents.get(uri).is_some_and(|document| document.changed)
}

/// The lines of an anchor as they are now.
fn selected(state: &State, uri: &Url, anchor: &Anchor) -> Option<(RunFile, RunSelection)> {
    let (document, encoding) = (state.documents.get(uri)?, state.features.encoding);
    let end = document.text.line_range(anchor.last as usize).end;
    let start = lsp::Position { line: anchor.first, character: 0 };
    let range = lsp::Range { start, end: document.text.position(end, encoding) };
    let selected = selection::select(&document.text, uri, &document.language, &range, encoding)?;
    let place = SelectionInfo { document: uri.to_string(), start_line: anchor.first, end_line: anchor.last };
    let file =
        RunFile { name: selected.name.clone(), source: FileSource::Bytes(selected.text.into_bytes().into()), origin: uri.to_string() };
    Some((file, RunSelection { file: selected.name, place, header_added: selected.header_added }))
}
