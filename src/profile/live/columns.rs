//! Types and statistics of columns, collected from cells that are given row by row.
//!
//! Columns whose cells are of one kind, which are nearly all, are looked at once. Where kinds are mixed the cells of
//! that column are needed a second time, now that it is known what the column is.

use std::hash::BuildHasher;

use super::tally::{Distinct, Hashes, Tally, Texts};
use super::values::{Value, is_date, is_missing, number};

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

/// The second look at a column of several kinds, or of dates that are not all dates.
struct Second {
    almost: Option<ColumnKind>,
    distinct: Distinct,
    texts: Texts,
    offenders: u64,
}

impl Second {
    /// Takes a cell; true where it is not what almost all cells of the column are.
    fn take(&mut self, value: &Value<'_>, hasher: &impl BuildHasher) -> bool {
        match value {
            Value::Missing | Value::Nested => false,
            Value::Boolean(value) => {
                self.distinct.see(hasher.hash_one(value));
                false
            }
            Value::Raw(text) if is_missing(text) => false,
            Value::Text(text) | Value::Raw(text) => {
                self.distinct.see(hasher.hash_one(text.as_ref()));
                self.texts.take(text);
                let odd = match self.almost {
                    Some(ColumnKind::Date) => !is_date(text),
                    Some(_) => number(text).is_none(),
                    None => false,
                };
                self.offenders += u64::from(odd);
                odd
            }
        }
    }
}

/// Collects the statistics of a table whose cells are given row by row.
pub(super) struct Collector {
    hasher: foldhash::fast::RandomState,
    names: Vec<String>,
    first: Vec<Tally>,
    second: Vec<Option<Second>>,
    rows: Hashes,
    pub row_count: u64,
    pub duplicates: u64,
}

impl Collector {
    pub fn new(names: Vec<String>) -> Self {
        let first = names.iter().map(|_| Tally::default()).collect();
        let hasher = foldhash::fast::RandomState::default();
        Self { hasher, names, first, second: Vec::new(), rows: Hashes::default(), row_count: 0, duplicates: 0 }
    }

    /// A column that was not known at the start: records of JSON name theirs as they come.
    pub fn add(&mut self, name: String) -> usize {
        self.names.push(name);
        self.first.push(Tally::default());
        self.names.len() - 1
    }

    /// Takes a cell; true where it is missing.
    pub fn first(&mut self, column: usize, value: &Value<'_>) -> bool {
        match self.first.get_mut(column) {
            Some(tally) => tally.take(value, &self.hasher),
            None => matches!(value, Value::Raw(text) if is_missing(text)),
        }
    }

    /// After all cells were given: whether those of some columns are needed once more.
    pub fn turn(&mut self) -> bool {
        let second = |tally: &Tally| {
            let look = Second { almost: tally.almost(), distinct: Distinct::default(), texts: Texts::default(), offenders: 0 };
            tally.is_mixed().then_some(look)
        };
        self.second = self.first.iter().map(second).collect();
        self.second.iter().any(Option::is_some)
    }

    /// Whether the cells of this column are needed once more.
    pub fn needs_second(&self, column: usize) -> bool {
        self.second.get(column).is_some_and(Option::is_some)
    }

    /// Takes a cell once more. Says what almost all of its column are where it is not and few such were seen before.
    pub fn second(&mut self, column: usize, value: &Value<'_>) -> Option<ColumnKind> {
        let second = self.second.get_mut(column)?.as_mut()?;
        (second.take(value, &self.hasher) && second.offenders <= 3).then(|| second.almost.unwrap_or(ColumnKind::Text))
    }

    /// Cells of the column that are not what almost all are.
    pub fn offenders(&self, column: usize) -> u64 {
        self.second.get(column).and_then(Option::as_ref).map_or(0, |second| second.offenders)
    }

    /// Makes room for so many rows.
    pub fn expect_rows(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// Takes a whole row, by bytes that are equal for equal rows and for no others.
    pub fn row(&mut self, canonical: &[u8]) {
        self.row_count += 1;
        if !self.rows.insert(self.hasher.hash_one(canonical)) {
            self.duplicates += 1;
        }
    }

    pub fn finish(self) -> Vec<LiveColumn> {
        let (rows, hasher) = (self.row_count, self.hasher);
        let seconds = self.second.into_iter().chain(std::iter::repeat_with(|| None));
        self.names
            .into_iter()
            .zip(self.first.into_iter().zip(seconds))
            .map(|(name, (first, second))| column(name, rows, first, second, &hasher))
            .collect()
    }
}

fn column(name: String, rows: u64, first: Tally, second: Option<Second>, hasher: &impl BuildHasher) -> LiveColumn {
    let kind = first.kind();
    let numeric = matches!(kind, ColumnKind::Integer | ColumnKind::Float);
    // Fields that a JSON record leaves out are missing too.
    let missing = rows.saturating_sub(first.present());
    #[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
    let mean = (numeric && first.numbers() > 0).then(|| first.sum / first.numbers() as f64);
    let histogram = if numeric { histogram(&first) } else { None };
    let leading_zeros = numeric && first.leading_zeros;
    let (range, distinct) = match second {
        Some(second) => (second.texts.range(), second.distinct),
        None if numeric => (first.range(), first.distinct),
        None if kind == ColumnKind::Boolean => (None, first.truths(hasher)),
        None => (first.texts.range(), first.distinct),
    };
    let range = match kind {
        ColumnKind::Integer | ColumnKind::Float => range,
        ColumnKind::Date | ColumnKind::Text => range.map(|(low, high)| (super::bounded(&low), super::bounded(&high))),
        _ => None,
    };
    let (distinct, distinct_exact) = distinct.count();
    LiveColumn { name, kind, missing, distinct, distinct_exact, range, mean, histogram, leading_zeros }
}

/// How numbers are spread between the least and the greatest.
fn histogram(tally: &Tally) -> Option<Histogram> {
    let (low, high) = tally.bounds()?;
    if !(low.is_finite() && high.is_finite() && low < high) {
        return None;
    }
    let mut bars = vec![0; BARS];
    #[allow(clippy::cast_precision_loss, reason = "a few bars")]
    let scale = BARS as f64 / (high - low);
    for value in &tally.values {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar's index")]
        let bar = ((value - low) * scale) as usize;
        bars[bar.min(BARS - 1)] += 1;
    }
    Some(Histogram(bars))
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
