//! Values of this crate as the protocol has them.

use std::fmt::Write as _;

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, ErrorCode};

use super::documents::{Encoding, Text};
use crate::profile::live::LiveProfile;

/// The protocol's code for a request that is right but failed.
const REQUEST_FAILED: i64 = -32803;

/// Diagnostics that a document has at most.
const MAX_DIAGNOSTICS: usize = 20;

/// What is broken in a document, for the list of problems.
pub fn diagnostics(profile: &LiveProfile, text: &Text, encoding: Encoding) -> Vec<lsp::Diagnostic> {
    let shown = profile.problems.iter().take(MAX_DIAGNOSTICS);
    let mut diagnostics: Vec<lsp::Diagnostic> = shown
        .map(|problem| {
            // A row of megabytes is underlined to the end of its first line.
            let line = text.line_range(text.line_of(problem.range.start));
            let end = problem.range.end.min(line.end).max(problem.range.start);
            lsp::Diagnostic {
                range: text.range(&(problem.range.start..end), encoding),
                severity: Some(lsp::DiagnosticSeverity::Information),
                code: Some(problem.code().into()),
                source: Some("codeinterp".to_owned()),
                message: problem.message().into(),
                ..Default::default()
            }
        })
        .collect();
    let more = profile.problem_count.saturating_sub(diagnostics.len());
    if more > 0
        && let Some(last) = diagnostics.last_mut()
        && let lsp::Message::String(message) = &mut last.message
    {
        // Writing to a String can't fail.
        let _ = write!(message, " ({more} more problems in this file are not listed.)");
    }
    diagnostics
}

/// A command as hints, lenses and actions carry it.
pub fn command(title: impl Into<String>, name: &str, argument: serde_json::Value) -> lsp::Command {
    lsp::Command { title: title.into(), tooltip: None, command: format!("codeinterp.{name}"), arguments: Some(vec![argument]) }
}

/// Markdown.
pub fn markdown(value: String) -> lsp::MarkupContent {
    lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value }
}

/// The request was right, but what it asked for did not work out. `message` says what, why, and what to do next.
pub fn failed(message: impl Into<String>) -> Error {
    Error { code: ErrorCode::ServerError(REQUEST_FAILED), message: message.into().into(), data: None }
}

/// The request is wrong.
pub fn invalid(message: impl Into<String>) -> Error {
    Error { code: ErrorCode::InvalidParams, message: message.into().into(), data: None }
}
