//! What of earlier runs, and of where a person keeps files, reaches the model.

use serde_json::json;

use crate::client::Client;
use crate::rig::Rig;

const TABLE: &str = "a,b\n1,2\n3,4\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_tells_of_earlier_runs_what_may_be_sent_today() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("t.csv", "csv", TABLE).await;
    let first = client.command("analyzeFile", json!({"uri": uri, "question": "run: secret"})).await.unwrap();
    assert_eq!(client.ended(&first["run"]).await, "completed");
    let second = client.command("followUp", json!({"run": first["run"], "question": "And now?"})).await.unwrap();
    assert_eq!(client.ended(&second["run"]).await, "completed");
    let told = rig.asked();
    assert!(told.contains("<data kind=\\\"stdout\\\" step=\\\"1\\\">\\nCANARY") && told.contains("That is all."), "{told}");

    client.notify("workspace/didChangeConfiguration", json!({"settings": {"codeinterp": {"privacy": {"send": "schema"}}}})).await;
    let third = client.command("followUp", json!({"run": second["run"], "question": "And then?"})).await.unwrap();
    assert_eq!(client.ended(&third["run"]).await, "completed");
    let told = rig.asked();
    assert!(["run: secret", "And now?", "And then?"].iter().all(|question| told.contains(question)), "the whole chain is told: {told}");
    assert!(!told.contains("CANARY") && !told.contains("That is all."), "{told}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_lines_names_the_document_and_not_its_folder() {
    let rig = Rig::new();
    let mut client = Client::calm(&rig).await;
    let uri = client.show("my t.csv", "csv", TABLE).await;
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}});
    let started = client.command("askSelection", json!({"uri": uri, "range": range, "question": "Why?"})).await.unwrap();
    assert_eq!(client.ended(&started["run"]).await, "completed");
    let told = rig.asked();
    assert!(told.contains("<data kind=\\\"selection\\\" file=\\\"my t.selection.csv\\\" document=\\\"my t.csv\\\">"), "{told}");
    let folder = client.folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(!told.contains("file:") && !told.contains(&folder), "{told}");
    client.close().await;
}
