//! Hints for faults that models make often: a wrong column, a missing module, an encoding, a lost file.

use super::ports::PutFile;
use super::run::Step;
use super::untrusted;
use crate::config::PrivacySend;
use crate::profile::{Language, ProfileOutcome};

/// What the hints know of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Files in the sandbox.
    pub files: &'a [PutFile],
    /// Their profiles.
    pub profiles: &'a [ProfileOutcome],
    /// Working directory of the sandbox.
    pub workdir: &'a str,
}

/// Modules that are often asked for, and what does their work here.
const INSTEAD: [(&str, &str); 14] = [
    ("seaborn", "matplotlib"),
    ("plotly", "matplotlib"),
    ("bokeh", "matplotlib"),
    ("altair", "matplotlib"),
    ("polars", "pandas or duckdb"),
    ("dask", "pandas or duckdb"),
    ("scipy", "numpy and pandas"),
    ("sklearn", "numpy"),
    ("statsmodels", "numpy.polyfit and pandas"),
    ("xlrd", "pandas.read_excel with openpyxl"),
    ("cv2", "matplotlib.image or PIL"),
    ("requests", "nothing: there is no network"),
    ("httpx", "nothing: there is no network"),
    ("ydata_profiling", "pandas' describe()"),
];

/// Exceptions that are told by name where only names and types may be sent. Code chooses what it raises, so each one
/// more is a little more that it could tell of a value: these are those whose names help to mend code.
const TOLD_WITH_SCHEMA: [&str; 14] = [
    "AttributeError",
    "FileNotFoundError",
    "ImportError",
    "IndexError",
    "KeyError",
    "ModuleNotFoundError",
    "NameError",
    "OutOfMemory",
    "SyntaxError",
    "Timeout",
    "TypeError",
    "UnicodeDecodeError",
    "ValueError",
    "ZeroDivisionError",
];

/// Whether the name of this exception may be told where only names and types may be sent.
pub fn is_told_with_schema(name: &str) -> bool {
    TOLD_WITH_SCHEMA.contains(&name)
}

/// Hints about a failed step; none for one that went well.
pub fn hints(step: &Step, around: &Surroundings<'_>, privacy: PrivacySend, language: Language) -> Vec<String> {
    let Some(error) = &step.error else { return Vec::new() };
    let say = |english: String, chinese: String| vec![if language == Language::English { english } else { chinese }];
    if privacy == PrivacySend::Schema {
        // The message of an exception is whatever the code likes, so nothing that depends on it is told.
        match error.ename.as_str() {
            "KeyError" => {
                return say(
                    "the names of the columns stand in the profiles, spelled exactly as they are.".to_owned(),
                    "列名以数据概况中的写法为准。".to_owned(),
                );
            }
            "ModuleNotFoundError" | "ImportError" => {
                return say(
                    "what is not installed can't be: there is no network.".to_owned(),
                    "未安装的模块无法安装：没有网络。".to_owned(),
                );
            }
            name if !is_told_with_schema(name) => return Vec::new(),
            _ => {}
        }
    }
    match error.ename.as_str() {
        "KeyError" | "ColumnNotFoundError" => column(&error.evalue, around, language).into_iter().collect(),
        "ModuleNotFoundError" | "ImportError" => {
            let module = quoted(&error.evalue).unwrap_or_default();
            // The module's name is from the code, so it is no value.
            let top = module.split('.').next().unwrap_or_default();
            let instead = INSTEAD.iter().find(|(name, _)| *name == top).map(|(_, instead)| *instead);
            let instead = instead.unwrap_or("the standard library, numpy, pandas, matplotlib, pyarrow, openpyxl or duckdb");
            say(
                format!("the module is not installed and nothing can be installed here (no network); use {instead}."),
                format!("该模块未安装，且无法安装（没有网络）；可改用 {instead}。"),
            )
        }
        "UnicodeDecodeError" | "UnicodeError" => {
            let encoding = around
                .profiles
                .iter()
                .filter_map(|outcome| outcome.profile()?.encoding.clone())
                .find(|name| !name.starts_with("utf-8") && name != "ascii");
            let encoding = encoding.map_or_else(|| "gb18030 or latin-1".to_owned(), |name| untrusted::name(&name));
            say(
                format!("the file is not UTF-8; pass encoding={encoding:?}, or use the loading code that was given."),
                format!("文件不是 UTF-8 编码；请指定 encoding={encoding:?}，或使用已给出的加载代码。"),
            )
        }
        "ParserError" => say(
            "use the loading code that was given: it has the delimiter and the lines to skip.".to_owned(),
            "请使用已给出的加载代码，其中包含正确的分隔符和需跳过的行。".to_owned(),
        ),
        "FileNotFoundError" => {
            let names: Vec<String> = around.files.iter().map(|file| untrusted::name(&file.name)).collect();
            let names = if names.is_empty() { language.pick("none", "无").to_owned() } else { names.join(", ") };
            let workdir = untrusted::name(around.workdir);
            say(
                format!("files that were given: {names}; paths are relative to {workdir}."),
                format!("可用文件：{names}；路径相对于 {workdir}。"),
            )
        }
        "Timeout" => say(
            "it took too long and was stopped. Work on fewer rows, use vectorised operations, or divide the work.".to_owned(),
            "执行超时并已停止。请减少行数、使用向量化操作或分步执行。".to_owned(),
        ),
        "OutOfMemory" | "MemoryError" => say(
            "the memory limit was reached. Load fewer columns, smaller types, or aggregate with duckdb directly on the file.".to_owned(),
            "超出内存限制。请减少列、使用更小的类型，或用 duckdb 直接在文件上聚合。".to_owned(),
        ),
        "gaierror" | "URLError" | "ConnectionError" | "ConnectionRefusedError" => {
            say("there is no network here; work with the given files.".to_owned(), "这里没有网络；请使用给出的文件。".to_owned())
        }
        "SyntaxError" | "IndentationError" => say("nothing of the block was executed.".to_owned(), "该代码块完全没有执行。".to_owned()),
        _ => Vec::new(),
    }
}

/// The columns whose names are nearest to the one that is missing.
fn column(evalue: &str, around: &Surroundings<'_>, language: Language) -> Option<String> {
    let wanted = quoted(evalue).unwrap_or_else(|| evalue.trim().to_owned());
    if wanted.is_empty() {
        return None;
    }
    let names: Vec<&str> = around
        .profiles
        .iter()
        .filter_map(ProfileOutcome::profile)
        .flat_map(|profile| profile.columns_detail.iter().map(|column| column.name.as_str()))
        .collect();
    let near = nearest(&wanted, &names);
    if near.is_empty() {
        return None;
    }
    let list = near.iter().map(|name| format!("{:?}", untrusted::name(name))).collect::<Vec<_>>().join(", ");
    let wanted = untrusted::name(&wanted);
    Some(match language {
        Language::English => format!("there is no column {wanted:?}; the nearest names are {list}."),
        Language::Chinese => format!("没有列 {wanted:?}；最接近的列名是 {list}。"),
    })
}

/// At most three names, nearest first by edit distance without regard to case, blanks and underscores.
pub fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Vec<&'a str> {
    let wanted = fold(wanted);
    let mut scored: Vec<(usize, &str)> = names
        .iter()
        .take(5000)
        .map(|name| {
            let folded = fold(name);
            let within = !wanted.is_empty() && (folded.contains(&wanted) || wanted.contains(&folded)) && !folded.is_empty();
            (if within { 1 } else { distance(&wanted, &folded) }, *name)
        })
        .filter(|(distance, name)| *distance <= fold(name).chars().count().max(wanted.chars().count()) / 2)
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(100).collect()
}

/// Levenshtein's distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// What stands in the first pair of quotes.
fn quoted(text: &str) -> Option<String> {
    let open = text.find(['\'', '"'])?;
    let mark = text[open..].chars().next()?;
    let rest = &text[open + 1..];
    Some(rest[..rest.find(mark)?].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::execution::ExecutionError;

    fn failed(ename: &str, evalue: &str, code: &str) -> Step {
        let error = ExecutionError { ename: ename.to_owned(), evalue: evalue.to_owned(), traceback: String::new() };
        Step { step: 1, code: code.to_owned(), exit_code: 1, error: Some(error), ..Step::default() }
    }

    fn hints_for(step: &Step, privacy: PrivacySend) -> Vec<String> {
        let profiles = vec![
            serde_json::from_value(json!({"file": "a.csv", "format": "csv", "encoding": "gb18030",
            "columns_detail": [{"name": "Sepal.Length"}, {"name": "Species"}, {"name": "客户"}]}))
            .expect("a profile"),
        ];
        let files = [PutFile { name: "a.csv".to_owned(), bytes: 1, sha256: String::new(), mounted: false }];
        hints(step, &Surroundings { files: &files, profiles: &profiles, workdir: "/workspace" }, privacy, Language::English)
    }

    #[test]
    fn a_missing_column_gets_the_nearest_names() {
        let hints = hints_for(&failed("KeyError", "'sepal_length'", "df['sepal_length']"), PrivacySend::Sample);
        assert!(hints[0].contains("\"Sepal.Length\"") && !hints[0].contains("Species"), "{hints:?}");
    }

    #[test]
    fn a_missing_module_gets_what_is_there_instead() {
        let hints = hints_for(&failed("ModuleNotFoundError", "No module named 'seaborn'", "import seaborn"), PrivacySend::Sample);
        assert!(hints[0].contains("matplotlib") && hints[0].contains("not installed"), "{hints:?}");
    }

    #[test]
    fn a_wrong_encoding_gets_the_right_one() {
        let hints = hints_for(&failed("UnicodeDecodeError", "'utf-8' codec can't decode byte", ""), PrivacySend::Sample);
        assert!(hints[0].contains("gb18030"), "{hints:?}");
    }

    #[test]
    fn with_schema_a_hint_does_not_depend_on_the_message() {
        for code in ["df[secret]", "df['Specie']"] {
            let hints = hints_for(&failed("KeyError", "'Specie'", code), PrivacySend::Schema);
            assert_eq!(hints, ["the names of the columns stand in the profiles, spelled exactly as they are."]);
        }
    }
}
