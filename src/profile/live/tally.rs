//! One look at the cells of a column: counts of each kind, range, sum and distinct values.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use super::columns::ColumnKind;
use super::values::{Number, Value, as_float, is_boolean, is_date, is_missing, number};

/// Distinct values that are counted exactly; beyond, the number is a lower bound.
const MAX_DISTINCT: usize = 200_000;

/// Hashes, which need not be hashed again to be kept in a set.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<Itself>>;

/// The hash of a hash is itself.
#[derive(Default)]
pub(super) struct Itself(u64);

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

/// Counts distinct values, by their hashes.
#[derive(Default)]
pub(super) struct Distinct {
    seen: Hashes,
    overflow: bool,
}

impl Distinct {
    pub fn see(&mut self, hash: u64) {
        if self.seen.len() < MAX_DISTINCT {
            self.seen.insert(hash);
        } else if !self.seen.contains(&hash) {
            self.overflow = true;
        }
    }

    /// How many, and whether that is all of them.
    pub fn count(&self) -> (u64, bool) {
        (self.seen.len() as u64, !self.overflow)
    }
}

/// The least and the greatest of texts.
#[derive(Default)]
pub(super) struct Texts(Option<(String, String)>);

impl Texts {
    pub fn take(&mut self, text: &str) {
        match &mut self.0 {
            None => self.0 = Some((text.to_owned(), text.to_owned())),
            Some((low, _)) if text < low.as_str() => text.clone_into(low),
            Some((_, high)) if text > high.as_str() => text.clone_into(high),
            Some(_) => {}
        }
    }

    pub fn range(self) -> Option<(String, String)> {
        self.0
    }
}

/// The least or greatest number, as it is written.
#[derive(Default)]
struct Bound {
    value: f64,
    text: String,
}

impl Bound {
    fn set(&mut self, value: f64, text: &str) {
        self.value = value;
        text.trim().clone_into(&mut self.text);
    }
}

/// What is known of a column.
#[derive(Default)]
pub(super) struct Tally {
    integers: u64,
    floats: u64,
    falses: u64,
    trues: u64,
    dates: u64,
    strings: u64,
    nested: u64,
    least: Bound,
    most: Bound,
    /// Sum of the numbers.
    pub sum: f64,
    /// A whole number was written with leading zeros.
    pub leading_zeros: bool,
    /// The numbers, while there is nothing else.
    pub values: Vec<f64>,
    /// Distinct values, while there are only numbers or only text.
    pub distinct: Distinct,
    /// Range of the text, while there is nothing else.
    pub texts: Texts,
}

impl Tally {
    /// Takes a cell; true where it is missing.
    pub fn take(&mut self, value: &Value<'_>, hasher: &impl BuildHasher) -> bool {
        match value {
            Value::Missing => return true,
            Value::Nested => self.nested += 1,
            Value::Boolean(value) => self.truth(*value),
            Value::Text(text) => self.string(text, hasher),
            Value::Raw(text) => match number(text) {
                Some(Number::Integer(value)) => {
                    if !self.leading_zeros {
                        let digits = text.trim_start_matches(['+', '-', ' ']).as_bytes();
                        self.leading_zeros = digits.len() > 1 && digits[0] == b'0';
                    }
                    if self.floats == 0 && self.only_numbers() {
                        self.distinct.see(hasher.hash_one(value));
                    }
                    self.integers += 1;
                    self.number(Number::Integer(value), text, hasher);
                }
                Some(value) => {
                    if self.floats == 0 && self.integers > 0 && self.only_numbers() {
                        // Whole numbers count by their value as a double from here on.
                        self.distinct = Distinct::default();
                        for value in &self.values {
                            self.distinct.see(hash_of(*value, hasher));
                        }
                    }
                    self.floats += 1;
                    self.number(value, text, hasher);
                }
                None if is_missing(text) => return true,
                None if is_boolean(text) => self.truth(matches!(text.as_bytes()[0], b't' | b'T')),
                None => self.string(text, hasher),
            },
        }
        false
    }

    fn truth(&mut self, value: bool) {
        if value { self.trues += 1 } else { self.falses += 1 }
    }

    /// One value, however it is written.
    fn number(&mut self, number: Number, text: &str, hasher: &impl BuildHasher) {
        let value = as_float(number);
        self.sum += value;
        let first = self.numbers() == 1;
        if first || value < self.least.value {
            self.least.set(value, text);
        }
        if first || value > self.most.value {
            self.most.set(value, text);
        }
        if self.only_numbers() {
            self.values.push(value);
            if self.floats > 0 {
                self.distinct.see(hash_of(value, hasher));
            }
        }
    }

    fn string(&mut self, text: &str, hasher: &impl BuildHasher) {
        self.strings += 1;
        self.dates += u64::from(is_date(text));
        if self.strings == self.present() {
            self.distinct.see(hasher.hash_one(text));
            self.texts.take(text);
        }
    }

    /// Nothing but numbers was seen.
    fn only_numbers(&self) -> bool {
        self.numbers() == self.present()
    }

    /// Cells that are numbers.
    pub fn numbers(&self) -> u64 {
        self.integers + self.floats
    }

    fn booleans(&self) -> u64 {
        self.falses + self.trues
    }

    /// Cells that are not missing.
    pub fn present(&self) -> u64 {
        self.numbers() + self.booleans() + self.strings + self.nested
    }

    /// What the column is.
    pub fn kind(&self) -> ColumnKind {
        let present = self.present();
        if present == 0 {
            ColumnKind::Empty
        } else if self.nested > 0 {
            ColumnKind::Nested
        } else if self.integers == present {
            ColumnKind::Integer
        } else if self.numbers() == present {
            ColumnKind::Float
        } else if self.booleans() == present {
            ColumnKind::Boolean
        } else if self.dates == present {
            ColumnKind::Date
        } else {
            ColumnKind::Text
        }
    }

    /// What almost all cells are, where a few are not.
    pub fn almost(&self) -> Option<ColumnKind> {
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

    /// Whether the column must be looked at again: its cells are of several kinds, or some of them stand out.
    pub fn is_mixed(&self) -> bool {
        let kinds = [self.numbers(), self.booleans(), self.strings, self.nested];
        kinds.iter().filter(|count| **count > 0).count() > 1 || self.almost().is_some()
    }

    /// The least and the greatest number.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        (self.numbers() > 0).then_some((self.least.value, self.most.value))
    }

    /// The same, as they are written.
    pub fn range(&self) -> Option<(String, String)> {
        (self.numbers() > 0).then(|| (self.least.text.clone(), self.most.text.clone()))
    }

    /// Which truth values there are.
    pub fn truths(&self, hasher: &impl BuildHasher) -> Distinct {
        let mut distinct = Distinct::default();
        for (value, count) in [(false, self.falses), (true, self.trues)] {
            if count > 0 {
                distinct.see(hasher.hash_one(value));
            }
        }
        distinct
    }
}

/// Both zeros are one value.
fn hash_of(value: f64, hasher: &impl BuildHasher) -> u64 {
    hasher.hash_one(if value == 0.0 { 0 } else { value.to_bits() })
}
