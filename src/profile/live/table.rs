//! The profile of delimited text: its records are read once, and those of columns of mixed kinds a second time.

use std::borrow::Cow;
use std::collections::HashSet;

use super::columns::Collector;
use super::problems::{Problem, ProblemKind, Problems};
use super::rows::{Record, Records};
use super::values::{Value, is_missing};
use super::{Format, LiveProfile, MAX_COLUMNS};

/// Rows between two looks at whether the work is stale.
const STALE_EVERY: u64 = 2_048;

/// Rows by which the number of all is guessed.
const SAMPLE: u64 = 100;

/// Names as pandas gives them: the second `a` is `a.1`, an empty one `Unnamed: 3`.
fn names(header: &[Cow<'_, str>]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    header
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let base = if name.is_empty() { format!("Unnamed: {at}") } else { name.to_string() };
            let mut free = base.clone();
            let mut number = 0;
            while !taken.insert(free.clone()) {
                number += 1;
                free = format!("{base}.{number}");
            }
            free
        })
        .collect()
}

/// A row as bytes that are equal for equal rows: values without their quotes, missing ones empty. A row without either
/// is these bytes as it stands.
fn canonical_row(text: &str, record: &Record, delimiter: u8, canonical: &mut Vec<u8>) {
    for (at, cell) in record.cells.iter().enumerate() {
        if at > 0 {
            canonical.push(delimiter);
        }
        let value = cell.value(text);
        if !is_missing(&value) {
            // A delimiter inside of a value is none: no byte of UTF-8 stands for it.
            canonical.extend(value.bytes().map(|byte| if byte == delimiter { 0xff } else { byte }));
        }
    }
}

/// The profile of delimited text.
pub(super) fn of_delimited(text: &str, delimiter: u8, stale: &dyn Fn() -> bool) -> Option<LiveProfile> {
    let mut problems = Problems::default();
    let mut records = Records::new(text, delimiter);
    let header = records.next()?;
    let width = header.cells.len();
    let titles: Vec<Cow<'_, str>> = header.cells.iter().take(MAX_COLUMNS).map(|cell| cell.value(text)).collect();
    problems.header(&header, &titles);
    let mut collector = Collector::new(names(&titles));
    let mut starts = vec![u32::try_from(header.start).ok()?];
    let mut record = Record::default();
    let mut canonical = Vec::new();
    let mut number = 0_u64;
    while records.read(&mut record) {
        number += 1;
        if number.is_multiple_of(STALE_EVERY) && stale() {
            return None;
        }
        starts.push(u32::try_from(record.start).ok()?);
        if number == SAMPLE {
            // Growing step by step would take longer than all else.
            let rows = (text.len() as u64).saturating_mul(SAMPLE) / (record.start as u64 + 1);
            collector.expect_rows(usize::try_from(rows + rows / 8).unwrap_or(0).min(text.len()));
        }
        problems.record(&record, width);
        let mut plain = true;
        for (column, cell) in record.cells.iter().enumerate() {
            let missing = collector.first(column, &Value::Raw(cell.value(text)));
            plain &= !cell.quoted && (!missing || cell.range.is_empty());
        }
        if plain {
            let end = record.cells.last().map_or(record.start, |cell| cell.range.end);
            collector.row(&text.as_bytes()[record.start..end]);
        } else {
            canonical.clear();
            canonical_row(text, &record, delimiter, &mut canonical);
            collector.row(&canonical);
        }
    }
    if collector.turn() {
        let mut again = Records::new(text, delimiter);
        again.read(&mut record);
        number = 0;
        while again.read(&mut record) {
            number += 1;
            if number.is_multiple_of(STALE_EVERY) && stale() {
                return None;
            }
            for (column, cell) in record.cells.iter().enumerate() {
                if !collector.needs_second(column) {
                    continue;
                }
                if let Some(expected) = collector.second(column, &Value::Raw(cell.value(text))) {
                    let kind = ProblemKind::OddCell { column: titles[column].to_string(), expected };
                    problems.push(Problem { range: cell.range.clone(), kind });
                }
            }
        }
    }
    problems.mixed((0..titles.len()).map(|column| collector.offenders(column)));
    problems.characters(text);
    let (rows, duplicate_rows) = (collector.row_count, collector.duplicates);
    let (problems, problem_count) = problems.finish();
    Some(LiveProfile {
        format: Format::Delimited(Some(delimiter)),
        rows,
        duplicate_rows,
        columns: collector.finish(),
        problems,
        problem_count,
        starts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique_as_pandas_does() {
        let header = ["a", "a", "", "a.1"].map(Cow::Borrowed);
        assert_eq!(names(&header), ["a", "a.1", "Unnamed: 2", "a.1.1"]);
    }

    #[test]
    fn duplicate_rows_are_counted() {
        let profile = of_delimited("a,b\n1,2\n1,2\n1,3\n1,2\n", b',', &|| false).expect("a profile");
        assert_eq!((profile.rows, profile.duplicate_rows), (4, 2));
        let profile = of_delimited("a,b\n\"1\",NA\n1,\n\"x,y\",z\n\"x\",\"y,z\"\n", b',', &|| false).expect("a profile");
        assert_eq!((profile.rows, profile.duplicate_rows), (4, 1));
    }
}
