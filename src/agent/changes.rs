//! What an execution showed, and how that differs from what it showed before: for reruns and for replays of exports.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::execution::{Execution, FigureDescription, Output, text_of};
use super::run::{Run, Step};

/// Lines of one step that are compared; a flood says nothing more.
const MAX_LINES: usize = 400;
/// Changed lines that are told of one run.
const MAX_CHANGES: usize = 60;
/// Characters of a label or a value that are told.
const MAX_CHARS: usize = 120;

/// What a step printed and drew.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Its lines, blanks reduced.
    pub lines: Vec<String>,
    /// Its figures.
    pub figures: Vec<FigureDescription>,
}

impl Shown {
    /// What a recorded step showed.
    pub fn of_step(step: &Step) -> Self {
        Self::of(&step.stdout, step.result.as_deref(), &step.outputs, &step.figures)
    }

    /// What an execution showed.
    pub fn of_execution(execution: &Execution) -> Self {
        Self::of(&execution.stdout, execution.result.as_deref(), &execution.outputs, &execution.figures)
    }

    fn of(stdout: &str, result: Option<&str>, outputs: &[Output], figures: &[FigureDescription]) -> Self {
        let displayed = outputs.iter().filter_map(|output| match output {
            Output::DisplayData { data, .. } => text_of(data, "text/plain").filter(|text| !text.starts_with("<Figure size")),
            Output::Stream { .. } | Output::ExecuteResult { .. } | Output::Error(_) => None,
        });
        let mut lines = Vec::new();
        for text in [stdout.to_owned()].into_iter().chain(displayed).chain(result.filter(|text| is_value(text)).map(str::to_owned)) {
            lines.extend(text.lines().map(plain_line).filter(|line| !line.is_empty()).take(MAX_LINES.saturating_sub(lines.len())));
        }
        Self { lines, figures: figures.to_vec() }
    }

    /// The first difference to what was shown before, as a sentence; none where both show the same.
    pub fn difference(&self, before: &Self) -> Option<String> {
        let differs = before.lines.iter().zip(&self.lines).position(|(before, now)| before != now);
        if let Some(at) = differs {
            return Some(format!("it printed `{}` where it had printed `{}`", cut(&self.lines[at]), cut(&before.lines[at])));
        }
        if self.lines.len() != before.lines.len() {
            return Some(format!("it printed {} lines where it had printed {}", self.lines.len(), before.lines.len()));
        }
        if self.figures.len() != before.figures.len() {
            return Some(format!("it drew {} charts where it had drawn {}", self.figures.len(), before.figures.len()));
        }
        let drawn = self.figures.iter().zip(&before.figures).any(|(now, before)| !same_figure(now, before));
        drawn.then(|| "a chart shows other values than before".to_owned())
    }
}

/// Whether the text of a result says something of a value: `<Axes: …>` only names an object.
pub fn is_value(result: &str) -> bool {
    !result.trim_start().starts_with('<') && !result.contains("<Axes") && !result.trim().is_empty()
}

/// Whether two figures show the same, as far as their descriptions tell.
pub fn same_figure(one: &FigureDescription, other: &FigureDescription) -> bool {
    one.title == other.title && one.detail == other.detail
}

/// A line without what differs from one process to the next or between a value and its `repr`: addresses, quotation
/// marks, runs of blanks, and the mark of a table's size.
fn plain_line(line: &str) -> String {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static NOISE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"0x[0-9a-f]{6,}|['"]|^\[(?:DataFrame|Series) [0-9×]+\]"#).unwrap());
    NOISE.replace_all(line, "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CHARS { text.to_owned() } else { text.chars().take(MAX_CHARS).chain(['…']).collect() }
}

// ── a run against an earlier one ─────────────────────────────────────────────────────────────────────────────

/// How a run differs from the earlier one that it repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// The earlier run.
    pub earlier: String,
    /// When that was, RFC 3339.
    pub earlier_at: String,
    /// What that one concluded.
    pub earlier_answer: Option<String>,
    /// How each input file stands to what it was.
    pub files: Vec<FileChange>,
    /// Lines whose numbers are others now, lines that are new, and lines that are gone; in order.
    pub lines: Vec<LineChange>,
    /// Changed lines beyond those that are told.
    pub more: usize,
    /// Charts that show something else now.
    pub charts: Vec<ChartChange>,
    /// Charts that show the same.
    pub same_charts: usize,
}

/// An input file then and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its name.
    pub name: String,
    /// Whether its contents are the same to the byte.
    pub same: bool,
    /// Rows then and now, where both are known.
    pub rows: Option<(u64, u64)>,
}

/// A line of output then and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineChange {
    /// The step that printed it.
    pub step: u32,
    /// The words of the line; empty where it has none.
    pub label: String,
    /// What stood there; `None` where the line is new.
    pub before: Option<String>,
    /// What stands there now; `None` where the line is gone.
    pub after: Option<String>,
}

/// A chart then and now, by the names of their artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartChange {
    /// Its title, where it has one.
    pub title: Option<String>,
    /// The earlier run's artifact.
    pub before: Option<String>,
    /// This run's artifact.
    pub after: Option<String>,
}

impl Changes {
    /// How `now` differs from `before`, whose code it repeats: `steps` tells of each step of `now` which one of `before`
    /// it is; what is none of them is not compared.
    pub fn between(before: &Run, now: &Run, steps: &[Option<u32>]) -> Self {
        let mut changes = Self {
            earlier: before.run.clone(),
            earlier_at: before.started_at.clone(),
            earlier_answer: before.final_answer.clone(),
            files: now.inputs.iter().map(|input| file_change(before, now, &input.name)).collect(),
            ..Self::default()
        };
        for (step, repeats) in now.steps.iter().zip(steps) {
            if let Some(earlier) = before.steps.iter().find(|earlier| Some(earlier.step) == *repeats) {
                changes.lines.extend(line_changes(step.step, &Shown::of_step(earlier).lines, &Shown::of_step(step).lines));
                changes.charts_of(earlier, step);
            }
        }
        changes.more = changes.lines.len().saturating_sub(MAX_CHANGES);
        changes.lines.truncate(MAX_CHANGES);
        changes
    }

    /// Whether everything is as it was.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.charts.is_empty()
    }

    fn charts_of(&mut self, before: &Step, now: &Step) {
        let (old, new) = (charts(before), charts(now));
        for at in 0..old.len().max(new.len()) {
            let figure = |step: &Step| step.figures.iter().find(|figure| figure.index == at).cloned();
            let (one, other) = (figure(before), figure(now));
            let same = match (&one, &other) {
                (Some(one), Some(other)) => same_figure(one, other),
                _ => false,
            };
            if same {
                self.same_charts += 1;
            } else {
                let title = other.or(one).and_then(|figure| figure.title);
                self.charts.push(ChartChange { title, before: old.get(at).cloned(), after: new.get(at).cloned() });
            }
        }
    }
}

fn file_change(before: &Run, now: &Run, name: &str) -> FileChange {
    let hash = |run: &Run| run.inputs.iter().find(|input| input.name == name).map(|input| input.sha256.clone());
    let rows = |run: &Run| {
        let mut profiles = run.files.iter().filter_map(|outcome| outcome.profile());
        profiles.find(|profile| profile.file == name).and_then(|profile| profile.rows)
    };
    FileChange { name: name.to_owned(), same: hash(before) == hash(now), rows: rows(before).zip(rows(now)) }
}

/// Names of the pictures that a step left, in order.
fn charts(step: &Step) -> Vec<String> {
    let name = |output: &Output| match output {
        Output::DisplayData { data, .. } | Output::ExecuteResult { data } => {
            data.get("artifact").and_then(Value::as_str).map(str::to_owned)
        }
        Output::Stream { .. } | Output::Error(_) => None,
    };
    step.outputs.iter().filter_map(name).filter(|name| [".png", ".jpg", ".gif"].iter().any(|ending| name.ends_with(ending))).collect()
}

/// A line's words, and its numbers and dates as they are written.
fn parts(line: &str) -> (String, Vec<String>) {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[-+\u{2212}]?\d+(?:[.,:/-]\d+)*(?:[eE][-+]?\d+)?").unwrap());
    let words = NUMBER.replace_all(line, " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_start_matches(['-', '*', ' ']).trim_end_matches([':', ' ']).to_owned();
    (words, NUMBER.find_iter(line).map(|number| number.as_str().to_owned()).collect())
}

/// The differences of two outputs. Lines belong together where their words are the same: in order, and what is left
/// over wherever it stands, since tables are sorted by their values.
fn line_changes(step: u32, before: &[String], now: &[String]) -> Vec<LineChange> {
    let old: Vec<_> = before.iter().map(|line| parts(line)).collect();
    let new: Vec<_> = now.iter().map(|line| parts(line)).collect();
    let mut partner: Vec<Option<usize>> = vec![None; new.len()];
    let mut left: Vec<bool> = vec![true; old.len()];
    for (one, other) in matched(&old, &new) {
        (partner[other], left[one]) = (Some(one), false);
    }
    for other in 0..new.len() {
        if partner[other].is_none() {
            partner[other] = (0..old.len()).find(|one| left[*one] && old[*one].0 == new[other].0);
            if let Some(one) = partner[other] {
                left[one] = false;
            }
        }
    }
    let mut out = Vec::new();
    for (other, (label, is)) in new.iter().enumerate() {
        let label = cut(label);
        match partner[other].map(|one| &old[one].1) {
            None => out.push(LineChange { step, label, before: None, after: Some(cut(&now[other])) }),
            Some(was) if was != is => {
                let (before, after) = (differing(was, is), differing(is, was));
                out.push(LineChange { step, label, before: Some(before), after: Some(after) });
            }
            Some(_) => {}
        }
    }
    for one in (0..old.len()).filter(|one| left[*one]) {
        out.push(LineChange { step, label: cut(&old[one].0), before: Some(cut(&before[one])), after: None });
    }
    out
}

/// The numbers that are others in the other list; all where their count is another.
fn differing(values: &[String], others: &[String]) -> String {
    let all = values.iter().enumerate().filter(|(at, value)| values.len() != others.len() || others.get(*at) != Some(value));
    cut(&all.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", "))
}

/// Places of lines with the same words: a longest common subsequence.
fn matched(old: &[(String, Vec<String>)], new: &[(String, Vec<String>)]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for one in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            longest[one * width + other] = if old[one].0 == new[other].0 {
                longest[(one + 1) * width + other + 1] + 1
            } else {
                longest[(one + 1) * width + other].max(longest[one * width + other + 1])
            };
        }
    }
    let (mut one, mut other, mut pairs) = (0, 0, Vec::new());
    while one < old.len() && other < new.len() {
        if old[one].0 == new[other].0 {
            pairs.push((one, other));
            one += 1;
            other += 1;
        } else if longest[(one + 1) * width + other] >= longest[one * width + other + 1] {
            one += 1;
        } else {
            other += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(stdout: &str) -> Step {
        Step { step: 1, stdout: stdout.to_owned(), ..Step::default() }
    }

    fn run(step: Step) -> Run {
        Run { steps: vec![step], ..Run::default() }
    }

    #[test]
    fn changed_numbers_new_lines_and_gone_lines_are_told() {
        let before = run(step("rows 24\nNorth 10 20\nSouth 5 6\nmean 3.5\n"));
        let now = run(step("rows 26\nNorth 10 21\nWest 7 8\nmean 3.5\n"));
        let told: Vec<(String, Option<String>, Option<String>)> = Changes::between(&before, &now, &[Some(1)])
            .lines
            .into_iter()
            .map(|change| (change.label, change.before, change.after))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            told,
            [
                ("rows".to_owned(), some("24"), some("26")),
                ("North".to_owned(), some("20"), some("21")),
                ("West".to_owned(), None, some("West 7 8")),
                ("South".to_owned(), some("South 5 6"), None),
            ]
        );
    }

    #[test]
    fn rows_that_only_moved_are_no_change() {
        let before = run(step("- a: 3\n- b: 2\n- c: 1, of 2024-01-01\n"));
        let now = run(step("- c: 9, of 2024-01-01\n- a: 3\n- b: 2\n"));
        let lines = Changes::between(&before, &now, &[Some(1)]).lines;
        assert_eq!(lines, [LineChange { step: 1, label: "c: , of".to_owned(), before: Some("1".to_owned()), after: Some("9".to_owned()) }]);
    }

    #[test]
    fn charts_are_compared_by_what_they_show() {
        let drawn = |value: u32| {
            let output = json!({"artifact": "chart-1.png"}).as_object().cloned().unwrap_or_default();
            Step {
                step: 1,
                outputs: vec![Output::DisplayData { data: output, display_id: None }],
                figures: vec![FigureDescription { index: 0, title: None, detail: json!({"max": value}) }],
                ..Step::default()
            }
        };
        assert_eq!(Changes::between(&run(drawn(1)), &run(drawn(1)), &[Some(1)]).same_charts, 1);
        let changes = Changes::between(&run(drawn(1)), &run(drawn(2)), &[Some(1)]);
        assert_eq!(changes.charts.len(), 1);
        assert!(!changes.is_empty());
    }

    #[test]
    fn noise_is_no_difference() {
        let shown = |text: &str| Shown::of_step(&step(text));
        assert_eq!(shown("<object at 0x7f12ab34cd>\n'a'  1").difference(&shown("<object at 0x7fffffffff>\n a 1")), None);
        assert!(shown("mean 1.5").difference(&shown("mean 2.5")).is_some_and(|text| text.contains("`mean 1.5`")));
    }
}
