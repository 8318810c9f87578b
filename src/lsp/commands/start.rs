//! Commands that start a run. What the editor shows is captured at once; on another thread files are read and what is
//! selected is cut out; then the run is queued and its id is answered.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc;
use url::Url;

use super::selection::{self, Selected};
use super::{find, no_run};
use crate::agent::ports::{Approval, EDITOR, FileSource, ModelInfo};
use crate::agent::run::SelectionInfo;
use crate::config::{Confirm, PrivacySend};
use crate::lsp::anchor::Anchor;
use crate::lsp::convert::{failed, invalid};
use crate::lsp::event::{Event, Reply};
use crate::lsp::ext;
use crate::lsp::runs::{self, AskPerson, NewRun};
use crate::lsp::state::State;
use crate::lsp::uris;
use crate::session::inputs::{check_input, sandbox_name};
use crate::session::request::RunSelection;
use crate::session::{RunFile, RunKind, RunRequest, Services, Session};
use crate::store::names::numbered;

/// What is asked about a file when nothing else is; shown as the run's question before it runs.
pub const DEFAULT_QUESTION: &str = "Describe this data and plot what matters.";

/// Files of one question at most.
const MAX_FILES: usize = 50;

/// An input as it was captured: the editor's text, where the file is open.
struct Input {
    uri: Url,
    path: Option<PathBuf>,
    open: Option<(Arc<String>, bool)>,
    language: String,
}

/// A run that is ready to be queued.
pub struct Prepared {
    session: Arc<Session>,
    request: RunRequest,
    new: NewRun,
    model: Option<ModelInfo>,
    /// Documents whose text was captured, with its revision.
    captured: Vec<(Url, u64)>,
}

const WHOLE: Anchor = Anchor { first: 0, last: 0, whole: true, stale: false };

/// `codeinterp.analyzeFile`
pub fn analyze_file(state: &mut State, argument: &ext::AnalyzeFile, reply: Reply<Option<Value>>) {
    let question = question(argument.question.as_deref()).unwrap_or_else(|| DEFAULT_QUESTION.to_owned());
    let mut uris = vec![argument.uri.clone()];
    uris.extend(argument.files.iter().filter(|uri| **uri != argument.uri).cloned());
    uris.truncate(MAX_FILES);
    let inputs: Vec<Input> = uris.into_iter().map(|uri| capture(state, uri)).collect();
    let folder = state.folder_for(&argument.uri);
    let session = state.session_for(&argument.uri);
    let captured = revisions(state, inputs.iter().map(|input| &input.uri));
    prepare(state, Some(&argument.uri), reply, move || about_files(session, question, inputs, &folder, captured));
}

/// A question about whole files, which stands on the first of them.
fn about_files(
    session: Arc<Session>,
    question: String,
    inputs: Vec<Input>,
    folder: &Path,
    captured: Vec<(Url, u64)>,
) -> jsonrpc::Result<Prepared> {
    let mut request = RunRequest::new(RunKind::Ask { question: question.clone() }, files(&inputs, folder)?);
    let mut uris = inputs.into_iter().map(|input| input.uri);
    let uri = uris.next();
    request.uri = uri.as_ref().map(Url::to_string);
    let new = NewRun { uri, files: uris.collect(), anchor: WHOLE, code: false, by_save: false, title: question };
    Ok(Prepared { session, request, new, model: None, captured })
}

/// The revisions of those documents that are open.
fn revisions<'a>(state: &State, uris: impl IntoIterator<Item = &'a Url>) -> Vec<(Url, u64)> {
    uris.into_iter().filter_map(|uri| Some((uri.clone(), state.documents.get(uri)?.revision.load(Ordering::Relaxed)))).collect()
}

fn capture(state: &State, uri: Url) -> Input {
    let document = state.documents.get(&uri);
    Input {
        path: uris::path(&uri),
        open: document.map(|document| (document.text.snapshot(), document.changed)),
        language: document.map(|document| document.language.clone()).unwrap_or_default(),
        uri,
    }
}

/// The text of a question, where there is one.
fn question(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What goes into the sandbox of each input: the file, or what the editor shows where that differs.
fn files(inputs: &[Input], folder: &Path) -> jsonrpc::Result<Vec<RunFile>> {
    let mut taken = HashSet::new();
    let mut files = Vec::with_capacity(inputs.len());
    for input in inputs {
        let (wish, origin) = match &input.path {
            Some(path) => (sandbox_name(path, folder), path.display().to_string()),
            None => (selection::untitled_name(&input.language), input.uri.to_string()),
        };
        let source = match (&input.path, &input.open) {
            (Some(path), Some((text, changed))) if unsaved(path, text, *changed) => FileSource::Bytes(text.as_bytes().into()),
            (Some(path), _) => {
                check_input(path, folder).map_err(|error| failed(format!("{error}. {}", error.hint)))?;
                FileSource::Path(path.clone())
            }
            (None, Some((text, _))) => FileSource::Bytes(text.as_bytes().into()),
            (None, None) => return Err(failed(format!("{} is no file and is not open in the editor", input.uri))),
        };
        let mut name = wish.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = numbered(&wish, number);
        }
        files.push(RunFile { name, source, origin });
    }
    Ok(files)
}

/// Whether what the editor shows is not what is on disk. A file in another encoding than UTF-8 that was not changed
/// in the editor is read from disk, where its bytes are.
fn unsaved(path: &Path, text: &str, changed: bool) -> bool {
    if changed {
        return true;
    }
    match std::fs::metadata(path) {
        // Shorter than any encoding of the text, or not there.
        Err(_) => return true,
        Ok(metadata) if !metadata.is_file() => return false,
        Ok(_) => {}
    }
    match std::fs::read(path) {
        Err(_) => false,
        Ok(bytes) => {
            let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            std::str::from_utf8(body).is_ok_and(|disk| disk != text && !disk.replace("\r\n", "\n").eq(&text.replace("\r\n", "\n")))
        }
    }
}

/// `codeinterp.askSelection`
pub fn ask_selection(state: &mut State, argument: &ext::Selection, reply: Reply<Option<Value>>) {
    let Some(document) = state.documents.get(&argument.uri) else {
        // The client may have sent it for a file that is not open: ask about the whole file.
        let whole = ext::AnalyzeFile { uri: argument.uri.clone(), question: argument.question.clone(), files: Vec::new() };
        return analyze_file(state, &whole, reply);
    };
    let (text, language) = (document.text.clone(), document.language.clone());
    let (range, asked, encoding) = (argument.range, question(argument.question.as_deref()), state.features.encoding);
    let input = capture(state, argument.uri.clone());
    let folder = state.folder_for(&argument.uri);
    let session = state.session_for(&argument.uri);
    let uri = argument.uri.clone();
    let captured = revisions(state, [&uri]);
    prepare(state, Some(&argument.uri), reply, move || {
        let selected = selection::select(&text, &uri, &language, &range, encoding);
        let question = asked
            .or_else(|| selected.as_ref().and_then(|selected| selected.question.clone()))
            .ok_or_else(|| invalid("codeinterp.askSelection needs a question"))?;
        let Some(Selected { name, text, first, last, header_added, .. }) = selected else {
            return about_files(session, question, vec![input], &folder, captured);
        };
        let place = SelectionInfo { document: uri.to_string(), start_line: first, end_line: last };
        let file = RunFile { name: name.clone(), source: FileSource::Bytes(text.into_bytes().into()), origin: uri.to_string() };
        let mut request = RunRequest::new(RunKind::Ask { question: question.clone() }, vec![file]);
        request.uri = Some(uri.to_string());
        request.selection = Some(RunSelection { file: name, place, header_added });
        let anchor = Anchor { first, last, whole: false, stale: false };
        let new = NewRun { uri: Some(uri), files: Vec::new(), anchor, code: false, by_save: false, title: question };
        // Edits of the document move the anchor and make it stale where they touch it.
        Ok(Prepared { session, request, new, model: None, captured: Vec::new() })
    });
}

/// `codeinterp.runSelection`
pub fn run_selection(state: &mut State, argument: &ext::Selection, reply: Reply<Option<Value>>) {
    let Some(document) = state.documents.get(&argument.uri) else {
        let _ = reply.send(Err(failed(format!("{} is not open in the editor", argument.uri))));
        return;
    };
    let Some((code, first, last)) = selection::code(&document.text, &document.language, &argument.range, state.features.encoding) else {
        let _ = reply.send(Err(failed("nothing is selected, and there is no cell of Python here")));
        return;
    };
    let session = state.session_for(&argument.uri);
    let uri = argument.uri.clone();
    let request = RunRequest::code(code, &uri, first, last);
    let anchor = Anchor { first, last, whole: false, stale: false };
    let title = "Running the selection".to_owned();
    let new = NewRun { uri: Some(uri), files: Vec::new(), anchor, code: true, by_save: false, title };
    // Not by way of another thread: cells run in the order in which they were asked for.
    submit(state, Prepared { session, request, new, model: None, captured: Vec::new() }, reply);
}

/// `codeinterp.followUp`
pub fn follow_up(state: &mut State, argument: ext::FollowUp, reply: Reply<Option<Value>>) {
    let Some(question) = question(Some(&argument.question)) else {
        let _ = reply.send(Err(invalid("codeinterp.followUp needs a question")));
        return;
    };
    let kind = RunKind::FollowUp { parent: argument.run.clone(), question: question.clone() };
    continued(state, argument.run, kind, question, reply);
}

/// `codeinterp.rerun`
pub fn rerun(state: &mut State, argument: ext::RunArgument, reply: Reply<Option<Value>>) {
    let Some(run) = argument.run else {
        let _ = reply.send(Err(invalid("codeinterp.rerun needs a run")));
        return;
    };
    let kind = RunKind::Rerun { parent: run.clone() };
    continued(state, run, kind, "running it again".to_owned(), reply);
}

/// A run that goes on from an earlier one, at the earlier one's place.
fn continued(state: &mut State, parent: String, kind: RunKind, title: String, reply: Reply<Option<Value>>) {
    let (anchor, files) = state.runs.get(&parent).map(|entry| (entry.anchor, entry.files.clone())).unzip();
    let sessions = state.all_sessions();
    prepare(state, None, reply, move || {
        let (session, record) = find(&sessions, &parent).ok_or_else(|| no_run(&parent))?;
        let uri = record.uri.as_deref().and_then(|uri| Url::parse(uri).ok());
        let of_record = record.selection.as_ref().map_or(WHOLE, |place| Anchor {
            first: place.start_line,
            last: place.end_line,
            whole: false,
            stale: false,
        });
        let mut anchor = anchor.unwrap_or(of_record);
        anchor.stale = false;
        let mut request = RunRequest::new(kind, Vec::new());
        request.uri.clone_from(&record.uri);
        let new = NewRun { uri, files: files.unwrap_or_default(), anchor, code: false, by_save: false, title };
        Ok(Prepared { session, request, new, model: None, captured: Vec::new() })
    });
}

/// Prepares a run on another thread and hands it back to the main loop. `about` is the document whose present text it
/// is about.
fn prepare(
    state: &mut State,
    about: Option<&Url>,
    reply: Reply<Option<Value>>,
    work: impl FnOnce() -> jsonrpc::Result<Prepared> + Send + 'static,
) {
    let number = about.map_or(0, |uri| state.runs.prepare(uri.clone()));
    let (events, settings) = (state.events.clone(), state.settings.clone());
    let services = Arc::clone(&state.services) as Arc<dyn Services>;
    tokio::task::spawn_blocking(move || {
        // Text and files are hostile: a fault in what reads them must not be taken for a run that is still prepared.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let mut prepared = done.unwrap_or_else(|_| Err(jsonrpc::Error::internal_error())).map(Box::new);
        if let Ok(prepared) = &mut prepared
            && matches!(prepared.request.kind, RunKind::Ask { .. } | RunKind::FollowUp { .. })
        {
            // A model that can't be had is told by the run itself.
            prepared.model = services.model(&settings).ok().map(|model| model.info());
        }
        // The main loop is gone when the connection ends.
        let _ = events.send(Event::Prepared { number, prepared, reply });
    });
}

/// A run was prepared, or can't be.
pub fn prepared(state: &mut State, number: u64, prepared: jsonrpc::Result<Box<Prepared>>, reply: Reply<Option<Value>>) {
    let edits = state.runs.edits_since(number);
    match prepared {
        Ok(mut prepared) => {
            for edit in edits {
                prepared.new.anchor.edited(edit);
            }
            submit(state, *prepared, reply);
        }
        Err(error) => drop(reply.send(Err(error))),
    }
}

/// Queues a prepared run and answers with its id.
fn submit(state: &mut State, prepared: Prepared, reply: Reply<Option<Value>>) {
    // A request that was cancelled while its files were read starts nothing.
    if reply.is_closed() {
        return;
    }
    if state.shut_down.load(Ordering::Relaxed) {
        let _ = reply.send(Err(failed("the server is shutting down")));
        return;
    }
    let Prepared { session, request, mut new, model, captured } = prepared;
    // What was typed since is not what the run is about.
    let now = revisions(state, captured.iter().map(|(uri, _)| uri));
    new.anchor.stale |= now.iter().any(|now| !captured.contains(now));
    tell_destination(state, model.as_ref());
    let document = |state: &State, session: &Session, run: &str| state.report_uri(session, run);
    let run = queue(state, Arc::clone(&session), request, new);
    let started = ext::Started { document: document(state, &session, &run), run };
    let _ = reply.send(Ok(Some(json!(started))));
}

/// Queues a run in its session.
pub fn queue(state: &mut State, session: Arc<Session>, mut request: RunRequest, new: NewRun) -> String {
    if session.settings().agent.confirm == Confirm::Always {
        request.approval = Some(Arc::new(AskPerson { outbox: state.outbox.clone() }) as Arc<dyn Approval>);
    }
    let number = state.runs.number();
    let touched = Arc::new(Notify::new());
    let handler = runs::event_handler(number, state.events.clone(), Arc::clone(&touched));
    let handle = session.submit(request, handler);
    runs::started(state, number, &handle.id, session, new, touched);
    handle.id
}

/// Names a remote model and what will leave, before the first question goes to it.
fn tell_destination(state: &mut State, model: Option<&ModelInfo>) {
    let Some((model, destination)) = model.and_then(|model| Some((model, model.destination.clone()?))) else { return };
    if !state.told.insert(format!("{destination} {}", model.name)) {
        return;
    }
    let what = match state.settings.privacy.send {
        PrivacySend::Schema => "your questions and the names and types of columns",
        PrivacySend::Sample => "your questions, profiles of the files and a few rows",
        PrivacySend::Full => "your questions, profiles of the files and everything that the analysis prints",
    };
    let which =
        if destination == EDITOR { "the editor's own model".to_owned() } else { format!("the model {} at {destination}", model.name) };
    let text = format!("codeinterp asks {which}. It is sent {what}; the setting privacy.send changes that.");
    state.outbox.show(lsp::MessageType::Info, crate::report::escape::plain(&text));
}
