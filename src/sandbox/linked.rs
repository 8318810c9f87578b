//! The [`Sandbox`] port over a supervisor's pipe, whatever holds the supervisor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Enclosure;
use super::executing;
use super::link::files::PutError;
use super::link::{ENDED, Link, LinkError, LinkEvent, LinkState};
use crate::agent::execution::{Execution, ExecutionEvent, Variable};
use crate::agent::ports::{
    ExecuteOptions, FileSource, KernelState, ProfileOptions, Progress, PutFile, ResourceUsage, Sandbox, SandboxError, Sink,
};
use crate::agent::run::SandboxInfo;
use crate::jupyter::message::Request;
use crate::jupyter::reply::{VariableEntry, is_safe_path};
use crate::profile::{ProfileError, ProfileOutcome};

/// Time for the supervisor to say its first word after its process was started.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for an answer that needs no user code to end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Variables of one answer.
const MAX_VARIABLES: usize = 300;
/// Time for a new kernel.
const RESTART_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes a sandbox of a started supervisor: `reader` is its standard output, `writer` its standard input.
///
/// Returns as soon as the supervisor has greeted; the first kernel may still be loading. Its standard error is the
/// backend's to read and log. Any failure kills the enclosure. Dropping the sandbox closes the supervisor's input, which ends it.
pub async fn open_sandbox<R, W>(
    reader: R,
    writer: W,
    info: SandboxInfo,
    enclosure: Arc<dyn Enclosure>,
) -> Result<Arc<dyn Sandbox>, SandboxError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let sandbox = LinkedSandbox::new(Link::open(reader, writer), info, enclosure);
    match timeout(HELLO_TIMEOUT, sandbox.link.greeting()).await {
        Ok(Ok(_)) => Ok(Arc::new(sandbox)),
        Ok(Err(LinkError::Closed(message))) if message != ENDED => {
            sandbox.stop().await;
            let hint = "check sandbox.image and sandbox.base, or run `codeinterp doctor`".to_owned();
            Err(SandboxError::Unavailable { message, hint })
        }
        Ok(Err(error)) => {
            let error = sandbox.failed(error).await;
            sandbox.stop().await;
            Err(error)
        }
        Err(_) => {
            sandbox.stop().await;
            let seconds = HELLO_TIMEOUT.as_secs();
            Err(SandboxError::Gone(format!("its Python did not start within {seconds} s")))
        }
    }
}

/// A sandbox that is reached by a [`Link`].
pub struct LinkedSandbox {
    pub(super) link: Link,
    pub(super) enclosure: Arc<dyn Enclosure>,
    info: SandboxInfo,
    /// One permit: executions are one at a time, and the kernel is busy while one is given out.
    turn: Arc<Semaphore>,
    kernel_ready: Arc<AtomicBool>,
    stopped: CancellationToken,
}

impl LinkedSandbox {
    /// Over an open link.
    pub fn new(link: Link, info: SandboxInfo, enclosure: Arc<dyn Enclosure>) -> Self {
        let kernel_ready = Arc::new(AtomicBool::new(false));
        tokio::spawn(follow(link.events(), Arc::clone(&kernel_ready)));
        Self { link, enclosure, info, turn: Arc::new(Semaphore::new(1)), kernel_ready, stopped: CancellationToken::new() }
    }

    /// The link itself, for what the port does not have: completion, inspection, events.
    pub fn link(&self) -> &Link {
        &self.link
    }

    fn busy(&self) -> bool {
        self.turn.available_permits() == 0
    }

    /// The port's error for a link's.
    pub(super) async fn failed(&self, error: LinkError) -> SandboxError {
        match error {
            LinkError::Closed(reason) => {
                if self.stopped.is_cancelled() {
                    return SandboxError::Gone("it was stopped".to_owned());
                }
                // What the supervisor itself said of its end is nearer to the cause than what was seen from outside.
                let seen = if reason == ENDED { self.enclosure.end_reason().await } else { None };
                SandboxError::Gone(seen.unwrap_or(reason))
            }
            LinkError::Refused { kind, .. } if kind == "KernelBusy" => SandboxError::Busy,
            LinkError::Refused { kind, .. } if kind == "Cancelled" => SandboxError::Cancelled,
            LinkError::Refused { message, .. } | LinkError::Protocol(message) => SandboxError::Protocol(message),
        }
    }

    async fn file_failed(&self, name: &str, error: LinkError) -> SandboxError {
        match error {
            LinkError::Refused { message: reason, .. } => SandboxError::File { name: name.to_owned(), reason },
            other => self.failed(other).await,
        }
    }

    /// Waits for an answer that the supervisor can give at any time.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, LinkError>>) -> Result<T, LinkError> {
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(LinkError::Protocol(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))),
        }
    }

    async fn profile_one(
        &self,
        name: &str,
        options: &ProfileOptions,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<ProfileOutcome, SandboxError> {
        let content = json!({ "path": name, "options": { "name": name, "max_rows": options.max_rows } });
        let request = Request::own("profile_request", content).map_err(|error| SandboxError::Protocol(error.to_string()))?;
        let begun = self.link.begin(request).await;
        let mut answers = match begun {
            Ok(answers) => answers,
            Err(error) => return Err(self.failed(error).await),
        };
        let limit = Duration::from_secs(options.timeout_seconds);
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        let id = answers.id().to_owned();
        let (kind, message, hint) = loop {
            tokio::select! {
                () = cancel.cancelled() => {
                    self.cancel_profile(&id).await;
                    return Err(SandboxError::Cancelled);
                }
                () = &mut deadline => {
                    self.cancel_profile(&id).await;
                    let message = format!("profiling took longer than {} s and was stopped", limit.as_secs());
                    break ("timeout".to_owned(), message, "profile a smaller part of the file");
                }
                answer = answers.next() => match answer {
                    Err(error) => return Err(self.failed(error).await),
                    Ok(message) if message.msg_type == "profile_progress" => progress(read_progress(name, &message.content)),
                    Ok(message) if message.msg_type == "profile_reply" => {
                        let mut content = message.content;
                        match content.remove("profile").map(serde_json::from_value::<ProfileOutcome>) {
                            Some(Ok(outcome)) => return Ok(outcome),
                            Some(Err(error)) => break ("internal".to_owned(), format!("its profile is not readable: {error}"), ""),
                            None => {
                                let text = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                                let (ename, evalue) = (text("ename"), text("evalue"));
                                break match ename.as_str() {
                                    "OutOfMemory" => ("too_large".to_owned(), evalue, "raise sandbox.memory, or profile a smaller file"),
                                    "FileError" => ("unreadable".to_owned(), evalue, ""),
                                    _ => ("internal".to_owned(), format!("{ename}: {evalue}"), ""),
                                };
                            }
                        }
                    }
                    Ok(_) => {}
                },
            }
        };
        Ok(ProfileOutcome::Failed { file: name.to_owned(), error: ProfileError { kind, message, hint: hint.to_owned() } })
    }

    async fn cancel_profile(&self, id: &str) {
        let cancelled: Result<Value, _> = self.in_time(self.link.ask("cancel_request", json!({ "msg_id": id }))).await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "a profile was not cancelled");
        }
    }
}

impl Drop for LinkedSandbox {
    fn drop(&mut self) {
        self.stopped.cancel();
    }
}

async fn follow(mut events: tokio::sync::broadcast::Receiver<LinkEvent>, ready: Arc<AtomicBool>) {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        match events.recv().await {
            Ok(LinkEvent::KernelReady(_)) => ready.store(true, Ordering::Relaxed),
            Ok(LinkEvent::KernelDied { .. }) => ready.store(false, Ordering::Relaxed),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

fn read_progress(name: &str, content: &serde_json::Map<String, Value>) -> Progress {
    let what = content.get("what").and_then(Value::as_str).unwrap_or("reading");
    let fraction = content.get("fraction").and_then(Value::as_f64).filter(|fraction| (0.0..=1.0).contains(fraction));
    Progress { what: format!("{name}: {}", what.chars().take(100).collect::<String>()), fraction }
}

fn check_name(name: &str) -> Result<(), SandboxError> {
    if is_safe_path(name) {
        return Ok(());
    }
    let reason = "it must be a relative path without '..', '\\' or control characters".to_owned();
    Err(SandboxError::RefusedName { name: name.chars().take(200).collect(), reason })
}

#[derive(Deserialize)]
struct Variables {
    variables: Vec<VariableEntry>,
}

/// The port's variable for the pipe's.
pub(super) fn variable(entry: VariableEntry) -> Variable {
    let VariableEntry { name, type_name, shape, bytes, repr } = entry;
    let clip = |text: String, limit: usize| if text.len() <= limit { text } else { text.chars().take(limit / 4).collect() };
    let shape = shape.filter(|shape| shape.len() <= 16);
    Variable { name: clip(name, 800), type_name: clip(type_name, 800), shape, bytes, repr: clip(repr, 8000) }
}

#[async_trait]
impl Sandbox for LinkedSandbox {
    fn info(&self) -> SandboxInfo {
        self.info.clone()
    }

    fn kernel_state(&self) -> KernelState {
        match *self.link.state().borrow() {
            LinkState::Closed(_) => KernelState::Dead,
            _ if self.stopped.is_cancelled() => KernelState::Dead,
            _ if self.busy() => KernelState::Busy,
            _ if self.kernel_ready.load(Ordering::Relaxed) => KernelState::Idle,
            _ => KernelState::Starting,
        }
    }

    async fn put_file(
        &self,
        name: &str,
        source: &FileSource,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<PutFile, SandboxError> {
        check_name(name)?;
        let unreadable = |error: std::io::Error| SandboxError::File { name: name.to_owned(), reason: error.to_string() };
        let sent = |total: u64, of: u64| {
            #[allow(clippy::cast_precision_loss)] // A fraction for a progress bar.
            let fraction = if of == 0 { 1.0 } else { total as f64 / of as f64 };
            progress(Progress { what: format!("copying {name}"), fraction: Some(fraction) });
        };
        let put = async {
            match source {
                FileSource::Bytes(data) => {
                    let bytes = data.len() as u64;
                    self.link.put_file(name, bytes, &data[..], |total| sent(total, bytes)).await
                }
                FileSource::Path(path) => {
                    let file = open_regular(path).await?;
                    let bytes = file.metadata().await?.len();
                    self.link.put_file(name, bytes, file, |total| sent(total, bytes)).await
                }
            }
        };
        let reply = tokio::select! {
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
            reply = put => reply,
        };
        match reply {
            Ok(reply) => Ok(PutFile { name: name.to_owned(), bytes: reply.bytes, sha256: reply.sha256, mounted: false }),
            Err(PutError::Link(error)) => Err(self.file_failed(name, error).await),
            Err(PutError::Source(error)) => Err(unreadable(error)),
            Err(error @ PutError::Changed) => Err(SandboxError::File { name: name.to_owned(), reason: error.to_string() }),
        }
    }

    async fn profile(
        &self,
        names: &[String],
        options: &ProfileOptions,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Vec<ProfileOutcome>, SandboxError> {
        let mut outcomes = Vec::with_capacity(names.len());
        for name in names {
            outcomes.push(self.profile_one(name, options, progress, cancel).await?);
        }
        Ok(outcomes)
    }

    async fn execute(
        &self,
        code: &str,
        options: &ExecuteOptions,
        events: Sink<'_, ExecutionEvent>,
        cancel: &CancellationToken,
    ) -> Result<Execution, SandboxError> {
        let permit = tokio::select! {
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
            permit = Arc::clone(&self.turn).acquire_owned() => permit,
        };
        let permit = permit.map_err(|_| SandboxError::Gone("it was stopped".to_owned()))?;
        executing::execute(self, permit, code, options, events, cancel).await
    }

    async fn list_files(&self) -> Result<Vec<(String, u64)>, SandboxError> {
        match self.in_time(self.link.list_files()).await {
            Ok(list) => {
                let safe = list.files.into_iter().filter(|file| is_safe_path(&file.path));
                Ok(safe.map(|file| (file.path, file.bytes)).collect())
            }
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn get_file(&self, name: &str, limit: u64) -> Result<Vec<u8>, SandboxError> {
        check_name(name)?;
        match self.link.get_file(name, limit).await {
            Ok(data) => Ok(data),
            Err(error) => Err(self.file_failed(name, error).await),
        }
    }

    async fn variables(&self, name: Option<&str>) -> Result<Vec<Variable>, SandboxError> {
        if self.busy() {
            return Err(SandboxError::Busy);
        }
        let asked = self.in_time(self.link.ask::<Variables>("variables_request", json!({ "name": name })));
        match asked.await {
            Ok(reply) => Ok(reply.variables.into_iter().take(MAX_VARIABLES).map(variable).collect()),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn interrupt(&self) -> Result<(), SandboxError> {
        match self.link.interrupt(None).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn restart_kernel(&self) -> Result<(), SandboxError> {
        let restarted = timeout(RESTART_TIMEOUT, self.link.ask::<Value>("restart_request", json!({}))).await;
        match restarted {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.failed(error).await),
            Err(_) => Err(SandboxError::Gone("no new kernel came up".to_owned())),
        }
    }

    async fn usage(&self) -> ResourceUsage {
        self.enclosure.usage().await
    }

    async fn stop(&self) {
        self.stopped.cancel();
        self.turn.close();
        self.enclosure.kill().await;
    }
}

/// Opens a regular file; anything else could block or never end.
async fn open_regular(path: &std::path::Path) -> std::io::Result<tokio::fs::File> {
    let mut options = tokio::fs::OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    options.custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).await?;
    if file.metadata().await?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::other("it is not a regular file"))
}
