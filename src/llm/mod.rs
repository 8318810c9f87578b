//! Models: providers over HTTP, the models of the editor, and the built-in playbook. Implements `agent::ports::Model`.

use std::sync::Arc;

use crate::agent::ports::{Model, ModelError};
use crate::config::Settings;

/// The model that the settings name. The playbook where none is named.
pub fn connect(settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
    Err(ModelError::Settings(format!("the model {:?} is not part of this build", settings.model.as_deref().unwrap_or("playbook"))))
}
