//! Open documents and their live profiles.
//!
//! A profile is made of the text when a document is opened, when typing pauses, and when a request needs one that
//! is not there. It is made on another thread; one that is stale when it is done is made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use super::documents::Text;
use super::event::{Event, Profiled};
use super::state::{Document, Seen, State, Waiter};
use super::{convert, recall, saves, uris};
use crate::profile::live::{self, Format, LiveProfile};

/// How long typing must pause before columns are looked at again.
const PAUSE: Duration = Duration::from_millis(150);

/// How a document is read as a table, by the name of its file first, then by its language.
pub fn format_of(uri: &Url, language: &str) -> Option<Format> {
    let name = uri.path().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "csv" | "ssv" => return Some(Format::Delimited(None)),
        "tsv" | "tab" => return Some(Format::Delimited(Some(b'\t'))),
        "psv" => return Some(Format::Delimited(Some(b'|'))),
        "jsonl" | "ndjson" => return Some(Format::JsonLines),
        "json" => return Some(Format::Json),
        _ => {}
    }
    match language {
        // Names of the CSV plugins of Neovim and VS Code.
        "csv" | "rfc_csv" | "dynamic csv" => Some(Format::Delimited(None)),
        "csv_semicolon" | "scsv" | "rfc_semicolon" => Some(Format::Delimited(Some(b';'))),
        "csv_pipe" | "psv" => Some(Format::Delimited(Some(b'|'))),
        "tsv" => Some(Format::Delimited(Some(b'\t'))),
        "jsonl" | "ndjson" | "jsonlines" => Some(Format::JsonLines),
        "json" => Some(Format::Json),
        _ => None,
    }
}

/// `textDocument/didOpen`
pub fn did_open(state: &mut State, params: lsp::DidOpenTextDocumentParams) {
    let item = params.text_document;
    let language = item.language_id.to_string();
    let document = Document {
        format: format_of(&item.uri, &language),
        language,
        version: item.version,
        text: Text::new(item.text),
        changed: false,
        revision: Arc::new(AtomicU64::new(0)),
        profile: None,
        profiling: false,
        due: None,
        waiters: Vec::new(),
        awaited: Arc::default(),
        diagnosed: false,
    };
    let uri = item.uri;
    if let Some(old) = state.documents.insert(uri.clone(), document) {
        // Opened twice without being closed.
        forget(state, old);
    }
    recall::opened(state, &uri);
    start(state, &uri);
    warm(state, &uri);
}

/// Starts the sandbox that a question about this document would need, where the settings ask for that.
fn warm(state: &State, uri: &Url) {
    let is_data = state.documents.get(uri).is_some_and(|document| document.format.is_some());
    let in_workspace = uris::path(uri).is_some_and(|path| state.folders.iter().any(|folder| path.starts_with(&folder.path)));
    if state.settings.sandbox.warm && is_data && in_workspace {
        state.session_for(uri).warm();
    }
}

/// `textDocument/didChange`
pub fn did_change(state: &mut State, params: &lsp::DidChangeTextDocumentParams) {
    let uri = &params.text_document.text_document_identifier.uri;
    let encoding = state.features.encoding;
    let Some(document) = state.documents.get_mut(uri) else {
        tracing::warn!(%uri, "a change of a document that is not open was ignored");
        return;
    };
    if params.text_document.version <= document.version {
        tracing::debug!(%uri, "a change does not raise the version");
    }
    document.version = params.text_document.version;
    document.changed = true;
    for change in &params.content_changes {
        let shift = document.text.apply(change, encoding);
        state.runs.edited(uri, shift);
    }
    document.revision.fetch_add(1, Ordering::Relaxed);
    if document.format.is_some() {
        if let Some(changed) = &mut document.due {
            *changed = true;
        } else {
            document.due = Some(false);
            timer(state, uri.clone());
        }
    }
}

/// `textDocument/didSave`
pub fn did_save(state: &mut State, params: &lsp::DidSaveTextDocumentParams) {
    if let Some(document) = state.documents.get_mut(&params.text_document.uri) {
        document.changed = false;
    }
    saves::saved(state, &params.text_document.uri);
}

/// `textDocument/didClose`
pub fn did_close(state: &mut State, params: &lsp::DidCloseTextDocumentParams) {
    let uri = &params.text_document.uri;
    if let Some(document) = state.documents.remove(uri) {
        document.revision.fetch_add(1, Ordering::Relaxed);
        if document.diagnosed {
            state.outbox.diagnostics(uri.clone(), Vec::new(), None);
        }
        forget(state, document);
    }
}

/// Answers whoever waited for a document that is closed with nothing.
fn forget(state: &State, document: Document) {
    for (_, waiter) in document.waiters {
        waiter(state, Seen::default());
    }
}

fn timer(state: &State, uri: Url) {
    let events = state.events.clone();
    tokio::spawn(async move {
        tokio::time::sleep(PAUSE).await;
        // The main loop is gone when the connection ends.
        let _ = events.send(Event::ProfileDue(uri));
    });
}

/// The timer of a document ran out.
pub fn due(state: &mut State, uri: &Url) {
    let Some(document) = state.documents.get_mut(uri) else { return };
    if document.due.take() == Some(true) {
        // Typing went on meanwhile.
        document.due = Some(false);
        timer(state, uri.clone());
    } else {
        start(state, uri);
    }
}

/// Starts making a profile, unless one is being made or there is one of the present text.
fn start(state: &mut State, uri: &Url) {
    let Some(document) = state.documents.get_mut(uri) else { return };
    let Some(format) = document.format else { return };
    let revision = document.revision.load(Ordering::Relaxed);
    if document.profiling || document.profile.as_ref().is_some_and(|(of, _)| *of == revision) {
        return;
    }
    document.profiling = true;
    let (text, current, awaited) = (document.text.clone(), Arc::clone(&document.revision), Arc::clone(&document.awaited));
    let (events, uri) = (state.events.clone(), uri.clone());
    tokio::task::spawn_blocking(move || {
        let stale = || current.load(Ordering::Relaxed) != revision && !awaited.load(Ordering::Relaxed);
        // A fault in a profile of hostile text must not leave its requests unanswered.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live::profile(text.as_str(), format, &stale)));
        let profile = made.unwrap_or_default().map(Arc::new);
        let abandoned = profile.is_none() && stale();
        // The main loop is gone when the connection ends.
        let _ = events.send(Event::Profiled(Profiled { uri, revision, text, abandoned, profile }));
    });
}

/// A profile was made.
pub fn profiled(state: &mut State, profiled: Profiled) {
    let Profiled { uri, revision, text, abandoned, profile } = profiled;
    let Some(document) = state.documents.get_mut(&uri) else { return };
    document.profiling = false;
    let mut ready = Vec::new();
    if !abandoned {
        // Who asked about this text or an earlier one is answered, though typing may go on and on.
        (ready, document.waiters) = std::mem::take(&mut document.waiters).into_iter().partition(|(asked, _)| *asked <= revision);
        document.awaited.store(!document.waiters.is_empty(), Ordering::Relaxed);
    }
    if document.revision.load(Ordering::Relaxed) == revision {
        current(state, &uri, revision, profile.clone());
    } else if !document.waiters.is_empty() || document.due.is_none() {
        // Else the timer asks for the profile of the present text when typing pauses.
        start(state, &uri);
    }
    let seen = Seen { text: Some(&text), profile: profile.as_deref() };
    for (_, waiter) in ready {
        waiter(state, seen);
    }
}

/// Keeps the profile of a document's present text, and shows what it says.
fn current(state: &mut State, uri: &Url, revision: u64, profile: Option<Arc<LiveProfile>>) {
    let Some(document) = state.documents.get_mut(uri) else { return };
    let hint = |profile: Option<&LiveProfile>| profile.map(live::header_hint);
    let old = hint(document.last_profile());
    // Whether JSON is a table, and has lenses, is known by now.
    let became_table = document.format == Some(Format::Json) && old.is_none() && profile.is_some();
    let changed = old != hint(profile.as_deref());
    document.profile = Some((revision, profile));
    publish(state, uri);
    if changed && state.settings.hints.columns && state.features.inlay_hint_refresh {
        state.outbox.refresh_hints();
    }
    if became_table && state.features.code_lens_refresh {
        state.outbox.refresh_lenses();
    }
}

/// Calls `then` when there is a live profile of the document's present text or of a later one: at once where it is
/// there, or where there will be none.
pub fn when_profiled(state: &mut State, uri: &Url, then: Waiter) {
    let Some(document) = state.documents.get_mut(uri) else { return then(state, Seen::default()) };
    let revision = document.revision.load(Ordering::Relaxed);
    if document.format.is_some() && document.profile.as_ref().is_none_or(|(of, _)| *of != revision) {
        document.waiters.push((revision, then));
        document.awaited.store(true, Ordering::Relaxed);
        return start(state, uri);
    }
    let Some(document) = state.documents.get(uri) else { return };
    then(state, Seen { text: Some(&document.text), profile: document.fresh_profile() });
}

impl Document {
    /// The live profile of the present text, where there is one.
    pub fn fresh_profile(&self) -> Option<&LiveProfile> {
        let (of, profile) = self.profile.as_ref()?;
        (*of == self.revision.load(Ordering::Relaxed)).then_some(profile.as_deref())?
    }

    /// The latest live profile, where there is one, though the text may have changed since.
    pub fn last_profile(&self) -> Option<&LiveProfile> {
        self.profile.as_ref()?.1.as_deref()
    }
}

/// Sends the diagnostics of a document, or clears them.
fn publish(state: &mut State, uri: &Url) {
    let enabled = state.settings.diagnostics.enabled;
    let encoding = state.features.encoding;
    let Some(document) = state.documents.get_mut(uri) else { return };
    let diagnostics = match document.fresh_profile() {
        Some(profile) if enabled => convert::diagnostics(profile, &document.text, encoding),
        _ => Vec::new(),
    };
    if diagnostics.is_empty() && !document.diagnosed {
        return;
    }
    document.diagnosed = !diagnostics.is_empty();
    let version = document.version;
    state.outbox.diagnostics(uri.clone(), diagnostics, Some(version));
}

/// Hints or diagnostics were turned on or off.
pub fn settings_changed(state: &mut State) {
    let open: Vec<Url> = state.documents.keys().cloned().collect();
    for uri in &open {
        publish(state, uri);
    }
    if state.features.inlay_hint_refresh {
        state.outbox.refresh_hints();
    }
}
