//! A run in the terminal: spinners on a TTY, plain lines otherwise. Everything that is not ours is stripped of
//! control sequences first.

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use indicatif::{ProgressBar, ProgressStyle};

use crate::agent::events::RunEvent;
use crate::agent::execution::{ExecutionEvent, Output};
use crate::agent::ports::{Approval, Progress};
use crate::agent::run::{Run, RunStatus, Step};
use crate::report::escape;
use crate::sandbox::consent::{Consent, PackageDownload};

/// Lines of a step's code that the terminal shows; the report has all.
const SHOWN_CODE: usize = 12;

/// Lines of a step's output that the terminal shows while it runs; the report has all that was kept.
const SHOWN_LINES: usize = 24;

/// Prints the events of one run.
pub(super) struct Console {
    /// Steps and answers are printed; else only progress, and that on standard error.
    prints: bool,
    state: Mutex<State>,
}

struct State {
    spinner: Option<ProgressBar>,
    tty: bool,
    last_progress: String,
    shown_lines: usize,
    open_line: bool,
}

impl Console {
    /// Prints everything.
    pub fn new() -> Self {
        Self::with(true)
    }

    /// Prints progress and notices only, on standard error.
    pub fn quiet() -> Self {
        Self::with(false)
    }

    fn with(prints: bool) -> Self {
        let tty = std::io::stderr().is_terminal();
        Self { prints, state: Mutex::new(State { spinner: None, tty, last_progress: String::new(), shown_lines: 0, open_line: false }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line on standard output.
    pub fn line(&self, text: &str) {
        self.state().print(&format!("{}\n", escape::plain(text)));
    }

    /// Shows an event.
    pub fn event(&self, event: &RunEvent) {
        let mut state = self.state();
        match event {
            RunEvent::Progress(progress) => state.progress(progress, progress.fraction.is_none()),
            RunEvent::Notice(notice) => state.notice(notice),
            RunEvent::TurnStarted(turn) if self.prints => {
                state.progress(&Progress { what: format!("Asking the model (turn {turn})"), fraction: None }, false);
            }
            RunEvent::StepStarted { step, code, note } if self.prints => {
                state.shown_lines = 0;
                state.open_line = false;
                let note = if note.trim().is_empty() { String::new() } else { format!("{}\n", escape::plain(note.trim())) };
                state.print(&format!("\n{note}Step {step}\n{}", quoted(code, SHOWN_CODE)));
                state.progress(&Progress { what: format!("Running step {step}"), fraction: None }, false);
            }
            RunEvent::StepEvent(event) if self.prints => state.step_event(event),
            RunEvent::StepFinished(step) if self.prints => state.step_finished(step),
            RunEvent::Concluded { .. } => state.end_spinner(),
            _ => {}
        }
    }

    /// The end of a run: answer, artifacts, where the report is.
    pub fn conclude(&self, run: &Run, report: &Path) {
        let mut state = self.state();
        state.end_spinner();
        let mut text = String::new();
        if let Some(answer) = &run.final_answer {
            text.push_str(&format!("\n{}\n", escape::plain(answer.trim())));
        }
        if !run.artifacts.is_empty() {
            text.push_str("\nArtifacts\n");
            for artifact in &run.artifacts {
                text.push_str(&format!("  {}\n", artifact.path.display()));
            }
        }
        let status = match run.status {
            RunStatus::Incomplete => "incomplete: a limit was reached, the answer is from what was known by then",
            other => other.as_str(),
        };
        let tokens = run.usage.input_tokens + run.usage.output_tokens;
        let tokens = if tokens > 0 { format!(", {tokens} tokens") } else { String::new() };
        let seconds = Duration::from_millis(run.duration_ms).as_secs_f64();
        text.push_str(&format!("\n{status} · {} steps, {seconds:.1} s, model {}{tokens}\n", run.total_steps, run.model));
        text.push_str(&format!("Report  {}\n", report.display()));
        state.print(&text);
        if let Some(error) = &run.error {
            super::fail(error);
        }
    }
}

impl State {
    /// Prints on standard output, above a spinner where there is one.
    fn print(&mut self, text: &str) {
        let write = || super::output::write(text.as_bytes());
        match &self.spinner {
            Some(spinner) => spinner.suspend(write),
            None => write(),
        }
    }

    /// `lasting`: worth a line of its own where there is no terminal to draw a spinner on.
    fn progress(&mut self, progress: &Progress, lasting: bool) {
        let what = escape::plain(&progress.what);
        let text = match progress.fraction {
            Some(fraction) => format!("{what} {:.0} %", fraction.clamp(0.0, 1.0) * 100.0),
            None => what.clone(),
        };
        if self.tty {
            let spinner = self.spinner.get_or_insert_with(|| {
                let spinner = ProgressBar::new_spinner();
                // The template is a constant; without it the default style serves.
                if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                    spinner.set_style(style);
                }
                spinner.enable_steady_tick(Duration::from_millis(120));
                spinner
            });
            spinner.set_message(text);
        } else if what != self.last_progress && lasting {
            eprintln!("{text}");
            self.last_progress = what;
        }
    }

    fn notice(&mut self, notice: &str) {
        let text = escape::plain(notice);
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn step_event(&mut self, event: &ExecutionEvent) {
        match event {
            ExecutionEvent::Stream(_, text) => self.output(text),
            ExecutionEvent::Output(Output::ExecuteResult { data }) => {
                if let Some(text) = data.get("text/plain").and_then(|text| text.as_str()) {
                    self.output(&format!("{text}\n"));
                }
            }
            ExecutionEvent::Notice(notice) => self.notice(notice),
            ExecutionEvent::Output(_) | ExecutionEvent::Update(..) | ExecutionEvent::Clear => {}
        }
    }

    /// Live output, indented; at most [`SHOWN_LINES`] lines of a step.
    fn output(&mut self, text: &str) {
        let mut shown = String::new();
        for line in escape::plain(text).split_inclusive('\n') {
            if self.shown_lines >= SHOWN_LINES {
                if self.shown_lines == SHOWN_LINES {
                    self.shown_lines += 1;
                    shown.push_str("  … (the report has more)\n");
                    self.open_line = false;
                }
                break;
            }
            if !self.open_line {
                shown.push_str("  ");
            }
            shown.push_str(escape::head(line, 400));
            self.open_line = !line.ends_with('\n');
            if !self.open_line {
                self.shown_lines += 1;
            }
        }
        if !shown.is_empty() {
            self.print(&shown);
        }
    }

    fn step_finished(&mut self, step: &Step) {
        let mut text = if self.open_line { "\n".to_owned() } else { String::new() };
        self.open_line = false;
        if let Some(error) = &step.error {
            text.push_str(&format!("  {}: {}\n", escape::plain(&error.ename), escape::plain(escape::head(&error.evalue, 600))));
        }
        for name in &step.artifacts {
            text.push_str(&format!("  → {}\n", escape::plain(name)));
        }
        for notice in &step.notices {
            text.push_str(&format!("  note: {}\n", escape::plain(notice)));
        }
        if !text.is_empty() {
            self.print(&text);
        }
    }

    fn end_spinner(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

/// Code with a bar before each line, at most `limit` lines of it.
fn quoted(code: &str, limit: usize) -> String {
    let code = escape::plain(code);
    let lines = code.trim_end().lines().count();
    let mut text: String = code.lines().take(limit).map(|line| format!("  │ {line}\n")).collect();
    if lines > limit {
        text.push_str(&format!("  │ … {} more lines\n", lines - limit));
    }
    text
}

/// Asks on the terminal before code runs. Without a terminal nobody can agree, and nothing runs.
pub(super) struct TerminalApproval;

#[async_trait]
impl Approval for TerminalApproval {
    async fn approve(&self, step: u32, code: &str) -> bool {
        if !std::io::stdin().is_terminal() {
            eprintln!("Step {step} was not run: agent.confirm is \"always\" and there is no terminal to ask on.");
            return false;
        }
        eprint!("\nStep {step} wants to run:\n{}Run it? [y/N] ", quoted(code, usize::MAX));
        yes().await
    }
}

/// Asks on the terminal before packages of a person's own choice are downloaded. Without a terminal the setting decides.
#[derive(Debug)]
pub(super) struct TerminalConsent;

#[async_trait]
impl Consent for TerminalConsent {
    async fn may_download(&self, download: &PackageDownload) -> bool {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return true;
        }
        eprint!("\nThe sandbox needs {download}.\nDownload it? [y/N] ");
        yes().await
    }
}

/// Reads the answer to a question on the terminal.
async fn yes() -> bool {
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    matches!(answer.await, Ok(Ok(line)) if line.trim().eq_ignore_ascii_case("y") || line.trim().eq_ignore_ascii_case("yes"))
}
