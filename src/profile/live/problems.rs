//! What is broken in data, and where: what a person should know before trusting a number.

use std::borrow::Cow;
use std::ops::Range;

use super::MAX_PROBLEMS;
use super::columns::ColumnKind;
use super::rows::Record;

/// What is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    /// A record has another number of cells than the header.
    Ragged {
        /// Cells that it has.
        cells: usize,
        /// Cells that the header has.
        expected: usize,
    },
    /// A quote is opened and never closed: everything after it is one cell.
    UnclosedQuote,
    /// Two columns have one name.
    DuplicateHeader(String),
    /// A column has no name.
    EmptyHeader,
    /// A cell is not what almost all cells of its column are.
    OddCell {
        /// The column.
        column: String,
        /// What almost all cells are.
        expected: ColumnKind,
    },
    /// U+FFFD: bytes that are not of the encoding in which the editor opened the file.
    InvalidBytes,
    /// A NUL character.
    Nul,
    /// The text is no JSON; the parser's words.
    Syntax(String),
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// What is wrong.
    pub kind: ProblemKind,
}

impl Problem {
    /// One sentence for a person.
    pub fn message(&self) -> String {
        match &self.kind {
            ProblemKind::Ragged { cells, expected } => {
                let which = if cells > expected { "more" } else { "fewer" };
                format!("This row has {cells} cells, {which} than the {expected} of the header.")
            }
            ProblemKind::UnclosedQuote => "This quote is never closed: everything after it is read as one cell.".to_owned(),
            ProblemKind::DuplicateHeader(name) => {
                format!("Another column is named \"{name}\" too; it will be loaded under a changed name.")
            }
            ProblemKind::EmptyHeader => "This column has no name.".to_owned(),
            ProblemKind::OddCell { column, expected } => {
                let what = match expected {
                    ColumnKind::Date => "a date",
                    _ => "a number",
                };
                format!("Not {what}, as almost all cells of \"{column}\" are: the whole column is loaded as text.")
            }
            ProblemKind::InvalidBytes => {
                "Some bytes here are not valid in the encoding in which the file was opened; reopen it with its own encoding.".to_owned()
            }
            ProblemKind::Nul => "A NUL character stands here: the file may be cut off or not be text.".to_owned(),
            ProblemKind::Syntax(reason) => format!("Not JSON: {reason}"),
        }
    }

    /// A stable word, for clients that filter.
    pub fn code(&self) -> &'static str {
        match self.kind {
            ProblemKind::Ragged { .. } => "ragged-row",
            ProblemKind::UnclosedQuote => "unclosed-quote",
            ProblemKind::DuplicateHeader(_) => "duplicate-header",
            ProblemKind::EmptyHeader => "empty-header",
            ProblemKind::OddCell { .. } => "mixed-types",
            ProblemKind::InvalidBytes => "invalid-bytes",
            ProblemKind::Nul => "nul",
            ProblemKind::Syntax(_) => "syntax",
        }
    }
}

/// Collects problems, the first of each kind before too many of one.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
    count: usize,
    ragged: usize,
    characters: usize,
}

/// Problems of one kind that are shown; more of the same say nothing new.
const OF_A_KIND: usize = 8;

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        self.count += 1;
        if self.found.len() < MAX_PROBLEMS * 4 {
            self.found.push(problem);
        }
    }

    pub fn header(&mut self, record: &Record, titles: &[Cow<'_, str>]) {
        // An unnamed first column alone is how pandas and R write row numbers.
        for (at, (cell, title)) in record.cells.iter().zip(titles).enumerate() {
            if title.is_empty() && at > 0 {
                self.push(Problem { range: cell.range.clone(), kind: ProblemKind::EmptyHeader });
            } else if !title.is_empty() && titles[..at].contains(title) {
                self.push(Problem { range: cell.range.clone(), kind: ProblemKind::DuplicateHeader(super::bounded(title)) });
            }
        }
        self.unclosed(record);
    }

    pub fn record(&mut self, record: &Record, expected: usize) {
        let cells = record.cells.len();
        let end = record.cells.last().map_or(record.start, |cell| cell.range.end);
        if cells != expected && record.unclosed.is_none() {
            self.ragged += 1;
            let problem = Problem { range: record.start..end, kind: ProblemKind::Ragged { cells, expected } };
            if self.ragged <= OF_A_KIND { self.push(problem) } else { self.count += 1 }
        }
        self.unclosed(record);
    }

    fn unclosed(&mut self, record: &Record) {
        if let Some(at) = record.unclosed {
            self.push(Problem { range: at..at + 1, kind: ProblemKind::UnclosedQuote });
        }
    }

    /// Counts the odd cells that were not reported one by one.
    pub fn mixed(&mut self, offenders: impl Iterator<Item = u64>) {
        for count in offenders {
            self.count += usize::try_from(count.saturating_sub(3)).unwrap_or(usize::MAX);
        }
    }

    pub fn characters(&mut self, text: &str) {
        // Both begin with a byte that is rare; a text without any is not looked at twice.
        if memchr::memchr2(0, 0xef, text.as_bytes()).is_none() {
            return;
        }
        for (at, found) in text.match_indices(['\u{fffd}', '\0']) {
            self.characters += 1;
            let kind = if found == "\0" { ProblemKind::Nul } else { ProblemKind::InvalidBytes };
            if self.characters <= OF_A_KIND { self.push(Problem { range: at..at + found.len(), kind }) } else { self.count += 1 }
        }
    }

    pub fn finish(mut self) -> (Vec<Problem>, usize) {
        self.found.sort_by_key(|problem| problem.range.start);
        self.found.truncate(MAX_PROBLEMS);
        (self.found, self.count)
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::live::{Format, profile};

    fn check(text: &str, format: Format, expected: &[(&str, &str)]) {
        let profile = profile(text, format, &|| false).expect("a profile");
        let found: Vec<(&str, &str)> = profile.problems.iter().map(|problem| (problem.code(), &text[problem.range.clone()])).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn broken_data_is_told_with_its_place() {
        let csv = Format::Delimited(Some(b','));
        check("a,b\n1,2\n", csv, &[]);
        check("a,b\n1,2,3\n4\n", csv, &[("ragged-row", "1,2,3"), ("ragged-row", "4")]);
        check("a,b\n1,\"x\n2,3\n", csv, &[("unclosed-quote", "\"")]);
        check("a,a,\n1,2,3\n", csv, &[("duplicate-header", "a"), ("empty-header", "")]);
        check("a\n\u{fffd}\n", csv, &[("invalid-bytes", "\u{fffd}")]);
        check("n\n1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n", csv, &[("mixed-types", "x")]);
        check("{\"a\":1}\nnope\n", Format::JsonLines, &[("syntax", "nope")]);
    }

    #[test]
    fn problems_are_bounded_and_all_are_counted() {
        let text = format!("a,b\n{}", "1\n".repeat(1000));
        let profile = profile(&text, Format::Delimited(Some(b',')), &|| false).expect("a profile");
        assert_eq!((profile.problems.len(), profile.problem_count), (8, 1000));
    }
}
