//! The editor's own models (VS Code's `vscode.lm` and the like), asked over a channel that the language server gives.
//! No key is needed, and nothing is sent but to the editor.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::conversation::{FinishReason, Message, ToolCall, ToolSpec, Turn, TurnDelta, TurnRequest, Usage};
use crate::agent::ports::{EDITOR, Model, ModelError, ModelInfo, Sink};

/// What the editor is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatQuestion {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools that may be called; empty where none are offered.
    pub tools: Vec<ToolSpec>,
}

/// What the editor's model answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatReply {
    /// The whole text.
    pub text: String,
    /// Calls: name and arguments.
    pub tool_calls: Vec<(String, Value)>,
    /// `stop`, `length`, `tool_calls`, … Unknown words are kept as they are.
    pub finish_reason: String,
}

/// The editor's side of a chat. The language server implements it over its connection.
#[async_trait]
pub trait ChatClient: Send + Sync {
    /// Asks the editor and waits for the whole answer; text that streams is given to `deltas` meanwhile.
    /// Cancellation withdraws the request. The error is a sentence for the person.
    async fn chat(&self, question: ChatQuestion, deltas: Sink<'_, String>, cancel: &CancellationToken) -> Result<ChatReply, String>;
}

/// The model `editor`.
pub struct EditorModel {
    client: Arc<dyn ChatClient>,
}

impl EditorModel {
    /// The editor's model behind this client.
    pub fn new(client: Arc<dyn ChatClient>) -> Self {
        Self { client }
    }
}

/// Bytes of an answer that are taken.
const MAX_REPLY_BYTES: usize = 4 << 20;

#[async_trait]
impl Model for EditorModel {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "editor".to_owned(),
            destination: Some(EDITOR.to_owned()),
            tools: true,
            vision: false,
            language_model: true,
            context_tokens: None,
        }
    }

    async fn turn(&self, request: &TurnRequest, deltas: Sink<'_, TurnDelta>, cancel: &CancellationToken) -> Result<Turn, ModelError> {
        let question = ChatQuestion { messages: request.messages.clone(), tools: request.tools.clone() };
        let stream = |text: String| deltas(TurnDelta::Text(text));
        let reply = tokio::select! {
            reply = self.client.chat(question, &stream, cancel) => reply,
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
        };
        let reply = reply.map_err(|reason| {
            // The client may notice the cancellation before this task does.
            if cancel.is_cancelled() {
                return ModelError::Cancelled;
            }
            ModelError::Unreachable { destination: "editor".to_owned(), reason }
        })?;
        let calls: usize = reply.tool_calls.iter().map(|(_, arguments)| arguments.to_string().len()).sum();
        if reply.text.len() + calls > MAX_REPLY_BYTES {
            return Err(ModelError::Malformed(format!("the answer has more than {MAX_REPLY_BYTES} bytes")));
        }
        let tool_calls: Vec<ToolCall> = reply
            .tool_calls
            .into_iter()
            .enumerate()
            .map(|(index, (name, arguments))| ToolCall { id: format!("call_{index}"), name, arguments, signatures: Vec::new() })
            .collect();
        let finish = match reply.finish_reason.as_str() {
            "length" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            "cancelled" => return Err(ModelError::Cancelled),
            "error" => return Err(ModelError::Incomplete("the editor's model reported an error".to_owned())),
            _ if !tool_calls.is_empty() => FinishReason::ToolCalls,
            "stop" | "" | "tool_calls" => FinishReason::Stop,
            other => FinishReason::Other(other.chars().take(100).collect()),
        };
        Ok(Turn { text: reply.text, reasoning: None, tool_calls, finish, usage: Usage::default() })
    }

    async fn preview(&self, request: &TurnRequest) -> Result<Option<Vec<u8>>, ModelError> {
        let body = serde_json::json!({"messages": request.messages, "tools": request.tools});
        serde_json::to_vec_pretty(&body).map(Some).map_err(|error| ModelError::Settings(error.to_string()))
    }
}
