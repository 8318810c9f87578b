//! What stands at the end of a line: at most forty characters, made of parts that can be clicked.
//!
//! VS Code shows 43 characters of inlay hints a line by default, so a line has one hint, and what does not fit is left
//! out in this order: gaps of columns, charts beyond the first, the number of columns. Details are in hovers.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;

use super::convert::command;
use super::runs::RunEntry;
use crate::agent::execution::ExecutionError;
use crate::agent::run::{Run, RunStatus, Step};
use crate::report::escape;

/// Characters of a hint.
pub const LONGEST: usize = 40;

/// What stands between parts.
const BETWEEN: &str = " · ";

/// One part of a hint.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What is shown.
    pub text: String,
    /// More about it.
    pub tooltip: Option<String>,
    /// What a click does.
    pub command: Option<lsp::Command>,
}

impl Part {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tooltip: None, command: None }
    }
}

/// What stands at the end of one line.
#[derive(Debug, Clone, Default)]
pub struct LineHint {
    /// `12 cols · 3 with gaps`, of a header line.
    pub columns: Option<String>,
    /// Parts of a run's result.
    pub result: Vec<Part>,
}

fn width(parts: &[Part]) -> usize {
    let text: usize = parts.iter().map(|part| part.text.chars().count()).sum();
    text + BETWEEN.chars().count() * parts.len().saturating_sub(1)
}

impl LineHint {
    /// The parts that fit.
    pub fn fit(&self) -> Vec<Part> {
        let columns: Vec<&str> = self.columns.as_deref().map(|text| text.split(BETWEEN).collect()).unwrap_or_default();
        let mut head: Vec<Part> = columns.into_iter().map(Part::plain).collect();
        let mut result = self.result.clone();
        while !result.is_empty() && head.len() > 1 && width(&head) + BETWEEN.chars().count() + width(&result) > LONGEST {
            head.pop();
        }
        let all = |head: &[Part], result: &[Part]| head.iter().chain(result).cloned().collect::<Vec<Part>>();
        while width(&all(&head, &result)) > LONGEST {
            // The last part opens the report: it stays.
            if result.len() > 2 {
                result.remove(result.len() - 2);
            } else if !head.is_empty() {
                head.pop();
            } else if result.len() > 1 {
                result.remove(0);
            } else {
                for part in &mut result {
                    part.text = cut(&part.text, LONGEST);
                }
                break;
            }
        }
        all(&head, &result)
    }

    /// The hint at a position; `None` where there is nothing to say.
    pub fn at(&self, position: lsp::Position) -> Option<lsp::InlayHint> {
        let parts = self.fit();
        if parts.is_empty() {
            return None;
        }
        let last = parts.len() - 1;
        let label: Vec<lsp::InlayHintLabelPart> = parts
            .into_iter()
            .enumerate()
            .map(|(at, part)| lsp::InlayHintLabelPart {
                // The separator belongs to the part before it: one part, one click.
                value: if at < last { format!("{}{BETWEEN}", part.text) } else { part.text },
                tooltip: part.tooltip.map(Into::into),
                location: None,
                command: part.command,
            })
            .collect();
        Some(lsp::InlayHint {
            position,
            label: label.into(),
            kind: None,
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: None,
        })
    }
}

/// At most `longest` characters.
fn cut(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// The parts of a run's hint.
pub fn result(entry: &RunEntry, record: &Run) -> Vec<Part> {
    let mut parts = Vec::new();
    let report = |text: &str| Part {
        text: text.to_owned(),
        tooltip: Some(tooltip(record)),
        command: Some(command("Open the report", "openReport", json!({"run": record.run}))),
    };
    if entry.anchor.stale && entry.status.is_final() {
        parts.push(Part { tooltip: Some("The text was changed since.".to_owned()), ..Part::plain("stale") });
    }
    match record.status {
        RunStatus::Queued => parts.push(report("queued")),
        RunStatus::Running => {
            let step = if entry.step > 0 { format!("running step {}", entry.step) } else { "running".to_owned() };
            parts.push(report(&step));
        }
        RunStatus::Cancelled => {}
        RunStatus::Failed => {
            let error = record.steps.iter().rev().find_map(|step| step.error.as_ref()).map(|error| raised(entry, error));
            parts.push(Part {
                command: report("").command,
                tooltip: Some(tooltip(record)),
                ..Part::plain(error.unwrap_or_else(|| "failed".to_owned()))
            });
            parts.push(report("report"));
        }
        RunStatus::Completed | RunStatus::Incomplete => {
            if entry.code {
                parts.extend(value(record).map(Part::plain));
            }
            let charts = record.artifacts.iter().filter(|artifact| artifact.mime.starts_with("image/"));
            for (number, chart) in (1..=9).zip(charts) {
                parts.push(Part {
                    text: format!("chart {number}"),
                    tooltip: Some(escape::plain(chart.caption.as_deref().unwrap_or(&chart.name))),
                    command: Some(command(format!("Open {}", chart.name), "openArtifact", json!({"run": record.run, "name": chart.name}))),
                });
            }
            parts.push(report("report"));
        }
    }
    parts
}

/// An error's name, and for a person's own code the line of the document where it was raised.
fn raised(entry: &RunEntry, error: &ExecutionError) -> String {
    let line = error.line().filter(|_| entry.code && !entry.anchor.stale);
    // Lines of the code are counted from 1, as those of the document are for people.
    let place = line.map(|line| format!(", line {}", u64::from(entry.anchor.first) + line)).unwrap_or_default();
    format!("{}{place}", cut(&escape::plain(&error.ename), 30_usize.saturating_sub(place.chars().count()).min(24)))
}

/// The value of a cell: what its result is and its shape, where that says more than its beginning; else the beginning of
/// the result, or the last line that it printed; else how long it took.
fn value(record: &Run) -> Option<String> {
    let step = record.steps.last()?;
    if let Some(shape) = shape(step) {
        return Some(cut(&shape, 24));
    }
    let shown = step.result.as_deref().or_else(|| step.stdout.lines().rev().find(|line| !line.trim().is_empty()));
    let plain = shown.map(escape::plain).unwrap_or_default();
    let first = plain.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let time = if step.duration_ms >= 1000 {
        format!("{}.{} s", step.duration_ms / 1000, step.duration_ms % 1000 / 100)
    } else {
        format!("{} ms", step.duration_ms)
    };
    Some(if first.is_empty() { time } else { cut(first, 24) })
}

/// `DataFrame 1200 × 8`, where the last line of the code is the name of a table or array that the code made.
fn shape(step: &Step) -> Option<String> {
    step.result.as_ref()?;
    let name = step.code.trim_end().rsplit('\n').next()?.trim_end();
    let variable = step.variables.iter().find(|variable| variable.name == name)?;
    let is_table = variable.shape.as_ref().is_some_and(|shape| shape.len() >= 2) || variable.type_name == "Series";
    is_table.then_some(())?;
    Some(escape::plain(&format!("{} {}", variable.type_name, variable.dimensions()?)))
}

fn tooltip(record: &Run) -> String {
    cut(&escape::plain(gist(record).unwrap_or(&record.question)), 300)
}

/// What a run came to, in short: why it failed, or the paragraphs of its answer after notices in emphasis.
pub fn gist(record: &Run) -> Option<&str> {
    if let Some(error) = &record.error {
        return Some(&error.message);
    }
    let answer = record.final_answer.as_deref()?.trim();
    let notice = |paragraph: &str| {
        paragraph.starts_with('*') && !paragraph.starts_with("* ") && !paragraph.starts_with("**") && paragraph.ends_with('*')
    };
    match answer.split_once("\n\n") {
        Some((first, rest)) if notice(first.trim()) => Some(rest.trim()),
        _ => Some(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::execution::Variable;

    fn hint(columns: Option<&str>, result: &[&str]) -> String {
        let line = LineHint { columns: columns.map(str::to_owned), result: result.iter().map(|text| Part::plain(*text)).collect() };
        let text = line.fit().iter().map(|part| part.text.clone()).collect::<Vec<_>>().join(BETWEEN);
        assert!(text.chars().count() <= LONGEST, "{text}");
        text
    }

    #[test]
    fn a_table_is_told_by_its_shape_and_other_values_by_their_beginning() {
        let variable = |name: &str, type_name: &str, shape: &[u64]| Variable {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            shape: Some(shape.to_vec()),
            bytes: None,
            repr: String::new(),
        };
        let variables = vec![variable("df", "DataFrame", &[1200, 8]), variable("s", "Series", &[5]), variable("l", "list", &[2])];
        let told = |code: &str, result: &str| {
            let step = Step { code: code.to_owned(), result: Some(result.to_owned()), variables: variables.clone(), ..Step::default() };
            value(&Run { steps: vec![step], ..Run::default() })
        };
        assert_eq!(told("df = load()\ndf\n", "   a  b\n0  1  2"), Some("DataFrame 1200 × 8".to_owned()));
        assert_eq!(told("s", "0  1"), Some("Series 5".to_owned()));
        assert_eq!(told("l", "[1, 2]"), Some("[1, 2]".to_owned()));
        assert_eq!(told("df.head(1)", "   a  b\n0  1  2"), Some("a  b".to_owned()));
    }

    #[test]
    fn a_line_has_forty_characters_and_keeps_what_matters() {
        assert_eq!(hint(Some("12 cols · 3 with gaps"), &[]), "12 cols · 3 with gaps");
        assert_eq!(hint(None, &["chart 1", "chart 2", "report"]), "chart 1 · chart 2 · report");
        assert_eq!(hint(Some("12 cols · 3 with gaps"), &["chart 1", "report"]), "12 cols · 3 with gaps · chart 1 · report");
        assert_eq!(hint(Some("12 cols · 3 with gaps"), &["chart 1", "chart 2", "report"]), "12 cols · chart 1 · chart 2 · report");
        let many = ["stale", "chart 1", "chart 2", "chart 3", "chart 4", "report"];
        assert_eq!(hint(Some("12 cols · 3 with gaps"), &many), "12 cols · stale · chart 1 · report");
        assert_eq!(hint(None, &[&"x".repeat(60)]).chars().count(), LONGEST);
    }
}
