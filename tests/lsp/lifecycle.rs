//! The beginning and the end of a server, its folders and settings.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_before_initialize_and_after_shutdown() {
    let mut client = Client::raw(&Rig::new());
    assert_eq!(client.command("status", json!({})).await.unwrap_err()["code"], -32002);
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    client.request("initialize", params.clone()).await.unwrap();
    assert_eq!(client.request("initialize", params).await.unwrap_err()["code"], -32600);
    client.request("shutdown", Value::Null).await.unwrap();
    assert_eq!(client.command("status", json!({})).await.unwrap_err()["code"], -32600);
    client.notify("exit", Value::Null).await;
    client.finish(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_input_ends_the_server_and_its_sandboxes() {
    for exit in [false, true] {
        let rig = Rig::new();
        let mut client = Client::open(&rig, json!({}), json!({"runEvents": true})).await;
        let uri = client.show("a.py", "python", "forever\n").await;
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
        client.command("runSelection", json!({"uri": uri, "range": range})).await.unwrap();
        client.wait(|message| message["params"]["step"] == 1).await;
        assert_eq!(rig.running(), 1);
        client.ignore("codeinterp/runChanged");
        if exit {
            client.notify("exit", Value::Null).await;
        } else {
            client.hang_up();
        }
        client.forget().await;
        assert_eq!(rig.running(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_file_of_the_workspace_warms_a_sandbox_where_the_settings_ask_and_nothing_must_be_made_first() {
    for (sandbox, file, started) in [
        (json!({"warm": true}), "t.csv", 1),
        (json!({}), "t.csv", 0),
        (json!({"warm": true, "image": "not-built-yet"}), "t.csv", 0),
        (json!({"warm": true}), "t.py", 0),
    ] {
        let rig = Rig::new();
        let mut client = Client::open(&rig, json!({}), json!({"sandbox": sandbox})).await;
        let uri = client.show(file, "plaintext", "a\n1\n").await;
        // Its turn comes after the warming's.
        client.command("stopSandbox", json!({"uri": uri})).await.unwrap();
        assert_eq!((rig.started(), rig.running()), (started, 0), "{sandbox} {file}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_folder_takes_its_sandbox_with_it() {
    let rig = Rig::new();
    let mut client = Client::open(&rig, json!({}), json!({"runEvents": true})).await;
    let uri = client.show("t.csv", "csv", "a\n1\n").await;
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: x"})).await.unwrap();
    client.ended(&started["run"]).await;
    assert_eq!(rig.running(), 1);
    let folder = client.uri("");
    client.notify("workspace/didChangeWorkspaceFolders", json!({"event": {"added": [], "removed": [{"uri": folder, "name": "w"}]}})).await;
    // Ending takes its time; a shutdown waits for all of it.
    client.close().await;
    assert_eq!(rig.running(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_folder_has_a_sandbox_of_its_own() {
    let rig = Rig::new();
    let mut client = Client::open(&rig, json!({}), json!({"runEvents": true})).await;
    let other = tempfile::tempdir().unwrap();
    let folder = url::Url::from_directory_path(other.path()).unwrap();
    client.notify("workspace/didChangeWorkspaceFolders", json!({"event": {"added": [{"uri": folder, "name": "o"}], "removed": []}})).await;
    std::fs::write(other.path().join("o.csv"), "a\n1\n").unwrap();
    let inside = folder.join("o.csv").unwrap();
    let uri = client.show("t.csv", "csv", "a\n1\n").await;
    for uri in [json!(uri), json!(inside)] {
        let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: x"})).await.unwrap();
        assert_eq!(client.ended(&started["run"]).await, "completed");
    }
    assert_eq!(rig.running(), 2);
    client.command("stopSandbox", json!({"uri": inside})).await.unwrap();
    assert_eq!(rig.running(), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_pulled_where_the_client_has_them() {
    let capabilities = json!({"workspace": {
        "configuration": true, "didChangeConfiguration": {"dynamicRegistration": true}, "inlayHint": {"refreshSupport": true},
    }});
    let mut client = Client::open(&Rig::new(), capabilities, json!({})).await;
    let asked = client.serve("workspace/configuration", json!([{"hints": {"columns": true}}])).await;
    assert_eq!(asked["items"][0]["section"], "codeinterp");
    let registered = client.serve("client/registerCapability", json!(null)).await;
    assert_eq!(registered["registrations"][0]["method"], "workspace/didChangeConfiguration");
    let uri = client.show("t.csv", "csv", "a,b\n1,2\n").await;
    client.serve("workspace/inlayHint/refresh", json!(null)).await;
    assert_eq!(client.hints(&uri).await, ["0: 2 cols"]);
    // What is pushed only says that there is something new to ask for.
    client.notify("workspace/didChangeConfiguration", json!({"settings": null})).await;
    client.serve("workspace/configuration", json!([{"hints": {"columns": false}}])).await;
    client.serve("workspace/inlayHint/refresh", json!(null)).await;
    assert_eq!(client.hints(&uri).await, [""; 0]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_the_editor_ends_the_server_though_its_input_stays_open() {
    let rig = Rig::new();
    let mut client = Client::raw(&rig);
    let mut editor = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    client.request("initialize", json!({"processId": editor.id(), "rootUri": null, "capabilities": {}})).await.unwrap();
    editor.kill().unwrap();
    editor.wait().unwrap();
    client.finish(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_lists_the_folders_and_what_has_come_to_life_outside_of_them() {
    let mut client = Client::open(&Rig::new(), json!({}), json!({"runEvents": true})).await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("o.csv"), "a\n1\n").unwrap();
    let elsewhere = url::Url::from_directory_path(outside.path().canonicalize().unwrap()).unwrap();
    let uri = elsewhere.join("o.csv").unwrap();
    for uri in ["file:///t.csv", uri.as_str()] {
        let item = json!({"uri": uri, "languageId": "csv", "version": 1, "text": "a\n1\n"});
        client.notify("textDocument/didOpen", json!({"textDocument": item})).await;
    }
    assert_eq!(workspaces(&mut client).await, [client.uri("")]);
    let started = client.command("analyzeFile", json!({"uri": uri, "question": "run: x"})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    let mut both = [client.uri(""), elsewhere.to_string()];
    both.sort();
    assert_eq!(workspaces(&mut client).await, both);
    client.close().await;
}

/// URIs of the workspaces in the server's status, sorted.
async fn workspaces(client: &mut Client) -> Vec<String> {
    let status = client.command("status", json!({})).await.unwrap();
    let mut uris: Vec<String> =
        status["workspaces"].as_array().unwrap().iter().map(|workspace| workspace["uri"].as_str().unwrap().to_owned()).collect();
    uris.sort();
    uris
}
