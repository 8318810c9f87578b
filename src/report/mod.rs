//! A run turned into documents: markdown, notebook, script, hints. Core: imports no edge.
//!
//! - [`markdown`]: the report that a person reads.
//! - [`notebook`], [`script`]: a run as something to run again; [`lineage`]: which steps of it that takes.
//! - [`changed`]: what a rerun changed.
//! - [`words`]: its fixed texts in English and Chinese.
//! - [`numbers`]: links from the answer's numbers to the steps that printed them.
//! - [`escape`]: text from a sandbox or a file, made safe to stand in markdown.
//! - [`sanitize`]: markdown from a model, made safe to be rendered; [`mime`]: displays of a step, made safe for a notebook.
//!
//! Architecture invariant: whatever a model, a cell or a data file says reaches a document only through [`escape`],
//! [`sanitize`] or [`mime`].

mod changed;
pub mod escape;
pub mod lineage;
mod markdown;
mod mime;
mod notebook;
mod numbers;
pub mod sanitize;
mod script;
mod words;

pub use markdown::{ReportOptions, markdown};
pub use notebook::{Artifacts, notebook};
pub use script::script;
