//! Providers in their own protocols: a call, its result sent back, an answer; keys and refusals.

use codeinterp::agent::ports::Model;
use codeinterp::agent::task::Task;
use codeinterp::config::Settings;
use codeinterp::llm::provider::Provider as LanguageModel;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::loop_run::{Outcome, run_with};
use crate::support::provider::{Provider, Received, Reply};

/// A variable that every test process has; its value stands for a key.
const KEY: &str = "CARGO_MANIFEST_DIR";

/// A provider: how its model is named, and what it sends.
struct Spoken {
    model: &'static str,
    path: &'static str,
    call: Reply,
    answer: Reply,
    refusal: Reply,
}

fn named_events(events: &[Value]) -> Reply {
    let frames: String =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())).collect();
    Reply::body("text/event-stream", &frames)
}

fn events(events: &[Value]) -> Reply {
    Reply::body("text/event-stream", &events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

fn lines(values: &[Value]) -> Reply {
    Reply::body("application/x-ndjson", &values.iter().map(|value| format!("{value}\n")).collect::<String>())
}

fn anthropic() -> Spoken {
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude", "usage": {"input_tokens": 50, "output_tokens": 1}}});
    let end = |reason: &str| {
        [json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}), json!({"type": "message_stop"})]
    };
    let call = [
        start.clone(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me look."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "call-7", "name": "python", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"code\": \"pri"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "nt 42\"}"}}),
        json!({"type": "content_block_stop", "index": 1}),
    ];
    let answer = [
        start,
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is "}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "42."}}),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    Spoken {
        model: "anthropic::claude-sonnet-4-5",
        path: "/messages",
        call: named_events(&[&call[..], &end("tool_use")[..]].concat()),
        answer: named_events(&[&answer[..], &end("end_turn")[..]].concat()),
        refusal: Reply::refusal(401, r#"{"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}"#),
    }
}

fn gemini() -> Spoken {
    let chunk = |parts: Value, finish: Option<&str>| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}], "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 9, "totalTokenCount": 59}});
    let function = json!({"functionCall": {"name": "python", "args": {"code": "print 42"}}, "thoughtSignature": "known-again"});
    Spoken {
        model: "gemini::gemini-3-pro",
        path: "/models/gemini-3-pro:streamGenerateContent?alt=sse",
        call: events(&[chunk(json!([{"text": "Let me look."}]), None), chunk(json!([function]), Some("STOP"))]),
        answer: events(&[chunk(json!([{"text": "It is "}]), None), chunk(json!([{"text": "42."}]), Some("STOP"))]),
        refusal: Reply::refusal(400, r#"{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}"#),
    }
}

fn ollama() -> Spoken {
    let piece = |message: Value| json!({"model": "qwen3-coder", "message": message, "done": false});
    let end = json!({"model": "qwen3-coder", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 50, "eval_count": 9});
    let call =
        json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "python", "arguments": {"code": "print 42"}}}]});
    Spoken {
        model: "ollama::qwen3-coder",
        path: "/api/chat",
        call: lines(&[piece(json!({"role": "assistant", "content": "Let me look."})), piece(call), end.clone()]),
        answer: lines(&[
            piece(json!({"role": "assistant", "content": "It is "})),
            piece(json!({"role": "assistant", "content": "42."})),
            end,
        ]),
        refusal: Reply::refusal(404, r#"{"error": "model 'qwen3-coder' not found"}"#),
    }
}

/// `OpenAI`'s second protocol.
fn responses() -> Spoken {
    let open = json!({"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress", "output": []}});
    let close = |item: &Value| {
        let usage = json!({"input_tokens": 50, "output_tokens": 9, "total_tokens": 59});
        json!({"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed", "output": [item], "usage": usage}})
    };
    let (before, after) = ("{\"code\": \"pri", "nt 42\"}");
    let call = |arguments: &str| json!({"type": "function_call", "id": "f", "call_id": "call-7", "name": "python", "arguments": arguments});
    let whole = call(&[before, after].concat());
    let said = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "It is 42."}]});
    Spoken {
        model: "openai_resp::gpt-5-mini",
        path: "/responses",
        call: named_events(&[
            open.clone(),
            json!({"type": "response.output_item.added", "output_index": 0, "item": call("")}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": before}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f", "delta": after}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": whole}),
            close(&whole),
        ]),
        answer: named_events(&[
            open,
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "It is "}),
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "42."}),
            close(&said),
        ]),
        refusal: Reply::error(401, "Incorrect API key provided"),
    }
}

fn deepseek() -> Spoken {
    Spoken {
        model: "deepseek::deepseek-reasoner",
        path: "/chat/completions",
        call: Reply::reasoned_call("A number is wanted.", "print 42"),
        answer: Reply::text("It is 42."),
        refusal: Reply::error(401, "Authentication Fails"),
    }
}

fn all() -> [Spoken; 5] {
    [anthropic(), gemini(), ollama(), responses(), deepseek()]
}

async fn ask(model: &str, provider: &Provider) -> Outcome {
    let settings = Settings { model: Some(model.to_owned()), api_key_env: Some(KEY.to_owned()), ..Settings::default() };
    let model = LanguageModel::new(&settings).expect("a known provider").at(&format!("{}/", provider.address));
    assert!(model.info().language_model);
    let task = Task { question: "What is it?".to_owned(), ..Task::default() };
    run_with(&model, &settings, task, None, &CancellationToken::new(), &|_| {}).await
}

/// A call, and the answer that follows from its result; gives the second request.
async fn answered(spoken: Spoken) -> Received {
    let provider = Provider::start(vec![spoken.call, spoken.answer]).await;
    let outcome = ask(spoken.model, &provider).await;
    assert_eq!(outcome.status(), "completed", "{}: {:?}", spoken.model, outcome.run.error);
    assert_eq!(outcome.executed, ["print 42"], "{}", spoken.model);
    assert!(outcome.answer().contains("It is 42."), "{}: {}", spoken.model, outcome.answer());
    let mut received = provider.received();
    assert_eq!(received.len(), 2, "{}", spoken.model);
    let second = received.remove(1);
    assert_eq!(second.path, spoken.path);
    assert!(!second.path.contains(env!("CARGO_MANIFEST_DIR")), "a key stands in an address");
    second
}

#[tokio::test]
async fn each_protocol_carries_a_call_its_result_and_an_answer() {
    for spoken in all() {
        let model = spoken.model;
        let second = answered(spoken).await;
        let body = second.json().to_string();
        assert!(body.contains("print 42") && body.matches("42").count() > 1, "{model} was not told what its call printed: {body}");
    }
}

#[tokio::test]
async fn what_a_provider_needs_to_go_on_thinking_is_sent_back() {
    let gemini = answered(gemini()).await.json();
    let parts: Vec<&Value> =
        gemini["contents"].as_array().unwrap().iter().flat_map(|content| content["parts"].as_array().unwrap()).collect();
    let call = parts.iter().find(|part| part.get("functionCall").is_some()).expect("the call");
    assert_eq!(call["thoughtSignature"], "known-again", "{gemini}");

    let deepseek = answered(deepseek()).await.json();
    let said = deepseek["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant").expect("its turn");
    assert_eq!(said["reasoning_content"], "A number is wanted.", "{deepseek}");

    let anthropic = answered(anthropic()).await.json();
    let result = anthropic["messages"].as_array().unwrap().last().unwrap()["content"][0].clone();
    assert_eq!((result["type"].as_str(), result["tool_use_id"].as_str()), (Some("tool_result"), Some("call-7")), "{anthropic}");
}

#[tokio::test]
async fn a_refusal_in_each_protocol_is_told_with_the_provider_s_words_and_without_the_key() {
    for (spoken, words) in
        all().into_iter().zip(["invalid x-api-key", "API key not valid", "not found", "Incorrect API key", "Authentication Fails"])
    {
        let provider = Provider::start(vec![spoken.refusal]).await;
        let outcome = ask(spoken.model, &provider).await;
        assert_eq!(outcome.status(), "failed", "{}", spoken.model);
        let error = outcome.run.error.expect("a reason");
        assert!(error.message.contains(words) && !error.hint.is_empty(), "{}: {error:?}", spoken.model);
        assert!(!error.message.contains(env!("CARGO_MANIFEST_DIR")));
        assert_eq!(provider.received().len(), 1, "{} was asked again", spoken.model);
    }
}
