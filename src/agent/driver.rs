//! Drives a run: performs the effects of the state machine and says everything as events.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::conversation::{Message, TurnDelta, TurnRequest};
use super::events::RunEvent;
use super::execution::{Execution, ExecutionError};
use super::machine::{Conclusion, Effect, Executed, Input, Machine};
use super::ports::{Approval, ArtifactStore, EDITOR, ExecuteOptions, Model, ModelError, ModelInfo, Sandbox, SandboxError, Sink};
use super::record::Recorder;
use super::run::{ErrorKind, LedgerEntry, RunError, RunStatus};
use super::task::{LoopSettings, Task};
use super::words::Words;
use crate::config::Confirm;
use crate::config::PrivacySend;
use crate::profile::Language;

/// Time that a model has to end a turn that was cancelled.
const GOODBYE: Duration = Duration::from_secs(1);

/// Sandbox failures in a row after which a run gives up.
const MAX_SANDBOX_DEATHS: u32 = 2;

/// Code that is executed without a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The code.
    pub code: String,
    /// What follows it runs also where it fails.
    pub may_fail: bool,
}

impl Code {
    /// Code whose failure is the end.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), may_fail: false }
    }
}

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
        let info = model.info();
        let sandbox = self.sandbox.info();
        let started = Instant::now();
        let mut recorder = self.recorder(task, info.vision);
        let mut deaths = 0;
        let mut turn = 0;
        announce(&info, self.settings.privacy, Language::of(&task.question), events);
        let mut machine = Machine::new(&self.settings, info.clone(), &sandbox, task);
        let mut effect = machine.start();
        let conclusion = loop {
            for notice in machine.take_notices() {
                events(RunEvent::Notice(notice));
            }
            if cancel.is_cancelled() && !matches!(effect, Effect::Conclude(_)) {
                effect = machine.next(Input::Cancelled, started.elapsed());
            }
            let input = match effect {
                Effect::Conclude(conclusion) => break conclusion,
                Effect::Ask(request) => {
                    turn += 1;
                    events(RunEvent::TurnStarted(turn));
                    let left = machine.time_left(started.elapsed());
                    ask(model, &info, &request, left, events, cancel).await
                }
                Effect::Execute { step, code, note } => {
                    if self.declined(step, &code, cancel).await {
                        Input::Declined
                    } else {
                        let timeout = self.timeout(machine.time_left(started.elapsed()));
                        self.step(&mut recorder, &mut deaths, step, &code, &note, timeout, events, cancel).await
                    }
                }
            };
            effect = machine.next(input, started.elapsed());
        };
        conclude(conclusion, machine.into_messages(), events);
    }

    /// Executes `codes` in order without a model, stopping at the first error of code that must not fail (status failed).
    /// Same events as [`Agent::run`].
    pub async fn execute(&self, task: &Task, codes: &[Code], events: Sink<'_, RunEvent>, cancel: &CancellationToken) {
        let words = Words(Language::of(&task.question));
        let mut recorder = self.recorder(task, false);
        let mut deaths = MAX_SANDBOX_DEATHS - 1;
        let mut conclusion = Conclusion { status: RunStatus::Completed, final_answer: None, error: None };
        for (Code { code, may_fail }, step) in codes.iter().zip(1..) {
            if cancel.is_cancelled() {
                conclusion.status = RunStatus::Cancelled;
                break;
            }
            let input = self.step(&mut recorder, &mut deaths, step, code, "", self.timeout(None), events, cancel).await;
            match input {
                Input::Executed(executed) if !may_fail && (executed.step.exit_code != 0 || executed.step.error.is_some()) => {
                    let what = executed.step.error.as_ref().map_or_else(
                        || format!("exit code {}", executed.step.exit_code),
                        |error| format!("{}: {}", error.ename, error.evalue),
                    );
                    let error = RunError::new(ErrorKind::Run, words.code_failed(step, &what), "");
                    conclusion = Conclusion { status: RunStatus::Failed, final_answer: None, error: Some(error) };
                }
                Input::Executed(_) => continue,
                Input::SandboxFailed(error) if error != SandboxError::Cancelled => {
                    conclusion = Conclusion { status: RunStatus::Failed, final_answer: None, error: Some(RunError::from(&error)) };
                }
                _ => conclusion.status = RunStatus::Cancelled,
            }
            break;
        }
        conclude(conclusion, Vec::new(), events);
    }

    fn recorder<'b>(&'b self, task: &'b Task, vision: bool) -> Recorder<'b> {
        Recorder { sandbox: self.sandbox, artifacts: self.artifacts, task, charts: 0, vision }
    }

    fn timeout(&self, left: Option<Duration>) -> Duration {
        let timeout = Duration::from_secs(self.settings.timeout_seconds.max(1));
        // A moment is left even at the very end, so that a step never times out before it starts.
        left.map_or(timeout, |left| timeout.min(left.max(Duration::from_secs(1))))
    }

    /// Whether the person was asked and did not agree. Nobody there to be asked counts as no.
    async fn declined(&self, step: u32, code: &str, cancel: &CancellationToken) -> bool {
        if self.settings.agent.confirm == Confirm::Never {
            return false;
        }
        let Some(approval) = self.approval else { return true };
        tokio::select! {
            agreed = approval.approve(step, code) => !agreed,
            () = cancel.cancelled() => true,
        }
    }

    /// Executes and records one step.
    #[expect(clippy::too_many_arguments, reason = "one step's circumstances, for two callers")]
    async fn step(
        &self,
        recorder: &mut Recorder<'_>,
        deaths: &mut u32,
        step: u32,
        code: &str,
        note: &str,
        timeout: Duration,
        events: Sink<'_, RunEvent>,
        cancel: &CancellationToken,
    ) -> Input {
        events(RunEvent::StepStarted { step, code: code.to_owned(), note: note.to_owned() });
        let agent = &self.settings.agent;
        let options = ExecuteOptions { timeout, stdout_bytes: agent.stdout_bytes, stderr_bytes: agent.stderr_bytes };
        let began = Instant::now();
        let outcome = self.sandbox.execute(code, &options, &|event| events(RunEvent::StepEvent(event)), cancel).await;
        let execution = match outcome {
            Ok(execution) => {
                *deaths = 0;
                execution
            }
            Err(error) => {
                *deaths += 1;
                let lost = matches!(error, SandboxError::Gone(_)) && *deaths < MAX_SANDBOX_DEATHS && !cancel.is_cancelled();
                let execution = died(&error, began.elapsed());
                if !lost {
                    let (record, _) = recorder.record(step, code, note, execution, events).await;
                    events(RunEvent::StepFinished(Box::new(record)));
                    return Input::SandboxFailed(if cancel.is_cancelled() { SandboxError::Cancelled } else { error });
                }
                execution
            }
        };
        let variables_lost = execution.variables_lost;
        let (record, images) = recorder.record(step, code, note, execution, events).await;
        events(RunEvent::StepFinished(Box::new(record.clone())));
        if cancel.is_cancelled() {
            return Input::Cancelled;
        }
        Input::Executed(Box::new(Executed { step: record, images, variables_lost }))
    }
}

/// What is recorded of an execution during which the sandbox itself failed.
fn died(error: &SandboxError, duration: Duration) -> Execution {
    let message = error.to_string();
    Execution {
        exit_code: if *error == SandboxError::Cancelled { 130 } else { 137 },
        error: Some(ExecutionError {
            ename: if *error == SandboxError::Cancelled { "Interrupted" } else { "KernelDied" }.to_owned(),
            evalue: message.clone(),
            traceback: message,
        }),
        outputs: Vec::new(),
        stdout: String::new(),
        stderr: String::new(),
        result: None,
        duration,
        truncated: None,
        files: Vec::new(),
        skipped_files: Vec::new(),
        variables: Vec::new(),
        figures: Vec::new(),
        variables_lost: true,
    }
}

/// One turn, in the time that is left.
async fn ask(
    model: &dyn Model,
    info: &ModelInfo,
    request: &TurnRequest,
    left: Option<Duration>,
    events: Sink<'_, RunEvent>,
    cancel: &CancellationToken,
) -> Input {
    if let Some(destination) = &info.destination {
        events(RunEvent::Sent(ledger_entry(destination, info, request)));
    }
    let deltas = |delta| match delta {
        TurnDelta::Text(text) => events(RunEvent::ModelText(text)),
        TurnDelta::Reasoning(text) => events(RunEvent::ModelReasoning(text)),
        TurnDelta::Notice(text) => events(RunEvent::Notice(text)),
    };
    // A token of its own: the turn ends with the run, and when its time is up.
    let own = cancel.child_token();
    let turn = model.turn(request, &deltas, &own);
    tokio::pin!(turn);
    let outcome = if let Some(left) = left {
        if let Ok(outcome) = tokio::time::timeout(left, &mut turn).await {
            outcome
        } else {
            own.cancel();
            // The model says goodbye to whoever it asked; one that does not is dropped.
            match tokio::time::timeout(GOODBYE, turn).await {
                Ok(Ok(turn)) => Ok(turn),
                _ if cancel.is_cancelled() => Err(ModelError::Cancelled),
                _ => return Input::OutOfTime,
            }
        }
    } else {
        turn.await
    };
    match outcome {
        Ok(turn) => {
            events(RunEvent::Usage(turn.usage));
            Input::Turn(turn)
        }
        Err(error) => Input::TurnFailed(error),
    }
}

/// What a request holds, for the record of what left the machine.
fn ledger_entry(destination: &str, info: &ModelInfo, request: &TurnRequest) -> LedgerEntry {
    let holds = |mark: &str| request.messages.iter().any(|message| message.content.contains(mark));
    let mut contents = Vec::new();
    if holds("<data kind=\"profile\"") {
        contents.push("profiles");
    }
    if holds("\nFirst rows:\n") || holds("\n前几行：\n") {
        contents.push("sample rows");
    }
    if ["stdout", "stderr", "result", "display", "html", "error", "figure", "answer"]
        .iter()
        .any(|kind| holds(&format!("<data kind=\"{kind}\"")))
    {
        contents.push("outputs");
    }
    if request.messages.iter().any(|message| !message.images.is_empty()) {
        contents.push("pictures");
    }
    let bytes = |message: &Message| {
        let calls: usize = message.tool_calls.iter().map(|call| call.arguments.to_string().len()).sum();
        let images: usize = message.images.iter().map(|image| image.data.len()).sum();
        message.content.len() + calls + images
    };
    LedgerEntry {
        at: jiff::Timestamp::now().to_string(),
        destination: destination.to_owned(),
        model: info.name.clone(),
        bytes: request.messages.iter().map(bytes).sum::<usize>() as u64,
        contents: contents.into_iter().map(str::to_owned).collect(),
    }
}

/// Says which remote model is asked, and what will leave the machine, before it does.
fn announce(info: &ModelInfo, privacy: PrivacySend, language: Language, events: Sink<'_, RunEvent>) {
    let Some(destination) = &info.destination else { return };
    let (english, chinese) = match privacy {
        PrivacySend::Schema => ("names and types of columns", "列名与类型"),
        PrivacySend::Sample => ("profiles, a few rows and what the code prints", "数据概况、少量样本行以及代码的输出"),
        PrivacySend::Full => ("profiles, rows and everything that the code prints", "数据概况、数据行以及代码的全部输出"),
    };
    let notice = match language {
        Language::English if destination == EDITOR => {
            format!("Model: the editor's own. Sent there: the question, {english} (privacy.send).")
        }
        Language::Chinese if destination == EDITOR => format!("模型：编辑器自带的模型。将发送：问题、{chinese}（privacy.send）。"),
        Language::English => format!("Model: {} at {destination}. Sent there: the question, {english} (privacy.send).", info.name),
        Language::Chinese => format!("模型：{}，位于 {destination}。将发送：问题、{chinese}（privacy.send）。", info.name),
    };
    events(RunEvent::Notice(notice));
}

fn conclude(conclusion: Conclusion, messages: Vec<Message>, events: Sink<'_, RunEvent>) {
    let Conclusion { status, final_answer, error } = conclusion;
    let mut messages = messages;
    if let Some(answer) = &final_answer {
        // The last message may hold less or more than the answer: a draft that stood, code that was left out.
        let told = messages.last().is_some_and(|last| last.content == *answer);
        if !told && !messages.is_empty() {
            messages.push(Message::text(super::conversation::Role::Assistant, answer.clone()));
        }
    }
    events(RunEvent::Concluded { status, final_answer, error, messages });
}
