//! An engine that misbehaves in the middle of things: each fault ends by its deadline, in success or in an error that
//! people can read, and leaves no container.

use std::time::Duration;

use codeinterp::agent::ports::{ExecuteOptions, KernelState, SandboxError};
use codeinterp::sandbox::docker::DockerBackend;
use codeinterp::sandbox::{Backend, Mount};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::proxy::{Break, Call, Fault, Proxy};
use crate::support::{containers_of, engine, printed, request, run, start_with, wait_gone};

/// Time that an answer of the engine may take. Long enough for a busy machine where an answer is to come.
const DEADLINE: Duration = Duration::from_secs(15);
/// The same where none will come.
const SHORT: Duration = Duration::from_secs(5);
/// A whole life of a sandbox takes no longer, whatever is broken in it.
const BOUND: Duration = Duration::from_secs(60);

const FAULTS: [Fault; 8] = [
    Fault::Dropped,
    Fault::AnswerLost,
    Fault::Silence,
    Fault::HalfClosed,
    Fault::Garbage,
    Fault::NotJson,
    Fault::Status,
    Fault::Delay(Duration::from_millis(500)),
];

/// How the life of a sandbox may end when one kind of request is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Nothing runs without it.
    Fails,
    /// Everything runs without it.
    Succeeds,
    /// It depends on how it is broken.
    Either,
}

/// Breaks requests of one kind in every way, three sandboxes at a time.
async fn check(call: Call, outcome: impl Fn(Fault) -> Outcome) {
    image().await;
    let outcome = &outcome;
    let places = FAULTS.into_iter().map(|fault| async move {
        let expected = if matches!(fault, Fault::Delay(_)) { Outcome::Succeeds } else { outcome(fault) };
        place(call, fault, expected).await;
    });
    futures::stream::iter(places).buffer_unordered(3).collect::<Vec<()>>().await;
}

/// The image is there before anything is broken.
async fn image() {
    DockerBackend::new().provision(&request("faults").settings, &|_| (), &CancellationToken::new()).await.expect("an image");
}

async fn place(call: Call, fault: Fault, expected: Outcome) {
    let proxy = Proxy::on_socket();
    proxy.break_requests(call, fault);
    let deadline = if fault == Fault::Silence { SHORT } else { DEADLINE };
    let backend = DockerBackend::at(&proxy.address, deadline);
    let workspace = format!("fault-{}", uuid::Uuid::new_v4().simple());
    let life = async {
        let sandbox = backend.start(&request(&workspace), &|_| (), &CancellationToken::new()).await?;
        let execution = sandbox.execute("6 * 7", &ExecuteOptions::default(), &|_| (), &CancellationToken::new()).await?;
        assert_eq!(execution.result.as_deref(), Some("42"), "{call:?} {fault:?}");
        sandbox.usage().await;
        // A second sandbox asks whether the engine still answers.
        let second = backend.start(&request(&workspace), &|_| (), &CancellationToken::new()).await?;
        second.stop().await;
        sandbox.stop().await;
        Ok::<_, SandboxError>(())
    };
    let ended = tokio::time::timeout(BOUND, life).await;
    let ended = ended.unwrap_or_else(|_| panic!("{call:?} {fault:?}: no end within {BOUND:?}"));
    // A busy machine may miss the short deadline before it comes to that.
    assert!(proxy.hits() > 0 || (fault == Fault::Silence && ended.is_err()), "{call:?} {fault:?}: no such request was made");
    match (&ended, expected) {
        (Err(error), Outcome::Succeeds) if fault != Fault::Silence => panic!("{call:?} {fault:?}: {error:?}"),
        (Ok(()), Outcome::Fails) => panic!("{call:?} {fault:?}: it was not noticed"),
        (Err(error), _) => readable(error),
        (Ok(()), _) => {}
    }
    assert!(wait_gone(&engine().await, &workspace).await, "{call:?} {fault:?}: a container was left");
}

/// An error that a person can use: words, no control characters, no names of types.
fn readable(error: &SandboxError) {
    let text = error.to_string();
    assert!(text.len() > 20 && !text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    for inner in ["hyper", "Error {", "IncompleteMessage", "serde", "legacy"] {
        assert!(!text.contains(inner), "{text}");
    }
    match error {
        SandboxError::Unavailable { hint, .. } => assert!(!hint.is_empty()),
        SandboxError::Gone(reason) => assert!(!reason.is_empty()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_engine_that_does_not_tell_its_version_is_an_error() {
    check(Call::Version, |_| Outcome::Fails).await;
}

#[tokio::test]
async fn an_engine_that_does_not_answer_when_called_is_connected_to_again() {
    check(Call::Ping, |_| Outcome::Succeeds).await;
}

#[tokio::test]
async fn a_list_of_containers_that_can_not_be_had_keeps_nothing_from_starting() {
    check(Call::ListContainers, |_| Outcome::Succeeds).await;
}

#[tokio::test]
async fn an_image_that_can_not_be_looked_for_is_an_error() {
    check(Call::InspectImage, |_| Outcome::Fails).await;
}

#[tokio::test]
async fn a_container_whose_making_fails_or_is_not_answered_is_removed() {
    check(Call::Create, |_| Outcome::Fails).await;
}

#[tokio::test]
async fn a_container_that_can_not_be_attached_to_is_removed() {
    check(Call::Attach, |_| Outcome::Fails).await;
}

#[tokio::test]
async fn a_container_that_can_not_be_started_is_removed() {
    // An answer without a body is whole before what is wrong with it comes.
    check(Call::Start, |fault| if matches!(fault, Fault::NotJson) { Outcome::Either } else { Outcome::Fails }).await;
}

#[tokio::test]
async fn events_that_can_not_be_read_keep_nothing_from_running() {
    check(Call::Events, |_| Outcome::Succeeds).await;
}

#[tokio::test]
async fn figures_that_can_not_be_had_are_left_out() {
    check(Call::Stats, |_| Outcome::Succeeds).await;
}

#[tokio::test]
async fn a_container_that_can_not_be_removed_ends_with_its_input() {
    check(Call::Remove, |_| Outcome::Succeeds).await;
}

async fn break_while_running(how: Break, workspace: &str) -> SandboxError {
    let proxy = Proxy::on_socket();
    let sandbox = start_with(&DockerBackend::at(&proxy.address, DEADLINE), &request(workspace)).await;
    run(&sandbox, "1").await;
    let (begun, running) = tokio::sync::oneshot::channel();
    let begun = std::sync::Mutex::new(Some(begun));
    let waiting = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let said = move |_| {
                if let Some(begun) = begun.lock().unwrap().take() {
                    let _ = begun.send(());
                }
            };
            let code = "import time; print('running', flush=True); time.sleep(600)";
            sandbox.execute(code, &ExecuteOptions::default(), &said, &CancellationToken::new()).await
        })
    };
    running.await.expect("it runs");
    proxy.break_streams(how);
    let ended = tokio::time::timeout(BOUND, waiting).await.expect("it ends by the deadline").expect("no panic");
    assert_eq!(sandbox.kernel_state(), KernelState::Dead);
    drop(sandbox);
    assert!(wait_gone(&engine().await, workspace).await, "a container was left");
    ended.expect_err("the stream was broken")
}

#[tokio::test]
async fn a_connection_that_breaks_while_code_runs_ends_the_sandbox() {
    assert!(matches!(break_while_running(Break::Close, "cut").await, SandboxError::Gone(_)));
}

#[tokio::test]
async fn bytes_that_nobody_sent_while_code_runs_end_the_sandbox() {
    let error = break_while_running(Break::Garbage, "garbled").await;
    assert!(matches!(error, SandboxError::Gone(_) | SandboxError::Protocol(_)), "{error:?}");
}

#[tokio::test]
async fn a_start_that_is_cancelled_leaves_nothing() {
    image().await;
    for call in [Call::Create, Call::Attach, Call::Start] {
        let proxy = Proxy::on_socket();
        proxy.break_requests(call, Fault::Silence);
        let (backend, cancel) = (DockerBackend::at(&proxy.address, DEADLINE), CancellationToken::new());
        let request = request("cancelled");
        let engine = engine().await;
        // Cancelled when the container is there: the request that is broken may reach the engine later than the proxy.
        let cancelled = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            while proxy.hits() == 0 || containers_of(&engine, "cancelled").await.is_empty() {
                ticks.tick().await;
            }
            cancel.cancel();
        };
        let both = async { tokio::join!(backend.start(&request, &|_| (), &cancel), cancelled) };
        let (started, ()) = tokio::time::timeout(BOUND, both).await.expect("it is cancelled by the deadline");
        assert_eq!(started.err(), Some(SandboxError::Cancelled), "{call:?}");
        assert!(wait_gone(&engine, "cancelled").await, "{call:?}: a container was left");
    }
}

#[tokio::test]
async fn an_engine_behind_a_port_runs_code_and_mounts_nothing() {
    let proxy = Proxy::on_port().await;
    let backend = DockerBackend::at(&proxy.address, DEADLINE);
    let sandbox = start_with(&backend, &request("port")).await;
    assert_eq!(printed(&sandbox, "print(6 * 7)").await, "42\n");
    let mut mounting = request("port");
    mounting.mounts = vec![Mount { host: "/etc/hostname".into(), name: "large.csv".to_owned() }];
    let error = backend.start(&mounting, &|_| (), &CancellationToken::new()).await.err().expect("an error");
    assert!(error.to_string().contains("another machine"), "{error}");
    assert_eq!(containers_of(&engine().await, "port").await.len(), 1);
    sandbox.stop().await;
    assert!(wait_gone(&engine().await, "port").await);
}
