//! A running container as an enclosure.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, StatsOptionsBuilder};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::io::StreamReader;

use super::engine::{Engine, refused};
use super::{events, owned};
use crate::agent::ports::{ResourceUsage, SandboxError};
use crate::sandbox::Enclosure;

/// Time for the engine to say why a container ended, after its output closed.
const WORD: Duration = Duration::from_secs(2);

/// Between two attempts at removing a container that may not be there yet, doubled each time up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(16);

/// A started container with its supervisor's pipe.
pub(super) struct Started {
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    pub enclosure: Arc<dyn Enclosure>,
}

/// Creates, attaches and starts a container. Whatever fails, nothing is left behind.
pub(super) async fn start(engine: &Arc<Engine>, workspace: &str, body: ContainerCreateBody) -> Result<Started, SandboxError> {
    let name = owned::container_name(workspace);
    let mut container = Container::new(Arc::clone(engine), name.clone());
    let api = &engine.api;
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    let created = engine.in_time(api.create_container(Some(options), body)).await;
    created.map_err(|error| refused("create the sandbox's container", &error))?;
    container.follow();

    // Attached before the start: not a byte of the supervisor is missed.
    let options = AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true).build();
    let attached = engine.in_time(api.attach_container(&name, Some(options))).await;
    let attached = attached.map_err(|error| refused("attach to the sandbox", &error))?;
    let started = engine.in_time(api.start_container(&name, None)).await;
    started.map_err(|error| refused("start the sandbox's container", &error))?;
    let output = Box::new(StreamReader::new(supervisor_output(attached.output)));
    Ok(Started { output, input: attached.input, enclosure: Arc::new(container) })
}

/// The supervisor's standard output; its standard error goes to the log.
fn supervisor_output(
    output: impl Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send + 'static,
) -> Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>> {
    Box::pin(output.filter_map(|item| {
        std::future::ready(match item {
            Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
            Ok(LogOutput::StdErr { message }) => {
                tracing::debug!(text = %String::from_utf8_lossy(&message), "the supervisor's standard error");
                None
            }
            Ok(LogOutput::StdIn { .. }) => None,
            Err(error) => Some(Err(std::io::Error::other(error))),
        })
    }))
}

/// A container of ours, from before it is made. Dropping it removes the container.
struct Container {
    engine: Arc<Engine>,
    /// Ours to choose, and so known also where the engine's answer with its id is lost.
    name: String,
    /// The engine said that it exists.
    exists: bool,
    /// Out-of-memory kills that the engine has told of.
    oom_kills: Arc<AtomicU64>,
    /// Why it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    /// Follows the engine's events of this container.
    events: Option<tokio::task::JoinHandle<()>>,
    /// The last reading of the CPU counters: nanoseconds of the container, and of the whole machine.
    cpu: std::sync::Mutex<Option<(u64, u64)>>,
    /// It was removed already; dropping it has nothing left to do.
    removed: AtomicBool,
}

impl Container {
    fn new(engine: Arc<Engine>, name: String) -> Self {
        Self {
            engine,
            name,
            exists: false,
            oom_kills: Arc::default(),
            ended: watch::channel(None).1,
            events: None,
            cpu: std::sync::Mutex::default(),
            removed: AtomicBool::new(false),
        }
    }

    /// The container exists from now on: its events are read.
    fn follow(&mut self) {
        self.exists = true;
        let (said, ended) = watch::channel(None);
        self.ended = ended;
        let following = events::follow(Arc::clone(&self.engine), self.name.clone(), Arc::clone(&self.oom_kills), said);
        self.events = Some(tokio::spawn(following));
    }

    /// Percent of one CPU since the last reading.
    fn cpu_percent(&self, used: u64, system: u64, cpus: u64) -> Option<f64> {
        let last = self.cpu.lock().unwrap_or_else(std::sync::PoisonError::into_inner).replace((used, system))?;
        let (used, system) = (used.checked_sub(last.0)?, system.checked_sub(last.1)?);
        #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
        let percent = (system > 0).then(|| used as f64 / system as f64 * cpus as f64 * 100.0);
        percent
    }
}

#[async_trait]
impl Enclosure for Container {
    async fn kill(&self) {
        if remove(&self.engine, &self.name).await {
            self.removed.store(true, Ordering::Relaxed);
        }
    }

    async fn end_reason(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        let waited = tokio::time::timeout(WORD, ended.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(reason)) => reason.clone(),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    async fn usage(&self) -> ResourceUsage {
        let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
        let mut answers = self.engine.api.stats(&self.name, Some(options));
        let Ok(Some(Ok(stats))) = tokio::time::timeout(self.engine.deadline, answers.next()).await else { return ResourceUsage::default() };
        let memory_bytes = stats.memory_stats.as_ref().and_then(|memory| {
            // Page cache that can be dropped is not in use; its name differs between the versions of cgroups.
            let cache =
                memory.stats.as_ref().and_then(|stats| stats.get("total_inactive_file").or_else(|| stats.get("inactive_file"))).copied();
            Some(memory.usage?.saturating_sub(cache.unwrap_or(0)))
        });
        let cpu_percent = stats.cpu_stats.as_ref().and_then(|cpu| {
            let used = cpu.cpu_usage.as_ref()?.total_usage?;
            self.cpu_percent(used, cpu.system_cpu_usage?, u64::from(cpu.online_cpus.unwrap_or(1)))
        });
        ResourceUsage { memory_bytes, cpu_percent }
    }

    async fn oom_kills(&self) -> Option<u64> {
        // An engine tells of a kill by an event that may come after the death: the supervisor's own count, read from
        // the same cgroup, is there at once. The event counts where it has come.
        match self.oom_kills.load(Ordering::Relaxed) {
            0 => None,
            kills => Some(kills),
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Some(events) = &self.events {
            events.abort();
        }
        if self.removed.load(Ordering::Relaxed) {
            return;
        }
        let (engine, name, exists) = (Arc::clone(&self.engine), std::mem::take(&mut self.name), self.exists);
        // Without a runtime the end of its input ends the container.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A request that was given up may still be carried out: the engine is asked until it has had time for it.
                let mut pause = FIRST_PAUSE;
                while !remove(&engine, &name).await || !exists {
                    if pause > LAST_PAUSE {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            });
        }
    }
}

/// Removes a container; whether the engine has it no more, or is at it.
async fn remove(engine: &Engine, name: &str) -> bool {
    let removed = owned::remove_container(engine, name).await;
    if let Err(error) = &removed {
        tracing::warn!(%error, name, "a container can't be removed");
    }
    removed.is_ok()
}
