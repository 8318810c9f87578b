//! Cells: `# %%` sections of Python documents, and fenced python blocks of Markdown documents.

use std::ops::Range;

use super::documents::Text;

/// Cells that are looked for in one document.
const MAX_CELLS: usize = 500;

/// Lines of a document that are looked at because they may begin or end a cell. The rest of a document of many
/// megabytes is only searched for them, at the speed of memory.
const MAX_CANDIDATES: usize = 20_000;

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The line of its marker or opening fence.
    pub head: usize,
    /// The lines of its code.
    pub code: Range<usize>,
}

/// The cells of a document, in order. A Python document without markers has none.
pub fn cells(text: &Text, language: &str) -> Vec<Cell> {
    match language {
        "python" => sections(text),
        "markdown" | "quarto" | "rmd" => fences(text),
        _ => Vec::new(),
    }
}

/// The cell that holds a line. A Python document without markers is one cell.
pub fn cell_at(text: &Text, language: &str, line: usize) -> Option<Cell> {
    let found = cells(text, language);
    if found.is_empty() && language == "python" {
        return Some(Cell { head: 0, code: trimmed(text, 0..text.line_count()) });
    }
    found.into_iter().rev().find(|cell| cell.head <= line && line <= cell.code.end)
}

/// A line that begins a section, as Jupytext, Spyder and VS Code know it.
fn is_marker(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('#') else { return false };
    rest.trim_start().starts_with("%%")
}

/// The lines that hold `mark`, in order.
fn lines_with<'a>(text: &'a Text, mark: &'static [u8]) -> impl Iterator<Item = usize> + 'a {
    let finder = memchr::memmem::Finder::new(mark);
    let mut from = 0;
    std::iter::from_fn(move || {
        let found = from + finder.find(&text.as_str().as_bytes()[from..])?;
        let line = text.line_of(found);
        from = text.line_range(line).end;
        Some(line)
    })
}

fn sections(text: &Text) -> Vec<Cell> {
    let markers: Vec<usize> =
        lines_with(text, b"%%").take(MAX_CANDIDATES).filter(|line| is_marker(text.line(*line))).take(MAX_CELLS).collect();
    markers
        .iter()
        .enumerate()
        .map(|(at, head)| {
            let end = markers.get(at + 1).copied().unwrap_or(text.line_count());
            Cell { head: *head, code: trimmed(text, head + 1..end) }
        })
        .collect()
}

/// Without blank lines at the end.
fn trimmed(text: &Text, lines: Range<usize>) -> Range<usize> {
    let mut end = lines.end;
    while end > lines.start && text.line(end - 1).trim().is_empty() {
        end -= 1;
    }
    lines.start..end
}

fn fences(text: &Text) -> Vec<Cell> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, char, bool)> = None;
    let marks: [&[u8]; 2] = [b"```", b"~~~"];
    let mut candidates: Vec<usize> = marks.into_iter().flat_map(|mark| lines_with(text, mark).take(MAX_CANDIDATES)).collect();
    candidates.sort_unstable();
    candidates.dedup();
    for line in candidates {
        let content = text.line(line).trim_start();
        let Some(mark) = content.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { continue };
        let length = content.chars().take_while(|character| *character == mark).count();
        if length < 3 {
            continue;
        }
        match open {
            None => {
                let info = content[length..].trim().trim_start_matches('{');
                let language = info.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
                open =
                    Some((line, length, mark, matches!(language.to_ascii_lowercase().as_str(), "python" | "py" | "python3" | "ipython")));
            }
            Some((head, fence, opener, python)) if mark == opener && length >= fence && content[length..].trim().is_empty() => {
                if python && found.len() < MAX_CELLS {
                    found.push(Cell { head, code: head + 1..line });
                }
                open = None;
            }
            Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, text: &str, expected: &[(usize, Range<usize>)]) {
        let found: Vec<_> = cells(&Text::new(text.to_owned()), language).into_iter().map(|cell| (cell.head, cell.code)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn python_is_cut_at_its_markers() {
        check("python", "import os\n# %% one\na = 1\n\n#%%\nb\n", &[(1, 2..3), (4, 5..6)]);
        check("python", "x = '%%'\n", &[]);
    }

    #[test]
    fn markdown_has_its_python_fences() {
        check("markdown", "text\n```python\na\nb\n```\n~~~sh\nls\n~~~\n````{python}\n```\n````\n", &[(1, 2..4), (8, 9..10)]);
        check("markdown", "```python\nnever closed\n", &[]);
    }

    #[test]
    fn a_line_belongs_to_the_cell_around_it() {
        let text = Text::new("# %%\na\n# %%\nb\n".to_owned());
        assert_eq!(cell_at(&text, "python", 1).map(|cell| cell.code), Some(1..2));
        assert_eq!(cell_at(&text, "python", 2).map(|cell| cell.code), Some(3..4));
        let plain = Text::new("a\nb\n\n".to_owned());
        assert_eq!(cell_at(&plain, "python", 0).map(|cell| cell.code), Some(0..2));
    }
}
