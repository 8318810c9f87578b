//! Results that follow their data: what becomes stale, and what runs again when a document is saved.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

const TABLE: &str = "a,b\n1,2\n3,4\n5,6\n";

async fn open(rig: &std::sync::Arc<Rig>, live: bool) -> Client {
    Client::open(rig, json!({}), json!({"runEvents": true, "live": live, "cells": true})).await
}

async fn save(client: &mut Client, uri: &str, text: &str) {
    std::fs::write(url::Url::parse(uri).unwrap().to_file_path().unwrap(), text).unwrap();
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}})).await;
}

async fn ask(client: &mut Client, uri: &str, files: &[&str], question: &str) -> Value {
    let started = client.command("analyzeFile", json!({"uri": uri, "files": files, "question": question})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    started["run"].clone()
}

/// The next run that is queued.
async fn queued(client: &mut Client) -> Value {
    client.wait(|message| message["method"] == "codeinterp/runChanged" && message["params"]["status"] == "queued").await["params"]["run"]
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn results_on_a_table_run_again_on_what_was_saved_in_the_order_of_its_lines() {
    let rig = Rig::new();
    let mut client = open(&rig, true).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let rows = json!({"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}});
    let lines = client.command("askSelection", json!({"uri": uri, "range": rows, "question": "run: chart"})).await.unwrap();
    queued(&mut client).await;
    assert_eq!(client.ended(&lines["run"]).await, "completed");
    ask(&mut client, &uri, &[], "run: chart").await;
    client.change(&uri, 2, (2, 0), (2, 1), "9").await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols · stale · chart 1 · report", "2: stale · chart 1 · report"]);
    let asked = rig.asked();
    save(&mut client, &uri, &TABLE.replace('3', "9")).await;
    let whole = queued(&mut client).await;
    let part = queued(&mut client).await;
    assert_eq!((client.ended(&whole).await, client.ended(&part).await), ("completed".to_owned(), "completed".to_owned()));
    assert_eq!(client.hints(&uri).await, ["0: 2 cols · chart 1 · report", "2: chart 1 · report"]);
    assert_eq!(rig.asked(), asked, "no model is asked");
    let files = rig.files();
    let names: Vec<&str> = files[2..].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["t.csv", "t.selection.csv"]);
    assert!(files[2].1.contains("9,4") && files[3].1 == "a,b\n9,4\n", "{files:?}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_save_drops_the_repetition_that_is_under_way() {
    let rig = Rig::new();
    let mut client = open(&rig, true).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    ask(&mut client, &uri, &[], "run: print 1").await;
    rig.hold(true);
    client.change(&uri, 2, (2, 0), (2, 1), "8").await;
    save(&mut client, &uri, &TABLE.replace('3', "8")).await;
    let first = queued(&mut client).await;
    client.wait(|message| message["params"]["run"] == first && message["params"]["step"] == 1).await;
    client.change(&uri, 3, (2, 0), (2, 1), "9").await;
    save(&mut client, &uri, &TABLE.replace('3', "9")).await;
    let second = queued(&mut client).await;
    assert_eq!(client.ended(&first).await, "cancelled");
    rig.hold(false);
    assert_eq!(client.ended(&second).await, "completed");
    assert_eq!(client.hints(&uri).await, ["0: 2 cols · report"]);
    assert!(rig.files().last().unwrap().1.contains("9,4"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_saved_during_a_question_runs_when_its_code_is_known() {
    let rig = Rig::new();
    let mut client = open(&rig, true).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    rig.hold(true);
    let asked = client.command("analyzeFile", json!({"uri": uri, "question": "run: print 1"})).await.unwrap();
    queued(&mut client).await;
    client.wait(|message| message["params"]["run"] == asked["run"] && message["params"]["step"] == 1).await;
    client.change(&uri, 2, (2, 0), (2, 1), "9").await;
    save(&mut client, &uri, &TABLE.replace('3', "9")).await;
    rig.hold(false);
    assert_eq!(client.ended(&asked["run"]).await, "completed");
    let again = queued(&mut client).await;
    assert_eq!(client.ended(&again).await, "completed");
    assert_eq!(client.hints(&uri).await, ["0: 2 cols · report"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_about_several_files_are_stale_when_any_of_them_changes() {
    for live in [false, true] {
        let rig = Rig::new();
        let mut client = open(&rig, live).await;
        let one = client.show("one.csv", "csv", TABLE).await;
        let two = client.show("two.csv", "csv", TABLE).await;
        ask(&mut client, &one, &[&two], "run: chart").await;
        client.change(&two, 2, (2, 0), (2, 1), "9").await;
        assert_eq!(client.hints(&one).await, ["0: 2 cols · stale · chart 1 · report"]);
        save(&mut client, &two, &TABLE.replace('3', "9")).await;
        if live {
            let again = queued(&mut client).await;
            assert_eq!(client.ended(&again).await, "completed");
            assert_eq!(client.hints(&one).await, ["0: 2 cols · chart 1 · report"]);
        } else {
            assert_eq!(client.hints(&one).await, ["0: 2 cols · stale · chart 1 · report"]);
        }
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_change_or_was_cleared_does_not_run_again() {
    let rig = Rig::new();
    let mut client = open(&rig, true).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    ask(&mut client, &uri, &[], "run: chart").await;
    save(&mut client, &uri, TABLE).await;
    client.change(&uri, 2, (2, 0), (2, 1), "9").await;
    client.command("clearHints", json!({"uri": uri})).await.unwrap();
    save(&mut client, &uri, &TABLE.replace('3', "9")).await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols"]);
    assert_eq!(client.command("listRuns", json!({"uri": uri})).await.unwrap().as_array().unwrap().len(), 1);
    client.close().await;
}
