//! Types and statistics of columns.
//!
//! Two passes over the cells: the first finds each column's type, missing cells and range, the second, which needs
//! both, counts distinct values and fills the histogram. What counts as missing, as a number or as a truth value is
//! what pandas' `read_csv` takes by default (`pandas._libs.parsers.STR_NA_VALUES` and its tokenizer).

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::problems::{Problem, ProblemKind, Problems};
use super::rows::Records;
use super::{Format, LiveProfile, MAX_COLUMNS};

/// Distinct values that are counted exactly; beyond, the number is a lower bound.
const MAX_DISTINCT: usize = 200_000;

/// Rows between two looks at whether the work is stale.
const STALE_EVERY: u64 = 2_048;

/// Bars of a histogram.
const BARS: usize = 12;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Nothing but missing cells.
    Empty,
    /// Whole numbers, `int64`; `float64` where cells are missing.
    Integer,
    /// Numbers.
    Float,
    /// Truth values.
    Boolean,
    /// Calendar dates, with or without a time; still text when it is loaded.
    Date,
    /// Anything else.
    Text,
    /// JSON arrays or objects.
    Nested,
}

/// Counts of a numeric column's values in bars of equal width from its smallest to its largest value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram(pub Vec<u64>);

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveColumn {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// Missing cells.
    pub missing: u64,
    /// Distinct values, missing ones not counted.
    pub distinct: u64,
    /// False where [`LiveColumn::distinct`] is a lower bound.
    pub distinct_exact: bool,
    /// Smallest and largest value, numbers by value, dates and text by their characters; bounded for showing.
    pub range: Option<(String, String)>,
    /// Mean of a numeric column.
    pub mean: Option<f64>,
    /// How its numbers are spread.
    pub histogram: Option<Histogram>,
    /// Numbers with leading zeros: they name something and must stay text.
    pub leading_zeros: bool,
}

impl LiveColumn {
    /// The name of the type that pandas gives the column when it is loaded.
    pub fn dtype(&self) -> &'static str {
        match self.kind {
            ColumnKind::Integer if self.missing == 0 => "int64",
            ColumnKind::Integer | ColumnKind::Float | ColumnKind::Empty => "float64",
            ColumnKind::Boolean if self.missing == 0 => "bool",
            ColumnKind::Boolean | ColumnKind::Nested | ColumnKind::Date | ColumnKind::Text => "object",
        }
    }
}

/// One cell as the statistics see it.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// Nothing.
    Missing,
    /// Text of a delimited file: what it is, is found by looking.
    Raw(Cow<'a, str>),
    /// Text of a JSON string: never a number.
    Text(Cow<'a, str>),
    /// A JSON truth value.
    Boolean(bool),
    /// A JSON array or object.
    Nested,
}

/// What pandas' `read_csv` takes for missing by default.
fn is_missing(text: &str) -> bool {
    matches!(
        text,
        "" | "#N/A"
            | "#N/A N/A"
            | "#NA"
            | "-1.#IND"
            | "-1.#QNAN"
            | "-NaN"
            | "-nan"
            | "1.#IND"
            | "1.#QNAN"
            | "<NA>"
            | "N/A"
            | "NA"
            | "NULL"
            | "NaN"
            | "None"
            | "n/a"
            | "nan"
            | "null"
    )
}

/// A cell's number, as `read_csv` reads it with a decimal point.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Integer(i64),
    Float(f64),
}

fn number(text: &str) -> Option<Number> {
    let text = text.trim_matches([' ', '\t']);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned.bytes().next()? {
        b'0'..=b'9' | b'.' => {}
        b'i' | b'I' if matches!(unsigned.to_ascii_lowercase().as_str(), "inf" | "infinity") => {}
        _ => return None,
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(value) = text.parse()
    {
        return Some(Number::Integer(value));
    }
    text.parse().ok().map(Number::Float)
}

fn is_boolean(text: &str) -> bool {
    matches!(text, "True" | "TRUE" | "true" | "False" | "FALSE" | "false")
}

/// `2024-01-31`, `2024/1/31`, `31.01.2024`, `01/31/2024`, each with an optional time after a blank or a `T`.
fn is_date(text: &str) -> bool {
    let day = text.split([' ', 'T']).next().unwrap_or(text);
    let mut separator = None;
    let mut groups = [0_usize; 3];
    let mut group = 0;
    for byte in day.bytes() {
        match byte {
            b'0'..=b'9' => groups[group] += 1,
            b'-' | b'/' | b'.' => {
                if *separator.get_or_insert(byte) != byte || group == 2 {
                    return false;
                }
                group += 1;
            }
            _ => return false,
        }
    }
    let short = |length: usize| (1..=2).contains(&length);
    group == 2 && ((groups[0] == 4 && short(groups[1]) && short(groups[2])) || (short(groups[0]) && short(groups[1]) && groups[2] == 4))
}

#[derive(Debug, Default)]
struct Pass1 {
    missing: u64,
    integers: u64,
    floats: u64,
    booleans: u64,
    dates: u64,
    texts: u64,
    nested: u64,
    sum: f64,
    least: Option<(f64, String)>,
    most: Option<(f64, String)>,
    leading_zeros: bool,
}

impl Pass1 {
    fn take(&mut self, value: &Value<'_>) {
        match value {
            Value::Missing => self.missing += 1,
            Value::Nested => self.nested += 1,
            Value::Boolean(_) => self.booleans += 1,
            Value::Text(text) => self.text(text),
            Value::Raw(text) if is_missing(text) => self.missing += 1,
            Value::Raw(text) => match number(text) {
                Some(Number::Integer(value)) => {
                    self.integers += 1;
                    let digits = text.trim_start_matches(['+', '-', ' ']).as_bytes();
                    self.leading_zeros |= digits.len() > 1 && digits[0] == b'0';
                    #[allow(clippy::cast_precision_loss, reason = "for mean and range as a double, as pandas' float64")]
                    self.number(value as f64, text);
                }
                Some(Number::Float(value)) => {
                    self.floats += 1;
                    self.number(value, text);
                }
                None if is_boolean(text) => self.booleans += 1,
                None => self.text(text),
            },
        }
    }

    fn number(&mut self, value: f64, text: &str) {
        self.sum += value;
        if self.least.as_ref().is_none_or(|(least, _)| value < *least) {
            self.least = Some((value, text.trim().to_owned()));
        }
        if self.most.as_ref().is_none_or(|(most, _)| value > *most) {
            self.most = Some((value, text.trim().to_owned()));
        }
    }

    fn text(&mut self, text: &str) {
        self.texts += 1;
        if is_date(text) {
            self.dates += 1;
        }
    }

    fn numbers(&self) -> u64 {
        self.integers + self.floats
    }

    fn present(&self) -> u64 {
        self.numbers() + self.booleans + self.texts + self.nested
    }

    fn kind(&self) -> ColumnKind {
        let present = self.present();
        if present == 0 {
            ColumnKind::Empty
        } else if self.nested > 0 {
            ColumnKind::Nested
        } else if self.integers == present {
            ColumnKind::Integer
        } else if self.numbers() == present {
            ColumnKind::Float
        } else if self.booleans == present {
            ColumnKind::Boolean
        } else if self.dates == present {
            ColumnKind::Date
        } else {
            ColumnKind::Text
        }
    }

    /// What almost all cells are, where a few are not.
    fn almost(&self) -> Option<ColumnKind> {
        let present = self.present();
        let nearly = |part: u64| part < present && part >= 5 && part * 10 >= present * 9;
        if nearly(self.numbers()) {
            Some(if self.floats == 0 { ColumnKind::Integer } else { ColumnKind::Float })
        } else if nearly(self.dates) {
            Some(ColumnKind::Date)
        } else {
            None
        }
    }
}

type Hashes = HashSet<u64, BuildHasherDefault<DefaultHasher>>;

struct Pass2 {
    kind: ColumnKind,
    almost: Option<ColumnKind>,
    low: f64,
    width: f64,
    seen: Hashes,
    overflow: bool,
    bars: Vec<u64>,
    offenders: u64,
    /// Least and greatest text of a column of text.
    texts: Option<(String, String)>,
}

impl Pass2 {
    fn new(first: &Pass1) -> Self {
        let kind = first.kind();
        let numeric = matches!(kind, ColumnKind::Integer | ColumnKind::Float);
        let (low, high) = match (&first.least, &first.most) {
            (Some((low, _)), Some((high, _))) if numeric && low.is_finite() && high.is_finite() && low < high => (*low, *high),
            _ => (0.0, 0.0),
        };
        let bars = if high > low { vec![0; BARS] } else { Vec::new() };
        Self {
            kind,
            almost: first.almost(),
            low,
            width: high - low,
            seen: Hashes::default(),
            overflow: false,
            bars,
            offenders: 0,
            texts: None,
        }
    }

    /// Takes a cell; true where it is not what almost all cells of the column are.
    fn take(&mut self, value: &Value<'_>) -> bool {
        let hasher = self.seen.hasher();
        let hash = match value {
            Value::Missing | Value::Nested => return false,
            Value::Boolean(value) => hasher.hash_one(value),
            Value::Text(text) => hasher.hash_one(text.as_ref()),
            Value::Raw(text) if is_missing(text) => return false,
            Value::Raw(text) => match self.kind {
                ColumnKind::Integer | ColumnKind::Float => match number(text) {
                    // One value, however it is written.
                    Some(Number::Integer(value)) if self.kind == ColumnKind::Integer => hasher.hash_one(value),
                    Some(number) => {
                        let value = as_float(number);
                        hasher.hash_one(if value == 0.0 { 0 } else { value.to_bits() })
                    }
                    None => return false,
                },
                ColumnKind::Boolean => hasher.hash_one(text.eq_ignore_ascii_case("true")),
                _ => hasher.hash_one(text.as_ref()),
            },
        };
        if self.seen.len() < MAX_DISTINCT {
            self.seen.insert(hash);
        } else if !self.seen.contains(&hash) {
            self.overflow = true;
        }
        let (Value::Raw(text) | Value::Text(text)) = value else { return false };
        if matches!(self.kind, ColumnKind::Date | ColumnKind::Text) {
            match &mut self.texts {
                None => self.texts = Some((text.to_string(), text.to_string())),
                Some((low, _)) if text.as_ref() < low.as_str() => *low = text.to_string(),
                Some((_, high)) if text.as_ref() > high.as_str() => *high = text.to_string(),
                Some(_) => {}
            }
        }
        if !self.bars.is_empty()
            && let Some(value) = number(text).map(as_float)
        {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a bar's index")]
            let bar = (((value - self.low) / self.width * BARS as f64) as usize).min(BARS - 1);
            self.bars[bar] += 1;
        }
        let odd = match self.almost {
            Some(ColumnKind::Date) => !is_date(text),
            Some(_) => number(text).is_none(),
            None => false,
        };
        self.offenders += u64::from(odd);
        odd
    }
}

#[allow(clippy::cast_precision_loss, reason = "pandas' float64")]
fn as_float(number: Number) -> f64 {
    match number {
        Number::Integer(value) => value as f64,
        Number::Float(value) => value,
    }
}

/// Collects the statistics of a table whose cells are given twice, row by row.
pub(super) struct Collector {
    names: Vec<String>,
    first: Vec<Pass1>,
    second: Vec<Pass2>,
    rows: Hashes,
    pub row_count: u64,
    pub duplicates: u64,
}

impl Collector {
    pub fn new(names: Vec<String>) -> Self {
        let first = names.iter().map(|_| Pass1::default()).collect();
        Self { names, first, second: Vec::new(), rows: Hashes::default(), row_count: 0, duplicates: 0 }
    }

    /// A column that was not known at the start: records of JSON name theirs as they come.
    pub fn add(&mut self, name: String) -> usize {
        self.names.push(name);
        self.first.push(Pass1::default());
        self.names.len() - 1
    }

    pub fn first(&mut self, column: usize, value: &Value<'_>) {
        if let Some(pass) = self.first.get_mut(column) {
            pass.take(value);
        }
    }

    /// Between the passes.
    pub fn turn(&mut self) {
        self.second = self.first.iter().map(Pass2::new).collect();
    }

    /// True where the cell is not what almost all of its column are, and few such were seen before.
    pub fn second(&mut self, column: usize, value: &Value<'_>) -> Option<(ColumnKind, u64)> {
        let pass = self.second.get_mut(column)?;
        (pass.take(value) && pass.offenders <= 3).then(|| (pass.almost.unwrap_or(ColumnKind::Text), pass.offenders))
    }

    /// Cells of the column that are not what almost all are.
    pub fn offenders(&self, column: usize) -> u64 {
        self.second.get(column).map_or(0, |pass| pass.offenders)
    }

    pub fn row(&mut self, hash: u64) {
        self.row_count += 1;
        if !self.rows.insert(hash) {
            self.duplicates += 1;
        }
    }

    pub fn finish(self) -> Vec<LiveColumn> {
        let rows = self.row_count;
        self.names
            .into_iter()
            .zip(self.first.into_iter().zip(self.second))
            .map(|(name, (first, second))| column(name, rows, first, second))
            .collect()
    }
}

fn column(name: String, rows: u64, first: Pass1, second: Pass2) -> LiveColumn {
    let kind = second.kind;
    let numeric = matches!(kind, ColumnKind::Integer | ColumnKind::Float);
    let range = match kind {
        ColumnKind::Integer | ColumnKind::Float => first.least.zip(first.most).map(|((_, low), (_, high))| (low, high)),
        ColumnKind::Date | ColumnKind::Text => second.texts.map(|(low, high)| (super::bounded(&low), super::bounded(&high))),
        _ => None,
    };
    #[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
    let mean = (numeric && first.integers + first.floats > 0).then(|| first.sum / (first.integers + first.floats) as f64);
    // Fields that a JSON record leaves out are missing too.
    let present = first.integers + first.floats + first.booleans + first.texts + first.nested;
    LiveColumn {
        name,
        kind,
        missing: rows.saturating_sub(present),
        distinct: second.seen.len() as u64,
        distinct_exact: !second.overflow,
        range,
        mean,
        histogram: (!second.bars.is_empty()).then_some(Histogram(second.bars)),
        leading_zeros: numeric && first.leading_zeros,
    }
}

/// Names as pandas gives them: the second `a` is `a.1`, an empty one `Unnamed: 3`.
fn names(header: &[Cow<'_, str>]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    header
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let base = if name.is_empty() { format!("Unnamed: {at}") } else { name.to_string() };
            let mut free = base.clone();
            let mut number = 0;
            while !taken.insert(free.clone()) {
                number += 1;
                free = format!("{base}.{number}");
            }
            free
        })
        .collect()
}

/// The profile of delimited text.
pub(super) fn of_delimited(text: &str, delimiter: u8, stale: &dyn Fn() -> bool) -> Option<LiveProfile> {
    let mut problems = Problems::default();
    let mut records = Records::new(text, delimiter);
    let header = records.next()?;
    let width = header.cells.len();
    let titles: Vec<Cow<'_, str>> = header.cells.iter().take(MAX_COLUMNS).map(|cell| cell.value(text)).collect();
    problems.header(&header, &titles);
    let mut collector = Collector::new(names(&titles));
    let mut starts = vec![u32::try_from(header.start).ok()?];
    // Rows are read twice: the first record after the header is where the second pass begins, too.
    for (number, record) in (1_u64..).zip(records) {
        if number.is_multiple_of(STALE_EVERY) && stale() {
            return None;
        }
        starts.push(u32::try_from(record.start).ok()?);
        problems.record(&record, width);
        let mut hash = std::hash::DefaultHasher::new();
        for (column, cell) in record.cells.iter().enumerate() {
            let value = Value::Raw(cell.value(text));
            if let Value::Raw(text) = &value {
                std::hash::Hash::hash(if is_missing(text) { "" } else { text }, &mut hash);
            }
            collector.first(column, &value);
        }
        collector.row(std::hash::Hasher::finish(&hash));
    }
    collector.turn();
    let mut again = Records::new(text, delimiter);
    again.next();
    for (number, record) in (1_u64..).zip(again) {
        if number.is_multiple_of(STALE_EVERY) && stale() {
            return None;
        }
        for (column, cell) in record.cells.iter().enumerate() {
            if let Some((kind, _)) = collector.second(column, &Value::Raw(cell.value(text))) {
                problems.push(Problem {
                    range: cell.range.clone(),
                    kind: ProblemKind::OddCell { column: titles[column].to_string(), expected: kind },
                });
            }
        }
    }
    problems.mixed((0..titles.len()).map(|column| collector.offenders(column)));
    problems.characters(text);
    let (rows, duplicate_rows) = (collector.row_count, collector.duplicates);
    let (problems, problem_count) = problems.finish();
    Some(LiveProfile {
        format: Format::Delimited(Some(delimiter)),
        rows,
        duplicate_rows,
        columns: collector.finish(),
        problems,
        problem_count,
        starts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cells: &str) -> LiveColumn {
        let text = format!("x,y\n{},0\n", cells.replace(' ', ",0\n"));
        of_delimited(&text, b',', &|| false).and_then(|profile| profile.columns.into_iter().next()).expect("a column")
    }

    #[test]
    fn types_are_those_that_pandas_gives() {
        let check = |cells: &str, dtype: &str, missing: u64, distinct: u64| {
            let column = column(cells);
            assert_eq!((column.dtype(), column.missing, column.distinct), (dtype, missing, distinct), "{cells}");
        };
        check("1 2 2", "int64", 0, 2);
        check("1 NA 2", "float64", 1, 2);
        check("1 1.0 2.5", "float64", 0, 2);
        check("a b NULL", "object", 1, 2);
        check("True False true", "bool", 0, 2);
        check("2024-01-01 2024-01-02", "object", 0, 2);
        check("99999999999999999999 1", "float64", 0, 2);
        check("nan nan", "float64", 2, 0);
        check("-0.0 0", "float64", 0, 1);
    }

    #[test]
    fn numbers_have_range_mean_and_histogram() {
        let column = column("3 1 2 1e1");
        assert_eq!(column.range, Some(("1".to_owned(), "1e1".to_owned())));
        assert_eq!(column.mean, Some(4.0));
        assert_eq!(column.histogram.map(|histogram| histogram.0.iter().sum::<u64>()), Some(4));
    }

    #[test]
    fn identifiers_with_leading_zeros_are_noticed() {
        assert!(column("007 012").leading_zeros);
        assert!(!column("7 0").leading_zeros);
    }

    #[test]
    fn names_are_made_unique_as_pandas_does() {
        let header = ["a", "a", "", "a.1"].map(Cow::Borrowed);
        assert_eq!(names(&header), ["a", "a.1", "Unnamed: 2", "a.1.1"]);
    }

    #[test]
    fn duplicate_rows_are_counted() {
        let profile = of_delimited("a,b\n1,2\n1,2\n1,3\n1,2\n", b',', &|| false).expect("a profile");
        assert_eq!((profile.rows, profile.duplicate_rows), (4, 2));
    }
}
