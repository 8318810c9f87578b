//! Open documents: their text, kept in step with the editor, and the arithmetic of positions.
//!
//! The protocol counts characters of a line in UTF-16 units unless something else was negotiated; the rest of this
//! crate counts bytes. Lines end with `\n`, `\r\n` or `\r`. Positions that do not exist are moved to the nearest
//! that does, as the protocol asks for: a line past the end means the end of the document, a character past the end
//! of a line its end, the middle of a surrogate pair its start.

use std::ops::Range;
use std::sync::Arc;

use tower_lsp::gen_lsp_types as lsp;

use crate::report::escape::head;

/// What `character` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, the protocol's default.
    #[default]
    Utf16,
    /// Code points.
    Utf32,
}

impl Encoding {
    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Units of a text. Counted by its bytes, without decoding: lines may be of many megabytes.
    fn units(self, text: &str) -> usize {
        /// Bytes that are counted in one byte: none counts for more than two.
        const RUN: usize = 127;
        // In UTF-8, a character has one byte that is no continuation, and begins with 0xF0 or more where it is a
        // surrogate pair in UTF-16.
        let begins = |byte: u8| u8::from(byte & 0xC0 != 0x80);
        let count = |of: fn(u8, u8) -> u8| -> usize {
            text.as_bytes().chunks(RUN).map(|run| usize::from(run.iter().map(|byte| of(*byte, begins(*byte))).sum::<u8>())).sum()
        };
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => count(|byte, begins| begins + u8::from(byte >= 0xF0)),
            Self::Utf32 => count(|_, begins| begins),
        }
    }
}

/// Bytes of a line that are counted at once on the way to a position.
const BLOCK: usize = 4 << 10;

/// The text of a document with its line starts.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// Shared with jobs that read it; copied when an edit comes meanwhile.
    text: Arc<String>,
    /// Byte offsets at which lines start; the first is 0. Empty stands for one empty line. Shared in the same way.
    lines: Arc<Vec<usize>>,
}

impl Text {
    /// A text.
    pub fn new(text: String) -> Self {
        let mut lines = vec![0];
        line_starts(text.as_bytes(), 1..text.len() + 1, &mut lines);
        Self { text: Arc::new(text), lines: Arc::new(lines) }
    }

    /// The text as it is now, cheap to keep.
    pub fn snapshot(&self) -> Arc<String> {
        Arc::clone(&self.text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Number of lines; an empty text has one.
    pub fn line_count(&self) -> usize {
        self.lines.len().max(1)
    }

    /// Bytes of line `line` (from 0) without its terminator; empty at the end for lines that do not exist.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let Some(start) = self.lines.get(line).copied() else {
            let end = self.text.len();
            return end..end;
        };
        let mut end = self.lines.get(line + 1).copied().unwrap_or(self.text.len());
        let bytes = self.text.as_bytes();
        if self.lines.len() > line + 1 {
            // All but the last line end with a terminator.
            end -= if bytes[end - 1] == b'\n' && end - start > 1 && bytes[end - 2] == b'\r' { 2 } else { 1 };
        }
        start..end
    }

    /// Line `line` (from 0) without its terminator.
    pub fn line(&self, line: usize) -> &str {
        &self.text[self.line_range(line)]
    }

    /// The line (from 0) that holds byte `offset`.
    pub fn line_of(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The byte at a position.
    pub fn offset(&self, position: lsp::Position, encoding: Encoding) -> usize {
        let range = self.line_range(position.line as usize);
        let line = &self.text[range.clone()];
        let wanted = position.character as usize;
        if line.is_ascii() {
            return range.start + wanted.min(line.len());
        }
        let (mut start, mut left) = (0, wanted);
        while line.len() - start > BLOCK {
            let block = head(&line[start..], BLOCK);
            let units = encoding.units(block);
            if units > left {
                break;
            }
            left -= units;
            start += block.len();
        }
        for (at, character) in line[start..].char_indices() {
            let width = encoding.width(character);
            if width > left {
                return range.start + start + at;
            }
            left -= width;
        }
        range.end
    }

    /// The position of a byte; an offset inside a terminator is the end of its line.
    pub fn position(&self, offset: usize, encoding: Encoding) -> lsp::Position {
        let offset = head(&self.text, offset).len();
        let line = self.line_of(offset);
        let range = self.line_range(line);
        let before = &self.text[range.start..offset.min(range.end)];
        lsp::Position { line: to_u32(line), character: to_u32(encoding.units(before)) }
    }

    /// The bytes of a range; a range that is the wrong way round is empty.
    pub fn bytes(&self, range: &lsp::Range, encoding: Encoding) -> Range<usize> {
        let start = self.offset(range.start, encoding);
        let end = self.offset(range.end, encoding);
        start..end.max(start)
    }

    /// The range of bytes.
    pub fn range(&self, bytes: &Range<usize>, encoding: Encoding) -> lsp::Range {
        lsp::Range { start: self.position(bytes.start, encoding), end: self.position(bytes.end, encoding) }
    }

    /// Replaces bytes by `new`. Both ends must be character boundaries, as [`Text::offset`] gives them.
    pub fn splice(&mut self, range: Range<usize>, new: &str) {
        let text = Arc::make_mut(&mut self.text);
        text.replace_range(range.clone(), new);
        let lines = Arc::make_mut(&mut self.lines);
        if lines.is_empty() {
            lines.push(0);
        }
        // Whether a line starts at `p` depends on the bytes at `p - 1` and `p` alone: starts before the edit and
        // starts more than one byte behind it stay, those between are found anew.
        let before = lines.partition_point(|start| *start < range.start.max(1));
        let after = lines.partition_point(|start| *start < range.end + 1);
        let mut fresh = Vec::new();
        let end = (range.start + new.len() + 1).min(text.len() + 1);
        line_starts(text.as_bytes(), range.start.max(1)..end, &mut fresh);
        let grown = new.len();
        let shrunk = range.end - range.start;
        for start in &mut lines[after..] {
            *start = *start + grown - shrunk;
        }
        lines.splice(before..after, fresh);
    }
}

/// Appends those offsets of `at` at which a line starts; the first offset of a text is none of them.
fn line_starts(bytes: &[u8], at: Range<usize>, starts: &mut Vec<usize>) {
    let before = at.start.saturating_sub(1);
    let terminators = memchr::memchr2_iter(b'\n', b'\r', bytes.get(before..at.end.saturating_sub(1)).unwrap_or_default());
    let ends = terminators.map(|terminator| before + terminator + 1);
    // A carriage return before a line feed ends nothing yet.
    starts.extend(ends.filter(|end| bytes[end - 1] == b'\n' || bytes.get(*end) != Some(&b'\n')));
}

/// Lines and characters beyond what the protocol can say are said as its largest number.
pub fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// How an edit moved lines: what was on lines after `last` is `delta` lines further down now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineShift {
    /// First line that the edit touched.
    pub first: u32,
    /// Last line that it touched, as they were counted before.
    pub last: u32,
    /// Lines that it added; negative where it removed some.
    pub delta: i64,
}

impl Text {
    /// Applies one change of `textDocument/didChange` and tells how lines moved. Whole-document changes give `None`.
    pub fn apply(&mut self, change: &lsp::TextDocumentContentChangeEvent, encoding: Encoding) -> Option<LineShift> {
        match change {
            lsp::TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                *self = Self::new(whole.text.clone());
                None
            }
            lsp::TextDocumentContentChangeEvent::TextDocumentContentChangePartial(partial) => {
                let bytes = self.bytes(&partial.range, encoding);
                let (first, last) = (self.line_of(bytes.start), self.line_of(bytes.end));
                let before = self.line_count();
                self.splice(bytes, &partial.text);
                let delta = i64::try_from(self.line_count()).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX);
                Some(LineShift { first: to_u32(first), last: to_u32(last), delta })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position(line: u32, character: u32) -> lsp::Position {
        lsp::Position { line, character }
    }

    #[test]
    fn characters_are_counted_as_negotiated() {
        let text = Text::new("a😀é\r\nb".to_owned());
        let check =
            |encoding, character, offset| assert_eq!(text.offset(position(0, character), encoding), offset, "{encoding:?} {character}");
        check(Encoding::Utf16, 1, 1);
        check(Encoding::Utf16, 2, 1); // inside the pair
        check(Encoding::Utf16, 3, 5);
        check(Encoding::Utf16, 4, 7);
        check(Encoding::Utf32, 2, 5);
        check(Encoding::Utf8, 5, 5);
        check(Encoding::Utf8, 3, 1); // inside the character
        check(Encoding::Utf16, 99, 7);
        assert_eq!(text.offset(position(9, 9), Encoding::Utf16), text.as_str().len());
        assert_eq!(text.position(7, Encoding::Utf16), position(0, 4));
        assert_eq!(text.position(8, Encoding::Utf16), position(0, 4)); // inside the terminator
        assert_eq!(text.position(9, Encoding::Utf16), position(1, 0));
    }

    #[test]
    fn terminators_of_all_three_kinds_end_lines() {
        let text = Text::new("a\rb\r\nc\n".to_owned());
        let lines: Vec<&str> = (0..text.line_count()).map(|line| text.line(line)).collect();
        assert_eq!(lines, ["a", "b", "c", ""]);
    }

    #[test]
    fn lines_move_with_edits_above_them() {
        let mut text = Text::new("a\nb\nc\n".to_owned());
        let change = lsp::TextDocumentContentChangePartial {
            range: lsp::Range { start: position(1, 0), end: position(1, 1) },
            text: "x\ny\nz".to_owned(),
            ..Default::default()
        };
        assert_eq!(text.apply(&change.into(), Encoding::Utf16), Some(LineShift { first: 1, last: 1, delta: 2 }));
        assert_eq!(text.as_str(), "a\nx\ny\nz\nc\n");
    }

    /// The same, done without any cleverness: the text as lines of UTF-16.
    fn model_offset(text: &[u16], at: lsp::Position) -> usize {
        let (mut line, mut start) = (0, 0);
        let mut index = 0;
        while line < at.line {
            match text.get(index) {
                None => return text.len(),
                Some(13) if text.get(index + 1) == Some(&10) => index += 2,
                Some(10 | 13) => index += 1,
                Some(_) => {
                    index += 1;
                    continue;
                }
            }
            line += 1;
            start = index;
        }
        let mut end = start;
        while !matches!(text.get(end), None | Some(10 | 13)) {
            end += 1;
        }
        let mut offset = (start + at.character as usize).min(end);
        if offset < end && (0xDC00..0xE000).contains(&text[offset]) && offset > start {
            offset -= 1;
        }
        offset
    }

    proptest! {
        #[test]
        fn edits_agree_with_a_simple_model(
            start in "[a\r\n😀é\u{301},]{0,20}",
            edits in proptest::collection::vec(((0u32..6, 0u32..8), (0u32..6, 0u32..8), "[b\r\n𐐀x]{0,4}"), 0..12),
        ) {
            let mut text = Text::new(start.clone());
            let mut model: Vec<u16> = start.encode_utf16().collect();
            for ((line, character), (line2, character2), new) in edits {
                let range = lsp::Range { start: position(line, character), end: position(line2, character2) };
                let from = model_offset(&model, range.start);
                let to = model_offset(&model, range.end).max(from);
                model.splice(from..to, new.encode_utf16());
                let change = lsp::TextDocumentContentChangePartial { range, text: new, ..Default::default() };
                text.apply(&change.into(), Encoding::Utf16);
                prop_assert_eq!(text.as_str(), String::from_utf16(&model).expect("whole characters"));
                prop_assert_eq!(&text.lines, &Text::new(text.as_str().to_owned()).lines);
            }
        }

        #[test]
        fn positions_in_lines_of_any_length_agree_with_a_walk(
            piece in "[aé😀漢\u{301}]{1,9}",
            before in "[aé]{0,3}",
            wanted in 0..3 * BLOCK,
        ) {
            let line = format!("{before}{}", piece.repeat(3 * BLOCK / piece.len()));
            let text = Text::new(format!("x\n{line}\ny"));
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let mut units = 0;
                let past = line.char_indices().find(|(_, character)| {
                    units += encoding.width(*character);
                    units > wanted
                });
                let walked = 2 + past.map_or(line.len(), |(at, _)| at);
                prop_assert_eq!(text.offset(position(1, to_u32(wanted)), encoding), walked);
                let before: usize = text.as_str()[2..walked].chars().map(|character| encoding.width(character)).sum();
                prop_assert_eq!(text.position(walked, encoding), position(1, to_u32(before)));
            }
        }

        #[test]
        fn no_position_is_out_of_reach(start in ".{0,30}", line in any::<u32>(), character in any::<u32>()) {
            let text = Text::new(start);
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let offset = text.offset(position(line, character), encoding);
                prop_assert!(text.as_str().is_char_boundary(offset));
                let there = text.position(offset, encoding);
                prop_assert_eq!(text.offset(there, encoding), offset);
            }
        }
    }
}
