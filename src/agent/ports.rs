//! What the loop needs of the outside. Edges implement these traits; tests may implement them too.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::conversation::{Turn, TurnDelta, TurnRequest};
use super::execution::{Execution, ExecutionEvent, Variable};
use super::run::{Artifact, Run, SandboxInfo};
use crate::profile::ProfileOutcome;

/// Takes events as they happen. Must return at once and must not block.
pub type Sink<'a, T> = &'a (dyn Fn(T) + Send + Sync);

// ── model ────────────────────────────────────────────────────────────────────────────────────────────────────

/// What a model can do and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Name as configured, for example `openai::gpt-5-mini` or `playbook`.
    pub name: String,
    /// Host that requests go to; `None` where nothing leaves the machine.
    pub destination: Option<String>,
    /// Tools can be offered to it.
    pub tools: bool,
    /// Pictures can be sent to it.
    pub vision: bool,
    /// It is a language model; false for the playbook.
    pub language_model: bool,
    /// Tokens that fit into its window, where known.
    pub context_tokens: Option<u64>,
}

/// The [destination](ModelInfo::destination) of a model that the editor provides: it alone knows where its requests go.
pub const EDITOR: &str = "editor";

/// A source of turns.
#[async_trait]
pub trait Model: Send + Sync {
    /// What it is.
    fn info(&self) -> ModelInfo;

    /// Asks for one turn. Deltas are for showing only; the returned turn is what counts.
    /// Retries (with backoff) happen inside. Cancellation ends it at once with [`ModelError::Cancelled`].
    async fn turn(&self, request: &TurnRequest, deltas: Sink<'_, TurnDelta>, cancel: &CancellationToken) -> Result<Turn, ModelError>;

    /// The exact bytes of the request that [`Model::turn`] would send, for `--dry-run`; `None` where nothing is ever sent.
    async fn preview(&self, request: &TurnRequest) -> Result<Option<Vec<u8>>, ModelError>;
}

/// Why there was no turn. Texts are redacted: they never hold a key.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ModelError {
    /// The server can't be reached (DNS, TCP, TLS, timeout).
    #[error("the model's server {destination} can't be reached: {reason}")]
    Unreachable {
        /// Host of the server.
        destination: String,
        /// What failed.
        reason: String,
    },
    /// The server refused the key, or wants one.
    #[error("{destination} refused the credentials: {reason}")]
    Credentials {
        /// Host of the server.
        destination: String,
        /// The server's words.
        reason: String,
    },
    /// The server does not know the model.
    #[error("{destination} does not have the model {model}: {reason}")]
    UnknownModel {
        /// Host of the server.
        destination: String,
        /// The model asked for.
        model: String,
        /// The server's words.
        reason: String,
    },
    /// The request is too long for the model's window.
    #[error("the conversation is too long for the model: {0}")]
    ContextLength(String),
    /// The server refuses tools: ask once more without.
    #[error("the model does not take tools: {0}")]
    ToolsRefused(String),
    /// Too many requests, or the server is overloaded, after all retries.
    #[error("the model's server is busy: {0}")]
    Busy(String),
    /// The stream ended or stalled before the turn was complete. Nothing of it may run.
    #[error("the model's answer broke off: {0}")]
    Incomplete(String),
    /// The answer can't be understood.
    #[error("the model's server sent something unreadable: {0}")]
    Malformed(String),
    /// The settings don't describe a usable model.
    #[error("{0}")]
    Settings(String),
    /// Any other refusal.
    #[error("the model's server answered {status}: {reason}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The server's words.
        reason: String,
    },
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

// ── sandbox ──────────────────────────────────────────────────────────────────────────────────────────────────

/// The contents of a file that is put into the sandbox.
#[derive(Debug, Clone)]
pub enum FileSource {
    /// A file on the host, read once; must be a regular file.
    Path(PathBuf),
    /// Contents in memory: unsaved text of an editor, a selection.
    Bytes(Arc<[u8]>),
}

/// A file that was put into the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutFile {
    /// Its path relative to the working directory.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Hex SHA-256 of the contents as they were sent.
    pub sha256: String,
    /// True where it is a read-only mount of the host's file and not a copy.
    pub mounted: bool,
}

/// Progress of long work in the sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done, a short phrase.
    pub what: String,
    /// Between 0 and 1 where it can be told.
    pub fraction: Option<f64>,
}

/// Bounds of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteOptions {
    /// After this long it is interrupted, then killed.
    pub timeout: Duration,
    /// Bytes of standard output that are kept (head and tail).
    pub stdout_bytes: usize,
    /// Bytes of standard error that are kept (head and tail).
    pub stderr_bytes: usize,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), stdout_bytes: 8192, stderr_bytes: 4096 }
    }
}

/// How a profile is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileOptions {
    /// Rows that the loading code is told to load at most.
    pub max_rows: u64,
    /// Time for one file.
    pub timeout_seconds: u64,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { max_rows: 100_000, timeout_seconds: 600 }
    }
}

/// Memory and CPU of a sandbox now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Bytes of memory in use.
    pub memory_bytes: Option<u64>,
    /// Percent of one CPU.
    pub cpu_percent: Option<f64>,
}

/// State of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelState {
    /// The sandbox is being started.
    Starting,
    /// Ready for an execution.
    Idle,
    /// An execution is under way.
    Busy,
    /// The sandbox is gone.
    Dead,
}

/// A live sandbox: one working directory and one long-lived kernel.
///
/// Executions are one at a time: a second one waits for the first. All other requests may be made at any time.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Which backend it is and its limits.
    fn info(&self) -> SandboxInfo;

    /// State of its kernel.
    fn kernel_state(&self) -> KernelState;

    /// Puts a file under `name` (relative to the working directory), replacing what is there.
    async fn put_file(
        &self,
        name: &str,
        source: &FileSource,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<PutFile, SandboxError>;

    /// Profiles files that were put in, one outcome a file, outside the kernel.
    async fn profile(
        &self,
        names: &[String],
        options: &ProfileOptions,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Vec<ProfileOutcome>, SandboxError>;

    /// Executes code in the kernel. Cancellation interrupts it, then kills it; the outcome is still an [`Execution`]
    /// (exit code 130). An `Err` means that the sandbox itself failed.
    async fn execute(
        &self,
        code: &str,
        options: &ExecuteOptions,
        events: Sink<'_, ExecutionEvent>,
        cancel: &CancellationToken,
    ) -> Result<Execution, SandboxError>;

    /// Regular files in the working directory, recursively: path and size.
    async fn list_files(&self) -> Result<Vec<(String, u64)>, SandboxError>;

    /// Reads a regular file of the working directory, at most `limit` bytes; larger is an error.
    async fn get_file(&self, name: &str, limit: u64) -> Result<Vec<u8>, SandboxError>;

    /// Variables of the kernel, or the one of that name. Bounded in time; [`SandboxError::Busy`] during an execution.
    async fn variables(&self, name: Option<&str>) -> Result<Vec<Variable>, SandboxError>;

    /// Interrupts the running execution, if any.
    async fn interrupt(&self) -> Result<(), SandboxError>;

    /// Replaces the kernel by a new one; variables are lost, files stay.
    async fn restart_kernel(&self) -> Result<(), SandboxError>;

    /// Resources in use now.
    async fn usage(&self) -> ResourceUsage;

    /// Ends it and everything in it. Idempotent.
    async fn stop(&self);
}

/// Why the sandbox did not do what was asked.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SandboxError {
    /// It can't be started: something is missing on this machine.
    #[error("{message}")]
    Unavailable {
        /// What is missing and why it matters.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// It ended while it was in use; every variable is lost.
    #[error("the sandbox ended: {0}")]
    Gone(String),
    /// The kernel is in an execution.
    #[error("the kernel is busy")]
    Busy,
    /// A name that may not be used inside the working directory.
    #[error("refused file name {name:?}: {reason}")]
    RefusedName {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A file can't be read or written.
    #[error("file {name:?}: {reason}")]
    File {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// What came over the pipe broke the protocol.
    #[error("the sandbox broke the protocol: {0}")]
    Protocol(String),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

// ── approval ─────────────────────────────────────────────────────────────────────────────────────────────────

/// Asks a person before code runs (`agent.confirm = "always"`).
#[async_trait]
pub trait Approval: Send + Sync {
    /// Shows the code and waits for the answer. Whoever goes away without answering has refused.
    async fn approve(&self, step: u32, code: &str) -> bool;
}

// ── artifacts ────────────────────────────────────────────────────────────────────────────────────────────────

/// Where runs and their artifacts are kept.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Keeps `data` as an artifact of `run`. `name` is a wish: it is reduced to a safe file name and numbered on a
    /// collision with other contents. Written atomically.
    async fn save_artifact(&self, run: &str, name: &str, data: &[u8], step: u32, caption: Option<String>) -> Result<Artifact, StoreError>;

    /// Keeps the record of a run. Written atomically.
    async fn save_run(&self, run: &Run) -> Result<(), StoreError>;
}

/// Why something was not kept.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// The name, type or size is not allowed; a sentence for the report.
    #[error("artifact {name:?} was refused: {reason}")]
    Refused {
        /// The name wished for.
        name: String,
        /// Why.
        reason: String,
    },
    /// The host's file system failed.
    #[error("{path} can't be written: {reason}")]
    Io {
        /// Path on the host.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// There is no such run or artifact.
    #[error("{0} does not exist")]
    NotFound(String),
}
