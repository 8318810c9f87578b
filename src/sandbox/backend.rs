//! What a backend is: something that starts a supervisor and gives its standard input and output.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::agent::ports::{Progress, Sandbox, SandboxError, Sink};
use crate::config::SandboxSettings;

/// A file of the host that the sandbox sees read-only, because it is too large to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path of a regular file on the host.
    pub host: PathBuf,
    /// Its path relative to the working directory.
    pub name: String,
}

/// What a sandbox is started for.
#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    /// A stable id of the workspace folder: labels and locks carry it.
    pub workspace: String,
    /// The folder itself, for labels that people read.
    pub folder: Option<PathBuf>,
    /// Limits and choices.
    pub settings: SandboxSettings,
    /// Files to be seen read-only.
    pub mounts: Vec<Mount>,
}

/// A kind of sandbox.
#[async_trait]
pub trait Backend: Send + Sync {
    /// `docker` or `process`.
    fn name(&self) -> &'static str;

    /// Cheap check whether it can work here. An error says what is missing and what to do.
    async fn check(&self, settings: &SandboxSettings) -> Result<(), SandboxError>;

    /// Makes everything ready that takes long: builds the image, provisions the environment. Idempotent.
    /// Says sizes and destinations by `progress` before anything large is downloaded.
    async fn provision(
        &self,
        settings: &SandboxSettings,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<(), SandboxError>;

    /// Whether everything that [`provision`](Self::provision) makes and a start needs is there already.
    async fn is_provisioned(&self, settings: &SandboxSettings) -> bool;

    /// Starts a sandbox, provisioning first where that is needed.
    async fn start(
        &self,
        request: &StartRequest,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn Sandbox>, SandboxError>;

    /// Makes ready, in the background and after a first answer, what only later questions need. Nothing by default.
    async fn enrich(&self, progress: Sink<'_, Progress>, cancel: &CancellationToken) -> Result<(), SandboxError> {
        let _ = (progress, cancel);
        Ok(())
    }
}
