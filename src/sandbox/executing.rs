//! One execution over a link: live events, timeout and cancellation with their escalation, and the verdict.
//!
//! Whoever does not stop when interrupted loses the kernel; a kernel that does not die takes the sandbox with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Enclosure;
use super::link::{Answers, LinkError};
use super::linked::{LinkedSandbox, variable};
use crate::agent::execution::{Execution, ExecutionError, ExecutionEvent, FileChange, StreamName, Truncation, Variable};
use crate::agent::ports::{ExecuteOptions, SandboxError, Sink};
use crate::jupyter::message::Message;
use crate::jupyter::outputs::Outputs;
use crate::jupyter::reply::{Cause, ExecuteReply, FileChanges, FileEntry, is_safe_path};

/// Time for a kernel to begin, which may have to be forked first.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Between the interrupt and the kernel's kill.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);
/// Between the kernel's kill and the sandbox's.
const KILL_GRACE: Duration = Duration::from_secs(5);
const MAX_VARIABLES: usize = 200;
const TIMEOUT_TEXT: &str = "Execution timeout";

/// Why the host ends an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Timeout,
    Cancelled,
}

/// How far that has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Running,
    Interrupted,
    Killed,
}

/// Sees to the end of code whose caller went away: no other execution may begin before it is dead.
struct Ward {
    answers: Option<Answers>,
    enclosure: Arc<dyn Enclosure>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Ward {
    fn drop(&mut self) {
        let (Some(answers), Ok(runtime)) = (self.answers.take(), tokio::runtime::Handle::try_current()) else { return };
        let (enclosure, permit) = (Arc::clone(&self.enclosure), self.permit.take());
        runtime.spawn(async move {
            if !stop_abandoned(answers).await {
                enclosure.kill().await;
            }
            drop(permit);
        });
    }
}

/// Interrupts, then kills the kernel; false where neither ends the execution.
async fn stop_abandoned(mut answers: Answers) -> bool {
    let (link, id) = (answers.link().clone(), answers.id().to_owned());
    if link.interrupt(Some(&id)).await.is_err() || ends(&mut answers, INTERRUPT_GRACE).await {
        return true;
    }
    link.kill_kernel(&id, "cancelled").await.is_err() || ends(&mut answers, KILL_GRACE).await
}

async fn ends(answers: &mut Answers, grace: Duration) -> bool {
    let end = async {
        // An error is an end too: the whole sandbox has gone.
        while answers.next().await.is_ok_and(|message| message.msg_type != "execute_reply") {}
    };
    timeout(grace, end).await.is_ok()
}

struct Run<'a> {
    sandbox: &'a LinkedSandbox,
    options: &'a ExecuteOptions,
    outputs: Outputs,
    begun: Instant,
    oom_before: Option<u64>,
    ending: Option<Ending>,
}

/// Runs code to its end, whatever end that is.
pub(super) async fn execute(
    sandbox: &LinkedSandbox,
    permit: OwnedSemaphorePermit,
    code: &str,
    options: &ExecuteOptions,
    events: Sink<'_, ExecutionEvent>,
    cancel: &CancellationToken,
) -> Result<Execution, SandboxError> {
    let oom_before = sandbox.enclosure.oom_kills().await;
    let started = sandbox.link.execute(code, options.stdout_bytes, options.stderr_bytes).await;
    let answers = match started {
        Ok(answers) => answers,
        Err(error) => return Err(sandbox.failed(error).await),
    };
    let mut ward = Ward { answers: Some(answers), enclosure: Arc::clone(&sandbox.enclosure), permit: Some(permit) };
    let mut run = Run { sandbox, options, outputs: Outputs::default(), begun: Instant::now(), oom_before, ending: None };
    match run.follow(&mut ward, events, cancel).await {
        Ok(Some(reply)) => run.finish(reply).await,
        // The sandbox itself had to be killed.
        Ok(None) => {
            let cause = Cause { kind: "killed".to_owned(), ..Cause::default() };
            run.died(&cause, "the sandbox was ended because the code could not be stopped".to_owned()).await
        }
        Err(error) => run.broken(error).await,
    }
}

impl Run<'_> {
    /// Takes messages until the reply; `None` where nothing but the end of the whole sandbox stopped the code.
    async fn follow(
        &mut self,
        ward: &mut Ward,
        events: Sink<'_, ExecutionEvent>,
        cancel: &CancellationToken,
    ) -> Result<Option<ExecuteReply>, LinkError> {
        // Taken again at the end only: whoever drops this future on the way leaves the code to the ward.
        let Some(answers) = ward.answers.as_mut() else { return Ok(None) };
        let id = answers.id().to_owned();
        let link = &self.sandbox.link;
        let mut stage = Stage::Waiting;
        let mut deadline = self.begun + BEGIN_TIMEOUT.max(self.options.timeout);
        loop {
            let message = tokio::select! {
                biased;
                message = answers.next() => match message {
                    Ok(message) => message,
                    Err(error) => {
                        ward.answers = None;
                        return Err(error);
                    }
                },
                () = cancel.cancelled(), if self.ending.is_none() => {
                    self.ending = Some(Ending::Cancelled);
                    (stage, deadline) = (Stage::Interrupted, Instant::now() + INTERRUPT_GRACE);
                    link.interrupt(Some(&id)).await?;
                    events(ExecutionEvent::Notice("interrupting the code".to_owned()));
                    continue;
                }
                () = sleep_until(deadline) => {
                    match stage {
                        Stage::Waiting | Stage::Running => {
                            self.ending = Some(Ending::Timeout);
                            (stage, deadline) = (Stage::Interrupted, Instant::now() + INTERRUPT_GRACE);
                            link.interrupt(Some(&id)).await?;
                            let seconds = self.options.timeout.as_secs_f64();
                            events(ExecutionEvent::Notice(format!("interrupting the code after {seconds} s")));
                        }
                        Stage::Interrupted => {
                            (stage, deadline) = (Stage::Killed, Instant::now() + KILL_GRACE);
                            let cause = if self.ending == Some(Ending::Timeout) { "timeout" } else { "cancelled" };
                            link.kill_kernel(&id, cause).await?;
                            events(ExecutionEvent::Notice("the code does not stop: killing the kernel, its variables are lost".to_owned()));
                        }
                        Stage::Killed => {
                            self.sandbox.enclosure.kill().await;
                            ward.answers = None;
                            return Ok(None);
                        }
                    }
                    continue;
                }
            };
            match message.msg_type.as_str() {
                "execute_reply" => {
                    ward.answers = None;
                    return read_reply(message).map(Some);
                }
                // Only now does the code run: waiting for a kernel is not its time.
                "status" if stage == Stage::Waiting => {
                    self.begun = Instant::now();
                    (stage, deadline) = (Stage::Running, self.begun + self.options.timeout);
                }
                _ => {
                    if let Some(event) = self.outputs.apply(message) {
                        events(event);
                    }
                }
            }
        }
    }

    async fn finish(self, reply: ExecuteReply) -> Result<Execution, SandboxError> {
        if let Some(cause) = reply.cause.clone() {
            return self.died_with(&cause, reply).await;
        }
        // Names of errors alone prove nothing: Python code may call its own as it likes.
        match reply.ename.as_str() {
            _ if !reply.refused => {}
            "Interrupted" => {}
            "KernelBusy" => return Err(SandboxError::Busy),
            "KernelDied" => return Err(SandboxError::Gone(reply.evalue)),
            _ => return Err(SandboxError::Protocol(reply.evalue)),
        }
        let interrupted = reply.refused || (reply.interrupted && reply.ename == "KeyboardInterrupt");
        let (exit_code, error) = match self.ending {
            Some(Ending::Timeout) => (-1, Some(self.timeout_error())),
            // Code that ended by itself in the same moment still ended as it did.
            Some(Ending::Cancelled) if reply.status == "ok" => (0, None),
            Some(Ending::Cancelled) => (130, Some(error("Interrupted", "the run was cancelled"))),
            None if interrupted => (130, Some(error("Interrupted", "the code was interrupted"))),
            None if reply.status == "ok" => (0, None),
            None => (reply.exit_code.unwrap_or(1), Some(python_error(&reply))),
        };
        Ok(self.build(exit_code, error, false, reply))
    }

    fn timeout_error(&self) -> ExecutionError {
        let seconds = self.options.timeout.as_secs_f64();
        error("Timeout", &format!("the code ran longer than {seconds} s and was stopped"))
    }

    /// The kernel died, and a new one follows.
    async fn died_with(self, cause: &Cause, reply: ExecuteReply) -> Result<Execution, SandboxError> {
        let sentence = reply.evalue.clone();
        let (exit_code, error) = self.verdict(cause, sentence).await;
        Ok(self.build(exit_code, Some(error), true, reply))
    }

    /// The whole sandbox went, and a new one has to follow.
    async fn died(self, cause: &Cause, sentence: String) -> Result<Execution, SandboxError> {
        self.died_with(cause, ExecuteReply { evalue: sentence, ..ExecuteReply::default() }).await
    }

    async fn broken(self, failure: LinkError) -> Result<Execution, SandboxError> {
        // The supervisor itself may fall victim to the memory limit: that is the code's doing, not the engine's.
        if let LinkError::Closed(_) = failure {
            // The host's count is final only when the host has seen the end, which may be later than that of the pipe.
            let _ = self.sandbox.enclosure.end_reason().await;
            if self.out_of_memory().await {
                let cause = Cause { kind: "oom".to_owned(), ..Cause::default() };
                return self.died(&cause, "the whole sandbox was ended because memory ran out".to_owned()).await;
            }
        }
        Err(self.sandbox.failed(failure).await)
    }

    async fn out_of_memory(&self) -> bool {
        let now = self.sandbox.enclosure.oom_kills().await;
        // A backend may know of no count before the first kill.
        now.is_some_and(|now| now > self.oom_before.unwrap_or(0))
    }

    async fn verdict(&self, cause: &Cause, sentence: String) -> (i32, ExecutionError) {
        const KILL: i32 = 9;
        match (cause.kind.as_str(), self.ending) {
            ("oom", _) => return (137, error("OutOfMemory", &sentence)),
            (_, Some(Ending::Timeout)) => return (-1, self.timeout_error()),
            (_, Some(Ending::Cancelled)) | ("cancelled" | "restart", None) => return (130, error("Interrupted", &sentence)),
            ("timeout", None) => return (-1, error("Timeout", &sentence)),
            _ => {}
        }
        if cause.signal.is_none_or(|signal| signal == KILL) && cause.kind != "exit" && self.out_of_memory().await {
            return (137, error("OutOfMemory", "the Python process was ended because memory ran out"));
        }
        let code = match (cause.signal, cause.exit_code) {
            (Some(signal), _) => 128 + signal.clamp(0, 127),
            // The interpreter went away, so even an exit code of 0 is no success.
            (None, Some(code)) if code != 0 => code.clamp(1, 255),
            _ => 1,
        };
        (code, error("KernelDied", &sentence))
    }

    fn build(self, exit_code: i32, error: Option<ExecutionError>, variables_lost: bool, reply: ExecuteReply) -> Execution {
        let milliseconds = reply.duration_ms.unwrap_or(reply.elapsed_ms);
        let duration = match Duration::try_from_secs_f64(milliseconds / 1000.0) {
            Ok(duration) if !duration.is_zero() => duration,
            _ => self.begun.elapsed(),
        };
        let (total, kept) =
            reply.streams.values().take(2).fold((0u64, 0u64), |(total, kept), count| {
                (total.saturating_add(count.total_bytes), kept.saturating_add(count.kept_bytes))
            });
        let stdout = self.outputs.text(StreamName::Stdout).to_owned();
        let mut stderr = self.outputs.text(StreamName::Stderr).to_owned();
        let mut say = |line: &str| {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(line);
        };
        if exit_code == -1 {
            say(TIMEOUT_TEXT);
        }
        if reply.oom_kills > 0 && !variables_lost {
            say("a process that this code started was ended because memory ran out");
        }
        let dropped = reply.dropped_displays.saturating_add(self.outputs.dropped());
        if dropped > 0 {
            say(&format!("{dropped} displays were left out: too many or too large"));
        }
        let (files, skipped_files) = files(reply.files);
        let changed = reply.variables.created.into_iter().chain(reply.variables.changed);
        let variables: Vec<Variable> = changed.take(MAX_VARIABLES).map(variable).collect();
        Execution {
            exit_code,
            error,
            stdout,
            stderr,
            result: self.outputs.result(),
            figures: self.outputs.figures(),
            outputs: self.outputs.into_vec(),
            duration,
            truncated: (kept < total).then_some(Truncation { kept_bytes: kept, total_bytes: total }),
            files,
            skipped_files,
            variables,
            variables_lost,
        }
    }
}

fn read_reply(message: Message) -> Result<ExecuteReply, LinkError> {
    message.content().map_err(LinkError::from)
}

fn error(ename: &str, evalue: &str) -> ExecutionError {
    ExecutionError { ename: ename.to_owned(), evalue: evalue.to_owned(), traceback: String::new() }
}

fn python_error(reply: &ExecuteReply) -> ExecutionError {
    let traceback = if reply.traceback_user.is_empty() { reply.traceback.join("\n") } else { reply.traceback_user.clone() };
    let mut evalue = reply.evalue.clone();
    if reply.ename == "ModuleNotFoundError" && !reply.installed.is_empty() {
        let installed: Vec<&str> = reply.installed.iter().take(300).map(String::as_str).collect();
        evalue = format!("{evalue}. There is no network to install it from. Installed here: {}", installed.join(", "));
    }
    ExecutionError { ename: reply.ename.clone(), evalue, traceback }
}

/// The first names, and how many more there are.
fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

fn files(changes: FileChanges) -> (Vec<FileChange>, Vec<String>) {
    let mut skipped: Vec<String> = changes.skipped.iter().map(|file| format!("{}: {}", file.path, file.reason)).collect();
    let entries = changes.created.into_iter().map(|file| (file, true)).chain(changes.changed.into_iter().map(|file| (file, false)));
    let mut files = Vec::new();
    for (FileEntry { path, bytes, sha256 }, created) in entries {
        if is_safe_path(&path) {
            let sha256 = sha256.filter(|hash| hash.len() == 64 && hash.bytes().all(|letter| letter.is_ascii_hexdigit()));
            files.push(FileChange { path, bytes, sha256, created });
        } else {
            skipped.push(format!("{}: its name is not allowed", path.escape_debug()));
        }
    }
    for path in changes.background.iter().filter(|path| is_safe_path(path)) {
        skipped.push(format!("{path}: background work of an earlier step wrote it before this step began"));
    }
    let others: Vec<&str> =
        files.iter().map(|file| file.path.as_str()).filter(|path| !changes.background.iter().any(|other| other == path)).collect();
    if changes.shared && !others.is_empty() {
        skipped.push(format!("{}: background work of an earlier step went on during this step and may have written it", some_of(&others)));
    }
    if changes.omitted > 0 {
        skipped.push(format!("{} more files: too many", changes.omitted));
    }
    (files, skipped)
}
