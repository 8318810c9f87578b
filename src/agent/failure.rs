//! Errors of the ports in the form that a run's record has: kind, what happened, what to do.

use super::ports::{ModelError, SandboxError, StoreError};
use super::run::{ErrorKind, RunError};

impl RunError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into() }
    }
}

impl From<&ModelError> for RunError {
    fn from(error: &ModelError) -> Self {
        let (kind, hint) = match error {
            ModelError::Unreachable { .. } => {
                (ErrorKind::Model, "Check that the server runs and that `endpoint`, proxy and certificates are right, then ask again.")
            }
            ModelError::Credentials { .. } => (
                ErrorKind::Credentials,
                "Set the provider's key in its environment variable; for an `endpoint`, CODEINTERP_API_KEY or the variable named by `apiKeyEnv`.",
            ),
            ModelError::UnknownModel { .. } => {
                (ErrorKind::Model, "Check the name in `model`; the server's list of models tells what it has.")
            }
            ModelError::ContextLength(_) => (ErrorKind::Run, "Ask about fewer files or columns, or choose a model with a larger window."),
            ModelError::ToolsRefused(_) => (ErrorKind::Run, "Set `protocol` to \"fenced\"."),
            ModelError::Busy(_) => (ErrorKind::Model, "Wait a little and ask again; what was done so far is kept."),
            ModelError::Incomplete(_) | ModelError::Malformed(_) => {
                (ErrorKind::Run, "Ask again; if it goes on, the server or a proxy before it is at fault.")
            }
            ModelError::Settings(_) => (ErrorKind::Model, "Mend the setting, or set `model` to \"playbook\" for the built-in analysis."),
            ModelError::Refused { .. } => (ErrorKind::Model, "The server's words say why; check model and account."),
            ModelError::Cancelled => (ErrorKind::Run, "Ask again when you want to go on."),
        };
        Self::new(kind, error.to_string(), hint)
    }
}

impl From<&SandboxError> for RunError {
    fn from(error: &SandboxError) -> Self {
        let (kind, hint) = match error {
            SandboxError::Unavailable { hint, .. } => (ErrorKind::Sandbox, hint.as_str()),
            SandboxError::Gone(_) => (ErrorKind::Sandbox, "Ask again: a new sandbox is started."),
            SandboxError::Busy => (ErrorKind::Run, "Wait until the execution is done, or cancel it."),
            SandboxError::RefusedName { .. } => (ErrorKind::Input, "Rename the file."),
            SandboxError::File { .. } => (ErrorKind::Input, "Check that the file can be read and does not change meanwhile."),
            SandboxError::Protocol(_) => (ErrorKind::Sandbox, "Ask again; `codeinterp doctor` tells more about the sandbox."),
            SandboxError::Cancelled => (ErrorKind::Run, "Ask again when you want to go on."),
        };
        Self::new(kind, error.to_string(), hint)
    }
}

impl From<&StoreError> for RunError {
    fn from(error: &StoreError) -> Self {
        Self::new(ErrorKind::Output, error.to_string(), "Check that the state directory can be written and has space.")
    }
}
