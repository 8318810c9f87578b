//! What of a turn is executed, and what never is.

use codeinterp::config::{Confirm, Protocol};
use serde_json::Value;

use crate::support::loop_run::{ask, run, settings};
use crate::support::provider::{Provider, Reply};

#[tokio::test]
async fn a_tool_call_is_executed_and_its_result_answered_under_its_id() {
    let provider = Provider::start(vec![Reply::calls(&["print 42"]), Reply::text("The answer is 42.")]).await;
    let outcome = ask(&settings(&provider), "What is six times seven?").await;
    assert_eq!((outcome.status(), outcome.answer()), ("completed", "The answer is 42."));
    assert_eq!(outcome.executed, ["print 42"]);
    let second = provider.received()[1].json();
    let messages = second["messages"].as_array().unwrap();
    let result = messages.last().unwrap();
    assert_eq!((result["role"].as_str(), result["tool_call_id"].as_str()), (Some("tool"), Some("id-0")));
    assert!(result["content"].as_str().unwrap().contains("(exit_code=0)"), "{result}");
    assert_eq!(outcome.run.usage.input_tokens, 200);
}

#[tokio::test]
async fn a_fence_is_executed_although_tools_were_offered() {
    let provider = Provider::start(vec![Reply::text("I look.\n```python\nprint 42\n```"), Reply::text("It is 42.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!(outcome.executed, ["print 42"]);
    assert_eq!(outcome.run.steps[0].note, "I look.");
    assert!(provider.received()[0].json()["tools"].is_array());
}

#[tokio::test]
async fn the_fenced_protocol_offers_no_tools() {
    let provider = Provider::start(vec![Reply::text("```python\nprint 1\n```"), Reply::text("One.")]).await;
    let mut settings = settings(&provider);
    settings.protocol = Protocol::Fenced;
    ask(&settings, "q").await;
    let first = provider.received()[0].json();
    assert_eq!(first["tools"], Value::Null);
    assert!(first["messages"][0]["content"].as_str().unwrap().contains("fenced with ```python"));
}

#[tokio::test]
async fn a_server_that_refuses_tools_is_asked_once_more_without() {
    let provider = Provider::start(vec![
        Reply::error(400, "this model does not support tools"),
        Reply::text("```python\nprint 7\n```"),
        Reply::text("Seven."),
    ])
    .await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len()), ("completed", 1));
    let requests = provider.received();
    assert!(requests[0].json()["tools"].is_array() && requests[1].json()["tools"].is_null());
    assert!(requests[1].text().contains("fenced with ```python"));
}

#[tokio::test]
async fn several_blocks_run_in_order_and_stop_at_the_first_error() {
    let turn = "```python\nprint 1\n```\nthen\n```python\nraise ValueError: no\n```\nand\n```python\nprint 3\n```";
    let provider = Provider::start(vec![Reply::text(turn), Reply::text("It failed.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!(outcome.executed, ["print 1", "raise ValueError: no"]);
    assert_eq!(outcome.run.total_steps, 2);
    assert!(provider.received()[1].text().contains("The block after it was not executed."));
}

#[tokio::test]
async fn a_call_cut_by_the_token_limit_is_never_run() {
    let half = r#"{"code": "print 1\nprint 2"}"#.to_owned();
    let provider = Provider::start(vec![Reply::raw_calls(&[half], "length"), Reply::text("Done.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.executed.len(), outcome.answer()), (0, "Done."));
    assert!(provider.received()[1].text().contains("cut off by the token limit"));
}

#[tokio::test]
async fn half_a_call_is_answered_and_not_run() {
    let provider = Provider::start(vec![Reply::raw_calls(&["{\"code\": \"print".to_owned()], "tool_calls"), Reply::text("Done.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len()), ("completed", 0));
    assert!(provider.received()[1].text().contains("Nothing was executed"));
}

#[tokio::test]
async fn half_a_fence_is_not_run() {
    let provider = Provider::start(vec![Reply::text("```python\nprint 1\nprint 2"), Reply::text("Done.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.executed.len(), outcome.answer()), (0, "Done."));
}

#[tokio::test]
async fn code_inside_reasoning_is_not_run() {
    let think = Reply::text("<think>\n```python\nprint 1\n```\n</think>\nNothing to calculate.");
    let apart = Reply::reasoned("```python\nprint 1\n```", "Nothing to calculate.");
    for reply in [think, apart] {
        let provider = Provider::start(vec![reply]).await;
        let outcome = ask(&settings(&provider), "q").await;
        assert_eq!((outcome.status(), outcome.executed.len(), outcome.answer()), ("completed", 0, "Nothing to calculate."));
    }
}

#[tokio::test]
async fn another_language_is_asked_about_once_and_never_run() {
    let bash = "```bash\nrm -rf /\n```";
    let provider = Provider::start(vec![Reply::text(bash), Reply::text(bash)]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len()), ("completed", 0));
    assert_eq!(provider.received().len(), 2);
    assert!(provider.received()[1].text().contains("only Python runs here"));
}

#[tokio::test]
async fn an_answer_without_code_is_the_conclusion() {
    let provider = Provider::start(vec![Reply::text("你好，没有需要计算的内容。")]).await;
    let outcome = ask(&settings(&provider), "打个招呼").await;
    assert_eq!((outcome.status(), outcome.answer()), ("completed", "你好，没有需要计算的内容。"));
}

#[tokio::test]
async fn an_empty_answer_is_asked_about_once_and_then_a_failure() {
    let provider = Provider::start(vec![Reply::text("")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), provider.received().len()), ("failed", 2));
    assert!(outcome.run.error.unwrap().message.contains("empty"));
}

#[tokio::test]
async fn charts_and_new_files_become_artifacts_and_are_told() {
    let provider = Provider::start(vec![Reply::calls(&["figure\nwrite out/a.csv\nwrite ../evil\nlet df"]), Reply::text("Done.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    let names: Vec<&str> = outcome.run.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
    assert_eq!(names, ["chart-1.png", "a.csv"]);
    assert_eq!(outcome.run.steps[0].artifacts, ["chart-1.png", "a.csv"]);
    assert!(outcome.run.notices.iter().any(|notice| notice.contains("../evil")), "{:?}", outcome.run.notices);
    let told = provider.received()[1].text();
    assert!(told.contains("chart-1.png") && told.contains("out/a.csv") && told.contains("df: DataFrame [3×2]"), "{told}");
    assert!(!outcome.run.steps[0].outputs.is_empty());
    assert!(!serde_json::to_string(&outcome.run).unwrap().contains("iVBORw0KGgo"), "the record holds references, not pictures");
}

#[tokio::test]
async fn a_number_that_no_step_printed_gets_one_check() {
    let provider = Provider::start(vec![Reply::calls(&["print 41.5"]), Reply::text("It is 99.25."), Reply::text("It is 41.5.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("completed", "It is 41.5."));
    assert!(provider.received()[2].text().contains("stand in no output so far: 99.25"));
}

#[tokio::test]
async fn an_answer_stands_where_its_check_fails() {
    let provider = Provider::start(vec![Reply::calls(&["print 1"]), Reply::text("It is 99.25."), Reply::error(400, "no")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("completed", "It is 99.25."));
}

struct Answers(bool);

#[async_trait::async_trait]
impl codeinterp::agent::ports::Approval for Answers {
    async fn approve(&self, _: u32, _: &str) -> bool {
        self.0
    }
}

#[tokio::test]
async fn with_confirmation_nothing_runs_unless_the_person_agrees() {
    for (approval, runs) in [(Some(Answers(true)), 1), (Some(Answers(false)), 0), (None, 0)] {
        let provider = Provider::start(vec![Reply::calls(&["print 5"]), Reply::text("Done.")]).await;
        let mut settings = settings(&provider);
        settings.agent.confirm = Confirm::Always;
        let task = codeinterp::agent::task::Task { question: "q".to_owned(), ..Default::default() };
        let approval = approval.as_ref().map(|approval| approval as &dyn codeinterp::agent::ports::Approval);
        let outcome = run(&settings, task, approval, &tokio_util::sync::CancellationToken::new()).await;
        assert_eq!((outcome.executed.len(), outcome.status()), (runs, "completed"));
    }
}
