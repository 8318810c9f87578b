//! Generated hostile cells against both backends, with canaries on the host.
//!
//! Each cell is an attack of a kind (`cells.rs`) with parameters drawn from a seed. After each one the sandbox must be usable, or have
//! ended with a cause and be startable again; at the end the canaries must be untouched and nothing of the sandboxes left. Among all
//! tests a slice runs in which every kind occurs. The long run, 200 cells on each backend, is
//!
//! ```text
//! CODEINTERP_HOSTILE_CELLS=200 cargo test --test hostile -- --nocapture
//! ```
//!
//! and `CODEINTERP_HOSTILE_SEED=N` draws others; a failure names seed and cell, so that it can be had again.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod canaries;
mod cells;
#[allow(dead_code, reason = "written for the tests of one backend")]
#[path = "../docker/support.rs"]
mod docker;
#[allow(dead_code, reason = "written for the tests of one backend")]
#[path = "../process/support.rs"]
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use codeinterp::agent::execution::Execution;
use codeinterp::agent::ports::{ExecuteOptions, Sandbox, SandboxError};
use codeinterp::sandbox::docker::DockerBackend;
use codeinterp::sandbox::{Backend, StartRequest};
use tokio_util::sync::CancellationToken;

use crate::canaries::Canaries;
use crate::cells::{Cell, Dice, KINDS};

/// A cell that does not end by itself is stopped after so long.
const CELL: Duration = Duration::from_secs(4);
/// What an execution may end with besides Python's own exceptions.
const ENDS: [&str; 4] = ["Timeout", "OutOfMemory", "Interrupted", "KernelDied"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_hostile_cells_harm_nothing_outside_of_the_process_sandbox() {
    Trial::new(&process::backend(), process::request()).run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_hostile_cells_harm_nothing_outside_of_the_container() {
    Trial::new(&DockerBackend::new(), docker::request("hostile")).run().await;
    let engine = docker::engine().await;
    assert!(docker::wait_gone(&engine, "hostile").await, "a container is left");
}

struct Trial<'a> {
    backend: &'a dyn Backend,
    request: StartRequest,
    canaries: Canaries,
    sandbox: Option<Arc<dyn Sandbox>>,
    /// What cells ended with, and how often.
    ends: BTreeMap<String, u32>,
}

impl<'a> Trial<'a> {
    fn new(backend: &'a dyn Backend, mut request: StartRequest) -> Self {
        request.settings.memory = codeinterp::config::ByteSize(512 << 20);
        request.settings.pids = 64;
        Self { backend, request, canaries: Canaries::set(), sandbox: None, ends: BTreeMap::new() }
    }

    async fn run(mut self) {
        let seed = number("CODEINTERP_HOSTILE_SEED", 1);
        let count = usize::try_from(number("CODEINTERP_HOSTILE_CELLS", KINDS.len() as u64)).unwrap();
        for index in 0..count {
            let mut dice = Dice::new(seed, index as u64);
            let cell = Cell::generate(index, &mut dice, &self.canaries);
            let place = format!("{}, seed {seed}, cell {index} ({})", self.backend.name(), cell.kind);
            self.attack(&cell, &place).await;
            self.canaries.check(&place);
        }
        if let Some(sandbox) = self.sandbox.take() {
            sandbox.stop().await;
        }
        self.canaries.check("at the end");
        println!("{}: {count} cells, seed {seed}: {:?}", self.backend.name(), self.ends);
    }

    async fn sandbox(&mut self) -> Arc<dyn Sandbox> {
        if let Some(sandbox) = &self.sandbox {
            return Arc::clone(sandbox);
        }
        let started = self.backend.start(&self.request, &|_| (), &CancellationToken::new()).await;
        let sandbox = started.unwrap_or_else(|error| panic!("the sandbox does not start: {error:?}"));
        self.sandbox = Some(Arc::clone(&sandbox));
        sandbox
    }

    async fn attack(&mut self, cell: &Cell, place: &str) {
        match self.execute(&cell.code).await {
            Ok(execution) => {
                self.check(&execution, cell, place);
                let end = execution.error.map_or_else(|| "ok".to_owned(), |error| error.ename);
                *self.ends.entry(end).or_default() += 1;
            }
            Err(error) => self.gone(&error, place),
        }
        // Whatever the cell left running works on while this is executed.
        match self.execute("print(6 * 7)").await {
            Ok(execution) => {
                if execution.stdout.contains("42") {
                    return;
                }
                // What code does to its own interpreter is its own affair, as long as a new kernel mends it.
                let own = cell.kind == "broken interpreter";
                assert!(execution.exit_code != 0 || own, "{place}: {execution:?}\n{}", cell.code);
            }
            Err(error) => self.gone(&error, place),
        }
        // A kernel may be broken from inside, or be killed by what is left of the cell: a new one, or a new sandbox, is not.
        if let Some(sandbox) = &self.sandbox
            && let Err(error) = sandbox.restart_kernel().await
        {
            self.gone(&error, place);
        }
        let execution = self.execute("print(6 * 7)").await;
        let works = execution.as_ref().is_ok_and(|execution| execution.stdout == "42\n");
        assert!(works, "{place}: nothing can be executed afterwards: {execution:?}\n{}", cell.code);
    }

    async fn execute(&mut self, code: &str) -> Result<Execution, SandboxError> {
        let sandbox = self.sandbox().await;
        let options = ExecuteOptions { timeout: CELL, stdout_bytes: 64 << 10, stderr_bytes: 64 << 10 };
        let never = CancellationToken::new();
        let execution = sandbox.execute(code, &options, &|_| (), &never);
        // Interrupt, kill of the kernel and kill of the sandbox have their bounds; this is far beyond all of them.
        let execution = tokio::time::timeout(Duration::from_secs(120), execution).await;
        execution.unwrap_or_else(|_| panic!("an execution does not end:\n{code}"))
    }

    /// The sandbox ended: that must be said with a cause.
    fn gone(&mut self, error: &SandboxError, place: &str) {
        let told = matches!(error, SandboxError::Gone(reason) if !reason.trim().is_empty());
        assert!(told, "{place}: {error:?}");
        self.sandbox = None;
        *self.ends.entry("sandbox ended".to_owned()).or_default() += 1;
    }

    fn check(&self, execution: &Execution, cell: &Cell, place: &str) {
        let said = format!("{place}: {execution:?}\n{}", cell.code);
        for text in [&execution.stdout, &execution.stderr] {
            assert!(!text.contains("BREACH"), "{said}");
        }
        assert!(!format!("{execution:?}").contains(&self.canaries.secret), "{said}");
        match &execution.error {
            None => assert_eq!(execution.exit_code, 0, "{said}"),
            Some(error) => {
                assert_ne!(execution.exit_code, 0, "{said}");
                assert!(!matches!(error.ename.as_str(), "SyntaxError" | "IndentationError"), "the generator is wrong: {said}");
                assert!(!error.ename.is_empty() && (!ENDS.contains(&error.ename.as_str()) || !error.evalue.is_empty()), "{said}");
            }
        }
        for file in &execution.files {
            let plain = !file.path.starts_with('/') && file.path.split('/').all(|part| !matches!(part, "" | "." | ".."));
            assert!(plain && !file.path.contains(char::is_control), "{said}");
        }
        assert!(execution.stdout.len() <= 128 << 10 && execution.stderr.len() <= 128 << 10, "{place}: too much was kept");
    }
}
