//! The command line: parsing, logs, and the exit code. Each command has a file of its own.

pub mod editor;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "codeinterp", version, about = "A code interpreter in the editor and the terminal", propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the plugin of an editor that comes with this binary.
    Editor {
        #[command(subcommand)]
        editor: editor::Editor,
    },
}

/// Runs the command line of the process and returns its exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // Nothing is left to do where even the message can't be printed.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match cli.command {
        Command::Editor { editor } => editor::run(editor),
    }
}
