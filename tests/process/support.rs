//! Starting sandboxes and running code in them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codeinterp::agent::execution::Execution;
use codeinterp::agent::ports::{ExecuteOptions, Sandbox, SandboxError};
use codeinterp::config::{ByteSize, SandboxSettings};
use codeinterp::sandbox::{Backend, ProcessBackend, StartRequest};
use tokio_util::sync::CancellationToken;

/// Where the environment of the tests lies, among the other real parts.
pub fn cache() -> PathBuf {
    let base = std::env::var_os("CODEINTERP_TESTBED").map_or_else(
        || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache")).join("codeinterp-testbed")
        },
        PathBuf::from,
    );
    base.join("process-cache")
}

pub fn backend() -> ProcessBackend {
    ProcessBackend::new(cache())
}

pub fn request() -> StartRequest {
    let settings = SandboxSettings { memory: ByteSize(768 << 20), pids: 128, ..SandboxSettings::default() };
    StartRequest { workspace: "test".to_owned(), settings, ..StartRequest::default() }
}

pub async fn start_with(backend: &ProcessBackend, request: &StartRequest) -> Arc<dyn Sandbox> {
    try_start(backend, request).await.unwrap_or_else(|error| panic!("the sandbox does not start: {error:?}"))
}

pub async fn try_start(backend: &ProcessBackend, request: &StartRequest) -> Result<Arc<dyn Sandbox>, SandboxError> {
    backend.start(request, &|progress| eprintln!("{}", progress.what), &CancellationToken::new()).await
}

pub async fn start() -> Arc<dyn Sandbox> {
    start_with(&backend(), &request()).await
}

/// Executes code with a minute's time.
pub async fn run(sandbox: &Arc<dyn Sandbox>, code: &str) -> Execution {
    run_for(sandbox, code, 60).await
}

pub async fn run_for(sandbox: &Arc<dyn Sandbox>, code: &str, seconds: u64) -> Execution {
    let options = ExecuteOptions { timeout: Duration::from_secs(seconds), stdout_bytes: 64 << 10, stderr_bytes: 64 << 10 };
    sandbox.execute(code, &options, &|_| (), &CancellationToken::new()).await.unwrap_or_else(|error| panic!("not executed: {error:?}"))
}

/// What code prints; it must succeed.
pub async fn printed(sandbox: &Arc<dyn Sandbox>, code: &str) -> String {
    let execution = run(sandbox, code).await;
    assert_eq!(execution.exit_code, 0, "{:?}\n{}", execution.error, execution.stderr);
    execution.stdout
}

/// A test on a runtime of its own.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime").block_on(test)
}
