//! What happens in a run, as it happens. Folding the events of a run with [`Run::apply`] gives its record at any
//! time, so a growing report and the finished one come from the same place.

use super::conversation::{Message, Usage};
use super::execution::{ExecutionEvent, Output, StreamName};
use super::ports::Progress;
use super::run::{Artifact, InputFile, LedgerEntry, Run, RunError, RunStatus, SandboxInfo, Step};
use crate::profile::ProfileOutcome;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// The run is in this state now. Final states come only by [`RunEvent::Concluded`].
    Status(RunStatus),
    /// Long work outside of the model: provisioning, starting, copying, profiling.
    Progress(Progress),
    /// A sentence that the person should read; part of the record.
    Notice(String),
    /// The sandbox is ready.
    Sandbox(SandboxInfo),
    /// A file was put into the sandbox.
    Input(InputFile),
    /// The profiles of all inputs.
    Profiles(Vec<ProfileOutcome>),
    /// The model is asked for a turn (counted from 1).
    TurnStarted(u32),
    /// The model said more, for showing only.
    ModelText(String),
    /// The model reasoned, for showing only.
    ModelReasoning(String),
    /// Tokens were used by a turn.
    Usage(Usage),
    /// Something was sent to a model.
    Sent(LedgerEntry),
    /// Code is being executed.
    StepStarted {
        /// Number of the step, from 1.
        step: u32,
        /// The whole code.
        code: String,
        /// What the model said around it.
        note: String,
    },
    /// The running step did something.
    StepEvent(ExecutionEvent),
    /// An artifact was saved.
    Artifact(Artifact),
    /// The step is done.
    StepFinished(Box<Step>),
    /// The run's end.
    Concluded {
        /// A final status.
        status: RunStatus,
        /// The conclusion.
        final_answer: Option<String>,
        /// Why it failed.
        error: Option<RunError>,
        /// The whole conversation as the model had it.
        messages: Vec<Message>,
    },
}

/// Bytes of a running step's streams that a growing report shows at most; the finished step has its own bound.
const LIVE_STREAM_BYTES: usize = 16 * 1024;

/// Adds as much of `text` as there is room for.
fn push_within(all: &mut String, text: &str, bytes: usize) {
    let mut end = text.len().min(bytes.saturating_sub(all.len()));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    all.push_str(&text[..end]);
}

impl Run {
    /// Takes the event into the record.
    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Status(status) => self.status = *status,
            RunEvent::Notice(notice) => self.notices.push(notice.clone()),
            RunEvent::Sandbox(info) => self.sandbox = info.clone(),
            RunEvent::Input(input) => self.inputs.push(input.clone()),
            RunEvent::Profiles(profiles) => self.files.clone_from(profiles),
            RunEvent::Usage(usage) => self.usage += *usage,
            RunEvent::Sent(entry) => self.ledger.push(entry.clone()),
            RunEvent::StepStarted { step, code, note } => {
                self.saying.clear();
                self.steps.push(Step { step: *step, code: code.clone(), note: note.clone(), ..Step::default() });
                self.total_steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
            }
            RunEvent::StepEvent(event) => self.apply_live(event),
            RunEvent::Artifact(artifact) => {
                if !self.artifacts.contains(artifact) {
                    self.artifacts.push(artifact.clone());
                }
            }
            RunEvent::StepFinished(step) => {
                if self.steps.last().is_some_and(|last| last.step == step.step) {
                    self.steps.pop();
                }
                self.steps.push((**step).clone());
                self.total_steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
            }
            RunEvent::Concluded { status, final_answer, error, messages } => {
                self.status = *status;
                self.saying.clear();
                self.final_answer.clone_from(final_answer);
                self.error.clone_from(error);
                self.messages.clone_from(messages);
            }
            RunEvent::TurnStarted(_) => self.saying.clear(),
            RunEvent::ModelText(text) => push_within(&mut self.saying, text, LIVE_STREAM_BYTES),
            RunEvent::Progress(_) | RunEvent::ModelReasoning(_) => {}
        }
    }

    /// Shows what the running step wrote so far. Replaced as a whole by the finished step.
    fn apply_live(&mut self, event: &ExecutionEvent) {
        let Some(step) = self.steps.last_mut() else { return };
        match event {
            ExecutionEvent::Stream(name, text) => {
                let stream = if *name == StreamName::Stdout { &mut step.stdout } else { &mut step.stderr };
                push_within(stream, text, LIVE_STREAM_BYTES);
            }
            ExecutionEvent::Clear => {
                step.stdout.clear();
                step.stderr.clear();
            }
            ExecutionEvent::Output(Output::ExecuteResult { data }) => {
                step.result = data.get("text/plain").and_then(|value| value.as_str()).map(str::to_owned);
            }
            ExecutionEvent::Notice(notice) => step.notices.push(notice.clone()),
            ExecutionEvent::Output(_) | ExecutionEvent::Update(..) => {}
        }
    }
}
