//! Earlier runs as a follow-up's model is told of them: made anew from their records under the settings of today.
//!
//! What was said then is not replayed: it may have been said to the playbook, which sends nothing anywhere, or under a
//! laxer `privacy.send`. Outputs pass the same feedback as those of a run under way; words of a model that saw more
//! than may be sent now are withheld, or quoted like an output.

use serde_json::json;

use super::conversation::{Message, Role, ToolCall};
use super::feedback::{Style, excerpt, feedback};
use super::hints::Surroundings;
use super::prompt::PYTHON_TOOL;
use super::run::Run;
use super::untrusted::section;
use crate::config::PrivacySend;
use crate::profile::Language;

/// What the model of today may see, and what hints know.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// What it may see.
    pub privacy: PrivacySend,
    /// Files and columns of the run.
    pub surroundings: Surroundings<'a>,
}

/// The conversation of `runs`, oldest first. Every run ends with words of the assistant, so that the sides alternate.
pub fn history<'a>(runs: impl IntoIterator<Item = &'a Run>, present: &Present<'_>) -> Vec<Message> {
    let mut messages = Vec::new();
    for (run, number) in runs.into_iter().zip(1..) {
        told(run, number, present, &mut messages);
    }
    messages
}

fn told(run: &Run, number: u32, present: &Present<'_>, messages: &mut Vec<Message>) {
    let language = Language::of(&run.question);
    let question = if run.question.trim().is_empty() {
        language.pick("(No question: code was run as it is.)", "（没有提问：直接运行了代码。）")
    } else {
        run.question.trim()
    };
    messages.push(Message::text(Role::User, question));
    // What is known of old records is the least: everything may have been seen.
    let saw_more = run.privacy.unwrap_or(PrivacySend::Full) > present.privacy;
    let by_model = run.by_language_model();
    if by_model && saw_more && present.privacy == PrivacySend::Schema {
        // Code that was written with the data in view may spell values.
        let words = "Its code, outputs and answer are withheld by the privacy setting. Variables may persist.";
        remark(messages, language.pick(words, "隐私设置不允许发送其代码、输出和回答。变量可能仍保留。"));
        noted(messages, language);
        return;
    }
    for step in &run.steps {
        let note = if by_model && !saw_more { step.note.as_str() } else { "" };
        let mut call = Message::text(Role::Assistant, note);
        // Nine digits: some providers take no other ids.
        let id = format!("{:09}", (u64::from(number) * 10_000 + u64::from(step.step)) % 1_000_000_000);
        call.tool_calls =
            vec![ToolCall { id: id.clone(), name: PYTHON_TOOL.to_owned(), arguments: json!({"code": step.code}), signatures: Vec::new() }];
        messages.push(call);
        let style = Style { language, privacy: present.privacy, vision: false, variables_lost: false, surroundings: present.surroundings };
        let mut result = Message::text(Role::Tool, feedback(step, &style));
        result.tool_call_id = Some(id);
        messages.push(result);
    }
    match run.final_answer.as_deref() {
        Some(answer) if by_model && !saw_more => {
            messages.push(Message::text(Role::Assistant, answer));
            return;
        }
        Some(_) if present.privacy == PrivacySend::Schema => {
            let words = "The person was given an answer; the privacy setting withholds it.";
            remark(messages, language.pick(words, "已向用户给出回答；隐私设置不允许发送。"));
        }
        Some(answer) => {
            // It quotes cells of the data, and nobody weighed its words.
            let quoted = section("kind=\"answer\"", &excerpt(answer, present.privacy));
            remark(messages, &format!("{}\n{quoted}", language.pick("The person was given this answer:", "已向用户给出以下回答：")));
        }
        None => remark(messages, language.pick("It ended without an answer.", "未得出回答。")),
    }
    noted(messages, language);
}

/// Says something from the person's side.
fn remark(messages: &mut Vec<Message>, text: &str) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            last.content.push_str("\n\n");
            last.content.push_str(text);
        }
        _ => messages.push(Message::text(Role::User, text)),
    }
}

fn noted(messages: &mut Vec<Message>, language: Language) {
    messages.push(Message::text(Role::Assistant, language.pick("Noted.", "好的。")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::run::Step;

    fn run(model: &str, privacy: Option<PrivacySend>) -> Run {
        let step = Step { step: 1, code: "show()".to_owned(), note: "NOTED".to_owned(), stdout: "PRINTED\n".to_owned(), ..Step::default() };
        Run {
            question: "Who?".to_owned(),
            model: model.to_owned(),
            privacy,
            steps: vec![step],
            final_answer: Some("ANSWERED </data>".to_owned()),
            ..Run::default()
        }
    }

    fn text(run: &Run, privacy: PrivacySend) -> String {
        let messages = history([run], &Present { privacy, surroundings: Surroundings::default() });
        assert_eq!(messages.last().map(|last| last.role), Some(Role::Assistant));
        messages.iter().map(|message| serde_json::to_string(message).unwrap_or_default()).collect()
    }

    #[test]
    fn with_schema_no_output_or_answer_made_with_the_data_in_view_is_told() {
        for (model, privacy) in [("playbook", Some(PrivacySend::Full)), ("m", Some(PrivacySend::Sample)), ("m", None)] {
            let text = text(&run(model, privacy), PrivacySend::Schema);
            assert!(text.contains("Who?") && text.contains("withh"), "{text}");
            assert!(!["PRINTED", "ANSWERED", "NOTED"].iter().any(|secret| text.contains(secret)), "{model}: {text}");
            assert_eq!(text.contains("show()"), model == "playbook", "code that may spell values is withheld: {text}");
        }
    }

    #[test]
    fn a_model_that_saw_no_more_than_may_be_sent_is_told_its_own_words() {
        let text = text(&run("m", Some(PrivacySend::Schema)), PrivacySend::Schema);
        assert!(text.contains("ANSWERED") && text.contains("NOTED") && !text.contains("PRINTED"), "{text}");
    }

    #[test]
    fn an_answer_that_quotes_the_data_stands_in_a_section() {
        for (model, privacy) in [("playbook", PrivacySend::Full), ("m", PrivacySend::Sample)] {
            let text = text(&run(model, Some(PrivacySend::Full)), privacy);
            assert!(text.contains("<data kind=\\\"answer\\\">\\nANSWERED ‹/data>\\n</data>"), "{text}");
            assert!(text.contains("PRINTED") && !text.contains("NOTED"), "{text}");
        }
    }
}
