//! A scripted OpenAI-compatible server on loopback: it answers each request with the next prepared reply and keeps
//! what it was sent. It writes raw HTTP, so that it can stall, cut, split and lie wherever a test wants it to.

use std::fmt::Write;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    /// Head of the request, as sent.
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the request's body is JSON")
    }

    /// All text of its messages.
    pub fn text(&self) -> String {
        let body = self.json();
        let texts: Vec<String> =
            body["messages"].as_array().expect("messages").iter().map(|message| message["content"].to_string()).collect();
        texts.join("\n")
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// One prepared reply.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These pieces, written one after the other, then the end.
    Pieces { status: u16, headers: Vec<(String, String)>, pieces: Vec<Vec<u8>> },
    /// These pieces, then the connection is closed although more was promised.
    Cut(Vec<Vec<u8>>),
    /// These pieces, then nothing more; the connection stays open.
    Stall(Vec<Vec<u8>>),
    /// A line of this many bytes that never ends a frame.
    EndlessLine(usize),
    /// The connection is closed without a word.
    HangUp,
}

fn frame(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn delta(delta: &Value, finish: Option<&str>) -> String {
    frame(
        &json!({"id": "c", "object": "chat.completion.chunk", "model": "scripted", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
    )
}

/// The frames of a streamed text, without the end.
fn opening(text: &str) -> String {
    let mut frames = delta(&json!({"role": "assistant", "content": ""}), None);
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(7) {
        frames.push_str(&delta(&json!({"content": piece.iter().collect::<String>()}), None));
    }
    frames
}

fn ending(finish: &str) -> String {
    counted_ending(finish, 100)
}

fn counted_ending(finish: &str, prompt_tokens: u64) -> String {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 10, "total_tokens": 110}});
    format!("{}{}data: [DONE]\n\n", delta(&json!({}), Some(finish)), frame(&usage))
}

/// Bytes split at odd places, in the midst of characters and frames too.
fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let (mut at, mut size) = (0, 1);
    while at < bytes.len() {
        let end = (at + size).min(bytes.len());
        pieces.push(bytes[at..end].to_vec());
        at = end;
        size = size % 97 + 13;
    }
    pieces
}

impl Reply {
    fn streamed(frames: &str) -> Self {
        let headers = vec![("Content-Type".to_owned(), "text/event-stream".to_owned())];
        Self::Pieces { status: 200, headers, pieces: split(frames.as_bytes()) }
    }

    /// A whole turn of text.
    pub fn text(text: &str) -> Self {
        Self::finished(text, "stop")
    }

    /// A turn of text that ends for this reason.
    pub fn finished(text: &str, finish: &str) -> Self {
        Self::streamed(&format!("{}{}", opening(text), ending(finish)))
    }

    /// A turn with this code, from a server that says how many tokens of the conversation it read.
    pub fn counted(code: &str, prompt_tokens: u64) -> Self {
        Self::streamed(&format!("{}{}", opening(&format!("```python\n{code}\n```")), counted_ending("stop", prompt_tokens)))
    }

    /// A turn of reasoning, then text.
    pub fn reasoned(reasoning: &str, text: &str) -> Self {
        let thought = delta(&json!({"role": "assistant", "reasoning_content": reasoning}), None);
        Self::streamed(&format!("{thought}{}{}", opening(text), ending("stop")))
    }

    /// A turn of reasoning, then a call of the tool with this code.
    pub fn reasoned_call(reasoning: &str, code: &str) -> Self {
        let thought = delta(&json!({"role": "assistant", "reasoning_content": reasoning}), None);
        let function = json!({"name": "python", "arguments": json!({"code": code}).to_string()});
        let call = delta(&json!({"tool_calls": [{"index": 0, "id": "id-0", "type": "function", "function": function}]}), None);
        Self::streamed(&format!("{thought}{call}{}", ending("tool_calls")))
    }

    /// A turn that calls the tool with these codes.
    pub fn calls(codes: &[&str]) -> Self {
        Self::raw_calls(&codes.iter().map(|code| json!({"code": code}).to_string()).collect::<Vec<_>>(), "tool_calls")
    }

    /// A turn that calls the tool with these arguments, streamed in pieces.
    pub fn raw_calls(arguments: &[String], finish: &str) -> Self {
        let mut frames = delta(&json!({"role": "assistant", "content": null}), None);
        for (index, arguments) in arguments.iter().enumerate() {
            let first = json!({"tool_calls": [{"index": index, "id": format!("id-{index}"), "type": "function", "function": {"name": "python", "arguments": ""}}]});
            frames.push_str(&delta(&first, None));
            let characters: Vec<char> = arguments.chars().collect();
            for piece in characters.chunks(5) {
                let text: String = piece.iter().collect();
                frames.push_str(&delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}), None));
            }
        }
        Self::streamed(&format!("{frames}{}", ending(finish)))
    }

    /// An error with a JSON body.
    pub fn error(status: u16, message: &str) -> Self {
        Self::error_with(status, message, &[])
    }

    /// An error with further headers.
    pub fn error_with(status: u16, message: &str, headers: &[(&str, &str)]) -> Self {
        let body = json!({"error": {"message": message, "type": "error"}}).to_string();
        let mut reply = Self::refusal(status, &body);
        if let Self::Pieces { headers: all, .. } = &mut reply {
            all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        }
        reply
    }

    /// An error with this JSON as its body.
    pub fn refusal(status: u16, body: &str) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self::Pieces { status, headers, pieces: vec![body.as_bytes().to_vec()] }
    }

    /// A body of any kind.
    pub fn body(content_type: &str, body: &str) -> Self {
        Self::Pieces {
            status: 200,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            pieces: vec![body.as_bytes().to_vec()],
        }
    }

    /// A stream that is cut in the midst of this text.
    pub fn cut(text: &str) -> Self {
        Self::Cut(vec![opening(text).into_bytes()])
    }

    /// A stream that ends properly, but without saying that the turn is complete.
    pub fn half_closed(text: &str) -> Self {
        Self::streamed(&opening(text))
    }

    /// A stream that stalls after this text.
    pub fn stalled(text: &str) -> Self {
        Self::Stall(vec![opening(text).into_bytes()])
    }
}

/// The server. It ends with the value.
pub struct Provider {
    pub address: String,
    received: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provider {
    /// A server with these replies; the last one is given to all further requests.
    pub async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
        let kept = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (kept, replies) = (Arc::clone(&kept), Arc::clone(&replies));
                tokio::spawn(async move {
                    // A client that goes away ends the connection; that is no fault of the test.
                    let _ = serve(connection, &kept, &replies).await;
                });
            }
        });
        Self { address, received, task }
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic in the server").clone()
    }
}

async fn serve(mut connection: TcpStream, received: &Mutex<Vec<Received>>, replies: &Mutex<VecDeque<Reply>>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if connection.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length =
        text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()).unwrap_or(0);
    while bytes.len() < head + length {
        if connection.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    received.lock().expect("no panic in the server").push(Received { path, head: text, body: bytes[head..].to_vec() });
    let reply = {
        let mut replies = replies.lock().expect("no panic in the server");
        if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
    };
    answer(&mut connection, reply.unwrap_or(Reply::HangUp)).await
}

async fn answer(connection: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    match reply {
        Reply::HangUp => {}
        Reply::Pieces { status, headers, pieces } => {
            let mut head = format!("HTTP/1.1 {status} Scripted\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n");
            for (name, value) in headers {
                let _ = writeln!(head, "{name}: {value}\r");
            }
            connection.write_all(format!("{head}\r\n").as_bytes()).await?;
            for piece in pieces {
                chunk(connection, &piece).await?;
            }
            connection.write_all(b"0\r\n\r\n").await?;
        }
        Reply::Cut(pieces) => {
            connection.write_all(head.as_bytes()).await?;
            for piece in pieces {
                chunk(connection, &piece).await?;
            }
        }
        Reply::Stall(pieces) => {
            connection.write_all(head.as_bytes()).await?;
            for piece in pieces {
                chunk(connection, &piece).await?;
            }
            // Until the client goes away.
            let mut rest = [0; 1];
            let _ = tokio::time::timeout(Duration::from_secs(60), connection.read(&mut rest)).await;
        }
        Reply::EndlessLine(bytes) => {
            connection.write_all(head.as_bytes()).await?;
            chunk(connection, b"data: \"").await?;
            let block = vec![b'x'; 1 << 20];
            for _ in 0..bytes >> 20 {
                chunk(connection, &block).await?;
            }
            connection.write_all(b"0\r\n\r\n").await?;
        }
    }
    connection.flush().await?;
    connection.shutdown().await
}

async fn chunk(connection: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    connection.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    connection.write_all(bytes).await?;
    connection.write_all(b"\r\n").await?;
    connection.flush().await
}
