//! A run from its inputs to its conclusion: sandbox, files, profiles, the loop, the record on disk.

use std::sync::{Arc, Mutex};

use super::inputs::of_record;
use super::lock;
use super::prepare::{Prepared, prepare};
use super::request::{RunFile, RunKind};
use super::rerun::{Repetition, repeated};
use super::worker::{RunJob, Worker};
use super::workspace_sandbox::WorkspaceSandbox;
use crate::agent::Agent;
use crate::agent::changes::Changes;
use crate::agent::driver::Code;
use crate::agent::events::RunEvent;
use crate::agent::hints::Surroundings;
use crate::agent::history::{Present, history};
use crate::agent::ports::{ArtifactStore, FileSource, Sandbox};
use crate::agent::run::{ErrorKind, Run, RunError, RunStatus};
use crate::agent::task::{LoopSettings, Task, TaskSelection};
use crate::profile::ProfileOutcome;
use crate::report;

/// The profiler's word for a file without any byte.
const EMPTY: &str = "empty";

/// Runs of a chain of follow-ups that a model is told of: the last ones.
const MAX_EARLIER: usize = 10;

/// Largest input that is kept with a record, in bytes.
const MAX_KEPT_INPUT: usize = 8 << 20;

/// A conclusion without an answer.
pub(super) fn failed(kind: ErrorKind, message: &str, hint: &str) -> RunEvent {
    conclusion(RunStatus::Failed, Some(RunError::new(kind, message, hint)))
}

fn conclusion(status: RunStatus, error: Option<RunError>) -> RunEvent {
    RunEvent::Concluded { status, final_answer: None, error, messages: Vec::new() }
}

/// Performs a run. The handler sees its conclusion only after record and report are on disk.
pub(super) async fn perform(worker: &mut Worker, job: &RunJob) {
    let concluded: Mutex<Option<RunEvent>> = Mutex::new(None);
    let sink = |event: RunEvent| {
        if matches!(event, RunEvent::Concluded { .. }) {
            lock(&concluded).get_or_insert(event);
        } else {
            job.live.apply(&event);
            (job.events)(&event);
        }
    };
    let outcome = if job.live.cancel.is_cancelled() { Err(None) } else { attempt(worker, job, &sink).await };
    let event = match outcome {
        Ok(()) => lock(&concluded)
            .take()
            .unwrap_or_else(|| failed(ErrorKind::Run, "the run ended without a conclusion", "Please report it; then ask again.")),
        Err(Some(error)) if !job.live.cancel.is_cancelled() => conclusion(RunStatus::Failed, Some(error)),
        Err(_) => conclusion(RunStatus::Cancelled, None),
    };
    conclude(worker, job, &event).await;
}

/// Saves record and report, then tells.
async fn conclude(worker: &Worker, job: &RunJob, event: &RunEvent) {
    let mut record = Run::clone(&job.live.snapshot());
    record.apply(event);
    let markdown = report::markdown(&record, &report::ReportOptions::default());
    let saved = match worker.store.save_report(&record.run, markdown).await {
        Ok(_) => worker.store.save_run(&record).await,
        Err(error) => Err(error),
    };
    if let Err(error) = saved {
        let event = RunEvent::Notice(format!("The run could not be kept: {error}"));
        job.live.apply(&event);
        (job.events)(&event);
    }
    job.live.apply(event);
    (job.events)(event);
}

/// Everything up to the loop's own conclusion. `Err(None)`: cancelled.
async fn attempt(worker: &mut Worker, job: &RunJob, sink: &(dyn Fn(RunEvent) + Send + Sync)) -> Result<(), Option<RunError>> {
    let cancel = &job.live.cancel;
    sink(RunEvent::Status(RunStatus::Running));
    let parent = match job.request.parent() {
        Some(id) => Some(load_parent(worker, id)?),
        None => None,
    };
    let is_rerun = matches!(job.request.kind, RunKind::Rerun { .. });
    let parent = if is_rerun { parent.map(|parent| repeated(&worker.store, parent)) } else { parent };
    if let Some(parent) = &parent {
        // Follow-ups and reruns belong to the document of their parent.
        job.live.change(|run| {
            run.uri = run.uri.take().or_else(|| parent.uri.clone());
            run.selection = run.selection.take().or_else(|| parent.selection.clone());
            if is_rerun {
                run.question.clone_from(&parent.question);
                // From the beginning, so that it is known for a rerun however it ends.
                run.changes = Some(Changes::between(parent, run, &[]));
            }
        });
    }
    let uses_model = matches!(job.request.kind, RunKind::Ask { .. } | RunKind::FollowUp { .. });
    let model = if uses_model { Some(worker.services.model(&job.settings).map_err(|error| RunError::from(&error))?) } else { None };
    let settings = LoopSettings::from(&job.settings);
    job.live.change(|run| {
        run.model = model.as_ref().map_or_else(|| "none".to_owned(), |model| model.info().name);
        // The code of a rerun is its parent's.
        run.privacy = match &model {
            Some(model) => Some(settings.seen_by(&model.info())),
            None => parent.as_ref().and_then(|parent| parent.privacy),
        };
    });
    // The record is on disk from here on, so that a crash loses nothing that was asked.
    worker.store.save_run(&job.live.snapshot()).await.map_err(|error| RunError::from(&error))?;

    let repetition = match &parent {
        Some(parent) if is_rerun => Some(Repetition::of(&earlier(worker, parent))),
        _ => None,
    };
    if repetition.as_ref().is_some_and(|repetition| repetition.codes.is_empty()) {
        let error =
            RunError::new(ErrorKind::Usage, "that run executed no code, so there is nothing to run again", "Ask the question again.");
        return Err(Some(error));
    }
    let files = files_of(worker, job, parent.as_deref());
    keep_inputs(worker, &job.live.snapshot().run, &files).await?;
    let Prepared { sandbox, files: put, profiles } = prepare(worker, &job.settings, &files, sink, cancel).await?;
    if let (RunKind::Ask { .. }, Some(model)) = (&job.request.kind, &model) {
        readable(&profiles, model.info().language_model)?;
    }

    let remarks = remarks(worker, job, parent.as_deref(), &sandbox, sink);
    let history = match (&job.request.kind, &parent, &model) {
        (RunKind::FollowUp { .. }, Some(parent), Some(model)) => {
            let surroundings = Surroundings { files: &put, profiles: &profiles, workdir: &sandbox.info().workdir };
            let present = Present { privacy: settings.seen_by(&model.info()), surroundings };
            history(earlier(worker, parent).iter().map(Arc::as_ref), &present)
        }
        _ => Vec::new(),
    };
    let task = Task {
        run: job.live.snapshot().run.clone(),
        question: job.request.question().to_owned(),
        files: put,
        profiles,
        selection: job.request.selection.as_ref().map(|selection| TaskSelection {
            file: selection.file.clone(),
            place: selection.place.clone(),
            header_added: selection.header_added,
        }),
        history,
        remarks,
    };
    let agent = Agent { sandbox: &*sandbox, artifacts: &worker.store, settings, approval: job.request.approval.as_deref() };
    match (&job.request.kind, model) {
        (RunKind::Ask { .. } | RunKind::FollowUp { .. }, Some(model)) => agent.run(&*model, &task, sink, cancel).await,
        (RunKind::Code { code }, _) => agent.execute(&task, &[Code::new(code)], sink, cancel).await,
        (RunKind::Rerun { .. }, _) => {
            let (Some(parent), Some(repetition)) = (&parent, repetition) else { return Ok(()) };
            agent.execute(&task, &repetition.codes, sink, cancel).await;
            job.live.change(|run| run.changes = Some(Changes::between(parent, run, &repetition.steps)));
        }
        (RunKind::Ask { .. } | RunKind::FollowUp { .. }, None) => {}
    }
    worker.kernels.insert(task.run, sandbox.kernel_number());
    Ok(())
}

/// Refuses a run that has nothing to look at: no file holds anything or, without a language model, none can be read.
/// (A language model can look at the bytes of a file of an unknown kind.)
fn readable(profiles: &[ProfileOutcome], language_model: bool) -> Result<(), RunError> {
    let mut refusals = Vec::with_capacity(profiles.len());
    for outcome in profiles {
        match outcome {
            ProfileOutcome::Failed { error, .. } if !language_model || error.kind == EMPTY => refusals.push(error),
            ProfileOutcome::Failed { .. } | ProfileOutcome::Profile(_) => return Ok(()),
        }
    }
    let Some(first) = refusals.first() else { return Ok(()) };
    let messages: Vec<&str> = refusals.iter().map(|error| error.message.as_str()).collect();
    Err(RunError::new(ErrorKind::Input, messages.join("; "), first.hint.clone()))
}

fn load_parent(worker: &Worker, id: &str) -> Result<Arc<Run>, RunError> {
    worker
        .store
        .load(id)
        .map(Arc::new)
        .map_err(|_| RunError::new(ErrorKind::Usage, format!("there is no run {id}"), "`codeinterp runs list` names the runs."))
}

/// The request's own files, and those of the parent where it goes on from one.
fn files_of(worker: &Worker, job: &RunJob, parent: Option<&Run>) -> Vec<RunFile> {
    let mut files = job.request.files.clone();
    for file in parent.iter().flat_map(|parent| of_record(&worker.store, parent)) {
        if !files.iter().any(|own| own.name == file.name) {
            files.push(file);
        }
    }
    files
}

/// Keeps what was put in from memory (selected lines, a document that was not saved) beside the record: follow-ups,
/// reruns and exports need it, and it stands nowhere else.
async fn keep_inputs(worker: &Worker, run: &str, files: &[RunFile]) -> Result<(), RunError> {
    for (place, file) in files.iter().enumerate() {
        let data: std::borrow::Cow<'_, [u8]> = match &file.source {
            FileSource::Bytes(data) => data.as_ref().into(),
            // One that an earlier run kept.
            FileSource::Path(path) if path.to_string_lossy() != file.origin => std::fs::read(path).unwrap_or_default().into(),
            FileSource::Path(_) => continue,
        };
        if data.len() <= MAX_KEPT_INPUT {
            worker.store.save_input(run, place, &data).await.map_err(|error| RunError::from(&error))?;
        }
    }
    Ok(())
}

/// The runs that a follow-up goes on from, oldest first. A rerun stands for the run that it repeats.
fn earlier(worker: &Worker, parent: &Arc<Run>) -> Vec<Arc<Run>> {
    let mut runs = vec![Arc::clone(parent)];
    while let Some(first) = runs.last().filter(|first| first.changes.is_none() && runs.len() < MAX_EARLIER) {
        // One that was deleted meanwhile is where the history begins.
        let Some(Ok(run)) = first.parent.as_deref().map(|id| worker.store.load(id)) else { break };
        runs.push(Arc::new(run));
    }
    runs.reverse();
    runs
}

/// What a follow-up's model must know: are the variables still there?
fn remarks(
    worker: &Worker,
    job: &RunJob,
    parent: Option<&Run>,
    sandbox: &WorkspaceSandbox,
    sink: &(dyn Fn(RunEvent) + Send + Sync),
) -> Vec<String> {
    let (RunKind::FollowUp { .. }, Some(parent)) = (&job.request.kind, parent) else { return Vec::new() };
    if worker.kernels.get(&parent.run) == Some(&sandbox.kernel_number()) {
        return Vec::new();
    }
    sink(RunEvent::Notice("The variables of the earlier run are gone; its code can be run again.".to_owned()));
    vec!["The kernel was replaced since the last question: no variable of it exists any more. Load what you need again.".to_owned()]
}
