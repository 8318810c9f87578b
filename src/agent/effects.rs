//! What goes into the state machine of the loop, and what comes out of it.

use super::conversation::{ImagePart, Turn, TurnRequest};
use super::ports::{ModelError, SandboxError};
use super::run::{RunError, RunStatus, Step};

/// What happened outside.
#[derive(Debug)]
pub enum Input {
    /// The model gave a turn.
    Turn(Turn),
    /// It gave none.
    TurnFailed(ModelError),
    /// It gave none in the time that is left.
    OutOfTime,
    /// Code was executed.
    Executed(Box<Executed>),
    /// The person did not want the code to run.
    Declined,
    /// The sandbox can't go on.
    SandboxFailed(SandboxError),
    /// The run was cancelled.
    Cancelled,
}

/// An execution's outcome.
#[derive(Debug)]
pub struct Executed {
    /// Its record.
    pub step: Step,
    /// Pictures for models that see.
    pub images: Vec<ImagePart>,
    /// The kernel was replaced.
    pub variables_lost: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Effect {
    /// Ask the model.
    Ask(TurnRequest),
    /// Execute code, as this step.
    Execute {
        /// Number of the step.
        step: u32,
        /// The code.
        code: String,
        /// What the model said around it.
        note: String,
    },
    /// The run is over.
    Conclude(Conclusion),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// A final status.
    pub status: RunStatus,
    /// The answer, where there is one.
    pub final_answer: Option<String>,
    /// Why there is none.
    pub error: Option<RunError>,
}
