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

/// The number that a cell is.
pub(super) fn number(text: &str) -> Option<Number> {
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
