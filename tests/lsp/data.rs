//! Live columns, hovers and diagnostics while a person types.

use serde_json::json;

use crate::client::{Client, full};
use crate::rig::Rig;

const TABLE: &str = "name,age\nann,31\nbob,\ncy,29\n";

#[tokio::test(flavor = "multi_thread")]
async fn columns_follow_unsaved_edits() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    let uri = client.show("people.csv", "csv", TABLE).await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols · 1 with gaps"]);
    client.change(&uri, 2, (2, 4), (2, 4), "44").await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols"]);
    assert!(client.hover(&uri, 2, 5).await.starts_with("**age** · int64\n\nrow 2 of 3: 44"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn emoji_before_the_position_do_not_move_the_cell() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    let uri = client.show("t.csv", "csv", "a,b\n😀😀,7\n").await;
    // UTF-16: each emoji is two.
    assert!(client.hover(&uri, 1, 5).await.contains("row 1 of 1: 7"));
    assert!(client.hover(&uri, 1, 3).await.starts_with("**a**"));
    assert_eq!(client.hover(&uri, 999, 999).await, "");
    client.close().await;

    let utf8 = json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}});
    let mut client = Client::open(&Rig::new(), utf8, json!({})).await;
    assert_eq!(client.capabilities["positionEncoding"], "utf-8");
    let uri = client.show("t.csv", "csv", "a,b\n😀😀,7\n").await;
    assert!(client.hover(&uri, 1, 9).await.contains("row 1 of 1: 7"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_data_is_information_of_open_files_only() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    let uri = client.show("t.csv", "csv", &format!("a,b\n{}", "1\n".repeat(50))).await;
    let published = client.expect("textDocument/publishDiagnostics").await;
    let diagnostics = published["diagnostics"].as_array().unwrap();
    assert!((1..=20).contains(&diagnostics.len()));
    assert!(diagnostics.iter().all(|diagnostic| diagnostic["severity"] == 3));
    assert!(diagnostics.last().unwrap()["message"].as_str().unwrap().contains("more problems"));

    let context = json!({"diagnostics": [diagnostics[0]]});
    let range = diagnostics[0]["range"].clone();
    let actions =
        client.request("textDocument/codeAction", json!({"textDocument": {"uri": uri}, "range": range, "context": context})).await.unwrap();
    assert_eq!(actions[0]["title"], "Ask about this");
    assert_eq!(actions[0]["command"]["arguments"][0]["uri"], uri.as_str());

    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    assert_eq!(client.expect("textDocument/publishDiagnostics").await["diagnostics"], json!([]));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_no_light_bulb_on_a_mere_cursor() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({})).await;
    let uri = client.show("a.py", "python", "x = 1\n# ? what is x\nprint(x)\n").await;
    let mut titles = async |from: (u32, u32), to: (u32, u32)| {
        let range = json!({"start": {"line": from.0, "character": from.1}, "end": {"line": to.0, "character": to.1}});
        let params = json!({"textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": []}});
        let actions = client.request("textDocument/codeAction", params).await.unwrap();
        actions.as_array().into_iter().flatten().map(|action| action["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles((0, 1), (0, 1)).await, [""; 0]);
    assert_eq!(titles((0, 0), (3, 0)).await, ["Ask: what is x", "Summarise selection", "Run selection in sandbox"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_unknown_scope_turn_things_off_and_never_on() {
    let mut client = Client::open(&Rig::new(), full(), json!({})).await;
    client.ignore("workspace/inlayHint/refresh");
    let uri = client.show("people.csv", "csv", TABLE).await;
    assert_eq!(client.hints(&uri).await.len(), 1);
    let hostile = json!({"hints": {"enabled": false}, "model": "evil::model", "endpoint": "http://evil.example"});
    client.notify("workspace/didChangeConfiguration", json!({"settings": {"codeinterp": hostile}})).await;
    assert_eq!(client.hints(&uri).await, [""; 0]);
    assert_eq!(client.command("status", json!({})).await.unwrap()["model"], "scripted");
    client.close().await;
}
