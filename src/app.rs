//! The composition root: the only place that wires edges together.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::ports::{Model, ModelError, SandboxError};
use crate::config::{self, BackendChoice, Settings};
use crate::llm;
use crate::sandbox::Backend;
use crate::sandbox::docker::DockerBackend;
use crate::session::Services;

/// The edges of a process.
pub struct App {
    docker: Arc<DockerBackend>,
    state_dir: PathBuf,
}

impl App {
    /// Edges with their folders at the places that the environment names. Connects to nothing yet.
    pub fn new() -> Self {
        Self { docker: Arc::new(DockerBackend::new()), state_dir: config::state_dir() }
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
        match settings.sandbox.backend {
            BackendChoice::Docker => {
                self.docker.check(&settings.sandbox).await?;
                Ok((docker(), "Sandbox: a Docker container, as the settings ask.".to_owned()))
            }
            BackendChoice::Process => Err(SandboxError::Unavailable {
                message: "the process backend is not part of this build".to_owned(),
                hint: "Use `--sandbox docker`.".to_owned(),
            }),
            BackendChoice::Auto => {
                self.docker.check(&settings.sandbox).await?;
                Ok((docker(), "Sandbox: a Docker container, because a Docker engine answers.".to_owned()))
            }
        }
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        llm::connect(settings)
    }

    fn state_dir(&self) -> PathBuf {
        self.state_dir.clone()
    }
}
