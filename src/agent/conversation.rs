//! Messages to a model and turns from it, independent of any provider's wire format.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Who speaks in a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standing rules; the first message only.
    System,
    /// The person's question, and feedback about executions where the model has no tool calls.
    User,
    /// What the model said.
    Assistant,
    /// The result of a tool call that the model made.
    Tool,
}

/// One call of a tool that the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id; the result is sent back under it.
    pub id: String,
    /// The tool's name, for example `python`.
    pub name: String,
    /// The arguments as the model gave them; not yet checked.
    pub arguments: serde_json::Value,
    /// Opaque words by which a provider knows its own reasoning again (Gemini's thought signatures): sent back with the
    /// call, shown nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
}

/// A picture that goes with a message to models that see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImagePart {
    /// Name of the artifact, so that the picture can be spoken of.
    pub name: String,
    /// `image/png` or `image/jpeg`.
    pub mime: String,
    /// The encoded picture.
    #[serde(skip)]
    pub data: Arc<[u8]>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; may be empty where there are tool calls.
    pub content: String,
    /// Calls that the assistant made in this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Tool`]: the id of the call that this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Reasoning that the provider wants back with the assistant's message; never shown as answer, never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Pictures for models that see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImagePart>,
}

impl Message {
    /// A message of `role` that holds only text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None, reasoning: None, images: Vec::new() }
    }
}

/// A tool that is offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which the model calls it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// What is asked of a model in one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// The conversation so far, system message first.
    pub messages: Vec<Message>,
    /// Tools that may be called; empty where the fenced protocol is used or a conclusion is forced.
    pub tools: Vec<ToolSpec>,
    /// Most tokens that the answer may have.
    pub max_output_tokens: Option<u32>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It said all that it wanted to say.
    Stop,
    /// It asks for tool calls.
    ToolCalls,
    /// It was cut by the token limit: nothing of a half fence or call may run.
    Length,
    /// The provider's filter withheld the answer.
    ContentFilter,
    /// Something else, in the provider's words.
    Other(String),
}

/// Tokens that were charged. Zero where the provider does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// One complete turn of a model. A stream that ended early is a [`ModelError`](super::ports::ModelError), never a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the model said, without its reasoning.
    pub text: String,
    /// Its reasoning, kept apart.
    pub reasoning: Option<String>,
    /// Tool calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it cost.
    pub usage: Usage,
}

/// A piece of a turn while it streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnDelta {
    /// More text of the answer.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// A notice about the transport: a retry, a wait.
    Notice(String),
}
