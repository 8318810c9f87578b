//! The language server. The only module that knows protocol types.
//!
//! ```text
//! stdin ─► wire ─► protocol crate ─► backend ─► Event ─► main_loop ─► handlers, commands ─► jobs
//!                                                 ▲         │ &mut State                      │
//!                                                 └─────────┼─────────── events ◄─────────────┘
//! stdout ◄─ wire ◄─ protocol crate ◄─ replies, outbox ◄─────┘
//! ```
//!
//! - [`wire`]: bytes, checked before the protocol crate sees them.
//! - [`backend`]: the protocol's methods, which only enqueue.
//! - [`event`]: everything that can happen.
//! - [`main_loop`]: the one task that owns the state; start, settings, folders, end.
//! - [`state`]: what the server knows.
//! - [`analysis`]: open documents and their live profiles; diagnostics.
//! - [`documents`]: text, edits and positions.
//! - [`runs`]: runs that were asked for over this connection, as they go on; [`recall`]: those of earlier ones; [`anchor`]: the
//!   lines that they are about.
//! - [`saves`]: results that follow their data when it is saved.
//! - [`commands`]: what `workspace/executeCommand` serves.
//! - [`handlers`]: the other requests, one file each.
//! - [`chat`]: the editor's own models.
//! - [`cells`]: cells of Python and Markdown documents.
//! - [`hints`]: what stands at the end of a line.
//! - [`outbox`], [`progress`]: what is sent to the client.
//! - [`capabilities`], [`ext`], [`uris`] and [`convert`]: the protocol's types and ours.
//! - [`parent`]: the death of the editor.
//!
//! Architecture invariant: one task mutates the state, no handler awaits, every request gets exactly one answer, and
//! nothing but the protocol is written to the output.

pub mod analysis;
pub mod anchor;
pub mod backend;
pub mod capabilities;
pub mod cells;
pub mod chat;
pub mod commands;
pub mod convert;
pub mod documents;
pub mod event;
pub mod ext;
pub mod handlers;
pub mod hints;
pub mod main_loop;
pub mod outbox;
mod parent;
pub mod progress;
mod recall;
pub mod runs;
mod saves;
pub mod state;
pub mod uris;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower_lsp::{LspService, Server};

use crate::config::Overrides;
use crate::session::Services;

/// Requests that are under way at once. All answers come from the main loop, so that none of them holds another up.
const CONCURRENCY: usize = 64;

/// How long answers to what came before the end of input may take.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Bytes between [`wire`] and the protocol crate.
const PIPE: usize = 1 << 20;

/// Frames that wait for a client that does not read.
const FRAMES: usize = 64;

/// Serves one client until it says `exit`, its input ends, or its process dies; then ends every sandbox.
/// True where the client asked for `shutdown` first, as it should.
pub async fn serve(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    services: Arc<dyn Services>,
    command_line: Overrides,
) -> bool {
    let (events, queue) = mpsc::unbounded_channel();
    let end = CancellationToken::new();
    let mut begun = None;
    let (service, socket) = LspService::build(|client| {
        let chat = Arc::new(chat::Chat::new(client.clone()));
        let outbox = outbox::Outbox::new(client);
        begun = Some(state::State::new(outbox, events.clone(), services, chat, command_line, end.clone()));
        backend::Backend::new(events)
    })
    .custom_method("window/workDoneProgress/cancel", backend::Backend::progress_cancelled)
    .custom_method("codeinterp/chatDelta", backend::Backend::chat_delta)
    .finish();
    let Some(state) = begun else { return false };
    let sessions = Arc::clone(&state.sessions);
    let ended_well = Arc::clone(&state.shut_down);
    let main_loop = tokio::spawn(main_loop::run(state, queue));

    let (frames, outgoing) = mpsc::channel(FRAMES);
    let (near, far) = tokio::io::duplex(PIPE);
    let writer = tokio::spawn(wire::write(output, outgoing));
    let connection = async move {
        let reader = wire::read(input, near, frames.clone());
        let server = Server::new(far, wire::Pieces::new(frames), socket).concurrency_level(CONCURRENCY).serve(service);
        tokio::pin!(server);
        tokio::select! {
            () = &mut server => {}
            () = end.cancelled() => {}
            // At the end of input, what was asked before is still answered.
            () = reader => {
                if tokio::time::timeout(LAST_ANSWERS, &mut server).await.is_err() {
                    tracing::debug!("requests were under way at the end of input");
                }
            }
        }
    };
    connection.await;
    // Every sender of frames is gone: the writer ends when it has written what there is.
    if tokio::time::timeout(LAST_ANSWERS, writer).await.is_err() {
        tracing::debug!("the client reads no more");
    }
    if tokio::time::timeout(main_loop::ENDING, sessions.close_all()).await.is_err() {
        tracing::warn!("sandboxes did not end in time; they end with this process");
    }
    main_loop.abort();
    ended_well.load(std::sync::atomic::Ordering::Relaxed)
}
