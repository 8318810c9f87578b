//! The bytes of the connection, checked before the protocol crate sees them.
//!
//! The crate stops reading for good at the first frame that it can't decode. Here such a frame gets an error
//! response and is skipped, so that one bad message costs one message. Frames that arrive whole are passed on as
//! they are, in order.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

/// Longest header block of a frame.
const MAX_HEADER: usize = 16 << 10;

/// Longest body of a frame: larger than any document that an editor opens as text.
const MAX_BODY: usize = 256 << 20;

/// JSON-RPC's code for text that is no JSON.
const PARSE_ERROR: i64 = -32700;

/// JSON-RPC's code for JSON that is no message.
const INVALID_REQUEST: i64 = -32600;

/// What a decoder found at the front of its buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// More bytes are needed.
    Partial,
    /// The body of a frame.
    Body(Bytes),
    /// Something that is no frame; it has been skipped.
    Bad(&'static str),
}

/// Cuts a stream of bytes into the bodies of frames.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    /// Bytes of a refused body that are still to come.
    skip: usize,
    /// The length of the body that follows.
    body: Option<usize>,
}

impl Decoder {
    /// Takes bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.buffer.extend_from_slice(&bytes[skipped..]);
    }

    /// The next frame.
    pub fn next(&mut self) -> Frame {
        if let Some(length) = self.body {
            if self.buffer.len() < length {
                return Frame::Partial;
            }
            self.body = None;
            return Frame::Body(self.buffer.split_to(length).freeze());
        }
        let Some((header, end)) = header_end(&self.buffer) else {
            if self.buffer.len() > MAX_HEADER {
                self.resynchronise(1);
                return Frame::Bad("the header of a message is too long");
            }
            return Frame::Partial;
        };
        match content_length(&self.buffer[..header]) {
            Some(length) if length <= MAX_BODY => {
                self.buffer.advance(end);
                self.body = Some(length);
                self.next()
            }
            Some(length) => {
                self.buffer.advance(end);
                let here = length.min(self.buffer.len());
                self.buffer.advance(here);
                self.skip = length - here;
                Frame::Bad("the message is too large")
            }
            None => {
                self.resynchronise(end);
                Frame::Bad("the Content-Length header is missing or no number")
            }
        }
    }

    /// Drops what can't be understood, up to where another frame may begin.
    fn resynchronise(&mut self, at_least: usize) {
        self.buffer.advance(at_least.min(self.buffer.len()));
        let needle = b"Content-Length:";
        let next = self.buffer.windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle));
        if let Some(next) = next {
            self.buffer.advance(next);
        } else {
            // The tail may be the beginning of the next header.
            let kept = self.buffer.len().min(needle.len() - 1);
            self.buffer.advance(self.buffer.len() - kept);
        }
    }
}

/// Where the header block ends, and where the body begins.
fn header_end(buffer: &[u8]) -> Option<(usize, usize)> {
    let looked_at = &buffer[..buffer.len().min(MAX_HEADER + 4)];
    looked_at.windows(4).position(|window| window == b"\r\n\r\n").map(|at| (at, at + 4))
}

fn content_length(header: &[u8]) -> Option<usize> {
    let header = std::str::from_utf8(header).ok()?;
    header.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// What must hold of a body before the protocol crate may see it.
#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow, default)]
    jsonrpc: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    method: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(default)]
    result: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

/// What becomes of a body.
pub(crate) enum Verdict {
    /// It is a message.
    Pass {
        /// It is the `exit` notification.
        exit: bool,
    },
    /// It is none; the response that says so.
    Refuse(serde_json::Value),
    /// It is none, and nobody waits for an answer.
    Drop,
}

/// Judges a body.
pub(crate) fn judge(body: &[u8]) -> Verdict {
    let shape: Shape<'_> = match serde_json::from_slice(body) {
        Ok(shape) => shape,
        Err(error) => {
            let (code, what) = if error.is_data() { (INVALID_REQUEST, "not a message") } else { (PARSE_ERROR, "not JSON") };
            return Verdict::Refuse(error_response(&serde_json::Value::Null, code, &format!("{what}: {error}")));
        }
    };
    let id_is_usable = match &shape.id {
        None | Some(serde_json::Value::Null | serde_json::Value::String(_)) => true,
        Some(serde_json::Value::Number(number)) => number.is_i64(),
        Some(_) => false,
    };
    if shape.jsonrpc != "2.0" || !id_is_usable {
        let id = if id_is_usable { shape.id.unwrap_or_default() } else { serde_json::Value::Null };
        return Verdict::Refuse(error_response(&id, INVALID_REQUEST, "not a JSON-RPC 2.0 message"));
    }
    match &shape.method {
        Some(method) => Verdict::Pass { exit: method == "exit" },
        // `"result": null` reads as absent here: any response to one of our requests is passed on.
        None if shape.id.is_some() || shape.result.is_some() || shape.error.is_some() => {
            if serde_json::from_slice::<tower_lsp::jsonrpc::Response>(body).is_ok() { Verdict::Pass { exit: false } } else { Verdict::Drop }
        }
        None => Verdict::Refuse(error_response(&serde_json::Value::Null, INVALID_REQUEST, "a message needs a method")),
    }
}

fn error_response(id: &serde_json::Value, code: i64, message: &str) -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// The bytes of a frame with this body.
pub(crate) fn frame(body: &[u8]) -> Bytes {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Bytes::from(bytes)
}

/// Reads `input` until its end, or until an `exit` was passed on, and passes what is sound on to `server`.
pub(crate) async fn read(mut input: impl AsyncRead + Unpin, mut server: DuplexStream, replies: mpsc::Sender<Bytes>) {
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match input.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(count) => decoder.push(&chunk[..count]),
        }
        loop {
            let refusal = match decoder.next() {
                Frame::Partial => break,
                Frame::Bad(reason) => error_response(&serde_json::Value::Null, PARSE_ERROR, reason),
                Frame::Body(body) => match judge(&body) {
                    Verdict::Drop => continue,
                    Verdict::Refuse(response) => response,
                    Verdict::Pass { exit } => {
                        if server.write_all(&frame(&body)).await.is_err() || exit {
                            return;
                        }
                        continue;
                    }
                },
            };
            tracing::warn!(%refusal, "a message was refused");
            if replies.send(frame(refusal.to_string().as_bytes())).await.is_err() {
                return;
            }
        }
    }
}

/// Writes whole frames, from wherever they come, to `output`.
pub(crate) async fn write(mut output: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = frames.recv().await {
        if output.write_all(&bytes).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

/// A writer whose every write is passed on as one piece. The protocol crate hands over whole frames at a time, so
/// pieces of others never land in the midst of one.
pub(crate) struct Pieces {
    sender: PollSender<Bytes>,
}

impl Pieces {
    pub fn new(sender: mpsc::Sender<Bytes>) -> Self {
        Self { sender: PollSender::new(sender) }
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let closed = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        std::task::ready!(self.sender.poll_reserve(context)).map_err(closed)?;
        self.sender.send_item(Bytes::copy_from_slice(bytes)).map_err(closed)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(input: &[u8], piece: usize) -> Vec<Result<String, ()>> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for bytes in input.chunks(piece.max(1)) {
            decoder.push(bytes);
            loop {
                match decoder.next() {
                    Frame::Partial => break,
                    Frame::Body(body) => found.push(Ok(String::from_utf8_lossy(&body).into_owned())),
                    Frame::Bad(_) => found.push(Err(())),
                }
            }
        }
        found
    }

    #[test]
    fn a_bad_frame_costs_one_message_wherever_the_stream_is_cut() {
        let good = "Content-Length: 2\r\n\r\n{}";
        let check = |bad: &str| {
            let input = format!("{good}{bad}{good}");
            for piece in 1..input.len() {
                let found = frames(input.as_bytes(), piece);
                assert_eq!(found.first(), Some(&Ok("{}".to_owned())), "{bad:?} in pieces of {piece}");
                assert_eq!(found.last(), Some(&Ok("{}".to_owned())), "{bad:?} in pieces of {piece}");
                assert!(found.contains(&Err(())), "{bad:?} in pieces of {piece}");
            }
        };
        check("Content-Length: many\r\n\r\n");
        check("Content-Length: -4\r\n\r\n");
        check("Content-Length: 99999999999999999999999\r\n\r\n");
        check("Content-Type: x\r\n\r\n");
        check("garbage\r\n\r\n");
    }

    #[test]
    fn a_body_that_is_too_large_is_skipped_without_being_kept() {
        let mut decoder = Decoder::default();
        decoder.push(format!("Content-Length: {}\r\n\r\n", MAX_BODY + 5).as_bytes());
        assert!(matches!(decoder.next(), Frame::Bad(_)));
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..256 {
            decoder.push(&piece);
            assert_eq!(decoder.next(), Frame::Partial);
        }
        decoder.push(b"xxxxxContent-Length: 2\r\n\r\n{}");
        assert_eq!(decoder.next(), Frame::Body(Bytes::from_static(b"{}")));
    }

    #[test]
    fn only_messages_are_passed_on() {
        let check = |body: &[u8], expected: &str| {
            let verdict = match judge(body) {
                Verdict::Pass { exit: true } => "exit",
                Verdict::Pass { exit: false } => "pass",
                Verdict::Refuse(_) => "refuse",
                Verdict::Drop => "drop",
            };
            assert_eq!(verdict, expected, "{}", String::from_utf8_lossy(body));
        };
        check(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, "pass");
        check(br#"{"jsonrpc":"2.0","method":"exit"}"#, "exit");
        check(br#"{"jsonrpc":"2.0","id":1,"result":null}"#, "pass");
        check(br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#, "pass");
        check(br#"{"jsonrpc":"2.0","id":1,"error":7}"#, "drop");
        check(br#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, "refuse");
        check(br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, "refuse");
        check(br#"{"jsonrpc":"2.0","id":1,"method":7}"#, "refuse");
        check(br#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#, "refuse");
        check(br#"{"jsonrpc":"2.0"}"#, "refuse");
        check(b"\xff\xfe{}", "refuse");
        check(b"", "refuse");
    }

    proptest! {
        /// Random pieces of frames, cut anywhere: no fault, no endless loop, nothing kept that is not needed.
        #[test]
        fn no_stream_of_bytes_is_too_strange(
            parts in proptest::collection::vec("Content-Length: [0-9]{1,3}|Content-Length:|\r\n|\r\n\r\n|\\{\\}|[a-z:é\0]{1,6}", 0..30),
            piece in 1usize..9,
        ) {
            let input = parts.concat().into_bytes();
            let mut decoder = Decoder::default();
            for bytes in input.chunks(piece) {
                decoder.push(bytes);
                for turn in 0.. {
                    prop_assert!(turn <= input.len(), "the decoder does not come to an end");
                    match decoder.next() {
                        Frame::Partial => break,
                        Frame::Body(body) => drop(judge(&body)),
                        Frame::Bad(_) => {}
                    }
                }
            }
            prop_assert!(decoder.buffer.len() <= input.len());
        }
    }
}
