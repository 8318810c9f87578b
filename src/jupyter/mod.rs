//! Jupyter messages, their framing on the sandbox's pipe, and MIME bundles turned into outputs.
//!
//! - [`frame`]: length-prefixed frames: JSON messages and raw pieces of files.
//! - [`message`]: Jupyter's envelope around both the protocol's messages and ours.
//! - [`reply`]: contents of what the supervisor answers.
//! - [`outputs`]: messages of one execution, collected into its outputs.
//!
//! Imports the agent's execution types and nothing else of the crate.

pub mod frame;
pub mod message;
pub mod outputs;
pub mod reply;
