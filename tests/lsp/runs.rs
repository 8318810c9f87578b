//! Runs from a command to the report, hints and artifacts.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

const TABLE: &str = "a,b\n1,2\n3,4\n5,6\n";

fn range(from: u32, to: u32) -> Value {
    json!({"start": {"line": from, "character": 0}, "end": {"line": to, "character": 0}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_becomes_a_report_with_hints_that_open_its_charts() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: chart chart"})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");

    assert_eq!(rig.files(), [("t.csv".to_owned(), TABLE.to_owned())]);
    assert_eq!(client.hints(&uri).await, ["0: 2 cols · chart 1 · chart 2 · report"]);
    let document = started["document"].as_str().unwrap();
    assert!(document.starts_with("codeinterp:/runs/"));
    let report =
        client.request("workspace/textDocumentContent", json!({"uri": document})).await.unwrap()["text"].as_str().unwrap().to_owned();
    assert!(report.contains("That is all.") && !report.contains("evil.example/x.png"), "{report}");
    let step = document.replace("report.md", "steps/1.py");
    let code = client.request("workspace/textDocumentContent", json!({"uri": step})).await.unwrap();
    assert_eq!(code["text"], "chart chart");

    let runs = client.command("listRuns", json!({"uri": uri})).await.unwrap();
    let chart = &runs[0]["artifacts"][0];
    assert_eq!((&runs[0]["status"], &chart["mime"]), (&json!("completed"), &json!("image/png")));
    let arguments = json!({"run": started["run"], "name": chart["name"]});
    client.command("openArtifact", arguments.clone()).await.unwrap();
    let shown = client.serve("window/showDocument", json!({"success": true})).await;
    assert!(shown["uri"].as_str().unwrap().starts_with("file://") && shown["takeFocus"] == json!(false));

    let mut saved = arguments.clone();
    saved["to"] = json!("charts/one.png");
    assert!(client.command("saveArtifact", saved.clone()).await.is_ok());
    assert!(client.command("saveArtifact", saved).await.unwrap_err()["message"].as_str().unwrap().contains("overwrite"));
    assert!(std::fs::read(client.folder.path().join("charts/one.png")).unwrap().starts_with(b"\x89PNG"));
    client.close().await;
    assert_eq!(rig.running(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leaves_the_folder_is_asked_about() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: chart"})).await.unwrap();
    client.ended(&started["run"]).await;
    // The rig's sandbox can't replay anything, which is said.
    client.ignore("window/showMessage");
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("x.ipynb");
    let export = json!({"run": started["run"], "to": "notebook", "path": path});
    for (answer, written) in [("Cancel", false), ("Write", true)] {
        let id = client.ask("workspace/executeCommand", json!({"command": "codeinterp.export", "arguments": [export]})).await;
        let question = client.serve("window/showMessageRequest", json!({"title": answer})).await;
        assert!(question["message"].as_str().unwrap().contains("outside"));
        assert_eq!(client.answer(json!(id)).await.is_ok(), written);
        assert_eq!(path.exists(), written);
    }
    let notebook: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(notebook["nbformat"], 4);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selection_carries_its_header_and_its_hint_moves_with_the_lines() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let ask = json!({"uri": uri, "range": range(2, 3), "question": "run: chart"});
    let started = client.command("askSelection", ask).await.unwrap();
    client.ended(&started["run"]).await;
    assert_eq!(rig.files(), [("t.selection.csv".to_owned(), "a,b\n3,4\n".to_owned())]);
    assert_eq!(client.hints(&uri).await, ["0: 2 cols", "2: chart 1 · report"]);
    client.change(&uri, 2, (1, 0), (1, 0), "0,0\n").await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols", "3: chart 1 · report"]);
    client.change(&uri, 3, (3, 0), (3, 1), "9").await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols", "3: stale · chart 1 · report"]);
    client.command("clearHints", json!({"uri": uri})).await.unwrap();
    assert_eq!(client.hints(&uri).await, ["0: 2 cols"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_editor_shows_unsaved_is_what_is_analysed() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    client.change(&uri, 2, (1, 0), (1, 1), "99").await;
    let started = client.command("analyzeFile", json!({"uri": uri})).await.unwrap();
    client.ended(&started["run"]).await;
    assert_eq!(rig.files()[0].1, "a,b\n99,2\n3,4\n5,6\n");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_raises_is_a_failed_run() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("a.py", "python", "raise X\n").await;
    let started = client.command("runSelection", json!({"uri": uri, "range": range(0, 1)})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "failed");
    assert_eq!(client.hints(&uri).await, ["0: ZeroDivisionError, line 1 · report"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_by_command_and_by_its_progress() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("a.py", "python", "forever\n").await;
    let run = json!({"uri": uri, "range": range(0, 1)});
    let started = client.command("runSelection", run.clone()).await.unwrap();
    let id = started["run"].clone();
    client.wait(|message| message["params"]["run"] == id && message["params"]["step"] == 1).await;
    assert_eq!(client.command("cancel", json!({"run": id})).await.unwrap(), json!({"cancelled": [id]}));
    assert_eq!(client.ended(&id).await, "cancelled");
    assert_eq!(client.command("cancel", json!({"run": "20260101-000000-abcdef"})).await.unwrap(), json!({"cancelled": []}));

    let started = client.command("runSelection", run).await.unwrap();
    let id = started["run"].clone();
    client.wait(|message| message["params"]["run"] == id && message["params"]["step"] == 1).await;
    client.notify("window/workDoneProgress/cancel", json!({"token": format!("codeinterp/{}", id.as_str().unwrap())})).await;
    assert_eq!(client.ended(&id).await, "cancelled");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_shim_get_the_report_shown() {
    let rig = Rig::new();
    let mut client = Client::open(&rig, json!({"window": {"showDocument": {"support": true}}}), json!({})).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: x"})).await.unwrap();
    let shown = client.serve("window/showDocument", json!({"success": true})).await;
    assert_eq!(shown["uri"], started["document"]);
    let path = url::Url::parse(started["document"].as_str().unwrap()).unwrap().to_file_path().unwrap();
    assert!(std::fs::read_to_string(path).unwrap().contains("That is all."));
    client.close().await;

    let mut client = Client::open(&rig, json!({}), json!({})).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    client.command("analyzeFile", json!({"uri": uri, "question": "run: x"})).await.unwrap();
    let shown = client.expect("window/showMessage").await;
    assert!(shown["message"].as_str().unwrap().contains("report.md"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_waits_for_the_persons_consent_where_that_is_set() {
    let rig = Rig::new();
    let mut client = Client::open(&rig, json!({}), json!({"runEvents": true, "agent": {"confirm": "always"}})).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: secret"})).await.unwrap();
    let question = client.serve("window/showMessageRequest", json!(null)).await;
    assert!(question["message"].as_str().unwrap().contains("secret"));
    client.ended(&started["run"]).await;
    let step = format!("codeinterp:/runs/{}/steps/1.py", started["run"].as_str().unwrap());
    assert!(client.request("workspace/textDocumentContent", json!({"uri": step})).await.is_err());
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editors_own_model_is_asked_over_the_connection() {
    let rig = Rig::new();
    let mut client = Client::with_model(&rig, "editor", json!({}), json!({"runEvents": true, "chat": true})).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "how many?"})).await.unwrap();
    client.expect("window/showMessage").await;
    let asked = client.wait(|message| message["method"] == "codeinterp/chat").await;
    let messages = asked["params"]["messages"].as_array().unwrap();
    assert!(messages.iter().any(|message| message["content"].as_str().unwrap().contains("how many?")));
    client.notify("codeinterp/chatDelta", json!({"id": asked["params"]["id"], "text": "Th"})).await;
    client.notify("codeinterp/chatDelta", json!({"id": 999, "text": "late"})).await;
    client.reply(&asked, json!({"text": "Three rows.", "finishReason": "stop"})).await;
    assert_eq!(client.ended(&started["run"]).await, "completed");

    // A cancelled run withdraws its question.
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "and now?"})).await.unwrap();
    let asked = client.wait(|message| message["method"] == "codeinterp/chat").await;
    client.command("cancel", json!({"run": started["run"]})).await.unwrap();
    assert_eq!(client.expect("$/cancelRequest").await["id"], asked["id"]);
    assert_eq!(client.ended(&started["run"]).await, "cancelled");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_without_models_says_so() {
    let rig = Rig::new();
    let mut client = Client::with_model(&rig, "editor", json!({}), json!({})).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    client.command("analyzeFile", json!({"uri": uri, "question": "how many?"})).await.unwrap();
    let shown = client.expect("window/showMessage").await;
    assert!(shown["message"].as_str().unwrap().contains("offers no language models"), "{shown}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_or_a_cell_says_is_inert_in_hints_and_hovers() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let table = client.show("t.csv", "csv", TABLE).await;
    let started = client.command("analyzeFile", json!({"uri": table, "question": "run: chart chart chart"})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    let hover = client.hover(&table, 0, 3).await;
    // Pictures are named and never part of the text, so that their size is none of the hover's.
    let charts = format!("](codeinterp:/runs/{}/artifacts/", started["run"].as_str().unwrap());
    assert!(hover.contains("That is all.") && hover.matches(&charts).count() == 2 && hover.len() < 2_000, "{hover}");
    assert!(!hover.contains("](http") && !hover.contains("data:"), "{hover}");

    let said = "\u{1b}]8;;http://evil.example\u{7}open\u{1b}]8;;\u{7} \u{202e}me\u{9b}31m";
    let program = client.show("a.py", "python", &format!("# first\n{said}\n")).await;
    let started = client.command("runSelection", json!({"uri": program, "range": range(1, 2)})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    let hints = client.hints(&program).await;
    assert_eq!(hints, ["1: open me · report"]);
    client.close().await;
}
