//! A sandbox that comes back: when the one below ends (container removed, engine restarted, supervisor killed),
//! another is started, the files are put in again, and the execution that was under way is told as lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::lock;
use crate::agent::execution::{Execution, ExecutionError, ExecutionEvent, Variable};
use crate::agent::ports::{
    ExecuteOptions, FileSource, KernelState, ProfileOptions, Progress, PutFile, ResourceUsage, Sandbox, SandboxError, Sink,
};
use crate::agent::run::SandboxInfo;
use crate::profile::ProfileOutcome;
use crate::sandbox::{Backend, StartRequest};

/// How long a successor waits for an engine that went away under the sandbox: restarting one takes seconds.
const ENGINE_RETURNS: Duration = Duration::from_secs(20);
/// Between two looks whether it is back.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The sandbox of a workspace folder over the time in which it is used.
pub(crate) struct WorkspaceSandbox {
    backend: Arc<dyn Backend>,
    request: StartRequest,
    current: Mutex<Arc<dyn Sandbox>>,
    /// Files that were put in, by name, in order: put again into a successor.
    files: Mutex<Vec<(String, FileSource)>>,
    /// Makes one caller at a time start a successor.
    reviving: tokio::sync::Mutex<()>,
    /// Counts kernels: a number that changed means that variables are gone.
    kernel_number: AtomicU64,
    used: AtomicBool,
}

impl WorkspaceSandbox {
    /// Starts the first sandbox.
    pub async fn start(
        backend: Arc<dyn Backend>,
        request: StartRequest,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Self, SandboxError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let sandbox = backend.start(&request, progress, cancel).await?;
        Ok(Self {
            backend,
            request,
            current: Mutex::new(sandbox),
            files: Mutex::default(),
            reviving: tokio::sync::Mutex::default(),
            // Room for the successors of each, so that numbers of two sandboxes never meet.
            kernel_number: AtomicU64::new(NEXT.fetch_add(1 << 20, Ordering::Relaxed)),
            used: AtomicBool::new(false),
        })
    }

    /// What started it.
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    /// Number of the kernel that runs now.
    pub fn kernel_number(&self) -> u64 {
        self.kernel_number.load(Ordering::Relaxed)
    }

    /// Whether code was executed in it.
    pub fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    fn current(&self) -> Arc<dyn Sandbox> {
        Arc::clone(&lock(&self.current))
    }

    /// A live sandbox: the current one, or a successor with the same files.
    async fn alive(&self, cancel: &CancellationToken) -> Result<Arc<dyn Sandbox>, SandboxError> {
        if self.current().kernel_state() != KernelState::Dead {
            return Ok(self.current());
        }
        let _one = self.reviving.lock().await;
        let old = self.current();
        if old.kernel_state() != KernelState::Dead {
            return Ok(old);
        }
        old.stop().await;
        let successor = self.successor(cancel).await?;
        let files = lock(&self.files).clone();
        for (name, source) in &files {
            successor.put_file(name, source, &|_| {}, cancel).await?;
        }
        self.kernel_number.fetch_add(1, Ordering::Relaxed);
        *lock(&self.current) = Arc::clone(&successor);
        Ok(successor)
    }

    /// Starts another sandbox, waiting a while where what it would run in is away.
    async fn successor(&self, cancel: &CancellationToken) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let until = Instant::now() + ENGINE_RETURNS;
        let mut refusals = 0;
        loop {
            let error = match self.backend.start(&self.request, &|_| {}, cancel).await {
                Ok(successor) => return Ok(successor),
                Err(error) => error,
            };
            // It may have gone, or come back, in the middle of the attempt: a fault of the sandbox's own comes twice.
            refusals += u32::from(self.backend.check(&self.request.settings).await.is_ok());
            if refusals > 1 || Instant::now() > until {
                return Err(error);
            }
            tokio::select! {
                () = cancel.cancelled() => return Err(SandboxError::Cancelled),
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}

#[async_trait]
impl Sandbox for WorkspaceSandbox {
    fn info(&self) -> SandboxInfo {
        self.current().info()
    }

    fn kernel_state(&self) -> KernelState {
        self.current().kernel_state()
    }

    async fn put_file(
        &self,
        name: &str,
        source: &FileSource,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<PutFile, SandboxError> {
        let put = self.alive(cancel).await?.put_file(name, source, progress, cancel).await?;
        let mut files = lock(&self.files);
        files.retain(|(old, _)| old != name);
        files.push((name.to_owned(), source.clone()));
        Ok(put)
    }

    async fn profile(
        &self,
        names: &[String],
        options: &ProfileOptions,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Vec<ProfileOutcome>, SandboxError> {
        self.alive(cancel).await?.profile(names, options, progress, cancel).await
    }

    async fn execute(
        &self,
        code: &str,
        options: &ExecuteOptions,
        events: Sink<'_, ExecutionEvent>,
        cancel: &CancellationToken,
    ) -> Result<Execution, SandboxError> {
        self.used.store(true, Ordering::Relaxed);
        let started = Instant::now();
        let sandbox = self.alive(cancel).await?;
        match sandbox.execute(code, options, events, cancel).await {
            Err(SandboxError::Gone(reason)) if !cancel.is_cancelled() => {
                self.alive(cancel).await?;
                Ok(lost(&reason, started.elapsed()))
            }
            Ok(execution) => {
                if execution.variables_lost {
                    self.kernel_number.fetch_add(1, Ordering::Relaxed);
                }
                Ok(execution)
            }
            Err(error) => Err(error),
        }
    }

    async fn list_files(&self) -> Result<Vec<(String, u64)>, SandboxError> {
        self.current().list_files().await
    }

    async fn get_file(&self, name: &str, limit: u64) -> Result<Vec<u8>, SandboxError> {
        self.current().get_file(name, limit).await
    }

    async fn variables(&self, name: Option<&str>) -> Result<Vec<Variable>, SandboxError> {
        self.current().variables(name).await
    }

    async fn interrupt(&self) -> Result<(), SandboxError> {
        self.current().interrupt().await
    }

    async fn restart_kernel(&self) -> Result<(), SandboxError> {
        self.kernel_number.fetch_add(1, Ordering::Relaxed);
        self.current().restart_kernel().await
    }

    async fn usage(&self) -> ResourceUsage {
        self.current().usage().await
    }

    async fn stop(&self) {
        self.current().stop().await;
    }
}

/// The outcome of an execution whose sandbox ended under it.
fn lost(reason: &str, duration: Duration) -> Execution {
    let evalue = format!("the sandbox ended ({reason}); a new one was started with the same files, all variables are lost");
    Execution {
        exit_code: 137,
        error: Some(ExecutionError { ename: "KernelDied".to_owned(), evalue: evalue.clone(), traceback: evalue }),
        outputs: Vec::new(),
        stdout: String::new(),
        stderr: String::new(),
        result: None,
        duration,
        truncated: None,
        files: Vec::new(),
        skipped_files: Vec::new(),
        variables: Vec::new(),
        figures: Vec::new(),
        variables_lost: true,
    }
}
