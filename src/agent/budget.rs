//! Bounds of a run: steps, turns, tokens, seconds, and executions that lead nowhere.

use std::collections::HashMap;
use std::time::Duration;

use super::conversation::Usage;
use super::run::Step;
use crate::config::AgentSettings;
use crate::profile::Language;

/// Why a conclusion was forced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// `agent.maxSteps` executions.
    Steps(u32),
    /// Twice as many turns.
    Turns(u32),
    /// `agent.maxTokens`.
    Tokens(u64),
    /// `agent.maxSeconds`.
    Seconds(u64),
    /// The same code failed in the same way again, or ran again and again.
    Repeats,
    /// The person declined code again.
    Declined,
}

impl Cap {
    /// A sentence for the person.
    pub fn sentence(self, language: Language) -> String {
        let (english, chinese) = match self {
            Self::Steps(steps) => (format!("the limit of {steps} steps was reached"), format!("已达到 {steps} 步上限")),
            Self::Turns(turns) => (format!("the limit of {turns} turns was reached"), format!("已达到 {turns} 轮上限")),
            Self::Tokens(tokens) => (format!("the limit of {tokens} tokens was reached"), format!("已达到 {tokens} 个 token 的上限")),
            Self::Seconds(seconds) => (format!("the limit of {seconds} seconds was reached"), format!("已达到 {seconds} 秒上限")),
            Self::Repeats => ("the same code was sent again and again".to_owned(), "同样的代码被反复提交".to_owned()),
            Self::Declined => ("code was declined again".to_owned(), "代码再次被拒绝执行".to_owned()),
        };
        match language {
            Language::English => format!(
                "The conclusion was forced because {english}. It tells what was known by then; ask a follow-up question to go on from there."
            ),
            Language::Chinese => format!("{chinese}，因此提前得出结论。结论只反映到目前为止的结果；可以继续追问。"),
        }
    }
}

/// What was used so far.
#[derive(Debug, Clone)]
pub struct Budget {
    settings: AgentSettings,
    /// Executions so far.
    pub steps: u32,
    /// Turns so far.
    pub turns: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// Code, with what came of it, and how often.
    outcomes: HashMap<(String, String), u32>,
    repeated: bool,
}

impl Budget {
    /// A budget of which nothing is used.
    pub fn new(settings: &AgentSettings) -> Self {
        Self { settings: settings.clone(), steps: 0, turns: 0, usage: Usage::default(), outcomes: HashMap::new(), repeated: false }
    }

    /// Turns that may be taken at most, the conclusion's among them.
    pub fn max_turns(&self) -> u32 {
        self.settings.max_steps.saturating_mul(2).max(2)
    }

    /// Whether no further execution is allowed.
    pub fn steps_are_used_up(&self) -> bool {
        self.steps >= self.settings.max_steps
    }

    /// Takes note of an execution. Failing twice in the same way, or three same successes, is a repeat.
    pub fn executed(&mut self, step: &Step) {
        self.steps += 1;
        let code = step.code.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        let outcome = step.error.as_ref().map_or_else(|| step.exit_code.to_string(), |error| format!("{}: {}", error.ename, error.evalue));
        let failed = step.exit_code != 0 || step.error.is_some();
        let count = self.outcomes.entry((code, outcome)).or_default();
        *count += 1;
        self.repeated |= *count >= if failed { 2 } else { 3 };
    }

    /// How often this very code has succeeded before.
    pub fn has_succeeded_before(&self, step: &Step) -> bool {
        let code = step.code.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        step.exit_code == 0 && self.outcomes.get(&(code, "0".to_owned())).is_some_and(|count| *count > 1)
    }

    /// The cap that is reached before another turn, if any. `elapsed` is since the run's start.
    pub fn cap(&self, elapsed: Duration) -> Option<Cap> {
        let tokens = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        if self.repeated {
            return Some(Cap::Repeats);
        }
        if self.steps_are_used_up() {
            return Some(Cap::Steps(self.settings.max_steps));
        }
        if let Some(max) = self.settings.max_tokens.filter(|max| tokens >= *max) {
            return Some(Cap::Tokens(max));
        }
        if let Some(max) = self.settings.max_seconds.filter(|max| elapsed.as_secs() >= *max) {
            return Some(Cap::Seconds(max));
        }
        // The last turn is the conclusion's.
        (self.turns + 1 >= self.max_turns()).then(|| Cap::Turns(self.max_turns()))
    }

    /// Time that a forced conclusion gets beyond `agent.maxSeconds`: a quarter of it, between 5 seconds and a minute.
    pub fn time_to_conclude(&self) -> Duration {
        Duration::from_secs((self.settings.max_seconds.unwrap_or(u64::MAX) / 4).clamp(5, 60))
    }

    /// Time that is left of `agent.maxSeconds`, or `None` where it is unbounded.
    pub fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        self.settings.max_seconds.map(|max| Duration::from_secs(max).saturating_sub(elapsed))
    }
}
