//! Models: providers over HTTP, the models of the editor, and the built-in playbook. Implements `agent::ports::Model`.
//!
//! - [`playbook`]: the analyst without a language model.
//! - [`editor`]: the editor's own models, asked over a channel that the language server gives.
//! - [`provider`]: language models over HTTP. [`target`] says where requests go and with which key, [`http`] makes the
//!   client, [`faults`] tells errors apart, [`retry`] when to ask again, [`redact`] keeps keys out of every text.
//!   Known providers are asked by genai ([`convert`], [`stream`], [`preview`]); an OpenAI-compatible `endpoint`, which
//!   may be any server, by [`compatible`] over [`sse`], which bound everything that comes.
//!
//! May import the agent's ports, settings and nothing of other edges.

mod compatible;
mod convert;
pub mod editor;
mod faults;
mod http;
pub mod playbook;
mod preview;
pub mod provider;
mod redact;
mod retry;
pub mod sse;
mod stream;
mod target;

pub use http::Deadlines;

use std::sync::Arc;

use crate::agent::ports::{Model, ModelError};
use crate::config::Settings;

/// The model that the settings name. The playbook where neither model nor endpoint is set.
///
/// The model `editor` needs the editor's connection: the language server makes an [`editor::EditorModel`] itself.
pub fn connect(settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
    let name = settings.model.as_deref().map(str::trim).unwrap_or_default();
    match name {
        "playbook" => Ok(Arc::new(playbook::Playbook)),
        "" if settings.endpoint.is_none() => Ok(Arc::new(playbook::Playbook)),
        "editor" => Err(ModelError::Settings(
            "the model \"editor\" is the editor's own and can be used from the editor only; name another one in `model`".to_owned(),
        )),
        _ => Ok(Arc::new(provider::Provider::new(settings)?)),
    }
}
