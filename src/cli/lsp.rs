//! `codeinterp lsp`: the language server on standard input and output; what editors start.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::app::App;
use crate::config::Overrides;
use crate::lsp;

#[derive(Debug, Args)]
pub(super) struct LspArgs {
    /// Speak over standard input and output; the only way, accepted because clients say it
    #[arg(long)]
    stdio: bool,
    /// The process whose death ends the server, as some clients say it; `initialize` says it too
    #[arg(long = "clientProcessId", hide = true)]
    client_process_id: Option<u32>,
    #[command(flatten)]
    sandbox: super::SandboxArgs,
    /// The model, stronger than the editor's settings
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

/// Serves until the client is done. Exit code 0 where it asked for `shutdown` before `exit`, as the protocol has it.
pub(super) async fn run(args: LspArgs) -> ExitCode {
    let mut command_line = Overrides::default();
    args.sandbox.apply(&mut command_line);
    if let Some(model) = &args.model {
        command_line.set("model", model.as_str());
    }
    // On a worker of the runtime, where what comes in is read, answered and written without a change of thread between.
    let server = tokio::spawn(lsp::serve(tokio::io::stdin(), tokio::io::stdout(), Arc::new(App::new()), command_line));
    // It ends otherwise only by a panic, which has been told.
    let orderly = server.await.unwrap_or(false);
    if orderly { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
