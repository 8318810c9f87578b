//! Text from a sandbox or a file, made safe to stand in markdown and on a terminal.

use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

/// Control sequences of terminals: CSI, OSC (8 links, 52 clipboard), DCS and the like, and two-character escapes;
/// in their 7-bit form and in their C1 form. ECMA-48, and xterm's "Control Sequences".
// The pattern is a constant that a test compiles.
#[expect(clippy::unwrap_used, reason = "a constant pattern")]
static CONTROL_SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?: \x1b\[ | \u{9b} ) [0-?]* [\x20-/]* [@-~]
      | (?: \x1b[\]PX^_] | [\u{9d}\u{90}\u{98}\u{9e}\u{9f}] ) [^\x07\x1b\u{9c}]* (?: \x07 | \x1b\\ | \u{9c} )?
      | \x1b [\x20-/]* [0-~]?
        ",
    )
    .unwrap()
});

/// `text` without control sequences, control characters (but line ends and tabs) and bidi controls.
/// A carriage return within a line goes back to its start, as a progress bar means it.
pub fn plain(text: &str) -> String {
    let text = if text.contains(['\u{1b}', '\u{9b}', '\u{9d}', '\u{90}', '\u{98}', '\u{9e}', '\u{9f}']) {
        CONTROL_SEQUENCE.replace_all(text, "")
    } else {
        std::borrow::Cow::Borrowed(text)
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (body, end) = match line.strip_suffix('\n') {
            Some(body) => (body.strip_suffix('\r').unwrap_or(body), "\n"),
            None => (line, ""),
        };
        let last = body.trim_end_matches('\r').rsplit('\r').next().unwrap_or(body);
        out.extend(last.chars().filter(|c| *c == '\t' || !(c.is_control() || is_bidi_control(*c))));
        out.push_str(end);
    }
    out
}

/// Characters that make text look other than it is (Unicode UAX #9), and invisible separators.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A fenced block that `text` can't break out of.
pub fn fenced(text: &str, language: &str) -> String {
    let text = plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// An error's words as a sentence of its own, as inline Markdown: errors begin in lower case and without a full stop, because
/// they also stand within other text. A first word that is a name or a path stays as it is.
#[must_use]
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let first = text.split(char::is_whitespace).next().unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 1);
    if first.len() < text.len() && first != "codeinterp" && first.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'') {
        out.push(first.as_bytes()[0].to_ascii_uppercase().into());
        out.push_str(&text[1..]);
    } else {
        out.push_str(text);
    }
    if out.ends_with(|end: char| end.is_ascii_alphanumeric() || matches!(end, ')' | '"' | '`' | '\'')) {
        out.push('.');
    }
    // Settings and commands stand between backticks: code here as well.
    let parts: Vec<&str> = out.split('`').collect();
    if parts.len().is_multiple_of(2) || parts.iter().skip(1).step_by(2).any(|part| part.is_empty()) {
        return inline(&out);
    }
    parts.iter().enumerate().map(|(i, part)| if i % 2 == 1 { code(part) } else { inline(part) }).collect()
}

/// `text` as words within a line: every character that means something in markdown or HTML is escaped.
pub fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in plain(text).chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '!' | '|' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    // A scheme followed by `//` would be made a link by many viewers.
    out.replace("://", ":&#8203;//")
}

/// `text` as inline code.
pub fn code(text: &str) -> String {
    let text = plain(text).replace(['\n', '\t'], " ");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// `name` as the target of a link to a file beside the document.
pub fn link_target(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            // Writing to a String can't fail.
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// At most `limit` bytes of `text`, cut between characters.
pub fn head(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Parser, Tag};

    use super::*;

    #[test]
    fn control_sequences_are_stripped() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m"), "red");
        assert_eq!(plain("\u{1b}]8;;http://evil\u{7}click\u{1b}]8;;\u{7}"), "click");
        assert_eq!(plain("\u{1b}]52;c;ZXZpbA==\u{1b}\\x"), "x");
        assert_eq!(plain("\u{9b}31mred \u{202e}evil"), "red evil");
        assert_eq!(plain(" 10%\r 50%\r100%\r\nnext"), "100%\nnext");
    }

    #[test]
    fn an_error_is_told_as_a_sentence() {
        assert_eq!(sentence("the Docker engine is off"), "The Docker engine is off.");
        assert_eq!(sentence("can't read it: no such file (2)"), "Can't read it: no such file (2).");
        for kept in ["codeinterp found nothing.", "/data/a.csv: gone!", "没有结论。", ""] {
            assert_eq!(sentence(kept), inline(kept));
        }
        assert_eq!(sentence("sales.csv is empty"), "sales.csv is empty.");
        assert_eq!(sentence("set `a_b` to *x* now"), "Set `a_b` to \\*x\\* now.");
        assert_eq!(sentence("an odd ` one"), "An odd \\` one.");
    }

    proptest! {
        #[test]
        fn nothing_breaks_out_of_a_fence(text in "(`|~|\n|\r|[a-z<!\\[\\]()]| ){0,40}") {
            let document = fenced(&text, "text");
            let blocks = Parser::new(&document).filter(|event| matches!(event, Event::Start(Tag::CodeBlock(_)))).count();
            let others = Parser::new(&document).filter(|event| matches!(event, Event::Start(tag) if !matches!(tag, Tag::CodeBlock(_))) || matches!(event, Event::Html(_) | Event::InlineHtml(_))).count();
            prop_assert_eq!((blocks, others), (1, 0));
        }

        #[test]
        fn inline_text_stays_text(text in "[\\PC]{0,40}") {
            let document = format!("x {} y", inline(&text));
            for event in Parser::new(&document) {
                let fine = matches!(&event, Event::Text(_) | Event::Start(Tag::Paragraph) | Event::End(_) | Event::SoftBreak);
                prop_assert!(fine, "{:?}", event);
            }
        }

        #[test]
        fn a_sentence_holds_nothing_but_text_and_code(text in "[\\PC]{0,40}") {
            let document = format!("x {} y", sentence(&text));
            for event in Parser::new(&document) {
                let fine = matches!(&event, Event::Text(_) | Event::Code(_) | Event::Start(Tag::Paragraph) | Event::End(_) | Event::SoftBreak);
                prop_assert!(fine, "{:?}", event);
            }
        }

        #[test]
        fn inline_code_stays_code(text in "[\\PC]{0,40}") {
            let document = format!("x {} y", code(&text));
            let codes = Parser::new(&document).filter(|event| matches!(event, Event::Code(_))).count();
            prop_assert_eq!(codes, 1);
        }
    }
}
