//! A run as a Jupyter notebook: nbformat 4.5, with outputs.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::lineage::Lineage;
use super::script::{heading, setup};
use super::{escape, mime, sanitize};
use crate::agent::execution::{ExecutionError, MimeBundle, Output};
use crate::agent::run::{Run, Step};

/// Gives an artifact's MIME type and its contents as a notebook holds them.
pub type Artifacts<'a> = &'a dyn Fn(&str) -> Option<(String, Value)>;

/// The notebook, with the artifacts that its outputs show in itself.
///
/// Cells are the question, what a replay said, the steps and the answer. Steps that failed are told in words: a
/// notebook tells what happened, and yet runs from its first cell to its last.
pub fn notebook(run: &Run, lineage: &Lineage, artifact: Artifacts<'_>) -> Value {
    let mut cells =
        vec![markdown_cell("question", &format!("# {}", escape::inline(if run.question.is_empty() { "Analysis" } else { &run.question })))];
    let remarks: Vec<String> = lineage.remarks().iter().map(|remark| format!("- {}", escape::inline(remark))).collect();
    if !remarks.is_empty() {
        cells.push(markdown_cell("remarks", &remarks.join("\n")));
    }
    if let Some(setup) = setup(run, lineage) {
        cells.push(plain_code_cell("data", setup.trim_end()));
    }
    for (place, block) in lineage.blocks.iter().enumerate().filter(|(_, block)| block.earlier.is_some()) {
        cells.push(plain_code_cell(&format!("earlier-{place}"), &format!("# {}\n{}", heading(block), block.code)));
    }
    for step in &run.steps {
        if !step.note.trim().is_empty() {
            cells.push(markdown_cell(&format!("note-{}", step.step), &sanitized(step.note.trim())));
        }
        match lineage.blocks.iter().find(|block| block.earlier.is_none() && block.step == step.step) {
            Some(block) if block.partial => {
                cells.push(plain_code_cell(&format!("step-{}", step.step), &block.code));
                cells.push(failure(step));
            }
            Some(_) => cells.push(code_cell(step, artifact)),
            None => cells.push(failure(step)),
        }
    }
    if let Some(answer) = &run.final_answer {
        cells.push(markdown_cell("answer", &sanitized(answer)));
    }
    json!({
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

/// Markdown of a model. Charts stand in the outputs of their steps, and no file stands beside a notebook.
fn sanitized(markdown: &str) -> String {
    sanitize::sanitize(markdown, &HashSet::new(), "")
}

/// A step that is told and not run again.
fn failure(step: &Step) -> Value {
    let what = step
        .error
        .as_ref()
        .map_or_else(|| format!("exit code {}", step.exit_code), |error| format!("{}: {}", error.ename, escape::head(&error.evalue, 300)));
    let text = format!("**Step {} failed:** {}\n\n{}", step.step, escape::inline(&what), escape::fenced(&step.code, "python"));
    markdown_cell(&format!("failed-{}", step.step), &text)
}

fn plain_code_cell(id: &str, code: &str) -> Value {
    json!({"cell_type": "code", "id": id, "metadata": {}, "execution_count": null, "source": code, "outputs": []})
}

fn markdown_cell(id: &str, text: &str) -> Value {
    json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": text})
}

fn code_cell(step: &Step, artifact: Artifacts<'_>) -> Value {
    let mut outputs: Vec<Value> = step.outputs.iter().filter_map(|output| output_of(step, output, artifact)).collect();
    if step.outputs.is_empty() {
        // Records without ordered outputs still have their streams.
        for (name, text) in [("stdout", &step.stdout), ("stderr", &step.stderr)] {
            if !text.is_empty() {
                outputs.push(stream(name, text));
            }
        }
    }
    if let Some(error) = &step.error
        && !outputs.iter().any(|output| output["output_type"] == "error")
    {
        outputs.push(raised(error));
    }
    json!({
        "cell_type": "code",
        "id": format!("step-{}", step.step),
        "metadata": {},
        "execution_count": step.step,
        "source": step.code,
        "outputs": outputs,
    })
}

fn output_of(step: &Step, output: &Output, artifact: Artifacts<'_>) -> Option<Value> {
    Some(match output {
        Output::Stream { name, text } => stream(name, text),
        Output::ExecuteResult { data } => {
            json!({"output_type": "execute_result", "execution_count": step.step, "metadata": {}, "data": with_contents(data, artifact)?})
        }
        Output::DisplayData { data, .. } => json!({"output_type": "display_data", "metadata": {}, "data": with_contents(data, artifact)?}),
        Output::Error(error) => raised(error),
    })
}

fn stream(name: impl Serialize, text: &str) -> Value {
    json!({"output_type": "stream", "name": json!(name), "text": escape::plain(text)})
}

fn raised(error: &ExecutionError) -> Value {
    let traceback = escape::plain(&error.traceback);
    json!({
        "output_type": "error",
        "ename": escape::plain(&error.ename),
        "evalue": escape::plain(&error.evalue),
        "traceback": traceback.lines().collect::<Vec<_>>(),
    })
}

/// A MIME bundle in which the reference to an artifact is its contents again, without what would run or load
/// something; nothing where that leaves nothing.
fn with_contents(data: &MimeBundle, artifact: Artifacts<'_>) -> Option<Value> {
    let mut bundle = data.clone();
    if let Some(name) = bundle.remove("artifact") {
        bundle.extend(name.as_str().and_then(artifact));
    }
    let bundle = mime::safe(&bundle);
    (!bundle.is_empty()).then_some(Value::Object(bundle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lineage::Lineage;

    #[test]
    fn what_a_model_or_a_step_says_neither_runs_nor_loads_in_a_notebook() {
        let Value::Object(data) = json!({
            "text/html": "<table><tr><td onclick=\"x()\">7</td></tr></table><script>x()</script><img src=\"https://evil.example/\">",
            "text/markdown": "![c](https://evil.example/leak)",
            "application/javascript": "x()",
        }) else {
            return;
        };
        let step = Step { step: 1, code: "t".to_owned(), outputs: vec![Output::ExecuteResult { data }], ..Step::default() };
        let run = Run {
            final_answer: Some("![c](https://evil.example/?d=1) <b>x</b> [run](command:x) [r]\n\n[r]: https://evil.example/".to_owned()),
            steps: vec![Step { note: "<img src=x>".to_owned(), ..step }],
            ..Run::default()
        };
        let notebook = notebook(&run, &Lineage::unchecked(&run, "no sandbox"), &|_| None);
        let cells = notebook["cells"].as_array().cloned().unwrap_or_default();
        let cell = |id: &str| cells.iter().find(|cell| cell["id"] == id).cloned().unwrap_or_default();
        assert_eq!(cell("answer")["source"], "c `<b>`x`</b>` run `command:x` r `https://evil.example/`");
        assert!(cell("note-1")["source"].as_str().is_some_and(|note| note.trim_start().starts_with("```")));
        let data = json!({"text/html": "<table><tr><td>7</td></tr></table>", "text/markdown": "c"});
        assert_eq!(cell("step-1")["outputs"][0]["data"], data);
    }
}
