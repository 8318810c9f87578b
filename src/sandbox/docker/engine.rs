//! Finding and connecting to an engine: Docker's, or Podman's Docker-compatible service.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};

use crate::agent::ports::SandboxError;

/// Time that a single answer of the engine may take, to its last byte. Builds and attached streams are not bound by it.
pub const ANSWER: Duration = Duration::from_secs(60);

/// Time in which an engine must say that it is there.
const HELLO: Duration = Duration::from_secs(5);

/// Characters of an engine's words that an error shows.
const REASON_CHARS: usize = 600;

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
    /// Time that an answer may take: [`ANSWER`], where nobody asked for less.
    pub deadline: Duration,
}

impl Engine {
    /// Connects to the engine that `DOCKER_HOST` names, else to the first socket that exists: Docker's, Docker's
    /// without root, Podman's without root, Podman's.
    pub async fn connect() -> Result<Self, SandboxError> {
        let host = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
        if let Some(host) = host {
            return Self::at(&host, ANSWER).await;
        }
        let mut first_error = None;
        for socket in sockets().iter().filter(|socket| socket.exists()) {
            match Self::at(&format!("unix://{}", socket.display()), ANSWER).await {
                Ok(engine) => return Ok(engine),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| SandboxError::Unavailable {
            message: "no Docker engine was found".to_owned(),
            hint: "Install and start Docker or Podman, set DOCKER_HOST, or use `--sandbox process` on Linux.".to_owned(),
        }))
    }

    /// Connects to the engine at an address as `DOCKER_HOST` holds it; none of its answers may take longer than `deadline`.
    pub async fn at(host: &str, deadline: Duration) -> Result<Self, SandboxError> {
        let address = host.strip_prefix("unix://").unwrap_or(host);
        let local = host.starts_with("unix://") || host.starts_with('/') || host.starts_with("npipe://");
        let unreachable = |reason: String| SandboxError::Unavailable {
            message: format!("the Docker engine at {address} does not answer ({reason})"),
            hint: "Start it, set DOCKER_HOST to where it is, or choose another sandbox: `sandbox.backend` \"process\" (Linux).".to_owned(),
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
        let hello = HELLO.min(deadline);
        // The client's own limit ends with the head of an answer and knows whole seconds only; ours is in `in_time`.
        let seconds = deadline.as_secs() + 1;
        let api = if host.starts_with("unix://") {
            Docker::connect_with_unix(host, seconds, API_DEFAULT_VERSION)
        } else if host.starts_with("tcp://") || host.starts_with("http://") {
            Docker::connect_with_http(host, seconds, API_DEFAULT_VERSION)
        } else {
            Docker::connect_with_host(host)
        };
        let api = api.map_err(|error| unreachable(error.to_string()))?;
        let api = in_time(hello, api.negotiate_version()).await.map_err(|error| unreachable(reason(&error)))?;
        let version = in_time(hello, api.version()).await.map_err(|error| unreachable(reason(&error)))?;
        let podman = version.components.iter().flatten().any(|component| component.name.to_lowercase().contains("podman"));
        let kind = if podman { "Podman" } else { "Docker" };
        let description = format!("{kind} {} at {address}", version.version.unwrap_or_default());
        Ok(Self { api, description, podman, local, deadline })
    }

    /// Whether it still answers.
    pub async fn answers(&self) -> bool {
        in_time(HELLO.min(self.deadline), self.api.ping()).await.is_ok()
    }

    /// Waits for a whole answer, and no longer than the deadline.
    pub async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        in_time(self.deadline, answer).await
    }
}

async fn in_time<T>(limit: Duration, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(limit, answer).await.unwrap_or(Err(Error::RequestTimeoutError))
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
pub(super) fn refused(what: &str, error: &Error) -> SandboxError {
    SandboxError::Unavailable {
        message: format!("the Docker engine could not {what}: {}", reason(error)),
        hint: "`codeinterp doctor` tells what the engine lacks; `--sandbox process` works without one on Linux.".to_owned(),
    }
}

/// The engine has no such thing.
pub(super) fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// The engine has no such thing, or is removing it already.
pub(super) fn is_going(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404 | 409, .. })
}

/// Why an engine did not do what it was asked, in words.
pub(super) fn reason(error: &Error) -> String {
    let text = match error {
        Error::DockerResponseServerError { message, status_code } if message.trim().is_empty() => {
            format!("it answered with status {status_code}")
        }
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::RequestTimeoutError => "it did not answer in time".to_owned(),
        Error::JsonDataError { .. } | Error::JsonSerdeError { .. } | Error::StrParseError { .. } => "its answer can't be read".to_owned(),
        other => innermost(other),
    };
    // What is on the other end may be no engine at all, and say anything.
    crate::report::escape::head(text.trim(), REASON_CHARS).to_owned()
}

/// The cause that lies deepest: the ones around it only name the layers of the HTTP client.
fn innermost(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
