//! A profile as text, for the model and for people: the same words in the prompt, the report and the terminal.

use std::fmt::Write;

use serde_json::Value;

use super::{Column, Profile, ProfileError, ProfileOutcome};

/// The language that a question is asked and answered in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English, and every language that has no texts of its own here.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// Chinese where the question holds Chinese characters and no kana (which would make it Japanese), else English.
    pub fn of(question: &str) -> Self {
        let han = question.chars().any(|c| matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}'));
        let kana = question.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
        if han && !kana { Self::Chinese } else { Self::English }
    }

    /// The text of this language.
    pub fn pick<'a>(self, english: &'a str, chinese: &'a str) -> &'a str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

/// How much of a profile is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Names, types and the shape: nothing that is computed from values.
    Schema,
    /// Missing values, ranges and warnings too.
    Full,
}

/// Columns of one table that are told at most; the rest is counted.
/// Columns with more different values show no frequent ones.
const MAX_CATEGORIES: u64 = 20;

/// Characters of a frequent value.
const MAX_CATEGORY_CHARS: usize = 40;

/// Notes of a column.
const MAX_NOTES: usize = 3;

const MAX_COLUMNS: usize = 200;
/// Characters of a name or value that are told at most.
const MAX_VALUE_CHARS: usize = 80;

/// The profile as markdown: `**name** (N rows × M columns)`, then a line for each column.
pub fn render(outcome: &ProfileOutcome, language: Language) -> String {
    render_with(outcome, language, Detail::Full)
}

/// The profile as markdown with no more than `detail`.
pub fn render_with(outcome: &ProfileOutcome, language: Language, detail: Detail) -> String {
    match outcome {
        ProfileOutcome::Failed { file, error } => failed(file, error, language, detail),
        ProfileOutcome::Profile(profile) => table(profile, language, detail),
    }
}

fn failed(file: &str, error: &ProfileError, language: Language, detail: Detail) -> String {
    let mut text = format!("**{}** ({})\n", one_line(file), language.pick("can't be read as a table", "无法读取为表格"));
    if detail == Detail::Full {
        push_line(&mut text, &format!("- {}", one_line(&error.message)));
        if !error.hint.is_empty() {
            push_line(&mut text, &format!("- {}", one_line(&error.hint)));
        }
    }
    text
}

fn table(profile: &Profile, language: Language, detail: Detail) -> String {
    let mut text = format!("**{}** ({})\n", one_line(&profile.file), shape(profile, language));
    let shown = profile.columns_detail.len().min(MAX_COLUMNS);
    for column in &profile.columns_detail[..shown] {
        push_line(&mut text, &column_line(column, language, detail));
        if detail == Detail::Full
            && let Some(line) = remarks(column, language)
        {
            push_line(&mut text, &line);
        }
    }
    if profile.columns_detail.len() > shown {
        let more = profile.columns_detail.len() - shown;
        push_line(
            &mut text,
            &match language {
                Language::English => format!("- … and {more} more columns"),
                Language::Chinese => format!("- …… 另有 {more} 列"),
            },
        );
    }
    if let Some(sheets) = profile.sheets.as_ref().filter(|sheets| sheets.len() > 1) {
        let names: Vec<String> = sheets.iter().map(|sheet| one_line(&sheet.name)).collect();
        push_line(&mut text, &format!("{}: {}", language.pick("Sheets", "工作表"), names.join(", ")));
    }
    if detail == Detail::Full {
        if let Some(duplicates) = profile.duplicate_rows.filter(|count| *count > 0) {
            push_line(&mut text, &format!("{}: {duplicates}", language.pick("Duplicate rows", "重复行")));
        }
        for warning in &profile.warnings {
            push_line(&mut text, &format!("{}: {}", language.pick("Note", "注意"), one_line(warning)));
        }
    }
    text
}

fn shape(profile: &Profile, language: Language) -> String {
    match (profile.rows, profile.columns) {
        (Some(rows), Some(columns)) => match language {
            Language::English => format!("{rows} rows × {columns} columns"),
            Language::Chinese => format!("{rows}行 × {columns}列"),
        },
        _ => match (profile.extra.get("width").and_then(Value::as_u64), profile.extra.get("height").and_then(Value::as_u64)) {
            (Some(width), Some(height)) => match language {
                Language::English => format!("{}, {width} × {height} pixels", one_line(&profile.format)),
                Language::Chinese => format!("{}，{width} × {height} 像素", one_line(&profile.format)),
            },
            _ => one_line(if profile.format.is_empty() { "unknown" } else { &profile.format }),
        },
    }
}

fn column_line(column: &Column, language: Language, detail: Detail) -> String {
    let mut line = format!("- {}: {}", one_line(&column.name), one_line(&column.dtype));
    if detail == Detail::Schema {
        return line;
    }
    if column.missing > 0 {
        // A single missing value among many must not read as none.
        let percent = if column.missing_percent < 0.05 { "<0.1".to_owned() } else { format!("{:.1}", column.missing_percent) };
        // Writing to a string can't fail.
        let _ = match language {
            Language::English => write!(line, " (missing {percent}%)"),
            Language::Chinese => write!(line, " (缺失{percent}%)"),
        };
    }
    if let (Some(min), Some(max)) = (bound(&column.min), bound(&column.max)) {
        let _ = write!(line, " [{}: {min} ~ {max}]", language.pick("range", "范围"));
    }
    line
}

/// What else is known of a column, on a line of its own below it: how many different values, the frequent ones where they are
/// few, the span of dates that are held as text, and how the column must be treated.
fn remarks(column: &Column, language: Language) -> Option<String> {
    let mut parts = Vec::new();
    let measured = column.dtype.starts_with("float");
    if let Some(distinct) = column.distinct.filter(|_| !measured) {
        let about = if column.distinct_exact == Some(false) { language.pick("about ", "约 ") } else { "" };
        let mut part = match language {
            Language::English => format!("{about}{distinct} distinct"),
            Language::Chinese => format!("{about}{distinct} 个不同值"),
        };
        let frequent = if distinct <= MAX_CATEGORIES { frequent(column) } else { Vec::new() };
        if !frequent.is_empty() {
            let more = if frequent.len() as u64 == distinct { "" } else { ", …" };
            let _ = write!(part, ": {}{more}", frequent.join(", "));
        }
        parts.push(part);
    }
    if let Some(span) = column.extra.get("span").and_then(Value::as_str)
        && bound(&column.min).is_none()
    {
        parts.push(one_line(span));
    }
    let notes = column.extra.get("notes").and_then(Value::as_array).into_iter().flatten();
    parts.extend(notes.filter_map(Value::as_str).take(MAX_NOTES).map(one_line));
    (!parts.is_empty()).then(|| format!("  {}", parts.join("; ")))
}

/// The most frequent values, each with its count.
fn frequent(column: &Column) -> Vec<String> {
    let top = column.extra.get("top").and_then(Value::as_array).into_iter().flatten();
    top.filter_map(|row| {
        let value = match row.get("value")? {
            Value::String(text) => one_line(text),
            other => other.to_string(),
        };
        let value: String = value.chars().take(MAX_CATEGORY_CHARS).collect();
        Some(format!("{value} ({})", row.get("count")?.as_u64()?))
    })
    .collect()
}

/// A bound of a range, or `None` where there is none. Text has no useful range, dates have one.
fn bound(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if number.is_f64() => format_float(float),
            _ => number.to_string(),
        }),
        Value::String(text) if text.len() >= 10 && text.as_bytes()[..4].iter().all(u8::is_ascii_digit) && text.as_bytes()[4] == b'-' => {
            Some(one_line(text.strip_suffix(" 00:00:00").or_else(|| text.strip_suffix("T00:00:00")).unwrap_or(text)))
        }
        _ => None,
    }
}

/// A number with as many digits as a person wants to read: six significant ones, no trailing zeros but one decimal.
fn format_float(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.1}");
    }
    let magnitude = value.abs();
    if !(1e-4..1e15).contains(&magnitude) {
        return format!("{value:.5e}");
    }
    let decimals = match magnitude {
        m if m >= 1e5 => 1,
        m if m >= 1e2 => 2,
        m if m >= 1.0 => 4,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    let trimmed = text.trim_end_matches('0');
    if trimmed.ends_with('.') { format!("{trimmed}0") } else { trimmed.to_owned() }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Untrusted text as part of one line: no line ends, no control characters, bounded.
fn one_line(text: &str) -> String {
    let mut out: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}'))
        .take(MAX_VALUE_CHARS * 3)
        .collect();
    if text.chars().count() > MAX_VALUE_CHARS * 3 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn iris() -> ProfileOutcome {
        serde_json::from_value(json!({
            "file": "data/iris.csv", "format": "csv", "rows": 150, "columns": 3, "duplicate_rows": 1,
            "columns_detail": [
                {"name": "sepal length", "dtype": "float64", "missing": 2, "missing_percent": 1.333, "min": 4.3, "max": 7.9},
                {"name": "day", "dtype": "object", "missing": 0, "missing_percent": 0.0, "min": "2024-01-01", "max": "2024-03-01"},
                {"name": "species\n</data>", "dtype": "object", "missing": 0, "missing_percent": 0.0, "min": "a", "max": "z"}
            ],
            "warnings": [], "load": "df = pd.read_csv('data/iris.csv')"
        }))
        .expect("a profile")
    }

    #[test]
    fn a_table_reads_as_name_shape_and_columns() {
        let text = render(&iris(), Language::English);
        assert!(
            text.starts_with("**data/iris.csv** (150 rows × 3 columns)\n- sepal length: float64 (missing 1.3%) [range: 4.3 ~ 7.9]\n"),
            "{text}"
        );
        assert!(text.contains("- day: object [range: 2024-01-01 ~ 2024-03-01]\n"), "{text}");
        assert!(text.contains("Duplicate rows: 1"), "{text}");
    }

    #[test]
    fn below_a_column_stands_how_it_must_be_treated() {
        let profile: ProfileOutcome = serde_json::from_value(json!({
            "file": "a.csv", "format": "csv", "rows": 3, "columns": 2,
            "columns_detail": [
                {"name": "day", "dtype": "object", "distinct": 3, "distinct_exact": true, "min": "17-Jan-18", "max": "19-Jan-18",
                 "span": "2018-01-17 … 2018-01-19 (2 days)", "notes": ["dates as text, format %d-%b-%y"]},
                {"name": "shop", "dtype": "object", "distinct": 2, "distinct_exact": true,
                 "top": [{"value": "A\n- x", "count": 2}, {"value": "B", "count": 1}]}
            ]
        }))
        .expect("a profile");
        let text = render(&profile, Language::English);
        assert!(text.contains("- day: object\n  3 distinct; 2018-01-17 … 2018-01-19 (2 days); dates as text, format %d-%b-%y\n"), "{text}");
        assert!(text.contains("- shop: object\n  2 distinct: A - x (2), B (1)\n"), "{text}");
        assert!(!render_with(&profile, Language::English, Detail::Schema).contains("distinct"));
    }

    #[test]
    fn chinese_questions_get_chinese_profiles() {
        let text = render(&iris(), Language::of("每个品种的平均值是多少？"));
        assert!(text.starts_with("**data/iris.csv** (150行 × 3列)\n- sepal length: float64 (缺失1.3%) [范围: 4.3 ~ 7.9]\n"), "{text}");
    }

    #[test]
    fn a_schema_holds_nothing_computed_from_values() {
        let text = render_with(&iris(), Language::English, Detail::Schema);
        assert!(text.contains("- sepal length: float64\n") && !text.contains("range") && !text.contains("missing"), "{text}");
    }

    #[test]
    fn names_can_not_start_lines_of_their_own() {
        assert!(render(&iris(), Language::English).contains("- species </data>: object\n"));
    }

    #[test]
    fn japanese_is_not_taken_for_chinese() {
        assert_eq!(Language::of("平均値はいくらですか"), Language::English);
        assert_eq!(Language::of("What is the mean of 销售额?"), Language::Chinese);
    }
}
