//! Finding and connecting to an engine: Docker's, or Podman's Docker-compatible service.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker};

use crate::agent::ports::SandboxError;

/// Seconds that a single answer of the engine may take. Builds and attached streams are not bound by it.
const ANSWER_SECONDS: u64 = 120;

/// Time in which an engine must say that it is there.
const HELLO: Duration = Duration::from_secs(5);

/// A connected engine.
#[derive(Debug)]
pub struct Engine {
    /// Its API.
    pub api: Docker,
    /// What it is, for people: `Docker 28.2.2 at /var/run/docker.sock`.
    pub description: String,
    /// It is Podman: security options are read differently.
    pub podman: bool,
    /// It runs on this machine, so that files of this machine can be mounted.
    pub local: bool,
}

impl Engine {
    /// Connects to the engine that `DOCKER_HOST` names, else to the first socket that exists: Docker's, Docker's
    /// without root, Podman's without root, Podman's.
    pub async fn connect() -> Result<Self, SandboxError> {
        let host = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
        if let Some(host) = host {
            return Self::at(&host).await;
        }
        let mut first_error = None;
        for socket in sockets().iter().filter(|socket| socket.exists()) {
            match Self::at(&format!("unix://{}", socket.display())).await {
                Ok(engine) => return Ok(engine),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| SandboxError::Unavailable {
            message: "no Docker engine was found".to_owned(),
            hint: "Install and start Docker or Podman, set DOCKER_HOST, or use `--sandbox process` on Linux.".to_owned(),
        }))
    }

    async fn at(host: &str) -> Result<Self, SandboxError> {
        let address = host.strip_prefix("unix://").unwrap_or(host);
        let local = host.starts_with("unix://") || host.starts_with('/') || host.starts_with("npipe://");
        let unreachable = |reason: String| SandboxError::Unavailable {
            message: format!("the Docker engine at {address} does not answer ({reason})"),
            hint: "Start it, or set DOCKER_HOST to where it is.".to_owned(),
        };
        // Opening the socket first tells a missing permission from a stopped engine: the API's client does not.
        #[cfg(unix)]
        if host.starts_with("unix://")
            && let Err(error) = tokio::net::UnixStream::connect(address).await
        {
            return Err(match error.kind() {
                std::io::ErrorKind::PermissionDenied => SandboxError::Unavailable {
                    message: format!("you may not use the Docker engine at {address} (permission denied)"),
                    hint: "Add yourself to the group `docker` and log in again, or use rootless Docker or Podman.".to_owned(),
                },
                _ => unreachable(error.to_string()),
            });
        }
        let api = if host.starts_with("unix://") {
            Docker::connect_with_unix(host, ANSWER_SECONDS, API_DEFAULT_VERSION)
        } else if host.starts_with("tcp://") || host.starts_with("http://") {
            Docker::connect_with_http(host, ANSWER_SECONDS, API_DEFAULT_VERSION)
        } else {
            Docker::connect_with_host(host)
        };
        let api = api.map_err(|error| unreachable(error.to_string()))?;
        let negotiated = tokio::time::timeout(HELLO, api.negotiate_version()).await;
        let api = negotiated.map_err(|_| unreachable("no answer".to_owned()))?.map_err(|error| unreachable(error.to_string()))?;
        let version = tokio::time::timeout(HELLO, api.version()).await;
        let version = version.map_err(|_| unreachable("no answer".to_owned()))?.map_err(|error| unreachable(error.to_string()))?;
        let podman = version.components.iter().flatten().any(|component| component.name.to_lowercase().contains("podman"));
        let kind = if podman { "Podman" } else { "Docker" };
        let description = format!("{kind} {} at {address}", version.version.unwrap_or_default());
        Ok(Self { api, description, podman, local })
    }

    /// Whether it still answers.
    pub async fn answers(&self) -> bool {
        matches!(tokio::time::timeout(HELLO, self.api.ping()).await, Ok(Ok(_)))
    }
}

fn sockets() -> Vec<PathBuf> {
    let mut sockets = vec![PathBuf::from("/var/run/docker.sock")];
    if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR") {
        sockets.push(Path::new(&runtime).join("docker.sock"));
        sockets.push(Path::new(&runtime).join("podman/podman.sock"));
    }
    if let Some(home) = std::env::home_dir() {
        sockets.push(home.join(".docker/run/docker.sock"));
    }
    sockets.push(PathBuf::from("/run/podman/podman.sock"));
    sockets
}

/// An engine's refusal as an error that says what was tried.
pub(super) fn refused(what: &str, error: &bollard::errors::Error) -> SandboxError {
    let reason = match error {
        bollard::errors::Error::DockerResponseServerError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    SandboxError::Unavailable {
        message: format!("the Docker engine could not {what}: {}", reason.trim()),
        hint: "`codeinterp doctor` tells what the engine lacks; `--sandbox process` works without one on Linux.".to_owned(),
    }
}
