//! The one task that owns the state and takes one event after the other.
//!
//! Handlers are synchronous and short: they change or read the state and answer, or spawn a job that answers. A
//! handler that panics has dropped its reply, which answers the request with an error; the loop goes on.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use tokio::sync::mpsc;
use tower_lsp::gen_lsp_types as lsp;

use super::capabilities::{ClientFeatures, server_capabilities};
use super::event::{Event, Reply};
use super::state::{Folder, State};
use super::{analysis, commands, handlers, progress, runs, uris};
use crate::config::Overrides;

/// How long everything that was started may take to end.
pub const ENDING: Duration = Duration::from_secs(8);

/// Runs until all senders are gone.
pub async fn run(mut state: State, mut events: mpsc::UnboundedReceiver<Event>) {
    while let Some(event) = events.recv().await {
        let handled = std::panic::catch_unwind(AssertUnwindSafe(|| handle(&mut state, event)));
        if handled.is_err() {
            tracing::error!("a handler panicked; its request was answered with an error");
        }
    }
}

fn handle(state: &mut State, event: Event) {
    match event {
        Event::Initialize(params, reply) => initialize(state, &params, reply),
        Event::Initialized => initialized(state),
        Event::Shutdown(reply) => shutdown(state, reply),
        Event::DidOpen(params) => analysis::did_open(state, params),
        Event::DidChange(params) => analysis::did_change(state, &params),
        Event::DidSave(params) => analysis::did_save(state, &params),
        Event::DidClose(params) => analysis::did_close(state, &params),
        Event::FoldersChanged(params) => folders_changed(state, params),
        Event::ConfigurationChanged(params) => configuration_changed(state, &params.settings),
        Event::Configuration(value) => tighten(state, &value),
        Event::ProgressCancelled(params) => {
            if let Some(run) = progress::run_of(&params.token) {
                runs::cancel(state, Some(run));
            }
        }
        Event::ChatDelta(delta) => state.chat.delta(delta),
        Event::Hover(params, reply) => handlers::hover::hover(state, params, reply),
        Event::InlayHint(params, reply) => handlers::inlay_hint::inlay_hint(state, params, reply),
        Event::CodeAction(params, reply) => answer(reply, handlers::code_action::code_action(state, &params)),
        Event::CodeLens(params, reply) => handlers::code_lens::code_lens(state, params, reply),
        Event::DocumentLink(params, reply) => handlers::document_link::document_link(state, params, reply),
        Event::Content(params, reply) => handlers::content::content(state, &params, reply),
        Event::Command(params, reply) => commands::execute(state, params, reply),
        Event::ProfileDue(uri) => analysis::due(state, &uri),
        Event::Profiled(profiled) => analysis::profiled(state, profiled),
        Event::Recalled { uri, session, found } => runs::recalled(state, &uri, &session, found),
        Event::Prepared { number, prepared, reply } => commands::prepared(state, number, prepared, reply),
        Event::Run(number, update) => runs::update(state, number, update),
    }
}

/// Answers a request; the client may have cancelled it meanwhile.
pub fn answer<T>(reply: Reply<T>, value: T) {
    let _ = reply.send(Ok(value));
}

#[allow(deprecated, reason = "clients of before workspace folders send rootUri or rootPath alone")]
fn initialize(state: &mut State, params: &lsp::InitializeParams, reply: Reply<lsp::InitializeResult>) {
    state.features = ClientFeatures::new(params);
    state.services.offered.store(state.features.options.chat, std::sync::atomic::Ordering::Relaxed);
    let editor = params.initialization_options.as_ref().map(Overrides::from_editor).unwrap_or_default();
    state.load_settings(&editor);
    let folders = match &params.workspace_folders_initialize_params.workspace_folders {
        Some(lsp::WorkspaceFolders::WorkspaceFolderList(folders)) => folders.iter().map(|folder| folder.uri.clone()).collect(),
        _ => match (&params.root_uri, &params.root_path) {
            (Some(root), _) => vec![root.clone()],
            (None, Some(lsp::RootPath::String(path))) => url::Url::from_directory_path(path).into_iter().collect(),
            _ => Vec::new(),
        },
    };
    state.folders = folders.into_iter().filter_map(folder).collect();
    if let Some(parent) = params.process_id.and_then(|id| u32::try_from(id).ok()) {
        super::parent::watch(parent, state.end.clone());
    }
    answer(
        reply,
        lsp::InitializeResult {
            capabilities: server_capabilities(&state.features),
            server_info: Some(lsp::ServerInfo { name: "codeinterp".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) }),
        },
    );
}

fn folder(uri: url::Url) -> Option<Folder> {
    let path = uris::path(&uri)?;
    Some(Folder { uri, path })
}

fn initialized(state: &State) {
    pull_settings(state);
    if state.features.register_configuration {
        let outbox = state.outbox.clone();
        tokio::spawn(async move { outbox.register_configuration().await });
    }
}

/// Asks the client for its merged settings.
fn pull_settings(state: &State) {
    if !state.features.configuration {
        return;
    }
    let (outbox, events) = (state.outbox.clone(), state.events.clone());
    tokio::spawn(async move {
        if let Some(value) = outbox.configuration().await {
            // The main loop is gone when the connection ends.
            let _ = events.send(Event::Configuration(value));
        }
    });
}

/// Settings that a client pushes. Many push nothing of use and expect to be asked.
fn configuration_changed(state: &mut State, settings: &serde_json::Value) {
    if state.features.configuration {
        pull_settings(state);
    } else {
        tighten(state, settings);
    }
}

/// Takes merged settings of a client, whose scope is unknown: they only make things stricter.
fn tighten(state: &mut State, value: &serde_json::Value) {
    let settings = state.user_settings.tighten(&Overrides::from_editor(value));
    if settings == state.settings {
        return;
    }
    state.apply_settings(settings);
    analysis::settings_changed(state);
}

fn folders_changed(state: &mut State, params: lsp::DidChangeWorkspaceFoldersParams) {
    for removed in &params.event.removed {
        let gone: Vec<Folder> = state.folders.extract_if(.., |folder| folder.uri == removed.uri).collect();
        for folder in gone {
            let sessions = state.sessions.clone();
            state.closing.retain(|task| !task.is_finished());
            state.closing.push(tokio::spawn(async move { sessions.close(&folder.path).await }));
        }
    }
    for added in params.event.added {
        if let Some(folder) = folder(added.uri)
            && !state.folders.contains(&folder)
        {
            state.folders.push(folder);
        }
    }
}

fn shutdown(state: &mut State, reply: Reply<()>) {
    state.shut_down.store(true, std::sync::atomic::Ordering::Relaxed);
    let (sessions, closing) = (state.sessions.clone(), std::mem::take(&mut state.closing));
    tokio::spawn(async move {
        let all = futures::future::join(sessions.close_all(), futures::future::join_all(closing));
        if tokio::time::timeout(ENDING, all).await.is_err() {
            tracing::warn!("sandboxes did not end in time; they end with this process");
        }
        answer(reply, ());
    });
}
