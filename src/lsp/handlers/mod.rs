//! Requests about documents, one file each: convert, call a pure function, convert.

pub mod code_action;
pub mod code_lens;
pub mod content;
pub mod document_link;
pub mod hover;
pub mod inlay_hint;
