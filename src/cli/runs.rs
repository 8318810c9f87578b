//! `codeinterp runs`: earlier runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};

use super::output::say;
use super::{Format, cancelled_by_signals, fail, print_json, settings};
use crate::agent::run::{ErrorKind, Run, RunError};
use crate::config::{Overrides, state_dir};
use crate::report::{self, ReportOptions, escape};
use crate::store::{RunStore, find_run, list_all};

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// All runs, newest first
    List {
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// One run: its report, or its record
    Show {
        /// Id of the run, or the beginning of it
        #[arg(value_name = "ID")]
        id: String,
        /// How to print
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// A run as a notebook, a script or markdown
    Export {
        /// Id of the run, or the beginning of it
        #[arg(value_name = "ID")]
        id: String,
        /// What to make
        #[arg(long, value_enum)]
        to: ExportFormat,
        /// Where to write; standard output where it is not given
        #[arg(long, value_name = "PATH")]
        out: Option<PathBuf>,
    },
}

/// What a run is exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// A Jupyter notebook with outputs.
    Notebook,
    /// A Python script of the steps that led to the answer.
    Script,
    /// The report, with its charts beside it.
    Markdown,
}

pub(super) async fn run(command: RunsCommand) -> ExitCode {
    match command {
        RunsCommand::List { format } => list(format),
        RunsCommand::Show { id, format } => match find(&id) {
            Ok((_, run)) => show(&run, format),
            Err(error) => fail(&error),
        },
        RunsCommand::Export { id, to, out } => export(&id, to, out.as_deref()).await,
    }
}

async fn export(id: &str, to: ExportFormat, out: Option<&Path>) -> ExitCode {
    let cancel = cancelled_by_signals();
    let exported = match (find(id), settings(&Overrides::default())) {
        (Ok((store, run)), Ok(settings)) => super::export::run(&store, &run, &settings, to, out, &cancel).await,
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    match exported {
        _ if cancel.is_cancelled() => ExitCode::from(130),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// The run with this id, or the only one whose id begins so.
fn find(id: &str) -> Result<(RunStore, Run), RunError> {
    let state = state_dir();
    if let Ok(found) = find_run(&state, id) {
        return Ok(found);
    }
    let matching: Vec<String> =
        list_all(&state).into_iter().map(|run| run.run).filter(|run| !id.is_empty() && run.starts_with(id)).collect();
    match matching.as_slice() {
        [one] => find_run(&state, one).map_err(|error| RunError::from(&error)),
        [] => Err(RunError::new(ErrorKind::Usage, format!("there is no run {id:?}"), "`codeinterp runs list` names them.")),
        several => Err(RunError::new(ErrorKind::Usage, format!("{} runs begin with {id:?}", several.len()), "Give more of the id.")),
    }
}

fn list(format: Format) -> ExitCode {
    let runs = list_all(&state_dir());
    if format == Format::Json {
        print_json(&runs);
        return ExitCode::SUCCESS;
    }
    if runs.is_empty() {
        say!("No runs yet. Try: codeinterp analyze FILE");
    }
    for run in &runs {
        let question = escape::plain(&run.question).replace('\n', " ");
        say!(
            "{}  {:<10}  {:>2} steps  {:>2} artifacts  {}",
            run.run,
            run.status.as_str(),
            run.steps,
            run.artifacts,
            escape::head(&question, 80)
        );
    }
    ExitCode::SUCCESS
}

fn show(run: &Run, format: Format) -> ExitCode {
    match format {
        Format::Json => print_json(&super::analyze::Document::from(run)),
        Format::Text => say!("{}", report::markdown(run, &ReportOptions::default())),
    }
    ExitCode::SUCCESS
}
