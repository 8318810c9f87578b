//! The Python that calculates what a question asks for, and draws it where there are groups.

use std::fmt::Write;

use super::facts::{Kind, Table};
use super::intent::{Measure, Query};
use super::program::{Step, literal};
use crate::profile::Language;

/// The step that calculates what was asked, and draws it where there are groups.
pub fn calculation(query: &Query, table: &Table, language: Language) -> Step {
    let mut code = format!("df = tables[{}]\n", literal(&table.name));
    if let Some((column, value)) = &query.filter {
        let _ = writeln!(code, "df = df[df[{}].astype(str) == {}]", literal(column), literal(value));
    }
    let mut all = Vec::new();
    for (measure, place) in query.measures.iter().zip(0..) {
        let said = words(query, *measure, language);
        let lines = match &query.group {
            Some((group, kind)) => grouped(query, *measure, group, *kind, &said, place == 0, language),
            None => single(query, *measure, &said, language),
        };
        code.push_str(&lines);
        all.push(said);
    }
    let say = match language {
        Language::English => format!("I calculate {}.", all.join(" and ")),
        Language::Chinese => format!("计算{}。", all.join("和")),
    };
    Step { say, code, is_answer: true }
}

/// What is calculated, in words.
fn words(query: &Query, measure: Measure, language: Language) -> String {
    let value = query.value.as_deref();
    let rows = language.pick("rows", "行");
    let mut said = match language {
        Language::English => match measure {
            Measure::Count => format!("the number of {}", value.map_or_else(|| "rows".to_owned(), |value| format!("values of {value}"))),
            Measure::Distinct => format!(
                "the number of different values of {}",
                value.or(query.group.as_ref().map(|group| group.0.as_str())).unwrap_or("rows")
            ),
            measure => format!(
                "the {} {}",
                name_of(measure, language),
                value.map_or_else(|| "number of rows".to_owned(), |value| format!("of {value}"))
            ),
        },
        Language::Chinese => match measure {
            Measure::Count => value.map_or_else(|| "行数".to_owned(), |value| format!("{value} 的值个数")),
            Measure::Distinct => format!("{} 的不同取值个数", value.or(query.group.as_ref().map(|group| group.0.as_str())).unwrap_or(rows)),
            measure => {
                format!("{}{}", value.map_or_else(|| "行数的".to_owned(), |value| format!("{value} 的")), name_of(measure, language))
            }
        },
    };
    if let Some((column, value)) = &query.filter {
        said = match language {
            Language::English => format!("{said} where {column} is {value}"),
            Language::Chinese => format!("{column} 为 {value} 时{said}"),
        };
    }
    said
}

fn name_of(measure: Measure, language: Language) -> &'static str {
    match measure {
        Measure::Count => language.pick("count", "个数"),
        Measure::Distinct => language.pick("number of different values", "不同取值个数"),
        Measure::Max => language.pick("maximum", "最大值"),
        Measure::Min => language.pick("minimum", "最小值"),
        Measure::Mean => language.pick("mean", "平均值"),
        Measure::Median => language.pick("median", "中位数"),
        Measure::Sum => language.pick("sum", "总和"),
        Measure::Deviation => language.pick("standard deviation", "标准差"),
    }
}

fn method(measure: Measure) -> &'static str {
    match measure {
        Measure::Count => "count",
        Measure::Distinct => "nunique",
        Measure::Max => "max",
        Measure::Min => "min",
        Measure::Mean => "mean",
        Measure::Median => "median",
        Measure::Sum => "sum",
        Measure::Deviation => "std",
    }
}

/// A single number.
fn single(query: &Query, measure: Measure, said: &str, language: Language) -> String {
    let text = literal(&sentence_start(said));
    let (is, stop) = (language.pick(" is ", "是 "), language.pick(".", "。"));
    let Some(value) = &query.value else {
        return format!("said = {text}\nresult = len(df)\nprint(f\"- {{said}}{is}{{result}}{stop}\")\n{}", asked_form(query, measure));
    };
    let over = language.pick(" (over {len(values)} values)", "（共 {len(values)} 个值）");
    let mut code = format!(
        "said = {text}\nvalues = df[{}].dropna()\nresult = values.{}()\nprint(f\"- {{said}}{is}{{num(result)}}{over}{stop}\")\n",
        literal(value),
        method(measure)
    );
    let extreme = query.top.unwrap_or(match measure {
        Measure::Max => 1,
        Measure::Min => -1,
        _ => 0,
    });
    if extreme != 0 {
        let pick = if extreme > 0 { "nlargest" } else { "nsmallest" };
        let _ = writeln!(code, "print(df.{pick}({}, {}).to_string(max_cols=12))", extreme.abs(), literal(value));
    }
    code.push_str(&asked_form(query, measure));
    code
}

/// Prints the result in the form that the question asks for, where it asks for one.
fn asked_form(query: &Query, measure: Measure) -> String {
    query.form.name_of(measure, &query.measures).map(|name| query.form.print(name, "result")).unwrap_or_default()
}

/// One number a group, drawn as bars where `draw` is set.
fn grouped(query: &Query, measure: Measure, group: &str, kind: Kind, said: &str, draw: bool, language: Language) -> String {
    if measure == Measure::Distinct && query.value.is_none() {
        let (is, stop) = (language.pick(" is ", "是 "), language.pick(".", "。"));
        return format!(
            "said = {}\ncount = df[{}].nunique()\nprint(f\"- {{said}}{is}{{count}}{stop}\")\n",
            literal(&sentence_start(said)),
            literal(group)
        );
    }
    let keys = match kind {
        Kind::Date => format!("df[{}].dt.to_period(\"M\").astype(str)", literal(group)),
        _ => format!("df[{}].astype(str)", literal(group)),
    };
    // An extreme without a column of its own is about the number of rows.
    let counts = query.value.is_none();
    let values = match &query.value {
        Some(value) => format!("df.groupby(keys)[{}].{}()", literal(value), method(measure)),
        None => "keys.value_counts()".to_owned(),
    };
    let ascending = measure == Measure::Min || query.top.is_some_and(|top| top < 0);
    let shown = query.top.map_or(20, i64::abs);
    let by = match language {
        Language::English => sentence_start(&format!("{} by {group}", if counts { "the number of rows" } else { said })),
        Language::Chinese => format!("按 {group} 的 {}", if counts { "行数" } else { said }),
    };
    let (first, order) = match language {
        Language::English => (
            "{said}: {first} for {groups.index[0]} ({num(groups.iloc[0])}), of {total} groups.",
            if ascending { "lowest" } else { "highest" },
        ),
        Language::Chinese => {
            ("{said}：{first}的是 {groups.index[0]}（{num(groups.iloc[0])}），共 {total} 组。", if ascending { "最低" } else { "最高" })
        }
    };
    let drawn = "plt.figure(figsize=(8, 1.5 + 0.35 * len(groups)))\n\
         plt.barh([str(name)[:40] for name in groups.index[::-1]], groups.values[::-1])\n\
         plt.title(said)\n\
         plt.tight_layout()\n\
         plt.show()\n";
    format!(
        "said, first = {said}, {order}\n\
         keys = {keys}\n\
         groups = {values}.dropna().sort_values(ascending={ascending})\n\
         total = len(groups)\n\
         groups = groups.head({shown})\n\
         {drawn}\
         print(f\"- {first}\")\n\
         for name, value in groups.items():\n    \
             print(f\"  - {{name}}: {{num(value)}}\")\n",
        said = literal(&by),
        order = literal(order),
        ascending = if ascending { "True" } else { "False" },
        drawn = if draw { drawn } else { "" },
    )
}

/// The words as they start a sentence. Only the articles that this file writes are changed, never a name.
fn sentence_start(words: &str) -> String {
    words.strip_prefix("the ").map_or_else(|| words.to_owned(), |rest| format!("The {rest}"))
}
