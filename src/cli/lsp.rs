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
    let orderly = lsp::serve(tokio::io::stdin(), tokio::io::stdout(), Arc::new(App::new()), command_line).await;
    if orderly { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
