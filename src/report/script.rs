//! A run as a Python script: the steps that led to the answer.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::escape;
use super::lineage::{Block, Check, Lineage};
use crate::agent::run::{InputFile, Run};

/// The script. What a replay of it said stands at its head.
pub fn script(run: &Run, lineage: &Lineage) -> String {
    let mut out = String::new();
    let question = if run.question.trim().is_empty() { "Analysis" } else { run.question.trim() };
    comment(&mut out, question);
    comment(&mut out, "");
    for input in &run.inputs {
        comment(&mut out, &format!("Data: {} (sha256 {})", input.name, escape::head(&input.sha256, 16)));
    }
    match &lineage.check {
        Check::Same => comment(&mut out, "Replayed in a fresh sandbox: every step printed and drew the same."),
        Check::Differs(_) => comment(&mut out, "Replayed in a fresh sandbox, with differences:"),
        Check::Skipped(_) => {}
    }
    for remark in lineage.remarks() {
        comment(&mut out, &format!("- {remark}"));
    }
    if let Some(setup) = setup(run, lineage) {
        let _ = write!(out, "\n{setup}");
    }
    if lineage.blocks.iter().any(|block| block.code.contains("display(")) {
        out.push_str("\ntry:\n    from IPython.display import display\nexcept ImportError:\n    display = print\n");
    }
    for block in &lineage.blocks {
        let _ = writeln!(out, "\n# {}", heading(block));
        if let Some(code) = &block.script {
            let _ = writeln!(out, "{}", code.trim_end());
        } else {
            comment(&mut out, "It works in IPython and Jupyter only:");
            comment(&mut out, block.code.trim_end());
        }
    }
    out
}

/// What a block is, in a line.
pub(super) fn heading(block: &Block) -> String {
    let partial = if block.partial { ", which raised; what it did before that" } else { "" };
    let earlier =
        block.earlier.as_deref().map(|question| format!(" of the earlier question {}", escape::plain(question).replace('\n', " ")));
    format!("Step {}{}{partial}", block.step, earlier.unwrap_or_default())
}

fn comment(out: &mut String, text: &str) {
    for line in escape::plain(text).split('\n') {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{}", format!("# {line}").trim_end());
    }
}

/// Python that must run before the steps, so that they find their data.
pub(super) fn setup(run: &Run, lineage: &Lineage) -> Option<String> {
    if lineage.data.is_empty() {
        return way_to_the_data(&run.inputs);
    }
    let mut out = "import os\n".to_owned();
    for (name, text) in &lineage.data {
        // A string literal of JSON is one of Python as well.
        let (name, text) = (serde_json::to_string(name).ok()?, serde_json::to_string(text).ok()?);
        let _ = write!(
            out,
            "\nif not os.path.exists({name}):\n    with open({name}, \"w\", encoding=\"utf-8\", newline=\"\") as file:\n        file.write({text})\n"
        );
    }
    Some(out)
}

/// Python that goes to the folder of the data, where that stands elsewhere than the script and its place is known.
fn way_to_the_data(inputs: &[InputFile]) -> Option<String> {
    let folder = common_folder(inputs)?;
    let name = &inputs.first()?.name;
    let literal = |text: &str| serde_json::to_string(text).ok();
    Some(format!(
        "import os\n\nif not os.path.exists({name}):\n    os.chdir({folder})  # where the data stood\n",
        name = literal(name)?,
        folder = literal(folder.to_str()?)?
    ))
}

/// The folder that all names are relative to, where the files still have the names by which the code knows them.
fn common_folder(inputs: &[InputFile]) -> Option<PathBuf> {
    let folders: BTreeSet<PathBuf> = inputs
        .iter()
        .map(|input| {
            let source = Path::new(&input.source);
            let folder = source.ancestors().nth(Path::new(&input.name).components().count())?;
            (source.is_absolute() && source.ends_with(&input.name)).then(|| folder.to_owned())
        })
        .collect::<Option<_>>()?;
    if folders.len() == 1 { folders.into_iter().next() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::run::Step;

    fn input(name: &str, source: &str) -> InputFile {
        InputFile { name: name.to_owned(), source: source.to_owned(), sha256: String::new(), bytes: 1 }
    }

    #[test]
    fn failed_steps_do_not_run_and_a_question_stays_a_comment() {
        let step = |number, code: &str, exit_code| Step { step: number, code: code.to_owned(), exit_code, ..Step::default() };
        let run = Run {
            question: "why?\nimport os".to_owned(),
            steps: vec![step(1, "x = 1", 0), step(2, "boom", 1), step(3, "print(x)", 0)],
            ..Run::default()
        };
        let script = script(&run, &Lineage::unchecked(&run, "no sandbox"));
        assert!(script.contains("x = 1") && !script.contains("boom") && script.contains("# import os"), "{script}");
        assert!(script.contains("# - It was not replayed in a fresh sandbox: no sandbox"), "{script}");
    }

    #[test]
    fn the_data_is_found_where_it_stood() {
        let way = way_to_the_data(&[input("data/a.csv", "/w/data/a.csv"), input("b.csv", "/w/b.csv")]).unwrap_or_default();
        assert!(way.contains("os.path.exists(\"data/a.csv\")") && way.contains("os.chdir(\"/w\")"), "{way}");
        for elsewhere in [vec![input("a.csv", "/w/a.csv"), input("b.csv", "/v/b.csv")], vec![input("a.csv", "untitled:a")], vec![]] {
            assert_eq!(way_to_the_data(&elsewhere), None);
        }
    }
}
