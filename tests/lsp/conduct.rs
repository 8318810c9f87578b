//! Manners: order, liveness, hostile frames, the end.

use serde_json::{Value, json};

use crate::client::{Client, full};
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn every_request_reads_the_text_of_its_time() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    let uri = client.show("t.csv", "csv", "a\n0\n").await;
    let mut wanted = Vec::new();
    for number in 1..=50 {
        client.change(&uri, number + 1, (1, 0), (2, 0), &format!("{number}\n")).await;
        let position = json!({"line": 1, "character": 0});
        let id = client.ask("textDocument/hover", json!({"textDocument": {"uri": uri}, "position": position})).await;
        wanted.push((id, number));
    }
    let mut last = 0;
    for (id, number) in wanted {
        let hover = client.answer(json!(id)).await.unwrap();
        let shown = hover["contents"]["value"]
            .as_str()
            .unwrap()
            .split("row 1 of 1: ")
            .nth(1)
            .unwrap()
            .split('\n')
            .next()
            .unwrap()
            .parse::<i32>()
            .unwrap();
        // A hover waits for its columns; it may see later text, never earlier.
        assert!(shown >= number && shown >= last, "{shown} after {number}");
        last = shown;
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_that_never_pauses_starves_no_request() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    // Large enough that an edit comes before its columns are known.
    let uri = client.show("t.csv", "csv", &format!("a,b\n{}", "12345,some text\n".repeat(3_000))).await;
    let position = json!({"line": 1, "character": 0});
    let id = client.ask("textDocument/hover", json!({"textDocument": {"uri": uri}, "position": position})).await;
    let mut version = 1;
    let hover = loop {
        version += 1;
        client.change(&uri, version, (1, 0), (1, 0), "1").await;
        if let Some(hover) = client.answered(id).await {
            break hover.unwrap();
        }
    };
    assert!(hover["contents"]["value"].as_str().unwrap().starts_with("**a**"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_while_output_floods() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("a.py", "python", "flood\n").await;
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
    let started = client.command("runSelection", json!({"uri": uri, "range": range})).await.unwrap();
    let id = started["run"].clone();
    client.wait(|message| message["params"]["run"] == id && message["params"]["step"] == 1).await;
    let table = client.show("t.csv", "csv", "a,b\n1,2\n").await;
    for _ in 0..100 {
        assert!(client.hover(&table, 1, 0).await.starts_with("**a**"));
    }
    let report = client.request("workspace/textDocumentContent", json!({"uri": started["document"]})).await.unwrap();
    assert!(report["text"].as_str().unwrap().len() < 200_000);
    client.command("cancel", json!({})).await.unwrap();
    assert_eq!(client.ended(&id).await, "cancelled");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_answers_holds_nothing_up() {
    let rig = Rig::new();
    // Refreshes and progress are asked for and never answered.
    let mut client = Client::open(&rig, full(), json!({"runEvents": true})).await;
    let uri = client.show("t.csv", "csv", "a,b\n1,\n").await;
    for _ in 0..20 {
        let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: x"})).await.unwrap();
        assert_eq!(client.ended(&started["run"]).await, "completed");
    }
    for method in [
        "workspace/inlayHint/refresh",
        "workspace/codeLens/refresh",
        "workspace/textDocumentContent/refresh",
        "window/workDoneProgress/create",
    ] {
        client.wait(|message| message["method"] == method).await;
        client.ignore(method);
    }
    client.request("shutdown", Value::Null).await.unwrap();
    client.notify("exit", Value::Null).await;
    client.forget().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_cancels_and_changes_is_survived() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    let uri = client.show("t.csv", "csv", "a,b\n1,2\n").await;
    for number in 0..300 {
        client.change(&uri, number + 2, (1, 0), (1, 0), "1").await;
        let id = client.ask("textDocument/hover", json!({"textDocument": {"uri": uri}, "position": {"line": 1, "character": 0}})).await;
        client.notify("$/cancelRequest", json!({"id": id})).await;
        client.notify("$/cancelRequest", json!({"id": id + 1000})).await;
        // Cancelled or answered, but once.
        let _ = client.answer(json!(id)).await;
    }
    client
        .notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": "file:///nowhere.csv", "version": 1}, "contentChanges": [{"text": "x"}]}),
        )
        .await;
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": "file:///nowhere.csv"}})).await;
    client.change(&uri, 1, (9, 9), (3, 3), "wrong way round, wrong version\n").await;
    assert_eq!(client.hints(&uri).await.len(), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_message_costs_one_message() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    for bad in [
        &b"Content-Length: what\r\n\r\n"[..],
        b"Content-Length: 4\r\n\r\n\xff\xfe{}",
        b"Content-Length: 4\r\n\r\n{{}}",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 18\r\n\r\n{\"jsonrpc\": \"1.0\"}",
    ] {
        client.bytes(bad).await;
        assert!(client.answer(Value::Null).await.unwrap_err()["code"].as_i64().unwrap() < 0);
        assert!(client.command("status", json!({})).await.is_ok());
    }
    let wrong = json!({"textDocument": {"uri": "file:///t.csv"}, "position": {"line": -1, "character": 0}});
    assert_eq!(client.request("textDocument/hover", wrong).await.unwrap_err()["code"], -32602);
    assert_eq!(client.command("nothing", json!({})).await.unwrap_err()["code"], -32602);
    assert_eq!(client.command("analyzeFile", json!({"uri": 7})).await.unwrap_err()["code"], -32602);
    assert_eq!(client.request("textDocument/nothing", json!({})).await.unwrap_err()["code"], -32601);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_virtual_documents_are_not_found() {
    let mut client = Client::open(&Rig::new(), full(), json!({})).await;
    for uri in [
        "codeinterp:/runs/none/report.md",
        "codeinterp:/runs/../../../etc/passwd",
        "codeinterp:/runs/%2e%2e/%2e%2e/etc/passwd",
        "file:///etc/passwd",
    ] {
        let error = client.request("workspace/textDocumentContent", json!({"uri": uri})).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("not found"), "{error}");
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_that_come_before_a_run_is_queued_move_its_results() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("t.csv", "csv", "a,b\n1,2\n3,4\n5,6\n").await;
    let range = json!({"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}});
    let ask = json!({"uri": uri, "range": range, "question": "run: chart"});
    let id = client.ask("workspace/executeCommand", json!({"command": "codeinterp.askSelection", "arguments": [ask]})).await;
    client.change(&uri, 2, (1, 0), (1, 0), "0,0\n").await;
    let started = client.answer(json!(id)).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    assert_eq!(rig.files(), [("t.selection.csv".to_owned(), "a,b\n3,4\n".to_owned())], "what was selected then");
    assert_eq!(client.hints(&uri).await, ["0: 2 cols", "3: chart 1 · report"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_many_megabytes_are_edited_searched_and_run_like_any_other() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({"runEvents": true, "cells": true})).await;
    let face = "😀";
    let uri = client.show("a.py", "python", &format!("x = '{}'\n# %%\nfirst\n", face.repeat(1 << 20))).await;
    // Behind the line, between its last two faces: a face is two units of UTF-16.
    let last = 5 + 2 * ((1 << 20) - 1);
    client.change(&uri, 2, (0, last), (0, last), "'\n#").await;
    let lenses = client.lenses(&uri).await;
    assert_eq!(lenses[0].0, "2: Run in sandbox");
    let cursor = json!({"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 0}});
    let started = client.command("runSelection", json!({"uri": uri, "range": cursor})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    assert_eq!(client.hints(&uri).await, ["3: first · report"]);
    let cut = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 9}});
    let text = client.command("runSelection", json!({"uri": uri, "range": cut})).await.unwrap();
    assert_eq!(client.ended(&text["run"]).await, "completed");
    assert_eq!(client.hints(&uri).await[0], format!("1: #{face}' · report"));
    client.close().await;
}
