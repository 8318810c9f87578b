//! Starting containers and running code in them.

use std::sync::Arc;
use std::time::Duration;

use codeinterp::agent::execution::Execution;
use codeinterp::agent::ports::{ExecuteOptions, Sandbox};
use codeinterp::config::{ByteSize, SandboxSettings};
use codeinterp::sandbox::docker::DockerBackend;
use codeinterp::sandbox::docker::engine::Engine;
use codeinterp::sandbox::docker::owned::{OwnedContainer, containers};
use codeinterp::sandbox::{Backend, StartRequest};
use tokio_util::sync::CancellationToken;

pub fn request(workspace: &str) -> StartRequest {
    let base = std::env::var("CODEINTERP_SANDBOX_BASE").ok();
    let settings = SandboxSettings { memory: ByteSize(768 << 20), pids: 128, base, ..SandboxSettings::default() };
    StartRequest { workspace: workspace.to_owned(), settings, ..StartRequest::default() }
}

pub async fn start_with(backend: &DockerBackend, request: &StartRequest) -> Arc<dyn Sandbox> {
    let started = backend.start(request, &|progress| eprintln!("{}", progress.what), &CancellationToken::new()).await;
    started.unwrap_or_else(|error| panic!("the sandbox does not start: {error:?}"))
}

pub async fn start(workspace: &str) -> Arc<dyn Sandbox> {
    start_with(&DockerBackend::new(), &request(workspace)).await
}

pub async fn run_for(sandbox: &Arc<dyn Sandbox>, code: &str, seconds: u64) -> Execution {
    let options = ExecuteOptions { timeout: Duration::from_secs(seconds), stdout_bytes: 64 << 10, stderr_bytes: 64 << 10 };
    sandbox.execute(code, &options, &|_| (), &CancellationToken::new()).await.unwrap_or_else(|error| panic!("not executed: {error:?}"))
}

/// Executes code with two minutes' time.
pub async fn run(sandbox: &Arc<dyn Sandbox>, code: &str) -> Execution {
    run_for(sandbox, code, 120).await
}

/// What code prints; it must succeed.
pub async fn printed(sandbox: &Arc<dyn Sandbox>, code: &str) -> String {
    let execution = run(sandbox, code).await;
    assert_eq!(execution.exit_code, 0, "{:?}\n{}", execution.error, execution.stderr);
    execution.stdout
}

pub async fn engine() -> Engine {
    Engine::connect().await.unwrap_or_else(|error| panic!("no engine: {error}"))
}

/// The containers of a workspace, by their names: each test has a workspace of its own.
pub async fn containers_of(engine: &Engine, workspace: &str) -> Vec<OwnedContainer> {
    let all = containers(engine).await.expect("containers are listed");
    all.into_iter().filter(|container| container.name.starts_with(&format!("codeinterp-{workspace}-"))).collect()
}

/// Waits until the engine has no container of the workspace any more, or half a minute has passed.
pub async fn wait_gone(engine: &Engine, workspace: &str) -> bool {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..600 {
        if containers_of(engine, workspace).await.is_empty() {
            return true;
        }
        ticks.tick().await;
    }
    false
}
