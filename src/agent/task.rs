//! What the loop is given.

use super::conversation::Message;
use super::ports::{ModelInfo, PutFile};
use super::run::SelectionInfo;
use crate::config::{AgentSettings, PrivacySend, Protocol, Settings};
use crate::profile::ProfileOutcome;

/// A question with everything that is known before the first turn.
#[derive(Debug, Clone, Default)]
pub struct Task {
    /// Id of the run.
    pub run: String,
    /// The question, as the person put it.
    pub question: String,
    /// Files that are in the sandbox.
    pub files: Vec<PutFile>,
    /// Their profiles, in the same order.
    pub profiles: Vec<ProfileOutcome>,
    /// The lines that the question is about, and which of the files holds them.
    pub selection: Option<TaskSelection>,
    /// What is told of the runs that this one follows up, with tool calls; empty for a new one. See [`super::history`].
    pub history: Vec<Message>,
    /// Sentences that the model should know: variables lost, a file that changed.
    pub remarks: Vec<String>,
}

/// Selected lines that were put into the sandbox as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSelection {
    /// The file in the sandbox that holds the selection.
    pub file: String,
    /// Where it was selected.
    pub place: SelectionInfo,
    /// The header line was put before the selected rows.
    pub header_added: bool,
}

/// The settings that the loop needs.
#[derive(Debug, Clone)]
pub struct LoopSettings {
    /// Bounds.
    pub agent: AgentSettings,
    /// How the model acts.
    pub protocol: Protocol,
    /// Seconds that one execution may take.
    pub timeout_seconds: u64,
    /// What the model may see.
    pub privacy: PrivacySend,
    /// Rows that the model's code is told to load at most.
    pub max_rows: u64,
}

impl LoopSettings {
    /// How much of the data this model may see. The playbook sends nothing anywhere, so it sees all.
    pub fn seen_by(&self, model: &ModelInfo) -> PrivacySend {
        if model.language_model { self.privacy } else { PrivacySend::Full }
    }
}

impl From<&Settings> for LoopSettings {
    fn from(settings: &Settings) -> Self {
        Self {
            agent: settings.agent.clone(),
            protocol: settings.protocol,
            timeout_seconds: settings.sandbox.timeout_seconds,
            privacy: settings.privacy.send,
            max_rows: settings.files.max_rows,
        }
    }
}
