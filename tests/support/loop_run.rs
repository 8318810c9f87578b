//! One run of the loop with a given model on the sandbox in memory, its events folded into a record.

use std::sync::Mutex;

use codeinterp::agent::Agent;
use codeinterp::agent::events::RunEvent;
use codeinterp::agent::ports::{Approval, Model};
use codeinterp::agent::run::Run;
use codeinterp::agent::task::{LoopSettings, Task};
use codeinterp::config::Settings;
use codeinterp::store::RunStore;
use codeinterp::store::runs::new_run_id;
use tokio_util::sync::CancellationToken;

use super::provider::Provider;
use super::sandbox::FakeSandbox;

/// What a run left.
pub struct Outcome {
    pub run: Run,
    pub events: Vec<RunEvent>,
    /// Codes that reached the sandbox.
    pub executed: Vec<String>,
}

impl Outcome {
    pub fn status(&self) -> &'static str {
        self.run.status.as_str()
    }

    pub fn answer(&self) -> &str {
        self.run.final_answer.as_deref().unwrap_or_default()
    }
}

/// Settings for a scripted provider.
pub fn settings(provider: &Provider) -> Settings {
    Settings { model: Some("scripted".to_owned()), endpoint: Some(provider.address.clone()), ..Settings::default() }
}

/// Runs a question.
pub async fn ask(settings: &Settings, question: &str) -> Outcome {
    run(settings, Task { question: question.to_owned(), ..Task::default() }, None, &CancellationToken::new()).await
}

/// Runs a task with the model that the settings name.
pub async fn run(settings: &Settings, task: Task, approval: Option<&dyn Approval>, cancel: &CancellationToken) -> Outcome {
    let model = codeinterp::llm::connect(settings).expect("a model");
    run_with(&*model, settings, task, approval, cancel, &|_| {}).await
}

/// Runs a task with this model; `watch` sees every event.
pub async fn run_with(
    model: &dyn Model,
    settings: &Settings,
    mut task: Task,
    approval: Option<&dyn Approval>,
    cancel: &CancellationToken,
    watch: &(dyn Fn(&RunEvent) + Send + Sync),
) -> Outcome {
    let state = tempfile::tempdir().expect("a temporary folder");
    let store = RunStore::of_folder(state.path(), state.path());
    task.run = new_run_id();
    let sandbox = FakeSandbox::default();
    let agent = Agent { sandbox: &sandbox, artifacts: &store, settings: LoopSettings::from(settings), approval };
    let events = Mutex::new(Vec::new());
    let sink = |event: RunEvent| {
        watch(&event);
        events.lock().unwrap().push(event);
    };
    agent.run(model, &task, &sink, cancel).await;
    let events = events.into_inner().unwrap();
    let mut run = Run { run: task.run.clone(), question: task.question.clone(), model: model.info().name, ..Run::default() };
    for event in &events {
        run.apply(event);
    }
    let conclusions = events.iter().filter(|event| matches!(event, RunEvent::Concluded { .. })).count();
    assert_eq!(conclusions, 1, "exactly one conclusion");
    assert!(matches!(events.last(), Some(RunEvent::Concluded { .. })), "the conclusion is the last event");
    let executed = sandbox.codes();
    Outcome { run, events, executed }
}
