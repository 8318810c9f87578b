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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Path in the sandbox.
    pub name: String,
    /// Import lines and, as the last line, an expression.
    pub load: Option<String>,
    /// Rows that may be loaded, where the file has more.
    pub row_limit: Option<u64>,
    /// Why it can't be read, where its profile says so.
    pub fault: Option<String>,
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
/// How the title of a profile ends that says why there is none.
const FAULT_MARKS: [&str; 2] = ["(can't be read as a table)", "(无法读取为表格)"];
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
        let profiled: Vec<&str> = profiled(asked).collect();
        let mut files = names(rules, &profiled);
        for file in &mut files {
            if let Some(section) = profile_of(asked, &file.name) {
                let (load, row_limit) = loading(section).unzip();
                (file.load, file.row_limit, file.fault) = (load, row_limit.flatten(), fault(section));
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

/// The files that the rules name. A name may hold a comma itself: `profiled` are those that are known whole.
fn names(rules: &str, profiled: &[&str]) -> Vec<File> {
    let Some(line) = rules.lines().find_map(|line| FILES_MARKS.iter().find_map(|mark| line.strip_prefix(mark))) else { return Vec::new() };
    let mut rest = line.trim();
    let mut files = Vec::new();
    if matches!(rest, "none" | "无") {
        return files;
    }
    while !rest.is_empty() {
        let ends = |name: &&&str| rest.strip_prefix(**name).is_some_and(|after| after.is_empty() || after.starts_with(", "));
        let known = profiled.iter().filter(ends).max_by_key(|name| name.len()).map(|name| name.len());
        let (name, after) = rest.split_at(known.or_else(|| rest.find(", ")).unwrap_or(rest.len()));
        files.push(File { name: name.to_owned(), ..File::default() });
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    files
}

/// The files whose profiles stand in a message.
fn profiled(text: &str) -> impl Iterator<Item = &str> {
    text.split("<data kind=\"profile\" file=\"").skip(1).filter_map(|rest| rest.split_once("\">").map(|(name, _)| name))
}

/// The profile of this file in a message.
fn profile_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.find(&format!("<data kind=\"profile\" file=\"{name}\">"))?;
    Some(&text[start..start + text[start..].find("\n</data>")?])
}

/// The loading code of a profile, and the row limit where there is one.
fn loading(section: &str) -> Option<(String, Option<u64>)> {
    let code = &section[section.find("```python\n")? + "```python\n".len()..];
    let code = &code[..code.find("\n```")?];
    let limit = ["rows than the ", "超过允许加载的 "].iter().find_map(|mark| {
        let rest = &section[section.find(mark)? + mark.len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    Some((code.to_owned(), limit))
}

/// Why the file can't be read, where its profile says that.
fn fault(section: &str) -> Option<String> {
    let mut lines = section.lines().skip(1);
    let title = lines.next()?;
    FAULT_MARKS.iter().any(|mark| title.ends_with(mark)).then(|| {
        let reason = lines.next().and_then(|line| line.strip_prefix("- ")).unwrap_or_default();
        untrusted::unescape(reason)
    })
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
    use crate::agent::hints::Surroundings;
    use crate::agent::history::{Present, history};
    use crate::agent::prompt::opening;
    use crate::agent::run::{Run, SandboxInfo, Step};
    use crate::agent::task::{LoopSettings, Task};
    use crate::config::{PrivacySend, Settings};

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
            File { name: "a b.csv".to_owned(), load: Some("pd.read_csv(\"a b.csv\")".to_owned()), row_limit: Some(1000), fault: None }
        );
        assert_eq!(dialogue.files[1].load, None);
        assert_eq!(dialogue.steps[0].stdout, "hello\nworld");
        assert!(!dialogue.steps[0].failed && !dialogue.concluding);
    }

    #[test]
    fn names_with_commas_stay_whole_and_unreadable_files_are_known() {
        let messages = [
            Message::text(Role::System, "rules\n**Available files:** a, b.csv, c.csv\n"),
            Message::text(
                Role::User,
                "Describe\n\n<data kind=\"profile\" file=\"a, b.csv\">\n**a, b.csv** (can't be read as a table)\n- it holds binary data\n- Check it.\n</data>",
            ),
        ];
        let dialogue = Dialogue::of(&messages);
        assert_eq!(dialogue.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a, b.csv", "c.csv"]);
        assert_eq!(dialogue.files[0].fault.as_deref(), Some("it holds binary data"));
        assert_eq!(dialogue.files[1].fault, None);
    }

    #[test]
    fn a_follow_up_is_read_behind_what_is_told_of_earlier_runs() {
        let step = Step { step: 1, code: "print(1)".to_owned(), stdout: "1\n".to_owned(), ..Step::default() };
        let earlier = Run {
            question: "Describe it".to_owned(),
            model: "playbook".to_owned(),
            steps: vec![step],
            final_answer: Some("It is 1.".to_owned()),
            ..Run::default()
        };
        let present = Present { privacy: PrivacySend::Full, surroundings: Surroundings::default() };
        let task = Task { question: "How many rows?".to_owned(), history: history([&earlier], &present), ..Task::default() };
        let settings = LoopSettings::from(&Settings::default());
        let dialogue = Dialogue::of(&opening(&settings, &SandboxInfo::default(), &task, false));
        assert_eq!((dialogue.question.as_str(), dialogue.steps.len()), ("How many rows?", 0));
    }
}
