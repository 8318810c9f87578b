//! The command line: parsing, logs, and the exit code. Each command has a file of its own.
//!
//! Exit codes: 0 there is an answer; 1 failed during the run; 2 usage or unreadable input; 3 sandbox or model
//! unreachable, or refusing the credentials; 130 cancelled.

mod analyze;
mod console;
mod doctor;
pub mod editor;
mod export;
mod inputs;
mod lsp;
mod output;
mod profile;
mod runs;
mod sandbox;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::agent::run::{ErrorKind, RunError};
use crate::config::{self, Overrides, Settings};

#[derive(Debug, Parser)]
#[command(name = "codeinterp", version, about = "A code interpreter in the editor and the terminal", propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The language server on standard input and output: what editors start
    Lsp(lsp::LspArgs),
    /// Analyse files: a model writes Python, a sandbox runs it, until there is an answer
    Analyze(analyze::AnalyzeArgs),
    /// The exact profile of files, without any model
    Profile(profile::ProfileArgs),
    /// What works on this machine, and what to do about the rest
    Doctor(doctor::DoctorArgs),
    /// The image, environments and containers that codeinterp owns
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Earlier runs
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Write the plugin of an editor that comes with this binary
    Editor {
        /// Which editor
        #[command(subcommand)]
        editor: editor::Editor,
    },
}

/// How a command prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON value on standard output and nothing else there.
    Json,
}

/// Options that choose the sandbox.
#[derive(Debug, Args)]
struct SandboxArgs {
    /// Where the code runs
    #[arg(long, value_name = "BACKEND", value_parser = ["auto", "docker", "process"])]
    sandbox: Option<String>,
}

impl SandboxArgs {
    fn apply(&self, overrides: &mut Overrides) {
        if let Some(backend) = &self.sandbox {
            overrides.set("sandbox.backend", backend.as_str());
        }
    }
}

/// Runs the command line of the process and returns its exit code.
pub fn main() -> ExitCode {
    // Before any thread is started: the helper of the process sandbox may have one only.
    if let Some(code) = crate::sandbox::process::maybe_run_helper() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            if error.use_stderr() {
                analyze::refuse_usage(&error.to_string());
            }
            // Nothing is left to do where even the message can't be printed.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    start_log();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime can't be started: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(run(cli.command));
    // Reads of standard input can't be cancelled and must not hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    if output::failed() { ExitCode::from(ErrorKind::Output.exit_code()) } else { code }
}

async fn run(command: Command) -> ExitCode {
    match command {
        Command::Lsp(args) => lsp::run(args).await,
        Command::Analyze(args) => analyze::run(args).await,
        Command::Profile(args) => profile::run(args).await,
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Sandbox(command) => sandbox::run(command).await,
        Command::Runs(command) => runs::run(command).await,
        Command::Editor { editor } => editor::run(editor),
    }
}

/// Logs go to standard error; `CODEINTERP_LOG` chooses what is logged, as `RUST_LOG` does elsewhere.
fn start_log() {
    use std::io::IsTerminal;
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("CODEINTERP_LOG").unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).with_env_filter(filter).init();
}

/// Settings of all layers, the command line strongest.
fn settings(command_line: &Overrides) -> Result<Settings, RunError> {
    settings_with(command_line, &Overrides::default())
}

/// The same, with those of an editor.
fn settings_with(command_line: &Overrides, editor: &Overrides) -> Result<Settings, RunError> {
    config::load(command_line, editor)
        .map_err(|error| RunError::new(ErrorKind::Usage, error.to_string(), "Mend the setting that is named."))
}

/// Prints an error for people and returns its exit code.
fn fail(error: &RunError) -> ExitCode {
    eprintln!("error: {}", crate::report::escape::plain(&error.message));
    if !error.hint.is_empty() {
        eprintln!("  hint: {}", crate::report::escape::plain(&error.hint));
    }
    ExitCode::from(error.kind.exit_code())
}

/// Prints a JSON value on standard output.
fn print_json(value: &impl serde::Serialize) {
    match serde_json::to_vec_pretty(value) {
        Ok(mut text) => {
            text.push(b'\n');
            output::write(&text);
        }
        Err(error) => eprintln!("error: the answer can't be written as JSON: {error}"),
    }
}

/// The current directory: the workspace of commands in a terminal.
fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// A token that Ctrl-C (or the end of the session) cancels. A second Ctrl-C ends the process at once.
fn cancelled_by_signals() -> tokio_util::sync::CancellationToken {
    let token = tokio_util::sync::CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        signalled().await;
        cancel.cancel();
        signalled().await;
        std::process::exit(130);
    });
    token
}

#[cfg(unix)]
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminated), Ok(mut hung_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
        _ = hung_up.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
