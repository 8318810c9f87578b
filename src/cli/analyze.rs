//! `codeinterp analyze`: steps as they happen, answer, artifacts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde::Serialize;
use tokio::sync::oneshot;

use super::console::{Console, TerminalApproval, TerminalConsent};
use super::{Format, SandboxArgs, cancelled_by_signals, current_dir, fail, inputs, output, print_json, settings};
use crate::agent::conversation::Usage;
use crate::agent::events::RunEvent;
use crate::agent::execution::{ExecutionError, Truncation};
use crate::agent::run::{Artifact, ErrorKind, Run, RunError, RunStatus, SandboxInfo, Step};
use crate::app::App;
use crate::config::{Confirm, Overrides};
use crate::profile::ProfileOutcome;
use crate::report::{self, ReportOptions};
use crate::session::request::RunFile;
use crate::session::{EventHandler, RunKind, RunRequest, Services, Session};
use crate::store::files::write_beneath;

/// Asked where no question is given; shown before it runs.
pub(crate) const DEFAULT_QUESTION: &str = "Describe this data and plot what matters.";

#[derive(Debug, Args)]
pub(super) struct AnalyzeArgs {
    /// Data files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What you want to know
    #[arg(short, long, value_name = "TEXT")]
    question: Option<String>,
    /// The model: a name such as `openai::gpt-5-mini`, or "playbook" for the built-in analysis
    #[arg(long, value_name = "M")]
    model: Option<String>,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Folder that report, run.json and artifacts are copied to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Most executions of the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Seconds that one execution may take
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print the first request to the model, byte for byte, and send nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: AnalyzeArgs) -> ExitCode {
    let cancel = cancelled_by_signals();
    let session = match open(&args) {
        Ok(session) => session,
        Err(error) => return refuse(&args, &error),
    };
    let files = match inputs::run_files(&args.files, &current_dir()) {
        Ok(files) => files,
        Err(error) => return refuse(&args, &error),
    };
    // Known before anything is spent.
    if let Some(Err(error)) = args.out.as_deref().map(check_out) {
        return refuse(&args, &error);
    }
    let code = if args.dry_run { dry_run(&args, &session, files, cancel).await } else { analyze(&args, &session, files, cancel).await };
    session.close().await;
    code
}

fn open(args: &AnalyzeArgs) -> Result<Arc<Session>, RunError> {
    let mut overrides = Overrides::default();
    if let Some(model) = &args.model {
        overrides.set("model", model.as_str());
    }
    args.sandbox.apply(&mut overrides);
    if let Some(steps) = args.max_steps {
        overrides.set("agent.maxSteps", steps);
    }
    if let Some(seconds) = args.timeout {
        overrides.set("sandbox.timeoutSeconds", seconds);
    }
    let services: Arc<dyn Services> = Arc::new(App::asking(Arc::new(TerminalConsent)));
    Ok(Session::open(&current_dir(), services, settings(&overrides)?))
}

/// Wrong use of the command line, where one JSON value was asked for.
pub(super) fn refuse_usage(message: &str) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let json = words.iter().any(|word| word == "--format=json") || words.windows(2).any(|pair| pair == ["--format", "json"]);
    if json && words.first().is_some_and(|word| word == "analyze") {
        let message = message.trim().strip_prefix("error: ").unwrap_or(message).lines().next().unwrap_or_default().to_owned();
        let error = RunError::new(ErrorKind::Usage, message, "See `codeinterp analyze --help`.");
        print_json(&Document::from(&Run { status: RunStatus::Failed, error: Some(error), ..Run::default() }));
    }
}

/// Whether the folder of `--out` can be written to.
fn check_out(out: &Path) -> Result<(), RunError> {
    let made = std::fs::create_dir_all(out).and_then(|()| tempfile::tempfile_in(out));
    made.map(|_| ()).map_err(|error| {
        RunError::new(ErrorKind::Usage, format!("--out {}: {error}", out.display()), "Name a folder that you may write to.")
    })
}

/// An error before the run began.
fn refuse(args: &AnalyzeArgs, error: &RunError) -> ExitCode {
    if args.format == Format::Json {
        let run = Run {
            status: RunStatus::Failed,
            error: Some(error.clone()),
            question: args.question.clone().unwrap_or_else(|| DEFAULT_QUESTION.to_owned()),
            ..Run::default()
        };
        print_json(&Document::from(&run));
    }
    fail(error)
}

async fn dry_run(args: &AnalyzeArgs, session: &Session, files: Vec<RunFile>, cancel: tokio_util::sync::CancellationToken) -> ExitCode {
    let question = args.question.as_deref().unwrap_or(DEFAULT_QUESTION);
    let console = Arc::new(Console::quiet());
    let events: EventHandler = Arc::new(move |event| console.event(event));
    match session.preview(question, files, events, cancel).await {
        Ok(Some(bytes)) => {
            output::write(&bytes);
            ExitCode::SUCCESS
        }
        Ok(None) => {
            eprintln!("Nothing is ever sent: the built-in analysis uses no model. Name one with --model.");
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

async fn analyze(args: &AnalyzeArgs, session: &Arc<Session>, files: Vec<RunFile>, cancel: tokio_util::sync::CancellationToken) -> ExitCode {
    let question = args.question.clone().unwrap_or_else(|| DEFAULT_QUESTION.to_owned());
    let console = Arc::new(if args.format == Format::Json { Console::quiet() } else { Console::new() });
    if args.question.is_none() && args.format == Format::Text {
        console.line(&format!("Question: {question}"));
    }
    let (done, finished) = oneshot::channel();
    let done = Mutex::new(Some(done));
    let shown = Arc::clone(&console);
    let events: EventHandler = Arc::new(move |event| {
        shown.event(event);
        if matches!(event, RunEvent::Concluded { .. })
            && let Some(done) = done.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // The receiver is below and waits.
            let _ = done.send(());
        }
    });
    let mut request = RunRequest::new(RunKind::Ask { question }, files);
    request.uri = request.files.first().and_then(|file| url::Url::from_file_path(&file.origin).ok()).map(String::from);
    if session.settings().agent.confirm == Confirm::Always {
        request.approval = Some(Arc::new(TerminalApproval));
    }
    let handle = session.submit(request, events);
    let stop = handle.cancel.clone();
    tokio::spawn(async move {
        cancel.cancelled().await;
        stop.cancel();
    });
    if finished.await.is_err() {
        return fail(&RunError::new(ErrorKind::Run, "the run ended without a word", "Please report it."));
    }
    let Some(run) = session.run(&handle.id) else {
        return fail(&RunError::new(ErrorKind::Run, "the run's record is gone", "Please report it."));
    };
    finish(args, session, &console, Run::clone(&run))
}

/// Copies, prints, and says how it ended.
fn finish(args: &AnalyzeArgs, session: &Session, console: &Console, mut run: Run) -> ExitCode {
    let mut code = exit_code(&run);
    let mut report_path = session.store().run_dir(&run.run).join("report.md");
    if let Some(out) = &args.out {
        match copy_out(&mut run, out) {
            Ok(path) => report_path = path,
            Err(error) => {
                code = error.kind.exit_code();
                run.error.get_or_insert(error);
            }
        }
    }
    match args.format {
        Format::Json => print_json(&Document::from(&run)),
        Format::Text => console.conclude(&run, &report_path),
    }
    ExitCode::from(code)
}

fn exit_code(run: &Run) -> u8 {
    match run.status {
        RunStatus::Completed | RunStatus::Incomplete => 0,
        RunStatus::Cancelled => 130,
        RunStatus::Queued | RunStatus::Running | RunStatus::Failed => run.error.as_ref().map_or(1, |error| error.kind.exit_code()),
    }
}

/// Copies report, record and artifacts to the folder that was asked for; artifacts are then those copies.
fn copy_out(run: &mut Run, out: &Path) -> Result<PathBuf, RunError> {
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let written = |name: &Path, data: &[u8]| write_beneath(&out, name, data).map_err(|error| RunError::from(&error));
    for artifact in &mut run.artifacts {
        let data = std::fs::read(&artifact.path)
            .map_err(|error| RunError::new(ErrorKind::Output, format!("{}: {error}", artifact.path.display()), "Run it again."))?;
        artifact.path = written(&Path::new("artifacts").join(&artifact.name), &data)?;
    }
    let record = serde_json::to_vec_pretty(&Document::from(&*run))
        .map_err(|error| RunError::new(ErrorKind::Output, error.to_string(), "Please report it."))?;
    written(Path::new("run.json"), &record)?;
    written(Path::new("report.md"), report::markdown(run, &ReportOptions::default()).as_bytes())
}

/// The one object that `--format json` prints.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    run: &'a str,
    status: RunStatus,
    error: &'a Option<RunError>,
    question: &'a str,
    final_answer: &'a Option<String>,
    total_steps: u32,
    steps: Vec<StepView<'a>>,
    files: &'a [ProfileOutcome],
    artifacts: Vec<ArtifactView<'a>>,
    model: &'a str,
    usage: Usage,
    sandbox: &'a SandboxInfo,
    notices: &'a [String],
    duration_ms: u64,
}

#[derive(Serialize)]
struct StepView<'a> {
    step: u32,
    code: &'a str,
    stdout: &'a str,
    stderr: &'a str,
    result: &'a Option<String>,
    exit_code: i32,
    error: &'a Option<ExecutionError>,
    duration_ms: u64,
    artifacts: &'a [String],
    truncated: Option<Truncation>,
}

#[derive(Serialize)]
struct ArtifactView<'a> {
    name: &'a str,
    path: &'a Path,
    mime: &'a str,
    bytes: u64,
    step: u32,
}

impl<'a> From<&'a Run> for Document<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            run: &run.run,
            status: run.status,
            error: &run.error,
            question: &run.question,
            final_answer: &run.final_answer,
            total_steps: run.total_steps,
            steps: run.steps.iter().map(StepView::from).collect(),
            files: &run.files,
            artifacts: run.artifacts.iter().map(ArtifactView::from).collect(),
            model: &run.model,
            usage: run.usage,
            sandbox: &run.sandbox,
            notices: &run.notices,
            duration_ms: run.duration_ms,
        }
    }
}

impl<'a> From<&'a Step> for StepView<'a> {
    fn from(step: &'a Step) -> Self {
        Self {
            step: step.step,
            code: &step.code,
            stdout: &step.stdout,
            stderr: &step.stderr,
            result: &step.result,
            exit_code: step.exit_code,
            error: &step.error,
            duration_ms: step.duration_ms,
            artifacts: &step.artifacts,
            truncated: step.truncated,
        }
    }
}

impl<'a> From<&'a Artifact> for ArtifactView<'a> {
    fn from(artifact: &'a Artifact) -> Self {
        Self { name: &artifact.name, path: &artifact.path, mime: &artifact.mime, bytes: artifact.bytes, step: artifact.step }
    }
}
