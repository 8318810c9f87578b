//! A run as a Python script: the steps that led to the answer, without those that failed.

use std::fmt::Write;

use super::escape;
use crate::agent::run::Run;

/// The codes of the steps that count: a step that raised left nothing that a later one needs, or the later one would
/// have failed too.
pub fn effective_codes(run: &Run) -> Vec<&str> {
    run.steps.iter().filter(|step| step.exit_code == 0).map(|step| step.code.as_str()).collect()
}

/// The script. Lines that only `IPython` understands (`!cmd`, `%magic`) are made comments.
pub fn script(run: &Run) -> String {
    let mut out = String::new();
    let question = escape::plain(&run.question).replace('\n', "\n# ");
    // Writing to a String can't fail.
    let _ = writeln!(
        out,
        "# {}\n#\n# Files, relative to the folder that this is run in:",
        if question.is_empty() { "Analysis" } else { &question }
    );
    for input in &run.inputs {
        let _ = writeln!(out, "#   {} (sha256 {})", escape::plain(&input.name).replace('\n', " "), escape::head(&input.sha256, 16));
    }
    for step in run.steps.iter().filter(|step| step.exit_code == 0) {
        let _ = writeln!(out, "\n# Step {}", step.step);
        for line in step.code.trim_end().lines() {
            let trimmed = line.trim_start();
            let magic = trimmed.starts_with('!')
                || (trimmed.starts_with('%') && !trimmed.starts_with("%%") && trimmed[1..].starts_with(char::is_alphabetic));
            let _ = writeln!(out, "{}{line}", if magic { "# " } else { "" });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::run::Step;

    #[test]
    fn failed_steps_and_magics_do_not_run_again() {
        let step = |number, code: &str, exit_code| Step { step: number, code: code.to_owned(), exit_code, ..Step::default() };
        let run = Run {
            question: "why?\nimport os".to_owned(),
            steps: vec![step(1, "x = 1", 0), step(2, "boom", 1), step(3, "!ls\nprint(x)", 0)],
            ..Run::default()
        };
        let script = script(&run);
        assert!(script.contains("x = 1") && !script.contains("boom") && script.contains("# !ls") && script.contains("# import os"));
    }
}
