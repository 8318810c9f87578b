//! An OpenAI-compatible server of the user's own choosing (`endpoint`), asked without genai: its stream reader keeps a
//! line of any length and resizes lists as the server says, which is fine for known providers and not for any server.
//!
//! Wire format: `OpenAI`'s chat completions with `stream: true`, as local servers and gateways speak it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use base64::Engine;
use futures::StreamExt;
use serde_json::{Value, json};

use super::faults::{Asked, Fault};
use super::http::Deadlines;
use super::redact::Streamed;
use super::sse::Decoder;
use crate::agent::conversation::{FinishReason, Message, Role, ToolCall, Turn, TurnDelta, TurnRequest, Usage};
use crate::agent::ports::{ModelError, Sink};

/// Bytes of text, reasoning and arguments that a turn may have, and of an answer in one piece.
const MAX_TURN_BYTES: usize = 4 << 20;
/// Bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Calls that a turn may have.
const MAX_CALLS: usize = 64;

/// A server.
#[derive(Debug)]
pub struct Compatible {
    /// The client.
    pub http: reqwest::Client,
    /// URL of the chat completions.
    pub url: String,
    /// Headers with the key, where there is one.
    pub headers: Vec<(String, String)>,
    /// Name of the model as the server knows it.
    pub model: String,
    /// When to give up.
    pub deadlines: Deadlines,
    /// The server refused to be asked for the number of tokens.
    pub no_usage: AtomicBool,
}

impl Compatible {
    /// The request's body, byte for byte as it is sent.
    pub fn body(&self, request: &TurnRequest) -> Vec<u8> {
        let mut body = json!({"model": self.model, "stream": true});
        if !self.no_usage.load(Ordering::Relaxed) {
            body["stream_options"] = json!({"include_usage": true});
        }
        if let Some(most) = request.max_output_tokens {
            let key = if ["gpt-5", "gpt-6", "o1", "o3", "o4"].iter().any(|family| self.model.starts_with(family)) {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            body[key] = json!(most);
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
            });
            body["tools"] = tools.collect();
        }
        body["messages"] = request.messages.iter().map(message).collect();
        // A value that was built here has no keys that can't be written.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// One request and its turn. A server that does not know how to count tokens is asked once more without.
    pub async fn turn(&self, request: &TurnRequest, asked: &Asked<'_>, deltas: Sink<'_, TurnDelta>) -> Result<Turn, Fault> {
        let outcome = self.once(request, asked, deltas).await;
        match &outcome {
            Err(Fault { error: ModelError::Refused { reason, .. }, .. })
                if reason.contains("stream_options") && !self.no_usage.swap(true, Ordering::Relaxed) =>
            {
                self.once(request, asked, deltas).await
            }
            _ => outcome,
        }
    }

    async fn once(&self, request: &TurnRequest, asked: &Asked<'_>, deltas: Sink<'_, TurnDelta>) -> Result<Turn, Fault> {
        let mut builder =
            self.http.post(&self.url).header("Content-Type", "application/json").header("Accept", "text/event-stream, application/json");
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        let started = Instant::now();
        let sent = tokio::time::timeout(self.deadlines.first, builder.body(self.body(request)).send()).await;
        let response = sent.map_err(|_| asked.silent(self.deadlines.first, true))?.map_err(|error| asked.transport(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
        let mut pieces = response.bytes_stream();
        if !status.is_success() {
            let mut body = Vec::new();
            while let Ok(Some(Ok(piece))) = tokio::time::timeout(self.deadlines.idle, pieces.next()).await {
                body.extend_from_slice(&piece);
                if body.len() > MAX_ERROR_BYTES {
                    break;
                }
            }
            return Err(asked.status(status, &String::from_utf8_lossy(&body), &headers));
        }
        let whole = kind.starts_with("application/json");
        let mut reading = Reading::default();
        let mut decoder = Decoder::default();
        let mut body = Vec::new();
        loop {
            let wait = if reading.pieces == 0 { self.deadlines.first } else { self.deadlines.idle };
            let wait = wait.min(self.deadlines.turn.saturating_sub(started.elapsed()));
            let piece = tokio::time::timeout(wait, pieces.next()).await.map_err(|_| asked.silent(wait, reading.pieces == 0))?;
            let Some(piece) = piece else { break };
            let piece = piece.map_err(|error| asked.cut(&error))?;
            if whole {
                body.extend_from_slice(&piece);
                if body.len() > MAX_TURN_BYTES {
                    return Err(asked.unreadable(&format!("the answer has more than {MAX_TURN_BYTES} bytes")));
                }
                continue;
            }
            for data in decoder.push(&piece).map_err(|error| asked.unreadable(&error.to_string()))? {
                reading.take(&data, asked, deltas)?;
            }
            if reading.done {
                break;
            }
        }
        if whole {
            return reading.whole(&body, asked);
        }
        if !reading.done
            && let Some(data) = decoder.finish().map_err(|error| asked.unreadable(&error.to_string()))?
        {
            reading.take(&data, asked, deltas)?;
        }
        tell(TurnDelta::Reasoning, reading.thought.finish(), deltas);
        tell(TurnDelta::Text, reading.told.finish(), deltas);
        reading.into_turn(&kind, asked)
    }
}

/// Tells a piece of a stream, where there is something in it.
pub(super) fn tell(kind: fn(String) -> TurnDelta, text: String, deltas: Sink<'_, TurnDelta>) {
    if !text.is_empty() {
        deltas(kind(text));
    }
}

/// One message in `OpenAI`'s form.
fn message(message: &Message) -> Value {
    match message.role {
        Role::System => json!({"role": "system", "content": message.content}),
        Role::User if message.images.is_empty() => json!({"role": "user", "content": message.content}),
        Role::User => {
            let mut parts = vec![json!({"type": "text", "text": message.content})];
            parts.extend(message.images.iter().map(|image| {
                let data = base64::engine::general_purpose::STANDARD.encode(&image.data);
                json!({"type": "image_url", "image_url": {"url": format!("data:{};base64,{data}", image.mime)}})
            }));
            json!({"role": "user", "content": parts})
        }
        Role::Tool => json!({"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}),
        Role::Assistant => {
            let content = if message.content.is_empty() && !message.tool_calls.is_empty() { Value::Null } else { json!(message.content) };
            let mut out = json!({"role": "assistant", "content": content});
            if !message.tool_calls.is_empty() {
                out["tool_calls"] = message.tool_calls.iter().map(call).collect();
                // Models that think between calls want their reasoning back; elsewhere it is an unknown field.
                if let Some(reasoning) = &message.reasoning {
                    out["reasoning_content"] = json!(reasoning);
                }
            }
            out
        }
    }
}

fn call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        // Half a call: servers refuse arguments that are no JSON object.
        Value::String(text) => json!({"unreadable": text}).to_string(),
        other => other.to_string(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// What came so far.
#[derive(Debug, Default)]
struct Reading {
    text: String,
    reasoning: String,
    /// What of both is told already.
    told: Streamed,
    thought: Streamed,
    calls: Vec<(String, String, String)>,
    finish: Option<FinishReason>,
    usage: Usage,
    pieces: usize,
    done: bool,
}

impl Reading {
    /// Takes the data of one event in.
    fn take(&mut self, data: &str, asked: &Asked<'_>, deltas: Sink<'_, TurnDelta>) -> Result<(), Fault> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|error| asked.unreadable(&format!("an event is no JSON: {error}")))?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(asked.in_stream(error));
        }
        self.pieces += 1;
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage);
        }
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        if let Some(text) = text_of(&delta["content"]) {
            tell(TurnDelta::Text, self.told.push(asked.redactor, &text), deltas);
            self.text.push_str(&text);
        }
        if let Some(text) = text_of(&delta["reasoning_content"]).or_else(|| text_of(&delta["reasoning"])) {
            tell(TurnDelta::Reasoning, self.thought.push(asked.redactor, &text), deltas);
            self.reasoning.push_str(&text);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(piece);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(finish_of(reason));
        }
        self.bounded(asked)
    }

    /// A piece of a call. Some servers leave the index out and send each call whole.
    fn call(&mut self, piece: &Value) {
        let name = piece["function"]["name"].as_str().unwrap_or_default();
        let index = piece["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let known = index.filter(|index| *index < self.calls.len());
        let at = match known {
            Some(at) => at,
            None if name.is_empty() => match self.calls.len().checked_sub(1) {
                Some(last) => last,
                None => return,
            },
            None => {
                let id =
                    piece["id"].as_str().filter(|id| !id.is_empty()).map_or_else(|| format!("call_{}", self.calls.len()), str::to_owned);
                self.calls.push((id, name.to_owned(), String::new()));
                self.calls.len() - 1
            }
        };
        match &piece["function"]["arguments"] {
            Value::String(more) => self.calls[at].2.push_str(more),
            Value::Null => {}
            whole => self.calls[at].2 = whole.to_string(),
        }
    }

    fn bounded(&self, asked: &Asked<'_>) -> Result<(), Fault> {
        let bytes = self.text.len() + self.reasoning.len() + self.calls.iter().map(|call| call.2.len()).sum::<usize>();
        if bytes > MAX_TURN_BYTES || self.calls.len() > MAX_CALLS {
            return Err(asked.unreadable(&format!("the turn has more than {MAX_TURN_BYTES} bytes or {MAX_CALLS} calls")));
        }
        Ok(())
    }

    /// The turn of an answer in one piece, from a server that does not stream.
    fn whole(mut self, body: &[u8], asked: &Asked<'_>) -> Result<Turn, Fault> {
        let answer: Value = serde_json::from_slice(body).map_err(|error| asked.unreadable(&format!("the answer is no JSON: {error}")))?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(asked.in_stream(error));
        }
        let choice = &answer["choices"][0];
        let said = &choice["message"];
        self.text = text_of(&said["content"]).unwrap_or_default();
        self.reasoning = text_of(&said["reasoning_content"]).or_else(|| text_of(&said["reasoning"])).unwrap_or_default();
        for piece in said["tool_calls"].as_array().into_iter().flatten() {
            self.call(piece);
        }
        self.finish = choice["finish_reason"].as_str().map(finish_of);
        self.usage = usage_of(&answer["usage"]);
        self.pieces = usize::from(choice.is_object());
        self.bounded(asked)?;
        self.into_turn("application/json", asked)
    }

    /// The turn, if it is whole: the server said why it ended, or that the stream is over.
    fn into_turn(self, kind: &str, asked: &Asked<'_>) -> Result<Turn, Fault> {
        if self.pieces == 0 && !self.done {
            let kind: String = kind.chars().take(60).collect();
            return Err(asked.unreadable(&format!("it sent no events of a chat (content type {kind:?})")));
        }
        if self.finish.is_none() && !self.done {
            return Err(asked.incomplete("the stream ended before the turn was complete"));
        }
        let tool_calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .map(|(id, name, arguments)| ToolCall {
                id,
                name,
                arguments: asked.redactor.value(serde_json::from_str(&arguments).unwrap_or(Value::String(arguments))),
                signatures: Vec::new(),
            })
            .collect();
        let finish = self.finish.unwrap_or(if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls });
        Ok(Turn {
            text: asked.redactor.text(&self.text),
            reasoning: Some(asked.redactor.text(&self.reasoning)).filter(|text| !text.is_empty()),
            tool_calls,
            finish,
            usage: self.usage,
        })
    }
}

/// Text, or the text parts of a list of parts.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
    .filter(|text| !text.is_empty())
}

fn usage_of(usage: &Value) -> Usage {
    let count = |key: &str| usage[key].as_u64().unwrap_or_default();
    Usage { input_tokens: count("prompt_tokens"), output_tokens: count("completion_tokens") }
}

fn finish_of(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" | "end_turn" => FinishReason::Stop,
        "length" | "max_tokens" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.chars().take(100).collect()),
    }
}
