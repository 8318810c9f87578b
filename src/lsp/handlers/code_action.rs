//! `textDocument/codeAction`: presets that need no input, on data files and on what is selected; "Ask about this" on
//! what is broken. Never on a mere cursor in a program, where a light bulb would only be in the way.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use crate::lsp::commands::selection;
use crate::lsp::convert::command;
use crate::lsp::state::{Document, State};
use crate::profile::live::Format;

/// Questions about a whole file that need no input.
const PRESETS: [(&str, &str); 3] = [
    ("Profile", "Profile this file: its columns, their types, ranges and gaps, and what is unusual."),
    ("Plot what matters", "Plot what matters most in this file, and say what the charts show."),
    ("Find problems", "Find problems in this data: errors, outliers, duplicates, gaps, values that contradict each other."),
];

/// Bytes of selected lines that are searched for a question.
const MAX_QUESTION: usize = 64 << 10;

/// The kind of this server's actions.
pub fn kind() -> lsp::CodeActionKind {
    lsp::CodeActionKind::Custom("codeinterp".into())
}

/// Answers the request.
pub fn code_action(state: &State, params: &lsp::CodeActionParams) -> Option<Vec<lsp::CodeActionResponse>> {
    let uri = &params.text_document.uri;
    let document = state.documents.get(uri)?;
    let wanted = |kind: &lsp::CodeActionKind| params.context.only.as_ref().is_none_or(|only| only.iter().any(|wish| includes(wish, kind)));
    let mut actions: Vec<lsp::CodeActionResponse> = Vec::new();
    if wanted(&lsp::CodeActionKind::QuickFix) {
        actions.extend(params.context.diagnostics.iter().filter_map(|diagnostic| about(uri, diagnostic)));
    }
    if wanted(&kind()) {
        let selected = params.range.start != params.range.end;
        if selected {
            actions.extend(of_selection(document, uri, &params.range, state));
        }
        if is_table(document) {
            actions.extend(
                PRESETS
                    .iter()
                    .map(|(title, question)| action(title, command(*title, "analyzeFile", json!({"uri": uri, "question": question})))),
            );
        }
    }
    (!actions.is_empty()).then_some(actions)
}

/// Whether a wish for actions covers a kind: kinds form a tree along their dots.
fn includes(wish: &lsp::CodeActionKind, kind: &lsp::CodeActionKind) -> bool {
    let text = |kind: &lsp::CodeActionKind| {
        serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let (wish, kind) = (text(wish), text(kind));
    wish.is_empty() || kind == wish || kind.strip_prefix(&wish).is_some_and(|rest| rest.starts_with('.'))
}

/// Delimited text and records, but not any JSON document.
fn is_table(document: &Document) -> bool {
    match document.format {
        None => false,
        Some(Format::Json) => document.last_profile().is_some(),
        Some(_) => true,
    }
}

fn action(title: &str, command: lsp::Command) -> lsp::CodeActionResponse {
    lsp::CodeAction { title: title.to_owned(), kind: Some(kind()), command: Some(command), ..Default::default() }.into()
}

fn of_selection(document: &Document, uri: &Url, range: &lsp::Range, state: &State) -> Vec<lsp::CodeActionResponse> {
    let ask = |question: &str| json!({"uri": uri, "range": range, "question": question});
    let mut actions = Vec::new();
    // Questions stand in small selections; a table of megabytes is not copied to look for one.
    let small = selection::size(&document.text, range) <= MAX_QUESTION;
    let selected = small.then(|| selection::select(&document.text, uri, &document.language, range, state.features.encoding)).flatten();
    if let Some(question) = selected.and_then(|selected| selected.question) {
        let title = format!("Ask: {}", question.chars().take(60).collect::<String>());
        actions.push(action(&title, command(&title, "askSelection", ask(&question))));
    }
    let question = "Summarise the selected part: what is in it, and what stands out?";
    actions.push(action("Summarise selection", command("Summarise selection", "askSelection", ask(question))));
    if matches!(document.language.as_str(), "python" | "markdown" | "quarto") {
        actions.push(action(
            "Run selection in sandbox",
            command("Run selection in sandbox", "runSelection", json!({"uri": uri, "range": range})),
        ));
    }
    actions
}

/// "Ask about this" for a diagnostic of ours.
fn about(uri: &Url, diagnostic: &lsp::Diagnostic) -> Option<lsp::CodeActionResponse> {
    if diagnostic.source.as_deref() != Some("codeinterp") {
        return None;
    }
    let message = match &diagnostic.message {
        lsp::Message::String(text) => text.clone(),
        lsp::Message::MarkupContent(content) => content.value.clone(),
    };
    let line = diagnostic.range.start.line + 1;
    let question = format!("Line {line} of this file: {message} What is wrong there, and how should the file be read?");
    let ask = command("Ask about this", "analyzeFile", json!({"uri": uri, "question": question}));
    Some(
        lsp::CodeAction {
            title: "Ask about this".to_owned(),
            kind: Some(lsp::CodeActionKind::QuickFix),
            diagnostics: Some(vec![diagnostic.clone()]),
            command: Some(ask),
            ..Default::default()
        }
        .into(),
    )
}
