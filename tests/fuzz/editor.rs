//! A language server whose client sends whatever it likes: every request is answered once, and the server goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use codeinterp::agent::ports::{Model, ModelError, SandboxError};
use codeinterp::config::{Overrides, Settings};
use codeinterp::sandbox::Backend;
use codeinterp::sandbox::consent::Consent;
use codeinterp::session::Services;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A server that does not answer for so long hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Nothing runs here: what is asked of a sandbox or a model fails.
struct Nothing(PathBuf);

#[async_trait]
impl Services for Nothing {
    async fn backend(&self, _: &Settings) -> Result<(Arc<dyn Backend>, String), SandboxError> {
        Err(SandboxError::Unavailable { message: "there is none".to_owned(), hint: String::new() })
    }

    fn model(&self, _: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        Err(ModelError::Settings("there is none".to_owned()))
    }

    fn state_dir(&self) -> PathBuf {
        self.0.clone()
    }

    fn ask(&self, _: Arc<dyn Consent>) {}
}

fn any_uri() -> impl Strategy<Value = Value> {
    let known =
        select(vec!["file:///t.csv", "file:///t.json", "file:///a.py", "untitled:x", "codeinterp:/runs/x/report.md", "", "x", "http://"]);
    prop_oneof![8 => known.prop_map(Value::from), 1 => "\\PC{0,12}".prop_map(Value::from), 1 => Just(Value::Null)]
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![6 => (0_u32..6).prop_map(Value::from), 1 => any::<u32>().prop_map(Value::from), 1 => any::<i64>().prop_map(Value::from)]
}

fn any_range() -> impl Strategy<Value = Value> {
    (any_number(), any_number(), any_number(), any_number())
        .prop_map(|(a, b, c, d)| json!({"start": {"line": a, "character": b}, "end": {"line": c, "character": d}}))
}

fn any_text() -> impl Strategy<Value = Value> {
    "([ab0-9,;\"\r\n{}:\\[\\]#%`]|é|😀|\u{301}|\0){0,40}".prop_map(Value::from)
}

/// A method with parameters that are nearly right.
fn any_call() -> impl Strategy<Value = (&'static str, Value)> {
    let changes = prop::collection::vec((prop::option::of(any_range()), any_text()), 0..4).prop_map(|changes| {
        let change = |(range, text)| match range {
            Some(range) => json!({"range": range, "text": text}),
            None => json!({ "text": text }),
        };
        Value::Array(changes.into_iter().map(change).collect())
    });
    let document = (any_uri(), select(vec!["csv", "json", "python", "markdown", "\0"]), any_number(), any_text()).prop_map(
        |(uri, language, version, text)| json!({"textDocument": {"uri": uri, "languageId": language, "version": version, "text": text}}),
    );
    let changed = (any_uri(), any_number(), changes)
        .prop_map(|(uri, version, changes)| json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}));
    let place = (any_uri(), any_range()).prop_map(|(uri, range)| {
        json!({"textDocument": {"uri": uri}, "uri": uri, "range": range, "position": range["start"], "context": {"diagnostics": []}})
    });
    let command = (
        select(vec!["analyzeFile", "askSelection", "runSelection", "followUp", "listRuns", "clearHints", "saveArtifact", "status", "x"]),
        any_uri(),
        any_range(),
        any_text(),
    )
        .prop_map(|(name, uri, range, text)| {
            let argument = json!({"uri": uri, "range": range, "question": text, "run": text, "name": text, "to": uri});
            json!({"command": format!("codeinterp.{name}"), "arguments": [argument]})
        });
    let about = select(vec![
        "textDocument/hover",
        "textDocument/inlayHint",
        "textDocument/codeAction",
        "textDocument/codeLens",
        "textDocument/documentLink",
        "workspace/textDocumentContent",
        "textDocument/didClose",
        "textDocument/didSave",
    ]);
    prop_oneof![
        2 => document.prop_map(|params| ("textDocument/didOpen", params)),
        3 => changed.prop_map(|params| ("textDocument/didChange", params)),
        4 => (about, place),
        2 => command.prop_map(|params| ("workspace/executeCommand", params)),
        1 => any_text().prop_map(|text| ("$/cancelRequest", json!({"id": text}))),
    ]
}

async fn send(server: &mut DuplexStream, message: &Value) {
    let body = message.to_string();
    server.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
}

/// Reads so many answers; the ids of their requests.
async fn answered(output: &mut DuplexStream, count: usize) -> Vec<usize> {
    let mut answered = Vec::new();
    while answered.len() < count {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            header.push(output.read_u8().await.unwrap());
        }
        let length: usize = String::from_utf8(header).unwrap().trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        output.read_exact(&mut body).await.unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        if message.get("method").is_none()
            && let Some(id) = message["id"].as_u64()
        {
            answered.push(usize::try_from(id).unwrap());
        }
    }
    answered
}

fn is_request(method: &str) -> bool {
    !method.contains("/did") && !method.starts_with('$')
}

/// Makes these calls of a new server; ids of the requests, and of those that it answered.
async fn session(calls: Vec<(&'static str, Value)>) -> (Vec<usize>, Vec<usize>) {
    let state = tempfile::tempdir().unwrap();
    let (mut input, server_input) = tokio::io::duplex(1 << 16);
    let (server_output, mut output) = tokio::io::duplex(1 << 16);
    let services = Arc::new(Nothing(state.path().to_owned()));
    let server = tokio::spawn(codeinterp::lsp::serve(server_input, server_output, services, Overrides::default()));
    let options = json!({"runEvents": true, "cells": true});
    let initialize = json!({"processId": null, "rootUri": null, "capabilities": {}, "initializationOptions": options});
    send(&mut input, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize})).await;
    assert_eq!(answered(&mut output, 1).await, [0]);

    let last = calls.len() + 1;
    let asked = calls.iter().enumerate().filter(|(_, (method, _))| is_request(method)).map(|(at, _)| at + 1);
    let asked: Vec<usize> = asked.chain([last]).collect();
    let count = asked.len();
    let reader = tokio::spawn(async move { (answered(&mut output, count).await, output) });
    for (at, (method, params)) in calls.into_iter().enumerate() {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if is_request(method) {
            message["id"] = json!(at + 1);
        }
        send(&mut input, &message).await;
    }
    send(&mut input, &json!({"jsonrpc": "2.0", "id": last, "method": "shutdown"})).await;
    let (mut answered, _output) = reader.await.unwrap();
    send(&mut input, &json!({"jsonrpc": "2.0", "method": "exit"})).await;
    assert!(server.await.unwrap(), "the server did not end as it was asked to");
    answered.sort_unstable();
    (asked, answered)
}

proptest! {
    // A server for each case: fewer of them.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(8), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_of_an_editor(calls in prop::collection::vec(any_call(), 0..24)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let outcome = runtime.block_on(async { tokio::time::timeout(HANGS, session(calls)).await });
        let (asked, answered) = outcome.expect("the server hangs");
        prop_assert_eq!(asked, answered);
    }
}
