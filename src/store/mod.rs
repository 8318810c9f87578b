//! Runs and artifacts on disk. Implements `agent::ports::ArtifactStore`.
//!
//! ```text
//! $XDG_STATE_HOME/codeinterp/<workspace>/runs/<id>/run.json
//!                                                  report.md
//!                                                  artifacts/<name>
//! ```
//!
//! - [`runs`]: the folder of a workspace's runs.
//! - [`names`]: which file names and contents are taken over from the sandbox.
//! - [`files`]: writing below a folder, whole or not at all, never through a symbolic link.
//!
//! Everything that is written here came from a model or a sandbox and is hostile.

pub mod files;
pub mod names;
pub mod runs;

pub use runs::{RunStore, RunSummary, find_run, list_all};
