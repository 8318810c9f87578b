//! The loop: a question becomes model turns, turns become executions, executions become feedback, until there
//! is a conclusion.
//!
//! - [`driver`]: drives a run: [`Agent`] performs what the state machine wants and says everything as events.
//! - [`machine`]: the loop as a state machine without side effects, with its [`effects`], its
//!   [`budget`] and [`words`].
//! - [`prompt`]: what the model is told first; [`feedback`] and [`hints`]: what it is told about an execution.
//! - [`parse`]: which code a turn asks to execute; [`transcript`]: the conversation as it is sent.
//! - [`changes`]: how what a run showed differs from what it showed before.
//! - [`evidence`]: which step printed a number of the answer.
//! - [`record`]: an execution taken into the record, with its artifacts.
//! - [`history`]: earlier runs as a follow-up's model is told of them.
//! - [`untrusted`]: marks and escapes text that people did not write.
//! - [`ports`]: the traits that the loop needs of the outside: a model, a sandbox, an artifact store.
//! - [`conversation`]: messages to and turns from a model.
//! - [`execution`]: what one execution in the sandbox did.
//! - [`events`]: what the loop says as it goes, and how that grows into a record.
//! - [`task`]: what the loop is given.
//! - [`run`]: the record of a whole run, in the shape that `analyze --format json` prints.
//! - [`failure`]: errors of the ports in the form that a record has.
//!
//! Architecture invariant: nothing here imports an edge (LSP, Docker, HTTP, file system).

pub mod budget;
pub mod changes;
pub mod conversation;
pub mod driver;
pub mod effects;
pub mod events;
pub mod evidence;
pub mod execution;
pub mod failure;
pub mod feedback;
pub mod hints;
pub mod history;
pub mod machine;
pub mod parse;
pub mod ports;
pub mod prompt;
pub mod record;
pub mod run;
pub mod task;
pub mod transcript;
pub mod untrusted;
pub mod words;

pub use driver::Agent;
pub use prompt::first_request;
