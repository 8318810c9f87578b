//! A provider that misbehaves: every fault ends in a typed, readable error, and nothing of half an answer is run.

use std::time::Duration;

use codeinterp::agent::ports::ModelError;
use codeinterp::agent::run::ErrorKind;
use codeinterp::agent::task::Task;
use codeinterp::config::Settings;
use codeinterp::llm::Deadlines;
use codeinterp::llm::provider::Provider as Client;
use tokio_util::sync::CancellationToken;

use crate::support::loop_run::{Outcome, ask, run_with, settings};
use crate::support::provider::{Provider, Reply};

const CODE: &str = "```python\nprint 1\n```\nand more";

fn quick(settings: &Settings) -> Client {
    let wait = Duration::from_millis(300);
    let deadlines = Deadlines { connect: wait, first: wait, idle: wait, turn: Duration::from_secs(20) };
    Client::with_deadlines(settings, deadlines).expect("a client")
}

async fn ask_quickly(settings: &Settings) -> Outcome {
    let task = Task { question: "q".to_owned(), ..Task::default() };
    run_with(&quick(settings), settings, task, None, &CancellationToken::new(), &|_| {}).await
}

#[tokio::test]
async fn a_cut_stream_is_asked_for_again_and_nothing_of_it_is_run() {
    for broken in [Reply::cut(CODE), Reply::half_closed(CODE)] {
        let provider = Provider::start(vec![broken.clone(), Reply::text("Done.")]).await;
        let outcome = ask(&settings(&provider), "q").await;
        assert_eq!((outcome.status(), outcome.executed.len()), ("completed", 0), "{broken:?}");
        let provider = Provider::start(vec![broken]).await;
        let outcome = ask(&settings(&provider), "q").await;
        assert_eq!((outcome.status(), outcome.executed.len()), ("failed", 0));
        assert_eq!(outcome.run.error.unwrap().kind, ErrorKind::Run);
    }
}

#[tokio::test]
async fn a_silent_server_ends_the_run_by_its_deadline() {
    for (stalled, words) in [(Reply::stalled(CODE), "stopped in the middle"), (Reply::Stall(Vec::new()), "did not answer")] {
        let provider = Provider::start(vec![stalled]).await;
        let outcome = ask_quickly(&settings(&provider)).await;
        let error = outcome.run.error.clone().unwrap();
        assert_eq!((outcome.status(), outcome.executed.len(), error.kind), ("failed", 0, ErrorKind::Model));
        assert!(error.message.contains(words), "{}", error.message);
    }
}

#[tokio::test]
async fn too_many_requests_are_waited_out_and_the_state_is_kept() {
    let provider = Provider::start(vec![
        Reply::calls(&["print 1"]),
        Reply::error_with(429, "slow down", &[("Retry-After", "0")]),
        Reply::error_with(503, "overloaded", &[("Retry-After", "-7")]),
        Reply::text("One."),
    ])
    .await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len()), ("completed", 1));
    let requests = provider.received();
    assert_eq!(requests[1].body, requests[3].body, "the same request is made again");
    assert!(outcome.run.notices.iter().any(|notice| notice.contains("429")));
}

#[tokio::test]
async fn a_server_that_wants_an_endless_wait_is_given_up_at_once() {
    let provider = Provider::start(vec![Reply::error_with(429, "slow down", &[("Retry-After", "86400")])]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), provider.received().len()), ("failed", 1));
    assert_eq!(outcome.run.error.unwrap().kind, ErrorKind::Model);
}

#[tokio::test]
async fn refused_credentials_are_named_and_the_key_is_not() {
    let provider = Provider::start(vec![Reply::error(401, "Incorrect API key provided: sk-abcdefghijklmnop1234")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    let error = outcome.run.error.clone().unwrap();
    assert_eq!((error.kind, error.kind.exit_code()), (ErrorKind::Credentials, 3));
    assert!(!serde_json::to_string(&outcome.run).unwrap().contains("abcdefghijklmnop"), "{error:?}");
}

#[tokio::test]
async fn unreadable_answers_are_typed_errors() {
    for reply in [
        Reply::body("text/event-stream", "data: {not json}\n\n"),
        Reply::body("text/event-stream", "data: {\"choices\": []}\n\ndata: [DONE]\n\n"),
        Reply::body("text/html", "<html>login</html>"),
        Reply::body("application/json", "{}"),
        Reply::body("text/event-stream", ""),
        Reply::HangUp,
    ] {
        let provider = Provider::start(vec![reply.clone()]).await;
        let outcome = ask_quickly(&settings(&provider)).await;
        assert_eq!((outcome.status(), outcome.executed.len()), ("failed", 0), "{reply:?}");
        assert!(!outcome.run.error.unwrap().message.is_empty());
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Provider::start(vec![Reply::text("stolen")]).await;
    let location = format!("{}/v1/chat/completions", other.address);
    let provider = Provider::start(vec![Reply::error_with(307, "", &[("Location", &location)])]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), other.received().len()), ("failed", 0));
    assert!(outcome.run.error.unwrap().message.contains("redirects to"));
}

#[tokio::test]
async fn an_unreachable_server_and_an_unknown_model_are_told_apart() {
    let gone = Settings { model: Some("m".to_owned()), endpoint: Some("http://127.0.0.1:1".to_owned()), ..Settings::default() };
    let outcome = ask_quickly(&gone).await;
    assert_eq!(outcome.run.error.clone().unwrap().kind, ErrorKind::Model);
    assert!(outcome.run.error.unwrap().message.contains("can't be reached"));
    let provider = Provider::start(vec![Reply::error(404, "The model `m` does not exist")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert!(outcome.run.error.unwrap().message.contains("does not have the model"));
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_shortened_once() {
    let provider = Provider::start(vec![
        Reply::calls(&[&format!("print {}", "x".repeat(6000))]),
        Reply::calls(&["print 2"]),
        Reply::error(400, "maximum context length is 4096 tokens"),
        Reply::text("Done."),
    ])
    .await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!(outcome.status(), "completed");
    let requests = provider.received();
    assert!(requests[3].body.len() + 2000 < requests[2].body.len());
    assert!(requests[3].text().contains("left out to save room"));
}

const TOO_LONG: &str = "maximum context length is 4096 tokens";

#[tokio::test]
async fn of_the_latest_output_a_beginning_is_sent_where_the_model_refuses_more() {
    let provider = Provider::start(vec![
        Reply::calls(&[&format!("print {}", "x".repeat(6000))]),
        Reply::error(400, TOO_LONG),
        Reply::text("It begins with x."),
    ])
    .await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("completed", "It begins with x."));
    let last = provider.received().pop().unwrap().text();
    assert!(last.contains(&"x".repeat(1000)) && !last.contains(&"x".repeat(1001)) && last.contains("5000 more bytes left out"), "{last}");
}

#[tokio::test]
async fn a_question_that_is_too_long_by_itself_is_said_to_be_so_at_once() {
    let provider = Provider::start(vec![Reply::error(400, TOO_LONG)]).await;
    let outcome = ask(&settings(&provider), "q").await;
    let error = outcome.run.error.clone().unwrap();
    assert_eq!((outcome.status(), provider.received().len()), ("failed", 1), "nothing can be left out of it");
    assert!(error.message.contains(TOO_LONG) && error.hint.contains("larger window"), "{error:?}");
}

#[tokio::test]
async fn odd_wishes_for_a_wait_are_no_reason_to_give_up_or_to_wait_long() {
    for wish in ["soon", "-3", "NaN", "1e400", "Wed, 21 Oct 2015 07:28:00 GMT", ""] {
        let provider = Provider::start(vec![Reply::error_with(429, "slow down", &[("Retry-After", wish)]), Reply::text("Done.")]).await;
        assert_eq!(ask(&settings(&provider), "q").await.answer(), "Done.", "{wish:?}");
    }
}

#[tokio::test]
async fn an_overloaded_server_is_given_up_after_a_few_requests() {
    let provider = Provider::start(vec![Reply::error_with(503, "overloaded", &[("Retry-After", "0")])]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), provider.received().len()), ("failed", 4));
    assert!(outcome.run.error.unwrap().message.contains("503"));
}

#[tokio::test]
async fn names_without_a_host_and_hosts_without_tls_are_typed_errors() {
    let plain = Provider::start(vec![Reply::text("no TLS here")]).await;
    let tls = plain.address.replace("http:", "https:");
    for endpoint in ["http://no-such-host.invalid/v1", tls.as_str()] {
        let settings = Settings { model: Some("m".to_owned()), endpoint: Some(endpoint.to_owned()), ..Settings::default() };
        let outcome = ask_quickly(&settings).await;
        let error = outcome.run.error.clone().unwrap();
        assert_eq!((outcome.status(), error.kind), ("failed", ErrorKind::Model), "{endpoint}");
        assert!(error.message.contains("can't be reached"), "{}", error.message);
    }
    assert!(plain.received().is_empty());
}

#[tokio::test]
async fn a_refusal_in_words_is_the_answer_and_runs_nothing() {
    let provider = Provider::start(vec![Reply::text("I can't help with that.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.answer(), outcome.executed.len()), ("completed", "I can't help with that.", 0));
}

#[tokio::test]
async fn an_answer_in_one_piece_is_taken_from_a_server_that_does_not_stream() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let provider = Provider::start(vec![Reply::body("application/json", whole)]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("completed", "Hello."));
}

#[tokio::test]
async fn a_withheld_answer_is_said_to_be_withheld() {
    let provider = Provider::start(vec![Reply::finished("", "content_filter")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert!(outcome.run.error.unwrap().message.contains("filter"));
}

#[test]
fn settings_that_name_no_usable_model_are_refused() {
    let connect = |settings: Settings| codeinterp::llm::connect(&settings).map(|model| model.info().name).unwrap_err();
    let wrong = Settings { endpoint: Some("not a url".to_owned()), ..Settings::default() };
    assert!(matches!(connect(wrong), ModelError::Settings(_)));
    let wrong =
        Settings { endpoint: Some("http://h".to_owned()), api_key_env: Some("NO_SUCH_VARIABLE_1".to_owned()), ..Settings::default() };
    assert!(matches!(connect(wrong), ModelError::Settings(_)));
    let editor = Settings { model: Some("editor".to_owned()), ..Settings::default() };
    assert!(matches!(connect(editor), ModelError::Settings(_)));
}

#[tokio::test]
async fn an_endless_line_is_an_error_and_not_kept() {
    let provider = Provider::start(vec![Reply::EndlessLine(100 << 20)]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len()), ("failed", 0));
}

#[tokio::test]
async fn a_server_that_can_not_count_tokens_is_asked_without() {
    let provider = Provider::start(vec![Reply::error(400, "Unrecognized request argument: stream_options"), Reply::text("Four.")]).await;
    let outcome = ask_quickly(&settings(&provider)).await;
    assert_eq!(outcome.answer(), "Four.");
    assert!(provider.received()[1].json()["stream_options"].is_null());
}

#[tokio::test]
async fn a_server_that_cuts_the_conversation_in_silence_is_told_of_and_gets_less() {
    let long = "x".repeat(6000);
    let print = format!("print {long}");
    let call = || Reply::counted(&print, 2048);
    let provider = Provider::start(vec![call(), call(), call(), Reply::text("Done.")]).await;
    let outcome = ask_quickly(&settings(&provider)).await;
    assert!(outcome.run.notices.iter().any(|notice| notice.contains("2048 tokens")), "{:?}", outcome.run.notices);
    assert!(provider.received().pop().unwrap().text().contains("older output left out"));
}
