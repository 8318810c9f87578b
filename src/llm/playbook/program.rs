//! The Python of each step. Templates stand in `python/`; names enter them only as string literals.

use std::fmt::Write;

use super::calculation::calculation;
use super::dialogue::Dialogue;
use super::facts::{Column, Facts, Kind, Table};
use super::intent::Intent;
use crate::profile::Language;

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it does, a sentence.
    pub say: String,
    /// Its Python.
    pub code: String,
    /// Its output answers the question itself.
    pub is_answer: bool,
}

/// A sentence in both languages.
#[derive(Debug, Clone, Copy)]
pub struct Both(&'static str, &'static str);

impl Both {
    /// The sentence in this language.
    pub fn pick(self, language: Language) -> &'static str {
        language.pick(self.0, self.1)
    }
}

/// Said before the first step.
pub const LOADING: Both = Both("I load the files and look at what is in them.", "先加载文件并查看其内容。");

/// A turn that asks to execute `code`.
pub fn block(say: &str, code: &str) -> String {
    format!("{say}\n\n```python\n{}\n```\n", code.trim_end())
}

/// Text as a Python string literal. JSON strings are Python strings, but for escaped surrogates, which serde never writes.
pub fn literal(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

fn literals<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", names.into_iter().map(literal).collect::<Vec<_>>().join(", "))
}

/// Fills the places of a template.
fn fill(template: &str, places: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 200);
    let mut rest = template;
    while let Some(at) = rest.find('@') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let place = tail.find('@').and_then(|end| places.iter().find(|(name, _)| *name == &tail[..end]).map(|(_, text)| (end, *text)));
        if let Some((end, text)) = place {
            out.push_str(text);
            rest = &tail[end + 1..];
        } else {
            out.push('@');
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// The first step: loads every file and shows what is in it.
pub fn load(dialogue: &Dialogue) -> String {
    let mut imports: Vec<String> = Vec::new();
    let mut loads = String::from("loaded = {}\n");
    for file in dialogue.files.iter().filter(|file| file.fault.is_none()) {
        let code = file.load.clone().unwrap_or_else(|| guessed(&file.name));
        let lines: Vec<&str> = code.trim().lines().collect();
        let Some((expression, before)) = lines.split_last() else { continue };
        imports.extend(before.iter().filter(|line| !is_there_anyway(line)).map(|line| (*line).to_owned()));
        let expression = limited(expression, file.row_limit);
        let _ = writeln!(loads, "loaded[{}] = {expression}", literal(&file.name));
    }
    imports.dedup();
    let before = if imports.is_empty() { String::new() } else { format!("{}\n", imports.join("\n")) };
    fill(include_str!("python/load.py"), &[("loads", format!("{before}{}", loads.trim_end()).as_str())])
}

/// Imports that the template has anyway.
fn is_there_anyway(line: &str) -> bool {
    matches!(line.trim(), "import json" | "import re" | "import numpy as np" | "import pandas as pd" | "")
}

/// Loading code for a file without a profile.
fn guessed(name: &str) -> String {
    let path = literal(name);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "csv" => format!("pd.read_csv({path})"),
        "tsv" | "tab" => format!("pd.read_csv({path}, sep=\"\\t\")"),
        "xlsx" | "xls" => format!("pd.read_excel({path})"),
        "json" => format!("pd.read_json({path})"),
        "jsonl" | "ndjson" => format!("pd.read_json({path}, lines=True)"),
        "parquet" => format!("pd.read_parquet({path})"),
        "png" | "jpg" | "jpeg" => format!("plt.imread({path})"),
        _ => format!("open({path}, encoding=\"utf-8\", errors=\"replace\").read()"),
    }
}

/// The expression with no more rows than may be loaded.
fn limited(expression: &str, limit: Option<u64>) -> String {
    match limit {
        Some(rows) if expression.starts_with("pd.read_csv(") && expression.ends_with(')') && !expression.contains("nrows=") => {
            format!("{}, nrows={rows})", &expression[..expression.len() - 1])
        }
        Some(rows) => format!("({expression}).head({rows})"),
        None => expression.to_owned(),
    }
}

/// The steps after the first one.
pub fn plan(intent: &Intent, facts: &Facts, language: Language, charts: usize) -> Vec<Step> {
    let table = |name: &str| facts.tables.iter().find(|table| table.name == name);
    match intent {
        Intent::Overview | Intent::Unknown => overview(facts, language, charts),
        Intent::Query(query) => table(&query.table).map(|table| vec![calculation(query, table, language)]).unwrap_or_default(),
        Intent::Relation { table: name, first, second, form } => {
            let mut step = scatter(name, first, second, language);
            step.is_answer = true;
            if let Some(name) = form.correlation() {
                step.code.push_str(&form.print(name, "value"));
            }
            vec![step]
        }
        Intent::Missing { table: name } => match table(name) {
            Some(table) if table.columns.iter().any(|column| column.missing > 0) => {
                let mut step = missing(table, language);
                step.is_answer = true;
                vec![step]
            }
            _ => Vec::new(),
        },
    }
}

/// Charts that fit what the tables hold, the most telling ones first.
fn overview(facts: &Facts, language: Language, charts: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for table in &facts.tables {
        if table.rows < 2 {
            continue;
        }
        let numbers: Vec<&Column> = table.of_kind(Kind::Number).filter(|column| column.distinct > 1).collect();
        let categories: Vec<&Column> = table.of_kind(Kind::Category).filter(|column| column.distinct > 1).collect();
        if let Some(date) = table.of_kind(Kind::Date).find(|column| column.distinct > 2)
            && !numbers.is_empty()
        {
            steps.push(over_time(table, date, &numbers, language));
        }
        // A category says most where its values are neither all alike nor all different.
        let telling = categories.iter().find(|column| column.distinct <= 12).or_else(|| categories.first());
        if let Some(column) = telling {
            steps.push(category(table, column, language));
        }
        if let (Some(group), Some(column)) =
            (categories.iter().find(|column| (2..=12).contains(&column.distinct) && column.distinct * 3 <= table.rows), numbers.first())
        {
            steps.push(by_group(table, group, column, language));
        }
        if !numbers.is_empty() {
            steps.push(distributions(table, &numbers, language));
        }
        if numbers.len() >= 3 && !table.correlations.is_empty() {
            steps.push(correlations(table, &numbers, language));
        }
        if let Some((first, second, value)) = table.correlations.first()
            && value.parse::<f64>().is_ok_and(|value| value.abs() >= 0.5)
        {
            steps.push(scatter(&table.name, first, second, language));
        }
        if table.columns.iter().any(|column| column.missing > 0) {
            steps.push(missing(table, language));
        }
    }
    steps.truncate(charts);
    steps
}

fn step(say: String, code: String) -> Step {
    Step { say, code, is_answer: false }
}

fn over_time(table: &Table, date: &Column, numbers: &[&Column], language: Language) -> Step {
    let columns = literals(numbers.iter().take(3).map(|column| column.name.as_str()));
    let (say, title, finding) = match language {
        Language::English => (
            "I draw how the numbers go over time.",
            "Mean over time",
            "{column} over time: the mean is highest around {high.date()} ({num(line[high])}) and lowest around {low.date()} ({num(line[low])}).",
        ),
        Language::Chinese => (
            "绘制数值随时间的变化。",
            "随时间变化的均值",
            "{column} 随时间变化：均值在 {high.date()} 前后最高（{num(line[high])}），在 {low.date()} 前后最低（{num(line[low])}）。",
        ),
    };
    let places = [
        ("table", literal(&table.name)),
        ("date", literal(&date.name)),
        ("columns", columns),
        ("title", literal(title)),
        ("finding", finding.to_owned()),
    ];
    step(say.to_owned(), filled(include_str!("python/time.py"), &places))
}

fn category(table: &Table, column: &Column, language: Language) -> Step {
    let (say, axis, finding) = match language {
        Language::English => (
            format!("I count the values of {}.", column.name),
            "rows",
            "{column}: {len(counts)} different values; the most frequent is {counts.index[0]} with {counts.iloc[0]} of {counts.sum()} ({share.iloc[0]:.1f}%).",
        ),
        Language::Chinese => (
            format!("统计 {} 的取值。", column.name),
            "行数",
            "{column}：共 {len(counts)} 种取值；最多的是 {counts.index[0]}，在 {counts.sum()} 行中占 {counts.iloc[0]} 行（{share.iloc[0]:.1f}%）。",
        ),
    };
    let places = [
        ("table", literal(&table.name)),
        ("column", literal(&column.name)),
        ("axis", literal(axis)),
        ("title", literal(&column.name)),
        ("finding", finding.to_owned()),
    ];
    step(say, filled(include_str!("python/categories.py"), &places))
}

fn by_group(table: &Table, group: &Column, column: &Column, language: Language) -> Step {
    let (say, title, finding) = match language {
        Language::English => (
            format!("I compare {} by {}.", column.name, group.name),
            format!("{} by {}", column.name, group.name),
            "{column} by {group}: the mean is highest for {means.index[0]} ({num(means.iloc[0])}) and lowest for {means.index[-1]} ({num(means.iloc[-1])}).",
        ),
        Language::Chinese => (
            format!("按 {} 比较 {}。", group.name, column.name),
            format!("按 {} 的 {}", group.name, column.name),
            "按 {group} 的 {column}：均值最高的是 {means.index[0]}（{num(means.iloc[0])}），最低的是 {means.index[-1]}（{num(means.iloc[-1])}）。",
        ),
    };
    let places = [
        ("table", literal(&table.name)),
        ("group", literal(&group.name)),
        ("column", literal(&column.name)),
        ("title", literal(&title)),
        ("finding", finding.to_owned()),
    ];
    step(say, filled(include_str!("python/groups.py"), &places))
}

fn distributions(table: &Table, numbers: &[&Column], language: Language) -> Step {
    let (say, title, finding) = match language {
        Language::English => (
            "I draw how the numbers are distributed.",
            "Distributions (dashed: median)",
            "{column}: half of the values lie between {num(low)} and {num(high)}, the median is {num(values.median())}; {outliers} outliers beyond 1.5 interquartile ranges.",
        ),
        Language::Chinese => (
            "绘制数值的分布。",
            "数值分布（虚线为中位数）",
            "{column}：一半的值在 {num(low)} 到 {num(high)} 之间，中位数 {num(values.median())}；超出 1.5 倍四分位距的离群值有 {outliers} 个。",
        ),
    };
    let columns = literals(numbers.iter().take(6).map(|column| column.name.as_str()));
    let places = [("table", literal(&table.name)), ("columns", columns), ("title", literal(title)), ("finding", finding.to_owned())];
    step(say.to_owned(), filled(include_str!("python/distributions.py"), &places))
}

fn correlations(table: &Table, numbers: &[&Column], language: Language) -> Step {
    let (first, second, value) = table.correlations.first().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).unwrap_or_default();
    let (say, title) =
        (language.pick("I draw how the numbers go together.", "绘制数值之间的相关性。"), language.pick("Correlations", "相关系数"));
    let mut columns: Vec<&str> = numbers.iter().take(9).map(|column| column.name.as_str()).collect();
    for name in [first, second] {
        if !columns.contains(&name) && !name.is_empty() {
            columns.push(name);
        }
    }
    let pair = format!("table.loc[{}, {}]", literal(first), literal(second));
    let _ = value;
    let finding = match language {
        Language::English => "the strongest correlation is between {first} and {second} ({strongest:.3f}).",
        Language::Chinese => "相关性最强的是 {first} 与 {second}（{strongest:.3f}）。",
    };
    let names = format!("first, second = {}, {}\nstrongest = {pair}\n", literal(first), literal(second));
    let template = include_str!("python/correlations.py").replace("print(f\"- @finding@\")", &format!("{names}print(f\"- @finding@\")"));
    let places =
        [("table", literal(&table.name)), ("columns", literals(columns)), ("title", literal(title)), ("finding", finding.to_owned())];
    step(say.to_owned(), filled(&template, &places))
}

fn scatter(table: &str, first: &str, second: &str, language: Language) -> Step {
    let (say, title, finding) = match language {
        Language::English => (
            format!("I draw {second} against {first}."),
            format!("{second} against {first}"),
            "{second} against {first}: correlation {value:.3f} over {len(pair)} rows; the fitted line changes by {slope:.4g} for each unit of {first}.",
        ),
        Language::Chinese => (
            format!("绘制 {second} 与 {first} 的散点图。"),
            format!("{second} 与 {first}"),
            "{second} 与 {first}：{len(pair)} 行的相关系数为 {value:.3f}；{first} 每增加 1，拟合线变化 {slope:.4g}。",
        ),
    };
    let places = [
        ("table", literal(table)),
        ("first", literal(first)),
        ("second", literal(second)),
        ("title", literal(&title)),
        ("finding", finding.to_owned()),
    ];
    step(say, filled(include_str!("python/scatter.py"), &places))
}

fn missing(table: &Table, language: Language) -> Step {
    let (say, axis, title, finding) = match language {
        Language::English => (
            "I draw where values are missing.",
            "missing values in %",
            "Missing values",
            "{total} values are missing in {len(missing)} columns, most in {missing.index[-1]} ({missing.iloc[-1]:.1f}%).",
        ),
        Language::Chinese => (
            "绘制缺失值的分布。",
            "缺失值（%）",
            "缺失值",
            "共缺失 {total} 个值，涉及 {len(missing)} 列，最多的是 {missing.index[-1]}（{missing.iloc[-1]:.1f}%）。",
        ),
    };
    let places = [("table", literal(&table.name)), ("axis", literal(axis)), ("title", literal(title)), ("finding", finding.to_owned())];
    step(say.to_owned(), filled(include_str!("python/missing.py"), &places))
}

fn filled(template: &str, places: &[(&str, String)]) -> String {
    let places: Vec<(&str, &str)> = places.iter().map(|(name, text)| (*name, text.as_str())).collect();
    fill(template, &places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_enter_code_as_literals_only() {
        let table = Table { name: "a\"); import os #.csv".to_owned(), rows: 9, ..Table::default() };
        let column = Column {
            name: "x\"+@title@\n".to_owned(),
            kind: Kind::Category,
            values: 9,
            missing: 0,
            distinct: 2,
            top: Vec::new(),
            detail: String::new(),
        };
        let code = category(&table, &column, Language::English).code;
        assert!(code.contains(r#"tables["a\"); import os #.csv"]"#), "{code}");
        assert!(code.contains(r#"column = "x\"+@title@\n""#), "{code}");
    }

    #[test]
    fn rows_are_limited_where_a_file_has_too_many() {
        assert_eq!(limited("pd.read_csv(\"a.csv\")", Some(10)), "pd.read_csv(\"a.csv\", nrows=10)");
        assert_eq!(limited("pd.read_parquet(\"a\")", Some(10)), "(pd.read_parquet(\"a\")).head(10)");
    }
}
