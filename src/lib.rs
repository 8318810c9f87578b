//! `codeinterp`: a code interpreter in the editor.
//!
//! A question about a data file or a selection goes to a language model; the model writes Python; the Python
//! runs in a sandbox that belongs to the workspace; what it printed, raised and drew goes back to the model,
//! step after step, until there is an answer.
//!
//! # Map of the modules
//!
//! ```text
//! cli, lsp ──► app ──► session ──► agent ──► profile, report        core: no LSP, Docker, HTTP or file-system types
//!                          │
//!                          └──► llm, sandbox (over jupyter), store  edges: they implement the agent's ports
//! ```
//!
//! - [`agent`]: the loop as a state machine, its prompt, parsing, feedback and budget, and the [`agent::ports`] it needs.
//! - [`profile`]: what a table is: columns, types, missing values, ranges.
//! - [`report`]: a run turned into markdown, notebook, script and hints.
//! - [`llm`]: models: providers over HTTP, the editor's own models, the built-in playbook.
//! - [`jupyter`]: Jupyter messages and their framing on the sandbox's pipe.
//! - [`sandbox`]: the backends (Docker, confined local process) and the image they run.
//! - [`store`]: runs and artifacts on disk.
//! - [`session`]: one workspace folder: its sandbox, queue and history.
//! - [`lsp`]: the language server; the only module that knows protocol types.
//! - [`cli`]: the command line.
//! - [`app`]: the composition root, the only place that wires edges together.
//! - [`config`]: one settings type for command line, environment, file and editor.
//!
//! Architecture invariant: the core (`agent`, `profile`, `report`) imports no edge, and only `lsp` names protocol
//! types. `tests/architecture.rs` checks both.

pub mod agent;
pub mod app;
pub mod cli;
pub mod config;
pub mod jupyter;
pub mod llm;
pub mod lsp;
pub mod profile;
pub mod report;
pub mod sandbox;
pub mod session;
pub mod store;
