//! What a turn's text asks for: which fenced blocks are whole Python blocks, and which are not to be run.
//!
//! Fences are found by a `CommonMark` parser, never by a pattern. Text inside reasoning is removed before, so that
//! code that a model only thinks about is never run.

use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use regex::Regex;

/// The parts of a turn's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Whole Python blocks, in order.
    pub python: Vec<String>,
    /// A Python fence was opened and not closed.
    pub unclosed: bool,
    /// Language of the first block in a programming language other than Python.
    pub other_language: Option<String>,
    /// The text without reasoning and without Python blocks.
    pub prose: String,
    /// The text without reasoning.
    pub visible: String,
}

/// Info strings that mean Python.
const PYTHON: [&str; 6] = ["python", "py", "python3", "ipython", "ipython3", "pycon3"];

/// Info strings of blocks that show something and are no program.
const NO_PROGRAM: [&str; 22] = [
    "",
    "text",
    "txt",
    "plain",
    "plaintext",
    "output",
    "console",
    "json",
    "jsonl",
    "csv",
    "tsv",
    "markdown",
    "md",
    "yaml",
    "yml",
    "toml",
    "xml",
    "html",
    "mermaid",
    "latex",
    "math",
    "log",
];

/// Reads a turn's text.
pub fn parse(text: &str) -> Parsed {
    let visible = without_reasoning(text);
    let mut parsed = Parsed::default();
    let mut prose = String::new();
    let mut copied = 0;
    let mut block: Option<(String, String, std::ops::Range<usize>)> = None;
    for (event, range) in Parser::new(&visible).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                block = Some((language(&info), String::new(), range));
            }
            Event::Text(code) => {
                if let Some((_, body, _)) = &mut block {
                    body.push_str(&code);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                let Some((language, body, range)) = block.take() else { continue };
                if PYTHON.contains(&language.as_str()) {
                    prose.push_str(&visible[copied..range.start]);
                    copied = range.end;
                    if !is_closed(&visible[range]) {
                        parsed.unclosed = true;
                    } else if !body.trim().is_empty() {
                        parsed.python.push(body.trim_end().to_owned());
                    }
                } else if !NO_PROGRAM.contains(&language.as_str()) || (language.is_empty() && looks_like_python(&body)) {
                    parsed.other_language.get_or_insert(if language.is_empty() { "no named".to_owned() } else { language });
                }
            }
            _ => {}
        }
    }
    prose.push_str(&visible[copied..]);
    prose.trim().clone_into(&mut parsed.prose);
    visible.trim().clone_into(&mut parsed.visible);
    parsed
}

/// The language of an info string such as `Python title="x"` or `{python}`.
fn language(info: &str) -> String {
    info.split(|c: char| c.is_whitespace() || c == ',' || c == ':')
        .next()
        .unwrap_or_default()
        .trim_matches(['{', '}', '.'])
        .to_ascii_lowercase()
}

/// Whether the block's last line is a closing fence. An unclosed block reaches to the end of its container instead.
fn is_closed(block: &str) -> bool {
    let lines: Vec<&str> = block.trim_end().lines().collect();
    let [first, .., last] = lines.as_slice() else { return false };
    let opening = first.trim_start();
    let Some(mark) = opening.chars().next() else { return false };
    let length = opening.chars().take_while(|c| *c == mark).count();
    let closing = last.trim_start_matches(|c: char| c == '>' || c.is_whitespace()).trim_end();
    closing.chars().all(|c| c == mark) && closing.chars().count() >= length
}

/// Whether a block without a named language is meant as Python: enough to ask, never enough to run it.
fn looks_like_python(body: &str) -> bool {
    body.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("import ")
            || line.starts_with("from ") && line.contains(" import ")
            || line.starts_with("print(")
            || line.starts_with("plt.")
    })
}

/// The text without `<think>…</think>` and its relatives. An opening tag without its end hides the rest; an end
/// without an opening tag hides what stands before it (chat templates that open the tag in the prompt).
pub fn without_reasoning(text: &str) -> String {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?i)<(/?)(?:think|thinking|thought|reasoning)>").unwrap());
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut from = 0;
    for found in TAG.captures_iter(text) {
        let (Some(whole), Some(slash)) = (found.get(0), found.get(1)) else { continue };
        if slash.is_empty() {
            if depth == 0 {
                out.push_str(&text[from..whole.start()]);
            }
            depth += 1;
        } else if depth == 0 {
            out.clear();
        } else {
            depth -= 1;
        }
        from = whole.end();
    }
    if depth == 0 {
        out.push_str(&text[from..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_python_blocks_are_found_in_order() {
        let parsed = parse("First\n```python\nx = 1\n```\nthen\n~~~py\nprint(x)\n~~~\ndone");
        assert_eq!(parsed.python, ["x = 1", "print(x)"]);
        assert_eq!(parsed.prose, "First\n\nthen\n\ndone");
        assert!(!parsed.unclosed);
    }

    #[test]
    fn half_a_fence_is_not_code() {
        for text in ["```python\nprint(1)", "```python\nprint(1)\n``", "text\n```python", "````python\nprint(1)\n```\n"] {
            let parsed = parse(text);
            assert!(parsed.python.is_empty() && parsed.unclosed, "{text:?}: {parsed:?}");
        }
    }

    #[test]
    fn code_inside_reasoning_is_not_code() {
        for text in [
            "<think>\n```python\nprint(1)\n```\n</think>\nDone.",
            "```python\nprint(1)\n```\n</think>\nDone.",
            "Done.\n<THINK>\n```python\nprint(1)\n```\n",
            "<thinking>a<think>b</think>```python\nprint(1)\n```\n</thinking>Done.",
        ] {
            let parsed = parse(text);
            assert!(parsed.python.is_empty() && !parsed.unclosed, "{text:?}: {parsed:?}");
            assert_eq!(parsed.visible, "Done.", "{text:?}");
        }
    }

    #[test]
    fn other_languages_are_named_and_never_code() {
        let parsed = parse("```bash\nrm -rf /\n```");
        assert!(parsed.python.is_empty());
        assert_eq!(parsed.other_language.as_deref(), Some("bash"));
        assert_eq!(parse("```\na | b\n```").other_language, None);
        assert_eq!(parse("```json\n{}\n```").other_language, None);
        assert_eq!(parse("```\nimport os\n```").other_language.as_deref(), Some("no named"));
    }

    #[test]
    fn fences_inside_lists_and_quotes_are_found() {
        assert_eq!(parse("1. Load\n   ```python\n   x = 1\n   if x:\n       y = 2\n   ```\n").python, ["x = 1\nif x:\n    y = 2"]);
        assert_eq!(parse("> ```python\n> x = 1\n> ```\n").python, ["x = 1"]);
    }

    #[test]
    fn backticks_in_a_string_do_not_end_a_longer_fence() {
        assert_eq!(parse("````python\nprint('''\n```\n''')\n````").python, ["print('''\n```\n''')"]);
    }

    #[test]
    fn fences_with_windows_line_ends_are_found() {
        assert_eq!(parse("```Python\r\nx = 1\r\nprint(x)\r\n```\r\n").python.len(), 1);
    }
}
