//! A language model over HTTP: at a known provider, by genai, or at an OpenAI-compatible server.

use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use genai::adapter::AdapterKind;
use genai::chat::ChatOptions;
use genai::resolver::Endpoint;
use genai::{Client, ServiceTarget};
use tokio_util::sync::CancellationToken;

use super::compatible::Compatible;
use super::faults::{Asked, Fault};
use super::http::{self, Deadlines};
use super::redact::Redactor;
use super::stream::{self, Broken};
use super::target::{Service, Target};
use super::{convert, preview, retry};
use crate::agent::conversation::{Turn, TurnDelta, TurnRequest};
use crate::agent::ports::{Model, ModelError, ModelInfo, Sink};
use crate::config::Settings;

/// Tokens of context that Ollama keeps unless its server was told otherwise: what is longer loses its beginning without
/// a word, so the conversation is kept shorter than this. (genai's adapter can't ask for more in the request.)
const OLLAMA_CONTEXT: u64 = 4096;

/// A model over HTTP.
#[derive(Debug)]
pub struct Provider {
    /// Name as configured.
    name: String,
    host: String,
    model: String,
    deadlines: Deadlines,
    redactor: Redactor,
    wire: Wire,
}

/// How requests are made.
#[derive(Debug)]
enum Wire {
    Genai { client: Client, service: Box<ServiceTarget> },
    Compatible(Compatible),
}

impl Provider {
    /// The provider that the settings name. Nothing is sent yet.
    pub fn new(settings: &Settings) -> Result<Self, ModelError> {
        Self::with_deadlines(settings, Deadlines::from_environment())
    }

    /// The provider that the settings name, with deadlines of the caller's.
    pub fn with_deadlines(settings: &Settings, deadlines: Deadlines) -> Result<Self, ModelError> {
        let target = Target::of(settings)?;
        let http = http::client(&target.host, &deadlines)?;
        let wire = match target.service {
            Service::Provider(service) => Wire::Genai { client: genai_client(http)?, service: Box::new(service) },
            Service::Compatible { url, headers } => {
                Wire::Compatible(Compatible { http, url, headers, model: target.model.clone(), deadlines, no_usage: AtomicBool::default() })
            }
        };
        let name = settings.model.clone().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| target.model.clone());
        Ok(Self { name, host: target.host, model: target.model, deadlines, redactor: Redactor::new(target.key.as_deref()), wire })
    }

    /// The same provider at another address, where its own protocol is spoken too: a gateway, or a server of a test's. The
    /// address ends in a slash.
    #[must_use]
    pub fn at(mut self, base_url: &str) -> Self {
        if let Wire::Genai { service, .. } = &mut self.wire {
            service.endpoint = Endpoint::from_owned(base_url);
            base_url.clone_into(&mut self.host);
        }
        self
    }

    fn asked(&self, request: &TurnRequest) -> Asked<'_> {
        Asked { host: &self.host, model: &self.model, tools: !request.tools.is_empty(), redactor: &self.redactor }
    }

    fn is_ollama(&self) -> bool {
        matches!(&self.wire, Wire::Genai { service, .. } if service.model.adapter_kind == AdapterKind::Ollama)
    }

    fn options(request: &TurnRequest) -> ChatOptions {
        let mut options = ChatOptions::default().with_capture_usage(true).with_capture_tool_calls(true);
        if let Some(most) = request.max_output_tokens {
            options = options.with_max_tokens(most);
        }
        options
    }

    /// One request.
    async fn attempt(&self, request: &TurnRequest, deltas: Sink<'_, TurnDelta>, cancel: &CancellationToken) -> Result<Turn, Fault> {
        let asked = self.asked(request);
        match &self.wire {
            Wire::Compatible(server) => server.turn(request, &asked, deltas).await,
            Wire::Genai { client, service } => {
                let options = Self::options(request);
                let response = client
                    .exec_chat_stream(ServiceTarget::clone(service), convert::request(request), Some(&options))
                    .await
                    .map_err(|error| asked.fault(&error))?;
                stream::read(response.stream, &asked, &self.deadlines, deltas, cancel).await.map_err(|broken| match broken {
                    Broken::Genai(error) => asked.fault(&error),
                    Broken::Fault(fault) => fault,
                })
            }
        }
    }
}

fn genai_client(http: reqwest::Client) -> Result<Client, ModelError> {
    Client::builder()
        .with_reqwest(http)
        .build()
        .map_err(|error| ModelError::Settings(format!("the client of the models can't be made: {error}")))
}

/// The context of an Ollama server on this machine, by the variable that sets it there.
fn ollama_context() -> u64 {
    let told = std::env::var("OLLAMA_CONTEXT_LENGTH").ok().and_then(|text| text.trim().parse().ok());
    told.filter(|tokens| (1024..=10_000_000).contains(tokens)).unwrap_or(OLLAMA_CONTEXT)
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
            destination: Some(self.host.clone()),
            tools: true,
            vision: sees(&self.model),
            language_model: true,
            context_tokens: self.is_ollama().then(ollama_context),
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
        match &self.wire {
            Wire::Compatible(server) => Ok(Some(server.body(request))),
            Wire::Genai { service, .. } => {
                let client = genai_client(http::client("127.0.0.1", &self.deadlines)?)?;
                preview::body(&client, ServiceTarget::clone(service), convert::request(request), &Self::options(request)).await.map(Some)
            }
        }
    }
}
