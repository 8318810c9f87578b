//! What a cell is. What counts as missing, as a number or as a truth value is what pandas' `read_csv` takes by default
//! (`pandas._libs.parsers.STR_NA_VALUES` and its tokenizer).

use std::borrow::Cow;

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
pub(super) fn is_missing(text: &str) -> bool {
    // Nearly all cells are told by their first byte.
    if !matches!(text.as_bytes().first(), None | Some(b'#' | b'-' | b'1' | b'<' | b'N' | b'n')) {
        return false;
    }
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
pub(super) enum Number {
    /// A whole number.
    Integer(i64),
    /// Any number.
    Float(f64),
}

/// Powers of ten that doubles hold exactly, as far as [`plain`] needs them.
const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number of at most fifteen digits without an exponent: its digits and its power of ten are exact as doubles, so
/// that their quotient is the nearest double, which is what the general parser gives too.
fn plain(text: &str) -> Option<Number> {
    let bytes = text.as_bytes();
    let negative = bytes.first() == Some(&b'-');
    let digits = &bytes[usize::from(negative || bytes.first() == Some(&b'+'))..];
    if digits.len() > 16 {
        return None;
    }
    let mut value = 0_i64;
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    match point {
        None if (1..=15).contains(&digits.len()) => Some(Number::Integer(if negative { -value } else { value })),
        Some(at) if digits.len() > 1 => {
            #[allow(clippy::cast_precision_loss, reason = "fifteen digits are exact")]
            let whole = value as f64;
            let value = whole / TENS[digits.len() - 1 - at];
            Some(Number::Float(if negative { -value } else { value }))
        }
        _ => None,
    }
}

/// The number that a cell is.
pub(super) fn number(text: &str) -> Option<Number> {
    if let Some(number) = plain(text) {
        return Some(number);
    }
    // Most text is no number by its first byte.
    if !matches!(text.as_bytes().first(), Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b' ' | b'\t' | b'i' | b'I')) {
        return None;
    }
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

/// A truth value, as `read_csv` knows it.
pub(super) fn is_boolean(text: &str) -> bool {
    matches!(text, "True" | "TRUE" | "true" | "False" | "FALSE" | "false")
}

/// `2024-01-31`, `2024/1/31`, `31.01.2024`, `01/31/2024`, each with an optional time after a blank or a `T`.
pub(super) fn is_date(text: &str) -> bool {
    if !text.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
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

/// The number as a double.
#[allow(clippy::cast_precision_loss, reason = "pandas' float64")]
pub(super) fn as_float(number: Number) -> f64 {
    match number {
        Number::Integer(value) => value as f64,
        Number::Float(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The short way to a number and the general one agree to the last bit.
        #[test]
        fn plain_numbers_are_the_nearest_doubles(text in "[+-]?[0-9]{0,16}[.]?[0-9]{0,15}") {
            match plain(&text) {
                Some(Number::Integer(value)) => prop_assert_eq!(text.parse(), Ok(value)),
                Some(Number::Float(value)) => prop_assert_eq!(text.parse().map(f64::to_bits), Ok(value.to_bits())),
                None => {}
            }
        }
    }

    #[test]
    fn what_is_missing_is_no_number() {
        for text in ["", "-1.#IND", "1.#QNAN", "nan", "-nan", "NA", "<NA>", "#N/A"] {
            assert!(is_missing(text) && number(text).is_none(), "{text}");
        }
    }
}
