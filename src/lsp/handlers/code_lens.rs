//! `textDocument/codeLens`: what can be done with a data file, a question in a comment, a cell.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use crate::agent::run::RunStatus;
use crate::lsp::cells::{self, Cell};
use crate::lsp::commands::selection::comment_question;
use crate::lsp::convert::command;
use crate::lsp::documents::{Text, to_u32};
use crate::lsp::event::Reply;
use crate::lsp::main_loop::answer;
use crate::lsp::state::{Document, State};
use crate::profile::live::Format;

/// Questions in comments that get a lens.
const MAX_QUESTIONS: usize = 20;

/// Lines of a document that are searched for questions.
const MAX_LINES: usize = 5_000;

/// What is asked about a cell where nobody can be asked for a question.
const ABOUT_A_CELL: &str = "Explain what this code does and what it comes to, and check whether it is right.";

/// Takes the request. Programs and texts are searched on another thread: they may be of any length.
pub fn code_lens(state: &State, params: lsp::CodeLensParams, reply: Reply<Option<Vec<lsp::CodeLens>>>) {
    let uri = params.text_document.uri;
    let Some(document) = state.documents.get(&uri) else { return answer(reply, None) };
    if document.format.is_some() {
        return answer(reply, of_data(state, &uri, document));
    }
    let runs = state.runs.about(&uri).filter(|entry| !entry.anchor.whole);
    let program = Program {
        text: document.text.clone(),
        language: document.language.clone(),
        has_cells: state.features.options.cells,
        asks_for_questions: state.features.asks_for_questions(),
        runs: runs.map(|entry| Ran { line: entry.anchor.line(), id: entry.id.clone(), status: entry.status }).collect(),
        uri,
    };
    tokio::task::spawn_blocking(move || answer(reply, program.lenses()));
}

fn of_data(state: &State, uri: &Url, document: &Document) -> Option<Vec<lsp::CodeLens>> {
    // A JSON document that is no table is a program's file.
    if document.format == Some(Format::Json) && document.last_profile().is_none() {
        return None;
    }
    let mut lenses = vec![lens(0, command("Analyze", "analyzeFile", json!({ "uri": uri })))];
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
    Some(lenses)
}

/// A program or a text with programs in it, as it was when its lenses were asked for.
struct Program {
    uri: Url,
    text: Text,
    language: String,
    has_cells: bool,
    asks_for_questions: bool,
    /// Runs about some of its lines, newest first.
    runs: Vec<Ran>,
}

/// A run of a cell.
struct Ran {
    /// The line that its results stand on.
    line: u32,
    id: String,
    status: RunStatus,
}

impl Program {
    fn lenses(&self) -> Option<Vec<lsp::CodeLens>> {
        let mut lenses = Vec::new();
        if matches!(self.language.as_str(), "python" | "markdown" | "quarto" | "rmd" | "r" | "sql" | "plaintext") {
            lenses.extend(self.questions());
        }
        if self.has_cells {
            lenses.extend(cells::cells(&self.text, &self.language).iter().flat_map(|cell| self.of_cell(cell)));
        }
        (!lenses.is_empty()).then_some(lenses)
    }

    /// A question in a comment is asked about the paragraph that follows it.
    fn questions(&self) -> Vec<lsp::CodeLens> {
        let text = &self.text;
        let lines = text.line_count().min(MAX_LINES);
        (0..lines)
            .filter_map(|line| comment_question(text.line(line)).map(|question| (line, question)))
            .take(MAX_QUESTIONS)
            .map(|(line, question)| {
                let end = (line + 1..text.line_count()).find(|line| text.line(*line).trim().is_empty()).unwrap_or(text.line_count());
                let range = lines_range(line, end);
                lens(to_u32(line), command("Ask", "askSelection", json!({"uri": self.uri, "range": range, "question": question})))
            })
            .collect()
    }

    fn of_cell(&self, cell: &Cell) -> Vec<lsp::CodeLens> {
        let line = to_u32(cell.head);
        let range = lines_range(cell.code.start, cell.code.end);
        let selected = json!({"uri": self.uri, "range": range});
        let mut ask = selected.clone();
        if !self.asks_for_questions {
            ask["question"] = json!(ABOUT_A_CELL);
        }
        let mut lenses =
            vec![lens(line, command("Run in sandbox", "runSelection", selected)), lens(line, command("Ask", "askSelection", ask))];
        let last = to_u32(cell.code.end.saturating_sub(1));
        match self.runs.iter().find(|run| run.line == last) {
            Some(run) if !run.status.is_final() => lenses.push(lens(line, command("Cancel", "cancel", json!({"run": run.id})))),
            Some(run) => {
                lenses.push(lens(line, command("Open report", "openReport", json!({"run": run.id}))));
                if run.status == RunStatus::Failed {
                    let question = "Explain the error of this code and correct it.";
                    lenses.push(lens(line, command("Explain error", "followUp", json!({"run": run.id, "question": question}))));
                }
            }
            None => {}
        }
        lenses
    }
}

fn lens(line: u32, command: lsp::Command) -> lsp::CodeLens {
    let start = lsp::Position { line, character: 0 };
    lsp::CodeLens { range: lsp::Range { start, end: start }, command: Some(command), data: None }
}

fn lines_range(first: usize, end: usize) -> lsp::Range {
    lsp::Range { start: lsp::Position { line: to_u32(first), character: 0 }, end: lsp::Position { line: to_u32(end), character: 0 } }
}
