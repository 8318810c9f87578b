//! Drives a run: asks the model, executes its code, feeds the outcome back, and says everything as events.

use tokio_util::sync::CancellationToken;

use super::conversation::TurnRequest;
use super::events::RunEvent;
use super::ports::{Approval, ArtifactStore, Model, ModelInfo, Sandbox, Sink};
use super::run::{ErrorKind, RunError, RunStatus, SandboxInfo};
use super::task::{LoopSettings, Task};

/// One workspace's loop: where code runs, where artifacts go, and by which bounds.
pub struct Agent<'a> {
    /// Where code runs.
    pub sandbox: &'a dyn Sandbox,
    /// Where artifacts are kept.
    pub artifacts: &'a dyn ArtifactStore,
    /// Bounds and protocol.
    pub settings: LoopSettings,
    /// Asked before code runs where `agent.confirm` is `always`.
    pub approval: Option<&'a dyn Approval>,
}

impl Agent<'_> {
    /// Runs the task to its conclusion. Emits exactly one [`RunEvent::Concluded`], as its last event.
    pub async fn run(&self, model: &dyn Model, task: &Task, events: Sink<'_, RunEvent>, cancel: &CancellationToken) {
        let _ = (model, task, cancel);
        self.conclude(events);
    }

    /// Executes `codes` in order without a model, stopping at the first error (status failed). Same events as [`Agent::run`].
    pub async fn execute(&self, task: &Task, codes: &[String], events: Sink<'_, RunEvent>, cancel: &CancellationToken) {
        let _ = (task, codes, cancel);
        self.conclude(events);
    }

    fn conclude(&self, events: Sink<'_, RunEvent>) {
        let error = RunError { kind: ErrorKind::Run, message: "The loop is not part of this build.".to_owned(), hint: String::new() };
        events(RunEvent::Concluded { status: RunStatus::Failed, final_answer: None, error: Some(error), messages: Vec::new() });
    }
}

/// The first request of a run, as [`Agent::run`] would send it; for `--dry-run`.
pub fn first_request(settings: &LoopSettings, model: &ModelInfo, sandbox: &SandboxInfo, task: &Task) -> TurnRequest {
    let _ = (settings, model, sandbox, task);
    TurnRequest { messages: Vec::new(), tools: Vec::new(), max_output_tokens: None }
}
