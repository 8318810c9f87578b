//! The conversation as it is sent: calls read and flattened, pictures kept few, old outputs compacted.

use std::fmt::Write;

use serde_json::Value;

use super::conversation::{Message, Role, ToolCall};
use super::prompt::PYTHON_TOOL;
use super::words::{CallFault, Words};

/// Pictures that a request holds at most: the last ones.
const KEPT_IMAGES: usize = 3;
/// Tokens that are taken for the window where none is known. Small enough for most, large enough for an analysis.
const DEFAULT_WINDOW: u64 = 60_000;
/// Bytes of an old output that stay whatever the window.
const SHORT: usize = 200;
/// Bytes of the latest output that are sent where the model refused more.
const BEGINNING: usize = 1000;
/// Share of the window that the conversation may fill; the rest is for the answer and for what the estimate misses.
const FILL: f64 = 0.7;

/// The code that a call asks to execute.
pub fn code_of(call: &ToolCall) -> Result<String, CallFault> {
    if call.name != PYTHON_TOOL {
        return Err(CallFault::UnknownTool);
    }
    let arguments = match &call.arguments {
        // Arguments that some servers leave as JSON text.
        Value::String(text) => serde_json::from_str(text).map_err(|_| CallFault::NoCode)?,
        other => other.clone(),
    };
    match arguments.get("code") {
        Some(Value::String(code)) if !code.trim().is_empty() => Ok(unfenced(code)),
        _ => Err(CallFault::NoCode),
    }
}

/// Code that a model fenced although it stands in a call.
fn unfenced(code: &str) -> String {
    let trimmed = code.trim();
    if trimmed.starts_with("```") && trimmed.ends_with("```") {
        let parsed = super::parse::parse(trimmed);
        if let [only] = parsed.python.as_slice() {
            return only.clone();
        }
    }
    code.to_owned()
}

/// Windows, in tokens, that are suspected of cutting long conversations: Ollama's defaults over the years. Larger ones
/// are beyond what a run sends, and smaller counts are no window but a server that counts otherwise.
const SMALL_WINDOWS: std::ops::RangeInclusive<u64> = 2000..=8192;
/// Bytes of a text that make a token, cautiously: a rough estimate must not raise a false alarm.
const BYTES_PER_TOKEN: u64 = 4;

/// The conversation without calls: they become fenced blocks, and their results the person's side.
pub fn without_tools(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for mut message in messages {
        for call in std::mem::take(&mut message.tool_calls) {
            if let Ok(code) = code_of(&call) {
                if !message.content.is_empty() {
                    message.content.push_str("\n\n");
                }
                let fence = fence(&code);
                let _ = write!(message.content, "{fence}python\n{code}\n{fence}");
            }
        }
        if message.role == Role::Tool {
            message.role = Role::User;
            message.tool_call_id = None;
        }
        match out.last_mut() {
            Some(last) if last.role == message.role && last.role != Role::System => {
                last.content.push_str("\n\n");
                last.content.push_str(&message.content);
                last.images.append(&mut message.images);
            }
            _ => out.push(message),
        }
    }
    out
}

/// A fence that no line of the text closes.
pub fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// How much of the outputs is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As much as fits into the model's window.
    Window,
    /// The latest, and none of the older ones: the model refused a conversation as too long.
    Latest,
    /// The beginning of the latest, and no pictures.
    Beginning,
}

impl Room {
    /// What is sent where that was too much.
    pub fn less(self) -> Option<Self> {
        match self {
            Self::Window => Some(Self::Latest),
            Self::Latest => Some(Self::Beginning),
            Self::Beginning => None,
        }
    }
}

/// The messages as they are sent: only the last pictures, and old outputs shortened until all fits into `window`
/// tokens, or further where `room` says so. Rules, question and profiles are never shortened.
pub fn fitted(messages: &[Message], window: Option<u64>, room: Room, words: Words) -> Vec<Message> {
    let mut fitted = messages.to_vec();
    let least = room == Room::Beginning;
    let window = if room == Room::Window { window } else { Some(0) };
    let mut room = if least { 0 } else { KEPT_IMAGES };
    for message in fitted.iter_mut().rev() {
        message.images.retain(|image| !image.data.is_empty());
        let surplus = message.images.len().saturating_sub(room);
        message.images.drain(..surplus);
        room -= message.images.len();
    }
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate of tokens")]
    let bound = (window.unwrap_or(DEFAULT_WINDOW) as f64 * FILL) as u64;
    // The last message is what the model must react to.
    let last = fitted.len().saturating_sub(1);
    for at in 0..last {
        if estimate(&fitted) <= bound {
            break;
        }
        let message = &mut fitted[at];
        if matches!(message.role, Role::User | Role::Tool) {
            message.content = compacted(&message.content, SHORT, |_, bytes| words.left_out(bytes));
        }
    }
    if let Some(latest) = fitted.get_mut(last).filter(|latest| least && matches!(latest.role, Role::User | Role::Tool)) {
        latest.content = compacted(&latest.content, BEGINNING, |beginning, bytes| {
            format!("{beginning}\n{}", words.rest_left_out(bytes - beginning.len()))
        });
    }
    fitted
}

/// About how many tokens were sent, where the server read less than half of them and its window is known to be no larger
/// than `window`: it left out the beginning without a word.
pub fn cut_in_silence(messages: &[Message], read: u64, window: Option<u64>) -> Option<u64> {
    let sent = messages.iter().map(|message| message.content.len() as u64).sum::<u64>() / BYTES_PER_TOKEN;
    let known = window.is_some_and(|window| window <= read);
    (!known && SMALL_WINDOWS.contains(&read) && sent / 2 > read).then_some(sent)
}

/// Tokens of a conversation, roughly: four bytes of Latin text, and a token for each other character.
pub fn estimate(messages: &[Message]) -> u64 {
    let tokens = |text: &str| -> u64 {
        let wide = text.chars().filter(|c| !c.is_ascii()).count();
        let narrow = text.chars().count() - wide;
        (wide + narrow / 3) as u64
    };
    messages
        .iter()
        .map(|message| {
            let calls: u64 = message.tool_calls.iter().map(|call| tokens(&call.arguments.to_string())).sum();
            tokens(&message.content) + calls + message.images.len() as u64 * 1000 + 8
        })
        .sum()
}

/// The text with other words for the contents of its sections, but for profiles and those of at most `keep` bytes.
/// `instead` is given the first `keep` bytes of a section and its whole length.
fn compacted(text: &str, keep: usize, instead: impl Fn(&str, usize) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<data kind=\"") {
        let Some(tag_end) = rest[start..].find(">\n").map(|at| start + at + 2) else { break };
        let Some(end) = rest[tag_end..].find("\n</data>").map(|at| tag_end + at) else { break };
        out.push_str(&rest[..tag_end]);
        let body = &rest[tag_end..end];
        if rest[start..].starts_with("<data kind=\"profile\"") || body.len() <= keep {
            out.push_str(body);
        } else {
            let end = (0..=keep).rev().find(|end| body.is_char_boundary(*end)).unwrap_or(0);
            out.push_str(&instead(&body[..end], body.len()));
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::conversation::ImagePart;
    use crate::agent::untrusted::section;
    use crate::profile::Language;

    fn call(arguments: Value) -> ToolCall {
        ToolCall { id: "1".to_owned(), name: "python".to_owned(), arguments, signatures: Vec::new() }
    }

    #[test]
    fn code_is_read_from_objects_and_from_json_text() {
        assert_eq!(code_of(&call(json!({"code": "x = 1"}))), Ok("x = 1".to_owned()));
        assert_eq!(code_of(&call(json!("{\"code\": \"x = 1\"}"))), Ok("x = 1".to_owned()));
        assert_eq!(code_of(&call(json!({"code": "```python\nx = 1\n```"}))), Ok("x = 1".to_owned()));
    }

    #[test]
    fn half_a_call_is_no_code() {
        for arguments in [json!("{\"code\": \"x ="), json!({}), json!({"code": 1}), json!({"code": "  "}), json!("x = 1"), Value::Null] {
            assert_eq!(code_of(&call(arguments.clone())), Err(CallFault::NoCode), "{arguments}");
        }
    }

    #[test]
    fn old_outputs_are_left_out_and_profiles_stay() {
        let output = section("kind=\"stdout\" step=\"1\"", &"y".repeat(9000));
        let profile = section("kind=\"profile\" file=\"a\"", &"p".repeat(3000));
        let messages = vec![
            Message::text(Role::System, "rules"),
            Message::text(Role::User, format!("question\n\n{profile}")),
            Message::text(Role::Assistant, "code"),
            Message::text(Role::User, output.clone()),
            Message::text(Role::Assistant, "code"),
            Message::text(Role::User, output),
        ];
        let sent = fitted(&messages, Some(6000), Room::Window, Words(Language::English));
        assert_eq!(sent[1], messages[1]);
        assert!(sent[3].content.contains("9000 bytes of older output left out") && sent[3].content.ends_with("</data>"));
        assert_eq!(sent[5], messages[5]);
        assert_eq!(fitted(&messages, None, Room::Window, Words(Language::English)), messages);
    }

    #[test]
    fn only_the_last_pictures_are_sent() {
        let image = |name: &str| ImagePart { name: name.to_owned(), mime: "image/png".to_owned(), data: vec![1].into() };
        let mut first = Message::text(Role::User, "a");
        first.images = vec![image("1"), image("2")];
        let mut second = Message::text(Role::User, "b");
        second.images = vec![image("3"), image("4")];
        let sent = fitted(&[first, second], None, Room::Window, Words(Language::English));
        let names: Vec<&str> = sent.iter().flat_map(|message| message.images.iter().map(|image| image.name.as_str())).collect();
        assert_eq!(names, ["2", "3", "4"]);
    }

    #[test]
    fn calls_become_fences_where_tools_are_withdrawn() {
        let mut asked = Message::text(Role::Assistant, "I count.");
        asked.tool_calls = vec![call(json!({"code": "print(1)"}))];
        let mut result = Message::text(Role::Tool, "1");
        result.tool_call_id = Some("1".to_owned());
        let flat = without_tools(vec![asked, result]);
        assert_eq!(flat[0].content, "I count.\n\n```python\nprint(1)\n```");
        assert_eq!((flat[1].role, flat[1].tool_call_id.as_deref()), (Role::User, None));
    }
}
