//! The server's handle on a running process sandbox.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::process::Child;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{cgroup, watcher};
use crate::agent::ports::ResourceUsage;
use crate::sandbox::Enclosure;

/// Time that a monitor may take from the order to stop until it has cleaned up.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that [`Enclosure::end_reason`] waits for the monitor's word.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);

/// A running monitor. Dropping it ends the sandbox.
pub struct ProcessEnclosure {
    pid: u32,
    cgroups: Vec<(String, PathBuf)>,
    stop: CancellationToken,
    ended: watch::Receiver<Option<String>>,
    /// Counted by the monitor: kills of the watcher, and at the end those of the cgroup.
    oom_kills: std::sync::Arc<AtomicU64>,
    last_cpu: Mutex<Option<(Instant, Duration)>>,
    /// Keeps the Python environment from being pruned.
    _environment: Option<std::fs::File>,
}

/// What the reader of the monitor's reports writes and the enclosure reads.
pub(super) struct Reports {
    /// Set once, at the end.
    pub ended: watch::Sender<Option<String>>,
    /// Processes killed for memory.
    pub oom_kills: std::sync::Arc<AtomicU64>,
}

impl ProcessEnclosure {
    /// Takes over a started monitor. `reports` is given to the task that reads its standard error.
    pub(super) fn new(
        monitor: Child,
        pid: u32,
        cgroups: Vec<(String, PathBuf)>,
        ended: watch::Receiver<Option<String>>,
        oom_kills: std::sync::Arc<AtomicU64>,
        environment: Option<std::fs::File>,
    ) -> Self {
        let stop = CancellationToken::new();
        tokio::spawn(keep(monitor, stop.clone()));
        Self { pid, cgroups, stop, ended, oom_kills, last_cpu: Mutex::new(None), _environment: environment }
    }

    fn folder(&self, controllers: &[&str]) -> Option<&PathBuf> {
        self.cgroups.iter().find(|(name, _)| controllers.contains(&name.as_str())).map(|(_, folder)| folder)
    }

    fn cpu_percent(&self) -> Option<f64> {
        let used = cgroup::cpu_time(self.folder(&["cpuacct", "cpu"])?)?;
        let now = Instant::now();
        let mut last = self.last_cpu.lock().ok()?;
        let before = last.replace((now, used));
        let (then, used_then) = before?;
        let passed = now.duration_since(then).as_secs_f64();
        (passed > 0.0).then(|| used.saturating_sub(used_then).as_secs_f64() / passed * 100.0)
    }
}

impl Drop for ProcessEnclosure {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Owns the monitor: as long as it is not reaped its process id can't mean another process.
async fn keep(mut monitor: Child, stop: CancellationToken) {
    let finished = tokio::select! {
        _ = monitor.wait() => true,
        () = stop.cancelled() => false,
    };
    if finished {
        return;
    }
    if let Some(pid) = monitor.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
    }
    if tokio::time::timeout(STOP_TIMEOUT, monitor.wait()).await.is_err() {
        // The supervisor dies with its monitor.
        let _ = monitor.kill().await;
    }
}

#[async_trait]
impl Enclosure for ProcessEnclosure {
    async fn kill(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        // Either the monitor has reported its end, or its reports have closed, which only happens at its end.
        let _ = tokio::time::timeout(STOP_TIMEOUT * 2, ended.wait_for(Option::is_some)).await;
    }

    async fn end_reason(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        let reason = tokio::time::timeout(REASON_TIMEOUT, ended.wait_for(Option::is_some)).await;
        reason.ok()?.ok()?.clone()
    }

    async fn usage(&self) -> ResourceUsage {
        if self.ended.borrow().is_some() {
            return ResourceUsage::default();
        }
        let memory_bytes = match self.folder(&["memory"]) {
            Some(folder) => cgroup::memory(folder),
            None => i32::try_from(self.pid).ok().map(watcher::memory),
        };
        ResourceUsage { memory_bytes, cpu_percent: self.cpu_percent() }
    }

    async fn oom_kills(&self) -> Option<u64> {
        let now = self.folder(&["memory"]).and_then(|folder| cgroup::oom_kills(folder));
        // After the end the group is gone, and the monitor's last count stands.
        Some(now.unwrap_or(0).max(self.oom_kills.load(Ordering::Acquire)))
    }
}
