//! Everything that can happen to the server. The main loop takes one after the other.

use std::sync::Arc;

use tokio::sync::oneshot;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc;
use url::Url;

use super::chat::ChatDelta;
use super::commands::Prepared;
use super::documents::Text;
use super::runs::Recalled;
use crate::agent::ports::Progress;
use crate::agent::run::RunStatus;
use crate::profile::live::LiveProfile;
use crate::session::Session;

/// Where the answer of a request goes. Dropping it unanswered answers with an internal error.
pub type Reply<T> = oneshot::Sender<jsonrpc::Result<T>>;

/// Something that happened.
pub enum Event {
    /// `initialize`
    Initialize(Box<lsp::InitializeParams>, Reply<lsp::InitializeResult>),
    /// `initialized`
    Initialized,
    /// `shutdown`
    Shutdown(Reply<()>),
    /// `textDocument/didOpen`
    DidOpen(lsp::DidOpenTextDocumentParams),
    /// `textDocument/didChange`
    DidChange(lsp::DidChangeTextDocumentParams),
    /// `textDocument/didSave`
    DidSave(lsp::DidSaveTextDocumentParams),
    /// `textDocument/didClose`
    DidClose(lsp::DidCloseTextDocumentParams),
    /// `workspace/didChangeWorkspaceFolders`
    FoldersChanged(lsp::DidChangeWorkspaceFoldersParams),
    /// `workspace/didChangeConfiguration`
    ConfigurationChanged(lsp::DidChangeConfigurationParams),
    /// `window/workDoneProgress/cancel`
    ProgressCancelled(lsp::WorkDoneProgressCancelParams),
    /// `codeinterp/chatDelta`
    ChatDelta(ChatDelta),
    /// `textDocument/hover`
    Hover(lsp::HoverParams, Reply<Option<lsp::Hover>>),
    /// `textDocument/inlayHint`
    InlayHint(lsp::InlayHintParams, Reply<Option<Vec<lsp::InlayHint>>>),
    /// `textDocument/codeAction`
    CodeAction(lsp::CodeActionParams, Reply<Option<Vec<lsp::CodeActionResponse>>>),
    /// `textDocument/codeLens`
    CodeLens(lsp::CodeLensParams, Reply<Option<Vec<lsp::CodeLens>>>),
    /// `textDocument/documentLink`
    DocumentLink(lsp::DocumentLinkParams, Reply<Option<Vec<lsp::DocumentLink>>>),
    /// `workspace/textDocumentContent`
    Content(lsp::TextDocumentContentParams, Reply<lsp::TextDocumentContentResult>),
    /// `workspace/executeCommand`
    Command(lsp::ExecuteCommandParams, Reply<Option<serde_json::Value>>),

    /// Typing in a document has paused: its live profile is due.
    ProfileDue(Url),
    /// A live profile was made of a document's text, or given up.
    Profiled(Profiled),
    /// The client answered with its settings.
    Configuration(serde_json::Value),
    /// Results of earlier servers stand on a document that was opened.
    Recalled {
        /// The document.
        uri: Url,
        /// Its session.
        session: Arc<Session>,
        /// The runs, newest first.
        found: Vec<Recalled>,
    },
    /// The inputs of a run were read: it can be queued, or can't be.
    Prepared {
        /// The number by which edits since are known.
        number: u64,
        /// The run.
        prepared: jsonrpc::Result<Box<Prepared>>,
        /// Where its id is waited for.
        reply: Reply<Option<serde_json::Value>>,
    },
    /// A run went on.
    Run(u64, RunUpdate),
}

/// A live profile and what it was made of.
pub struct Profiled {
    /// The document.
    pub uri: Url,
    /// The revision of its text.
    pub revision: u64,
    /// The text.
    pub text: Text,
    /// It was given up, because the text had changed and nobody waited for it.
    pub abandoned: bool,
    /// What was found; `None` where the text is no table.
    pub profile: Option<Arc<LiveProfile>>,
}

/// How a run went on.
#[derive(Debug, Clone)]
pub enum RunUpdate {
    /// It has this status, not yet a final one.
    Status(RunStatus),
    /// A step began.
    Step(u32),
    /// Long work outside of the model.
    Progress(Progress),
    /// It is over; record, report and artifacts can be read.
    Concluded,
}
