//! Results of an earlier server on the lines of a document that is opened again.

use serde_json::json;

use crate::client::Client;
use crate::rig::Rig;

const TABLE: &str = "a,b\n1,2\n3,4\n5,6\n";
const PROGRAM: &str = "# %%\nfirst\n# %%\nsecond\n";

fn refreshing() -> serde_json::Value {
    json!({"workspace": {"inlayHint": {"refreshSupport": true}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn results_stand_where_they_stood_before_the_server_was_started_anew() {
    let rig = Rig::new();
    let options = json!({"runEvents": true, "cells": true});
    let mut client = Client::open(&rig, json!({}), options.clone()).await;
    let table = client.show("t.csv", "csv", TABLE).await;
    let program = client.show("a.py", "python", PROGRAM).await;
    let rows = json!({"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}});
    let cell = json!({"start": {"line": 3, "character": 0}, "end": {"line": 4, "character": 0}});
    for (command, argument) in [
        ("analyzeFile", json!({"uri": table, "question": "run: chart"})),
        ("askSelection", json!({"uri": table, "range": rows, "question": "run: chart"})),
        ("runSelection", json!({"uri": program, "range": cell})),
    ] {
        let started = client.command(command, argument).await.unwrap();
        assert_eq!(client.ended(&started["run"]).await, "completed");
    }
    let of_table = client.hints(&table).await;
    assert_eq!(of_table, ["0: 2 cols · chart 1 · report", "2: chart 1 · report"]);
    let folder = client.close_and_keep().await;

    let mut client = Client::again(&rig, folder, refreshing(), options).await;
    let table = client.show("t.csv", "csv", TABLE).await;
    // One for the columns, one for the results.
    client.serve("workspace/inlayHint/refresh", json!(null)).await;
    client.serve("workspace/inlayHint/refresh", json!(null)).await;
    assert_eq!(client.hints(&table).await, of_table);
    assert!(client.hover(&table, 2, 3).await.contains("That is all."));
    let lenses = client.lenses(&table).await;
    assert!(lenses.iter().any(|(title, _)| title == "0: Open report"), "{lenses:?}");

    // A line was put before the cell meanwhile.
    let program = client.show("a.py", "python", &format!("# new\n{PROGRAM}")).await;
    client.serve("workspace/inlayHint/refresh", json!(null)).await;
    assert_eq!(client.hints(&program).await, ["4: second · report"]);

    // From here on they are like any other.
    client.change(&table, 2, (2, 0), (2, 1), "9").await;
    assert_eq!(client.hints(&table).await, ["0: 2 cols · stale · chart 1 · report", "2: stale · chart 1 · report"]);
    let folder = client.close_and_keep().await;

    // What was changed on disk since is about something else.
    let mut client = Client::again(&rig, folder, json!({}), json!({})).await;
    let table = client.show("t.csv", "csv", "a,b\n1,2\n").await;
    assert_eq!(client.hints(&table).await, ["0: 2 cols"]);
    assert_eq!(client.command("listRuns", json!({"uri": table})).await.unwrap().as_array().unwrap().len(), 2);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_that_were_cleared_stay_away_when_the_server_is_started_anew() {
    let rig = Rig::new();
    let options = json!({"runEvents": true});
    let mut client = Client::open(&rig, json!({}), options.clone()).await;
    let (cleared, kept) = (client.show("cleared.csv", "csv", TABLE).await, client.show("kept.csv", "csv", TABLE).await);
    for uri in [&cleared, &kept] {
        let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: chart"})).await.unwrap();
        assert_eq!(client.ended(&started["run"]).await, "completed");
    }
    client.command("clearHints", json!({"uri": cleared})).await.unwrap();
    let folder = client.close_and_keep().await;

    let mut client = Client::again(&rig, folder, refreshing(), options.clone()).await;
    for (name, hint) in [("cleared.csv", "0: 2 cols"), ("kept.csv", "0: 2 cols · chart 1 · report")] {
        let uri = client.show(name, "csv", TABLE).await;
        // One for the columns, one for the results.
        client.serve("workspace/inlayHint/refresh", json!(null)).await;
        client.serve("workspace/inlayHint/refresh", json!(null)).await;
        assert_eq!(client.hints(&uri).await, [hint]);
    }
    assert_eq!(client.command("listRuns", json!({"uri": cleared})).await.unwrap().as_array().unwrap().len(), 1, "the run is not gone");
    // A later question about the same document has hints again.
    client.ignore("workspace/inlayHint/refresh");
    let started = client.command("analyzeFile", json!({"uri": cleared, "question": "run: x"})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    assert_eq!(client.hints(&cleared).await, ["0: 2 cols · report"]);

    // Without a document: all, also of documents that are not open.
    client.command("clearHints", json!({})).await.unwrap();
    let folder = client.close_and_keep().await;
    let mut client = Client::again(&rig, folder, refreshing(), options).await;
    for name in ["cleared.csv", "kept.csv"] {
        let uri = client.show(name, "csv", TABLE).await;
        client.serve("workspace/inlayHint/refresh", json!(null)).await;
        client.serve("workspace/inlayHint/refresh", json!(null)).await;
        assert_eq!(client.hints(&uri).await, ["0: 2 cols"]);
    }
    client.close().await;
}
