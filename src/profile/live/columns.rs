//! Types and statistics of columns.
//!
//! Two passes over the cells: the first finds each column's type, missing cells and range, the second, which needs
//! both, counts distinct values and fills the histogram.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

use super::values::{Number, Value, as_float, is_boolean, is_date, is_missing, number};

/// Distinct values that are counted exactly; beyond, the number is a lower bound.
const MAX_DISTINCT: usize = 200_000;

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

/// Hashes, which need not be hashed again to be kept in a set.
type Hashes = HashSet<u64, BuildHasherDefault<Itself>>;

/// The hash of a hash is itself.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

struct Pass2 {
    kind: ColumnKind,
    almost: Option<ColumnKind>,
    low: f64,
    width: f64,
    hasher: BuildHasherDefault<DefaultHasher>,
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
            hasher: BuildHasherDefault::default(),
            seen: Hashes::default(),
            overflow: false,
            bars,
            offenders: 0,
            texts: None,
        }
    }

    /// Takes a cell; true where it is not what almost all cells of the column are.
    fn take(&mut self, value: &Value<'_>) -> bool {
        match value {
            Value::Missing | Value::Nested => false,
            Value::Boolean(value) => {
                self.see(self.hasher.hash_one(value));
                false
            }
            Value::Text(text) => self.text(text),
            Value::Raw(text) if is_missing(text) => false,
            Value::Raw(text) => match self.kind {
                ColumnKind::Integer | ColumnKind::Float => {
                    if let Some(number) = number(text) {
                        self.number(number);
                    }
                    false
                }
                ColumnKind::Boolean => {
                    self.see(self.hasher.hash_one(text.eq_ignore_ascii_case("true")));
                    false
                }
                _ => self.text(text),
            },
        }
    }

    /// One value, however it is written.
    fn number(&mut self, number: Number) {
        let value = as_float(number);
        self.see(match number {
            Number::Integer(value) if self.kind == ColumnKind::Integer => self.hasher.hash_one(value),
            _ => self.hasher.hash_one(if value == 0.0 { 0 } else { value.to_bits() }),
        });
        if !self.bars.is_empty() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a bar's index")]
            let bar = (((value - self.low) / self.width * BARS as f64) as usize).min(BARS - 1);
            self.bars[bar] += 1;
        }
    }

    fn text(&mut self, text: &str) -> bool {
        self.see(self.hasher.hash_one(text));
        match &mut self.texts {
            None => self.texts = Some((text.to_owned(), text.to_owned())),
            Some((low, _)) if text < low.as_str() => text.clone_into(low),
            Some((_, high)) if text > high.as_str() => text.clone_into(high),
            Some(_) => {}
        }
        let odd = match self.almost {
            Some(ColumnKind::Date) => !is_date(text),
            Some(_) => number(text).is_none(),
            None => false,
        };
        self.offenders += u64::from(odd);
        odd
    }

    fn see(&mut self, hash: u64) {
        if self.seen.len() < MAX_DISTINCT {
            self.seen.insert(hash);
        } else if !self.seen.contains(&hash) {
            self.overflow = true;
        }
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

#[cfg(test)]
mod tests {
    use super::super::table::of_delimited;
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
}
