//! The loop as a state machine: inputs go in (a turn, an execution, a failure), the next effect comes out (ask,
//! execute, conclude). It performs nothing itself, so every rule of the loop can be tested without a model or sandbox.

use std::collections::VecDeque;
use std::time::Duration;

use super::budget::{Budget, Cap};
use super::conversation::{FinishReason, ImagePart, Message, Role, Turn, TurnRequest};
pub use super::effects::{Conclusion, Effect, Executed, Input};
use super::evidence;
use super::feedback::{Style, feedback};
use super::hints::Surroundings;
use super::parse::{Parsed, parse};
use super::ports::{ModelError, ModelInfo, SandboxError};
use super::prompt::{self, offers_tools, python_tool};
use super::run::{ErrorKind, RunError, RunStatus, SandboxInfo, Step};
use super::task::{LoopSettings, Task};
use super::transcript::{self, Room};
use super::words::Words;
use crate::config::{PrivacySend, Protocol};
use crate::profile::Language;

/// Code that waits to be executed.
#[derive(Debug)]
struct Pending {
    /// The tool call that asks for it.
    call: Option<String>,
    code: String,
}

/// What is said or done once only in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Once {
    AskForPython,
    AskForWords,
    AskForWholeFence,
    CheckNumbers,
    AskAgain,
}

/// The loop's state.
#[derive(Debug)]
pub struct Machine<'a> {
    settings: &'a LoopSettings,
    model: ModelInfo,
    sandbox: &'a SandboxInfo,
    task: &'a Task,
    words: Words,
    messages: Vec<Message>,
    tools: bool,
    budget: Budget,
    steps: Vec<Step>,
    queue: VecDeque<Pending>,
    note: String,
    done: Vec<Once>,
    forced: Option<Cap>,
    /// An answer that stands unless its check brings a better one.
    draft: Option<String>,
    declined: u32,
    /// How much of the outputs is sent.
    room: Room,
    notices: Vec<String>,
}

impl<'a> Machine<'a> {
    /// The state before the first turn.
    pub fn new(settings: &'a LoopSettings, model: ModelInfo, sandbox: &'a SandboxInfo, task: &'a Task) -> Self {
        let tools = offers_tools(settings, &model);
        Self {
            messages: prompt::opening(settings, sandbox, task, tools),
            words: Words(Language::of(&task.question)),
            budget: Budget::new(&settings.agent),
            settings,
            model,
            sandbox,
            task,
            tools,
            steps: Vec::new(),
            queue: VecDeque::new(),
            note: String::new(),
            done: Vec::new(),
            forced: None,
            draft: None,
            declined: 0,
            room: Room::Window,
            notices: Vec::new(),
        }
    }

    /// The first effect.
    pub fn start(&mut self) -> Effect {
        self.proceed(Duration::ZERO)
    }

    /// The whole conversation.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// Sentences for the person since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Time that is left for an execution or a turn; the conclusion's turn gets some of its own.
    pub fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        let left = self.budget.time_left(elapsed)?;
        Some(if self.forced.is_some() { left + self.budget.time_to_conclude() } else { left })
    }

    /// Takes an input in and says what is to be done. `elapsed` is since the run's start.
    pub fn next(&mut self, input: Input, elapsed: Duration) -> Effect {
        match input {
            Input::Turn(turn) => self.turn(&turn, elapsed),
            Input::TurnFailed(error) => self.turn_failed(&error, elapsed),
            Input::OutOfTime => self.out_of_time(elapsed),
            Input::Executed(executed) => self.executed(*executed, elapsed),
            Input::Declined => self.was_declined(elapsed),
            Input::SandboxFailed(SandboxError::Cancelled) | Input::Cancelled => Effect::Conclude(cancelled()),
            Input::SandboxFailed(error) => Effect::Conclude(failed(RunError::from(&error))),
        }
    }

    // ── asking ───────────────────────────────────────────────────────────────────────────────────────────────

    /// Executes what waits, forces the conclusion where a cap is reached, else asks for the next turn.
    fn proceed(&mut self, elapsed: Duration) -> Effect {
        if let Some(pending) = self.queue.front() {
            return Effect::Execute { step: self.budget.steps + 1, code: pending.code.clone(), note: std::mem::take(&mut self.note) };
        }
        if self.forced.is_none()
            && let Some(cap) = self.budget.cap(elapsed)
        {
            self.force(cap);
        }
        self.ask()
    }

    /// From here on, only a conclusion is asked for.
    fn force(&mut self, cap: Cap) {
        self.forced = Some(cap);
        self.notices.push(cap.sentence(self.words.0));
        self.tell(self.words.conclude_now().to_owned());
        // Some providers refuse calls in the history where no tools are offered.
        self.messages = transcript::without_tools(std::mem::take(&mut self.messages));
    }

    fn ask(&mut self) -> Effect {
        self.budget.turns += 1;
        Effect::Ask(TurnRequest {
            messages: self.outgoing(),
            tools: if self.tools && self.forced.is_none() { vec![python_tool(self.words.0)] } else { Vec::new() },
            max_output_tokens: None,
        })
    }

    /// The conversation as it is sent.
    fn outgoing(&self) -> Vec<Message> {
        transcript::fitted(&self.messages, self.model.context_tokens, self.room, self.words)
    }

    /// Sends less of the outputs from now on; `false` where there is nothing more to leave out.
    fn shorten(&mut self) -> bool {
        let before = self.outgoing();
        while let Some(less) = self.room.less() {
            self.room = less;
            if self.outgoing() != before {
                return true;
            }
        }
        false
    }

    /// Says something to the model as the person's side. Turns of the same side are joined: some models want them to alternate.
    fn tell(&mut self, text: String) {
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User => {
                last.content.push_str("\n\n");
                last.content.push_str(&text);
            }
            _ => self.messages.push(Message::text(Role::User, text)),
        }
    }

    // ── turns ────────────────────────────────────────────────────────────────────────────────────────────────

    fn turn(&mut self, turn: &Turn, elapsed: Duration) -> Effect {
        self.budget.usage += turn.usage;
        self.notice_a_silent_cut(turn.usage.input_tokens);
        let parsed = parse(&turn.text);
        if turn.finish == FinishReason::ContentFilter {
            return match self.draft.take() {
                Some(draft) => self.conclude(draft),
                None => Effect::Conclude(failed(RunError::new(ErrorKind::Run, self.words.filtered(), self.words.filtered_hint()))),
            };
        }
        let cut = turn.finish == FinishReason::Length;
        self.remember(turn, &parsed, cut);
        if self.forced.is_some() {
            return self.forced_conclusion(&parsed);
        }
        if cut {
            // Half a call or fence is never run, and half an answer is no answer.
            self.tell(self.words.cut_by_length().to_owned());
            return self.proceed(elapsed);
        }
        parsed.prose.clone_into(&mut self.note);
        if !turn.tool_calls.is_empty() {
            self.take_calls(turn);
            return self.proceed(elapsed);
        }
        if !parsed.python.is_empty() {
            self.queue.extend(parsed.python.iter().map(|code| Pending { call: None, code: code.clone() }));
            return self.proceed(elapsed);
        }
        if parsed.unclosed && !self.done.contains(&Once::AskForWholeFence) {
            self.done.push(Once::AskForWholeFence);
            self.tell(self.words.fence_not_closed().to_owned());
            return self.proceed(elapsed);
        }
        if let Some(language) = parsed.other_language.as_deref().filter(|_| !self.done.contains(&Once::AskForPython)) {
            self.done.push(Once::AskForPython);
            self.tell(self.words.only_python(language));
            return self.proceed(elapsed);
        }
        self.answered(&parsed, elapsed)
    }

    /// Servers with a small window leave out the beginning of a long conversation without a word (Ollama's default): the
    /// count of tokens that they read tells. From then on the conversation is kept that short.
    fn notice_a_silent_cut(&mut self, read: u64) {
        if let Some(sent) = transcript::cut_in_silence(&self.messages, read, self.model.context_tokens) {
            self.model.context_tokens = Some(read);
            self.notices.push(self.words.cut_in_silence(read, sent));
        }
    }

    /// Puts the turn into the conversation, without what must not come back to the model.
    fn remember(&mut self, turn: &Turn, parsed: &Parsed, cut: bool) {
        let calls = if cut || self.forced.is_some() { Vec::new() } else { turn.tool_calls.clone() };
        if parsed.visible.is_empty() && calls.is_empty() {
            return;
        }
        let mut message = Message::text(Role::Assistant, parsed.visible.clone());
        message.tool_calls = calls;
        message.reasoning.clone_from(&turn.reasoning);
        self.messages.push(message);
    }

    /// Queues the calls of the tool; calls that can't be understood are answered at once.
    fn take_calls(&mut self, turn: &Turn) {
        for call in &turn.tool_calls {
            match transcript::code_of(call) {
                Ok(code) => self.queue.push_back(Pending { call: Some(call.id.clone()), code }),
                Err(fault) => {
                    let answer = self.words.bad_call(fault);
                    self.answer_call(&call.id, answer);
                }
            }
        }
    }

    fn answer_call(&mut self, id: &str, text: String) {
        let mut message = Message::text(Role::Tool, text);
        message.tool_call_id = Some(id.to_owned());
        self.messages.push(message);
    }

    fn answered(&mut self, parsed: &Parsed, elapsed: Duration) -> Effect {
        // With nothing but an unclosed or foreign block left, the text itself is shown: the model had its second chance.
        let answer = if parsed.prose.is_empty() { parsed.visible.clone() } else { parsed.prose.clone() };
        if answer.is_empty() {
            if let Some(draft) = self.draft.take() {
                return self.conclude(draft);
            }
            if !self.done.contains(&Once::AskForWords) {
                self.done.push(Once::AskForWords);
                self.tell(self.words.nothing_said().to_owned());
                return self.proceed(elapsed);
            }
            return Effect::Conclude(failed(RunError::new(ErrorKind::Run, self.words.no_answer(), self.words.no_answer_hint())));
        }
        let sources = evidence::Sources {
            question: &self.task.question,
            profiles: &self.task.profiles,
            history: &self.task.history,
            steps: &self.steps,
        };
        let unsupported = if self.checks_numbers() { evidence::unsupported(&answer, &sources) } else { Vec::new() };
        if !unsupported.is_empty() && self.budget.cap(elapsed).is_none() {
            self.done.push(Once::CheckNumbers);
            self.draft = Some(answer);
            self.tell(self.words.check_numbers(&unsupported));
            return self.proceed(elapsed);
        }
        self.conclude(answer)
    }

    /// Numbers are checked once, where there are outputs that they could come from and that the model has seen.
    fn checks_numbers(&self) -> bool {
        !self.done.contains(&Once::CheckNumbers)
            && !self.steps.is_empty()
            && self.model.language_model
            && self.settings.privacy != PrivacySend::Schema
    }

    fn forced_conclusion(&mut self, parsed: &Parsed) -> Effect {
        let answer = if parsed.prose.is_empty() { self.draft.take().unwrap_or_default() } else { parsed.prose.clone() };
        if !answer.is_empty() {
            return Effect::Conclude(Conclusion { status: RunStatus::Incomplete, final_answer: Some(answer), error: None });
        }
        if !self.done.contains(&Once::AskForWords) && self.budget.turns < self.budget.max_turns() {
            self.done.push(Once::AskForWords);
            self.tell(self.words.words_only().to_owned());
            return self.ask();
        }
        Effect::Conclude(failed(RunError::new(ErrorKind::Run, self.words.no_conclusion(), self.words.no_answer_hint())))
    }

    /// The time was up in the midst of a turn: a conclusion is asked for, once and in bounded time. Where that does not
    /// come either, the draft or the last output stands for it.
    fn out_of_time(&mut self, elapsed: Duration) -> Effect {
        let seconds = self.settings.agent.max_seconds.unwrap_or(elapsed.as_secs());
        if self.forced.is_none() {
            self.force(Cap::Seconds(seconds));
            return self.ask();
        }
        match self.draft.take().or_else(|| self.words.last_output(&self.steps)) {
            Some(answer) => Effect::Conclude(Conclusion { status: RunStatus::Incomplete, final_answer: Some(answer), error: None }),
            None => {
                Effect::Conclude(failed(RunError::new(ErrorKind::Run, self.words.no_conclusion_in_time(), self.words.no_answer_hint())))
            }
        }
    }

    fn conclude(&self, answer: String) -> Effect {
        let status = if self.forced.is_some() { RunStatus::Incomplete } else { RunStatus::Completed };
        Effect::Conclude(Conclusion { status, final_answer: Some(answer), error: None })
    }

    fn turn_failed(&mut self, error: &ModelError, elapsed: Duration) -> Effect {
        match error {
            ModelError::Cancelled => return Effect::Conclude(cancelled()),
            ModelError::ToolsRefused(_) if self.tools && self.settings.protocol == Protocol::Auto => {
                self.tools = false;
                self.budget.turns = self.budget.turns.saturating_sub(1);
                let rest = transcript::without_tools(self.messages.split_off(1));
                self.messages =
                    vec![Message::text(Role::System, prompt::rules(self.settings, self.sandbox, self.task, false, self.words.0))];
                self.messages.extend(rest);
                return self.ask();
            }
            ModelError::ContextLength(_) if self.shorten() => {
                self.budget.turns = self.budget.turns.saturating_sub(1);
                return self.ask();
            }
            ModelError::Incomplete(_) if !self.done.contains(&Once::AskAgain) => {
                self.done.push(Once::AskAgain);
                self.notices.push(self.words.broken_off(error));
                return self.proceed(elapsed);
            }
            _ => {}
        }
        match self.draft.take() {
            Some(draft) => {
                self.notices.push(self.words.unchecked(error));
                self.conclude(draft)
            }
            None => Effect::Conclude(failed(RunError::from(error))),
        }
    }

    // ── executions ───────────────────────────────────────────────────────────────────────────────────────────

    fn executed(&mut self, executed: Executed, elapsed: Duration) -> Effect {
        let Executed { step, images, variables_lost } = executed;
        let Some(pending) = self.queue.pop_front() else { return self.proceed(elapsed) };
        self.budget.executed(&step);
        let style = Style {
            language: self.words.0,
            privacy: self.settings.seen_by(&self.model),
            vision: self.model.vision,
            variables_lost,
            surroundings: Surroundings { files: &self.task.files, profiles: &self.task.profiles, workdir: &self.sandbox.workdir },
        };
        let mut text = feedback(&step, &style);
        if self.budget.has_succeeded_before(&step) {
            text.push_str("\n\n");
            text.push_str(self.words.ran_before());
        }
        let failed = step.exit_code != 0 || step.error.is_some();
        self.steps.push(step);
        self.respond(&pending, text);
        if failed || self.budget.steps_are_used_up() {
            self.drop_queue();
        }
        if !images.is_empty() && self.settings.privacy != PrivacySend::Schema {
            self.show(images);
        }
        self.proceed(elapsed)
    }

    /// Gives the outcome to the model: as the call's result, or as the person's side.
    fn respond(&mut self, pending: &Pending, text: String) {
        match &pending.call {
            Some(id) => self.answer_call(id, text),
            None => self.tell(text),
        }
    }

    /// Says of what waits that it was not executed.
    fn drop_queue(&mut self) {
        let dropped: Vec<Pending> = self.queue.drain(..).collect();
        let blocks = dropped.iter().filter(|pending| pending.call.is_none()).count();
        for call in dropped.iter().filter_map(|pending| pending.call.as_deref()) {
            self.answer_call(call, self.words.not_executed(1));
        }
        if blocks > 0 {
            self.tell(self.words.not_executed(blocks));
        }
    }

    /// Sends pictures along. Results of tools can't carry any at most providers, so they go with the person's side.
    fn show(&mut self, images: Vec<ImagePart>) {
        // Every open call must be answered before anybody else speaks.
        if self.queue.iter().any(|pending| pending.call.is_some()) {
            return;
        }
        if self.messages.last().is_none_or(|last| last.role != Role::User) {
            self.tell(self.words.pictures().to_owned());
        }
        if let Some(last) = self.messages.last_mut() {
            last.images.extend(images);
        }
    }

    fn was_declined(&mut self, elapsed: Duration) -> Effect {
        self.declined += 1;
        if let Some(pending) = self.queue.pop_front() {
            self.respond(&pending, self.words.declined().to_owned());
        }
        self.drop_queue();
        if self.declined >= 2 && self.forced.is_none() {
            self.force(Cap::Declined);
        }
        self.proceed(elapsed)
    }
}

fn failed(error: RunError) -> Conclusion {
    Conclusion { status: RunStatus::Failed, final_answer: None, error: Some(error) }
}

fn cancelled() -> Conclusion {
    Conclusion { status: RunStatus::Cancelled, final_answer: None, error: None }
}
