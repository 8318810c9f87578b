//! The protocol's extensions of this server: names and arguments of its commands, its notifications and its
//! initialization options. `editors/vscode/src/lsp_ext.ts` mirrors this file.

use serde::{Deserialize, Serialize};
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

/// The scheme of virtual documents.
pub const SCHEME: &str = "codeinterp";

/// All commands of `workspace/executeCommand`.
pub const COMMANDS: [&str; 16] = [
    "codeinterp.analyzeFile",
    "codeinterp.askSelection",
    "codeinterp.runSelection",
    "codeinterp.followUp",
    "codeinterp.rerun",
    "codeinterp.cancel",
    "codeinterp.listRuns",
    "codeinterp.openReport",
    "codeinterp.openArtifact",
    "codeinterp.saveArtifact",
    "codeinterp.export",
    "codeinterp.variables",
    "codeinterp.clearHints",
    "codeinterp.restartKernel",
    "codeinterp.stopSandbox",
    "codeinterp.status",
];

/// What a client says of itself in `initializationOptions`, beside the settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own in the protocol")]
pub struct ClientOptions {
    /// It shows `codeinterp:` documents by a shim of its own.
    pub virtual_documents: bool,
    /// It wants `codeinterp/runChanged`.
    pub run_events: bool,
    /// It answers `codeinterp/chat`.
    pub chat: bool,
    /// It wants lenses and results in cells of Python and Markdown documents.
    pub cells: bool,
}

/// Arguments of `codeinterp.analyzeFile`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzeFile {
    /// The file.
    pub uri: Url,
    /// The question; a general one where there is none.
    #[serde(default)]
    pub question: Option<String>,
    /// Further files.
    #[serde(default)]
    pub files: Vec<Url>,
}

/// Arguments of `codeinterp.askSelection` and, without a question, of `codeinterp.runSelection`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// The document.
    pub uri: Url,
    /// What is selected in it.
    pub range: lsp::Range,
    /// The question.
    #[serde(default)]
    pub question: Option<String>,
}

/// Arguments of `codeinterp.followUp`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FollowUp {
    /// The earlier run.
    pub run: String,
    /// The question.
    pub question: String,
}

/// Arguments that name a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunArgument {
    /// The run; what none means is said by each command.
    pub run: Option<String>,
}

/// Arguments that name a document, and a variable.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UriArgument {
    /// The document or folder; none: all, or the only one.
    pub uri: Option<Url>,
    /// Name of a variable.
    pub name: Option<String>,
}

/// Arguments of `codeinterp.openArtifact` and `codeinterp.saveArtifact`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactArgument {
    /// The run.
    pub run: String,
    /// The artifact's name.
    pub name: String,
    /// Where it is saved to: a `file:` URI, or a path, relative to the workspace folder.
    #[serde(default)]
    pub to: Option<String>,
    /// Replace what is there.
    #[serde(default)]
    pub overwrite: bool,
}

/// Arguments of `codeinterp.export`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportArgument {
    /// The run.
    pub run: String,
    /// Its form.
    pub to: ExportFormat,
    /// Where it is written to: a `file:` URI, or a path, relative to the workspace folder.
    pub path: String,
    /// Replace what is there.
    #[serde(default)]
    pub overwrite: bool,
}

/// Forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// A Jupyter notebook.
    Notebook,
    /// A Python script.
    Script,
    /// The report.
    Markdown,
}

/// Answer of the commands that start a run.
#[derive(Debug, Clone, Serialize)]
pub struct Started {
    /// Id of the run.
    pub run: String,
    /// Its report.
    pub document: String,
}

/// A run in `codeinterp.listRuns`.
#[derive(Debug, Clone, Serialize)]
pub struct RunRow {
    /// Its id.
    pub run: String,
    /// Its status.
    pub status: &'static str,
    /// What was asked.
    pub question: String,
    /// The document asked about.
    pub uri: Option<String>,
    /// Its report.
    pub document: String,
    /// What it left.
    pub artifacts: Vec<ArtifactRow>,
}

/// An artifact in [`RunRow`].
#[derive(Debug, Clone, Serialize)]
pub struct ArtifactRow {
    /// Its name.
    pub name: String,
    /// Its type.
    pub mime: String,
    /// Absolute path on the host.
    pub path: std::path::PathBuf,
    /// The step that made it.
    pub step: u32,
}

/// Parameters of `codeinterp/runChanged`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunChangedParams {
    /// Id of the run.
    pub run: String,
    /// Its status.
    pub status: String,
    /// The step that is under way or was the last; 0 before the first.
    pub step: u32,
    /// The document asked about.
    pub uri: Option<String>,
    /// Its report.
    pub document: String,
}

/// `codeinterp/runChanged`.
#[derive(Debug)]
pub enum RunChanged {}

impl lsp::Notification for RunChanged {
    type Params = RunChangedParams;
    const METHOD: lsp::LspNotificationMethod<'static> = lsp::LspNotificationMethod::new("codeinterp/runChanged");
    const MESSAGE_DIRECTION: lsp::MessageDirection = lsp::MessageDirection::ServerToClient;
}
