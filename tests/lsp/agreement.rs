//! The live profile against the exact one that the sandbox makes of the same text.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use codeinterp::profile::live::{self, Format};
use codeinterp::profile::{Profile, ProfileOutcome};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const TABLES: usize = 60;

/// The Python with the profiler's packages; its absence fails the test.
fn python() -> PathBuf {
    if let Some(path) = std::env::var_os("PROFILER_PYTHON") {
        return PathBuf::from(path);
    }
    let cache =
        std::env::var_os("XDG_CACHE_HOME").map_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"), PathBuf::from);
    cache.join("codeinterp-testbed/profiler-python/bin/python")
}

/// A column of a clean table: cells of one kind, some of them missing.
fn column() -> impl Strategy<Value = Vec<String>> {
    let cells = |pattern: &'static str| proptest::collection::vec(pattern, 40).boxed();
    let kinds = prop_oneof![
        cells("-?[1-9][0-9]{0,4}"),
        cells("[1-9]?[0-9]\\.[0-9]{1,3}"),
        cells("(True|False)"),
        cells("[a-z]{3,8}( [a-z]{3,5})?"),
        cells("20[0-4][0-9]-0[1-9]-[12][0-9]"),
        cells("[一-十]{2,4}"),
    ];
    (kinds, proptest::collection::vec(prop::bool::weighted(0.1), 40), any::<bool>()).prop_map(|(mut cells, missing, gaps)| {
        for (cell, missing) in cells.iter_mut().zip(missing) {
            if gaps && missing {
                cell.clear();
            }
        }
        cells
    })
}

fn table() -> impl Strategy<Value = String> {
    (proptest::collection::vec(column(), 3..7), 20_usize..40, any::<bool>()).prop_map(|(columns, rows, repeat)| {
        let names: Vec<String> = (0..columns.len()).map(|at| format!("col_{at}")).collect();
        let mut text = names.join(",");
        text.push('\n');
        for row in 0..rows {
            let from = if repeat && row % 7 == 6 { row - 1 } else { row };
            let cells: Vec<&str> = columns.iter().map(|column| column[from].as_str()).collect();
            writeln!(text, "{}", cells.join(",")).unwrap();
        }
        text
    })
}

/// The exact profiles of these files.
fn exact(files: &[PathBuf]) -> Vec<Profile> {
    let image = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/sandbox/image");
    let output = Command::new(python()).args(["-m", "profiler"]).args(files).current_dir(image).output().expect("the profiler's Python");
    let outcomes: Vec<ProfileOutcome> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    outcomes.iter().map(|outcome| outcome.profile().expect("a profile").clone()).collect()
}

#[test]
fn live_and_exact_profiles_of_clean_tables_agree() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = TestRunner::deterministic();
    let strategy = table();
    let texts: Vec<String> = (0..TABLES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let files: Vec<PathBuf> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let path = folder.path().join(format!("{number}.csv"));
            std::fs::write(&path, text).unwrap();
            path
        })
        .collect();
    for (text, exact) in texts.iter().zip(exact(&files)) {
        let live = live::profile(text, Format::Delimited(None), &|| false).unwrap();
        assert_eq!((Some(live.rows), Some(live.columns.len() as u64)), (exact.rows, exact.columns), "{text}");
        assert_eq!(Some(live.duplicate_rows), exact.duplicate_rows, "{text}");
        for (live, exact) in live.columns.iter().zip(&exact.columns_detail) {
            assert_eq!((&live.name, live.missing), (&exact.name, exact.missing), "{text}");
            assert_eq!(Some(live.distinct), exact.distinct, "{}: {text}", live.name);
            // Dates are loaded as dates where the profile's own code says so.
            if !exact.dtype.starts_with("datetime") {
                assert_eq!(live.dtype(), exact.dtype, "{}: {text}", live.name);
            }
            if let (Some((low, high)), Some(least), Some(most)) = (&live.range, exact.min.as_f64(), exact.max.as_f64()) {
                assert_eq!((low.parse(), high.parse()), (Ok(least), Ok(most)), "{}: {text}", live.name);
            }
        }
        assert_eq!(live.problem_count, 0, "{:?} in {text}", live.problems);
    }
}
