//! Messages and tools of the loop in genai's types.

use base64::Engine;
use genai::chat::{ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse};

use crate::agent::conversation::{Message, Role, TurnRequest};

/// The request in genai's types.
pub fn request(request: &TurnRequest) -> ChatRequest {
    let mut system = None;
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message.role {
            Role::System if system.is_none() => system = Some(message.content.clone()),
            Role::System => messages.push(ChatMessage::system(message.content.clone())),
            Role::User => messages.push(ChatMessage::user(content(message))),
            Role::Assistant => messages.push(assistant(message)),
            Role::Tool => {
                let id = message.tool_call_id.clone().unwrap_or_default();
                let response = ToolResponse::new(id, message.content.clone()).with_fn_name(crate::agent::prompt::PYTHON_TOOL);
                messages.push(ChatMessage::from(response));
            }
        }
    }
    let mut chat = ChatRequest::new(messages);
    chat.system = system;
    if !request.tools.is_empty() {
        chat = chat.with_tools(
            request
                .tools
                .iter()
                .map(|tool| Tool::new(tool.name.clone()).with_description(tool.description.clone()).with_schema(tool.parameters.clone())),
        );
    }
    chat
}

fn content(message: &Message) -> MessageContent {
    if message.images.is_empty() {
        return MessageContent::from_text(message.content.clone());
    }
    let mut parts = vec![ContentPart::from_text(message.content.clone())];
    for image in &message.images {
        let data = base64::engine::general_purpose::STANDARD.encode(&image.data);
        parts.push(ContentPart::from_binary_base64(image.mime.clone(), data, Some(image.name.clone())));
    }
    MessageContent::from_parts(parts)
}

fn assistant(message: &Message) -> ChatMessage {
    let mut parts = Vec::new();
    if !message.content.is_empty() {
        parts.push(ContentPart::from_text(message.content.clone()));
    }
    for call in &message.tool_calls {
        parts.push(ContentPart::ToolCall(ToolCall {
            call_id: call.id.clone(),
            fn_name: call.name.clone(),
            fn_arguments: call.arguments.clone(),
            thought_signatures: Some(call.signatures.clone()).filter(|signatures| !signatures.is_empty()),
        }));
    }
    let reasoning = message.reasoning.clone().filter(|text| !text.is_empty());
    // Only models that think in between calls want their reasoning back; elsewhere it is an unknown field.
    let reasoning = reasoning.filter(|_| !message.tool_calls.is_empty());
    ChatMessage::assistant(MessageContent::from_parts(parts)).with_reasoning_content(reasoning)
}
