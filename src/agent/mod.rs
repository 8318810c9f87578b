//! The loop: a question becomes model turns, turns become executions, executions become feedback, until there
//! is a conclusion.
//!
//! - [`ports`]: the traits that the loop needs of the outside: a model, a sandbox, an artifact store.
//! - [`driver`]: drives a run: [`Agent`].
//! - [`conversation`]: messages to and turns from a model.
//! - [`execution`]: what one execution in the sandbox did.
//! - [`events`]: what the loop says as it goes, and how that grows into a record.
//! - [`task`]: what the loop is given.
//! - [`run`]: the record of a whole run, in the shape that `analyze --format json` prints.
//!
//! Architecture invariant: nothing here imports an edge (LSP, Docker, HTTP, file system).

pub mod conversation;
pub mod driver;
pub mod events;
mod failure;
pub mod execution;
pub mod ports;
pub mod run;
pub mod task;

pub use driver::{Agent, first_request};
