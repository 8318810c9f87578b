//! What is selected in a document, as a file of the right kind, or as code.

use std::ops::Range;

use tower_lsp::gen_lsp_types as lsp;
use url::Url;

use crate::lsp::analysis::format_of;
use crate::lsp::cells;
use crate::lsp::documents::{Encoding, Text, to_u32};
use crate::profile::live::Format;

/// A selection as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Its name in the sandbox.
    pub name: String,
    /// Its text.
    pub text: String,
    /// First selected line.
    pub first: u32,
    /// Last selected line, included.
    pub last: u32,
    /// The document's header line was put before the rows.
    pub header_added: bool,
    /// A question that stands in the selection itself, in a comment: `# ? why did March drop`.
    pub question: Option<String>,
}

/// The name of a document that has no file.
pub fn untitled_name(language: &str) -> String {
    let extension = match language {
        "python" => "py",
        "markdown" => "md",
        "plaintext" | "" => "txt",
        other if other.len() <= 8 && other.bytes().all(|byte| byte.is_ascii_alphanumeric()) => other,
        _ => "txt",
    };
    format!("untitled.{extension}")
}

/// The lines that a range touches; one that ends before the first character of a line does not touch that line.
fn lines(range: &lsp::Range, text: &Text) -> (usize, usize) {
    let last = text.line_count() - 1;
    let (start, end) = if (range.start.line, range.start.character) <= (range.end.line, range.end.character) {
        (range.start, range.end)
    } else {
        (range.end, range.start)
    };
    let first = (start.line as usize).min(last);
    let until = (end.line as usize).min(last);
    if end.character == 0 && until > first { (first, until - 1) } else { (first, until) }
}

/// The bytes of whole lines, terminators included.
fn line_bytes(text: &Text, first: usize, last: usize) -> Range<usize> {
    let end = if last + 1 < text.line_count() { text.line_range(last + 1).start } else { text.as_str().len() };
    text.line_range(first).start..end
}

/// Bytes of the lines that are selected.
pub fn size(text: &Text, range: &lsp::Range) -> usize {
    let (first, last) = lines(range, text);
    line_bytes(text, first, last).len()
}

/// The selection as a file. `None` where nothing is selected in a data file: the question is about all of it.
pub fn select(text: &Text, uri: &Url, language: &str, range: &lsp::Range, encoding: Encoding) -> Option<Selected> {
    let format = format_of(uri, language);
    let empty = range.start == range.end;
    if empty && format.is_some() {
        return None;
    }
    let (first, last) = lines(range, text);
    let whole_lines = &text.as_str()[line_bytes(text, first, last)];
    let exact = &text.as_str()[text.bytes(range, encoding)];
    let (stem, extension) = stem_and_extension(uri, language);
    let mut header_added = false;
    let (body, extension) = match format {
        Some(Format::Delimited(_)) => {
            // A selection of whole rows of the whole file is the file.
            let header = header_line(text);
            header_added = first > header.unwrap_or(0);
            let head = if header_added { header.map(|line| &text.as_str()[line_bytes(text, line, line)]).unwrap_or_default() } else { "" };
            (format!("{head}{whole_lines}"), extension)
        }
        Some(Format::JsonLines) => (whole_lines.to_owned(), extension),
        Some(Format::Json) => json(exact, whole_lines),
        None if empty => (whole_lines.to_owned(), extension),
        None => (exact.to_owned(), extension),
    };
    let question = body.lines().find_map(comment_question);
    Some(Selected {
        name: format!("{stem}.selection.{extension}"),
        text: body,
        first: to_u32(first),
        last: to_u32(last),
        header_added,
        question,
    })
}

/// Selected JSON: the snippet where it is JSON by itself, else its lines as text.
fn json(exact: &str, whole_lines: &str) -> (String, String) {
    let trimmed = |text: &str| text.trim().trim_end_matches(',').to_owned();
    for candidate in [trimmed(exact), trimmed(whole_lines)] {
        if serde_json::from_str::<serde::de::IgnoredAny>(&candidate).is_ok() {
            return (candidate, "json".to_owned());
        }
    }
    let listed = format!("[{}]", trimmed(whole_lines));
    if serde_json::from_str::<serde::de::IgnoredAny>(&listed).is_ok() {
        return (listed, "json".to_owned());
    }
    (exact.to_owned(), "txt".to_owned())
}

/// The first line that is not blank.
fn header_line(text: &Text) -> Option<usize> {
    (0..text.line_count().min(100)).find(|line| !text.line(*line).trim().is_empty())
}

fn stem_and_extension(uri: &Url, language: &str) -> (String, String) {
    let untitled = untitled_name(language);
    let path = super::super::uris::path(uri);
    let name = path.as_deref().and_then(|path| path.file_name()).map_or(untitled, |name| name.to_string_lossy().into_owned());
    let plain = |text: &str| text.chars().map(|character| if character.is_control() { '_' } else { character }).collect::<String>();
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => (plain(stem), plain(extension)),
        _ => (plain(&name), "txt".to_owned()),
    }
}

/// A question in a comment line: `# ? why did March drop`, also behind `//`, `--`, `%` or `;`.
pub fn comment_question(line: &str) -> Option<String> {
    let line = line.trim_start();
    let rest = ["#", "//", "--", "%", ";"].iter().find_map(|mark| line.strip_prefix(mark))?;
    let question = rest.trim_start().strip_prefix('?')?.trim();
    (!question.is_empty()).then(|| question.to_owned())
}

/// The code of a selection, without common indentation, and its lines. Where nothing is selected: the cell there.
pub fn code(text: &Text, language: &str, range: &lsp::Range, encoding: Encoding) -> Option<(String, u32, u32)> {
    if range.start == range.end {
        let cell = cells::cell_at(text, language, range.start.line as usize)?;
        let code = text.as_str()[line_bytes(text, cell.code.start, cell.code.end.saturating_sub(1))].to_owned();
        return (cell.code.start < cell.code.end && !code.trim().is_empty())
            .then(|| (code, to_u32(cell.code.start), to_u32(cell.code.end - 1)));
    }
    let (first, last) = lines(range, text);
    let mut bytes = text.bytes(range, encoding);
    // A selection from within the indentation of a line means the whole line.
    let line = text.line_range(first);
    if text.as_str()[line.start..bytes.start.max(line.start)].trim().is_empty() {
        bytes.start = line.start;
    }
    let code = dedent(&text.as_str()[bytes]);
    (!code.trim().is_empty()).then_some((code, to_u32(first), to_u32(last)))
}

/// Takes away the indentation that all lines have.
fn dedent(code: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut lines = code.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return String::new() };
    let mut common = &first[..indentation(first)];
    for line in lines {
        let own = &line[..indentation(line)];
        let shared = common.bytes().zip(own.bytes()).take_while(|(a, b)| a == b).count();
        common = &common[..shared];
    }
    if common.is_empty() {
        return code.to_owned();
    }
    code.split_inclusive('\n').map(|line| line.strip_prefix(common).unwrap_or_else(|| line.trim_start_matches([' ', '\t']))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(uri: &str, text: &str) -> (Text, Url) {
        (Text::new(text.to_owned()), Url::parse(uri).expect("a URI"))
    }

    fn range(from: (u32, u32), to: (u32, u32)) -> lsp::Range {
        let position = |(line, character)| lsp::Position { line, character };
        lsp::Range { start: position(from), end: position(to) }
    }

    #[test]
    fn rows_get_the_header_and_other_text_its_own_kind() {
        let check = |uri: &str, language: &str, text: &str, selected: lsp::Range, name: &str, expected: &str, header: bool| {
            let (text, uri) = document(uri, text);
            let found = select(&text, &uri, language, &selected, Encoding::Utf16).expect("a selection");
            assert_eq!((found.name.as_str(), found.text.as_str(), found.header_added), (name, expected, header));
        };
        let csv = "a,b\n1,2\n3,4\n5,6\n";
        check("file:///w/t.csv", "csv", csv, range((2, 1), (3, 0)), "t.selection.csv", "a,b\n3,4\n", true);
        check("file:///w/t.csv", "csv", csv, range((0, 0), (2, 0)), "t.selection.csv", "a,b\n1,2\n", false);
        check("file:///w/t.csv", "csv", csv, range((3, 0), (1, 2)), "t.selection.csv", "a,b\n1,2\n3,4\n", true);
        check("file:///w/x.json", "json", "[{\"a\":1},\n{\"a\":2}]", range((0, 1), (0, 8)), "x.selection.json", "{\"a\":1}", false);
        check(
            "file:///w/x.json",
            "json",
            "[\n{\"a\":1},\n{\"a\":2}\n]",
            range((1, 0), (2, 7)),
            "x.selection.json",
            "[{\"a\":1},\n{\"a\":2}]",
            false,
        );
        check("file:///w/x.json", "json", "{\"a\": [1, 2]}", range((0, 2), (0, 9)), "x.selection.json", "{\"a\": [1, 2]}", false);
        check("file:///w/x.json", "json", "{\"a\":\n[1,\n2]}", range((0, 2), (1, 2)), "x.selection.txt", "a\":\n[1", false);
        check("file:///w/s.log", "log", "one\ntwo\n", range((0, 1), (1, 2)), "s.selection.log", "ne\ntw", false);
        check("untitled:Untitled-1", "plaintext", "x y", range((0, 0), (0, 1)), "untitled.selection.txt", "x", false);
    }

    #[test]
    fn without_a_selection_a_data_file_is_meant_as_a_whole() {
        let (text, uri) = document("file:///w/t.csv", "a\n1\n");
        assert_eq!(select(&text, &uri, "csv", &range((1, 0), (1, 0)), Encoding::Utf16), None);
    }

    #[test]
    fn questions_stand_in_comments() {
        assert_eq!(comment_question("  # ? why did March drop"), Some("why did March drop".to_owned()));
        assert_eq!(comment_question("//? how many"), Some("how many".to_owned()));
        assert_eq!(comment_question("# no question?"), None);
        assert_eq!(comment_question("#?"), None);
    }

    #[test]
    fn code_loses_its_common_indentation() {
        let (text, _) = document("file:///w/a.py", "def f():\n    x = 1\n    if x:\n        print(x)\n");
        let found = code(&text, "python", &range((1, 2), (4, 0)), Encoding::Utf16);
        assert_eq!(found, Some(("x = 1\nif x:\n    print(x)\n".to_owned(), 1, 3)));
        assert_eq!(code(&text, "python", &range((1, 0), (1, 4)), Encoding::Utf16), None);
    }
}
