//! genai's errors told apart: what happened, whether asking again may help, and after how long.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::redact::Redactor;
use super::retry;
use crate::agent::ports::ModelError;

/// A failed request.
#[derive(Debug)]
pub struct Fault {
    /// What is told.
    pub error: ModelError,
    /// Asking again may help.
    pub retry: bool,
    /// The wait that the server asked for.
    pub after: Option<Duration>,
}

/// Whom was asked for what.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Host.
    pub host: &'a str,
    /// Model.
    pub model: &'a str,
    /// Tools were offered.
    pub tools: bool,
    /// Keeps keys out.
    pub redactor: &'a Redactor,
}

impl Asked<'_> {
    /// The fault of a failed request.
    pub fn fault(&self, error: &genai::Error) -> Fault {
        let permanent = |error: ModelError| Fault { error, retry: false, after: None };
        match error {
            genai::Error::HttpError { status, body, headers, .. } => self.status(*status, body, headers),
            genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => match webc_error {
                genai::webc::Error::ResponseFailedStatus { status, body, headers } => self.status(*status, body, headers),
                genai::webc::Error::Reqwest(error) => self.transport(error),
                other => permanent(self.malformed(&other.to_string())),
            },
            genai::Error::WebStream { error, cause, .. } => {
                if let Some(inner) = error.downcast_ref::<genai::Error>() {
                    self.fault(inner)
                } else if let Some(inner) = error.downcast_ref::<reqwest::Error>() {
                    self.transport(inner)
                } else {
                    permanent(self.malformed(cause))
                }
            }
            genai::Error::ChatResponse { body, .. } => self.in_stream(body),
            genai::Error::Resolver { .. }
            | genai::Error::NoAuthData { .. }
            | genai::Error::NoAuthResolver { .. }
            | genai::Error::RequiresApiKey { .. } => {
                permanent(ModelError::Credentials { destination: self.host.to_owned(), reason: self.redactor.message(&error.to_string()) })
            }
            other => permanent(self.malformed(&other.to_string())),
        }
    }

    /// The fault of an answer that can't be understood.
    pub fn unreadable(&self, words: &str) -> Fault {
        Fault { error: self.malformed(words), retry: false, after: None }
    }

    /// The fault of an answer that broke off.
    pub fn incomplete(&self, words: &str) -> Fault {
        Fault { error: ModelError::Incomplete(self.redactor.message(words)), retry: false, after: None }
    }

    /// The fault of a server that said nothing (more) for so long.
    pub fn silent(&self, wait: Duration, at_first: bool) -> Fault {
        let what = if at_first { "it did not answer" } else { "it stopped in the middle of its answer" };
        let reason = format!("{what} within {:.0} s", wait.as_secs_f64().max(1.0));
        Fault { error: ModelError::Unreachable { destination: self.host.to_owned(), reason }, retry: false, after: None }
    }

    /// The fault of a connection that broke in the midst of an answer.
    pub fn cut(&self, error: &reqwest::Error) -> Fault {
        self.incomplete(&causes(error))
    }

    fn malformed(&self, words: &str) -> ModelError {
        ModelError::Malformed(self.redactor.message(words))
    }

    /// The fault of a request that was not answered.
    pub fn transport(&self, error: &reqwest::Error) -> Fault {
        let words = causes(error);
        if !(error.is_connect() || error.is_timeout() || error.is_request()) {
            return self.incomplete(&words);
        }
        // A certificate that is not trusted now will not be in a second.
        let retry = !words.to_ascii_lowercase().contains("certificate");
        let reason = self.redactor.message(&words);
        Fault { error: ModelError::Unreachable { destination: self.host.to_owned(), reason }, retry, after: None }
    }

    /// The fault of an error that comes in the midst of a stream.
    pub fn in_stream(&self, error: &serde_json::Value) -> Fault {
        let words =
            error.get("message").and_then(serde_json::Value::as_str).or(error.as_str()).map_or_else(|| error.to_string(), str::to_owned);
        let words = words.as_str();
        let lower = words.to_ascii_lowercase();
        let reason = self.redactor.message(words);
        if is_context_length(&lower) {
            Fault { error: ModelError::ContextLength(reason), retry: false, after: None }
        } else if lower.contains("overloaded") || lower.contains("rate limit") {
            Fault { error: ModelError::Busy(reason), retry: true, after: None }
        } else {
            Fault { error: ModelError::Incomplete(reason), retry: false, after: None }
        }
    }

    /// The fault of an HTTP status.
    pub fn status(&self, status: StatusCode, body: &str, headers: &HeaderMap) -> Fault {
        let words = words_of(body);
        let lower = words.to_ascii_lowercase();
        let reason = self.redactor.message(if words.is_empty() { status.canonical_reason().unwrap_or("no reason given") } else { &words });
        let code = status.as_u16();
        let permanent = |error: ModelError| Fault { error, retry: false, after: None };
        if status.is_redirection() {
            let to = headers.get(reqwest::header::LOCATION).and_then(|place| place.to_str().ok()).unwrap_or("another place");
            let to = self.redactor.message(to);
            return permanent(ModelError::Refused {
                status: code,
                reason: format!(
                    "it redirects to {to}, and neither key nor data is sent on; set `endpoint` to that address if you trust it"
                ),
            });
        }
        if matches!(code, 401 | 403) {
            return permanent(ModelError::Credentials { destination: self.host.to_owned(), reason });
        }
        if is_context_length(&lower) {
            return permanent(ModelError::ContextLength(reason));
        }
        if self.tools && !matches!(code, 429 | 502..=504 | 529) && (lower.contains("tool") || lower.contains("function call")) {
            return permanent(ModelError::ToolsRefused(reason));
        }
        if lower.contains("model_not_found")
            || (code == 404 && lower.contains("model"))
            || (code == 400 && lower.contains("model") && lower.contains("not exist"))
        {
            return permanent(ModelError::UnknownModel { destination: self.host.to_owned(), model: self.model.to_owned(), reason });
        }
        if matches!(code, 408 | 425 | 429 | 500..=599) {
            // A used-up account does not recover in seconds.
            let hopeless = lower.contains("insufficient_quota") || lower.contains("billing") || code == 501;
            return Fault { error: ModelError::Busy(format!("{code} {reason}")), retry: !hopeless, after: retry::asked_for(headers) };
        }
        permanent(ModelError::Refused { status: code, reason })
    }
}

/// An error with its causes.
fn causes(error: &reqwest::Error) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

fn is_context_length(lower: &str) -> bool {
    [
        "context length",
        "context_length",
        "maximum context",
        "context window",
        "context size",
        "prompt is too long",
        "too many tokens",
        "input is too long",
        "available context",
        "exceeds the limit of tokens",
        "exceed context",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// The server's words in an error's body: JSON's `error.message` where there is one, else the beginning.
fn words_of(body: &str) -> String {
    let beginning: String = body.chars().take(4000).collect();
    let json: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let found = json.as_ref().and_then(|json| {
        let error = json.get("error").unwrap_or(json);
        let message = error.get("message").or_else(|| error.get("detail")).or(Some(error))?;
        let code = error.get("code").and_then(serde_json::Value::as_str).unwrap_or_default();
        let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        Some(if code.is_empty() || text.contains(code) { text } else { format!("{text} ({code})") })
    });
    found.unwrap_or(beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, body: &str, tools: bool) -> Fault {
        let redactor = Redactor::new(Some("secret-key-1"));
        let asked = Asked { host: "h", model: "m", tools, redactor: &redactor };
        asked.status(StatusCode::from_u16(code).expect("a status"), body, &HeaderMap::new())
    }

    #[test]
    fn refusals_are_told_apart() {
        assert!(matches!(status(401, "no", false).error, ModelError::Credentials { .. }));
        assert!(matches!(
            status(404, r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#, false).error,
            ModelError::UnknownModel { .. }
        ));
        assert!(matches!(
            status(400, r#"{"error":{"message":"This model's maximum context length is 4096 tokens"}}"#, true).error,
            ModelError::ContextLength(_)
        ));
        assert!(matches!(status(400, r#"{"error":{"message":"tools are not supported"}}"#, true).error, ModelError::ToolsRefused(_)));
        assert!(matches!(status(400, "tools are not supported", false).error, ModelError::Refused { status: 400, .. }));
        assert!(matches!(status(307, "", false).error, ModelError::Refused { status: 307, .. }));
        let busy = status(429, "slow down", true);
        assert!(busy.retry && matches!(busy.error, ModelError::Busy(_)));
        assert!(!status(429, r#"{"error":{"message":"quota","code":"insufficient_quota"}}"#, false).retry);
    }

    #[test]
    fn an_echoed_key_is_removed() {
        assert!(!status(401, "Incorrect API key provided: secret-key-1", false).error.to_string().contains("secret-key-1"));
    }
}
