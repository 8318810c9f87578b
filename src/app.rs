//! The composition root: the only place that wires edges together.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::ports::{Model, ModelError, SandboxError};
use crate::config::{self, BackendChoice, Settings};
use crate::llm;
use crate::sandbox::Backend;
use crate::sandbox::consent::{Consent, Relay};
use crate::sandbox::docker::DockerBackend;
use crate::sandbox::process::ProcessBackend;
use crate::session::Services;

/// The edges of a process.
pub struct App {
    docker: Arc<DockerBackend>,
    process: Arc<ProcessBackend>,
    consent: Arc<Relay>,
    state_dir: PathBuf,
}

impl App {
    /// Edges with their folders at the places that the environment names. Connects to nothing yet.
    pub fn new() -> Self {
        let consent = Arc::new(Relay::default());
        let asked = || Arc::clone(&consent) as Arc<dyn Consent>;
        Self {
            docker: Arc::new(DockerBackend::new().asking(asked())),
            process: Arc::new(ProcessBackend::new(config::cache_dir()).asking(asked())),
            consent,
            state_dir: config::state_dir(),
        }
    }

    /// The same, with somebody to ask before packages are downloaded.
    pub fn asking(consent: Arc<dyn Consent>) -> Self {
        let app = Self::new();
        app.ask(consent);
        app
    }
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Services for App {
    async fn backend(&self, settings: &Settings) -> Result<(Arc<dyn Backend>, String), SandboxError> {
        let docker = || Arc::clone(&self.docker) as Arc<dyn Backend>;
        let process = || Arc::clone(&self.process) as Arc<dyn Backend>;
        match settings.sandbox.backend {
            BackendChoice::Docker => {
                self.docker.check(&settings.sandbox).await?;
                Ok((docker(), "Sandbox: a Docker container, as the settings ask.".to_owned()))
            }
            BackendChoice::Process => {
                self.process.check(&settings.sandbox).await?;
                Ok((process(), "Sandbox: a confined local process, as the settings ask.".to_owned()))
            }
            BackendChoice::Auto => {
                let Err(without_docker) = self.docker.check(&settings.sandbox).await else {
                    return Ok((docker(), "Sandbox: a Docker container, because a Docker engine answers.".to_owned()));
                };
                match self.process.check(&settings.sandbox).await {
                    Ok(()) => {
                        Ok((process(), format!("Sandbox: a confined local process, because Docker can't be used here ({without_docker}).")))
                    }
                    Err(without_process) => Err(neither(&without_docker, without_process)),
                }
            }
        }
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        llm::connect(settings)
    }

    fn state_dir(&self) -> PathBuf {
        self.state_dir.clone()
    }

    fn ask(&self, consent: Arc<dyn Consent>) {
        self.consent.to(consent);
    }
}

/// No backend works: both reasons, and what to do about the one that takes less.
fn neither(docker: &SandboxError, process: SandboxError) -> SandboxError {
    match process {
        SandboxError::Unavailable { message, hint } => {
            SandboxError::Unavailable { message: format!("code can't run here. Docker: {docker}. Local process: {message}"), hint }
        }
        other => other,
    }
}
