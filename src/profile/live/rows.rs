//! Records and cells of delimited text, as RFC 4180 quotes them and pandas' `read_csv` reads them: blank lines are no
//! records, a quote doubled inside quotes is one quote, a quote inside an unquoted cell is text.

use std::borrow::Cow;
use std::ops::Range;

/// One cell and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    /// Bytes of the cell in the text, quotes included.
    pub range: Range<usize>,
    /// It starts with a quote.
    pub quoted: bool,
}

impl Cell {
    /// The value, quotes resolved.
    pub fn value<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let raw = &text[self.range.clone()];
        if !self.quoted {
            return Cow::Borrowed(raw);
        }
        let inner = &raw[1..];
        match inner.find('"') {
            None => Cow::Borrowed(inner),
            Some(end) if end + 1 == inner.len() => Cow::Borrowed(&inner[..end]),
            Some(_) => Cow::Owned(unquoted(inner)),
        }
    }
}

/// `inner` is what follows the opening quote.
fn unquoted(inner: &str) -> String {
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    let mut open = true;
    while let Some(character) = characters.next() {
        if character == '"' {
            if open && characters.peek() == Some(&'"') {
                characters.next();
                value.push('"');
            } else {
                open = !open;
            }
        } else {
            value.push(character);
        }
    }
    value
}

/// One record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Where it starts.
    pub start: usize,
    /// Its cells, at least one.
    pub cells: Vec<Cell>,
    /// Where a quote was opened that is never closed.
    pub unclosed: Option<usize>,
}

/// The records of a text.
pub(super) struct Records<'a> {
    text: &'a str,
    at: usize,
    delimiter: u8,
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str, delimiter: u8) -> Self {
        // A byte order mark belongs to the encoding, not to the first name.
        Self { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 }, delimiter }
    }
}

impl Records<'_> {
    /// Reads the next record into `record`, whose memory is used again; false at the end.
    pub fn read(&mut self, record: &mut Record) -> bool {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                None => return false,
                Some(b'\r' | b'\n') => self.at += 1,
                Some(b' ' | b'\t') if self.delimiter != bytes[self.at] && is_blank_line(bytes, self.at) => self.at += 1,
                Some(_) => break,
            }
        }
        record.start = self.at;
        record.cells.clear();
        record.unclosed = None;
        self.at = scan(bytes, self.at, self.delimiter, &mut record.cells, &mut record.unclosed);
        true
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let mut record = Record::default();
        self.read(&mut record).then_some(record)
    }
}

/// Whether nothing but blanks stands from `at` to the end of its line.
fn is_blank_line(bytes: &[u8], at: usize) -> bool {
    bytes[at..].iter().find(|byte| !matches!(byte, b' ' | b'\t')).is_none_or(|byte| matches!(byte, b'\r' | b'\n'))
}

/// The cells of the record that starts these bytes; where it goes on beyond them, those that are whole.
pub(super) fn cells(text: &str, record: Range<usize>, delimiter: u8) -> Vec<Cell> {
    let mut cells = Vec::new();
    let end = scan(&text.as_bytes()[..record.end], record.start, delimiter, &mut cells, &mut None);
    if end == record.end && end < text.len() && !matches!(text.as_bytes()[end - 1], b'\r' | b'\n') {
        cells.pop();
    }
    cells
}

/// Scans one record from `start`; returns the offset of what follows its line terminator.
fn scan(bytes: &[u8], start: usize, delimiter: u8, cells: &mut Vec<Cell>, unclosed: &mut Option<usize>) -> usize {
    let mut at = start;
    loop {
        let cell_start = at;
        let quoted = bytes.get(at) == Some(&b'"');
        if quoted {
            at += 1;
            loop {
                match bytes.get(at) {
                    None => {
                        *unclosed = Some(cell_start);
                        break;
                    }
                    Some(b'"') if bytes.get(at + 1) == Some(&b'"') => at += 2,
                    Some(b'"') => {
                        at += 1;
                        break;
                    }
                    Some(_) => at += 1,
                }
            }
        }
        at = memchr::memchr3(delimiter, b'\r', b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
        cells.push(Cell { range: cell_start..at, quoted });
        match bytes.get(at) {
            Some(byte) if *byte == delimiter => at += 1,
            Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => return at + 2,
            Some(_) => return at + 1,
            None => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<Vec<String>> {
        Records::new(text, b',').map(|record| record.cells.iter().map(|cell| cell.value(text).into_owned()).collect()).collect()
    }

    #[test]
    fn cells_are_read_as_they_are_quoted() {
        let check = |text: &str, expected: &[&[&str]]| assert_eq!(values(text), expected, "{text:?}");
        check("a,b\n1,2\n", &[&["a", "b"], &["1", "2"]]);
        check("a,b\r\n\r\n1,\r\n", &[&["a", "b"], &["1", ""]]);
        check("\u{feff}a\n\"x\ny\"\n", &[&["a"], &["x\ny"]]);
        check("\"a\"\"b\",\"c,d\"", &[&["a\"b", "c,d"]]);
        check("it\"s,2", &[&["it\"s", "2"]]);
        check("  \n é,ü\n", &[&[" é", "ü"]]);
        check("", &[]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_told_with_its_place() {
        let record = Records::new("a,\"b\nc\n", b',').next();
        assert_eq!(record.and_then(|record| record.unclosed), Some(2));
    }
}
