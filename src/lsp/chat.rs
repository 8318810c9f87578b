//! The editor's own models: `codeinterp/chat`, a request to the client, with text that streams back as
//! `codeinterp/chatDelta` and `$/cancelRequest` when the run is cancelled.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use dashmap::DashMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower_lsp::Client;
use tower_lsp::jsonrpc::{Id, Request, Response};
use tower_service::Service;

use crate::agent::conversation::{Message, Role};
use crate::agent::ports::{Model, ModelError, SandboxError, Sink};
use crate::config::Settings;
use crate::llm::editor::{ChatClient, ChatQuestion, ChatReply, EditorModel};
use crate::sandbox::Backend;
use crate::sandbox::consent::Consent;
use crate::session::Services;

/// How long an editor's model may take for one turn.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);

/// Parameters of `codeinterp/chatDelta`.
#[derive(Debug, Clone, Deserialize)]
pub struct ChatDelta {
    /// The chat's id, as `codeinterp/chat` gave it.
    pub id: Value,
    /// More text of the answer.
    pub text: String,
}

/// Answer of `codeinterp/chat`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ChatResult {
    text: String,
    tool_calls: Vec<Call>,
    finish_reason: String,
}

#[derive(Debug, Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Chats with the editor's models.
pub struct Chat {
    client: Client,
    next: AtomicU64,
    /// Where the text of each chat that is under way goes.
    streams: DashMap<u64, mpsc::UnboundedSender<String>>,
}

impl Chat {
    /// Chats over this connection.
    pub fn new(client: Client) -> Self {
        Self { client, next: AtomicU64::new(1), streams: DashMap::new() }
    }

    /// Text arrived. What belongs to no chat that is under way is late or forged, and dropped.
    pub fn delta(&self, delta: ChatDelta) {
        if let Some(stream) = delta.id.as_u64().and_then(|id| self.streams.get(&id)) {
            // The chat has ended meanwhile.
            let _ = stream.send(delta.text);
        }
    }
}

/// Takes a chat's stream away when it ends, in whatever way.
struct Ended<'a>(&'a Chat, u64);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.streams.remove(&self.1);
    }
}

/// Withdraws a request whose answer nobody waits for any more.
struct Withdrawn {
    client: Client,
    request: Option<Id>,
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        if let Some(id) = self.request.take() {
            let notification = Request::build("$/cancelRequest").params(json!({ "id": id })).finish();
            tokio::spawn(self.client.call(notification));
        }
    }
}

#[async_trait]
impl ChatClient for Chat {
    async fn chat(&self, question: ChatQuestion, deltas: Sink<'_, String>, cancel: &CancellationToken) -> Result<ChatReply, String> {
        let chat = self.next.fetch_add(1, Ordering::Relaxed);
        let (stream, mut texts) = mpsc::unbounded_channel();
        self.streams.insert(chat, stream);
        let _ended = Ended(self, chat);
        let messages: Vec<Value> = question.messages.iter().map(message).collect();
        let mut params = json!({"id": chat, "messages": messages});
        if !question.tools.is_empty() {
            params["tools"] = json!(question.tools);
        }
        let id = self.client.next_request_id();
        let request = Request::build("codeinterp/chat").params(params).id(id.clone()).finish();
        let mut client = self.client.clone();
        // Dropped before it is disarmed, by cancellation or a time limit, this withdraws the request.
        let mut withdrawn = Withdrawn { client: client.clone(), request: Some(id) };
        let answer = client.call(request);
        tokio::pin!(answer);
        let late = tokio::time::sleep(PATIENCE);
        tokio::pin!(late);
        let response: Option<Response> = loop {
            tokio::select! {
                () = cancel.cancelled() => return Err("cancelled".to_owned()),
                () = &mut late => return Err("the editor's model did not answer in time; ask again, or choose another model".to_owned()),
                Some(text) = texts.recv() => deltas(text),
                response = &mut answer => break response.map_err(|_| "the connection to the editor has ended".to_owned())?,
            }
        };
        withdrawn.request = None;
        let (_, result) = response.ok_or("the editor gave no answer")?.into_parts();
        let value = result.map_err(|error| format!("the editor's model failed: {}", error.message))?;
        let result: ChatResult = serde_json::from_value(value).map_err(|error| format!("the editor's answer can't be read: {error}"))?;
        Ok(ChatReply {
            text: result.text,
            tool_calls: result.tool_calls.into_iter().map(|call| (call.name, call.arguments)).collect(),
            finish_reason: result.finish_reason,
        })
    }
}

/// A message as editors take it: text by a role. Calls are put into words, since not every editor's model has them.
fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let mut content = message.content.clone();
    for call in &message.tool_calls {
        let code = call.arguments.get("code").and_then(Value::as_str).map_or_else(|| call.arguments.to_string(), str::to_owned);
        content.push_str("\n\n```python\n");
        content.push_str(&code);
        content.push_str("\n```");
    }
    json!({"role": role, "content": content.trim_start_matches('\n')})
}

/// The edges of a process, with the editor's models added.
pub struct EditorServices {
    inner: Arc<dyn Services>,
    chat: Arc<Chat>,
    /// The client answers `codeinterp/chat`.
    pub offered: AtomicBool,
}

impl EditorServices {
    /// Adds the editor's models to `inner`.
    pub fn new(inner: Arc<dyn Services>, chat: Arc<Chat>) -> Self {
        Self { inner, chat, offered: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Services for EditorServices {
    async fn backend(&self, settings: &Settings) -> Result<(Arc<dyn Backend>, String), SandboxError> {
        self.inner.backend(settings).await
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        if settings.model.as_deref().map(str::trim) != Some("editor") {
            return self.inner.model(settings);
        }
        if self.offered.load(Ordering::Relaxed) {
            return Ok(Arc::new(EditorModel::new(Arc::clone(&self.chat) as Arc<dyn ChatClient>)));
        }
        Err(ModelError::Settings(
            "this editor offers no language models to codeinterp; name another one in the setting `model`, or use \"playbook\"".to_owned(),
        ))
    }

    fn state_dir(&self) -> PathBuf {
        self.inner.state_dir()
    }

    fn ask(&self, consent: Arc<dyn Consent>) {
        self.inner.ask(consent);
    }
}
