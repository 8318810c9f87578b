//! Where a run's results stand in its document, as edits move the lines.

use super::documents::LineShift;

/// The lines of its document that a run is about, as edits move them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// First line.
    pub first: u32,
    /// Last line, included.
    pub last: u32,
    /// It is about the whole document: its results stand on the first line.
    pub whole: bool,
    /// What it is about was changed since.
    pub stale: bool,
}

impl Anchor {
    /// Moves with an edit; `None` is a change of the whole text.
    pub fn edited(&mut self, shift: Option<LineShift>) {
        let Some(shift) = shift else {
            self.stale = true;
            return;
        };
        if self.whole {
            self.stale = true;
        } else if shift.last < self.first {
            self.first = moved(self.first, shift.delta);
            self.last = moved(self.last, shift.delta);
        } else if shift.first <= self.last {
            self.stale = true;
            self.last = moved(self.last, shift.delta).max(self.first);
        }
    }

    /// The line at whose end results stand.
    pub fn line(&self) -> u32 {
        if self.whole { 0 } else { self.last }
    }
}

fn moved(line: u32, delta: i64) -> u32 {
    u32::try_from((i64::from(line) + delta).max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(first: u32, last: u32) -> Anchor {
        Anchor { first, last, whole: false, stale: false }
    }

    fn edited(mut anchor: Anchor, first: u32, last: u32, delta: i64) -> (u32, u32, bool) {
        anchor.edited(Some(LineShift { first, last, delta }));
        (anchor.first, anchor.last, anchor.stale)
    }

    #[test]
    fn results_move_with_the_lines_that_they_are_about() {
        assert_eq!(edited(anchor(5, 7), 1, 1, 2), (7, 9, false));
        assert_eq!(edited(anchor(5, 7), 1, 3, -2), (3, 5, false));
        assert_eq!(edited(anchor(5, 7), 8, 8, 4), (5, 7, false));
        assert_eq!(edited(anchor(5, 7), 6, 6, 1), (5, 8, true));
        assert_eq!(edited(anchor(5, 7), 0, 9, -9), (5, 5, true));
    }

    #[test]
    fn any_edit_makes_results_about_a_whole_document_stale() {
        let mut whole = Anchor { first: 0, last: 0, whole: true, stale: false };
        whole.edited(Some(LineShift { first: 90, last: 90, delta: 0 }));
        assert!(whole.stale);
    }
}
