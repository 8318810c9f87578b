//! A client of the server that panics on what nobody asked for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codeinterp::config::Overrides;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::rig::Rig;

/// A machine that builds beside the tests is slow; nothing here measures time.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    input: Option<DuplexStream>,
    incoming: mpsc::UnboundedReceiver<Value>,
    /// Messages that came while another was waited for.
    waiting: VecDeque<Value>,
    server: JoinHandle<bool>,
    next: i64,
    /// Notifications and requests that this test does not look at.
    ignored: Vec<&'static str>,
    pub capabilities: Value,
    pub folder: tempfile::TempDir,
    finished: bool,
}

/// A client's capabilities as VS Code has them, as far as the server looks at them.
pub fn full() -> Value {
    json!({
        "workspace": {
            "textDocumentContent": {}, "inlayHint": {"refreshSupport": true}, "codeLens": {"refreshSupport": true}, "workspaceFolders": true,
        },
        "window": {"workDoneProgress": true, "showDocument": {"support": true}},
        "general": {"positionEncodings": ["utf-16"]},
    })
}

impl Client {
    /// A server that was not initialized yet.
    pub fn raw(rig: &Arc<Rig>) -> Self {
        Self::start(rig, "scripted")
    }

    fn start(rig: &Arc<Rig>, model: &str) -> Self {
        let (input, server_input) = tokio::io::duplex(1 << 16);
        let (server_output, mut output) = tokio::io::duplex(1 << 16);
        let mut settings = Overrides::default();
        settings.set("model", model);
        let server = tokio::spawn(codeinterp::lsp::serve(server_input, server_output, rig.clone(), settings));
        let (sender, incoming) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(message) = read(&mut output).await {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            input: Some(input),
            incoming,
            waiting: VecDeque::new(),
            server,
            next: 0,
            ignored: Vec::new(),
            capabilities: Value::Null,
            folder: tempfile::tempdir().unwrap(),
            finished: false,
        }
    }

    /// An initialized server with one workspace folder.
    pub async fn open(rig: &Arc<Rig>, capabilities: Value, options: Value) -> Self {
        Self::with_model(rig, "scripted", capabilities, options).await
    }

    /// The same with all that a client can do, for a test that looks at no refresh and no progress.
    pub async fn calm(rig: &Arc<Rig>) -> Self {
        let mut client = Self::open(rig, full(), json!({"runEvents": true})).await;
        client.ignored = vec![
            "workspace/inlayHint/refresh",
            "workspace/codeLens/refresh",
            "workspace/textDocumentContent/refresh",
            "window/workDoneProgress/create",
            "$/progress",
        ];
        client
    }

    /// An initialized server whose model has this name.
    pub async fn with_model(rig: &Arc<Rig>, model: &str, capabilities: Value, options: Value) -> Self {
        let mut client = Self::start(rig, model);
        client.initialize(capabilities, options).await;
        client
    }

    /// Another server for the folder of one that has ended.
    pub async fn again(rig: &Arc<Rig>, folder: tempfile::TempDir, capabilities: Value, options: Value) -> Self {
        let mut client = Self::start(rig, "scripted");
        client.folder = folder;
        client.initialize(capabilities, options).await;
        client
    }

    async fn initialize(&mut self, capabilities: Value, options: Value) {
        let folder = self.uri("");
        let answer = self
            .request(
                "initialize",
                json!({
                    "processId": std::process::id(), "rootUri": null, "capabilities": capabilities,
                    "initializationOptions": options, "workspaceFolders": [{"uri": folder, "name": "w"}],
                }),
            )
            .await
            .unwrap();
        self.capabilities = answer["capabilities"].clone();
        self.notify("initialized", json!({})).await;
    }

    /// Messages of this method are not looked at from now on.
    pub fn ignore(&mut self, method: &'static str) {
        self.ignored.push(method);
    }

    pub fn uri(&self, name: &str) -> String {
        url::Url::from_file_path(self.folder.path().join(name)).unwrap().to_string()
    }

    pub async fn bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends a request; its id.
    pub async fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        self.answer(json!(id)).await
    }

    /// The answer of a request.
    pub async fn answer(&mut self, id: Value) -> Result<Value, Value> {
        let message = self.wait(|message| message.get("method").is_none() && message["id"] == id).await;
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    /// The answer of a request, if it is here.
    pub async fn answered(&mut self, id: i64) -> Option<Result<Value, Value>> {
        while let Ok(message) = self.incoming.try_recv() {
            self.waiting.push_back(message);
        }
        let here = self.waiting.iter().any(|message| message.get("method").is_none() && message["id"] == id);
        if here { Some(self.answer(json!(id)).await) } else { None }
    }

    pub async fn command(&mut self, name: &str, argument: Value) -> Result<Value, Value> {
        self.request("workspace/executeCommand", json!({"command": format!("codeinterp.{name}"), "arguments": [argument]})).await
    }

    /// The next notification of a method.
    pub async fn expect(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method && message.get("id").is_none()).await["params"].clone()
    }

    /// The next request of the server of a method, answered with `result`.
    pub async fn serve(&mut self, method: &str, result: Value) -> Value {
        let request = self.wait(|message| message["method"] == method && message.get("id").is_some()).await;
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
        request["params"].clone()
    }

    /// Answers a request of the server.
    pub async fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// The next message that `wanted` wants; others wait for their turn.
    pub async fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(at).unwrap();
        }
        loop {
            let message =
                tokio::time::timeout(PATIENCE, self.incoming.recv()).await.expect("the server sent nothing").expect("the server has ended");
            if wanted(&message) {
                return message;
            }
            if !self.is_ignored(&message).await {
                self.waiting.push_back(message);
            }
        }
    }

    /// Ignored requests are answered all the same.
    async fn is_ignored(&mut self, message: &Value) -> bool {
        let ignored = message["method"].as_str().is_some_and(|method| self.ignored.contains(&method));
        if ignored && message.get("id").is_some() {
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null})).await;
        }
        ignored
    }

    pub async fn show(&mut self, name: &str, language: &str, text: &str) -> String {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        let uri = self.uri(name);
        self.notify("textDocument/didOpen", json!({"textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}}))
            .await;
        uri
    }

    pub async fn change(&mut self, uri: &str, version: i32, from: (u32, u32), to: (u32, u32), text: &str) {
        let position = |(line, character)| json!({"line": line, "character": character});
        let change = json!({"range": {"start": position(from), "end": position(to)}, "text": text});
        self.notify("textDocument/didChange", json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]})).await;
    }

    /// The lenses of a document, as `line: title`, with the arguments of their commands.
    pub async fn lenses(&mut self, uri: &str) -> Vec<(String, Value)> {
        let lenses = self.request("textDocument/codeLens", json!({"textDocument": {"uri": uri}})).await.unwrap();
        let lens = |lens: &Value| {
            let title = format!("{}: {}", lens["range"]["start"]["line"], lens["command"]["title"].as_str().unwrap());
            (title, lens["command"]["arguments"][0].clone())
        };
        lenses.as_array().into_iter().flatten().map(lens).collect()
    }

    /// The hints of a document, as `line: text`.
    pub async fn hints(&mut self, uri: &str) -> Vec<String> {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99999, "character": 0}});
        let hints = self.request("textDocument/inlayHint", json!({"textDocument": {"uri": uri}, "range": range})).await.unwrap();
        let text = |hint: &Value| hint["label"].as_array().unwrap().iter().map(|part| part["value"].as_str().unwrap()).collect::<String>();
        hints.as_array().unwrap().iter().map(|hint| format!("{}: {}", hint["position"]["line"], text(hint))).collect()
    }

    pub async fn hover(&mut self, uri: &str, line: u32, character: u32) -> String {
        let position = json!({"line": line, "character": character});
        let hover = self.request("textDocument/hover", json!({"textDocument": {"uri": uri}, "position": position})).await.unwrap();
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits for the end of a run; its status.
    pub async fn ended(&mut self, run: &Value) -> String {
        loop {
            let changed = self.expect("codeinterp/runChanged").await;
            let status = changed["status"].as_str().unwrap();
            if changed["run"] == *run && !matches!(status, "queued" | "running") {
                return status.to_owned();
            }
        }
    }

    /// Ends as an editor does; whatever was sent and not claimed fails the test.
    pub async fn close(mut self) {
        self.request("shutdown", Value::Null).await.unwrap();
        self.notify("exit", Value::Null).await;
        self.finish(true).await;
    }

    /// The same, and keeps the workspace folder.
    pub async fn close_and_keep(mut self) -> tempfile::TempDir {
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        self.close().await;
        folder
    }

    /// Waits for the end of the server; `orderly` is what it says of it.
    pub async fn finish(mut self, orderly: bool) {
        let server = std::mem::replace(&mut self.server, tokio::spawn(async { false }));
        assert_eq!(tokio::time::timeout(PATIENCE, server).await.expect("the server did not end").unwrap(), orderly);
        while let Some(message) = self.incoming.recv().await {
            if !message["method"].as_str().is_some_and(|method| self.ignored.contains(&method)) {
                self.waiting.push_back(message);
            }
        }
        self.finished = true;
        assert!(self.waiting.is_empty(), "nobody asked for {:#?}", self.waiting);
    }

    /// Waits for the end of the server; what it sent last is not looked at.
    pub async fn forget(mut self) {
        let server = std::mem::replace(&mut self.server, tokio::spawn(async { false }));
        tokio::time::timeout(PATIENCE, server).await.expect("the server did not end").unwrap();
        self.finished = true;
    }

    /// The input ends, as when an editor dies.
    pub fn hang_up(&mut self) {
        self.input = None;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        assert!(self.finished || std::thread::panicking(), "a test must end with `close` or `finish`");
    }
}

async fn read(output: &mut DuplexStream) -> Option<Value> {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        header.push(output.read_u8().await.ok()?);
    }
    let header = String::from_utf8(header).expect("a header of ASCII");
    let length: usize = header.trim().strip_prefix("Content-Length: ").expect("nothing but the protocol").parse().expect("a length");
    let mut body = vec![0; length];
    output.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).expect("JSON"))
}
