//! A client of language servers over stdio, ours and others': as plain as possible, so that it adds nothing of note.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// A language server that was started here.
pub struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Notifications that came while an answer was waited for.
    told: Vec<Value>,
    /// From its start to the answer to `initialize`.
    pub start: Duration,
}

impl Server {
    /// Starts a server and initializes it.
    pub fn start(command: &mut Command, options: Value) -> Result<Self> {
        let began = Instant::now();
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let input = process.stdin.take().context("no stdin")?;
        let output = BufReader::new(process.stdout.take().context("no stdout")?);
        let mut server = Self { process, input, output, next: 0, told: Vec::new(), start: Duration::ZERO };
        let params = json!({
            "processId": std::process::id(), "rootUri": null, "initializationOptions": options,
            "capabilities": {"general": {"positionEncodings": ["utf-16"]}},
        });
        server.request("initialize", params)?;
        server.start = began.elapsed();
        server.notify("initialized", json!({}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        Ok(self.input.flush()?)
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Sends a request and reads to its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if params_are_absent(&request) {
            request.as_object_mut().context("a request is an object")?.remove("params");
        }
        self.send(&request)?;
        loop {
            let message = self.read()?;
            if message["id"] == id && message.get("method").is_none() {
                if let Some(error) = message.get("error") {
                    bail!("{method} was refused: {error}");
                }
                return Ok(message["result"].clone());
            }
            self.note(message)?;
        }
    }

    /// The seconds that a request takes.
    pub fn time(&mut self, method: &str, params: Value) -> Result<f64> {
        let began = Instant::now();
        self.request(method, params)?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Reads to a notification that `wanted` wants.
    pub fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(at) = self.told.iter().position(&wanted) {
            return Ok(self.told.remove(at));
        }
        loop {
            let message = self.read()?;
            if wanted(&message) {
                return Ok(message);
            }
            self.note(message)?;
        }
    }

    /// Keeps a notification, and answers a request of the server with nothing.
    fn note(&mut self, message: Value) -> Result<()> {
        match message.get("id") {
            Some(id) if message.get("method").is_some() => self.send(&json!({"jsonrpc": "2.0", "id": id, "result": null})),
            _ => {
                self.told.push(message);
                Ok(())
            }
        }
    }

    fn read(&mut self) -> Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the server ended without an answer");
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        std::io::Read::read_exact(&mut self.output, &mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Opens a document.
    pub fn open(&mut self, uri: &str, language: &str, text: &str) -> Result<()> {
        self.notify("textDocument/didOpen", json!({"textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}}))
    }

    /// Replaces part of a line.
    pub fn change(&mut self, uri: &str, version: usize, line: usize, characters: (usize, usize), text: &str) -> Result<()> {
        let range = json!({"start": {"line": line, "character": characters.0}, "end": {"line": line, "character": characters.1}});
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"range": range, "text": text}]}),
        )
    }

    /// Resident memory (`VmRSS` of proc(5)), in bytes.
    pub fn resident_bytes(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).context("no number in VmRSS")?.parse()?;
        Ok(kilobytes * 1024.0)
    }

    /// Processor time that it has used so far, in seconds (`utime` and `stime` of proc(5), in hundredths).
    pub fn processor_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name, in parentheses, may hold anything.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).context("no times in stat")?.parse()?) };
        Ok((ticks(11)? + ticks(12)?) / 100.0)
    }

    /// Ends the server as an editor does.
    pub fn close(mut self) -> Result<()> {
        self.request("shutdown", Value::Null)?;
        self.notify("exit", json!({}))?;
        let Self { mut process, input, .. } = self;
        drop(input);
        process.wait()?;
        Ok(())
    }
}

/// Requests without parameters have none at all: some servers refuse null.
fn params_are_absent(request: &Value) -> bool {
    request["params"].is_null()
}

/// The parameters of a request about a document.
pub fn at(uri: &str, line: usize, character: usize) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}

/// The parameters of a request about all of a document.
pub fn whole(uri: &str) -> Value {
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}});
    json!({"textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": []}})
}
