//! Contents of the supervisor's replies and events. All of it is hostile: lists and texts are bounded by the frame,
//! numbers by their types, and paths are checked before they become part of an execution.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a reply says of its success.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `ok` or `error`.
    pub status: String,
    /// Kind of the error.
    pub ename: String,
    /// The error in words.
    pub evalue: String,
}

/// Why a kernel ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// `exit`, `signal`, `oom`, `timeout`, `cancelled`, `restart` or `killed`; `closed` or `protocol` where the kernel gave up
    /// its channel, `zygote` where the process that starts kernels went.
    pub kind: String,
    /// Number of the signal.
    pub signal: Option<i32>,
    /// Its name.
    pub signal_name: Option<String>,
    /// Exit code of the process.
    pub exit_code: Option<i32>,
}

/// Bytes of one stream.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct StreamCount {
    /// Written by the execution.
    pub total_bytes: u64,
    /// Sent to the host.
    pub kept_bytes: u64,
}

/// A file in a reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileEntry {
    /// Relative path.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Hex SHA-256.
    pub sha256: Option<String>,
}

/// A file that was passed over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SkippedFile {
    /// Relative path.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What an execution did to the working directory.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileChanges {
    /// New files.
    pub created: Vec<FileEntry>,
    /// Files with other contents than before.
    pub changed: Vec<FileEntry>,
    /// Files that are gone.
    pub deleted: Vec<String>,
    /// Files that are not taken over.
    pub skipped: Vec<SkippedFile>,
    /// Those of the new and changed ones that were so before the execution began.
    pub background: Vec<String>,
    /// Work of an earlier execution went on meanwhile: what is new or changed may be its doing.
    pub shared: bool,
    /// Further ones, counted only.
    pub omitted: u64,
}

/// A variable in a reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct VariableEntry {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its shape.
    pub shape: Option<Vec<u64>>,
    /// Bytes in memory.
    pub bytes: Option<u64>,
    /// A bounded `repr`.
    pub repr: String,
}

/// What an execution did to the variables.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct VariableChanges {
    /// New ones.
    pub created: Vec<VariableEntry>,
    /// Ones with another value, type or shape.
    pub changed: Vec<VariableEntry>,
    /// Ones that are gone.
    pub deleted: Vec<String>,
}

/// The end of an execution.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ExecuteReply {
    /// `ok` or `error`.
    pub status: String,
    /// Exit code as the cell's own code decided it.
    pub exit_code: Option<i32>,
    /// Python's exception name, `KernelDied`, `KernelBusy`, …
    pub ename: String,
    /// The message.
    pub evalue: String,
    /// The whole traceback, plain.
    pub traceback: Vec<String>,
    /// The traceback cut to the user's frames.
    pub traceback_user: String,
    /// Time of the cell in milliseconds, by the kernel.
    pub duration_ms: Option<f64>,
    /// The same by the supervisor.
    pub elapsed_ms: f64,
    /// By stream name.
    pub streams: BTreeMap<String, StreamCount>,
    /// The working directory.
    pub files: FileChanges,
    /// The variables.
    pub variables: VariableChanges,
    /// Packages that are installed, where a module was not found.
    pub installed: Vec<String>,
    /// The supervisor did not run it; the kind of refusal is in `ename`.
    pub refused: bool,
    /// An interrupt was sent to it.
    pub interrupted: bool,
    /// Displays that did not fit into its budget.
    pub dropped_displays: u64,
    /// Processes of the sandbox that were killed for memory meanwhile.
    pub oom_kills: u64,
    /// Set where the kernel died.
    pub cause: Option<Cause>,
}

/// A display, its update, or a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Display {
    /// The MIME bundle.
    pub data: Map<String, Value>,
    /// Its metadata; ours is under `codeinterp`.
    pub metadata: Map<String, Value>,
    /// The display's id, where it has one.
    pub transient: Map<String, Value>,
}

/// The supervisor's first message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Greeting {
    /// Version of the protocol on the pipe.
    pub protocol: u32,
    /// Version of Python.
    pub python: String,
    /// The working directory inside.
    pub workdir: String,
}

/// A new kernel serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KernelReady {
    /// `start`, `died` or `restart`.
    pub cause: String,
    /// Packages that it has loaded already.
    pub loaded: Vec<String>,
    /// Packages of the data stack that cannot be loaded, each with its error.
    pub missing: Vec<String>,
}

/// Answer about a file's transfer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileReply {
    /// Bytes transferred.
    pub bytes: u64,
    /// Hex SHA-256 of them.
    pub sha256: String,
}

/// Files of the working directory.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct FileList {
    /// Regular files.
    pub files: Vec<FileEntry>,
    /// Further ones, counted only.
    pub omitted: u64,
}

/// Checks a relative path that came out of the sandbox.
pub fn is_safe_path(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= 1024
        && !path.chars().any(|letter| letter.is_control() || letter == '\\')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_safe() {
        for path in ["a.csv", "out/图表 1.png", "a/b/c", "..x", "a..b"] {
            assert!(is_safe_path(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\nb", "a\0", "a\\b", "a/"] {
            assert!(!is_safe_path(path), "{path:?}");
        }
    }
}
