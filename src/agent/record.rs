//! An execution taken into the record: its pictures, documents and new files become artifacts, its outputs point
//! at them, and what is refused becomes a notice.

use base64::Engine;
use serde_json::{Value, json};

use super::conversation::ImagePart;
use super::events::RunEvent;
use super::execution::{Execution, FigureDescription, MimeBundle, Output};
use super::ports::{ArtifactStore, Sandbox, Sink, StoreError};
use super::run::{Artifact, Step};
use super::task::Task;

/// Largest file that is fetched from the sandbox, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Files that one step may leave; more are counted.
const MAX_FILES: usize = 50;
/// Displays of one step that become artifacts; more are counted.
const MAX_DISPLAYS: usize = 50;
/// Longest side of a picture that is sent to a model, in pixels.
const MODEL_PIXELS: u32 = 1024;

/// How a display becomes a file: MIME type, ending, and whether it is base64 text. First match wins.
const DISPLAYS: [(&str, &str, bool); 8] = [
    ("image/png", "png", true),
    ("image/jpeg", "jpg", true),
    ("image/gif", "gif", true),
    ("image/svg+xml", "svg", false),
    ("application/vnd.plotly.v1+json", "plotly.json", false),
    ("application/vnd.vegalite.v5+json", "vl.json", false),
    ("application/vnd.vegalite.v6+json", "vl.json", false),
    ("text/html", "html", false),
];

/// What one execution is recorded with.
pub struct Recorder<'a> {
    /// Where new files are fetched from.
    pub sandbox: &'a dyn Sandbox,
    /// Where artifacts are kept.
    pub artifacts: &'a dyn ArtifactStore,
    /// The run's task: its inputs are no artifacts.
    pub task: &'a Task,
    /// Charts of the run so far; names go on from it.
    pub charts: u32,
    /// The model sees pictures.
    pub vision: bool,
}

impl Recorder<'_> {
    /// The step of an execution. Artifacts are saved and told as events; pictures for the model are returned.
    pub async fn record(
        &mut self,
        step: u32,
        code: &str,
        note: &str,
        execution: Execution,
        events: Sink<'_, RunEvent>,
    ) -> (Step, Vec<ImagePart>) {
        let mut record = Step {
            step,
            code: code.to_owned(),
            note: note.to_owned(),
            stdout: execution.stdout,
            stderr: execution.stderr,
            result: execution.result,
            exit_code: execution.exit_code,
            error: execution.error,
            duration_ms: u64::try_from(execution.duration.as_millis()).unwrap_or(u64::MAX),
            truncated: execution.truncated,
            files: execution.files,
            variables: execution.variables,
            figures: execution.figures,
            notices: execution.skipped_files,
            ..Step::default()
        };
        let mut images = Vec::new();
        let mut displays = 0;
        let mut pictures = 0;
        for mut output in execution.outputs {
            if let Output::DisplayData { data, .. } | Output::ExecuteResult { data } = &mut output
                && let Some((bytes, mime, ending)) = display_file(data)
            {
                displays += 1;
                let figure = mime.starts_with("image/").then(|| {
                    pictures += 1;
                    pictures - 1
                });
                if displays <= MAX_DISPLAYS {
                    let caption = figure.and_then(|index| caption(&record.figures, index));
                    self.display(&mut record, data, &bytes, mime, ending, caption, &mut images, events).await;
                }
            }
            record.outputs.push(output);
        }
        if displays > MAX_DISPLAYS {
            record
                .notices
                .push(format!("{} of {displays} displays were not kept: a step may leave {MAX_DISPLAYS}.", displays - MAX_DISPLAYS));
        }
        self.files(&mut record, events).await;
        (record, images)
    }

    /// Saves one display and replaces its data by a reference.
    #[expect(clippy::too_many_arguments, reason = "the parts of one display, used in one place")]
    async fn display(
        &mut self,
        record: &mut Step,
        data: &mut MimeBundle,
        bytes: &[u8],
        mime: &str,
        ending: &str,
        caption: Option<String>,
        images: &mut Vec<ImagePart>,
        events: Sink<'_, RunEvent>,
    ) {
        let name =
            if ending == "html" { format!("display-{}.html", self.charts + 1) } else { format!("chart-{}.{ending}", self.charts + 1) };
        match self.artifacts.save_artifact(&self.task.run, &name, bytes, record.step, caption).await {
            Ok(artifact) => {
                self.charts += 1;
                if self.vision && matches!(mime, "image/png" | "image/jpeg") {
                    images.extend(for_model(&artifact.name, bytes));
                }
                for (heavy, _, _) in DISPLAYS {
                    // HTML that goes with a picture is kept out of the record as well: it may hold megabytes.
                    if heavy != "text/html" || mime == "text/html" || ending.ends_with("json") {
                        data.remove(heavy);
                    }
                }
                data.insert("artifact".to_owned(), json!(artifact.name));
                keep(record, artifact, events);
            }
            Err(error) => {
                data.remove(mime);
                refused(record, &error, events);
            }
        }
    }

    /// Fetches and saves the files that the step created or changed.
    async fn files(&self, record: &mut Step, events: Sink<'_, RunEvent>) {
        let changed: Vec<_> =
            record.files.iter().filter(|file| !self.task.files.iter().any(|input| input.name == file.path)).cloned().collect();
        for file in changed.iter().take(MAX_FILES) {
            if file.bytes > MAX_FILE_BYTES {
                record.notices.push(format!("{} was not kept: it has {} bytes, more than {MAX_FILE_BYTES}.", file.path, file.bytes));
                continue;
            }
            let data = match self.sandbox.get_file(&file.path, MAX_FILE_BYTES).await {
                Ok(data) => data,
                Err(error) => {
                    record.notices.push(format!("{} was not kept: {error}", file.path));
                    continue;
                }
            };
            match self.artifacts.save_artifact(&self.task.run, &file.path, &data, record.step, None).await {
                Ok(artifact) => keep(record, artifact, events),
                Err(error) => refused(record, &error, events),
            }
        }
        if changed.len() > MAX_FILES {
            record.notices.push(format!(
                "{} of {} new files were not kept: a step may leave {MAX_FILES}.",
                changed.len() - MAX_FILES,
                changed.len()
            ));
        }
    }
}

fn keep(record: &mut Step, artifact: Artifact, events: Sink<'_, RunEvent>) {
    if !record.artifacts.contains(&artifact.name) {
        record.artifacts.push(artifact.name.clone());
    }
    events(RunEvent::Artifact(artifact));
}

fn refused(record: &mut Step, error: &StoreError, events: Sink<'_, RunEvent>) {
    let sentence = error.to_string();
    events(RunEvent::Notice(sentence.clone()));
    record.notices.push(sentence);
}

/// The part of a bundle that is worth a file: bytes, MIME type, ending. Tables stay in the record as they are.
fn display_file(data: &MimeBundle) -> Option<(Vec<u8>, &'static str, &'static str)> {
    for (mime, ending, binary) in DISPLAYS {
        let Some(value) = data.get(mime) else { continue };
        let bytes = match value {
            Value::String(text) if binary => {
                let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
                let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(compact) else { continue };
                bytes
            }
            Value::String(text) => text.clone().into_bytes(),
            Value::Object(_) if !binary => serde_json::to_vec(value).unwrap_or_default(),
            _ => continue,
        };
        let plain_html = mime == "text/html" && data.contains_key("text/plain") && !is_document(&bytes);
        if bytes.is_empty() || plain_html {
            continue;
        }
        return Some((bytes, mime, ending));
    }
    None
}

/// HTML that is more than a table or a styled word: it needs scripts or is a page of its own.
fn is_document(html: &[u8]) -> bool {
    let text = String::from_utf8_lossy(html);
    text.contains("<script") || text.contains("<html") || text.contains("<iframe") || text.contains("<svg")
}

fn caption(figures: &[FigureDescription], index: usize) -> Option<String> {
    figures.iter().find(|figure| figure.index == index)?.title.clone().filter(|title| !title.trim().is_empty())
}

/// A picture small enough for a model: at most [`MODEL_PIXELS`] a side. `None` where it can't be decoded.
fn for_model(name: &str, bytes: &[u8]) -> Option<ImagePart> {
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(256 << 20);
    reader.limits(limits);
    let picture = reader.decode().ok()?;
    let picture =
        if picture.width().max(picture.height()) > MODEL_PIXELS { picture.thumbnail(MODEL_PIXELS, MODEL_PIXELS) } else { picture };
    let mut data = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut data, image::ImageFormat::Png).ok()?;
    Some(ImagePart { name: name.to_owned(), mime: "image/png".to_owned(), data: data.into_inner().into() })
}
