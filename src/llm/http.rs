//! The HTTP client of all providers: proxy and trust store of the system, an extra CA file, deadlines, no redirects.

use std::time::Duration;

use crate::agent::ports::ModelError;

/// Deadlines of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Connecting, TLS included.
    pub connect: Duration,
    /// Until the first piece of the answer: a long prompt takes its time on a local model.
    pub first: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// The whole turn.
    pub turn: Duration,
}

impl Deadlines {
    /// The usual ones. `CODEINTERP_MODEL_TIMEOUT` (seconds) replaces the waits for first and further pieces.
    pub fn from_environment() -> Self {
        let seconds = std::env::var("CODEINTERP_MODEL_TIMEOUT").ok().and_then(|text| text.trim().parse::<f64>().ok());
        let wait = seconds.filter(|seconds| (0.05..=3600.0).contains(seconds)).map(Duration::from_secs_f64);
        Self {
            connect: Duration::from_secs(10),
            first: wait.unwrap_or(Duration::from_secs(120)),
            idle: wait.unwrap_or(Duration::from_secs(60)),
            turn: Duration::from_secs(900),
        }
    }
}

/// A client for requests to `host`.
pub fn client(host: &str, deadlines: &Deadlines) -> Result<reqwest::Client, ModelError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("codeinterp/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(deadlines.connect)
        // A redirect would take the key to wherever it points.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    if is_loopback(host) {
        builder = builder.no_proxy();
    }
    if let Some(path) = std::env::var_os("SSL_CERT_FILE") {
        let path = std::path::PathBuf::from(path);
        let fault =
            |reason: String| ModelError::Settings(format!("the CA file {} (SSL_CERT_FILE) can't be used: {reason}", path.display()));
        let pem = std::fs::read(&path).map_err(|error| fault(error.to_string()))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| fault(error.to_string()))?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|error| ModelError::Settings(format!("the HTTP client can't be made: {error}")))
}

/// Whether requests to the host stay on this machine.
pub fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host });
    let name = name.trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_other_hosts() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:80"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["example.com", "10.0.0.1:80", "localhost.example.com"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
