//! Steps, turns, tokens, repeats, cancellation, and a sandbox that dies.

use codeinterp::agent::events::RunEvent;
use codeinterp::agent::task::Task;
use tokio_util::sync::CancellationToken;

use crate::support::loop_run::{ask, run_with, settings};
use crate::support::provider::{Provider, Reply};

#[tokio::test]
async fn the_step_limit_forces_a_conclusion_without_code() {
    let provider = Provider::start(vec![
        Reply::calls(&["print 1"]),
        Reply::calls(&["print 2"]),
        Reply::text("So far: 1 and 2.\n```python\nprint 3\n```"),
    ])
    .await;
    let mut settings = settings(&provider);
    settings.agent.max_steps = 2;
    let outcome = ask(&settings, "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("incomplete", "So far: 1 and 2."));
    assert_eq!(outcome.executed, ["print 1", "print 2"]);
    let last = provider.received().pop().unwrap();
    assert!(last.json()["tools"].is_null() && last.text().contains("Don't write code"));
    assert!(!last.text().contains("tool_call_id"));
    assert!(outcome.run.notices.iter().any(|notice| notice.contains("limit of 2 steps")));
}

#[tokio::test]
async fn several_blocks_do_not_pass_the_step_limit() {
    let turn = "```python\nprint 1\n```\n```python\nprint 2\n```\n```python\nprint 3\n```";
    let provider = Provider::start(vec![Reply::text(turn), Reply::text("Done.")]).await;
    let mut settings = settings(&provider);
    settings.agent.max_steps = 2;
    let outcome = ask(&settings, "q").await;
    assert_eq!((outcome.executed.len(), outcome.status()), (2, "incomplete"));
}

#[tokio::test]
async fn the_same_failing_code_ends_the_repair() {
    let provider = Provider::start(vec![
        Reply::calls(&["raise KeyError: 'x'"]),
        Reply::calls(&["raise KeyError: 'x'"]),
        Reply::text("The column is not there."),
    ])
    .await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len(), outcome.answer()), ("incomplete", 2, "The column is not there."));
}

#[tokio::test]
async fn code_that_runs_again_and_again_is_told_so_and_stopped() {
    let provider =
        Provider::start(vec![Reply::calls(&["print 1"]), Reply::calls(&["print 1"]), Reply::calls(&["print 1"]), Reply::text("One.")])
            .await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.executed.len()), ("incomplete", 3));
    assert!(provider.received()[2].text().contains("had been executed before"));
}

#[tokio::test]
async fn turns_are_bounded_by_twice_the_steps() {
    let provider = Provider::start(vec![Reply::raw_calls(&["{}".to_owned()], "tool_calls")]).await;
    let mut settings = settings(&provider);
    settings.agent.max_steps = 3;
    let outcome = ask(&settings, "q").await;
    assert!(provider.received().len() <= 6, "{}", provider.received().len());
    assert_eq!(outcome.status(), "failed");
}

#[tokio::test]
async fn the_token_limit_forces_a_conclusion() {
    let provider = Provider::start(vec![Reply::calls(&["print 1"]), Reply::text("One.")]).await;
    let mut settings = settings(&provider);
    settings.agent.max_tokens = Some(100);
    let outcome = ask(&settings, "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("incomplete", "One."));
}

#[tokio::test]
async fn a_forced_conclusion_without_words_is_no_conclusion() {
    let provider = Provider::start(vec![Reply::calls(&["print 1"]), Reply::text("```python\nprint 2\n```")]).await;
    let mut settings = settings(&provider);
    settings.agent.max_steps = 1;
    let outcome = ask(&settings, "q").await;
    assert_eq!((outcome.status(), outcome.run.final_answer, outcome.executed.len()), ("failed", None, 1));
}

#[tokio::test]
async fn a_dead_kernel_is_told_with_its_variables_lost() {
    let provider = Provider::start(vec![Reply::calls(&["die"]), Reply::text("It died.")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!(outcome.run.steps[0].exit_code, 139);
    assert!(provider.received()[1].text().contains("all variables are lost"));
}

#[tokio::test]
async fn a_sandbox_that_is_gone_is_told_once_and_then_ends_the_run() {
    let provider = Provider::start(vec![Reply::calls(&["gone 1"]), Reply::calls(&["gone 2"]), Reply::text("x")]).await;
    let outcome = ask(&settings(&provider), "q").await;
    assert_eq!((outcome.status(), outcome.run.total_steps), ("failed", 2));
    assert!(provider.received()[1].text().contains("all variables are lost"));
    assert_eq!(outcome.run.error.unwrap().kind.exit_code(), 3);
}

#[tokio::test]
async fn a_run_is_cancelled_in_the_midst_of_an_execution() {
    let provider = Provider::start(vec![Reply::calls(&["wait"]), Reply::text("x")]).await;
    let settings = settings(&provider);
    let model = codeinterp::llm::connect(&settings).unwrap();
    let cancel = CancellationToken::new();
    let watch = |event: &RunEvent| {
        if matches!(event, RunEvent::StepStarted { .. }) {
            cancel.cancel();
        }
    };
    let task = Task { question: "q".to_owned(), ..Task::default() };
    let outcome = run_with(&*model, &settings, task, None, &cancel, &watch).await;
    assert_eq!((outcome.status(), provider.received().len()), ("cancelled", 1));
}

#[tokio::test]
async fn a_run_is_cancelled_while_the_model_is_silent() {
    let provider = Provider::start(vec![Reply::stalled("I think")]).await;
    let settings = settings(&provider);
    let model = codeinterp::llm::connect(&settings).unwrap();
    let cancel = CancellationToken::new();
    let watch = |event: &RunEvent| {
        if matches!(event, RunEvent::ModelText(_)) {
            cancel.cancel();
        }
    };
    let task = Task { question: "q".to_owned(), ..Task::default() };
    let outcome = run_with(&*model, &settings, task, None, &cancel, &watch).await;
    assert_eq!(outcome.status(), "cancelled");
}

#[tokio::test]
async fn the_time_limit_cuts_a_turn_and_forces_a_conclusion() {
    let provider = Provider::start(vec![Reply::calls(&["print 7"]), Reply::stalled("Let me think"), Reply::text("So far: 7.")]).await;
    let mut settings = settings(&provider);
    settings.agent.max_seconds = Some(1);
    let outcome = ask(&settings, "q").await;
    assert_eq!((outcome.status(), outcome.answer()), ("incomplete", "So far: 7."));
    assert!(outcome.run.notices.iter().any(|notice| notice.contains("limit of 1 seconds")), "{:?}", outcome.run.notices);
}

#[tokio::test]
async fn what_was_printed_stands_for_a_conclusion_that_never_comes() {
    let provider = Provider::start(vec![Reply::calls(&["print 7"]), Reply::stalled("Let me think")]).await;
    let mut settings = settings(&provider);
    settings.agent.max_seconds = Some(1);
    let outcome = ask(&settings, "q").await;
    assert_eq!(outcome.status(), "incomplete");
    assert!(outcome.answer().contains("Step 1 printed last") && outcome.answer().contains('7'), "{}", outcome.answer());
}
