//! Cells of Python and Markdown documents: lenses, results at their ends, values of names.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

fn titles(lenses: &[(String, Value)]) -> Vec<&str> {
    lenses.iter().map(|(title, _)| title.as_str()).collect()
}

async fn open() -> Client {
    Client::open(&Rig::new(), json!({}), json!({"runEvents": true, "cells": true})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_of_both_kinds_of_document_are_run_asked_about_and_explained() {
    for (name, language, text) in [("a.py", "python", "# %% one\nraise X\n"), ("a.md", "markdown", "```python\nraise X\n```\n")] {
        let mut client = open().await;
        let uri = client.show(name, language, text).await;
        let lenses = client.lenses(&uri).await;
        assert_eq!(titles(&lenses), ["0: Run in sandbox", "0: Ask"]);
        // Our clients ask the person.
        assert_eq!(lenses[1].1.get("question"), None);
        let mut question = lenses[1].1.clone();
        question["question"] = json!("run: x");
        let asked = client.command("askSelection", question).await.unwrap();
        assert_eq!(client.ended(&asked["run"]).await, "completed");

        let started = client.command("runSelection", lenses[0].1.clone()).await.unwrap();
        assert_eq!(client.ended(&started["run"]).await, "failed");
        let lenses = client.lenses(&uri).await;
        assert_eq!(titles(&lenses), ["0: Run in sandbox", "0: Ask", "0: Open report", "0: Explain error"]);
        let explained = client.command("followUp", lenses[3].1.clone()).await.unwrap();
        assert_eq!(client.ended(&explained["run"]).await, "completed");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_nobody_gets_a_question_with_the_lens() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({"cells": true})).await;
    let uri = client.show("a.py", "python", "# %%\nx = 1\n").await;
    let lenses = client.lenses(&uri).await;
    assert!(lenses[1].1["question"].as_str().unwrap().contains("Explain"));
    client.command("askSelection", lenses[1].1.clone()).await.unwrap();
    assert!(client.expect("window/showMessage").await["message"].as_str().unwrap().contains("report.md"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_kernel_tells_no_value_and_holds_no_hover_up() {
    let mut client = open().await;
    let uri = client.show("a.py", "python", "forever\nanswer\n").await;
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
    let started = client.command("runSelection", json!({"uri": uri, "range": range})).await.unwrap();
    client.wait(|message| message["params"]["step"] == 1).await;
    assert_eq!(client.hover(&uri, 1, 2).await, "");
    client.command("cancel", json!({})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "cancelled");
    assert!(client.hover(&uri, 1, 2).await.starts_with("**answer**"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_that_changed_runs_again_on_save_where_live_is_on() {
    let rig = Rig::new();
    let mut client = Client::open(&rig, json!({}), json!({"runEvents": true, "live": true, "cells": true})).await;
    let uri = client.show("a.py", "python", "# %% one\nfirst\n# %% two\nsecond\n").await;
    let lenses = client.lenses(&uri).await;
    let started = client.command("runSelection", lenses[0].1.clone()).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    assert_eq!(client.hints(&uri).await, ["1: first · report"]);
    client.change(&uri, 2, (1, 0), (1, 5), "third").await;
    assert_eq!(client.hints(&uri).await, ["1: stale · first · report"]);
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}})).await;
    let queued = client.expect("codeinterp/runChanged").await;
    assert_eq!(client.ended(&queued["run"]).await, "completed");
    assert_eq!(client.hints(&uri).await, ["1: third · report"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_a_cell_show_the_kernels_value() {
    let rig = Rig::new();
    let mut client = Client::open(&rig, json!({}), json!({"runEvents": true, "cells": true})).await;
    let uri = client.show("a.py", "python", "# %%\nanswer = 42\nother = 1\n").await;
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}});
    let started = client.command("runSelection", json!({"uri": uri, "range": range})).await.unwrap();
    client.ended(&started["run"]).await;
    assert!(client.hover(&uri, 1, 3).await.starts_with("**answer** · int · 28 bytes"));
    assert_eq!(client.hover(&uri, 2, 3).await, "");
    client.close().await;
}
