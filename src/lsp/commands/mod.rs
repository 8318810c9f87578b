//! `workspace/executeCommand`. Arguments are one object; the answer comes at once, whatever the command starts.
//!
//! - [`start`]: commands that start a run.
//! - [`selection`]: what is selected, as a file of the right kind or as code.
//! - [`results`]: runs, reports and artifacts.
//! - [`save`]: artifacts and exports written where a person wants them.
//! - [`kernel`]: variables, sandbox, status.

pub mod kernel;
pub mod results;
pub mod save;
pub mod selection;
pub mod start;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc;

use super::convert::{failed, invalid};
use super::event::Reply;
use super::ext;
use super::runs;
use super::state::State;
use crate::agent::run::Run;
use crate::session::Session;
use crate::store::runs::is_run_id;

pub use start::{Prepared, prepared, queue};

/// What commands answer.
pub type Answer = jsonrpc::Result<Option<Value>>;

/// Takes a command.
pub fn execute(state: &mut State, params: lsp::ExecuteCommandParams, reply: Reply<Option<Value>>) {
    let name = params.command.strip_prefix("codeinterp.").unwrap_or_default().to_owned();
    let argument = params.arguments.into_iter().flatten().next().unwrap_or_else(|| json!({}));
    if let Err((error, reply)) = dispatch(state, &name, argument, reply) {
        let _ = reply.send(Err(error));
    }
}

/// Gives a command to its handler; an error comes back with the reply, so that it is answered once.
fn dispatch(
    state: &mut State,
    name: &str,
    argument: Value,
    reply: Reply<Option<Value>>,
) -> Result<(), (jsonrpc::Error, Reply<Option<Value>>)> {
    /// Reads the arguments, or hands the reply back with what is wrong.
    macro_rules! read {
        () => {
            match parse(name, argument) {
                Ok(argument) => argument,
                Err(error) => return Err((error, reply)),
            }
        };
    }
    let now = |reply: Reply<Option<Value>>, answer: Answer| {
        // The client may have cancelled the request.
        let _ = reply.send(answer);
    };
    match name {
        "analyzeFile" => start::analyze_file(state, &read!(), reply),
        "askSelection" => start::ask_selection(state, &read!(), reply),
        "runSelection" => start::run_selection(state, &read!(), reply),
        "followUp" => start::follow_up(state, read!(), reply),
        "rerun" => start::rerun(state, read!(), reply),
        "cancel" => {
            let argument: ext::RunArgument = read!();
            now(reply, Ok(Some(json!({"cancelled": runs::cancel(state, argument.run.as_deref())}))));
        }
        "listRuns" => results::list_runs(state, read!(), reply),
        "openReport" => results::open_report(state, read!(), reply),
        "openArtifact" => results::open_artifact(state, read!(), reply),
        "saveArtifact" => save::save_artifact(state, read!(), reply),
        "export" => save::export(state, read!(), reply),
        "variables" => kernel::variables(state, read!(), reply),
        "clearHints" => results::clear_hints(state, read!(), reply),
        "restartKernel" => kernel::restart(state, &read!(), reply),
        "stopSandbox" => kernel::stop(state, &read!(), reply),
        "status" => kernel::status(state, reply),
        _ => return Err((invalid(format!("there is no command codeinterp.{name}")), reply)),
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(name: &str, argument: Value) -> jsonrpc::Result<T> {
    let argument = if argument.is_null() { json!({}) } else { argument };
    serde_json::from_value(argument).map_err(|error| invalid(format!("arguments of codeinterp.{name}: {error}")))
}

/// Answers from another thread, where files may be read. A cancelled request's answer is dropped.
fn blocking(reply: Reply<Option<Value>>, work: impl FnOnce() -> Answer + Send + 'static) {
    tokio::task::spawn_blocking(move || {
        let _ = reply.send(work());
    });
}

/// The session of a run and its record. Reads the disk: call it where that is allowed.
pub fn find(sessions: &[Arc<Session>], run: &str) -> Option<(Arc<Session>, Arc<Run>)> {
    if !is_run_id(run) {
        return None;
    }
    sessions.iter().find_map(|session| session.run(run).map(|record| (Arc::clone(session), record)))
}

/// There is no such run.
pub fn no_run(run: &str) -> jsonrpc::Error {
    failed(format!("there is no run {run:?}; codeinterp.listRuns names those that there are"))
}
