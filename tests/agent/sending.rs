//! What is sent: the endpoint's path, keys, the preview, the ledger.

use codeinterp::agent::events::RunEvent;
use codeinterp::agent::first_request;
use codeinterp::agent::run::SandboxInfo;
use codeinterp::agent::task::{LoopSettings, Task};
use codeinterp::config::Settings;

use crate::support::loop_run::{ask, run, settings};
use crate::support::provider::{Provider, Reply};

#[tokio::test]
async fn an_endpoint_works_with_and_without_v1_and_gets_no_key_that_is_not_its_own() {
    for path in ["", "/", "/v1", "/v1/"] {
        let provider = Provider::start(vec![Reply::text("Hi.")]).await;
        let mut settings = settings(&provider);
        settings.endpoint = Some(format!("{}{path}", provider.address));
        settings.model = Some("openai::local-high".to_owned());
        assert_eq!(ask(&settings, "q").await.status(), "completed");
        let request = provider.received().remove(0);
        assert_eq!(request.path, "/v1/chat/completions");
        assert_eq!(request.header("authorization"), None);
        assert_eq!(request.json()["model"], "local-high");
        assert_eq!(request.json()["stream"], true);
    }
}

#[tokio::test]
async fn the_key_that_is_named_is_sent_to_the_endpoint() {
    // The variable is one that every test process has; its value stands for a key.
    let provider = Provider::start(vec![Reply::text("Hi.")]).await;
    let mut settings = settings(&provider);
    settings.api_key_env = Some("CARGO_MANIFEST_DIR".to_owned());
    ask(&settings, "q").await;
    assert_eq!(provider.received()[0].header("authorization"), Some(format!("Bearer {}", env!("CARGO_MANIFEST_DIR"))));
}

#[tokio::test]
async fn a_key_that_a_server_echoes_is_removed() {
    let key = env!("CARGO_MANIFEST_DIR");
    let code = format!("print {key}");
    let called = [Reply::calls(&[&code]), Reply::text("Done.")];
    for replies in
        [vec![Reply::error(401, &format!("wrong key {key}"))], vec![Reply::text(&format!("Your key is {key}."))], called.to_vec()]
    {
        let provider = Provider::start(replies).await;
        let mut settings = settings(&provider);
        settings.api_key_env = Some("CARGO_MANIFEST_DIR".to_owned());
        let outcome = ask(&settings, "q").await;
        assert!(!serde_json::to_string(&outcome.run).unwrap().contains(key), "{:?}", outcome.run);
        let told: String =
            outcome.events.iter().map(|event| if let RunEvent::ModelText(text) = event { text.as_str() } else { "" }).collect();
        assert!(!told.contains(key), "{told}");
    }
}

#[tokio::test]
async fn the_preview_is_byte_for_byte_what_is_sent() {
    let provider = Provider::start(vec![Reply::text("Hi.")]).await;
    let settings = settings(&provider);
    let model = codeinterp::llm::connect(&settings).unwrap();
    let task = Task { question: "How many rows?".to_owned(), ..Task::default() };
    let sandbox = SandboxInfo { workdir: "/workspace".to_owned(), ..SandboxInfo::default() };
    let request = first_request(&LoopSettings::from(&settings), &model.info(), &sandbox, &task);
    let preview = model.preview(&request).await.unwrap().unwrap();
    assert!(provider.received().is_empty(), "a preview sends nothing");
    run(&settings, task, None, &tokio_util::sync::CancellationToken::new()).await;
    assert_eq!(String::from_utf8_lossy(&preview), String::from_utf8_lossy(&provider.received()[0].body));
}

#[tokio::test]
async fn the_ledger_says_what_went_where() {
    let provider = Provider::start(vec![Reply::calls(&["print 1"]), Reply::text("One.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    let host = provider.address.strip_prefix("http://").unwrap();
    assert_eq!(outcome.run.ledger.len(), 2);
    assert!(outcome.run.ledger.iter().all(|entry| entry.destination == host && entry.bytes > 0));
    assert_eq!(outcome.run.ledger[1].contents, ["outputs"]);
}

#[tokio::test]
async fn reasoning_goes_back_with_the_call_that_it_led_to_and_is_no_part_of_the_answer() {
    let provider = Provider::start(vec![Reply::reasoned_call("I should count.", "print 7"), Reply::reasoned("Clear now.", "Seven.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.answer(), outcome.executed.len()), ("Seven.", 1));
    let second = provider.received()[1].json();
    let asked = second["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant").unwrap();
    assert_eq!(asked["reasoning_content"], "I should count.");
    let told = |wanted: fn(&RunEvent) -> Option<&String>| outcome.events.iter().filter_map(wanted).cloned().collect::<String>();
    assert_eq!(told(|event| if let RunEvent::ModelReasoning(text) = event { Some(text) } else { None }), "I should count.Clear now.");
    assert_eq!(told(|event| if let RunEvent::ModelText(text) = event { Some(text) } else { None }), "Seven.");
}

#[tokio::test]
async fn no_setting_of_the_model_is_sent_that_some_models_refuse() {
    let provider = Provider::start(vec![Reply::text("Hi.")]).await;
    ask(&settings(&provider), "q").await;
    let request = provider.received()[0].json();
    for name in ["temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort", "parallel_tool_calls"] {
        assert!(request[name].is_null(), "{name}");
    }
}

#[test]
fn with_nothing_configured_the_playbook_serves() {
    let model = codeinterp::llm::connect(&Settings::default()).unwrap();
    assert_eq!((model.info().name.as_str(), model.info().destination), ("playbook", None));
}

#[tokio::test]
async fn the_request_to_a_known_provider_is_shown_without_being_sent() {
    let settings = Settings { model: Some("ollama::no-such-model".to_owned()), ..Settings::default() };
    let model = codeinterp::llm::connect(&settings).unwrap();
    let task = Task { question: "How many rows?".to_owned(), ..Task::default() };
    let request = first_request(&LoopSettings::from(&settings), &model.info(), &SandboxInfo::default(), &task);
    let body: serde_json::Value = serde_json::from_slice(&model.preview(&request).await.unwrap().unwrap()).unwrap();
    assert_eq!(body["model"], "no-such-model");
    assert!(body.to_string().contains("How many rows?"), "{body}");
    assert!(model.info().context_tokens.is_some(), "a conversation is kept within the small window that Ollama has");
}
