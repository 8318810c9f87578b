//! A sandbox in memory for tests of the loop, which must know exactly what an execution does. It runs no Python:
//! a few words of code stand for what happens. Real sandboxes are tested on their own.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use codeinterp::agent::execution::{Execution, ExecutionError, ExecutionEvent, FileChange, Output, StreamName, Variable};
use codeinterp::agent::ports::{
    ExecuteOptions, FileSource, KernelState, ProfileOptions, Progress, PutFile, ResourceUsage, Sandbox, SandboxError, Sink,
};
use codeinterp::agent::run::SandboxInfo;
use codeinterp::profile::ProfileOutcome;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// A picture of one pixel.
pub const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The sandbox: every executed code is kept.
#[derive(Default)]
pub struct FakeSandbox {
    pub executed: Mutex<Vec<String>>,
}

impl FakeSandbox {
    pub fn codes(&self) -> Vec<String> {
        self.executed.lock().unwrap().clone()
    }
}

fn blank() -> Execution {
    Execution {
        exit_code: 0,
        error: None,
        outputs: Vec::new(),
        stdout: String::new(),
        stderr: String::new(),
        result: None,
        duration: Duration::from_millis(3),
        truncated: None,
        files: Vec::new(),
        skipped_files: Vec::new(),
        variables: Vec::new(),
        figures: Vec::new(),
        variables_lost: false,
    }
}

fn failure(exit_code: i32, ename: &str, evalue: &str) -> Execution {
    let error = ExecutionError { ename: ename.to_owned(), evalue: evalue.to_owned(), traceback: format!("Traceback\n{ename}: {evalue}") };
    Execution { exit_code, error: Some(error), ..blank() }
}

/// What the code does: lines of `print X`, `raise Name: words`, `figure`, `write PATH`, `die`, `gone`, `wait`.
fn interpret(code: &str) -> Execution {
    let mut execution = blank();
    for line in code.lines().map(str::trim) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "print" => execution.stdout += &[rest, "\n"].concat(),
            "raise" => {
                let (name, words) = rest.split_once(": ").unwrap_or((rest, ""));
                let failed = failure(1, name, words);
                return Execution { stdout: execution.stdout, ..failed };
            }
            "figure" => execution.outputs.push(Output::DisplayData {
                data: json!({"image/png": PIXEL, "text/plain": "<Figure size 1x1>"}).as_object().unwrap().clone(),
                display_id: None,
            }),
            "write" => execution.files.push(FileChange { path: rest.to_owned(), bytes: 4, sha256: None, created: true }),
            "let" => execution.variables.push(Variable {
                name: rest.to_owned(),
                type_name: "DataFrame".to_owned(),
                shape: Some(vec![3, 2]),
                bytes: None,
                repr: String::new(),
            }),
            "die" => return Execution { variables_lost: true, ..failure(139, "KernelDied", "segmentation fault") },
            _ => {}
        }
    }
    execution
}

#[async_trait]
impl Sandbox for FakeSandbox {
    fn info(&self) -> SandboxInfo {
        SandboxInfo { backend: "fake".to_owned(), image: "fake".to_owned(), workdir: "/workspace".to_owned(), memory_bytes: 1 << 30 }
    }

    fn kernel_state(&self) -> KernelState {
        KernelState::Idle
    }

    async fn put_file(&self, name: &str, _: &FileSource, _: Sink<'_, Progress>, _: &CancellationToken) -> Result<PutFile, SandboxError> {
        Ok(PutFile { name: name.to_owned(), bytes: 1, sha256: String::new(), mounted: false })
    }

    async fn profile(
        &self,
        _: &[String],
        _: &ProfileOptions,
        _: Sink<'_, Progress>,
        _: &CancellationToken,
    ) -> Result<Vec<ProfileOutcome>, SandboxError> {
        Ok(Vec::new())
    }

    async fn execute(
        &self,
        code: &str,
        _: &ExecuteOptions,
        events: Sink<'_, ExecutionEvent>,
        cancel: &CancellationToken,
    ) -> Result<Execution, SandboxError> {
        self.executed.lock().unwrap().push(code.to_owned());
        if code.contains("gone") {
            return Err(SandboxError::Gone("the container was removed".to_owned()));
        }
        if code.contains("wait") {
            cancel.cancelled().await;
            return Ok(failure(130, "Interrupted", "cancelled"));
        }
        let execution = interpret(code);
        events(ExecutionEvent::Stream(StreamName::Stdout, execution.stdout.clone()));
        Ok(execution)
    }

    async fn list_files(&self) -> Result<Vec<(String, u64)>, SandboxError> {
        Ok(Vec::new())
    }

    async fn get_file(&self, name: &str, _: u64) -> Result<Vec<u8>, SandboxError> {
        Ok(format!("{name}\n").into_bytes())
    }

    async fn variables(&self, _: Option<&str>) -> Result<Vec<Variable>, SandboxError> {
        Ok(Vec::new())
    }

    async fn interrupt(&self) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn restart_kernel(&self) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn usage(&self) -> ResourceUsage {
        ResourceUsage::default()
    }

    async fn stop(&self) {}
}
