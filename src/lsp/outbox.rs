//! Everything that this server sends of its own accord.
//!
//! Notifications leave in the order in which they were given, through one task. Requests to the client are made in
//! tasks of their own with a time limit: a client that never answers delays nothing but what waits for that answer.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tower_lsp::Client;
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use super::ext::{RunChanged, RunChangedParams};
use crate::sandbox::consent::{Consent, PackageDownload};

/// How long a client may take to answer what needs no person.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a person may take to answer.
const PERSONS_PATIENCE: Duration = Duration::from_secs(600);

/// A notification to be sent.
#[derive(Debug)]
enum Message {
    RunChanged(RunChangedParams),
    Diagnostics { uri: Url, diagnostics: Vec<lsp::Diagnostic>, version: Option<i32> },
    Progress(lsp::ProgressParams),
    Show(lsp::MessageType, String),
    RefreshHints,
    RefreshLenses,
    RefreshContent(Url),
}

/// Sends to the client. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbox {
    client: Client,
    queue: mpsc::UnboundedSender<Message>,
}

impl Outbox {
    /// Starts the task that sends.
    pub fn new(client: Client) -> Self {
        let (queue, mut messages) = mpsc::unbounded_channel();
        let sender = client.clone();
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                send(&sender, message).await;
            }
        });
        Self { client, queue }
    }

    fn push(&self, message: Message) {
        // The connection is over when nobody takes messages any more.
        let _ = self.queue.send(message);
    }

    /// `codeinterp/runChanged`
    pub fn run_changed(&self, params: RunChangedParams) {
        self.push(Message::RunChanged(params));
    }

    /// `textDocument/publishDiagnostics`
    pub fn diagnostics(&self, uri: Url, diagnostics: Vec<lsp::Diagnostic>, version: Option<i32>) {
        self.push(Message::Diagnostics { uri, diagnostics, version });
    }

    /// `$/progress`
    pub fn progress(&self, params: lsp::ProgressParams) {
        self.push(Message::Progress(params));
    }

    /// `window/showMessage`
    pub fn show(&self, kind: lsp::MessageType, text: impl Into<String>) {
        self.push(Message::Show(kind, text.into()));
    }

    /// `workspace/inlayHint/refresh`
    pub fn refresh_hints(&self) {
        self.push(Message::RefreshHints);
    }

    /// `workspace/codeLens/refresh`
    pub fn refresh_lenses(&self) {
        self.push(Message::RefreshLenses);
    }

    /// `workspace/textDocumentContent/refresh`
    pub fn refresh_content(&self, uri: Url) {
        self.push(Message::RefreshContent(uri));
    }

    /// `window/workDoneProgress/create`; whether the client agreed.
    pub async fn create_progress(&self, token: lsp::ProgressToken) -> bool {
        matches!(tokio::time::timeout(PATIENCE, self.client.create_work_done_progress(token)).await, Ok(Ok(())))
    }

    /// `window/showDocument`; whether it was shown.
    pub async fn show_document(&self, params: lsp::ShowDocumentParams) -> bool {
        matches!(tokio::time::timeout(PATIENCE, self.client.show_document(params)).await, Ok(Ok(true)))
    }

    /// `workspace/configuration` of this server's section.
    pub async fn configuration(&self) -> Option<serde_json::Value> {
        let item = lsp::ConfigurationItem { scope_uri: None, section: Some("codeinterp".to_owned()) };
        match tokio::time::timeout(PATIENCE, self.client.configuration(vec![item])).await {
            Ok(Ok(values)) => values.into_iter().next(),
            _ => None,
        }
    }

    /// Asks the client to tell about changed settings.
    pub async fn register_configuration(&self) {
        let registration = lsp::Registration {
            id: "codeinterp-configuration".to_owned(),
            method: "workspace/didChangeConfiguration".to_owned(),
            register_options: Some(serde_json::json!({"section": "codeinterp"})),
        };
        // A client that refuses tells nothing, and its settings stay what they were at the start.
        let _ = tokio::time::timeout(PATIENCE, self.client.register_capability(vec![registration])).await;
    }

    /// Asks a person to choose one of `answers`. `None` where they chose none of them.
    pub async fn ask(&self, text: String, answers: &[&str]) -> Option<String> {
        let actions =
            answers.iter().map(|&title| lsp::MessageActionItem { title: title.to_owned(), properties: HashMap::default() }).collect();
        let question = self.client.show_message_request(lsp::MessageType::Warning, text, Some(actions));
        match tokio::time::timeout(PERSONS_PATIENCE, question).await {
            Ok(Ok(answer)) => answer.map(|answer| answer.title),
            _ => None,
        }
    }
}

#[async_trait]
impl Consent for Outbox {
    async fn may_download(&self, download: &PackageDownload) -> bool {
        const INSTALL: &str = "Install";
        let text = format!("codeinterp: the sandbox needs {download}.");
        self.ask(text, &[INSTALL, "Not now"]).await.as_deref() == Some(INSTALL)
    }
}

async fn send(client: &Client, message: Message) {
    match message {
        Message::RunChanged(params) => client.send_notification::<RunChanged>(params).await,
        Message::Diagnostics { uri, diagnostics, version } => client.publish_diagnostics(uri, diagnostics, version).await,
        Message::Progress(params) => client.send_notification::<lsp::ProgressNotification>(params).await,
        Message::Show(kind, text) => client.show_message(kind, text).await,
        Message::RefreshHints => refresh(client, |client| async move { client.inlay_hint_refresh().await }),
        Message::RefreshLenses => refresh(client, |client| async move { client.code_lens_refresh().await }),
        Message::RefreshContent(uri) => refresh(client, |client| async move { client.text_document_content_refresh(uri).await }),
    }
}

/// Makes a request whose answer nobody waits for.
fn refresh<F>(client: &Client, request: impl FnOnce(Client) -> F)
where
    F: Future<Output = tower_lsp::jsonrpc::Result<()>> + Send + 'static,
{
    let request = request(client.clone());
    tokio::spawn(async move {
        if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, request).await {
            tracing::debug!(%error, "the client refused a refresh");
        }
    });
}
