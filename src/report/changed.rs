//! What a rerun changed, for people: the data, the numbers, the charts side by side, and the earlier answer.

use std::collections::HashSet;
use std::fmt::Write;

use super::markdown::Writer;
use super::{escape, numbers, sanitize};
use crate::agent::changes::{Changes, ChartChange, FileChange, LineChange};
use crate::agent::run::RunStatus;
use crate::profile::Language;

pub(super) fn write(out: &mut String, report: &Writer<'_>, changes: &Changes) -> std::fmt::Result {
    let words = report.words;
    writeln!(out, "## {}\n", words.changed)?;
    for file in &changes.files {
        writeln!(out, "- {}", file_line(file, report.language))?;
    }
    if changes.is_empty() && report.run.status == RunStatus::Completed {
        writeln!(out, "- **{}**", words.nothing_changed)?;
    }
    if changes.same_charts > 0 {
        writeln!(out, "- {}: {}", words.same_charts, changes.same_charts)?;
    }
    out.push('\n');
    table(out, report, changes)?;
    charts(out, report, &changes.charts)?;
    earlier(out, report, changes)
}

fn file_line(file: &FileChange, language: Language) -> String {
    let name = escape::inline(&file.name);
    let state =
        if file.same { language.pick("the same contents", "内容未变") } else { language.pick("other contents", "内容已变") };
    match file.rows {
        Some((before, now)) if before != now => match language {
            Language::English => format!("{name}: {state}, {before} → {now} rows"),
            Language::Chinese => format!("{name}：{state}，{before} → {now} 行"),
        },
        _ => format!("{name}{}{state}", language.pick(": ", "：")),
    }
}

fn table(out: &mut String, report: &Writer<'_>, changes: &Changes) -> std::fmt::Result {
    if changes.lines.is_empty() {
        return Ok(());
    }
    let words = report.words;
    writeln!(out, "| | {} | {} | {} |\n|---|---|---|---|", words.before, words.now, words.step)?;
    for LineChange { step, label, before, after } in &changes.lines {
        let cell = |text: &Option<String>| text.as_deref().map_or_else(|| "–".to_owned(), escape::inline);
        let whole = before.is_none() || after.is_none();
        // A line that is new or gone stands whole in its own column.
        let label = if whole { String::new() } else { escape::inline(label) };
        let (before, after) = (cell(before), cell(after));
        writeln!(out, "| {label} | {before} | {after} | {} |", report.step_link(*step))?;
    }
    if changes.more > 0 {
        writeln!(out, "\n… (+{})", changes.more)?;
    }
    out.push('\n');
    Ok(())
}

fn charts(out: &mut String, report: &Writer<'_>, charts: &[ChartChange]) -> std::fmt::Result {
    if charts.is_empty() {
        return Ok(());
    }
    let words = report.words;
    let Some(changes) = &report.run.changes else { return Ok(()) };
    let earlier = report.options.earlier.clone().unwrap_or_else(|| format!("../{}/artifacts/", escape::link_target(&changes.earlier)));
    writeln!(out, "| {} | {} |\n|---|---|", words.before, words.now)?;
    for chart in charts {
        let picture = |name: &Option<String>, folder: &str| {
            let alt = chart.title.as_deref().or(name.as_deref()).unwrap_or_default();
            name.as_deref()
                .map_or_else(|| "–".to_owned(), |name| format!("![{}]({folder}{})", escape::inline(alt), escape::link_target(name)))
        };
        writeln!(out, "| {} | {} |", picture(&chart.before, &earlier), picture(&chart.after, &report.options.artifacts))?;
    }
    out.push('\n');
    Ok(())
}

/// The earlier answer; numbers that the code does not print any more are marked.
fn earlier(out: &mut String, report: &Writer<'_>, changes: &Changes) -> std::fmt::Result {
    let Some(answer) = &changes.earlier_answer else { return Ok(()) };
    let words = report.words;
    writeln!(out, "## {} ({})\n", words.earlier_answer, escape::inline(changes.earlier_at.split('.').next().unwrap_or_default()))?;
    let linked = numbers::linked(answer, report.run, |step| report.step_anchor(step));
    if linked.unsupported {
        writeln!(out, "{} {}\n", numbers::MARK, words.not_printed_now)?;
    }
    let own = report.run.artifacts.iter().map(|artifact| artifact.name.as_str()).collect::<HashSet<&str>>();
    writeln!(out, "{}\n", sanitize::sanitize(&linked.text, &own, &report.options.artifacts).trim_end())
}
