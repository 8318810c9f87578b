//! What hovers and hints say about a live profile. All names and values come from the data: they are escaped.

use std::fmt::Write as _;

use super::{ColumnKind, LiveColumn, LiveProfile, Place};

/// Characters that VS Code shows of a line's hints by default are 43; ours stay below.
const HINT_CHARACTERS: usize = 40;

/// Columns that the table in a header's hover shows.
const TABLE_COLUMNS: usize = 30;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The hint of a header line: `12 cols · 3 with gaps`.
pub fn header_hint(profile: &LiveProfile) -> String {
    let columns = profile.columns.len();
    let gaps = profile.columns_with_gaps();
    let mut hint = format!("{columns} {}", if columns == 1 { "col" } else { "cols" });
    if gaps > 0 {
        let _ = write!(hint, " · {gaps} with gaps");
    }
    if hint.chars().count() > HINT_CHARACTERS {
        hint = hint.chars().take(HINT_CHARACTERS).collect();
    }
    hint
}

/// Text of a data file as one line of plain markdown: no markup, link, HTML or line break of its own survives.
pub(super) fn escape(text: &str, characters: usize) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for (at, character) in text.chars().enumerate() {
        if at == characters {
            escaped.push('…');
            break;
        }
        match character {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '-' | '.' | '!' | '|' | '~' | '$' | ':' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // Directional overrides would show one thing and mean another.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => escaped.push('·'),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

fn missing(column: &LiveColumn, rows: u64) -> String {
    if column.missing == 0 {
        return "none missing".to_owned();
    }
    #[allow(clippy::cast_precision_loss, reason = "a percentage")]
    let percent = 100.0 * column.missing as f64 / rows.max(1) as f64;
    // One cell in many is not none.
    let percent = if percent < 0.1 { "<0.1".to_owned() } else { format!("{percent:.1}") };
    format!("{} missing ({percent}%)", column.missing)
}

fn distinct(column: &LiveColumn) -> String {
    format!("{}{} distinct", if column.distinct_exact { "" } else { "at least " }, column.distinct)
}

/// The histogram as a row of bars.
fn bars(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    counts
        .iter()
        .map(|count| {
            if *count == 0 {
                return ' ';
            }
            let height = usize::try_from(count * 7 / most).unwrap_or(7);
            BARS[height.min(7)]
        })
        .collect()
}

/// The type as pandas names it, and what that is where the name says little.
fn type_of(column: &LiveColumn) -> String {
    match column.kind {
        ColumnKind::Date => format!("{} (dates)", column.dtype()),
        ColumnKind::Text => format!("{} (text)", column.dtype()),
        _ => column.dtype().to_owned(),
    }
}

/// The hover of a cell or of a column's header.
pub fn column_markdown(profile: &LiveProfile, place: &Place) -> String {
    let Some(column) = profile.columns.get(place.column) else { return String::new() };
    let mut text = format!("**{}** · {}\n\n", escape(&column.name, 80), type_of(column));
    if let Some(row) = place.row {
        let _ = write!(text, "row {} of {}: {}\n\n", row + 1, profile.rows, escape(&place.value, 120));
    }
    let _ = write!(text, "{} rows · {} · {}\n\n", profile.rows, missing(column, profile.rows), distinct(column));
    if let Some((low, high)) = &column.range {
        let _ = write!(text, "{} – {}", escape(low, 60), escape(high, 60));
        if let Some(mean) = column.mean {
            let _ = write!(text, " · mean {}", escape(&number(mean), 30));
        }
        text.push_str("\n\n");
    }
    if let Some(histogram) = &column.histogram {
        let _ = write!(text, "`{}`\n\n", bars(&histogram.0));
    }
    if column.leading_zeros {
        text.push_str("Some values have leading zeros: load this column as text to keep them.\n\n");
    }
    text.truncate(text.trim_end().len());
    text
}

/// The hover of a whole table, at its header hint.
pub fn table_markdown(profile: &LiveProfile) -> String {
    let mut text = format!("**{} rows × {} columns**", profile.rows, profile.columns.len());
    if profile.duplicate_rows > 0 {
        let _ = write!(text, " · {} duplicate rows", profile.duplicate_rows);
    }
    text.push_str("\n\n| column | type | missing | range |\n|---|---|---|---|\n");
    for column in profile.columns.iter().take(TABLE_COLUMNS) {
        let range = column.range.as_ref().map(|(low, high)| format!("{} – {}", escape(low, 24), escape(high, 24))).unwrap_or_default();
        let missing = if column.missing == 0 { String::new() } else { missing(column, profile.rows) };
        let _ = writeln!(text, "| {} | {} | {missing} | {range} |", escape(&column.name, 40), type_of(column));
    }
    if profile.columns.len() > TABLE_COLUMNS {
        let _ = write!(text, "\nand {} more columns", profile.columns.len() - TABLE_COLUMNS);
    }
    text.truncate(text.trim_end().len());
    text
}

/// A number with at most six significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if (1e-4..1e15).contains(&value.abs()) {
        #[allow(clippy::cast_possible_truncation, reason = "between -4 and 15")]
        let places = (5 - value.abs().log10().floor() as i32).max(0);
        let text = format!("{value:.*}", usize::try_from(places).unwrap_or(0));
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    }
    format!("{value:.5e}")
}

#[cfg(test)]
mod tests {
    use crate::profile::live::{Format, column_markdown, header_hint, profile, table_markdown};

    #[test]
    fn hints_stay_short() {
        let check = |text: &str, expected: &str| {
            let profile = profile(text, Format::Delimited(Some(b',')), &|| false).expect("a profile");
            assert_eq!(header_hint(&profile), expected);
        };
        check("a,b,c\n1,,2\n", "3 cols · 1 with gaps");
        check("a,b\n1,2\n", "2 cols");
        check("a\n1\n", "1 col");
    }

    #[test]
    fn a_cell_tells_its_column() {
        let text = "name,age\nann,31\nbob,\ncy,29\n";
        let profile = profile(text, Format::Delimited(Some(b',')), &|| false).expect("a profile");
        let place = profile.place(text, text.find("29").expect("a cell")).expect("a place");
        let hover = column_markdown(&profile, &place);
        assert!(
            hover.starts_with("**age** · float64\n\nrow 3 of 3: 29\n\n3 rows · 1 missing (33.3%) · 2 distinct\n\n29 – 31 · mean 30"),
            "{hover}"
        );
        let header = profile.place(text, 1).expect("a place");
        assert_eq!((header.column, header.row), (0, None));
    }

    #[test]
    fn data_cannot_bring_markup_into_a_hover() {
        let text = "\"[x](command:evil)<img src=a>\",b|c\n![](http://h/x.png),`\u{202e}\n";
        let profile = profile(text, Format::Delimited(Some(b',')), &|| false).expect("a profile");
        for offset in [3, text.find("![").expect("a cell"), text.len() - 2] {
            let hover = column_markdown(&profile, &profile.place(text, offset).expect("a place"));
            let bad = pulldown_cmark::Parser::new(&hover).any(|event| {
                matches!(event, pulldown_cmark::Event::Html(_) | pulldown_cmark::Event::InlineHtml(_))
                    || matches!(event, pulldown_cmark::Event::Start(pulldown_cmark::Tag::Link { .. } | pulldown_cmark::Tag::Image { .. }))
            });
            assert!(!bad && !hover.contains('\u{202e}'), "{hover}");
        }
        assert_eq!(table_markdown(&profile).lines().filter(|line| line.starts_with('|')).count(), 4);
    }
}
