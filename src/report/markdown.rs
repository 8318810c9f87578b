//! The report that a person reads: answer first, then charts, the steps folded, the data, and how it came about.

use std::collections::HashSet;
use std::fmt::Write;

use pulldown_cmark::{Event, Parser, Tag};
use unicode_width::UnicodeWidthStr;

use super::words::{Words, status, words};
use super::{changed, escape, numbers, sanitize};
use crate::agent::run::{Artifact, Run, RunStatus, Step};
use crate::profile::{Language, render};

/// Lines of an answer that leave room for a chart on the first screen, and characters of such a line.
const SCREEN_LINES: usize = 9;
const SCREEN_COLUMNS: usize = 100;

/// How a report is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// Where links to artifacts lead, for example `artifacts/`.
    pub artifacts: String,
    /// Where links to the artifacts of the run that this one repeats lead; `None`: beside this one's folder.
    pub earlier: Option<String>,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { artifacts: "artifacts/".to_owned(), earlier: None }
    }
}

/// The report of a run, finished or under way.
pub fn markdown(run: &Run, options: &ReportOptions) -> String {
    let language = Language::of(&run.question);
    let writer = Writer { run, options, language, words: words(language) };
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = writer.write(&mut out);
    out
}

pub(super) struct Writer<'a> {
    pub(super) run: &'a Run,
    pub(super) options: &'a ReportOptions,
    pub(super) language: Language,
    pub(super) words: &'a Words,
}

impl Writer<'_> {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let run = self.run;
        writeln!(out, "# {}\n", self.title())?;
        // While there is no answer, what is going on stands in its place.
        if !run.status.is_final() {
            self.notices(out)?;
        }
        self.answer(out)?;
        if let Some(changes) = &self.run.changes {
            changed::write(out, self, changes)?;
        }
        self.charts(out)?;
        if run.status.is_final() {
            self.notices(out)?;
        }
        self.steps(out)?;
        self.data(out)?;
        self.about(out)
    }

    fn notices(&self, out: &mut String) -> std::fmt::Result {
        for notice in &self.run.notices {
            writeln!(out, "> {}\n>", escape::inline(notice))?;
        }
        if !self.run.notices.is_empty() {
            out.truncate(out.len() - 2);
            out.push('\n');
        }
        Ok(())
    }

    fn title(&self) -> String {
        let subject = self.subject();
        if self.run.changes.is_some() { format!("{}: {subject}", self.words.rerun) } else { subject }
    }

    /// What was asked; where nothing was, what the run is about.
    fn subject(&self) -> String {
        let question = escape::inline(escape::head(self.run.question.trim(), 300));
        if !question.is_empty() {
            return question;
        }
        if let Some(place) = &self.run.selection {
            let document = place.document.rsplit('/').next().unwrap_or(&place.document);
            // Documents are named by URIs, in which blanks and the like are percent-encoded.
            let document = percent_decoded(document);
            return escape::inline(&match (self.language, place.start_line + 1, place.end_line + 1) {
                (Language::English, first, last) if first == last => format!("{document}, line {first}"),
                (Language::English, first, last) => format!("{document}, lines {first} to {last}"),
                (Language::Chinese, first, last) => format!("{document} 第 {first} 至 {last} 行"),
            });
        }
        let names: Vec<String> = self.run.inputs.iter().take(3).map(|input| escape::inline(&input.name)).collect();
        if names.is_empty() { self.words.analysis.to_owned() } else { format!("{}: {}", self.words.analysis, names.join(", ")) }
    }

    fn answer(&self, out: &mut String) -> std::fmt::Result {
        let run = self.run;
        if let Some(answer) = &run.final_answer {
            let artifacts: HashSet<&str> = run.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
            let linked = numbers::linked(answer, run, |step| self.step_anchor(step));
            let text = sanitize::sanitize(&linked.text, &artifacts, &self.options.artifacts);
            let (lead, rest) = if run.artifacts.iter().any(is_chart) { first_screen(text.trim_end()) } else { (text.trim_end(), "") };
            writeln!(out, "{}\n", lead.trim_end())?;
            if !rest.is_empty() {
                writeln!(out, "<details>\n<summary>{}</summary>\n\n{}\n\n</details>\n", self.words.more, rest.trim_end())?;
            }
            if linked.unsupported {
                writeln!(out, "{} {}\n", numbers::MARK, self.words.unsupported)?;
            }
        }
        if let Some(error) = &run.error {
            if run.final_answer.is_none() {
                writeln!(out, "**{}** {}\n", self.words.no_answer, escape::sentence(&error.message))?;
            } else {
                writeln!(out, "{}\n", escape::sentence(&error.message))?;
            }
            if !error.hint.is_empty() {
                writeln!(out, "**{}:** {}\n", self.words.what_next, escape::sentence(&error.hint))?;
            }
        } else if run.final_answer.is_none() {
            let text = if run.status.is_final() { status(run.status, self.language) } else { self.words.running };
            writeln!(out, "*{text}*\n")?;
            if !run.saying.trim().is_empty() {
                writeln!(out, "{}\n", sanitize::sanitize(run.saying.trim(), &HashSet::new(), "").trim_end())?;
            }
        }
        if run.status == RunStatus::Incomplete {
            writeln!(out, "> {}: {}\n", self.words.status, status(run.status, self.language))?;
        }
        Ok(())
    }

    fn charts(&self, out: &mut String) -> std::fmt::Result {
        if self.run.artifacts.iter().any(is_chart) {
            writeln!(out, "## {}\n", self.words.charts)?;
        }
        for chart in self.run.artifacts.iter().filter(|artifact| is_chart(artifact)) {
            let alt = chart.caption.as_deref().unwrap_or(&chart.name);
            writeln!(out, "![{}]({}{})\n", escape::inline(alt), self.options.artifacts, escape::link_target(&chart.name))?;
            writeln!(out, "{}\n", self.caption(chart))?;
        }
        let others: Vec<&Artifact> = self.run.artifacts.iter().filter(|artifact| !is_chart(artifact)).collect();
        if !others.is_empty() {
            writeln!(out, "## {}\n", self.words.files_made)?;
            for artifact in others {
                let target = escape::link_target(&artifact.name);
                let step = self.step_link(artifact.step);
                writeln!(
                    out,
                    "- [{}]({}{target}) ({}, {step})",
                    escape::inline(&artifact.name),
                    self.options.artifacts,
                    bytes(artifact.bytes)
                )?;
            }
            out.push('\n');
        }
        Ok(())
    }

    /// Which step drew a chart, from which file with which contents.
    fn caption(&self, chart: &Artifact) -> String {
        let title = chart.caption.as_deref().map(|caption| format!("{} · ", escape::inline(caption))).unwrap_or_default();
        let sources: Vec<String> = self
            .run
            .inputs
            .iter()
            .take(3)
            .map(|input| format!("{} (sha256 {})", escape::inline(&input.name), escape::inline(escape::head(&input.sha256, 12))))
            .collect();
        let sources = if sources.is_empty() { String::new() } else { format!(", {} {}", self.words.from, sources.join(", ")) };
        format!("{title}{} · {}{sources}", escape::inline(&chart.name), self.step_link(chart.step))
    }

    pub(super) fn step_link(&self, step: u32) -> String {
        format!("[{} {step}](#{})", self.words.step.to_lowercase(), self.step_anchor(step))
    }

    /// Where a step's heading is within the document.
    pub(super) fn step_anchor(&self, step: u32) -> String {
        format!("{}-{step}", self.words.step.to_lowercase())
    }

    fn steps(&self, out: &mut String) -> std::fmt::Result {
        if self.run.steps.is_empty() {
            return Ok(());
        }
        writeln!(out, "## {}\n", self.words.steps)?;
        for step in &self.run.steps {
            self.step(out, step)?;
        }
        Ok(())
    }

    fn step(&self, out: &mut String, step: &Step) -> std::fmt::Result {
        writeln!(out, "### {} {}\n", self.words.step, step.step)?;
        if !step.note.trim().is_empty() {
            writeln!(out, "{}\n", sanitize::sanitize(step.note.trim(), &HashSet::new(), ""))?;
        }
        let outcome = match &step.error {
            Some(error) => escape::inline(&format!("{}: {}", error.ename, escape::head(&error.evalue, 160))),
            None => format!("{:.2} s", std::time::Duration::from_millis(step.duration_ms).as_secs_f64()),
        };
        writeln!(out, "<details>\n<summary>{} · {outcome}</summary>\n", self.words.code_and_output)?;
        writeln!(out, "{}", escape::fenced(&step.code, "python"))?;
        for text in [&step.stdout, &step.stderr] {
            if !text.trim().is_empty() {
                writeln!(out, "{}", escape::fenced(text, "text"))?;
            }
        }
        if let Some(result) = step.result.as_deref().filter(|result| !result.trim().is_empty()) {
            writeln!(out, "{}:\n\n{}", self.words.result, escape::fenced(result, "text"))?;
        }
        if let Some(error) = &step.error
            && !error.traceback.trim().is_empty()
        {
            writeln!(out, "{}", escape::fenced(&error.traceback, "text"))?;
        }
        if let Some(truncated) = step.truncated {
            let text = self
                .words
                .truncated
                .replace("{kept}", &truncated.kept_bytes.to_string())
                .replace("{total}", &truncated.total_bytes.to_string());
            writeln!(out, "*{text}*\n")?;
        }
        for notice in &step.notices {
            writeln!(out, "- {}", escape::inline(notice))?;
        }
        writeln!(out, "\n</details>\n")
    }

    fn data(&self, out: &mut String) -> std::fmt::Result {
        if self.run.files.is_empty() {
            return Ok(());
        }
        writeln!(out, "## {}\n", self.words.files)?;
        for file in &self.run.files {
            writeln!(out, "{}\n", render(file, self.language))?;
        }
        Ok(())
    }

    fn about(&self, out: &mut String) -> std::fmt::Result {
        let run = self.run;
        writeln!(out, "## {}\n", self.words.about)?;
        writeln!(out, "- {}: {}", self.words.status, status(run.status, self.language))?;
        let usage = run.usage;
        if usage.input_tokens + usage.output_tokens > 0 {
            writeln!(
                out,
                "- {}: {}, {} + {} {}",
                self.words.model,
                escape::inline(&run.model),
                usage.input_tokens,
                usage.output_tokens,
                self.words.tokens
            )?;
        } else {
            writeln!(out, "- {}: {}", self.words.model, escape::inline(&run.model))?;
        }
        if !run.sandbox.backend.is_empty() {
            writeln!(out, "- {}: {} ({})", self.words.sandbox, escape::inline(&run.sandbox.backend), escape::inline(&run.sandbox.image))?;
        }
        for entry in &run.ledger {
            let contents: Vec<String> = entry.contents.iter().map(|content| escape::inline(content)).collect();
            writeln!(
                out,
                "- {}: {}, {} → {}",
                self.words.sent,
                bytes(entry.bytes),
                contents.join(", "),
                escape::inline(&entry.destination)
            )?;
        }
        writeln!(
            out,
            "- {}: {:.1} s, {}",
            self.words.time,
            std::time::Duration::from_millis(run.duration_ms).as_secs_f64(),
            escape::inline(&moment(&run.started_at))
        )?;
        writeln!(out, "- Run: {}", escape::code(&run.run))
    }
}

/// A time stamp (RFC 3339, as runs keep it) as people read it: to the second.
fn moment(stamp: &str) -> String {
    let time = stamp.parse::<jiff::Timestamp>().map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    time.unwrap_or_else(|_| stamp.to_owned())
}

fn is_chart(artifact: &Artifact) -> bool {
    matches!(artifact.mime.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// Divides an answer between its paragraphs and list items: what leaves room for a chart on the first screen, and the rest.
fn first_screen(answer: &str) -> (&str, &str) {
    let mut level = 0_usize;
    let mut lines = 0;
    for (event, range) in Parser::new_ext(answer, sanitize::OPTIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let piece =
                    if matches!(tag, Tag::List(_)) { None } else { (level <= usize::from(matches!(tag, Tag::Item))).then_some(range) };
                level += 1;
                let Some(range) = piece else { continue };
                let needed = answer[range.clone()].lines().map(|line| 1 + visible_width(line) / SCREEN_COLUMNS).sum::<usize>();
                if lines > 0 && lines + needed > SCREEN_LINES {
                    return answer.split_at(range.start);
                }
                lines += needed;
            }
            Event::End(_) => level -= 1,
            _ => {}
        }
    }
    (answer, "")
}

/// Columns of a line of markdown without the targets of its links.
fn visible_width(line: &str) -> usize {
    let mut width = 0;
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        width += rest[..at].width();
        rest = rest[at..].split_once(')').map_or("", |(_, after)| after);
    }
    width + rest.width()
}

/// A part of a URI as people read it; what is no UTF-8 stays encoded.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code =
            others.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = code.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A number of bytes for people.
fn bytes(count: u64) -> String {
    // Precision is lost only beyond 2^53 bytes, and one decimal is shown.
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let float = count as f64;
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{:.1} KiB", float / 1024.0),
        _ => format!("{:.1} MiB", float / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_leaves_room_for_a_chart() {
        let items: Vec<String> = (1..=12).map(|at| format!("- finding {at}\n")).collect();
        let answer = format!("It rose.\n\n{}", items.concat());
        let (lead, rest) = first_screen(&answer);
        assert!(lead.starts_with("It rose.") && lead.ends_with("- finding 8\n"), "{lead}");
        assert!(rest.starts_with("- finding 9\n") && rest.ends_with("- finding 12\n"), "{rest}");
        assert_eq!(first_screen("One.\n\n- a\n- b\n  - c\n"), ("One.\n\n- a\n- b\n  - c\n", ""));
        let links = "[5](#step-1) ".repeat(40);
        assert_eq!(first_screen(&format!("{links}\n\n- a\n- b\n")).1, "", "targets of links take no room");
        assert_eq!(first_screen(&"x".repeat(5000)).1, "", "the first piece always stays");
    }

    #[test]
    fn a_run_without_a_question_is_titled_by_its_place() {
        let place = crate::agent::run::SelectionInfo { document: "file:///w/my%20code.py".to_owned(), start_line: 2, end_line: 5 };
        let run = Run { selection: Some(place), status: RunStatus::Completed, ..Run::default() };
        assert!(markdown(&run, &ReportOptions::default()).starts_with("# my code.py, lines 3 to 6\n"));
    }
}
