//! The process backend on systems that have no Landlock and no seccomp: it says so.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::super::{Backend, StartRequest};
use crate::agent::ports::{Progress, Sandbox, SandboxError, Sink};
use crate::config::SandboxSettings;

/// The process backend, which needs Linux.
#[derive(Debug, Clone)]
pub struct ProcessBackend;

impl ProcessBackend {
    /// `cache` would be the folder of its environments.
    pub fn new(_cache: PathBuf) -> Self {
        Self
    }
}

fn unavailable() -> SandboxError {
    SandboxError::Unavailable {
        message: "the process sandbox needs Linux (Landlock and seccomp)".to_owned(),
        hint: "install Docker or Podman and start it; on this system code runs in containers only".to_owned(),
    }
}

#[async_trait]
impl Backend for ProcessBackend {
    fn name(&self) -> &'static str {
        "process"
    }

    async fn check(&self, _settings: &SandboxSettings) -> Result<(), SandboxError> {
        Err(unavailable())
    }

    async fn provision(
        &self,
        _settings: &SandboxSettings,
        _progress: Sink<'_, Progress>,
        _cancel: &CancellationToken,
    ) -> Result<(), SandboxError> {
        Err(unavailable())
    }

    async fn is_provisioned(&self, _settings: &SandboxSettings) -> bool {
        false
    }

    async fn start(
        &self,
        _request: &StartRequest,
        _progress: Sink<'_, Progress>,
        _cancel: &CancellationToken,
    ) -> Result<Arc<dyn Sandbox>, SandboxError> {
        Err(unavailable())
    }
}
