//! The form that a question asks its answer in: `@mean_fare[…]`, rounded to so many decimals. A value goes only where
//! its name says that it belongs.

use std::sync::LazyLock;

use regex::Regex;

use super::intent::Measure;

/// The wanted form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// Names of the values, in order, without repetitions.
    pub names: Vec<String>,
    /// How many decimals a value has.
    pub decimals: Option<usize>,
}

#[expect(clippy::unwrap_used, reason = "constant patterns, compiled by the tests")]
static PATTERNS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [r"@([A-Za-z]\w*)\[", r"(?i)\b(one|two|three|four|\d{1,2})\s+decimal|保留\s*([一两二三四\d]{1,2})\s*位"]
        .map(|text| Regex::new(text).unwrap())
});

impl Form {
    /// The form that the question asks for.
    pub fn of(question: &str) -> Self {
        let mut names: Vec<String> = Vec::new();
        for captures in PATTERNS[0].captures_iter(question) {
            if !names.contains(&captures[1].to_owned()) {
                names.push(captures[1].to_owned());
            }
        }
        let word = PATTERNS[1].captures(question).and_then(|found| found.get(1).or_else(|| found.get(2)));
        let decimals = word.and_then(|word| match word.as_str().to_lowercase().as_str() {
            "one" | "一" => Some(1),
            "two" | "两" | "二" => Some(2),
            "three" | "三" => Some(3),
            "four" | "四" => Some(4),
            digits => digits.parse().ok().filter(|digits| *digits <= 15),
        });
        Self { names, decimals }
    }

    /// The name that the value of this measure goes under, where all names of the form are those of `measures`.
    pub fn name_of(&self, measure: Measure, measures: &[Measure]) -> Option<&str> {
        let all = self.names.iter().all(|name| meaning(name).map_or(measures.len() == 1, |meant| measures.contains(&meant)));
        let whole = all && self.names.len() <= measures.len();
        let belongs = |name: &&String| meaning(name).is_none_or(|meant| meant == measure);
        self.names.iter().find(belongs).filter(|_| whole).map(String::as_str)
    }

    /// The one name, where it is a correlation's.
    pub fn correlation(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] if name.contains("corr") || name.contains("coefficient") || name == "r" => Some(name),
            _ => None,
        }
    }

    /// Python that prints the value of the variable `value` under this name.
    pub fn print(&self, name: &str, value: &str) -> String {
        let shown = self.decimals.map_or_else(|| value.to_owned(), |decimals| format!("format(float({value}), \".{decimals}f\")"));
        format!("print(\"@{name}[\" + str({shown}) + \"]\")\n")
    }
}

/// The measure that a name speaks of; `None` where it speaks of none.
fn meaning(name: &str) -> Option<Measure> {
    name.split('_').find_map(|word| match word.to_ascii_lowercase().as_str() {
        "mean" | "avg" | "average" => Some(Measure::Mean),
        "median" => Some(Measure::Median),
        "std" | "stddev" | "stdev" | "sd" | "deviation" => Some(Measure::Deviation),
        "min" | "minimum" | "lowest" => Some(Measure::Min),
        "max" | "maximum" | "highest" => Some(Measure::Max),
        "sum" | "total" => Some(Measure::Sum),
        "count" | "number" => Some(Measure::Count),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_goes_where_its_name_says() {
        let form = Form::of("as @mean_fare[x], @std_dev[y] rounded to two decimal places; @mean_fare[x] is the mean");
        assert_eq!((form.names.len(), form.decimals), (2, Some(2)));
        let both = [Measure::Mean, Measure::Deviation];
        assert_eq!((form.name_of(Measure::Mean, &both), form.name_of(Measure::Deviation, &both)), (Some("mean_fare"), Some("std_dev")));
        assert_eq!(form.name_of(Measure::Mean, &[Measure::Mean]), None, "half of the form is none");
        assert_eq!(Form::of("平均销售额，@avg[值]，保留1位小数").decimals, Some(1));
    }

    #[test]
    fn a_name_of_something_else_gets_no_value() {
        assert_eq!(Form::of("@total_outliers[n]").name_of(Measure::Deviation, &[Measure::Deviation]), None);
        assert_eq!(Form::of("@answer[n]").name_of(Measure::Mean, &[Measure::Mean]), Some("answer"));
        assert_eq!(Form::of("@RMSE[x]").correlation(), None);
        assert_eq!(Form::of("@correlation_coefficient[r]").correlation(), Some("correlation_coefficient"));
    }
}
