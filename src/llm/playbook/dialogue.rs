//! What the conversation says: question, files with their loading code, and what the steps so far put out.

use crate::agent::conversation::{Message, Role};
use crate::agent::untrusted;
use crate::profile::Language;

/// The conversation since the last question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dialogue {
    /// Language of the question.
    pub language: Language,
    /// The question without what was added to it.
    pub question: String,
    /// Files that can be loaded.
    pub files: Vec<File>,
    /// Feedback about the steps since the question.
    pub steps: Vec<StepSeen>,
    /// Only a conclusion is wanted.
    pub concluding: bool,
}

/// A file and how it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path in the sandbox.
    pub name: String,
    /// Import lines and, as the last line, an expression.
    pub load: Option<String>,
    /// Rows that may be loaded, where the file has more.
    pub row_limit: Option<u64>,
}

/// What was told about a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepSeen {
    /// Its standard output.
    pub stdout: String,
    /// It ended with an error.
    pub failed: bool,
    /// The last line of the error.
    pub error: Option<String>,
}

const FILES_MARKS: [&str; 2] = ["**Available files:** ", "**可用文件：** "];
const STEP_MARKS: [&str; 2] = ["**Step ", "**步骤 "];

impl Dialogue {
    /// Reads the conversation.
    pub fn of(messages: &[Message]) -> Self {
        let is_feedback = |message: &Message| message.role == Role::User && STEP_MARKS.iter().any(|mark| message.content.starts_with(mark));
        let Some(at) = messages.iter().rposition(|message| message.role == Role::User && !is_feedback(message)) else {
            return Self::default();
        };
        let asked = &messages[at].content;
        let question = asked.split("\n\n").next().unwrap_or_default().trim().to_owned();
        let rules = messages.first().map(|message| message.content.as_str()).unwrap_or_default();
        let mut files = names(rules);
        // A follow-up's profiles may stand in an earlier message.
        for message in messages[..=at].iter().filter(|message| message.role == Role::User) {
            for file in &mut files {
                if let Some((load, row_limit)) = loading(&message.content, &file.name) {
                    (file.load, file.row_limit) = (Some(load), row_limit);
                }
            }
        }
        let told: Vec<&str> =
            messages[at + 1..].iter().filter(|message| message.role == Role::User).map(|message| message.content.as_str()).collect();
        let steps = told.iter().flat_map(|text| split_steps(text)).collect();
        let concluding = messages
            .last()
            .is_some_and(|last| last.content.contains("No more code can be executed.") || last.content.contains("不能再执行代码了"));
        Self { language: Language::of(&question), question, files, steps, concluding }
    }
}

/// The files that the rules name.
fn names(rules: &str) -> Vec<File> {
    let Some(line) = rules.lines().find_map(|line| FILES_MARKS.iter().find_map(|mark| line.strip_prefix(mark))) else { return Vec::new() };
    if matches!(line.trim(), "none" | "无") {
        return Vec::new();
    }
    line.split(", ").map(|name| File { name: name.to_owned(), load: None, row_limit: None }).collect()
}

/// The loading code in the profile of this file, and the row limit where there is one.
fn loading(text: &str, name: &str) -> Option<(String, Option<u64>)> {
    let start = text.find(&format!("<data kind=\"profile\" file=\"{name}\">"))?;
    let section = &text[start..start + text[start..].find("\n</data>")?];
    let code = &section[section.find("```python\n")? + "```python\n".len()..];
    let code = &code[..code.find("\n```")?];
    let limit = ["rows than the ", "超过允许加载的 "].iter().find_map(|mark| {
        let rest = &section[section.find(mark)? + mark.len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    Some((code.to_owned(), limit))
}

/// The feedback about each step in one message.
fn split_steps(text: &str) -> Vec<StepSeen> {
    if !STEP_MARKS.iter().any(|mark| text.starts_with(mark)) {
        return Vec::new();
    }
    let section = |kind: &str| {
        let start = text.find(&format!("<data kind=\"{kind}\" "))?;
        let body = start + text[start..].find(">\n")? + 2;
        let end = body + text[body..].find("\n</data>")?;
        Some(untrusted::unescape(&text[body..end]))
    };
    let error = section("error").map(|words| words.trim().lines().last().unwrap_or_default().to_owned());
    vec![StepSeen { stdout: section("stdout").unwrap_or_default(), failed: !text.contains("(exit_code=0)"), error }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_files_and_outputs_are_read_from_the_conversation() {
        let messages = [
            Message::text(Role::System, "rules\n**Available files:** a b.csv, c.csv\n"),
            Message::text(
                Role::User,
                "What is the mean of x?\n\n<data kind=\"profile\" file=\"a b.csv\">\n**a b.csv**\nLoad it with:\n```python\npd.read_csv(\"a b.csv\")\n```\nIt has more rows than the 1000 that you may load.\n</data>",
            ),
            Message::text(Role::Assistant, "code"),
            Message::text(
                Role::User,
                "**Step 1: execution result (exit_code=0):**\nstdout:\n<data kind=\"stdout\" step=\"1\">\nhello\nworld\n</data>",
            ),
        ];
        let dialogue = Dialogue::of(&messages);
        assert_eq!(dialogue.question, "What is the mean of x?");
        assert_eq!(
            dialogue.files[0],
            File { name: "a b.csv".to_owned(), load: Some("pd.read_csv(\"a b.csv\")".to_owned()), row_limit: Some(1000) }
        );
        assert_eq!(dialogue.files[1].load, None);
        assert_eq!(dialogue.steps[0].stdout, "hello\nworld");
        assert!(!dialogue.steps[0].failed && !dialogue.concluding);
    }
}
