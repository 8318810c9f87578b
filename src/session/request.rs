//! What is asked of a session.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agent::events::RunEvent;
use crate::agent::ports::{Approval, FileSource};
use crate::agent::run::SelectionInfo;

/// Sees the events of a run, in order. Must return at once.
pub type EventHandler = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// What kind of run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunKind {
    /// A question for the model.
    Ask {
        /// The question.
        question: String,
    },
    /// Code that is executed as it is, without a model.
    Code {
        /// The code.
        code: String,
    },
    /// A further question about an earlier run.
    FollowUp {
        /// The earlier run.
        parent: String,
        /// The question.
        question: String,
    },
    /// An earlier run's code on today's data, without a model.
    Rerun {
        /// The earlier run.
        parent: String,
    },
}

/// A file that a run is about.
#[derive(Debug, Clone)]
pub struct RunFile {
    /// Its path in the sandbox, relative to the working directory; see [`super::inputs::sandbox_name`].
    pub name: String,
    /// Its contents.
    pub source: FileSource,
    /// Where it came from: an absolute path or a document URI.
    pub origin: String,
}

/// Selected lines that a run is about.
#[derive(Debug, Clone)]
pub struct RunSelection {
    /// Name of the file in the sandbox that holds the selected text; one of the request's files.
    pub file: String,
    /// Where it was selected.
    pub place: SelectionInfo,
    /// The header line was put before the selected rows.
    pub header_added: bool,
}

/// A run that is asked for.
#[derive(Clone)]
pub struct RunRequest {
    /// What kind of run.
    pub kind: RunKind,
    /// Its files. Empty for follow-ups and reruns: they have those of their parent.
    pub files: Vec<RunFile>,
    /// The selection that it is about.
    pub selection: Option<RunSelection>,
    /// The document it was asked for, for hints and lists.
    pub uri: Option<String>,
    /// Asked before code runs, where `agent.confirm` is `always`.
    pub approval: Option<Arc<dyn Approval>>,
}

impl RunRequest {
    /// A request without selection, document and approval.
    pub fn new(kind: RunKind, files: Vec<RunFile>) -> Self {
        Self { kind, files, selection: None, uri: None, approval: None }
    }

    /// A request to run these lines of a document as they are.
    pub fn code(code: String, document: &impl ToString, first: u32, last: u32) -> Self {
        let document = document.to_string();
        let place = SelectionInfo { document: document.clone(), start_line: first, end_line: last };
        let selection = Some(RunSelection { file: String::new(), place, header_added: false });
        Self { selection, uri: Some(document), ..Self::new(RunKind::Code { code }, Vec::new()) }
    }

    /// What stands as the question in the record.
    pub fn question(&self) -> &str {
        match &self.kind {
            RunKind::Ask { question } | RunKind::FollowUp { question, .. } => question,
            RunKind::Code { .. } | RunKind::Rerun { .. } => "",
        }
    }

    /// The run that this one goes on from.
    pub fn parent(&self) -> Option<&str> {
        match &self.kind {
            RunKind::FollowUp { parent, .. } | RunKind::Rerun { parent } => Some(parent),
            RunKind::Ask { .. } | RunKind::Code { .. } => None,
        }
    }
}

/// A queued run.
#[derive(Debug, Clone)]
pub struct RunHandle {
    /// Its id.
    pub id: String,
    /// Cancels it.
    pub cancel: CancellationToken,
}
