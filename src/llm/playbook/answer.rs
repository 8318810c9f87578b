//! The last turn: what was found. Its sentences are those that the steps printed.

use super::dialogue::{Dialogue, File};
use super::facts::Facts;
use super::intent::Intent;
use super::program::Step;
use crate::profile::Language;

/// The first line of every answer.
fn first_line(language: Language) -> &'static str {
    language.pick(
        "*No language model was used: this is the built-in analysis. For answers to any question set `model` or CODEINTERP_MODEL, for example to `openai::gpt-5-mini` or `ollama::qwen3-coder`.*",
        "*未使用语言模型：这是内置分析。要回答任意问题，请设置 `model` 或 CODEINTERP_MODEL，例如 `openai::gpt-5-mini` 或 `ollama::qwen3-coder`。*",
    )
}

/// There is nothing to analyse.
pub fn without_files(language: Language) -> String {
    let sentence = language.pick(
        "There is no data file to analyse. Without a language model, a question about a file can be answered, not one without.",
        "没有可分析的数据文件。没有语言模型时，只能回答有关文件的问题。",
    );
    format!("{}\n\n{sentence}", first_line(language))
}

/// The conclusion was asked for before anything was done.
pub fn nothing_done(language: Language) -> String {
    format!(
        "{}\n\n{}",
        first_line(language),
        language.pick("Nothing was executed, so nothing was found.", "没有执行任何步骤，因此没有结果。")
    )
}

/// What was found.
pub fn answer(dialogue: &Dialogue, facts: &Facts, intent: &Intent, plan: &[Step]) -> String {
    let language = dialogue.language;
    let mut text = format!("{}\n\n", first_line(language));
    if let Some(failed) = dialogue.steps.first().filter(|step| step.failed) {
        let error = failed.error.as_deref().unwrap_or_default();
        let line = match language {
            Language::English => format!("The files could not be loaded: {}", quoted(error)),
            Language::Chinese => format!("文件无法加载：{}", quoted(error)),
        };
        text.push_str(&line);
        return text;
    }
    if *intent == Intent::Unknown {
        text.push_str(language.pick(
            "I can't answer this question without a language model: I know counts, maximum, minimum, mean, median, sum, the top N, values by group, missing values and correlations. What the data shows in general:\n\n",
            "没有语言模型，我无法回答这个问题：我能计算个数、最大值、最小值、平均值、中位数、总和、前 N 名、分组统计、缺失值和相关性。以下是数据的总体情况：\n\n",
        ));
    }
    let steps = dialogue.steps.iter().skip(1);
    let (answers, findings): (Vec<_>, Vec<_>) = plan.iter().zip(steps).partition(|(step, _)| step.is_answer);
    for (_, seen) in answers {
        text.push_str(&sentences(&seen.stdout, language));
        if seen.failed {
            text.push_str(&failure(seen.error.as_deref(), language));
        }
        text.push('\n');
    }
    text.push_str(&shapes(facts, &dialogue.files, language));
    for file in &dialogue.files {
        if let Some(fault) = &file.fault {
            let line = match language {
                Language::English => format!("- {} can't be read: {}\n", file.name, quoted(fault)),
                Language::Chinese => format!("- {} 无法读取：{}\n", file.name, quoted(fault)),
            };
            text.push_str(&line);
        }
    }
    text.push_str(&in_turns(findings.iter().filter(|(_, seen)| !seen.failed).map(|(_, seen)| sentences(&seen.stdout, language))));
    for (_, seen) in findings.iter().filter(|(_, seen)| seen.failed) {
        text.push_str(&failure(seen.error.as_deref(), language));
    }
    if let Intent::Missing { table } = intent
        && plan.is_empty()
    {
        let line = match language {
            Language::English => format!("- No value is missing in {table}.\n"),
            Language::Chinese => format!("- {table} 中没有缺失值。\n"),
        };
        text.push_str(&line);
    }
    for file in dialogue.files.iter().filter(|file| file.row_limit.is_some()) {
        let rows = file.row_limit.unwrap_or_default();
        let line = match language {
            Language::English => format!(
                "- Only the first {rows} rows of {} were loaded (setting `files.maxRows`); the numbers are about those.\n",
                file.name
            ),
            Language::Chinese => format!("- {} 只加载了前 {rows} 行（设置 `files.maxRows`），以上数字只针对这些行。\n", file.name),
        };
        text.push_str(&line);
    }
    let mut asked: Vec<&str> = dialogue.steps.iter().flat_map(|step| step.stdout.lines()).filter(|line| is_asked_form(line)).collect();
    asked.dedup();
    format!("{}\n\n{}", text.trim_end(), asked.join("\n")).trim_end().to_owned()
}

/// Whether a printed line is an answer in the form that the question asked for: `@mean_fare[34.65]`.
fn is_asked_form(line: &str) -> bool {
    line.starts_with('@') && line.ends_with(']')
}

/// The findings of several steps, the first one of each before the second ones: the beginning shows all sides.
fn in_turns(findings: impl Iterator<Item = String>) -> String {
    let groups: Vec<Vec<String>> = findings
        .map(|text| {
            let mut items: Vec<String> = Vec::new();
            for line in text.split_inclusive('\n') {
                match items.last_mut() {
                    Some(last) if !line.starts_with("- ") => last.push_str(line),
                    _ => items.push(line.to_owned()),
                }
            }
            items
        })
        .collect();
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|at| groups.iter().filter_map(move |group| group.get(at))).cloned().collect()
}

/// A sentence for each file; of one that was not loaded whole it speaks only about the rows that were.
fn shapes(facts: &Facts, files: &[File], language: Language) -> String {
    let mut text = String::new();
    for table in &facts.tables {
        let missing: u64 = table.columns.iter().map(|column| column.missing).sum();
        let (name, rows, width, duplicates) = (&table.name, table.rows, table.width, table.duplicates);
        let cut = files.iter().any(|file| file.name == *name && file.row_limit.is_some());
        let line = match (language, cut) {
            (Language::English, false) => format!("- {name} has {rows} rows and {width} columns; {duplicates} rows repeat another one"),
            (Language::English, true) => {
                format!("- The first {rows} rows of {name} have {width} columns; {duplicates} of them repeat another one")
            }
            (Language::Chinese, false) => format!("- {name} 有 {rows} 行、{width} 列；{duplicates} 行与其他行重复"),
            (Language::Chinese, true) => format!("- {name} 的前 {rows} 行有 {width} 列；其中 {duplicates} 行与其他行重复"),
        };
        text.push_str(&line);
        let line = match (missing, language) {
            (0, Language::English) => ", and no value is missing.\n".to_owned(),
            (0, Language::Chinese) => "，没有缺失值。\n".to_owned(),
            (_, Language::English) => ".\n".to_owned(),
            (_, Language::Chinese) => "。\n".to_owned(),
        };
        text.push_str(&line);
    }
    for (name, what) in &facts.others {
        let line = match language {
            Language::English => format!("- {name} is no table but {what}.\n"),
            Language::Chinese => format!("- {name} 不是表格：{what}。\n"),
        };
        text.push_str(&line);
    }
    text
}

/// The findings among the printed lines, and tables as they are.
fn sentences(stdout: &str, language: Language) -> String {
    let mut text = String::new();
    let mut table = String::new();
    for line in stdout.lines() {
        if line.starts_with("- ") || line.starts_with("  - ") {
            text.push_str(line);
            text.push('\n');
        } else if !line.trim().is_empty() && !is_asked_form(line) {
            table.push_str(line);
            table.push('\n');
        }
    }
    if !table.is_empty() {
        text.push_str(language.pick("\nThe rows:\n\n", "\n相应的行：\n\n"));
        text.push_str(&crate::report::escape::fenced(&table, "text"));
    }
    text
}

fn failure(error: Option<&str>, language: Language) -> String {
    let error = quoted(error.unwrap_or_default());
    match language {
        Language::English => format!("- One step failed: {error}\n"),
        Language::Chinese => format!("- 有一步执行失败：{error}\n"),
    }
}

fn quoted(error: &str) -> String {
    format!("`{}`", error.replace('`', "'").chars().take(300).collect::<String>())
}
