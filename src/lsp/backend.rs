//! The protocol's methods. Each only enqueues an event, before anything is awaited, so that events stand in the order
//! in which the messages came; the main loop does the work and answers.

use tokio::sync::{mpsc, oneshot};
use tower_lsp::LanguageServer;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, Result};

use super::chat::ChatDelta;
use super::event::{Event, Reply};

/// The end of the queue that the protocol crate calls.
#[derive(Debug)]
pub struct Backend {
    events: mpsc::UnboundedSender<Event>,
}

impl Backend {
    /// A backend that enqueues into `events`.
    pub fn new(events: mpsc::UnboundedSender<Event>) -> Self {
        Self { events }
    }

    /// Enqueues a notification.
    fn tell(&self, event: Event) {
        // The main loop is gone when the connection ends.
        let _ = self.events.send(event);
    }

    /// Enqueues a request and waits for its answer. A handler that panicked has dropped the reply.
    async fn ask<T>(&self, event: impl FnOnce(Reply<T>) -> Event) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(event(reply));
        answer.await.unwrap_or_else(|_| {
            let mut error = Error::internal_error();
            error.message = "the request failed inside codeinterp; its log on stderr says why".into();
            Err(error)
        })
    }

    /// `window/workDoneProgress/cancel`, which the protocol crate does not route.
    #[allow(clippy::unused_async, reason = "the form that the protocol crate takes")]
    pub async fn progress_cancelled(&self, params: lsp::WorkDoneProgressCancelParams) {
        self.tell(Event::ProgressCancelled(params));
    }

    /// `codeinterp/chatDelta`
    #[allow(clippy::unused_async, reason = "the form that the protocol crate takes")]
    pub async fn chat_delta(&self, params: ChatDelta) {
        self.tell(Event::ChatDelta(params));
    }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: lsp::InitializeParams) -> Result<lsp::InitializeResult> {
        self.ask(|reply| Event::Initialize(Box::new(params), reply)).await
    }

    async fn initialized(&self, _: lsp::InitializedParams) {
        self.tell(Event::Initialized);
    }

    async fn shutdown(&self) -> Result<()> {
        self.ask(Event::Shutdown).await
    }

    async fn did_open(&self, params: lsp::DidOpenTextDocumentParams) {
        self.tell(Event::DidOpen(params));
    }

    async fn did_change(&self, params: lsp::DidChangeTextDocumentParams) {
        self.tell(Event::DidChange(params));
    }

    async fn did_save(&self, params: lsp::DidSaveTextDocumentParams) {
        self.tell(Event::DidSave(params));
    }

    async fn did_close(&self, params: lsp::DidCloseTextDocumentParams) {
        self.tell(Event::DidClose(params));
    }

    async fn did_change_workspace_folders(&self, params: lsp::DidChangeWorkspaceFoldersParams) {
        self.tell(Event::FoldersChanged(params));
    }

    async fn did_change_configuration(&self, params: lsp::DidChangeConfigurationParams) {
        self.tell(Event::ConfigurationChanged(params));
    }

    // Sent by clients that watch files for other servers, too; the sandbox reads files when a run starts.
    async fn did_change_watched_files(&self, _: lsp::DidChangeWatchedFilesParams) {}

    async fn hover(&self, params: lsp::HoverParams) -> Result<Option<lsp::Hover>> {
        self.ask(|reply| Event::Hover(params, reply)).await
    }

    async fn inlay_hint(&self, params: lsp::InlayHintParams) -> Result<Option<Vec<lsp::InlayHint>>> {
        self.ask(|reply| Event::InlayHint(params, reply)).await
    }

    async fn code_action(&self, params: lsp::CodeActionParams) -> Result<Option<Vec<lsp::CodeActionResponse>>> {
        self.ask(|reply| Event::CodeAction(params, reply)).await
    }

    async fn code_lens(&self, params: lsp::CodeLensParams) -> Result<Option<Vec<lsp::CodeLens>>> {
        self.ask(|reply| Event::CodeLens(params, reply)).await
    }

    async fn document_link(&self, params: lsp::DocumentLinkParams) -> Result<Option<Vec<lsp::DocumentLink>>> {
        self.ask(|reply| Event::DocumentLink(params, reply)).await
    }

    async fn execute_command(&self, params: lsp::ExecuteCommandParams) -> Result<Option<serde_json::Value>> {
        self.ask(|reply| Event::Command(params, reply)).await
    }

    async fn text_document_content(&self, params: lsp::TextDocumentContentParams) -> Result<lsp::TextDocumentContentResult> {
        self.ask(|reply| Event::Content(params, reply)).await
    }
}
