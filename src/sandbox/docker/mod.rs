//! The Docker backend: one hardened container a workspace folder, over Docker's or Podman's API.
//!
//! - [`engine`]: finding and connecting to an engine.
//! - [`context`]: what the image is built from, and its tag by content.
//! - [`build`]: building it, with progress.
//! - [`packages`]: `sandbox.packages` as a layer on top of it.
//! - [`spec`]: how a container is made: every bound and every denial.
//! - [`container`]: a running container as an enclosure.
//! - [`events`]: what the engine tells of it.
//! - [`owned`]: containers and images of ours: listing, reaping, pruning.

mod build;
mod container;
mod context;
pub mod engine;
mod events;
pub mod owned;
mod packages;
mod spec;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::engine::Engine;
use super::backend::{Backend, StartRequest};
use super::consent::{BySetting, Consent};
use super::linked::open_sandbox;
use crate::agent::ports::{Progress, Sandbox, SandboxError, Sink};
use crate::agent::run::SandboxInfo;
use crate::config::SandboxSettings;

/// Working directory inside.
pub(crate) const WORKDIR: &str = "/workspace";

/// Sandboxes in containers.
pub struct DockerBackend {
    /// Address of the engine; looked for where there is none.
    host: Option<String>,
    /// Time that an answer of the engine, and the supervisor's first word, may take.
    deadline: Duration,
    /// Asked before packages are downloaded.
    consent: Arc<dyn Consent>,
    /// The engine that answered; asked for again after it failed.
    engine: tokio::sync::Mutex<Option<Arc<Engine>>>,
}

impl DockerBackend {
    /// Connects to nothing yet.
    pub fn new() -> Self {
        Self { host: None, deadline: engine::ANSWER, consent: Arc::new(BySetting), engine: tokio::sync::Mutex::default() }
    }

    /// Uses the engine at this address, written as `DOCKER_HOST` holds it, and gives up what takes longer than `deadline`.
    #[must_use]
    pub fn at(host: &str, deadline: Duration) -> Self {
        Self { host: Some(host.to_owned()), deadline, ..Self::new() }
    }

    /// Asks there before packages are downloaded.
    #[must_use]
    pub fn asking(mut self, consent: Arc<dyn Consent>) -> Self {
        self.consent = consent;
        self
    }

    /// The engine. Connected to once, and again when it no longer answers.
    pub async fn engine(&self) -> Result<Arc<Engine>, SandboxError> {
        let mut slot = self.engine.lock().await;
        if let Some(engine) = &*slot
            && engine.answers().await
        {
            return Ok(Arc::clone(engine));
        }
        *slot = None;
        let engine = Arc::new(match &self.host {
            Some(host) => Engine::at(host, self.deadline).await?,
            None => Engine::connect().await?,
        });
        // What a killed process left behind is removed before anything new is started.
        owned::reap(&engine).await;
        *slot = Some(Arc::clone(&engine));
        Ok(engine)
    }
}

#[async_trait]
impl Backend for DockerBackend {
    fn name(&self) -> &'static str {
        "docker"
    }

    async fn check(&self, _settings: &SandboxSettings) -> Result<(), SandboxError> {
        self.engine().await.map(|_| ())
    }

    async fn provision(
        &self,
        settings: &SandboxSettings,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<(), SandboxError> {
        let engine = self.engine().await?;
        build::ensure(&engine, settings, &*self.consent, progress, cancel).await.map(|_| ())
    }

    async fn is_provisioned(&self, settings: &SandboxSettings) -> bool {
        match self.engine().await {
            Ok(engine) => build::is_there(&engine, settings).await,
            Err(_) => false,
        }
    }

    async fn start(
        &self,
        request: &StartRequest,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let engine = self.engine().await?;
        let image = build::ensure(&engine, &request.settings, &*self.consent, progress, cancel).await?;
        let spec = spec::create_body(&engine, &image, request)?;
        let start = async {
            let started = container::start(&engine, &request.workspace, spec).await?;
            let info =
                SandboxInfo { backend: "docker".to_owned(), image, workdir: WORKDIR.to_owned(), memory_bytes: request.settings.memory.0 };
            let opened = tokio::time::timeout(self.deadline, open_sandbox(started.output, started.input, info, started.enclosure)).await;
            opened.unwrap_or_else(|_| Err(SandboxError::Gone(format!("it did not answer within {} s", self.deadline.as_secs()))))
        };
        tokio::select! {
            sandbox = start => sandbox,
            () = cancel.cancelled() => Err(SandboxError::Cancelled),
        }
    }
}

impl Default for DockerBackend {
    fn default() -> Self {
        Self::new()
    }
}
