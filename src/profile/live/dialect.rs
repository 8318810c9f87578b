//! The delimiter of delimited text, by how evenly each candidate divides the first records.

use super::rows;

/// In order of preference where two divide equally well.
const CANDIDATES: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Records that are looked at.
const SAMPLE: usize = 200;

/// The delimiter that gives most records the same number of cells, more than one. A text without any is a table of
/// one column: its delimiter is the comma. `None` for text without a record.
pub(super) fn delimiter(text: &str) -> Option<u8> {
    let mut best: Option<(u64, u8)> = None;
    let mut any = false;
    for candidate in CANDIDATES {
        let mut counts: Vec<usize> = Vec::with_capacity(SAMPLE);
        for record in rows::Records::new(text, candidate).take(SAMPLE) {
            counts.push(record.cells.len());
        }
        any |= !counts.is_empty();
        let Some((width, agreeing)) = most_frequent(&counts) else { continue };
        if width < 2 {
            continue;
        }
        // Agreement first; among equals, the one that divides more.
        let agreement = (agreeing * 1000 / counts.len()) as u64;
        let score = agreement * 1000 + (width.min(999)) as u64;
        if best.is_none_or(|(old, _)| score > old) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, delimiter)| delimiter).or(any.then_some(b','))
}

fn most_frequent(counts: &[usize]) -> Option<(usize, usize)> {
    let mut seen: Vec<(usize, usize)> = Vec::new();
    for count in counts {
        match seen.iter_mut().find(|(width, _)| width == count) {
            Some((_, times)) => *times += 1,
            None => seen.push((*count, 1)),
        }
    }
    seen.into_iter().max_by_key(|(width, times)| (*times, *width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_the_one_that_divides_evenly() {
        let check = |text: &str, expected: Option<u8>| assert_eq!(delimiter(text), expected, "{text:?}");
        check("a,b\n1,2\n", Some(b','));
        check("a;b\n1,5;2,5\n", Some(b';'));
        check("a\tb\n1\t2\n", Some(b'\t'));
        check("name|note\nx|a, b\ny|c\n", Some(b'|'));
        check("a,b\n\"1;2;3\",x\n", Some(b','));
        check("one\ntwo\n", Some(b','));
        check("", None);
        check("\n\n", None);
    }
}
