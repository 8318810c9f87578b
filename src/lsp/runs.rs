//! Runs that were asked for over this connection, as they go on: progress, notifications, refreshes, and at the end
//! the report on the screen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use super::anchor::Anchor;
use super::documents::LineShift;
use super::event::{Event, RunUpdate};
use super::ext::RunChangedParams;
use super::outbox::Outbox;
use super::progress::{Progress, Shown};
use super::saves;
use super::state::State;
use crate::agent::events::RunEvent;
use crate::agent::ports::Approval;
use crate::agent::run::{Run, RunStatus};
use crate::report::escape;
use crate::session::{EventHandler, Session};

/// Time between two refreshes of a report that grows.
const PACE: Duration = Duration::from_millis(200);

/// Runs that are remembered for hints; older ones are found by their session.
const MAX_RUNS: usize = 300;

/// A run of this connection.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state")]
pub struct RunEntry {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: Arc<Session>,
    /// The document that it is about.
    pub uri: Option<Url>,
    /// Further documents that it is about.
    pub files: Vec<Url>,
    /// Where its results stand.
    pub anchor: Anchor,
    /// How it stands.
    pub status: RunStatus,
    /// The step that is under way or was the last.
    pub step: u32,
    /// It executes a person's code, without a model.
    pub code: bool,
    /// A person has cleared its hints.
    pub hidden: bool,
    /// It repeats an earlier one because a document was saved.
    pub by_save: bool,
    /// What a progress says.
    pub title: String,
    /// A document was saved while it went on.
    again: bool,
    /// The record of a run of an earlier server.
    kept: Option<Arc<Run>>,
    progress: Option<Progress>,
    over: CancellationToken,
}

impl RunEntry {
    /// Its record as it is now.
    pub fn record(&self) -> Option<Arc<Run>> {
        self.kept.clone().or_else(|| self.session.run(&self.id))
    }
}

/// A run of an earlier server whose results stand on a document.
pub struct Recalled {
    /// Its record.
    pub record: Arc<Run>,
    /// Where its results stand.
    pub anchor: Anchor,
    /// It executed a person's code, without a model.
    pub code: bool,
    /// A person has cleared its hints.
    pub hidden: bool,
}

/// All runs that have results in documents, oldest first.
pub struct Runs {
    /// The number of the latest run of this connection; runs of earlier servers have numbers below [`FIRST`].
    latest: u64,
    earliest: u64,
    entries: BTreeMap<u64, RunEntry>,
    /// Runs that are being prepared, by numbers of their own: the document, and the edits of it since.
    prepared: BTreeMap<u64, (Url, Vec<Option<LineShift>>)>,
}

/// Runs of this connection are numbered from here on.
const FIRST: u64 = 1 << 32;

impl Default for Runs {
    fn default() -> Self {
        Self { latest: FIRST, earliest: FIRST, entries: BTreeMap::new(), prepared: BTreeMap::new() }
    }
}

/// What is known of a run before it has an id.
pub struct NewRun {
    /// The document that it is about.
    pub uri: Option<Url>,
    /// Further documents that it is about.
    pub files: Vec<Url>,
    /// Where its results stand.
    pub anchor: Anchor,
    /// It executes a person's code, without a model.
    pub code: bool,
    /// It repeats an earlier one because a document was saved.
    pub by_save: bool,
    /// What a progress says.
    pub title: String,
}

impl Runs {
    /// A number for a run to come.
    pub fn number(&mut self) -> u64 {
        self.latest += 1;
        self.latest
    }

    /// The run of this id.
    pub fn get(&self, id: &str) -> Option<&RunEntry> {
        self.entries.values().rev().find(|entry| entry.id == id)
    }

    /// The latest run.
    pub fn latest(&self) -> Option<&RunEntry> {
        self.entries.values().next_back()
    }

    /// Runs about a document, newest first.
    pub fn about<'a>(&'a self, uri: &'a Url) -> impl Iterator<Item = &'a RunEntry> {
        self.entries.values().rev().filter(move |entry| entry.uri.as_ref() == Some(uri))
    }

    /// A document was edited.
    pub fn edited(&mut self, uri: &Url, shift: Option<LineShift>) {
        for entry in self.entries.values_mut() {
            if entry.uri.as_ref() == Some(uri) {
                entry.anchor.edited(shift);
            } else if entry.files.contains(uri) {
                entry.anchor.stale = true;
            }
        }
        for (_, edits) in self.prepared.values_mut().filter(|(about, _)| about == uri) {
            edits.push(shift);
        }
    }

    /// All runs with their numbers, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = (u64, &RunEntry)> {
        self.entries.iter().rev().map(|(number, entry)| (*number, entry))
    }

    /// A document was saved while this run goes on.
    pub fn run_again_at_its_end(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.again = true;
        }
    }

    /// A run about a document is being prepared from what the document is now; a number to ask [`Runs::edits_since`] by.
    pub fn prepare(&mut self, uri: Url) -> u64 {
        let number = self.number();
        self.prepared.insert(number, (uri, Vec::new()));
        number
    }

    /// It has been prepared: how its document was edited meanwhile.
    pub fn edits_since(&mut self, number: u64) -> Vec<Option<LineShift>> {
        self.prepared.remove(&number).map(|(_, edits)| edits).unwrap_or_default()
    }

    /// A person cleared the hints of a document, or of all. The runs that this is about.
    pub fn hide(&mut self, uri: Option<&Url>) -> Vec<(Arc<Session>, String)> {
        let meant = self.entries.values_mut().filter(|entry| uri.is_none() || entry.uri.as_ref() == uri);
        meant
            .map(|entry| {
                entry.hidden = true;
                (Arc::clone(&entry.session), entry.id.clone())
            })
            .collect()
    }

    fn insert(&mut self, number: u64, entry: RunEntry) {
        self.entries.insert(number, entry);
        while self.entries.len() > MAX_RUNS
            && let Some(oldest) = self.entries.iter().find(|(_, entry)| entry.status.is_final()).map(|(number, _)| *number)
        {
            self.entries.remove(&oldest);
        }
    }
}

/// What a session tells about a run, as events of the main loop. Text that streams only touches the report.
pub fn event_handler(number: u64, events: mpsc::UnboundedSender<Event>, touched: Arc<Notify>) -> EventHandler {
    Arc::new(move |event: &RunEvent| {
        touched.notify_one();
        let progress = |what: String| RunUpdate::Progress(crate::agent::ports::Progress { what, fraction: None });
        let update = match event {
            RunEvent::Status(status) if !status.is_final() => RunUpdate::Status(*status),
            RunEvent::StepStarted { step, .. } => RunUpdate::Step(*step),
            RunEvent::Progress(progress) => RunUpdate::Progress(progress.clone()),
            RunEvent::TurnStarted(turn) => progress(format!("asking the model, turn {turn}")),
            RunEvent::Concluded { .. } => RunUpdate::Concluded,
            _ => return,
        };
        // The main loop is gone when the connection ends.
        let _ = events.send(Event::Run(number, update));
    })
}

/// Remembers a run that was queued, and tells the client.
pub fn started(state: &mut State, number: u64, id: &str, session: Arc<Session>, new: NewRun, touched: Arc<Notify>) {
    let over = CancellationToken::new();
    if state.features.text_document_content
        && let Ok(uri) = Url::parse(&super::uris::report(id))
    {
        tokio::spawn(refresh_while_it_grows(uri, state.outbox.clone(), touched, over.clone()));
    }
    let entry = RunEntry {
        id: id.to_owned(),
        session,
        uri: new.uri,
        files: new.files,
        anchor: new.anchor,
        status: RunStatus::Queued,
        step: 0,
        code: new.code,
        hidden: false,
        by_save: new.by_save,
        title: new.title,
        again: false,
        kept: None,
        progress: None,
        over,
    };
    tell(state, &entry);
    state.runs.insert(number, entry);
}

/// The documents that a recorded run is about, but for the first.
fn further_files(record: &Run) -> Vec<Url> {
    record.inputs.iter().skip(1).filter_map(|input| Url::from_file_path(&input.source).ok()).collect()
}

/// Takes the results of an earlier server that stand on a document, newest first.
pub fn recalled(state: &mut State, uri: &Url, session: &Arc<Session>, found: Vec<Recalled>) {
    if !state.documents.contains_key(uri) {
        return;
    }
    for Recalled { record, anchor, code, hidden } in found {
        if state.runs.get(&record.run).is_some() {
            continue;
        }
        let entry = RunEntry {
            id: record.run.clone(),
            session: Arc::clone(session),
            uri: Some(uri.clone()),
            files: further_files(&record),
            anchor,
            status: record.status,
            step: record.total_steps,
            code,
            hidden,
            by_save: false,
            title: record.question.clone(),
            again: false,
            kept: Some(record),
            progress: None,
            over: CancellationToken::new(),
        };
        state.runs.earliest -= 1;
        let number = state.runs.earliest;
        state.runs.insert(number, entry);
    }
    refresh(state);
}

/// Asks the client to read a report again while the run streams.
async fn refresh_while_it_grows(uri: Url, outbox: Outbox, touched: Arc<Notify>, over: CancellationToken) {
    loop {
        tokio::select! {
            () = over.cancelled() => break,
            () = touched.notified() => outbox.refresh_content(uri.clone()),
        }
        tokio::time::sleep(PACE).await;
    }
    outbox.refresh_content(uri);
}

/// `codeinterp/runChanged`, for clients that want it.
fn tell(state: &State, entry: &RunEntry) {
    if !state.features.options.run_events {
        return;
    }
    state.outbox.run_changed(RunChangedParams {
        run: entry.id.clone(),
        status: entry.status.as_str().to_owned(),
        step: entry.step,
        uri: entry.uri.as_ref().map(Url::to_string),
        document: state.report_uri(&entry.session, &entry.id),
    });
}

/// A run went on.
pub fn update(state: &mut State, number: u64, update: RunUpdate) {
    let can_progress = state.features.progress;
    let Some(entry) = state.runs.entries.get_mut(&number) else { return };
    match update {
        RunUpdate::Status(status) => {
            entry.status = status;
            if status == RunStatus::Running && can_progress && entry.progress.is_none() {
                entry.progress = Some(Progress::begin(state.outbox.clone(), &entry.id, entry.title.clone()));
            }
            refresh(state);
        }
        RunUpdate::Step(step) => {
            entry.step = step;
            if let Some(progress) = &entry.progress {
                progress.show(Shown { message: format!("step {step}"), percentage: None });
            }
        }
        RunUpdate::Progress(now) => {
            if let Some(progress) = &entry.progress {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage")]
                let percentage = now.fraction.map(|fraction| (fraction.clamp(0.0, 1.0) * 100.0) as u32);
                progress.show(Shown { message: escape::plain(&now.what), percentage });
            }
            return;
        }
        RunUpdate::Concluded => {
            let record = entry.record();
            entry.status = record.as_ref().map_or(RunStatus::Failed, |record| record.status);
            entry.step = record.as_ref().map_or(entry.step, |record| record.total_steps);
            entry.progress = None;
            entry.over.cancel();
            refresh(state);
        }
    }
    let Some(entry) = state.runs.entries.get(&number) else { return };
    tell(state, entry);
    if entry.status.is_final() {
        present(state, entry);
        if let Some(uri) = entry.uri.clone().filter(|_| entry.again) {
            saves::saved(state, &uri);
        }
    }
}

/// Hints and lenses show how runs stand.
fn refresh(state: &State) {
    if state.features.inlay_hint_refresh {
        state.outbox.refresh_hints();
    }
    if state.features.code_lens_refresh {
        state.outbox.refresh_lenses();
    }
}

/// Shows the end of a run to clients that do not do so themselves.
fn present(state: &State, entry: &RunEntry) {
    if state.features.options.run_events || entry.status == RunStatus::Cancelled {
        return;
    }
    let Some(record) = entry.record() else { return };
    if let Some(error) = &record.error {
        state.outbox.show(lsp::MessageType::Error, escape::plain(&format!("codeinterp: {}. {}", error.message, error.hint)));
        return;
    }
    let document = state.report_uri(&entry.session, &entry.id);
    let (outbox, show) = (state.outbox.clone(), state.features.show_document);
    let path = entry.session.store().run_dir(&entry.id).join("report.md");
    tokio::spawn(async move {
        let shown = match Url::parse(&document) {
            Ok(uri) if show => {
                outbox.show_document(lsp::ShowDocumentParams { uri, external: None, take_focus: Some(false), selection: None }).await
            }
            _ => false,
        };
        if !shown {
            outbox.show(lsp::MessageType::Info, format!("codeinterp: the report is {}", path.display()));
        }
    });
}

/// Cancels a run, or all. Returns the ids of those that were not over.
pub fn cancel(state: &State, run: Option<&str>) -> Vec<String> {
    let mut cancelled: Vec<String> = state.sessions.all().iter().flat_map(|session| session.cancel(run)).collect();
    cancelled.sort_unstable();
    cancelled
}

/// Asks the person in the editor before code runs.
pub struct AskPerson {
    /// Sends to the client.
    pub outbox: Outbox,
}

/// Lines of code that the question shows; the report shows all.
const SHOWN_LINES: usize = 25;

#[async_trait]
impl Approval for AskPerson {
    async fn approve(&self, step: u32, code: &str) -> bool {
        let mut shown: Vec<&str> = code.lines().take(SHOWN_LINES + 1).collect();
        if shown.len() > SHOWN_LINES {
            shown[SHOWN_LINES] = "…";
        }
        let text = format!("codeinterp: run step {step} in the sandbox?\n\n{}", escape::plain(&shown.join("\n")));
        self.outbox.ask(text, &["Run", "Stop"]).await.as_deref() == Some("Run")
    }
}
