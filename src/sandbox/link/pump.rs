//! The two tasks that serve a pipe.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::codec::{Encoder, FramedRead};

use super::{ENDED, Incoming, LinkEvent, LinkState, Shared, Waiting};
use crate::jupyter::frame::{Frame, FrameCodec, TransferId};
use crate::jupyter::message::Message;
use crate::jupyter::reply::{Cause, Greeting};

/// Writes frames, each in one piece, until nobody can send any more; then closes the pipe.
pub(super) async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut queue: mpsc::Receiver<Frame>) {
    let mut buffer = BytesMut::new();
    while let Some(frame) = queue.recv().await {
        buffer.clear();
        if let Err(error) = FrameCodec.encode(frame, &mut buffer) {
            tracing::error!(%error, "a frame was not sent");
            continue;
        }
        let written = async {
            writer.write_all(&buffer).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            // The reading side learns of the end too, and tells everybody.
            tracing::debug!(%error, "the sandbox's input is closed");
            break;
        }
    }
    let _ = writer.shutdown().await;
}

/// Reads frames and hands each to whoever waits for it, until the pipe ends.
pub(super) async fn read<R: AsyncRead + Unpin>(reader: R, shared: Arc<Shared>) {
    let mut frames = FramedRead::with_capacity(reader, FrameCodec, 1 << 16);
    let mut failure = None;
    let reason = loop {
        match frames.next().await {
            Some(Ok(Frame::Json(payload))) => match Message::parse(&payload) {
                Ok(message) if message.msg_type == "supervisor_failed" => {
                    failure = message.content.get("evalue").and_then(Value::as_str).map(|text| text.chars().take(2000).collect());
                }
                Ok(message) => message_came(&shared, message).await,
                Err(error) => {
                    tracing::debug!(%error, "a message was dropped");
                    count(&shared);
                }
            },
            Some(Ok(Frame::Chunk { transfer, data })) => chunk_came(&shared, transfer, data).await,
            Some(Err(error)) => break error.to_string(),
            None => break failure.unwrap_or_else(|| ENDED.to_owned()),
        }
    };
    shared.state.send_replace(LinkState::Closed(reason));
    // Dropping the senders wakes everybody who waits.
    shared.waiting.clear();
    shared.transfers.clear();
}

fn count(shared: &Shared) {
    shared.dropped.fetch_add(1, Ordering::Relaxed);
}

async fn message_came(shared: &Shared, message: Message) {
    let Some(parent) = message.parent.clone() else {
        event_came(shared, message);
        return;
    };
    if message.msg_type == "kernel_died" {
        event_came(shared, message);
        return;
    }
    if message.msg_type == "transfer_begin" {
        transfer_began(shared, parent, &message);
        return;
    }
    let last = message.msg_type.ends_with("_reply");
    let sender = match shared.waiting.get(&parent).as_deref() {
        Some(Waiting::Stream(sender)) => Some(sender.clone()),
        Some(Waiting::Reply(_)) if last => None,
        _ => {
            count(shared);
            return;
        }
    };
    match sender {
        Some(sender) => {
            if sender.send(Incoming::Message(message)).await.is_err() {
                count(shared);
            }
        }
        None => {
            if let Some((_, Waiting::Reply(sender))) = shared.waiting.remove(&parent) {
                let _ = sender.send(message);
            }
        }
    }
}

fn transfer_began(shared: &Shared, parent: String, message: &Message) {
    let id = message.content.get("transfer").and_then(Value::as_str).and_then(transfer_id);
    match id {
        Some(id) if shared.waiting.contains_key(&parent) => {
            shared.transfers.insert(id, parent);
        }
        _ => count(shared),
    }
}

async fn chunk_came(shared: &Shared, transfer: TransferId, data: Bytes) {
    let request = shared.transfers.get(&transfer).map(|request| request.clone());
    let sender = request.and_then(|request| match shared.waiting.get(&request).as_deref() {
        Some(Waiting::Stream(sender)) => Some(sender.clone()),
        _ => None,
    });
    match sender {
        Some(sender) if sender.send(Incoming::Chunk(data)).await.is_ok() => {}
        _ => count(shared),
    }
}

fn event_came(shared: &Shared, message: Message) {
    let event = match message.msg_type.as_str() {
        "supervisor_ready" => {
            let opening = *shared.state.borrow() == LinkState::Opening;
            if let (true, Ok(greeting)) = (opening, message.content::<Greeting>()) {
                shared.state.send_replace(LinkState::Open(greeting));
            }
            return;
        }
        "kernel_ready" => message.content().ok().map(LinkEvent::KernelReady),
        "kernel_died" => {
            let during = message.parent.clone();
            let cause = message.content.get("cause").cloned().unwrap_or_default();
            serde_json::from_value::<Cause>(cause).ok().map(|cause| LinkEvent::KernelDied { cause, during })
        }
        _ => None,
    };
    match event {
        // An error means that nobody listens.
        Some(event) => drop(shared.events.send(event)),
        None => count(shared),
    }
}

/// Reads the hexadecimal form of a transfer's id.
pub(super) fn transfer_id(text: &str) -> Option<TransferId> {
    uuid::Uuid::try_parse(text).ok().map(uuid::Uuid::into_bytes)
}
