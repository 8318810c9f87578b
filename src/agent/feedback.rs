//! What the model is told about an execution: exit status, output with what was cut, error, charts, files, variables.
//!
//! Everything that came out of the sandbox stands in marked sections, and no more of it is told than
//! `privacy.send` allows: that is enforced here, whatever the model asks for.

use std::fmt::Write;

use super::execution::{FigureDescription, Output, Variable, text_of};
use super::hints::{self, Surroundings};
use super::run::Step;
use super::untrusted::{self, section};
use crate::config::PrivacySend;
use crate::profile::Language;

/// Characters of HTML that reach the model.
const HTML_CHARS: usize = 200;
/// Bytes of one displayed text (a table) that reach the model.
const DISPLAY_BYTES: usize = 8192;
/// Bytes of a figure's description that reach the model.
const FIGURE_BYTES: usize = 2500;
/// Lines of a stream that reach the model where only samples may: enough for results, too few for a table's rows.
const SAMPLE_LINES: usize = 200;
/// Entries of a list (files, variables, notices) that are told.
const MAX_ENTRIES: usize = 30;

/// How feedback is written.
#[derive(Debug, Clone, Copy)]
pub struct Style<'a> {
    /// Language of the question.
    pub language: Language,
    /// What the model may see.
    pub privacy: PrivacySend,
    /// The model sees the pictures themselves, so that descriptions are not needed.
    pub vision: bool,
    /// The kernel was replaced during the step.
    pub variables_lost: bool,
    /// Files and columns of the run, for hints.
    pub surroundings: Surroundings<'a>,
}

/// The feedback about a step.
pub fn feedback(step: &Step, style: &Style<'_>) -> String {
    let mut text = Text { out: String::new(), language: style.language };
    let number = step.step;
    let status = match style.privacy {
        // An exit code is any number that the code likes.
        PrivacySend::Schema if step.exit_code != 0 || step.error.is_some() => style.language.pick("failed", "失败").to_owned(),
        PrivacySend::Schema => style.language.pick("ok", "成功").to_owned(),
        PrivacySend::Sample | PrivacySend::Full => format!("exit_code={}", step.exit_code),
    };
    text.line(&format!("**Step {number}: execution result ({status}):**"), &format!("**步骤 {number} 执行结果 ({status}):**"));
    if style.privacy == PrivacySend::Schema {
        schema_only(&mut text, step);
    } else {
        outputs(&mut text, step, style);
    }
    if style.variables_lost {
        text.line(
            "The kernel was replaced: all variables are lost, files stay. Load the data again before you go on.",
            "内核已被替换：所有变量都已丢失，文件仍在。请先重新加载数据。",
        );
    }
    for hint in hints::hints(step, &style.surroundings, style.privacy, style.language) {
        text.line(&format!("Hint: {hint}"), &format!("提示：{hint}"));
    }
    text.out.trim_end().to_owned()
}

/// Text in one of two languages.
struct Text {
    out: String,
    language: Language,
}

impl Text {
    fn line(&mut self, english: &str, chinese: &str) {
        self.out.push_str(self.language.pick(english, chinese));
        self.out.push('\n');
    }

    fn raw(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

fn outputs(text: &mut Text, step: &Step, style: &Style<'_>) {
    let lines = most_lines(style.privacy);
    let number = step.step;
    stream(text, "stdout", &step.stdout, number, lines);
    stream(text, "stderr", &step.stderr, number, lines);
    if let Some(cut) = step.truncated {
        let (kept, total) = (cut.kept_bytes, cut.total_bytes);
        text.line(
            &format!("Kept {kept} of {total} bytes of output, its head and tail. Print less, or write it to a file and print parts."),
            &format!("输出共 {total} 字节，仅保留 {kept} 字节（首尾部分）。请减少打印，或写入文件后分段查看。"),
        );
    }
    if let Some(result) = step.result.as_deref().filter(|result| !result.is_empty()) {
        text.line("Result:", "结果：");
        text.raw(&section(&format!("kind=\"result\" step=\"{number}\""), &head(result, DISPLAY_BYTES, lines)));
    }
    for output in &step.outputs {
        displayed(text, output, number, lines);
    }
    if let Some(error) = &step.error {
        text.line("**Error:**", "**错误:**");
        let words = if error.traceback.trim().is_empty() { format!("{}: {}", error.ename, error.evalue) } else { error.traceback.clone() };
        text.raw(&section(&format!("kind=\"error\" step=\"{number}\""), &tail(&words, 4096)));
    }
    charts(text, step, style);
    let files: Vec<String> = step
        .files
        .iter()
        .map(|file| {
            let change = if file.created { "" } else { text.language.pick(", changed", "，已修改") };
            format!("{} ({} {}{change})", untrusted::name(&file.path), file.bytes, text.language.pick("bytes", "字节"))
        })
        .collect();
    list(text, "New files", "新文件", &files);
    let variables: Vec<String> = step.variables.iter().map(variable).collect();
    list(text, "New or changed variables", "新增或改变的变量", &variables);
    for notice in step.notices.iter().take(MAX_ENTRIES) {
        let notice = untrusted::name(notice);
        text.line(&format!("Note: {notice}"), &format!("注意：{notice}"));
    }
    if nothing_seen(step) {
        text.line(
            "The code ran and printed nothing. Use print() for what you want to see.",
            "代码已执行，但没有任何输出。请用 print() 输出需要查看的内容。",
        );
    }
}

/// Lines of one output that may be sent.
fn most_lines(privacy: PrivacySend) -> usize {
    if privacy == PrivacySend::Full { usize::MAX } else { SAMPLE_LINES }
}

/// As much of a text that quotes the data as of an output may be sent.
pub fn excerpt(text: &str, privacy: PrivacySend) -> String {
    head(text, DISPLAY_BYTES, most_lines(privacy))
}

fn nothing_seen(step: &Step) -> bool {
    step.error.is_none()
        && step.exit_code == 0
        && step.stdout.trim().is_empty()
        && step.stderr.trim().is_empty()
        && step.result.is_none()
        && step.artifacts.is_empty()
        && step.files.is_empty()
        && !step.outputs.iter().any(|output| matches!(output, Output::DisplayData { .. }))
}

fn stream(text: &mut Text, name: &str, contents: &str, step: u32, lines: usize) {
    if !contents.trim().is_empty() {
        text.line(&format!("{name}:"), &format!("{name}："));
        text.raw(&section(&format!("kind=\"{name}\" step=\"{step}\""), &middle_cut(contents, lines)));
    }
}

/// Displays that are no pictures: tables as text, HTML as a marked beginning.
fn displayed(text: &mut Text, output: &Output, step: u32, lines: usize) {
    let (data, is_result) = match output {
        Output::DisplayData { data, .. } => (data, false),
        Output::ExecuteResult { data } => (data, true),
        Output::Stream { .. } | Output::Error(_) => return,
    };
    let plain = text_of(data, "text/plain");
    if !is_result
        && !data.contains_key("artifact")
        && let Some(plain) = plain.as_deref().filter(|plain| !plain.is_empty() && !plain.starts_with("<Figure size"))
    {
        text.line("Displayed:", "显示：");
        text.raw(&section(&format!("kind=\"display\" step=\"{step}\""), &head(plain, DISPLAY_BYTES, lines)));
    }
    // A table's HTML says the same as its text.
    let table = data.get("text/html").is_some() && text_of(data, "text/html").is_some_and(|html| html.contains("dataframe"));
    if let Some(html) = text_of(data, "text/html").filter(|_| !(table && plain.is_some())) {
        let total = html.chars().count();
        let beginning: String = html.chars().take(HTML_CHARS).collect();
        let mark = if total > HTML_CHARS { format!("[HTML, {HTML_CHARS} of {total} characters] ") } else { "[HTML] ".to_owned() };
        text.raw(&section(&format!("kind=\"html\" step=\"{step}\""), &format!("{mark}{beginning}")));
    }
}

/// Pictures that were drawn, by the names of their artifacts; described where the model does not see them.
fn charts(text: &mut Text, step: &Step, style: &Style<'_>) {
    let names: Vec<String> = step
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::DisplayData { data, .. } | Output::ExecuteResult { data } => data.get("artifact")?.as_str().map(untrusted::name),
            Output::Stream { .. } | Output::Error(_) => None,
        })
        .collect();
    list(text, "New charts, shown to the person", "生成了图表", &names);
    if style.vision {
        return;
    }
    for figure in step.figures.iter().take(MAX_ENTRIES) {
        text.raw(&section(&format!("kind=\"figure\" step=\"{}\"", step.step), &describe(figure)));
    }
}

/// A figure in words and numbers.
fn describe(figure: &FigureDescription) -> String {
    let title = figure.title.as_deref().unwrap_or("untitled");
    let detail = if figure.detail.is_null() { String::new() } else { format!(": {}", figure.detail) };
    head(&format!("{title}{detail}"), FIGURE_BYTES, usize::MAX)
}

fn variable(variable: &Variable) -> String {
    let shape = match variable.shape.as_deref() {
        Some(shape) if !shape.is_empty() => format!(" [{}]", shape.iter().map(u64::to_string).collect::<Vec<_>>().join("×")),
        _ => String::new(),
    };
    format!("{}{shape}", kind(variable))
}

fn kind(variable: &Variable) -> String {
    format!("{}: {}", untrusted::name(&variable.name), untrusted::name(&variable.type_name))
}

fn list(text: &mut Text, english: &str, chinese: &str, entries: &[String]) {
    if entries.is_empty() {
        return;
    }
    let mut shown = entries[..entries.len().min(MAX_ENTRIES)].join(", ");
    if entries.len() > MAX_ENTRIES {
        let _ = write!(shown, ", … (+{})", entries.len() - MAX_ENTRIES);
    }
    text.line(&format!("{english}: {shown}"), &format!("{chinese}: {shown}"));
}

/// Names and types only: nothing is told but whether the step failed, and with which of a few exceptions. Everything
/// else (whether anything was printed, which variables there are) could be made to depend on a value.
fn schema_only(text: &mut Text, step: &Step) {
    if let Some(error) = &step.error {
        let name = if hints::is_told_with_schema(&error.ename) { error.ename.as_str() } else { "Exception" };
        text.line(&format!("**Error:** {name} (its message is withheld)"), &format!("**错误:** {name}（内容不发送）"));
    }
    text.line(
        "What it printed, drew and wrote goes to the person; the privacy setting keeps it from you.",
        "其输出、图表和文件会展示给用户；隐私设置不允许发送给你。",
    );
}

/// At most `lines` lines, head and tail, with a mark between.
fn middle_cut(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    if all.len() <= lines {
        return text.to_owned();
    }
    let half = lines / 2;
    let left_out = all.len() - 2 * half;
    format!("{}\n[… {left_out} of {} lines left out …]\n{}", all[..half].join("\n"), all.len(), all[all.len() - half..].join("\n"))
}

/// The beginning of a text.
fn head(text: &str, bytes: usize, lines: usize) -> String {
    let text = middle_cut(text, lines);
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n[… {end} of {} bytes …]", &text[..end], text.len())
}

/// The end of a text: of a traceback it says most.
fn tail(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut start = text.len() - bytes;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    format!("[… the last {} of {} bytes …]\n{}", text.len() - start, text.len(), &text[start..])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::agent::execution::{ExecutionError, FileChange, MimeBundle, Truncation};

    fn style(privacy: PrivacySend) -> Style<'static> {
        Style { language: Language::English, privacy, vision: false, variables_lost: false, surroundings: Surroundings::default() }
    }

    fn bundle(value: &Value) -> MimeBundle {
        value.as_object().cloned().unwrap_or_default()
    }

    fn rich_step() -> Step {
        Step {
            step: 2,
            code: "df = load()\ndf.to_csv('out/a.csv')".to_owned(),
            stdout: "CANARY 42\n".to_owned(),
            exit_code: 0,
            truncated: Some(Truncation { kept_bytes: 10, total_bytes: 100_000 }),
            files: vec![FileChange { path: "out/a.csv".to_owned(), bytes: 12, sha256: None, created: true }],
            variables: vec![Variable {
                name: "df".to_owned(),
                type_name: "DataFrame".to_owned(),
                shape: Some(vec![3, 2]),
                bytes: None,
                repr: "CANARY".to_owned(),
            }],
            outputs: vec![
                Output::DisplayData { data: bundle(&json!({"artifact": "chart-1.png"})), display_id: None },
                Output::DisplayData { data: bundle(&json!({"text/html": "<b>".to_owned() + &"x".repeat(5000)})), display_id: None },
            ],
            artifacts: vec!["chart-1.png".to_owned()],
            ..Step::default()
        }
    }

    #[test]
    fn feedback_tells_status_output_cut_charts_files_and_variables() {
        let text = feedback(&rich_step(), &style(PrivacySend::Sample));
        for part in [
            "(exit_code=0)",
            "<data kind=\"stdout\" step=\"2\">\nCANARY 42\n</data>",
            "Kept 10 of 100000 bytes",
            "New charts, shown to the person: chart-1.png",
            "New files: out/a.csv (12 bytes)",
            "df: DataFrame [3×2]",
            "[HTML, 200 of 5003 characters]",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(!text.contains(&"x".repeat(201)), "no more than 200 characters of HTML");
    }

    #[test]
    fn the_schema_setting_keeps_every_value_back() {
        let mut step = rich_step();
        step.error = Some(ExecutionError { ename: "CanaryError".to_owned(), evalue: "CANARY".to_owned(), traceback: "CANARY".to_owned() });
        step.files.push(FileChange { path: "CANARY.csv".to_owned(), bytes: 1, sha256: None, created: true });
        step.variables.push(Variable {
            name: "CANARY".to_owned(),
            type_name: "int".to_owned(),
            shape: None,
            bytes: None,
            repr: String::new(),
        });
        step.notices.push("CANARY".to_owned());
        step.result = Some("CANARY".to_owned());
        let text = feedback(&step, &style(PrivacySend::Schema));
        assert!(!text.to_lowercase().contains("canary"), "{text}");
    }

    #[test]
    fn with_schema_no_number_that_code_could_choose_is_told() {
        let told = |exit_code, stdout: &str, rows| {
            let mut step = Step { exit_code, stdout: stdout.to_owned(), ..rich_step() };
            step.variables[0].shape = Some(vec![rows]);
            step.artifacts = vec!["a.png".to_owned(); usize::from(rows > 5) + 1];
            feedback(&step, &style(PrivacySend::Schema))
        };
        assert!(told(42, "x", 3).starts_with("**Step 2: execution result (failed):**"));
        assert!(told(0, "x", 3).starts_with("**Step 2: execution result (ok):**"));
        assert_eq!(told(42, "x\n", 3), told(43, "", 7));
    }

    #[test]
    fn with_schema_code_can_choose_between_few_words_only() {
        let columns = serde_json::from_value(json!({"file": "a", "format": "csv", "rows": 1, "columns": 1,
            "columns_detail": [{"name": "price", "dtype": "int64", "missing": 0, "missing_percent": 0.0}], "warnings": []}));
        let profiles = [columns.expect("a profile")];
        let surroundings = Surroundings { files: &[], profiles: &profiles, workdir: "/workspace" };
        let mut told = std::collections::BTreeSet::new();
        for ename in ["KeyError", "ImportError", "NameError", "RuntimeError", "Warning", "KernelDied", "CanaryError"] {
            for evalue in ["'prize'", "'pric'", "No module named 'seaborn'", "No module named 'polars'", "x"] {
                let error = ExecutionError { ename: ename.to_owned(), evalue: evalue.to_owned(), traceback: evalue.to_owned() };
                let code = "raise KeyError('prize' or 'pric')".to_owned();
                let step = Step { step: 1, code, exit_code: 1, error: Some(error), ..Step::default() };
                told.insert(feedback(&step, &Style { surroundings, ..style(PrivacySend::Schema) }));
            }
        }
        assert_eq!(told.len(), 4, "one for each name that is told, and one for all others: {told:#?}");
    }

    #[test]
    fn a_table_is_told_as_text_and_not_as_html() {
        let table = json!({"text/plain": "[DataFrame 1×1]\n   a\n0  1", "text/html": "<table class=\"dataframe\"></table>"});
        let step = Step { step: 1, outputs: vec![Output::DisplayData { data: bundle(&table), display_id: None }], ..Step::default() };
        let text = feedback(&step, &style(PrivacySend::Sample));
        assert!(text.contains("[DataFrame 1×1]") && !text.contains("<table"), "{text}");
    }

    #[test]
    fn rows_of_a_table_are_cut_where_only_samples_may_be_sent() {
        let stdout: String = (0..1000).fold(String::new(), |text, row| text + &format!("row {row}\n"));
        let step = Step { step: 1, stdout, ..Step::default() };
        let sample = feedback(&step, &style(PrivacySend::Sample));
        assert!(sample.contains("row 0\n") && sample.contains("row 999") && !sample.contains("row 500"), "head and tail stay");
        assert!(sample.contains("800 of 1000 lines left out"));
        assert!(feedback(&step, &style(PrivacySend::Full)).contains("row 500"));
    }

    #[test]
    fn silence_is_told_as_silence() {
        assert!(feedback(&Step { step: 1, ..Step::default() }, &style(PrivacySend::Sample)).contains("printed nothing"));
    }
}
