//! A run as a Jupyter notebook: nbformat 4.5, with outputs.

use serde_json::{Value, json};

use super::escape;
use crate::agent::execution::Output;
use crate::agent::run::{Run, Step};

/// The notebook. `image` gives the contents of an artifact as base64, for the outputs that show it.
///
/// Cells are the question, the steps and the answer. Steps that failed are kept: a notebook tells what happened.
pub fn notebook(run: &Run, image: &dyn Fn(&str) -> Option<String>) -> Value {
    let mut cells =
        vec![markdown_cell("question", &format!("# {}", escape::inline(if run.question.is_empty() { "Analysis" } else { &run.question })))];
    for step in &run.steps {
        if !step.note.trim().is_empty() {
            cells.push(markdown_cell(&format!("note-{}", step.step), &escape::plain(step.note.trim())));
        }
        cells.push(code_cell(step, image));
    }
    if let Some(answer) = &run.final_answer {
        cells.push(markdown_cell("answer", &escape::plain(answer)));
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

fn markdown_cell(id: &str, text: &str) -> Value {
    json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": text})
}

fn code_cell(step: &Step, image: &dyn Fn(&str) -> Option<String>) -> Value {
    let mut outputs: Vec<Value> = step.outputs.iter().filter_map(|output| output_of(step, output, image)).collect();
    if step.outputs.is_empty() {
        // Records without ordered outputs still have their streams.
        for (name, text) in [("stdout", &step.stdout), ("stderr", &step.stderr)] {
            if !text.is_empty() {
                outputs.push(json!({"output_type": "stream", "name": name, "text": text}));
            }
        }
    }
    if let Some(error) = &step.error
        && !outputs.iter().any(|output| output["output_type"] == "error")
    {
        outputs.push(json!({"output_type": "error", "ename": error.ename, "evalue": error.evalue, "traceback": error.traceback.lines().collect::<Vec<_>>()}));
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

fn output_of(step: &Step, output: &Output, image: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    Some(match output {
        Output::Stream { name, text } => json!({"output_type": "stream", "name": name, "text": text}),
        Output::ExecuteResult { data } => {
            json!({"output_type": "execute_result", "execution_count": step.step, "metadata": {}, "data": with_images(data, image)?})
        }
        Output::DisplayData { data, .. } => json!({"output_type": "display_data", "metadata": {}, "data": with_images(data, image)?}),
        Output::Error(error) => {
            json!({"output_type": "error", "ename": error.ename, "evalue": error.evalue, "traceback": error.traceback.lines().collect::<Vec<_>>()})
        }
    })
}

/// A MIME bundle in which references to artifacts are their contents again; nothing where that leaves nothing.
fn with_images(data: &crate::agent::execution::MimeBundle, image: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    let mut bundle = serde_json::Map::new();
    for (mime, value) in data {
        match value.get("artifact").and_then(Value::as_str) {
            Some(name) => {
                if let Some(contents) = image(name) {
                    bundle.insert(mime.clone(), Value::String(contents));
                }
            }
            None => {
                bundle.insert(mime.clone(), value.clone());
            }
        }
    }
    (!bundle.is_empty()).then_some(Value::Object(bundle))
}
