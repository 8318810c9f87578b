//! Where requests go, and with which key. A key of one place is never sent to another.

use futures::FutureExt;
use genai::adapter::AdapterKind;
use genai::resolver::AuthData;
use genai::{Client, ServiceTarget};
use url::Url;

use crate::agent::ports::ModelError;
use crate::config::Settings;

/// A model at a place.
#[derive(Debug, Clone)]
pub struct Target {
    /// How it is asked.
    pub service: Service,
    /// Host, with the port where it is given.
    pub host: String,
    /// Name of the model as the provider knows it.
    pub model: String,
    /// The key, for redaction only.
    pub key: Option<String>,
}

/// How a target is asked.
#[derive(Debug, Clone)]
pub enum Service {
    /// A known provider, by genai.
    Provider(ServiceTarget),
    /// A server of the user's own choosing, in `OpenAI`'s protocol.
    Compatible {
        /// URL of the chat completions.
        url: String,
        /// Headers with the key, where there is one.
        headers: Vec<(String, String)>,
    },
}

impl Target {
    /// The target that the settings name.
    pub fn of(settings: &Settings) -> Result<Self, ModelError> {
        let name = settings.model.as_deref().map(str::trim).filter(|name| !name.is_empty());
        match &settings.endpoint {
            Some(endpoint) => at_endpoint(endpoint, name.unwrap_or("default"), own_key(settings)?),
            None => at_provider(name.unwrap_or_default(), own_key(settings)?),
        }
    }
}

/// The key that the user set for this tool.
fn own_key(settings: &Settings) -> Result<Option<String>, ModelError> {
    let read = |name: &str| std::env::var(name).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    if let Some(key) = read("CODEINTERP_API_KEY") {
        return Ok(Some(key));
    }
    match settings.api_key_env.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        None => Ok(None),
        Some(name) => match read(name) {
            Some(key) => Ok(Some(key)),
            None => Err(ModelError::Settings(format!(
                "the environment variable {name:?}, named by `apiKeyEnv`, is not set; `apiKeyEnv` takes the name of a variable, never the key itself"
            ))),
        },
    }
}

/// An OpenAI-compatible server.
fn at_endpoint(endpoint: &str, model: &str, key: Option<String>) -> Result<Target, ModelError> {
    let base = base_url(endpoint)?;
    let host = host_of(&base);
    let url = base.join("chat/completions").map_err(|error| ModelError::Settings(format!("`endpoint` {endpoint:?}: {error}")))?;
    // A namespace says which of genai's adapters to use; here the protocol is OpenAI's whatever the name.
    let name = match model.split_once("::") {
        Some((space, name)) if AdapterKind::from_lower_str(space).is_some() => name,
        _ => model,
    };
    let mut headers = Vec::new();
    if let Some(key) = &key {
        // Azure's keys go in a header of their own.
        let azure = host.ends_with(".openai.azure.com") || host.ends_with(".cognitiveservices.azure.com");
        headers.push(if azure { ("api-key".to_owned(), key.clone()) } else { ("Authorization".to_owned(), format!("Bearer {key}")) });
    }
    Ok(Target { service: Service::Compatible { url: url.to_string(), headers }, host, model: name.to_owned(), key })
}

/// One of genai's providers, at its own host.
fn at_provider(name: &str, key: Option<String>) -> Result<Target, ModelError> {
    // This client only knows names; nothing of the resolving waits, for there are no asynchronous resolvers.
    let client = Client::new().map_err(|error| ModelError::Settings(format!("the client of the models can't be made: {error}")))?;
    let resolved = client.resolve_service_target(name).now_or_never();
    let mut service = match resolved {
        Some(Ok(service)) => service,
        Some(Err(error)) => return Err(ModelError::Settings(format!("the model {name:?} is not known: {error}"))),
        None => return Err(ModelError::Settings(format!("the model {name:?} can't be resolved"))),
    };
    let host = Url::parse(service.endpoint.base_url()).map_or_else(|_| service.endpoint.base_url().to_owned(), |url| host_of(&url));
    let mut known = key.clone();
    if let Some(key) = key {
        service.auth = AuthData::Key(key);
    } else if let AuthData::FromEnv(variable) = &service.auth {
        match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => known = Some(key),
            _ => {
                return Err(ModelError::Credentials {
                    destination: host,
                    reason: format!("there is no key for {name}; set the environment variable {variable} (or CODEINTERP_API_KEY)"),
                });
            }
        }
    }
    let model = service.model.model_name.to_string();
    let model = model.split_once("::").map_or(model.as_str(), |(_, name)| name).to_owned();
    Ok(Target { service: Service::Provider(service), host, model, key: known })
}

/// The base URL with a path that ends in a slash: `/v1/` where there is no path at all.
fn base_url(endpoint: &str) -> Result<Url, ModelError> {
    let fault = |reason: &str| ModelError::Settings(format!("`endpoint` {endpoint:?} {reason}; it looks like http://127.0.0.1:8080/v1"));
    let mut url = Url::parse(endpoint.trim()).map_err(|error| fault(&format!("is no URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(fault("is no http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("must not hold credentials: keys stand in the environment only"));
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = if path.is_empty() { "/v1/".to_owned() } else { format!("{path}/") };
    url.set_path(&path);
    Ok(url)
}

fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_may_be_given_with_and_without_v1() {
        for (given, base) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/"),
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/"),
            ("http://127.0.0.1:8080/v1/chat/completions", "http://127.0.0.1:8080/v1/"),
            ("https://host/api/openai/v1/", "https://host/api/openai/v1/"),
        ] {
            assert_eq!(base_url(given).map(|url| url.to_string()).as_deref(), Ok(base), "{given}");
        }
        for wrong in ["", "localhost:8080", "ftp://x/", "http://user:key@host/"] {
            assert!(base_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_key_nothing_is_sent_for_one() {
        let target = at_endpoint("http://127.0.0.1:1", "openai::m", None).expect("a target");
        let Service::Compatible { url, headers } = target.service else { panic!("another kind of service") };
        assert_eq!((url.as_str(), headers.len(), target.model.as_str()), ("http://127.0.0.1:1/v1/chat/completions", 0, "m"));
    }
}
