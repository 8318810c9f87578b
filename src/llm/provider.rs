//! A language model at a provider or an OpenAI-compatible server, by genai over our HTTP client.

use async_trait::async_trait;
use genai::Client;
use genai::chat::ChatOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::faults::{Asked, Fault};
use super::http::{self, Deadlines};
use super::redact::Redactor;
use super::stream::{self, Broken};
use super::target::Target;
use super::{convert, preview, retry};
use crate::agent::conversation::{FinishReason, ToolCall, Turn, TurnDelta, TurnRequest};
use crate::agent::ports::{Model, ModelError, ModelInfo, Sink};
use crate::config::Settings;

/// Tokens of context that Ollama is asked to keep: its own default (4,096) forgets the start of an analysis silently.
const OLLAMA_CONTEXT: u64 = 16_384;

/// A model over HTTP.
#[derive(Debug)]
pub struct Provider {
    client: Client,
    target: Target,
    /// Name as configured.
    name: String,
    deadlines: Deadlines,
    redactor: Redactor,
}

impl Provider {
    /// The provider that the settings name. Nothing is sent yet.
    pub fn new(settings: &Settings) -> Result<Self, ModelError> {
        Self::with_deadlines(settings, Deadlines::from_environment())
    }

    /// The provider that the settings name, with deadlines of the caller's.
    pub fn with_deadlines(settings: &Settings, deadlines: Deadlines) -> Result<Self, ModelError> {
        let target = Target::of(
            settings,
            &Client::builder().with_reqwest(http::client("", &deadlines)?).build().map_err(|error| unusable(&error))?,
        )?;
        let client = Client::builder().with_reqwest(http::client(&target.host, &deadlines)?).build().map_err(|error| unusable(&error))?;
        let name = settings.model.clone().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| target.model.clone());
        let redactor = Redactor::new(target.key.as_deref());
        Ok(Self { client, target, name, deadlines, redactor })
    }

    fn options(&self, request: &TurnRequest) -> ChatOptions {
        let mut options = ChatOptions::default().with_capture_usage(true);
        if let Some(most) = request.max_output_tokens {
            options = options.with_max_tokens(most);
        }
        if self.target.custom {
            // genai takes endings such as `-high` off a model's name; another server's model may be called just so.
            options.with_extra_body(json!({"model": self.target.model}))
        } else if self.is_ollama() {
            options.with_capture_tool_calls(true).with_extra_body(json!({"options": {"num_ctx": OLLAMA_CONTEXT}}))
        } else {
            options.with_capture_tool_calls(true)
        }
    }

    fn is_ollama(&self) -> bool {
        matches!(self.target.service.model.adapter_kind, genai::adapter::AdapterKind::Ollama)
    }

    fn asked(&self, request: &TurnRequest) -> Asked<'_> {
        Asked { host: &self.target.host, model: &self.target.model, tools: !request.tools.is_empty(), redactor: &self.redactor }
    }

    /// One request.
    async fn attempt(&self, request: &TurnRequest, deltas: Sink<'_, TurnDelta>, cancel: &CancellationToken) -> Result<Turn, Fault> {
        let asked = self.asked(request);
        let options = self.options(request);
        let response = self
            .client
            .exec_chat_stream(self.target.service.clone(), convert::request(request), Some(&options))
            .await
            .map_err(|error| asked.fault(&error))?;
        match stream::read(response.stream, &self.target.host, &self.deadlines, &self.redactor, deltas, cancel).await {
            Ok(turn) => Ok(turn),
            Err(Broken::Genai(error)) => Err(asked.fault(&error)),
            Err(Broken::Model(error)) => Err(Fault { error, retry: false, after: None }),
            // Some servers answer in one piece although a stream was asked for.
            Err(Broken::Nothing) => self.whole(request, &options, cancel).await,
        }
    }

    /// One request whose answer comes in one piece.
    async fn whole(&self, request: &TurnRequest, options: &ChatOptions, cancel: &CancellationToken) -> Result<Turn, Fault> {
        let asked = self.asked(request);
        let chat = self.client.exec_chat(self.target.service.clone(), convert::request(request), Some(options));
        let answered = tokio::select! {
            answered = tokio::time::timeout(self.deadlines.first, chat) => answered,
            () = cancel.cancelled() => return Err(Fault { error: ModelError::Cancelled, retry: false, after: None }),
        };
        let permanent = |error: ModelError| Fault { error, retry: false, after: None };
        let Ok(response) = answered else {
            let reason = format!("it did not answer within {:.0} s", self.deadlines.first.as_secs_f64());
            return Err(permanent(ModelError::Unreachable { destination: self.target.host.clone(), reason }));
        };
        let response = response.map_err(|error| match error {
            // This error holds the whole request; only its cause is told.
            genai::Error::ChatResponseGeneration { cause, .. } => permanent(ModelError::Malformed(self.redactor.message(&cause))),
            error => asked.fault(&error),
        })?;
        let Some(finish) = response.stop_reason.clone().map(stream::finish) else {
            return Err(permanent(ModelError::Incomplete("the answer does not say that it is complete".to_owned())));
        };
        let tool_calls: Vec<ToolCall> = response
            .content
            .tool_calls()
            .into_iter()
            .map(|call| ToolCall { id: call.call_id.clone(), name: call.fn_name.clone(), arguments: call.fn_arguments.clone() })
            .collect();
        let finish = if tool_calls.is_empty() || finish == FinishReason::Length { finish } else { FinishReason::ToolCalls };
        Ok(Turn {
            text: self.redactor.text(&response.content.joined_texts().unwrap_or_default()),
            reasoning: response.reasoning_content.clone(),
            tool_calls,
            finish,
            usage: stream::usage(&response.usage),
        })
    }
}

fn unusable(error: &genai::Error) -> ModelError {
    ModelError::Settings(format!("the client of the models can't be made: {error}"))
}

/// Whether the model sees pictures, by its name: families that do at every size.
fn sees(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    [
        "gpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "chatgpt", "o3", "o4", "claude-", "gemini", "pixtral", "-vl", "vision", "llava", "grok-4",
        "llama-4",
    ]
    .iter()
    .any(|family| name.contains(family))
        && !name.contains("o3-mini")
}

#[async_trait]
impl Model for Provider {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: self.name.clone(),
            destination: Some(self.target.host.clone()),
            tools: true,
            vision: sees(&self.target.model),
            language_model: true,
            context_tokens: self.is_ollama().then_some(OLLAMA_CONTEXT),
        }
    }

    async fn turn(&self, request: &TurnRequest, deltas: Sink<'_, TurnDelta>, cancel: &CancellationToken) -> Result<Turn, ModelError> {
        let mut attempt = 1;
        loop {
            let fault = tokio::select! {
                outcome = self.attempt(request, deltas, cancel) => match outcome {
                    Ok(turn) => return Ok(turn),
                    Err(fault) => fault,
                },
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
            };
            let wait = fault.after.unwrap_or_else(|| retry::backoff(attempt));
            if !fault.retry || attempt >= retry::MAX_ATTEMPTS || wait > retry::LONGEST_WAIT {
                return Err(fault.error);
            }
            deltas(TurnDelta::Notice(format!("{}; asking again in {:.1} s", fault.error, wait.as_secs_f64())));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
            }
            attempt += 1;
        }
    }

    async fn preview(&self, request: &TurnRequest) -> Result<Option<Vec<u8>>, ModelError> {
        let client =
            Client::builder().with_reqwest(http::client("127.0.0.1", &self.deadlines)?).build().map_err(|error| unusable(&error))?;
        preview::body(&client, self.target.service.clone(), convert::request(request), &self.options(request)).await.map(Some)
    }
}
