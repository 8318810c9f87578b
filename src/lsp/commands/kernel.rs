//! Variables, the sandbox, and how everything stands.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use crate::lsp::convert::failed;
use crate::lsp::event::Reply;
use crate::lsp::ext::UriArgument;
use crate::lsp::state::State;
use crate::session::Session;

/// How long a kernel may take to tell its variables.
const VARIABLES: Duration = Duration::from_secs(5);

/// Sessions that a command without a document means: that of the first folder, else all.
fn meant(state: &State, argument: &UriArgument) -> Vec<Arc<Session>> {
    match &argument.uri {
        Some(uri) => vec![
            state
                .folders
                .iter()
                .find(|folder| folder.uri == *uri)
                .map_or_else(|| state.session_for(uri), |folder| state.sessions.of_folder(&folder.path)),
        ],
        None => state.all_sessions(),
    }
}

/// `codeinterp.variables`
pub fn variables(state: &State, argument: UriArgument, reply: Reply<Option<Value>>) {
    let sessions = meant(state, &argument);
    tokio::spawn(async move {
        let mut all = Vec::new();
        for session in sessions {
            match tokio::time::timeout(VARIABLES, session.variables(argument.name.as_deref())).await {
                Ok(Ok(variables)) => all.extend(variables),
                Ok(Err(error)) => {
                    let _ = reply.send(Err(failed(format!("the variables can't be read: {error}"))));
                    return;
                }
                Err(_) => {
                    let _ = reply.send(Err(failed("the kernel is busy and did not answer in time; ask again when its run is over")));
                    return;
                }
            }
        }
        let _ = reply.send(Ok(Some(json!(all))));
    });
}

/// `codeinterp.restartKernel`
pub fn restart(state: &State, argument: &UriArgument, reply: Reply<Option<Value>>) {
    let sessions = meant(state, argument);
    tokio::spawn(async move {
        for session in sessions {
            // A kernel that works on something is taken from it.
            session.cancel(None);
            if let Err(error) = session.restart_kernel().await {
                let _ = reply.send(Err(failed(format!("the kernel can't be restarted: {error}"))));
                return;
            }
        }
        let _ = reply.send(Ok(Some(json!({}))));
    });
}

/// `codeinterp.stopSandbox`
pub fn stop(state: &State, argument: &UriArgument, reply: Reply<Option<Value>>) {
    let sessions = meant(state, argument);
    tokio::spawn(async move {
        futures::future::join_all(sessions.iter().map(|session| session.stop_sandbox())).await;
        let _ = reply.send(Ok(Some(json!({}))));
    });
}

/// `codeinterp.status`
pub fn status(state: &State, reply: Reply<Option<Value>>) {
    let model = state.settings.model.clone().unwrap_or_else(|| "playbook".to_owned());
    let backend = json!(state.settings.sandbox.backend);
    let sessions: Vec<(Arc<Session>, Option<Url>)> = state
        .all_sessions()
        .into_iter()
        .map(|session| (Arc::clone(&session), state.folder_at(session.folder()).map(|folder| folder.uri.clone())))
        .collect();
    tokio::spawn(async move {
        let mut workspaces = Vec::with_capacity(sessions.len());
        for (session, folder) in sessions {
            let status = session.status().await;
            // A document outside of all folders has a session as soon as it is opened, which is nothing to tell of yet.
            if folder.is_none() && status.backend.is_none() && status.runs == 0 {
                continue;
            }
            let uri = folder.or_else(|| Url::from_directory_path(session.folder()).ok());
            let mut row = json!({
                "uri": uri,
                // What it is, or what it would be.
                "backend": status.backend.map_or_else(|| backend.clone(), Value::from),
                "state": status.state,
                "kernel": status.kernel.map_or_else(|| json!("stopped"), |kernel| json!(kernel)),
                "runs": status.runs,
            });
            if let Some(bytes) = status.usage.memory_bytes {
                row["memory_bytes"] = json!(bytes);
            }
            if let Some(percent) = status.usage.cpu_percent {
                row["cpu_percent"] = json!(percent);
            }
            workspaces.push(row);
        }
        let answer = json!({"version": env!("CARGO_PKG_VERSION"), "model": model, "workspaces": workspaces});
        let _ = reply.send(Ok(Some(answer)));
    });
}
