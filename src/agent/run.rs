//! The record of a run: what `analyze --format json` prints, what the store keeps, what reports are made from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::conversation::Usage;
use super::execution::{ExecutionError, FigureDescription, FileChange, Output, Truncation, Variable};
use crate::config::PrivacySend;
use crate::profile::ProfileOutcome;

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Waits for an earlier run of its workspace.
    #[default]
    Queued,
    /// Under way.
    Running,
    /// The model concluded by itself.
    Completed,
    /// A cap forced the conclusion.
    Incomplete,
    /// There is no conclusion.
    Failed,
    /// A person cancelled it.
    Cancelled,
}

impl RunStatus {
    /// Whether nothing more will happen to the run.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// The word used in JSON and notifications.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why a run failed, in a form that both a person and a program can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// A stable word: `usage`, `input`, `sandbox`, `model`, `credentials`, `run`, …
    pub kind: ErrorKind,
    /// What happened and why.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// The kinds of [`RunError`]; each belongs to one exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Wrong use of the command line or a command's arguments.
    Usage,
    /// An input file is missing, unreadable or not of a known kind.
    Input,
    /// The sandbox could not be started or reached.
    Sandbox,
    /// The model could not be reached.
    Model,
    /// The model's server refused the credentials.
    Credentials,
    /// The run itself went wrong.
    Run,
    /// Something could not be written on the host.
    Output,
}

impl ErrorKind {
    /// The process's exit code: 1 failed during the run, 2 usage or unreadable input, 3 sandbox or model unreachable or refusing.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Run | Self::Output => 1,
            Self::Usage | Self::Input => 2,
            Self::Sandbox | Self::Model | Self::Credentials => 3,
        }
    }
}

/// One executed piece of code and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Counted from 1.
    pub step: u32,
    /// The whole code.
    pub code: String,
    /// Kept standard output.
    pub stdout: String,
    /// Kept standard error.
    pub stderr: String,
    /// `text/plain` of the result.
    pub result: Option<String>,
    /// See [`Execution::exit_code`](super::execution::Execution::exit_code).
    pub exit_code: i32,
    /// The exception or cause of death.
    pub error: Option<ExecutionError>,
    /// Wall-clock time in milliseconds.
    pub duration_ms: u64,
    /// Names of artifacts that the step made.
    pub artifacts: Vec<String>,
    /// Set where less was kept than was written.
    pub truncated: Option<Truncation>,
    /// Outputs in order; images are replaced by a reference to their artifact (`{"artifact": name}`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// What the model said around the code in the same turn.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Files it created or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// Variables it created or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Descriptions of its figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<FigureDescription>,
    /// Things that were refused or skipped, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A file that a run left for the person: a chart, a table, HTML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Unique within the run; a plain file name.
    pub name: String,
    /// Absolute path on the host.
    pub path: PathBuf,
    /// MIME type by content.
    pub mime: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The step that made it.
    pub step: u32,
    /// What it shows, for alternative texts and captions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
}

/// The sandbox that a run used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// `docker` or `process`.
    pub backend: String,
    /// The image's name with its tag, or the Python environment.
    pub image: String,
    /// Working directory inside, `/workspace` where that is possible.
    #[serde(default)]
    pub workdir: String,
    /// Memory limit in bytes.
    #[serde(default)]
    pub memory_bytes: u64,
}

/// A range of lines of a document that a question is about, as the prompt and hints speak of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionInfo {
    /// The document's URI or path.
    pub document: String,
    /// First line, counted from 0.
    pub start_line: u32,
    /// Last line, counted from 0, included.
    pub end_line: u32,
}

/// An input file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path inside the sandbox, relative to its working directory.
    pub name: String,
    /// Where it came from: a path on the host, or a document URI.
    pub source: String,
    /// Hex SHA-256 of what was put into the sandbox.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// One entry of the ledger of what left the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// When, RFC 3339.
    pub at: String,
    /// Provider host, or `editor`.
    pub destination: String,
    /// The model.
    pub model: String,
    /// Bytes of message text sent.
    pub bytes: u64,
    /// Which of `profiles`, `sample rows`, `outputs`, `pictures` were in it.
    pub contents: Vec<String>,
}

/// A whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub run: String,
    /// How it stands.
    pub status: RunStatus,
    /// Set where it failed.
    pub error: Option<RunError>,
    /// What was asked.
    pub question: String,
    /// The conclusion, markdown.
    pub final_answer: Option<String>,
    /// Number of steps.
    pub total_steps: u32,
    /// Executed code.
    pub steps: Vec<Step>,
    /// Profiles of the input files.
    pub files: Vec<ProfileOutcome>,
    /// What it left.
    pub artifacts: Vec<Artifact>,
    /// The model's name; `playbook` for the built-in analysis.
    pub model: String,
    /// How much of the data its model could see; everything where it was the playbook, which sends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacySend>,
    /// Tokens over all turns.
    pub usage: Usage,
    /// Where the code ran.
    pub sandbox: SandboxInfo,
    /// Inputs with their hashes.
    #[serde(default)]
    pub inputs: Vec<InputFile>,
    /// The document asked about (URI), for hints and lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The lines asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionInfo>,
    /// When it started, RFC 3339.
    #[serde(default)]
    pub started_at: String,
    /// How long it took in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Run that this one follows up or repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How it differs from the run that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<super::changes::Changes>,
    /// What the model has said of the turn that is under way; never kept.
    #[serde(skip)]
    pub saying: String,
    /// Sentences that the person should read: which model, why this backend, variables lost, caps that were hit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// What was sent where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger: Vec<LedgerEntry>,
    /// The conversation as the model had it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<super::conversation::Message>,
}

impl Run {
    /// Whether a person's own code ran, without any question or model.
    pub fn is_code(&self) -> bool {
        self.model == "none" && self.changes.is_none()
    }

    /// Whether code and answer may be a language model's, as far as the record can tell: neither a person's own nor the playbook's.
    pub fn by_language_model(&self) -> bool {
        self.model != "playbook" && !self.is_code()
    }
}
