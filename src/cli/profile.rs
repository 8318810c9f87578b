//! `codeinterp profile`: the exact profile alone, no model.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::console::Console;
use super::output::say;
use super::{Format, SandboxArgs, cancelled_by_signals, current_dir, fail, inputs, print_json, settings};
use crate::agent::run::ErrorKind;
use crate::app::App;
use crate::config::Overrides;
use crate::profile::{Language, ProfileError, ProfileOutcome, render};
use crate::session::inputs::{check_input, sandbox_name};
use crate::session::{EventHandler, Session};

#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    /// Data files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) async fn run(args: ProfileArgs) -> ExitCode {
    let cancel = cancelled_by_signals();
    let mut overrides = Overrides::default();
    args.sandbox.apply(&mut overrides);
    let settings = match settings(&overrides) {
        Ok(settings) => settings,
        Err(error) => return fail(&error),
    };
    let workspace = current_dir();
    let paths = inputs::resolved(&args.files);
    let checked: Vec<_> = paths.iter().map(|path| check_input(path, &workspace)).collect();
    let readable: Vec<PathBuf> =
        args.files.iter().zip(&checked).filter(|(_, checked)| checked.is_ok()).map(|(named, _)| named.clone()).collect();
    let mut outcomes = Vec::new();
    if !readable.is_empty() {
        let files = match inputs::run_files(&readable, &workspace) {
            Ok(files) => files,
            Err(error) => return fail(&error),
        };
        let session = Session::open(&workspace, Arc::new(App::new()), settings);
        let console = Arc::new(Console::quiet());
        let events: EventHandler = Arc::new(move |event| console.event(event));
        let profiled = session.profile(files, events, cancel.clone()).await;
        session.close().await;
        match profiled {
            Ok(profiles) => outcomes = profiles,
            Err(_) if cancel.is_cancelled() => return ExitCode::from(130),
            Err(error) => return fail(&error),
        }
    }
    // In the order in which the files were named.
    let mut profiled = outcomes.into_iter();
    let outcomes: Vec<ProfileOutcome> = args
        .files
        .iter()
        .zip(&checked)
        .filter_map(|(named, checked)| match checked {
            Ok(()) => profiled.next(),
            Err(error) => Some(refusal(&sandbox_name(named, &workspace), error)),
        })
        .collect();
    print(&outcomes, args.format);
    let failed = outcomes.iter().any(|outcome| outcome.profile().is_none());
    ExitCode::from(if failed { ErrorKind::Input.exit_code() } else { 0 })
}

fn refusal(name: &str, error: &crate::session::inputs::InputError) -> ProfileOutcome {
    let error = ProfileError { kind: "unreadable".to_owned(), message: error.reason.clone(), hint: error.hint.clone() };
    ProfileOutcome::Failed { file: name.to_owned(), error }
}

fn print(outcomes: &[ProfileOutcome], format: Format) {
    match (format, outcomes) {
        (Format::Json, [one]) => print_json(one),
        (Format::Json, all) => print_json(&all),
        (Format::Text, all) => {
            for outcome in all {
                say!("{}\n", crate::report::escape::plain(render(outcome, Language::English).trim_end()));
            }
        }
    }
}
