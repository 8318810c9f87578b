//! The host's end of a supervisor's pipe: requests out, answers and events in, matched by id.
//!
//! - [`pump`]: the two tasks that read and write the pipe.
//! - [`files`]: files across the pipe.
//!
//! One task reads and one writes, so that no request that is given up half-way can break the framing. Nothing polls:
//! every wait ends by a message or by the end of the pipe. Channels are bounded: whoever is slow to take an
//! execution's output slows the sandbox down, not this process's memory up.

pub mod files;
mod pump;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use dashmap::DashMap;
use jupyter_protocol::ExecuteRequest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::jupyter::frame::{Frame, TransferId};
use crate::jupyter::message::{Message, MessageError, Request};
use crate::jupyter::reply::{Cause, Greeting, KernelReady, Status};

/// Version of the protocol that this side speaks.
pub const PROTOCOL: u32 = 1;

/// The reason of a link that closed without a word.
pub(crate) const ENDED: &str = "the supervisor ended";

/// Messages of one request that may wait for whoever asked.
const WAITING: usize = 32;

/// Why a request got no good answer.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LinkError {
    /// The pipe ended.
    #[error("{0}")]
    Closed(String),
    /// The supervisor refused or failed.
    #[error("{message}")]
    Refused {
        /// Kind: `KernelBusy`, `KernelDied`, `FileError`, `Cancelled`, `OutOfMemory`, …
        kind: String,
        /// A sentence.
        message: String,
    },
    /// What came is not what the protocol says.
    #[error("unexpected message: {0}")]
    Protocol(String),
}

impl From<MessageError> for LinkError {
    fn from(error: MessageError) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// What the supervisor tells of itself.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkEvent {
    /// A kernel serves.
    KernelReady(KernelReady),
    /// A kernel died; another follows by itself.
    KernelDied {
        /// Why.
        cause: Cause,
        /// Id of the execution that it was in.
        during: Option<String>,
    },
}

/// State of the far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// The supervisor has not said its first word.
    Opening,
    /// It serves.
    Open(Greeting),
    /// It is gone; the reason.
    Closed(String),
}

/// What comes for one request.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message),
    Chunk(Bytes),
}

/// Who waits for a request's answer.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// One message is the answer.
    Reply(oneshot::Sender<Message>),
    /// Several come; the last is a reply.
    Stream(mpsc::Sender<Incoming>),
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) waiting: DashMap<String, Waiting>,
    /// Files on their way here, each with the request that asked for it.
    pub(crate) transfers: DashMap<TransferId, String>,
    pub(crate) state: watch::Sender<LinkState>,
    pub(crate) events: broadcast::Sender<LinkEvent>,
    /// Messages that belong to nobody: unknown types, forged or forgotten ids.
    pub(crate) dropped: AtomicU64,
}

/// A handle on the pipe. Cheap to clone; when the last clone is dropped the supervisor's input closes, which ends it.
#[derive(Debug, Clone)]
pub struct Link {
    shared: Arc<Shared>,
    frames: mpsc::Sender<Frame>,
}

impl Link {
    /// Starts the tasks that serve the pipe: `reader` is the supervisor's standard output, `writer` its standard input.
    pub fn open<R, W>(reader: R, writer: W) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let shared = Arc::new(Shared {
            waiting: DashMap::new(),
            transfers: DashMap::new(),
            state: watch::Sender::new(LinkState::Opening),
            events: broadcast::Sender::new(64),
            dropped: AtomicU64::new(0),
        });
        // A few pieces of a file may be under way; more would only be memory.
        let (frames, queue) = mpsc::channel(4);
        tokio::spawn(pump::read(reader, Arc::clone(&shared)));
        tokio::spawn(pump::write(writer, queue));
        Self { shared, frames }
    }

    /// Waits for the supervisor's first word.
    pub async fn greeting(&self) -> Result<Greeting, LinkError> {
        let mut state = self.shared.state.subscribe();
        let reached = state.wait_for(|state| *state != LinkState::Opening).await;
        match reached.map(|state| state.clone()) {
            Ok(LinkState::Open(greeting)) if greeting.protocol == PROTOCOL => Ok(greeting),
            Ok(LinkState::Open(greeting)) => {
                Err(LinkError::Protocol(format!("the supervisor speaks version {} of the protocol, not {PROTOCOL}", greeting.protocol)))
            }
            Ok(LinkState::Closed(reason)) => Err(LinkError::Closed(reason)),
            Ok(LinkState::Opening) | Err(_) => Err(self.closed()),
        }
    }

    /// Follows the state of the far end.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.shared.state.subscribe()
    }

    /// Follows what happens to the kernel, from now on.
    pub fn events(&self) -> broadcast::Receiver<LinkEvent> {
        self.shared.events.subscribe()
    }

    /// Messages that were dropped because they belong to no request.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    fn closed(&self) -> LinkError {
        match &*self.shared.state.borrow() {
            LinkState::Closed(reason) => LinkError::Closed(reason.clone()),
            _ => LinkError::Closed(ENDED.to_owned()),
        }
    }

    async fn send(&self, frame: Frame) -> Result<(), LinkError> {
        if matches!(*self.shared.state.borrow(), LinkState::Closed(_)) {
            return Err(self.closed());
        }
        self.frames.send(frame).await.map_err(|_| self.closed())
    }

    /// Sends a request and waits for its reply, which must say `ok`.
    pub async fn ask<T: DeserializeOwned>(&self, msg_type: &str, content: Value) -> Result<T, LinkError> {
        self.ask_with(Request::own(msg_type, content)?).await
    }

    /// The same with a request of the Jupyter protocol.
    pub async fn ask_with<T: DeserializeOwned>(&self, request: Request) -> Result<T, LinkError> {
        let (sender, reply) = oneshot::channel();
        let forget = self.expect(&request.id, Waiting::Reply(sender));
        self.send(request.frame).await?;
        let message = reply.await.map_err(|_| self.closed())?;
        drop(forget);
        checked(message)?.content().map_err(LinkError::from)
    }

    /// Begins a request that gets several messages.
    pub(crate) async fn begin(&self, request: Request) -> Result<Answers, LinkError> {
        let (sender, incoming) = mpsc::channel(WAITING);
        let forget = self.expect(&request.id, Waiting::Stream(sender));
        self.send(request.frame).await?;
        Ok(Answers { id: request.id, incoming, link: self.clone(), _forget: forget })
    }

    fn expect(&self, id: &str, waiting: Waiting) -> Forget {
        self.shared.waiting.insert(id.to_owned(), waiting);
        Forget { id: id.to_owned(), shared: Arc::clone(&self.shared) }
    }

    /// Begins an execution. `stdout_bytes` and `stderr_bytes` are kept of the streams, head and tail.
    pub async fn execute(&self, code: &str, stdout_bytes: usize, stderr_bytes: usize) -> Result<Answers, LinkError> {
        let content = ExecuteRequest {
            code: code.to_owned(),
            silent: false,
            store_history: true,
            user_expressions: None,
            allow_stdin: false,
            stop_on_error: true,
        };
        let limits = json!({ "limits": { "stdout_bytes": stdout_bytes, "stderr_bytes": stderr_bytes } });
        self.begin(Request::new(content, limits)?).await
    }

    /// Interrupts an execution (SIGINT); without an id, the one that runs. Does not wait for an answer.
    pub async fn interrupt(&self, execution: Option<&str>) -> Result<(), LinkError> {
        self.send(Request::own("interrupt_request", json!({ "msg_id": execution }))?.frame).await
    }

    /// Kills the kernel while it is in that execution, which then ends with that cause (`timeout`, `cancelled`, `oom`).
    /// Does not wait.
    pub async fn kill_kernel(&self, execution: &str, cause: &str) -> Result<(), LinkError> {
        self.send(Request::own("kill_request", json!({ "msg_id": execution, "cause": cause }))?.frame).await
    }
}

/// The messages that answer one request, in order. Dropping it forgets the request.
#[derive(Debug)]
pub struct Answers {
    id: String,
    incoming: mpsc::Receiver<Incoming>,
    link: Link,
    _forget: Forget,
}

impl Answers {
    /// Id of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The link that they come by.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The next message. Pieces of files are passed over.
    pub async fn next(&mut self) -> Result<Message, LinkError> {
        loop {
            if let Incoming::Message(message) = self.next_incoming().await? {
                return Ok(message);
            }
        }
    }

    pub(crate) async fn next_incoming(&mut self) -> Result<Incoming, LinkError> {
        self.incoming.recv().await.ok_or_else(|| self.link.closed())
    }
}

/// Takes a request off the list of those that wait.
#[derive(Debug)]
struct Forget {
    id: String,
    shared: Arc<Shared>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.shared.waiting.remove(&self.id);
        self.shared.transfers.retain(|_, request| *request != self.id);
    }
}

/// Turns a reply that says `error` into an error.
pub(crate) fn checked(message: Message) -> Result<Message, LinkError> {
    let status: Status = message.clone().content()?;
    if status.status == "ok" {
        return Ok(message);
    }
    Err(LinkError::Refused { kind: status.ename, message: status.evalue })
}
