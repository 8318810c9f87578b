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
use super::state::State;
use crate::agent::events::RunEvent;
use crate::agent::ports::Approval;
use crate::agent::run::{Run, RunStatus};
use crate::report::escape;
use crate::session::{EventHandler, RunKind, RunRequest, Session};

/// Time between two refreshes of a report that grows.
const PACE: Duration = Duration::from_millis(200);

/// Runs that are remembered for hints; older ones are found by their session.
const MAX_RUNS: usize = 300;

/// A run of this connection.
pub struct RunEntry {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: Arc<Session>,
    /// The document that it is about.
    pub uri: Option<Url>,
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
    title: String,
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
}

/// Runs of this connection are numbered from here on.
const FIRST: u64 = 1 << 32;

impl Default for Runs {
    fn default() -> Self {
        Self { latest: FIRST, earliest: FIRST, entries: BTreeMap::new() }
    }
}

/// What is known of a run before it has an id.
pub struct NewRun {
    /// The document that it is about.
    pub uri: Option<Url>,
    /// Where its results stand.
    pub anchor: Anchor,
    /// It executes a person's code, without a model.
    pub code: bool,
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
        for entry in self.entries.values_mut().filter(|entry| entry.uri.as_ref() == Some(uri)) {
            entry.anchor.edited(shift);
        }
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
        anchor: new.anchor,
        status: RunStatus::Queued,
        step: 0,
        code: new.code,
        hidden: false,
        title: new.title,
        kept: None,
        progress: None,
        over,
    };
    tell(state, &entry);
    state.runs.insert(number, entry);
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
            anchor,
            status: record.status,
            step: record.total_steps,
            code,
            hidden,
            title: record.question.clone(),
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

/// A document was saved: with `live` on, its latest analysis of the whole file is run again, and so is every cell that
/// was run and has changed since.
pub fn saved(state: &mut State, uri: &Url) {
    if !state.settings.live {
        return;
    }
    let latest = state.runs.about(uri).find(|entry| entry.anchor.whole && !entry.hidden);
    if let Some(entry) = latest.filter(|entry| entry.status.is_final() && entry.anchor.stale) {
        let (session, title) = (Arc::clone(&entry.session), entry.title.clone());
        let kind = RunKind::Rerun { parent: entry.id.clone() };
        let anchor = Anchor { first: 0, last: 0, whole: true, stale: false };
        let new = NewRun { uri: Some(uri.clone()), anchor, code: false, title };
        super::commands::queue(state, session, RunRequest::new(kind, Vec::new()), new);
    }
    for (session, anchor, code, title) in changed_cells(state, uri) {
        let request = RunRequest::code(code, uri, anchor.first, anchor.last);
        super::commands::queue(state, session, request, NewRun { uri: Some(uri.clone()), anchor, code: true, title });
    }
}

/// Where a cell ran, its lines, its present code, and the title of its run.
type ChangedCell = (Arc<Session>, Anchor, String, String);

/// The latest run of each cell that has changed since, with the cell's present code, in the order of the document.
fn changed_cells(state: &State, uri: &Url) -> Vec<ChangedCell> {
    let Some(document) = state.documents.get(uri) else { return Vec::new() };
    let mut cells: BTreeMap<u32, Option<ChangedCell>> = BTreeMap::new();
    for entry in state.runs.about(uri).filter(|entry| entry.code && !entry.anchor.whole && !entry.hidden) {
        cells.entry(entry.anchor.line()).or_insert_with(|| {
            let lines = entry.anchor.first as usize..=entry.anchor.last as usize;
            let code: String = lines.flat_map(|line| [document.text.line(line), "\n"]).collect();
            let changed = entry.status.is_final() && entry.anchor.stale && !code.trim().is_empty();
            changed.then(|| (Arc::clone(&entry.session), Anchor { stale: false, ..entry.anchor }, code, entry.title.clone()))
        });
    }
    cells.into_values().flatten().collect()
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
