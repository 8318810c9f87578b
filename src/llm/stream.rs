//! Reads one turn out of a provider's stream. A stream that ends without its end mark is incomplete.

use std::time::Instant;

use futures::StreamExt;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd, Usage as ProviderUsage};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::compatible::tell;
use super::faults::{Asked, Fault};
use super::http::Deadlines;
use super::redact::{Redactor, Streamed};
use crate::agent::conversation::{FinishReason, ToolCall, Turn, TurnDelta, Usage};
use crate::agent::ports::{ModelError, Sink};

/// Bytes of text, reasoning and arguments that a turn may have.
const MAX_TURN_BYTES: usize = 4 << 20;
/// Calls that a turn may have.
const MAX_CALLS: usize = 64;

/// Why a stream gave no turn.
#[derive(Debug)]
pub enum Broken {
    /// An error of genai's.
    Genai(Box<genai::Error>),
    /// One of ours.
    Fault(Fault),
}

/// What came so far.
#[derive(Debug, Default)]
struct Collected {
    text: String,
    reasoning: String,
    /// What of both is told already.
    told: Streamed,
    thought: Streamed,
    calls: Vec<ToolCall>,
    pieces: usize,
}

/// Reads the stream to its end.
pub async fn read(
    mut stream: ChatStream,
    asked: &Asked<'_>,
    deadlines: &Deadlines,
    deltas: Sink<'_, TurnDelta>,
    cancel: &CancellationToken,
) -> Result<Turn, Broken> {
    let started = Instant::now();
    let mut collected = Collected::default();
    loop {
        let wait = if collected.pieces == 0 { deadlines.first } else { deadlines.idle };
        let left = deadlines.turn.saturating_sub(started.elapsed());
        let event = tokio::select! {
            event = tokio::time::timeout(wait.min(left), stream.next()) => event,
            () = cancel.cancelled() => return Err(Broken::Fault(cancelled())),
        };
        let Ok(event) = event else { return Err(Broken::Fault(asked.silent(wait.min(left), collected.pieces == 0))) };
        match event {
            None => return Err(Broken::Fault(asked.incomplete("the stream ended before the turn was complete"))),
            Some(Err(error)) => return Err(Broken::Genai(Box::new(error))),
            Some(Ok(event)) => {
                if let Some(end) = collected.take(event, asked, deltas)? {
                    tell(TurnDelta::Reasoning, collected.thought.finish(), deltas);
                    tell(TurnDelta::Text, collected.told.finish(), deltas);
                    return Ok(collected.into_turn(&end, asked.redactor));
                }
            }
        }
    }
}

impl Collected {
    /// Takes one event in; gives the end where it is one.
    fn take(&mut self, event: ChatStreamEvent, asked: &Asked<'_>, deltas: Sink<'_, TurnDelta>) -> Result<Option<StreamEnd>, Broken> {
        match event {
            // The start is told before the request is sent; heartbeats hold nothing.
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat => return Ok(None),
            ChatStreamEvent::End(end) => return Ok(Some(end)),
            ChatStreamEvent::Chunk(chunk) => {
                self.text.push_str(&chunk.content);
                tell(TurnDelta::Text, self.told.push(asked.redactor, &chunk.content), deltas);
            }
            ChatStreamEvent::ReasoningChunk(chunk) => {
                self.reasoning.push_str(&chunk.content);
                tell(TurnDelta::Reasoning, self.thought.push(asked.redactor, &chunk.content), deltas);
            }
            ChatStreamEvent::ThoughtSignatureChunk(_) => {}
            ChatStreamEvent::ToolCallChunk(chunk) => self.call(chunk.tool_call),
        }
        self.pieces += 1;
        let arguments: usize = self.calls.iter().map(weight).sum();
        if self.text.len() + self.reasoning.len() + arguments > MAX_TURN_BYTES || self.calls.len() > MAX_CALLS {
            return Err(Broken::Fault(asked.unreadable(&format!("the turn has more than {MAX_TURN_BYTES} bytes or {MAX_CALLS} calls"))));
        }
        Ok(None)
    }

    /// A whole call, or a piece of one. A piece has no name and the id `call_<index>` (genai's, in `OpenAI`'s protocol).
    fn call(&mut self, piece: genai::chat::ToolCall) {
        let index = piece.call_id.strip_prefix("call_").and_then(|index| index.parse::<usize>().ok());
        if piece.fn_name.is_empty() {
            let at = index.filter(|index| *index < self.calls.len()).or(self.calls.len().checked_sub(1));
            if let (Some(at), Value::String(more)) = (at, &piece.fn_arguments)
                && let Value::String(arguments) = &mut self.calls[at].arguments
            {
                arguments.push_str(more);
            }
            return;
        }
        self.calls.push(tool_call(piece));
    }

    fn into_turn(self, end: &StreamEnd, redactor: &Redactor) -> Turn {
        let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
        let finish = end.captured_stop_reason.clone().map(finish);
        let mut calls = self.calls;
        if calls.is_empty()
            && let Some(captured) = end.captured_tool_calls()
        {
            calls.extend(captured.into_iter().cloned().map(tool_call));
        }
        let tool_calls: Vec<ToolCall> =
            calls.into_iter().map(|call| ToolCall { arguments: redactor.value(parsed(call.arguments)), ..call }).collect();
        let finish = finish.unwrap_or(if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls });
        Turn {
            text: redactor.text(&self.text),
            reasoning: Some(redactor.text(&self.reasoning)).filter(|text| !text.is_empty()),
            tool_calls,
            finish,
            usage,
        }
    }
}

fn tool_call(call: genai::chat::ToolCall) -> ToolCall {
    ToolCall { id: call.call_id, name: call.fn_name, arguments: call.fn_arguments, signatures: call.thought_signatures.unwrap_or_default() }
}

/// Bytes that a call takes, about.
fn weight(call: &ToolCall) -> usize {
    call.arguments.as_str().map_or(64, str::len) + call.signatures.iter().map(String::len).sum::<usize>()
}

/// The fault of a request that was cancelled.
pub fn cancelled() -> Fault {
    Fault { error: ModelError::Cancelled, retry: false, after: None }
}

/// Arguments as JSON where they are; half of them stay text and are refused later.
fn parsed(arguments: Value) -> Value {
    match &arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or(arguments),
        _ => arguments,
    }
}

/// Why the model stopped.
pub fn finish(reason: StopReason) -> FinishReason {
    match reason {
        StopReason::Completed(_) | StopReason::StopSequence(_) => FinishReason::Stop,
        StopReason::MaxTokens(_) => FinishReason::Length,
        StopReason::ToolCall(_) => FinishReason::ToolCalls,
        StopReason::ContentFilter(_) => FinishReason::ContentFilter,
        StopReason::Other(words) => FinishReason::Other(words.chars().take(100).collect()),
    }
}

/// Tokens as the provider counts them.
pub fn usage(usage: &ProviderUsage) -> Usage {
    let count = |tokens: Option<i32>| u64::try_from(tokens.unwrap_or_default()).unwrap_or_default();
    Usage { input_tokens: count(usage.prompt_tokens), output_tokens: count(usage.completion_tokens) }
}
