//! What a question asks for: counts, extremes, means, sums, the top N, by group; in English and Chinese.

use std::sync::LazyLock;

use regex::Regex;

use super::beyond;
use super::facts::{Facts, Kind, Table};
use super::form::Form;

/// How values are brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// How many.
    Count,
    /// How many different ones.
    Distinct,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The mean.
    Mean,
    /// The median.
    Median,
    /// The sum.
    Sum,
    /// The standard deviation of a sample.
    Deviation,
}

/// A question that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// File of the table.
    pub table: String,
    /// How; all of them where the question lists several.
    pub measures: Vec<Measure>,
    /// Of which column; `None` for rows.
    pub value: Option<String>,
    /// By which column.
    pub group: Option<(String, Kind)>,
    /// Only rows with this value in this column.
    pub filter: Option<(String, String)>,
    /// Only the first so many; negative for the last.
    pub top: Option<i64>,
    /// The form that the question asks for.
    pub form: Form,
}

/// What the question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// An overview of everything.
    Overview,
    /// Something that the playbook can calculate.
    Query(Query),
    /// How two columns go together.
    Relation {
        /// File of the table.
        table: String,
        /// One column.
        first: String,
        /// The other.
        second: String,
        /// The form that the question asks for.
        form: Form,
    },
    /// What is missing.
    Missing {
        /// File of the table.
        table: String,
    },
    /// Something that only a language model understands.
    Unknown,
}

struct Patterns {
    overview: Regex,
    missing: Regex,
    relation: Regex,
    top: Regex,
    bottom: Regex,
    measures: [(Measure, Regex); 8],
    by: Regex,
    intensive: Regex,
    amount: Regex,
    which: Regex,
    frequent: Regex,
    listable: Regex,
    list: Regex,
}

/// Measures as a list of them names them.
const LISTABLE: &str = r"\bmean\b|\baverage\b|\bmedian\b|\bstandard deviation\b|\bstd\b|\bsum\b|\btotal\b|\bminimum\b|\bmin\b|\bmaximum\b|\bmax\b|平均值?|均值|中位数|标准差|总和|合计|最大值?|最小值?";

#[expect(clippy::unwrap_used, reason = "constant patterns, compiled by the tests")]
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(&format!("(?i){text}")).unwrap();
    Patterns {
        overview: pattern(
            r"overview|summar|describe|explore|analy[sz]|profile|insight|what('s| is) in|look at|tell me about|visuali[sz]e|plot|chart|概览|概述|概况|总结|描述|分析|探索|看看|介绍|可视化|画图|图表",
        ),
        missing: pattern(r"\bmissing|\bnulls?\b|\bnan\b|\bgaps?\b|incomplete|缺失|空值|空缺"),
        relation: pattern(r"correlat|relation|depend on|go together|相关|关系|关联"),
        top: pattern(
            r"\b(?:top|first|largest|highest|biggest)\s+(\d+|one|two|three|four|five|ten)\b|(\d+)\s+(?:largest|highest|biggest|most|best)|前\s*(\d+|[一二两三四五六七八九十])",
        ),
        bottom: pattern(
            r"\b(?:bottom|last|smallest|lowest)\s+(\d+|one|two|three|four|five|ten)\b|(\d+)\s+(?:smallest|lowest|least|worst)|[后倒]数?\s*第?(\d+|[一二两三四五六七八九十])",
        ),
        measures: [
            (
                Measure::Distinct,
                pattern(
                    r"(?:how many|number of|count of|counts?)\s+(?:the\s+)?(?:distinct|unique|different)|(?:distinct|unique)\s+(?:count|number)|去重|几种|多少种|[多少几]个?不同|不同的?[^，。？]{0,12}(?:数量|个数|有多少|有几)",
                ),
            ),
            (Measure::Deviation, pattern(r"standard deviation|\bstd\b|\bstdev\b|标准差")),
            (Measure::Median, pattern(r"\bmedian|中位数")),
            (Measure::Mean, pattern(r"\bmean\b|average|\bavg\b|平均|均值")),
            (Measure::Sum, pattern(r"\bsum\b|\btotals?\b|altogether|总和|合计|总计|总额|总量|总数|求和")),
            (
                Measure::Max,
                pattern(
                    r"\bmax|highest|largest|biggest|greatest|\bmost\b|\bbest\b|\btop\b|longest|latest|最大|最高|最多|最好|最长|最贵|最新",
                ),
            ),
            (
                Measure::Min,
                pattern(r"\bmin|lowest|smallest|\bleast\b|\bworst\b|\bbottom\b|shortest|earliest|最小|最低|最少|最差|最短|最便宜|最早"),
            ),
            (
                Measure::Count,
                pattern(
                    r"how many|\bcounts?\b|number of|how often|有多少|多少[行条个次家人位名笔单件天]|几个|几条|数量|计数|个数|行数|记录数|次数",
                ),
            ),
        ],
        intensive: pattern(
            r"price|rate|ratio|percent|pct|share|score|rating|age\b|temp|height|weight|speed|mean|average|index|density|价|率|比|分|龄|温|均",
        ),
        amount: pattern(
            r"revenue|sales|amount|quantit|qty|units|volume|total|cost|profit|turnover|spend|expense|orders|visits|销售额|销量|金额|数量|收入|营收|利润|成本|费用|总",
        ),
        which: pattern(r"^\s*(?:which|what|who)\b|哪"),
        frequent: pattern(r"\bmost\b|\bleast\b|\bfewest\b|最多|最少|最常"),
        listable: pattern(LISTABLE),
        list: pattern(&format!(
            r"(?:{LISTABLE})(?:(?:\s+values?)?(?:\s*(?:,|，|、|;|\band\b|&|和|及|以及|与)\s*)+(?:the\s+)?(?:{LISTABLE}))+"
        )),
        by: pattern(r"\b(?:by|per|for each|each|for every|every|across|grouped by|which|what)\s+|按照?|每个?一?|各个?|不同的?|哪一?个?种?"),
    }
});

impl Intent {
    /// Reads the question against what the tables hold.
    pub fn of(question: &str, facts: &Facts) -> Self {
        let Some(table) = table_of(question, facts) else { return Self::Overview };
        let mentions = mentions(question, table);
        let name = || table.name.clone();
        let kind = |column: &str| table.column(column).map_or(Kind::Text, |column| column.kind);
        let numbers: Vec<&str> = mentions
            .iter()
            .filter(|mention| matches!(kind(&mention.column), Kind::Number | Kind::Year))
            .map(|mention| mention.column.as_str())
            .collect();
        let names: Vec<&str> = mentions.iter().map(|mention| mention.column.as_str()).collect();
        // What is in another table alone would have to be joined.
        let elsewhere = |other: &Table| self::mentions(question, other).iter().any(|mention| !names.contains(&mention.column.as_str()));
        let joined = facts.tables.iter().any(|other| other.name != table.name && elsewhere(other));
        let query = query(question, table, &mentions);
        if joined && (query.is_some() || PATTERNS.relation.is_match(question)) {
            return Self::Unknown;
        }
        if PATTERNS.relation.is_match(question)
            && let [first, second] = numbers.as_slice()
        {
            if beyond::has_conditions(question, names) {
                return Self::Unknown;
            }
            return Self::Relation { table: name(), first: (*first).to_owned(), second: (*second).to_owned(), form: Form::of(question) };
        }
        let counts = |query: &Query| matches!(query.measures[..], [Measure::Count | Measure::Distinct | Measure::Max | Measure::Min]);
        if PATTERNS.missing.is_match(question) && query.as_ref().is_none_or(counts) {
            return if beyond::has_conditions(question, names) { Self::Unknown } else { Self::Missing { table: name() } };
        }
        if let Some(query) = query {
            let restricted = query.filter.iter().map(|(_, value)| value.as_str());
            let conditions = beyond::has_conditions(question, names.into_iter().chain(restricted));
            return if conditions { Self::Unknown } else { Self::Query(query) };
        }
        let general = question.trim().is_empty() || (PATTERNS.overview.is_match(question) && !beyond::is_work(question));
        if general { Self::Overview } else { Self::Unknown }
    }
}

/// A column that a question names, and where.
struct Mention {
    column: String,
    start: usize,
}

/// The table with the most named columns; the first one where none is named.
fn table_of<'a>(question: &str, facts: &'a Facts) -> Option<&'a Table> {
    let mut best: Option<(usize, &Table)> = None;
    for table in &facts.tables {
        let named = usize::from(question.contains(&table.name)) * 10 + mentions(question, table).len();
        if best.is_none_or(|(score, _)| named > score) {
            best = Some((named, table));
        }
    }
    best.map(|(_, table)| table)
}

/// Columns that the question names, in its order; a longer name hides a shorter one within it.
fn mentions(question: &str, table: &Table) -> Vec<Mention> {
    let folded = fold(question);
    let mut columns: Vec<(&str, String)> = table.columns.iter().map(|column| (column.name.as_str(), fold(&column.name))).collect();
    columns.sort_by_key(|(_, folded)| std::cmp::Reverse(folded.len()));
    let mut taken = vec![false; folded.len()];
    let mut found = Vec::new();
    for (name, wanted) in columns {
        let wanted = wanted.trim();
        if wanted.is_empty() {
            continue;
        }
        let forms = [wanted.to_owned(), format!("{wanted}s"), wanted.strip_suffix('s').unwrap_or(wanted).to_owned()];
        let hit = forms.iter().filter(|form| !form.is_empty()).find_map(|form| {
            folded
                .match_indices(form.as_str())
                .map(|(at, _)| at)
                .find(|at| {
                    let end = at + form.len();
                    let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                    let whole = !word(folded[..*at].chars().next_back()) && !word(folded[end..].chars().next());
                    (whole || !form.is_ascii()) && !taken[*at..end].iter().any(|taken| *taken)
                })
                .map(|at| (at, at + form.len()))
        });
        if let Some((start, end)) = hit {
            taken[start..end].iter_mut().for_each(|byte| *byte = true);
            found.push(Mention { column: name.to_owned(), start });
        }
    }
    found.sort_by_key(|mention| mention.start);
    found
}

/// Lower case, with blanks for what divides words in names; of the same byte length where possible is not needed.
fn fold(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '_' | '-' | '.' | '/') { ' ' } else { c }).flat_map(char::to_lowercase).collect()
}

fn query(question: &str, table: &Table, mentions: &[Mention]) -> Option<Query> {
    let kind = |column: &str| table.column(column).map_or(Kind::Text, |column| column.kind);
    let top = limit(&PATTERNS.top, question).or_else(|| limit(&PATTERNS.bottom, question).map(|count| -count));
    let measure = PATTERNS.measures.iter().find(|(_, pattern)| pattern.is_match(question)).map(|(measure, _)| *measure);
    let measure = measure.or(top.map(|_| Measure::Max))?;
    let folded = fold(question);
    let value = mentions
        .iter()
        .find(|mention| kind(&mention.column) == Kind::Number)
        .or_else(|| mentions.iter().find(|mention| kind(&mention.column) == Kind::Year));
    let groupable =
        |mention: &&Mention| matches!(kind(&mention.column), Kind::Category | Kind::Text | Kind::Date | Kind::Year | Kind::Identifier);
    let others: Vec<&Mention> =
        mentions.iter().filter(groupable).filter(|mention| value.is_none_or(|value| value.column != mention.column)).collect();
    // The column right after "by", "per", "each", "按", "每" is the group, also where it holds numbers.
    let after_by = PATTERNS
        .by
        .find_iter(&folded)
        .find_map(|found| mentions.iter().find(|mention| (found.end()..found.end() + 5).contains(&mention.start)));
    let group = after_by.filter(|mention| value.is_none_or(|value| value.column != mention.column)).or_else(|| others.first().copied());
    let mut filter = None;
    for column in table.of_kind(Kind::Category) {
        for (value, _) in &column.top {
            let wanted = fold(value);
            // A short value means something only right after its column's name: "shop A", "class 2".
            let short = wanted.chars().count() < 2 || wanted.chars().all(|c| c.is_ascii_digit());
            let (before, wanted) =
                if short { (fold(&column.name).len() + 1, format!("{} {wanted}", fold(&column.name))) } else { (0, wanted) };
            let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            let found = folded.match_indices(&wanted).any(|(at, _)| {
                let (start, end) = (folded[..at + before].chars().next_back(), folded[at + wanted.len()..].chars().next());
                !wanted.is_ascii() || !(word(start) || word(end))
            });
            if found && filter.is_none() {
                filter = Some((column.name.clone(), value.clone()));
            }
        }
    }
    let group = group.filter(|group| filter.as_ref().is_none_or(|(column, _)| *column != group.column));
    let value = value.map(|mention| mention.column.clone());
    let needs_value = !matches!(measure, Measure::Count | Measure::Distinct | Measure::Max | Measure::Min);
    // "The most orders" counts rows; "the highest GDP" is about a column, and there is none.
    let of_rows = !matches!(measure, Measure::Max | Measure::Min) || top.is_some() || PATTERNS.frequent.is_match(question);
    if value.is_none() && (needs_value || !of_rows || (group.is_none() && !matches!(measure, Measure::Count))) {
        return None;
    }
    // "Top 3 products by revenue" asks for totals; of a price or a rate a total says nothing.
    let additive = value.as_deref().is_some_and(|value| !PATTERNS.intensive.is_match(value));
    // So does "which region has the highest revenue?", where the column's name says that it adds up.
    let amount = value.as_deref().is_some_and(|value| PATTERNS.amount.is_match(value)) && PATTERNS.which.is_match(question);
    let measure = if (top.is_some() || amount) && group.is_some() && additive && matches!(measure, Measure::Max | Measure::Min) {
        Measure::Sum
    } else {
        measure
    };
    let measures = if top.is_some() { vec![measure] } else { listed(question, measure) };
    Some(Query {
        table: table.name.clone(),
        measures,
        value,
        group: group.map(|mention| (mention.column.clone(), kind(&mention.column))),
        filter,
        top,
        form: Form::of(question),
    })
}

/// The measures that a question lists, as in "mean, median and standard deviation"; the one measure where it lists none.
fn listed(question: &str, measure: Measure) -> Vec<Measure> {
    let Some(list) = PATTERNS.list.find(question) else { return vec![measure] };
    let of_word = |word: &str| {
        let fits = |(measure, pattern): &(Measure, Regex)| !matches!(measure, Measure::Count | Measure::Distinct) && pattern.is_match(word);
        PATTERNS.measures.iter().find(|entry| fits(entry)).map(|(measure, _)| *measure)
    };
    let mut measures: Vec<Measure> = PATTERNS.listable.find_iter(list.as_str()).filter_map(|word| of_word(word.as_str())).collect();
    let mut seen = Vec::new();
    measures.retain(|measure| {
        !seen.contains(measure) && {
            seen.push(*measure);
            true
        }
    });
    measures
}

/// The number of a `top 5` or `前五`.
fn limit(pattern: &Regex, question: &str) -> Option<i64> {
    let captures = pattern.captures(question)?;
    let word = (1..captures.len()).find_map(|group| captures.get(group))?.as_str().to_lowercase();
    let count = match word.as_str() {
        "one" | "一" => 1,
        "two" | "二" | "两" => 2,
        "three" | "三" => 3,
        "four" | "四" => 4,
        "five" | "五" => 5,
        "六" => 6,
        "七" => 7,
        "八" => 8,
        "九" => 9,
        "ten" | "十" => 10,
        digits => digits.parse().ok()?,
    };
    (1..=1000).contains(&count).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts::of(
            "Table \"sales.csv\": 100 rows, 5 columns, 0 duplicate rows\n\
             - \"order_date\": date, 100 values, 0 missing, 90 distinct, from 2024-01-01 to 2024-06-01\n\
             - \"product\": category, 100 values, 0 missing, 3 distinct, top {\"tea\": 50, \"coffee\": 30}\n\
             - \"unit price\": number, 100 values, 0 missing, 20 distinct, min 1, max 9, mean 4, median 4, sum 400\n\
             - \"price\": number, 98 values, 2 missing, 20 distinct, min 1, max 9, mean 4, median 4, sum 400\n\
             - \"地区\": category, 100 values, 0 missing, 3 distinct, top {\"华东\": 50}\n\
             - \"销售额\": number, 100 values, 0 missing, 50 distinct, min 1, max 9, mean 4, median 4, sum 400\n",
        )
    }

    fn check(question: &str, measure: Measure, value: Option<&str>, group: Option<&str>, top: Option<i64>) {
        match Intent::of(question, &facts()) {
            Intent::Query(query) => {
                assert_eq!(
                    (query.measures[0], query.value.as_deref(), query.group.as_ref().map(|group| group.0.as_str()), query.top),
                    (measure, value, group, top),
                    "{question}"
                );
            }
            other => panic!("{question}: {other:?}"),
        }
    }

    #[test]
    fn questions_about_numbers_are_understood() {
        check("How many rows are there?", Measure::Count, None, None, None);
        check("What is the average price?", Measure::Mean, Some("price"), None, None);
        check("maximum unit_price", Measure::Max, Some("unit price"), None, None);
        check("What is the total price per product?", Measure::Sum, Some("price"), Some("product"), None);
        check("top 3 products by unit price", Measure::Max, Some("unit price"), Some("product"), Some(3));
        check("bottom 2 products by 销售额", Measure::Sum, Some("销售额"), Some("product"), Some(-2));
        check("Which product has the lowest price?", Measure::Min, Some("price"), Some("product"), None);
        check("How many orders by product", Measure::Count, None, Some("product"), None);
        check("各地区的平均销售额是多少？", Measure::Mean, Some("销售额"), Some("地区"), None);
        check("销售额最高的前五个地区", Measure::Sum, Some("销售额"), Some("地区"), Some(5));
        check("一共有多少行？", Measure::Count, None, None, None);
        check("多少条记录？", Measure::Count, None, None, None);
        check("How many different products?", Measure::Distinct, None, Some("product"), None);
    }

    #[test]
    fn all_measures_of_a_list_are_meant() {
        let measures = |question: &str| match Intent::of(question, &facts()) {
            Intent::Query(query) => query.measures,
            other => panic!("{question}: {other:?}"),
        };
        assert_eq!(measures("mean, median, and standard deviation of price"), [Measure::Mean, Measure::Median, Measure::Deviation]);
        assert_eq!(measures("minimum and maximum price by product"), [Measure::Min, Measure::Max]);
        assert_eq!(measures("销售额的平均值和中位数"), [Measure::Mean, Measure::Median]);
        assert_eq!(measures("Which product has the highest average price?"), [Measure::Mean]);
        check("不同地区的平均销售额", Measure::Mean, Some("销售额"), Some("地区"), None);
        check("mean price, where values are missing leave them out", Measure::Mean, Some("price"), None, None);
    }

    #[test]
    fn what_adds_up_is_ranked_by_its_total() {
        check("哪个地区的销售额最高？", Measure::Sum, Some("销售额"), Some("地区"), None);
        check("Which product has the highest unit price?", Measure::Max, Some("unit price"), Some("product"), None);
        check("Which product has the most orders?", Measure::Max, None, Some("product"), None);
        assert_eq!(Intent::of("Which product has the highest GDP?", &facts()), Intent::Unknown);
        assert_eq!(Intent::of("总收入是多少", &facts()), Intent::Unknown);
    }

    #[test]
    fn what_would_have_to_be_joined_is_beyond_it() {
        let two = Facts::of(
            "Table \"people\": 9 rows, 1 columns, 0 duplicate rows\n\
             - \"country\": category, 9 values, 0 missing, 2 distinct, top {\"DE\": 5}\n\
             Table \"bills\": 9 rows, 1 columns, 0 duplicate rows\n\
             - \"amount\": number, 9 values, 0 missing, 9 distinct, min 1, max 9, mean 4, median 4, sum 40\n",
        );
        assert_eq!(Intent::of("Which country has the highest amount?", &two), Intent::Unknown);
        assert!(matches!(Intent::of("mean amount", &two), Intent::Query(_)));
    }

    #[test]
    fn a_calculation_that_would_leave_something_out_is_beyond_it() {
        for question in [
            "mean price of products above 5",
            "Total price in March",
            "Create a feature price squared and calculate its mean",
            "RMSE of a regression of price on unit price",
            "Detect the outliers of price and give their mean",
        ] {
            assert_eq!(Intent::of(question, &facts()), Intent::Unknown, "{question}");
        }
        let Intent::Relation { form, .. } = Intent::of("correlation of price and 销售额 as @corr[r]", &facts()) else { panic!() };
        assert_eq!(form.correlation(), Some("corr"));
    }

    #[test]
    fn a_named_value_restricts_the_rows() {
        let Intent::Query(query) = Intent::of("mean price of coffee", &facts()) else { panic!("not understood") };
        assert_eq!(query.filter, Some(("product".to_owned(), "coffee".to_owned())));
        let classes = Facts::of(
            "Table \"t\": 9 rows, 2 columns, 0 duplicate rows\n\
             - \"class\": category, 9 values, 0 missing, 2 distinct, top {\"1\": 5, \"2\": 4}\n\
             - \"age\": number, 9 values, 0 missing, 9 distinct, min 1, max 9, mean 4, median 4, sum 40\n",
        );
        let Intent::Query(query) = Intent::of("mean age of class 2", &classes) else { panic!("not understood") };
        assert_eq!(query.filter, Some(("class".to_owned(), "2".to_owned())));
        let Intent::Query(query) = Intent::of("2 highest ages by class", &classes) else { panic!("not understood") };
        assert_eq!(query.filter, None);
    }

    #[test]
    fn what_is_not_understood_is_said_to_be_unknown() {
        assert_eq!(Intent::of("Why did customers leave us?", &facts()), Intent::Unknown);
        assert_eq!(Intent::of("Give me an overview", &facts()), Intent::Overview);
        assert_eq!(Intent::of("分析一下这个文件", &facts()), Intent::Overview);
    }
}
