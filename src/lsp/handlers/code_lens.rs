//! `textDocument/codeLens`: what can be done with a data file, a question in a comment, a cell.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;

use crate::lsp::cells::{self, Cell};
use crate::lsp::commands::selection::comment_question;
use crate::lsp::convert::command;
use crate::lsp::documents::to_u32;
use crate::lsp::state::{Document, State};

/// Questions in comments that get a lens.
const MAX_QUESTIONS: usize = 20;

/// Lines of a document that are searched for questions.
const MAX_LINES: usize = 5_000;

/// What is asked about a cell where nobody can be asked for a question.
const ABOUT_A_CELL: &str = "Explain what this code does and what it comes to, and check whether it is right.";

/// Answers the request.
pub fn code_lens(state: &State, params: &lsp::CodeLensParams) -> Option<Vec<lsp::CodeLens>> {
    let uri = &params.text_document.uri;
    let document = state.documents.get(uri)?;
    let mut lenses = Vec::new();
    if document.format.is_some() {
        // A JSON document that is no table is a program's file.
        if document.format == Some(crate::profile::live::Format::Json) && document.last_profile().is_none() {
            return None;
        }
        lenses.push(lens(0, command("Analyze", "analyzeFile", json!({ "uri": uri }))));
        if let Some(entry) = state.runs.about(uri).find(|entry| entry.anchor.whole && !entry.hidden) {
            if entry.status.is_final() {
                lenses.push(lens(0, command("Open report", "openReport", json!({"run": entry.id}))));
                if entry.anchor.stale {
                    lenses.push(lens(0, command("Run again", "rerun", json!({"run": entry.id}))));
                }
            } else {
                lenses.push(lens(0, command("Cancel", "cancel", json!({"run": entry.id}))));
            }
        }
        return Some(lenses);
    }
    if matches!(document.language.as_str(), "python" | "markdown" | "quarto" | "rmd" | "r" | "sql" | "plaintext") {
        lenses.extend(questions(document, uri));
    }
    if state.features.options.cells {
        for cell in cells::cells(&document.text, &document.language) {
            lenses.extend(of_cell(state, uri, &cell));
        }
    }
    (!lenses.is_empty()).then_some(lenses)
}

fn lens(line: u32, command: lsp::Command) -> lsp::CodeLens {
    let start = lsp::Position { line, character: 0 };
    lsp::CodeLens { range: lsp::Range { start, end: start }, command: Some(command), data: None }
}

/// A question in a comment is asked about the paragraph that follows it.
fn questions(document: &Document, uri: &url::Url) -> Vec<lsp::CodeLens> {
    let text = &document.text;
    let lines = text.line_count().min(MAX_LINES);
    (0..lines)
        .filter_map(|line| comment_question(text.line(line)).map(|question| (line, question)))
        .take(MAX_QUESTIONS)
        .map(|(line, question)| {
            let end = (line + 1..text.line_count()).find(|line| text.line(*line).trim().is_empty()).unwrap_or(text.line_count());
            let range = lines_range(line, end);
            lens(to_u32(line), command("Ask", "askSelection", json!({"uri": uri, "range": range, "question": question})))
        })
        .collect()
}

fn lines_range(first: usize, end: usize) -> lsp::Range {
    lsp::Range { start: lsp::Position { line: to_u32(first), character: 0 }, end: lsp::Position { line: to_u32(end), character: 0 } }
}

fn of_cell(state: &State, uri: &url::Url, cell: &Cell) -> Vec<lsp::CodeLens> {
    let line = to_u32(cell.head);
    let range = lines_range(cell.code.start, cell.code.end);
    let selected = json!({"uri": uri, "range": range});
    let mut ask = selected.clone();
    if !state.features.asks_for_questions() {
        ask["question"] = json!(ABOUT_A_CELL);
    }
    let mut lenses = vec![lens(line, command("Run in sandbox", "runSelection", selected)), lens(line, command("Ask", "askSelection", ask))];
    let last = to_u32(cell.code.end.saturating_sub(1));
    let run = state.runs.about(uri).find(|entry| !entry.anchor.whole && entry.anchor.line() == last);
    match run {
        Some(entry) if !entry.status.is_final() => lenses.push(lens(line, command("Cancel", "cancel", json!({"run": entry.id})))),
        Some(entry) => {
            lenses.push(lens(line, command("Open report", "openReport", json!({"run": entry.id}))));
            if entry.status == crate::agent::run::RunStatus::Failed {
                let question = "Explain the error of this code and correct it.";
                lenses.push(lens(line, command("Explain error", "followUp", json!({"run": entry.id, "question": question}))));
            }
        }
        None => {}
    }
    lenses
}
