//! What a question asks beyond what the playbook can do. A calculation that leaves a condition out, or that is made of
//! the wrong numbers, is worse than none: such a question is said to be beyond it.

use std::sync::LazyLock;

use regex::Regex;

/// What no part of an overview answers: new columns, models, tests, cleaned data, reasons.
const WORK: &str = r"\bnew (?:feature|column|variable|field)|\bcreat(?:e|es|ed|ing)\b|\bgenerat(?:e|ing) |engineer|\bregress|\bpredict|\bforecast|machine learning|\bmodel(?:s|ing|ling)?\b|\btrain(?:s|ed|ing)?\b|\bcluster|\bclassif|\bnormali[sz]|\bstandardi[sz]|z-?scores?|\bimput|\bfill(?:s|ed|ing)?\b|\breplac|\bcategori[sz]|\bbin(?:s|ned|ning)\b|\bpre-?process|\btransform|\blog(?:arithm|-transform|\b)|\bnormality|\bnormal(?:ly)? distribut|\bsignifican|\bp-?values?\b|\bt-?test|\banova\b|\bchi-?square|\bwhy\b|\bhow (?:can|could|should|would)\b|新建|创建|新增|构造|回归|预测|机器学习|模型|训练|聚类|标准化|归一化|填充|插补|替换|清洗|预处理|转换|对数|正态|显著|检验|为什么|为何|怎么办";

/// What changes which numbers are meant, and what the playbook has no measure for.
const CONDITIONS: &str = r"\b(?:greater|less|more|fewer|older|younger|higher|lower|larger|smaller|longer|shorter) than\b|\babove\b|\bbelow\b|\bat (?:least|most)\b|\b(?:over|under|before|after|since|until|exceeding)\s+\d|\bbetween\s+\S*\d|[<>≥≤]|\bexcept\b|\bother than\b|\bonly\b|\bwithout\b|\boutliers?|\bremov|\bdrop|\bexclud|\bfilter|\bskew|\bkurtosis|\bquartile|\bpercentile|\binterquartile|\biqr\b|\bvariance|\bchange|\bgrowth|\bgrew\b|\bdifferences?\b|\bratios?\b|\bproportion|\bpercent|\bshares?\b|\bweighted|\brolling|\bmoving|\bcumulative|\bjanuary|\bfebruary|\bmarch\b|\bapril\b|\bjune\b|\bjuly\b|\baugust|\bseptember|\boctober|\bnovember|\bdecember|\b(?:19|20)\d\d\b|\bq[1-4]\b|\blast (?:week|month|quarter|year)\b|\bweekends?\b|\b(?:which|what|per|by|each|every) (?:hour|day|weekday|week|month|quarter|year)\b|\b(?:hourly|daily|weekly|monthly|quarterly|yearly|annual)\b|大于|小于|超过|高于|低于|不足|\d\S?以[上下]|[之以][前后]|除了|不包括|排除|剔除|删除|去掉|只看|仅|异常值|离群|偏度|峰度|分位|方差|变化|增长|同比|环比|差异|差值|比例|占比|百分比|加权|移动平均|累计|去年|今年|上月|本月|\d\s*月|\d{4}\s*年|季度|哪[一个几]*[天周月年]|[按每][个]?[天日周月年]";

#[expect(clippy::unwrap_used, reason = "constant patterns, compiled by the tests")]
static PATTERNS: LazyLock<[Regex; 2]> = LazyLock::new(|| [WORK, CONDITIONS].map(|text| Regex::new(&format!("(?i){text}")).unwrap()));

/// Whether the question asks for more than looking at the data.
pub fn is_work(question: &str) -> bool {
    PATTERNS[0].is_match(question)
}

/// Whether the question puts conditions that a plain calculation leaves out. `known` are the words of it that the
/// calculation takes into account: names of columns, and the value that rows are restricted to.
pub fn has_conditions<'a>(question: &str, known: impl IntoIterator<Item = &'a str>) -> bool {
    let mut rest = question.to_lowercase();
    for word in known {
        for form in [word.to_lowercase(), word.to_lowercase().replace(['_', '-', '.', '/'], " ")] {
            if !form.trim().is_empty() {
                rest = rest.replace(&form, " ");
            }
        }
    }
    PATTERNS.iter().any(|pattern| pattern.is_match(&rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_work_are_seen_and_plain_questions_have_none() {
        for question in [
            "mean price of items above 30",
            "total revenue in March",
            "average age of customers older than 40",
            "sum of sales since 2019",
            "Create a new feature and calculate its mean",
            "RMSE of a linear regression that predicts wage",
            "2024年的销售总额",
            "价格大于 30 的平均销量",
            "Which month had the most revenue?",
            "average daily sales",
            "哪个月的销售额最高？",
        ] {
            assert!(has_conditions(question, []), "{question}");
        }
        for question in
            ["What is the average price?", "top 3 products by revenue", "各地区的平均销售额是多少？", "How many rows are there?"]
        {
            assert!(!has_conditions(question, []), "{question}");
        }
    }

    #[test]
    fn names_of_columns_are_no_conditions() {
        assert!(has_conditions("mean of Growth 2019 by model", []));
        assert!(!has_conditions("mean of Growth_2019 by model", ["Growth_2019", "model"]));
        assert!(!has_conditions("revenue by month", ["revenue", "month"]));
    }
}
