//! Files across the pipe, in pieces, checked by length and SHA-256 at both ends.

use bytes::Bytes;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Answers, Incoming, Link, LinkError, checked};
use crate::jupyter::frame::{Frame, MAX_CHUNK};
use crate::jupyter::message::Request;
use crate::jupyter::reply::{FileList, FileReply};

impl Link {
    /// Puts what `source` yields under `path`, which appears whole or not at all. `bytes` is the length that must come.
    /// `sent` is told the bytes sent so far. Dropping the future on the way leaves nothing behind in the sandbox.
    pub async fn put_file(
        &self,
        path: &str,
        bytes: u64,
        mut source: impl AsyncRead + Unpin,
        sent: impl Fn(u64),
    ) -> Result<FileReply, PutError> {
        let transfer = uuid::Uuid::new_v4();
        let hex = transfer.simple().to_string();
        let request = Request::own("put_file_request", json!({ "path": path, "bytes": bytes, "transfer": hex }))?;
        let mut answers = self.begin(request).await?;
        let mut abort = AbortPut { link: self.clone(), transfer: Some(hex.clone()) };
        let (mut digest, mut total) = (Sha256::new(), 0);
        loop {
            let mut piece = Vec::with_capacity(MAX_CHUNK.min(usize::try_from(bytes - total).unwrap_or(MAX_CHUNK)) + 1);
            // One byte more than is due shows a source that has grown.
            let limit = (MAX_CHUNK as u64).min(bytes - total + 1);
            while (piece.len() as u64) < limit {
                let room = limit - piece.len() as u64;
                if (&mut source).take(room).read_buf(&mut piece).await? == 0 {
                    break;
                }
            }
            if piece.is_empty() {
                break;
            }
            total += piece.len() as u64;
            if total > bytes {
                return Err(PutError::Changed);
            }
            digest.update(&piece);
            // A refusal comes early, and there is no point in sending the rest.
            if let Ok(Incoming::Message(reply)) = answers.incoming.try_recv() {
                checked(reply)?;
                return Err(LinkError::Protocol("a file was accepted before it was sent".to_owned()).into());
            }
            self.send(Frame::Chunk { transfer: transfer.into_bytes(), data: Bytes::from(piece) }).await?;
            sent(total);
        }
        if total != bytes {
            return Err(PutError::Changed);
        }
        let sha256 = hex_digest(digest);
        let end = Request::own("transfer_end", json!({ "transfer": hex, "bytes": total, "sha256": sha256 }))?;
        self.send(end.frame).await?;
        let reply = checked(answers.next().await?)?;
        abort.transfer = None;
        Ok(reply.content().map_err(LinkError::from)?)
    }

    /// Reads a regular file of the working directory, at most `limit` bytes of it; a larger one is refused.
    pub async fn get_file(&self, path: &str, limit: u64) -> Result<Vec<u8>, LinkError> {
        let request = Request::own("get_file_request", json!({ "path": path, "limit": limit }))?;
        let mut answers: Answers = self.begin(request).await?;
        let (mut data, mut digest) = (Vec::new(), Sha256::new());
        let reply: FileReply = loop {
            match answers.next_incoming().await? {
                Incoming::Chunk(piece) => {
                    if (data.len() + piece.len()) as u64 > limit {
                        return Err(LinkError::Protocol(format!("more than {limit} bytes came")));
                    }
                    digest.update(&piece);
                    data.extend_from_slice(&piece);
                }
                Incoming::Message(message) if message.msg_type == "get_file_reply" => break checked(message)?.content()?,
                Incoming::Message(_) => {}
            }
        };
        if reply.bytes != data.len() as u64 || reply.sha256 != hex_digest(digest) {
            return Err(LinkError::Protocol("what arrived is not what was sent".to_owned()));
        }
        Ok(data)
    }

    /// Regular files of the working directory, recursively.
    pub async fn list_files(&self) -> Result<FileList, LinkError> {
        self.ask("list_files_request", json!({})).await
    }
}

/// Why a file was not put.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// The far end.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The source cannot be read.
    #[error("it can't be read: {0}")]
    Source(#[from] std::io::Error),
    /// The source is longer or shorter than it was.
    #[error("it changed while it was read")]
    Changed,
}

impl From<crate::jupyter::message::MessageError> for PutError {
    fn from(error: crate::jupyter::message::MessageError) -> Self {
        Self::Link(error.into())
    }
}

/// Tells the supervisor to throw away a transfer that was given up.
struct AbortPut {
    link: Link,
    transfer: Option<String>,
}

impl Drop for AbortPut {
    fn drop(&mut self) {
        let Some(transfer) = self.transfer.take() else { return };
        let Ok(request) = Request::own("transfer_end", json!({ "transfer": transfer, "cancelled": true })) else { return };
        let link = self.link.clone();
        // Dropping cannot wait; without a runtime the pipe is about to close anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { link.send(request.frame).await });
        }
    }
}

fn hex_digest(digest: Sha256) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
