//! Which numbers of an answer stand in an output, and in which step's: the ground of links from answer to steps,
//! and of the one chance that a model gets to check numbers that no step printed.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::conversation::Message;
use super::execution::Output;
use super::run::{Run, Step};
use crate::profile::ProfileOutcome;

/// Numbers of one step that are looked at; a flood of numbers proves nothing.
const MAX_NUMBERS: usize = 50_000;
/// Numbers that a model is asked about at once.
const MAX_ASKED: usize = 10;

/// A number as it is written in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// Its value, without percent sign and scale word.
    pub value: f64,
    /// Digits after the decimal mark.
    pub decimals: usize,
    /// What it is multiplied by: 0.01 for a percent sign, 1e6 for `million` or `M`, 1e4 for `万`.
    pub scale: f64,
}

/// What an answer's numbers may come from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The question: its own numbers need no step.
    pub question: &'a str,
    /// Profiles of the files: theirs need none either.
    pub profiles: &'a [ProfileOutcome],
    /// What was said in the runs before, in a follow-up.
    pub history: &'a [Message],
    /// Executed steps.
    pub steps: &'a [Step],
}

impl<'a> Sources<'a> {
    /// The sources of a recorded run.
    pub fn of_run(run: &'a Run) -> Self {
        // The record's conversation ends with this very answer, so it proves nothing.
        Self { question: &run.question, profiles: &run.files, history: &[], steps: &run.steps }
    }
}

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// This step put it out.
    Step(u32),
    /// It stands in question, profiles, code or an earlier run, or is too small to be a claim.
    Given,
    /// Nothing that is known holds it.
    None,
}

/// The numbers that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Of each step, what it printed, and what else is known of it: sizes of variables, and what its charts show.
    steps: Vec<(u32, Vec<f64>, Vec<f64>)>,
    given: Vec<f64>,
}

impl Evidence {
    /// Collects the numbers of the sources.
    pub fn of(sources: &Sources<'_>) -> Self {
        let mut given: Vec<f64> = values(sources.question).collect();
        given.extend(sources.steps.iter().flat_map(|step| values(&step.code)));
        given.extend(sources.profiles.iter().flat_map(profiled));
        given.extend(sources.profiles.iter().flat_map(|profile| digits(profile.file())));
        // Years of dates in outputs and in the data.
        let dated = sources.steps.iter().map(|step| step.stdout.clone());
        let dated = dated.chain(sources.profiles.iter().filter_map(|profile| serde_json::to_string(profile).ok()));
        given.extend(dated.flat_map(|text| digits(&text).filter(|number| (1900.0..2100.0).contains(number)).collect::<Vec<_>>()));
        for message in sources.history {
            given.extend(values(&message.content));
        }
        Self { steps: sources.steps.iter().map(|step| (step.step, printed(step), drawn(step))).collect(), given }
    }

    /// Where the number comes from: the first step that printed it, else the first one that drew it.
    pub fn support(&self, written: &Written) -> Support {
        let holds = |values: &[f64]| values.iter().any(|value| supports(*value, written));
        // Small whole numbers count things in the answer itself: two groups, the third column.
        let trivial = written.decimals == 0 && written.value.abs() <= 12.0 && (written.scale - 1.0).abs() < f64::EPSILON;
        if trivial {
            return Support::Given;
        }
        // A chart's axis holds many numbers that nobody meant, so what was printed comes first, wherever it was.
        let by_print = self.steps.iter().find(|(_, printed, _)| holds(printed));
        if let Some((step, ..)) = by_print.or_else(|| self.steps.iter().find(|(.., drawn)| holds(drawn))) {
            return Support::Step(*step);
        }
        if holds(&self.given) { Support::Given } else { Support::None }
    }
}

/// Numbers in `text`, but for those within words, names, versions and dates.
pub fn numbers(text: &str) -> Vec<Written> {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?x) (?P<number> [-+\u{2212}]? (?: \d{1,3} (?: ,\d{3} )+ | \d+ ) (?: \.\d+ )? (?: [eE][-+]?\d+ )? ) (?P<scale> \s?% | \s?(?:million|billion|thousand)\b | [kKMB]\b | \s?[万亿] | \s?[×x*]\s?10(?: \^[-+\u{2212}]?\d+ | [⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+ ) )?").unwrap()
    });
    let mut found = Vec::new();
    for captures in NUMBER.captures_iter(text) {
        let Some(number) = captures.name("number") else { continue };
        let mut start = number.start();
        let before = text[..start].chars().next_back();
        let after = text[number.end()..].chars().next();
        // A sign after a digit or letter is a dash: a range, a date, a name.
        let signed = number.as_str().starts_with(['-', '+', '\u{2212}']);
        if signed && before.is_some_and(|c| c.is_ascii_alphabetic()) {
            continue;
        }
        if signed && before.is_some_and(|c| c.is_ascii_digit()) {
            start += number.as_str().chars().next().map_or(0, char::len_utf8);
        }
        let word_before = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '.';
        if before.is_some_and(word_before) && !signed || after.is_some_and(|c| c == '_' || c.is_ascii_digit()) {
            continue;
        }
        let in_date = within_date(text, start, number.end()) || beside_month(text, start, number.end());
        let scale_text = captures.name("scale").map(|scale| scale.as_str().trim()).unwrap_or_default();
        if in_date || (scale_text.is_empty() && after.is_some_and(|c| c.is_ascii_alphabetic())) {
            continue;
        }
        let digits: String = text[start..number.end()].replace('\u{2212}', "-").chars().filter(|c| *c != ',').collect();
        let Ok(value) = digits.parse::<f64>() else { continue };
        let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
        let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let scale = match scale_text {
            "%" => 0.01,
            "k" | "K" | "thousand" => 1e3,
            "M" | "million" => 1e6,
            "B" | "billion" => 1e9,
            "万" => 1e4,
            "亿" => 1e8,
            text => power_of_ten(text).map_or(1.0, |power| 10_f64.powi(power)),
        };
        found.push(Written { range: start..number.end(), value, decimals, scale });
        if found.len() >= MAX_NUMBERS {
            break;
        }
    }
    found
}

/// The power in `× 10⁻⁸` or `x 10^-8`.
fn power_of_ten(scale: &str) -> Option<i32> {
    let (_, power) = scale.split_once("10")?;
    let digits: String = power
        .chars()
        .filter_map(|c| match c {
            '⁻' | '\u{2212}' | '-' => Some('-'),
            '⁺' | '+' | '^' => None,
            '⁰'..='⁹' | '¹' | '²' | '³' => {
                "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().zip('0'..='9').find(|(raised, _)| *raised == c).map(|(_, digit)| digit)
            }
            other => Some(other),
        })
        .collect();
    digits.parse().ok().filter(|power: &i32| power.abs() <= 400)
}

/// Whether the digits are a day or a year beside the name of a month, as in `23 January 2017`, or stand before 年, 月 or 日.
fn beside_month(text: &str, start: usize, end: usize) -> bool {
    const MONTHS: [&str; 12] =
        ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
    if end - start > 4 {
        return false;
    }
    let is_month = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphabetic()).to_ascii_lowercase();
        word.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(&word))
    };
    let after = text[end..].trim_start_matches(['s', 't', 'n', 'd', 'r', 'h']);
    let next = after.split_whitespace().next().filter(|_| after.starts_with(char::is_whitespace));
    let mut before = text[..start].split_whitespace().rev();
    let (last, last_but_one) = (before.next().unwrap_or_default(), before.next().unwrap_or_default());
    let day_between = end - start == 4 && last.trim_end_matches(',').bytes().all(|byte| byte.is_ascii_digit()) && is_month(last_but_one);
    next.is_some_and(is_month) || is_month(last) || day_between || text[end..].trim_start().starts_with(['年', '月', '日'])
}

/// Whether the digits are a part of something like `2024-01-31`, `12:30` or `1.2.3`.
fn within_date(text: &str, start: usize, end: usize) -> bool {
    let joins = |c: char| matches!(c, '-' | '/' | ':' | '.');
    let mut after = text[end..].chars();
    let follows = after.next().is_some_and(joins) && after.next().is_some_and(|c| c.is_ascii_digit());
    let mut before = text[..start].chars().rev();
    let precedes = before.next().is_some_and(joins) && before.next().is_some_and(|c| c.is_ascii_digit());
    follows || precedes
}

/// Whether `printed` is what `written` says, rounded as it is written.
fn supports(printed: f64, written: &Written) -> bool {
    let unit = 10_f64.powi(-i32::try_from(written.decimals).unwrap_or(300));
    let close = |value: f64| {
        let tolerance = 0.5 * unit + value.abs() * 1e-9;
        (value.abs() - written.value.abs()).abs() <= tolerance
    };
    if close(printed) {
        return true;
    }
    // `0.123` printed and `12.3 %` written; `1234567` printed and `1.23 million` written.
    (written.scale - 1.0).abs() > f64::EPSILON && close(printed / written.scale)
}

/// The numbers of `answer` that nothing known holds, as they are written.
pub fn unsupported(answer: &str, sources: &Sources<'_>) -> Vec<String> {
    let written = numbers(answer);
    if written.is_empty() {
        return Vec::new();
    }
    let evidence = Evidence::of(sources);
    let mut out: Vec<String> = Vec::new();
    for number in written {
        let text = answer[number.range.clone()].to_owned();
        if evidence.support(&number) == Support::None && !out.contains(&text) && out.len() < MAX_ASKED {
            out.push(text);
        }
    }
    out
}

/// Whole numbers anywhere in a text, also within names and dates.
fn digits(text: &str) -> impl Iterator<Item = f64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|run| (1..=15).contains(&run.len()))
        .filter_map(|run| run.parse().ok())
        .take(MAX_NUMBERS)
}

fn values(text: &str) -> impl Iterator<Item = f64> {
    numbers(text).into_iter().map(|number| number.value)
}

/// All numbers that a step printed, raised and displayed.
fn printed(step: &Step) -> Vec<f64> {
    let mut out: Vec<f64> = values(&step.stdout).chain(values(&step.stderr)).collect();
    out.extend(step.result.as_deref().into_iter().flat_map(values));
    for output in &step.outputs {
        if let Output::DisplayData { data, .. } | Output::ExecuteResult { data } = output {
            out.extend(data.get("text/plain").and_then(Value::as_str).into_iter().flat_map(values));
        }
    }
    out.truncate(MAX_NUMBERS);
    out
}

/// The numbers that describe what a step left: sizes of its variables, and what its charts show.
fn drawn(step: &Step) -> Vec<f64> {
    let mut out = Vec::new();
    for variable in &step.variables {
        #[expect(clippy::cast_precision_loss, reason = "sizes beyond 2^53 are no sizes")]
        out.extend(variable.shape.iter().flatten().map(|size| *size as f64));
    }
    for figure in &step.figures {
        collect(&figure.detail, &mut out);
    }
    out.truncate(MAX_NUMBERS);
    out
}

fn profiled(outcome: &ProfileOutcome) -> Vec<f64> {
    let mut out = Vec::new();
    if let Some(profile) = outcome.profile()
        && let Ok(value) = serde_json::to_value(profile)
    {
        collect(&value, &mut out);
    }
    out
}

fn collect(value: &Value, out: &mut Vec<f64>) {
    if out.len() >= MAX_NUMBERS {
        return;
    }
    match value {
        Value::Number(number) => out.extend(number.as_f64()),
        Value::String(text) => out.extend(values(text)),
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, out)),
        Value::Object(entries) => entries.values().for_each(|entry| collect(entry, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &str, answer: &str) -> Vec<String> {
        let steps = [Step { step: 1, stdout: stdout.to_owned(), ..Step::default() }];
        unsupported(answer, &Sources { question: "", profiles: &[], history: &[], steps: &steps })
    }

    #[test]
    fn rounded_scaled_and_grouped_numbers_are_supported() {
        for (stdout, answer) in [
            ("mean 1234.5678", "The mean is 1,234.57."),
            ("share 0.12345", "That is 12.3% of all."),
            ("total 1234567", "About 1.23 million were sold."),
            ("合计 56789", "共 5.68万 元"),
            ("delta -3.25", "It fell by 3.25."),
            ("a 100 b 200", "between 100-200"),
            ("coef -3.6626e-08", "It is −3.66 × 10⁻⁸ (or -3.66x10^-8)."),
        ] {
            assert_eq!(check(stdout, answer), Vec::<String>::new(), "{stdout} / {answer}");
        }
    }

    #[test]
    fn numbers_that_no_step_printed_are_named() {
        assert_eq!(check("mean 12.5", "The mean is 13.7, not 12.5."), ["13.7"]);
        assert_eq!(check("n 100", "All 250 rows"), ["250"]);
    }

    #[test]
    fn names_dates_and_small_counts_are_no_claims() {
        assert_eq!(check("2017-01-23", "From 23 January 2017 to May 19, 2018; 2017年8月15日; in 2017"), Vec::<String>::new());
        assert_eq!(check("x", "See chart-17.png of 2024-05-31 at 12:45 (v1.2.33), column x99, the 3 groups"), Vec::<String>::new());
    }

    #[test]
    fn a_number_leads_to_the_step_that_printed_it() {
        let steps = [
            Step { step: 1, stdout: "rows 150".to_owned(), ..Step::default() },
            Step { step: 2, stdout: "mean 5.8433".to_owned(), ..Step::default() },
        ];
        let number = &numbers("The mean is 5.84.")[0];
        let sources = Sources { question: "", profiles: &[], history: &[], steps: &steps };
        assert_eq!(Evidence::of(&sources).support(number), Support::Step(2));
    }
}
