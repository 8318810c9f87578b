//! The report that a person reads: answer first, then charts, the steps folded, the data, and how it came about.

use std::collections::HashSet;
use std::fmt::Write;

use super::words::{Words, status, words};
use super::{escape, numbers, sanitize};
use crate::agent::run::{Artifact, Run, RunStatus, Step};
use crate::profile::{Language, render};

/// How a report is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// Where links to artifacts lead, for example `artifacts/`.
    pub artifacts: String,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { artifacts: "artifacts/".to_owned() }
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

struct Writer<'a> {
    run: &'a Run,
    options: &'a ReportOptions,
    language: Language,
    words: &'a Words,
}

impl Writer<'_> {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let run = self.run;
        writeln!(out, "# {}\n", self.title())?;
        for notice in &run.notices {
            writeln!(out, "> {}\n>", escape::inline(notice))?;
        }
        if !run.notices.is_empty() {
            out.truncate(out.len() - 2);
            out.push('\n');
        }
        self.answer(out)?;
        self.charts(out)?;
        self.steps(out)?;
        self.data(out)?;
        self.about(out)
    }

    fn title(&self) -> String {
        if !self.run.question.trim().is_empty() {
            return escape::inline(escape::head(self.run.question.trim(), 300));
        }
        let names: Vec<String> = self.run.inputs.iter().take(3).map(|input| escape::inline(&input.name)).collect();
        if names.is_empty() { self.words.analysis.to_owned() } else { format!("{}: {}", self.words.analysis, names.join(", ")) }
    }

    fn answer(&self, out: &mut String) -> std::fmt::Result {
        let run = self.run;
        if let Some(answer) = &run.final_answer {
            let artifacts: HashSet<&str> = run.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
            let linked = numbers::linked(answer, run, |step| self.step_anchor(step));
            writeln!(out, "{}\n", sanitize::sanitize(&linked.text, &artifacts, &self.options.artifacts).trim_end())?;
            if linked.unsupported {
                writeln!(out, "{} {}\n", numbers::MARK, self.words.unsupported)?;
            }
        }
        if let Some(error) = &run.error {
            if run.final_answer.is_none() {
                writeln!(out, "**{}** {}\n", self.words.no_answer, escape::inline(&error.message))?;
            } else {
                writeln!(out, "{}\n", escape::inline(&error.message))?;
            }
            if !error.hint.is_empty() {
                writeln!(out, "**{}:** {}\n", self.words.what_next, escape::inline(&error.hint))?;
            }
        } else if run.final_answer.is_none() {
            let text = if run.status.is_final() { status(run.status, self.language) } else { self.words.running };
            writeln!(out, "*{text}*\n")?;
        }
        if run.status == RunStatus::Incomplete {
            writeln!(out, "> {}: {}\n", self.words.status, status(run.status, self.language))?;
        }
        Ok(())
    }

    fn charts(&self, out: &mut String) -> std::fmt::Result {
        let is_chart = |artifact: &&Artifact| matches!(artifact.mime.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp");
        if self.run.artifacts.iter().any(|artifact| is_chart(&artifact)) {
            writeln!(out, "## {}\n", self.words.charts)?;
        }
        for chart in self.run.artifacts.iter().filter(is_chart) {
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

    fn step_link(&self, step: u32) -> String {
        format!("[{} {step}](#{})", self.words.step.to_lowercase(), self.step_anchor(step))
    }

    /// Where a step's heading is within the document.
    fn step_anchor(&self, step: u32) -> String {
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
            escape::inline(&run.started_at)
        )?;
        writeln!(out, "- Run: {}", escape::code(&run.run))
    }
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
