//! The live profile: what the text of an open buffer is, computed in this process while a person types.
//!
//! No sandbox, no model, no file access: a pure function from text to columns, statistics and problems, so that it
//! can run on any thread and be thrown away when it is stale. On clean data its numbers equal those of the exact
//! profile that the sandbox makes of the same text; it is for showing only, a model never sees it.
//!
//! - [`dialect`]: delimiter of delimited text.
//! - [`rows`]: records and cells of delimited text, with their places.
//! - [`table`]: the profile of delimited text.
//! - [`json`]: records of JSON and JSON Lines, with the places of their fields.
//! - [`columns`]: types and statistics of columns; [`tally`]: one look at a column; [`values`]: what a cell is.
//! - [`problems`]: what is broken in the data, and where.
//! - [`text`]: the sentences that hovers and hints show.
//!
//! Offsets are bytes into the text, in `u32`: text of more than [`MAX_BYTES`] has no live profile.

mod columns;
mod dialect;
mod json;
mod problems;
mod rows;
mod table;
mod tally;
mod text;
mod values;

use std::ops::Range;

pub use columns::{ColumnKind, Histogram, LiveColumn};
pub use problems::{Problem, ProblemKind};
pub use text::{column_markdown, header_hint, table_markdown};

/// Text beyond this has no live profile; what an editor shows as text is rarely larger.
pub const MAX_BYTES: usize = 64 << 20;

/// Columns beyond this are not profiled live.
pub const MAX_COLUMNS: usize = 2_000;

/// Bytes of a record in which places are looked for: a request about a place must not take long.
const MAX_RECORD: usize = 1 << 20;

/// Most problems that are kept; the rest is counted.
pub const MAX_PROBLEMS: usize = 20;

/// How the text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Delimited text. `None`: the delimiter is found by looking at the text.
    Delimited(Option<u8>),
    /// One JSON value a line.
    JsonLines,
    /// One JSON document; it is a table when it is an array of objects, or holds one under a key.
    Json,
}

/// What a buffer holds.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveProfile {
    /// How it was read, with the delimiter that was found.
    pub format: Format,
    /// Data rows, without the header.
    pub rows: u64,
    /// Data rows that equal an earlier one, as `DataFrame.duplicated().sum()` counts them.
    pub duplicate_rows: u64,
    /// The columns, in order.
    pub columns: Vec<LiveColumn>,
    /// What is broken, in order of appearance, at most [`MAX_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many problems there are in all.
    pub problem_count: usize,
    /// Starts of the records, in order; of delimited text the header first.
    starts: Vec<u32>,
}

/// A cell, header or field that a place in the text belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index into [`LiveProfile::columns`].
    pub column: usize,
    /// The data row, counted from 0; `None` for the header.
    pub row: Option<u64>,
    /// Bytes of the cell.
    pub range: Range<usize>,
    /// The cell's value, quotes removed, bounded.
    pub value: String,
}

/// Profiles `text`. Returns `None` when the text is no table, is too large, or `stale` answers true meanwhile.
pub fn profile(text: &str, format: Format, stale: &dyn Fn() -> bool) -> Option<LiveProfile> {
    if text.len() > MAX_BYTES {
        return None;
    }
    match format {
        Format::Delimited(delimiter) => {
            let delimiter = delimiter.or_else(|| dialect::delimiter(text))?;
            table::of_delimited(text, delimiter, stale)
        }
        Format::JsonLines => json::of_lines(text, stale),
        Format::Json => json::of_document(text, stale),
    }
}

impl LiveProfile {
    /// The cell or field at byte `offset` of the text that was profiled. Looks at the one record that holds it, and of
    /// a record that is longer than [`MAX_RECORD`] at its beginning.
    pub fn place(&self, text: &str, offset: usize) -> Option<Place> {
        let record = self.starts.partition_point(|start| *start as usize <= offset).checked_sub(1)?;
        let start = self.starts[record] as usize;
        let end = self.starts.get(record + 1).map_or(text.len(), |next| *next as usize).min(start + MAX_RECORD);
        match self.format {
            Format::Delimited(delimiter) => {
                let cells = rows::cells(text, start..end, delimiter?);
                let column = cells.iter().position(|cell| offset <= cell.range.end)?;
                let cell = &cells[column];
                let row = (record as u64).checked_sub(1);
                (column < self.columns.len()).then(|| Place { column, row, range: cell.range.clone(), value: bounded(&cell.value(text)) })
            }
            Format::JsonLines | Format::Json => {
                let field = json::field_at(text, start..end, offset)?;
                let column = self.columns.iter().position(|column| column.name == field.key)?;
                Some(Place { column, row: Some(record as u64), range: field.range, value: bounded(&field.value) })
            }
        }
    }

    /// Columns that have missing cells.
    pub fn columns_with_gaps(&self) -> usize {
        self.columns.iter().filter(|column| column.missing > 0).count()
    }
}

/// At most 200 characters of a value, for showing.
fn bounded(value: &str) -> String {
    match value.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the text is, it is profiled without a fault, every problem and place is inside of it, and every
        /// hover can be written.
        #[test]
        fn no_text_is_too_strange(text in "([a-c0-9.,;\t|\"'\r\n {}\\[\\]:\\\\-]|true|null|nan|é|😀|\u{fffd}|\u{feff}|\0){0,60}") {
            for format in [Format::Delimited(None), Format::Delimited(Some(b',')), Format::JsonLines, Format::Json] {
                let Some(profile) = profile(&text, format, &|| false) else { continue };
                for problem in &profile.problems {
                    prop_assert!(text.get(problem.range.clone()).is_some());
                }
                prop_assert!(profile.problem_count >= profile.problems.len());
                prop_assert!(header_hint(&profile).chars().count() <= 40);
                table_markdown(&profile);
                for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
                    if let Some(place) = profile.place(&text, offset) {
                        prop_assert!(text.get(place.range.clone()).is_some());
                        column_markdown(&profile, &place);
                    }
                }
                for column in &profile.columns {
                    prop_assert!(column.missing <= profile.rows && column.distinct <= profile.rows);
                }
            }
        }
    }
}
