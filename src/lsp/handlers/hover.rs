//! `textDocument/hover`: a column's statistics on any cell or header, a result's charts on its line, a variable of the
//! kernel on a name in Python.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use crate::agent::execution::Variable;
use crate::agent::run::Run;
use crate::lsp::analysis;
use crate::lsp::convert::markdown;
use crate::lsp::event::Reply;
use crate::lsp::hints;
use crate::lsp::main_loop::answer;
use crate::lsp::runs::RunEntry;
use crate::lsp::state::{Document, Seen, State};
use crate::lsp::uris;
use crate::profile::live;
use crate::report::escape;
use crate::report::sanitize::sanitize;
use crate::session::Session;

/// Charts of a result that a hover shows.
const MAX_CHARTS: usize = 2;

/// Longest answer that a hover repeats, in bytes.
const MAX_ANSWER: usize = 600;

/// Longest name that is looked for in the kernel, in bytes.
const LONGEST_NAME: usize = 100;

/// How long a kernel may take to tell a variable; a busy one tells nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Takes the request; it is answered when the columns are known.
pub fn hover(state: &mut State, params: lsp::HoverParams, reply: Reply<Option<lsp::Hover>>) {
    let lsp::TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
    let uri = text_document.uri;
    if let Some((session, name, range)) = variable_at(state, &uri, position) {
        tokio::spawn(async move { answer(reply, of_variable(&session, name, range).await) });
        return;
    }
    analysis::when_profiled(state, &uri.clone(), Box::new(move |state, seen| answer(reply, of_document(state, &uri, position, seen))));
}

fn of_document(state: &State, uri: &Url, position: lsp::Position, seen: Seen<'_>) -> Option<lsp::Hover> {
    let document = seen.text?;
    let encoding = state.features.encoding;
    let mut text = String::new();
    let mut range = None;
    let offset = document.offset(position, encoding);
    if let Some(profile) = seen.profile
        && let Some(place) = profile.place(document.as_str(), offset)
    {
        text = live::column_markdown(profile, &place);
        range = Some(document.range(&place.range, encoding));
        if place.row.is_none() && document.line_range(document.line_of(offset)).end == offset {
            // At the end of the header line, where the hint of the columns stands.
            text = live::table_markdown(profile);
        }
    }
    let here = state.runs.about(uri).find(|entry| !entry.hidden && entry.status.is_final() && entry.anchor.line() == position.line);
    if let Some(record) = here.and_then(RunEntry::record) {
        if !text.is_empty() {
            text.push_str("\n\n---\n\n");
        }
        text.push_str(&result(&record, state.features.shows_virtual_documents()));
    }
    if text.is_empty() {
        return None;
    }
    let contents = if state.features.markdown {
        markdown(text)
    } else {
        lsp::MarkupContent { kind: lsp::MarkupKind::PlainText, value: text.replace(['\\', '*', '`'], "") }
    };
    Some(lsp::Hover { contents: contents.into(), range })
}

/// A result in short: its charts, and the beginning of its answer. Pictures come first, hovers are low; links to them last.
fn result(record: &Run, virtual_documents: bool) -> String {
    let (answer, charts) = (gist(record), charts(record, virtual_documents));
    let text = if virtual_documents { charts + &answer } else { answer + &charts };
    text.trim_end().to_owned()
}

fn gist(record: &Run) -> String {
    let mut text = String::new();
    let answer = hints::gist(record).unwrap_or_default();
    if !answer.is_empty() {
        // Cut between lines, so that no markup is cut in two.
        let head = escape::head(answer, MAX_ANSWER);
        let whole = if head.len() < answer.len() { head.rfind('\n').map_or(head, |end| &head[..end]) } else { head };
        let _ = write!(text, "{}\n\n", sanitize(whole, &HashSet::new(), "").trim_end());
        if whole.len() < answer.len() {
            text.push_str("…\n\n");
        }
    }
    text
}

fn charts(record: &Run, virtual_documents: bool) -> String {
    let mut text = String::new();
    for chart in record.artifacts.iter().filter(|artifact| artifact.mime.starts_with("image/")).take(MAX_CHARTS) {
        let caption = escape::inline(escape::head(chart.caption.as_deref().unwrap_or(&chart.name), 200));
        let _ = if virtual_documents {
            // The client puts the picture in, scaled; whatever its size, this text stays small.
            write!(text, "![{caption}]({})\n\n", uris::artifact(&record.run, &chart.name))
        } else {
            let target = uris::file(&chart.path).map(|uri| uri.to_string()).unwrap_or_default();
            write!(text, "[{caption}]({target})\n\n")
        };
    }
    text
}

/// The name at a position of a Python document whose session has a sandbox.
fn variable_at(state: &State, uri: &Url, position: lsp::Position) -> Option<(Arc<Session>, String, lsp::Range)> {
    let document = state.documents.get(uri)?;
    if !(state.features.options.cells && matches!(document.language.as_str(), "python" | "markdown")) {
        return None;
    }
    // Hovers over results come first.
    if state.runs.about(uri).any(|entry| !entry.hidden && entry.anchor.line() == position.line && at_end(document, position, state)) {
        return None;
    }
    let text = document.text.as_str();
    let offset = document.text.offset(position, state.features.encoding);
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    // One more character than a name may have, to either side: lines may be endless.
    let before = text[..offset].chars().rev().take(LONGEST_NAME + 1).take_while(|character| is_word(*character));
    let after = text[offset..].chars().take(LONGEST_NAME + 1).take_while(|character| is_word(*character));
    let start = offset - before.map(char::len_utf8).sum::<usize>();
    let end = offset + after.map(char::len_utf8).sum::<usize>();
    let name = &text[start..end];
    let usable = !name.is_empty() && name.len() <= LONGEST_NAME && !name.starts_with(|character: char| character.is_ascii_digit());
    usable.then(|| (state.session_for(uri), name.to_owned(), document.text.range(&(start..end), state.features.encoding)))
}

fn at_end(document: &Document, position: lsp::Position, state: &State) -> bool {
    let end = document.text.line_range(position.line as usize).end;
    document.text.offset(position, state.features.encoding) == end
}

async fn of_variable(session: &Session, name: String, range: lsp::Range) -> Option<lsp::Hover> {
    let variables = tokio::time::timeout(PATIENCE, session.variables(Some(&name))).await.ok()?.ok()?;
    let variable = variables.into_iter().find(|variable| variable.name == name)?;
    Some(lsp::Hover { contents: markdown(describe(&variable)).into(), range: Some(range) })
}

/// Type, shape, size and value of a variable.
fn describe(variable: &Variable) -> String {
    let mut text = format!("**{}** · {}", escape::inline(&variable.name), escape::inline(&variable.type_name));
    if let Some(dimensions) = variable.dimensions() {
        let _ = write!(text, " · {dimensions}");
    }
    if let Some(bytes) = variable.bytes {
        let _ = write!(text, " · {bytes} bytes");
    }
    let _ = write!(text, "\n\n{}", escape::fenced(escape::head(&variable.repr, 2000), "text"));
    text
}
