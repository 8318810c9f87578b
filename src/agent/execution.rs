//! What one execution in the sandbox did. Everything in here came out of the sandbox and is hostile: it is
//! bounded by whoever builds it and must be escaped by whoever shows it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A Jupyter MIME bundle: MIME type → data (text, or base64 text for binary types, or JSON for `+json` types).
pub type MimeBundle = serde_json::Map<String, serde_json::Value>;

/// The text of a bundle's representation of this type. Notebooks allow a list of lines for it.
pub fn text_of(data: &MimeBundle, mime: &str) -> Option<String> {
    match data.get(mime)? {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(lines) => Some(lines.iter().filter_map(serde_json::Value::as_str).collect()),
        _ => None,
    }
}

/// Which stream a piece of text was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One output of an execution, in the order in which it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "output_type", rename_all = "snake_case")]
pub enum Output {
    /// Text that was written to a stream (consecutive pieces are joined).
    Stream {
        /// The stream.
        name: StreamName,
        /// The kept text.
        text: String,
    },
    /// The value of the cell's last expression.
    ExecuteResult {
        /// Its representations.
        data: MimeBundle,
    },
    /// Something that was displayed: a figure, a table, HTML.
    DisplayData {
        /// Its representations.
        data: MimeBundle,
        /// Set where a later `update_display_data` may replace it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_id: Option<String>,
    },
    /// An exception.
    Error(ExecutionError),
}

/// An exception, or the cause of death of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionError {
    /// Python's exception name, or `Timeout`, `OutOfMemory`, `Interrupted`, `KernelDied`.
    pub ename: String,
    /// The message.
    pub evalue: String,
    /// The traceback as plain text, cut to the user's frames.
    pub traceback: String,
}

impl ExecutionError {
    /// The line of the executed code, from 1, at which it raised: that of the outermost frame that the traceback
    /// names, and of code that can't be parsed the line that is wrong. `None` where the traceback names no line.
    pub fn line(&self) -> Option<u64> {
        let mut frames = self.traceback.lines().filter_map(|line| line.trim_start().strip_prefix("Cell "));
        frames.find_map(|frame| {
            let digits: String = frame.split_once(", line ")?.1.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
    }
}

/// How much of a stream was kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Bytes in the record.
    pub kept_bytes: u64,
    /// Bytes that the execution wrote.
    pub total_bytes: u64,
}

/// A file that an execution created or changed in the working directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the working directory, checked: no `..`, no absolute path, no control characters.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Hex SHA-256 of the contents, where it was small enough to be hashed.
    pub sha256: Option<String>,
    /// False where it existed before and was changed.
    pub created: bool,
}

/// A variable of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type, for example `DataFrame`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its shape where it has one, for example `[150, 5]`; one number for sized collections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Its size in memory in bytes where that is cheap to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// A bounded `repr`.
    pub repr: String,
}

impl Variable {
    /// Its shape as people read it: `150 × 5`.
    pub fn dimensions(&self) -> Option<String> {
        let lengths: Vec<String> = self.shape.as_ref()?.iter().map(u64::to_string).collect();
        Some(lengths.join(" × "))
    }
}

/// A description of a figure in words and numbers, for models that do not see and for alternative texts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FigureDescription {
    /// The display it belongs to, counted from 0 among the execution's image displays.
    pub index: usize,
    /// The figure's or first axes' title.
    pub title: Option<String>,
    /// Everything else the sandbox could tell: axes, labels, series with ranges and numbers of points.
    pub detail: serde_json::Value,
}

/// One execution, finished in whatever way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// 0 ok, 1 exception, N for `sys.exit(N)`, -1 timeout, 130 interrupted, 137 out of memory, 128+signal for another death.
    pub exit_code: i32,
    /// The exception or cause of death.
    pub error: Option<ExecutionError>,
    /// Outputs in order, with `clear_output` and `update_display_data` already applied.
    pub outputs: Vec<Output>,
    /// All kept standard output.
    pub stdout: String,
    /// All kept standard error; `Execution timeout` for a timeout.
    pub stderr: String,
    /// `text/plain` of the execution's result, marked `[DataFrame r×c]` where it is one.
    pub result: Option<String>,
    /// How long it ran.
    pub duration: Duration,
    /// Set where less was kept than was written.
    pub truncated: Option<Truncation>,
    /// Files created or changed in the working directory.
    pub files: Vec<FileChange>,
    /// What was not taken over, and why (a symlink, a FIFO, too many files), and what is not this execution's own doing.
    pub skipped_files: Vec<String>,
    /// Variables that are new or have another type or shape than before.
    pub variables: Vec<Variable>,
    /// Descriptions of the figures that were displayed.
    pub figures: Vec<FigureDescription>,
    /// The kernel was replaced: every variable is gone.
    pub variables_lost: bool,
}

/// What is seen while an execution runs.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutionEvent {
    /// Text was written; bounded, the rest is counted.
    Stream(StreamName, String),
    /// Something was displayed or is the result.
    Output(Output),
    /// `clear_output` was called.
    Clear,
    /// `update_display_data`: the display of this id is now this.
    Update(String, MimeBundle),
    /// The execution is being interrupted, or the kernel had to be killed; a sentence.
    Notice(String),
}
