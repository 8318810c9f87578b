//! Records of JSON Lines, and of a JSON document that is an array of objects or holds one under a key.
//!
//! `serde_json` judges the syntax; the scanner here only finds places, in text that was judged or in a line that is
//! about to be, and gives up quietly on anything else.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::columns::Collector;
use super::problems::{Problem, ProblemKind, Problems};
use super::values::Value;
use super::{Format, LiveProfile, MAX_COLUMNS};

/// A field of a record, found by its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub key: String,
    pub range: Range<usize>,
    pub value: String,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn blank(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        self.blank();
        (self.bytes.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    fn string(&mut self) -> Option<Range<usize>> {
        self.blank();
        let start = self.at;
        (self.bytes.get(start) == Some(&b'"')).then_some(())?;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                _ => self.at += 1,
            }
        }
    }

    /// Any value, skipped without recursion: hostile text may nest as deep as it is long.
    fn value(&mut self) -> Option<Range<usize>> {
        self.blank();
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    while !matches!(
                        self.bytes.get(self.at),
                        None | Some(b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'{' | b'[')
                    ) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(start..self.at);
            }
        }
    }

    /// The fields of the object that starts here.
    fn fields(&mut self, mut each: impl FnMut(Range<usize>, Range<usize>)) -> Option<()> {
        self.eat(b'{')?;
        if self.eat(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.eat(b':')?;
            let value = self.value()?;
            each(key, value);
            if self.eat(b',').is_none() {
                return self.eat(b'}');
            }
        }
    }

    /// The elements of the array that starts here.
    fn elements(&mut self, mut each: impl FnMut(Range<usize>) -> bool) -> Option<()> {
        self.eat(b'[')?;
        if self.eat(b']').is_some() {
            return Some(());
        }
        loop {
            let value = self.value()?;
            if !each(value) {
                return None;
            }
            if self.eat(b',').is_none() {
                return self.eat(b']');
            }
        }
    }
}

/// A JSON string without its quotes, escapes resolved.
fn unescape(text: &str) -> Cow<'_, str> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if inner.contains('\\') { serde_json::from_str::<String>(text).map_or(Cow::Borrowed(inner), Cow::Owned) } else { Cow::Borrowed(inner) }
}

fn value_of(text: &str) -> Value<'_> {
    match text.as_bytes().first() {
        None => Value::Missing,
        Some(b'"') => Value::Text(unescape(text)),
        Some(b'{' | b'[') => Value::Nested,
        Some(_) => match text {
            "null" => Value::Missing,
            "true" | "false" => Value::Boolean(text == "true"),
            _ => Value::Raw(Cow::Borrowed(text)),
        },
    }
}

/// The array of objects of a document: the document itself, or its longest one under a top-level key.
fn records_of_document(text: &str) -> Option<Range<usize>> {
    let start = text.find(|character: char| !character.is_whitespace() && character != '\u{feff}')?;
    let mut scanner = Scanner { bytes: text.as_bytes(), at: start };
    match text.as_bytes()[start] {
        b'[' => is_records(text, start).then_some(start..text.len()),
        b'{' => {
            let mut best: Option<Range<usize>> = None;
            scanner.fields(|_, value| {
                if is_records(text, value.start) && best.as_ref().is_none_or(|best| value.len() > best.len()) {
                    best = Some(value);
                }
            })?;
            best
        }
        _ => None,
    }
}

/// Whether an array starts here whose first two elements are objects.
fn is_records(text: &str, start: usize) -> bool {
    let mut objects = 0;
    let mut scanner = Scanner { bytes: text.as_bytes(), at: start };
    let whole = scanner.elements(|value| {
        let object = text.as_bytes().get(value.start) == Some(&b'{');
        objects += usize::from(object);
        object && objects < 2
    });
    objects == 2 || (objects == 1 && whole.is_some())
}

/// Places of all records, in order; `each` answers false to end it.
fn records(text: &str, format: Format, mut each: impl FnMut(Range<usize>) -> bool) {
    if format == Format::Json {
        let Some(range) = records_of_document(text) else { return };
        let mut scanner = Scanner { bytes: text.as_bytes(), at: range.start };
        scanner.elements(each);
        return;
    }
    let mut at = 0;
    for line in text.split('\n') {
        let trimmed = line.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
        if !trimmed.is_empty() {
            let start = at + (trimmed.as_ptr() as usize - line.as_ptr() as usize);
            if !each(start..start + trimmed.len()) {
                return;
            }
        }
        at += line.len() + 1;
    }
}

fn fields(text: &str, record: &Range<usize>, each: impl FnMut(Range<usize>, Range<usize>)) {
    let mut scanner = Scanner { bytes: &text.as_bytes()[..record.end], at: record.start };
    scanner.fields(each);
}

/// The profile of JSON Lines.
pub(super) fn of_lines(text: &str, stale: &dyn Fn() -> bool) -> Option<LiveProfile> {
    let mut problems = Problems::default();
    records(text, Format::JsonLines, |line| {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text[line.clone()]) {
            problems.push(Problem { range: line, kind: ProblemKind::Syntax(words(&error)) });
        }
        !stale()
    });
    table(text, Format::JsonLines, problems, stale)
}

/// The profile of a JSON document.
pub(super) fn of_document(text: &str, stale: &dyn Fn() -> bool) -> Option<LiveProfile> {
    let mut problems = Problems::default();
    let body = text.trim_start_matches('\u{feff}');
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(body) {
        // Other servers judge JSON in general; here only what is meant to be a table.
        let compact: String = body.chars().filter(|character| !character.is_whitespace()).take(2).collect();
        if compact != "[{" {
            return None;
        }
        let at = place_of(body, error.line(), error.column()) + (text.len() - body.len());
        let end = text[at..].chars().next().map_or(at, |character| at + character.len_utf8());
        problems.push(Problem { range: at..end, kind: ProblemKind::Syntax(words(&error)) });
    } else {
        records_of_document(text)?;
    }
    table(text, Format::Json, problems, stale)
}

/// The parser's words without the place, which the range says better.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The offset of `serde_json`'s line and column, both counted from 1, the column in bytes.
fn place_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn table(text: &str, format: Format, mut problems: Problems, stale: &dyn Fn() -> bool) -> Option<LiveProfile> {
    let mut collector = Collector::new(Vec::new());
    let mut columns: HashMap<String, usize> = HashMap::new();
    let mut titles: Vec<String> = Vec::new();
    let mut starts = Vec::new();
    let mut canonical = Vec::new();
    let mut ended = false;
    records(text, format, |record| {
        // Text of a live profile is shorter than what 32 bits count.
        starts.push(u32::try_from(record.start).unwrap_or(u32::MAX));
        canonical.clear();
        fields(text, &record, |key, value| {
            let key = unescape(&text[key]);
            let column = match columns.get(key.as_ref()) {
                Some(column) => *column,
                None if columns.len() < MAX_COLUMNS => {
                    let column = collector.add(key.clone().into_owned());
                    titles.push(key.clone().into_owned());
                    columns.insert(key.into_owned(), column);
                    column
                }
                None => return,
            };
            canonical.extend_from_slice(&column.to_le_bytes());
            canonical.extend_from_slice(text[value.clone()].as_bytes());
            // No byte of UTF-8: values stay apart.
            canonical.push(0xff);
            collector.first(column, &value_of(&text[value]));
        });
        collector.row(&canonical);
        ended = stale();
        !ended
    });
    if collector.turn() && !ended {
        records(text, format, |record| {
            fields(text, &record, |key, value| {
                let Some(column) = columns.get(unescape(&text[key]).as_ref()) else { return };
                if let Some(expected) = collector.second(*column, &value_of(&text[value.clone()])) {
                    problems.push(Problem { range: value, kind: ProblemKind::OddCell { column: titles[*column].clone(), expected } });
                }
            });
            ended |= stale();
            !ended
        });
    }
    if ended {
        return None;
    }
    problems.mixed((0..titles.len()).map(|column| collector.offenders(column)));
    problems.characters(text);
    let (rows, duplicate_rows) = (collector.row_count, collector.duplicates);
    let (problems, problem_count) = problems.finish();
    Some(LiveProfile { format, rows, duplicate_rows, columns: collector.finish(), problems, problem_count, starts })
}

/// The field whose key or value is at `offset`, among the fields of the record that starts these bytes.
pub(super) fn field_at(text: &str, record: Range<usize>, offset: usize) -> Option<Field> {
    let mut found = None;
    fields(text, &record, |key, value| {
        if key.contains(&offset) || value.contains(&offset) {
            found = Some(Field {
                key: unescape(&text[key.clone()]).into_owned(),
                range: key.start..value.end,
                value: unescape(&text[value]).into_owned(),
            });
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::profile;
    use super::*;

    #[test]
    fn records_of_all_three_layouts_make_the_same_table() {
        for (text, format) in [
            ("{\"a\":1,\"b\":\"x\"}\n\n{\"a\":2}\n", Format::JsonLines),
            ("[{\"a\":1,\"b\":\"x\"},\n {\"a\":2}]", Format::Json),
            ("{\"meta\":[1],\"data\":[{\"a\":1,\"b\":\"x\"},{\"a\":2}]}", Format::Json),
        ] {
            let profile = profile(text, format, &|| false).expect(text);
            let columns: Vec<_> = profile.columns.iter().map(|column| (column.name.as_str(), column.dtype(), column.missing)).collect();
            assert_eq!((profile.rows, columns), (2, vec![("a", "int64", 0), ("b", "object", 1)]), "{text}");
            let offset = text.find("\"x\"").expect("a cell") + 1;
            let place = profile.place(text, offset).expect("a place");
            assert_eq!((place.column, place.row, place.value.as_str()), (1, Some(0), "x"));
        }
    }

    #[test]
    fn a_document_that_is_no_table_has_no_profile() {
        for text in ["{\"name\":\"x\",\"scripts\":{}}", "[1,2]", "3", "", "{\"a\":"] {
            assert_eq!(profile(text, Format::Json, &|| false), None, "{text}");
        }
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        let text = "[{\"a\":1},\n{\"a\" 2}]";
        let profile = profile(text, Format::Json, &|| false).expect("a profile");
        assert_eq!(profile.problems.len(), 1);
        assert_eq!(profile.problems[0].range.start, text.find("2}").expect("the place"));
    }

    #[test]
    fn deep_nesting_does_not_overflow() {
        let text = format!("[{{\"a\":{}", "[".repeat(1_000_000));
        let profile = profile(&text, Format::Json, &|| false).expect("a profile");
        assert_eq!(profile.place(&text, text.len() - 1), None);
    }
}
