//! Results of an earlier server, on the lines of a document that is opened.
//!
//! A result is drawn again only where the text is still what it is about: the whole file by its hash, selected lines
//! by theirs, a cell by its code. What has changed meanwhile is found in the list of runs and nowhere else.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use super::anchor::Anchor;
use super::commands::selection;
use super::documents::{Encoding, Text, to_u32};
use super::event::Event;
use super::runs::Recalled;
use super::state::State;
use super::uris;
use crate::agent::run::{InputFile, Run, RunStatus};
use crate::profile::live::MAX_BYTES;

/// Runs that are looked at for one document.
const MAX_RUNS: usize = 30;

/// Looks for the results of a document that was opened, on another thread.
pub fn opened(state: &State, uri: &Url) {
    let Some(document) = state.documents.get(uri) else { return };
    let (text, language, encoding) = (document.text.clone(), document.language.clone(), state.features.encoding);
    if text.as_str().len() > MAX_BYTES || uris::path(uri).is_none() {
        return;
    }
    let session = state.session_for(uri);
    let (events, uri, revision) = (state.events.clone(), uri.clone(), Arc::clone(&document.revision));
    let opened = revision.load(std::sync::atomic::Ordering::Relaxed);
    tokio::task::spawn_blocking(move || {
        let hashes = Hashes::of(&text, uris::path(&uri).as_deref());
        let found: Vec<Recalled> = session
            .store()
            .about(uri.as_str(), MAX_RUNS)
            .into_iter()
            .filter_map(|run| {
                let anchor = anchor(&run, &text, &uri, &language, encoding, &hashes)?;
                let hidden = session.store().hints_cleared(&run.run);
                Some(Recalled { code: is_code(&run), anchor, hidden, record: Arc::new(run) })
            })
            .collect();
        let unchanged = revision.load(std::sync::atomic::Ordering::Relaxed) == opened;
        if unchanged && !found.is_empty() {
            // The main loop is gone when the connection ends.
            let _ = events.send(Event::Recalled { uri, session, found });
        }
    });
}

/// What the whole document may have been put into a sandbox as.
struct Hashes(Vec<String>);

impl Hashes {
    /// Of the text in the editor, and of the file, whose encoding may be another.
    fn of(text: &Text, path: Option<&Path>) -> Self {
        let mut hashes = vec![hash(text.as_str().as_bytes())];
        let same_size = |metadata: std::fs::Metadata| metadata.is_file() && metadata.len() <= MAX_BYTES as u64;
        if let Some(path) = path.filter(|path| std::fs::metadata(path).is_ok_and(same_size))
            && let Ok(bytes) = std::fs::read(path)
            && bytes != text.as_str().as_bytes()
        {
            hashes.push(hash(&bytes));
        }
        Self(hashes)
    }

    fn contain(&self, input: &InputFile) -> bool {
        self.0.contains(&input.sha256)
    }
}

/// Whether a further file of a run has other contents by now, or is gone.
fn has_changed(input: &InputFile) -> bool {
    let path = Path::new(&input.source);
    let Some(metadata) = std::fs::metadata(path).ok().filter(|metadata| metadata.is_file() && metadata.len() == input.bytes) else {
        return path.is_absolute();
    };
    // Of a large file the size has to do.
    metadata.len() <= MAX_BYTES as u64 && std::fs::read(path).is_ok_and(|bytes| hash(&bytes) != input.sha256)
}

/// Hexadecimal SHA-256.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A person's own code, without a model.
fn is_code(run: &Run) -> bool {
    run.inputs.is_empty() && run.parent.is_none() && run.steps.len() == 1
}

/// Where the results of a run stand in the text; `None` where it is about something else by now.
fn anchor(run: &Run, text: &Text, uri: &Url, language: &str, encoding: Encoding, hashes: &Hashes) -> Option<Anchor> {
    if matches!(run.status, RunStatus::Queued | RunStatus::Running | RunStatus::Cancelled) {
        return None;
    }
    if is_code(run) {
        let (first, last) = lines_of(&run.steps.first()?.code, text)?;
        return Some(Anchor { first, last, whole: false, stale: false });
    }
    let Some(place) = &run.selection else {
        let input = run.inputs.first()?;
        let stale = run.inputs.iter().skip(1).any(has_changed);
        return hashes.contain(input).then_some(Anchor { first: 0, last: 0, whole: true, stale });
    };
    let end = text.line_range(place.end_line as usize).end;
    let start = lsp::Position { line: place.start_line, character: 0 };
    let range = lsp::Range { start, end: text.position(end, encoding) };
    let selected = selection::select(text, uri, language, &range, encoding)?;
    let input = run.inputs.iter().find(|input| input.name == selected.name)?;
    // Rows are selected with or without the end of their last line.
    let same =
        [selected.text.as_str(), selected.text.trim_end_matches(['\r', '\n'])].iter().any(|text| hash(text.as_bytes()) == input.sha256);
    same.then_some(Anchor { first: place.start_line, last: place.end_line, whole: false, stale: false })
}

/// The lines that hold this code, where they are the only ones.
fn lines_of(code: &str, text: &Text) -> Option<(u32, u32)> {
    let code = code.trim_end();
    if code.is_empty() {
        return None;
    }
    let mut found = text.as_str().match_indices(code).filter(|(at, _)| {
        let end = at + code.len();
        let starts_line = text.line_range(text.line_of(*at)).start == *at;
        starts_line && text.line_range(text.line_of(end)).end == end
    });
    let (at, _) = found.next()?;
    found.next().is_none().then(|| (to_u32(text.line_of(at)), to_u32(text.line_of(at + code.len()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_where_it_stands_once_on_lines_of_its_own() {
        let text = Text::new("# %%\na = 1\na\n# %%\nb = a\n".to_owned());
        assert_eq!(lines_of("a = 1\na\n", &text), Some((1, 2)));
        assert_eq!(lines_of("b = a", &text), Some((4, 4)));
        assert_eq!(lines_of("a = 1\nb", &text), None);
        assert_eq!(lines_of("= a", &text), None);
        let twice = Text::new("x\ny\nx\n".to_owned());
        assert_eq!(lines_of("x", &twice), None);
    }
}
