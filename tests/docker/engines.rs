//! Other runtimes and other engines: gVisor below Docker, and Podman in Docker's place.

use std::time::Duration;

use codeinterp::agent::ports::SandboxError;
use codeinterp::sandbox::Backend;
use codeinterp::sandbox::docker::DockerBackend;
use codeinterp::sandbox::docker::engine::{ANSWER, Engine};
use tokio_util::sync::CancellationToken;

use crate::support::{containers_of, engine, printed, request, run, start_with, wait_gone};

/// Loads the data stack, draws, writes a file, and cannot reach anything.
const JOB: &str = "
import socket
import pandas as pd
import matplotlib.pyplot as plt

frame = pd.DataFrame({'city': ['Oslo', 'Rome', 'Oslo'], 'sales': [1.5, 2.5, 3.0]})
frame.groupby('city').sales.sum().plot.bar()
frame.to_csv('out.csv', index=False)
try:
    socket.create_connection(('1.1.1.1', 80), timeout=1)
except OSError as error:
    print('no network')
print(frame.sales.sum())
plt.show()
";

/// The main job, a killed kernel, an interrupt, and the end.
async fn whole_life(backend: &DockerBackend, engine: &Engine, request: &codeinterp::sandbox::StartRequest) {
    let sandbox = start_with(backend, request).await;
    let execution = run(&sandbox, JOB).await;
    assert_eq!((execution.exit_code, execution.stdout.as_str()), (0, "no network\n7.0\n"), "{execution:?}");
    assert_eq!(execution.figures.len(), 1, "{execution:?}");
    assert!(sandbox.get_file("out.csv", 1000).await.expect("it is fetched").starts_with(b"city,sales\n"));
    let execution = run(&sandbox, "import os; os.kill(os.getpid(), 9)").await;
    assert_eq!((execution.exit_code, execution.variables_lost), (137, true), "{execution:?}");
    let execution = crate::support::run_for(&sandbox, "while True: pass", 1).await;
    assert_eq!(execution.exit_code, -1, "{execution:?}");
    assert_eq!(printed(&sandbox, "print(6 * 7)").await, "42\n");
    assert_eq!(containers_of(engine, &request.workspace).await.len(), 1);
    sandbox.stop().await;
    assert!(wait_gone(engine, &request.workspace).await, "a container was left");
}

#[tokio::test]
async fn the_main_job_runs_in_gvisor() {
    let mut request = request("gvisor");
    request.settings.runtime = Some("runsc".to_owned());
    let backend = DockerBackend::new();
    whole_life(&backend, &engine().await, &request).await;
    // gVisor's own kernel, and not this machine's, is what code sees.
    let sandbox = start_with(&backend, &request).await;
    assert_eq!(printed(&sandbox, "print(open('/proc/version').read().split()[2])").await, "4.4.0\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_runtime_that_the_engine_does_not_have_is_named() {
    let mut request = request("noruntime");
    request.settings.runtime = Some("no-such-runtime".to_owned());
    let error = DockerBackend::new().start(&request, &|_| (), &CancellationToken::new()).await.err().expect("an error");
    assert!(matches!(&error, SandboxError::Unavailable { message, .. } if message.contains("no-such-runtime")), "{error:?}");
    assert!(wait_gone(&engine().await, "noruntime").await, "a container was left");
}

#[tokio::test]
async fn the_main_job_runs_on_podman() {
    let host = std::env::var("CODEINTERP_TEST_PODMAN");
    let host = host.expect("CODEINTERP_TEST_PODMAN names Podman's service: bash tests/setup/podman.sh, then source the part's environment");
    let engine = Engine::at(&host, ANSWER).await.unwrap_or_else(|error| panic!("no Podman: {error}; bash tests/setup/podman.sh start"));
    assert!(engine.podman, "{}", engine.description);
    let backend = DockerBackend::at(&host, ANSWER);
    whole_life(&backend, &engine, &request("podman")).await;
    // The profile that Podman was given as a path is in force, and so are the other bounds.
    let sandbox = start_with(&backend, &request("podman")).await;
    let code = "
status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
print(status['Seccomp'].strip(), status['NoNewPrivs'].strip(), int(status['CapEff'], 16))
try:
    open('/etc/x', 'w')
except OSError as error:
    print(error.strerror)
";
    assert_eq!(printed(&sandbox, code).await, "2 1 0\nRead-only file system\n");
    let memory = sandbox.usage().await.memory_bytes;
    assert!(memory.is_none_or(|bytes| bytes > 10 << 20), "{memory:?}");
    sandbox.stop().await;
    assert!(wait_gone(&engine, "podman").await, "a container was left");
    tokio::time::timeout(Duration::from_secs(30), engine.api.ping()).await.expect("it still answers").expect("it still answers");
}
