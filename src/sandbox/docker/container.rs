//! A running container as an enclosure.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, EventsOptionsBuilder, RemoveContainerOptionsBuilder, StatsOptionsBuilder,
};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::io::StreamReader;

use super::engine::{Engine, refused};
use super::owned;
use crate::agent::ports::{ResourceUsage, SandboxError};
use crate::sandbox::Enclosure;

/// Time for the engine to say why a container ended, after its output closed.
const WORD: Duration = Duration::from_secs(2);

/// A started container with its supervisor's pipe.
pub(super) struct Started {
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    pub enclosure: Arc<dyn Enclosure>,
}

/// Creates, attaches and starts a container. Whatever fails, nothing is left behind.
pub(super) async fn start(engine: &Arc<Engine>, workspace: &str, body: ContainerCreateBody) -> Result<Started, SandboxError> {
    let name = owned::container_name(workspace);
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    let created =
        engine.api.create_container(Some(options), body).await.map_err(|error| refused("create the sandbox's container", &error))?;
    let container = Arc::new(Container::new(Arc::clone(engine), created.id));

    // Attached before the start: not a byte of the supervisor is missed.
    let options = AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true).build();
    let attached =
        engine.api.attach_container(&container.id, Some(options)).await.map_err(|error| refused("attach to the sandbox", &error))?;
    engine.api.start_container(&container.id, None).await.map_err(|error| refused("start the sandbox's container", &error))?;
    Ok(Started { output: Box::new(StreamReader::new(supervisor_output(attached.output))), input: attached.input, enclosure: container })
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

/// A container of ours. Dropping it removes the container.
struct Container {
    engine: Arc<Engine>,
    id: String,
    /// Out-of-memory kills that the engine has told of.
    oom_kills: Arc<AtomicU64>,
    /// Why it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    /// Reads the engine's events of this container; ends with it.
    events: tokio::task::JoinHandle<()>,
    /// The last reading of the CPU counters: nanoseconds of the container, and of the whole machine.
    cpu: std::sync::Mutex<Option<(u64, u64)>>,
    /// It was removed already; dropping it has nothing left to do.
    removed: AtomicBool,
}

impl Container {
    fn new(engine: Arc<Engine>, id: String) -> Self {
        let oom_kills = Arc::new(AtomicU64::new(0));
        let (said, ended) = watch::channel(None);
        let events = tokio::spawn(follow(Arc::clone(&engine), id.clone(), Arc::clone(&oom_kills), said));
        Self { engine, id, oom_kills, ended, events, cpu: std::sync::Mutex::new(None), removed: AtomicBool::new(false) }
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

/// Follows the engine's events of one container until it is gone.
async fn follow(engine: Arc<Engine>, id: String, oom_kills: Arc<AtomicU64>, ended: watch::Sender<Option<String>>) {
    let filters = std::collections::HashMap::from([("container".to_owned(), vec![id])]);
    let mut events = engine.api.events(Some(EventsOptionsBuilder::default().filters(&filters).build()));
    let mut killed = false;
    while let Some(event) = events.next().await {
        let Ok(event) = event else { break };
        let attribute = |name: &str| event.actor.as_ref().and_then(|actor| actor.attributes.as_ref()?.get(name).cloned());
        match event.action.as_deref() {
            Some("oom") => {
                oom_kills.fetch_add(1, Ordering::Relaxed);
            }
            Some("kill") => killed = true,
            Some("die") => {
                let code = attribute("exitCode").unwrap_or_default();
                let why = match (killed, code.as_str()) {
                    (true, _) => "its container was killed or removed".to_owned(),
                    (false, "137") => "its container was killed (exit code 137)".to_owned(),
                    (false, code) => format!("its supervisor ended (exit code {code})"),
                };
                ended.send_replace(Some(why));
            }
            Some("destroy") => {
                if ended.borrow().is_none() {
                    ended.send_replace(Some("its container was removed".to_owned()));
                }
                return;
            }
            _ => {}
        }
    }
    if ended.borrow().is_none() {
        ended.send_replace(Some("the Docker engine went away".to_owned()));
    }
}

#[async_trait]
impl Enclosure for Container {
    async fn kill(&self) {
        remove(&self.engine, &self.id).await;
        self.removed.store(true, Ordering::Relaxed);
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
        let Some(Ok(stats)) = self.engine.api.stats(&self.id, Some(options)).next().await else { return ResourceUsage::default() };
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
        self.events.abort();
        if self.removed.load(Ordering::Relaxed) {
            return;
        }
        let (engine, id) = (Arc::clone(&self.engine), std::mem::take(&mut self.id));
        // Without a runtime the end of its input ends the container.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { remove(&engine, &id).await });
        }
    }
}

async fn remove(engine: &Engine, id: &str) {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    if let Err(error) = engine.api.remove_container(id, Some(options)).await {
        // 404: gone already; 409: being removed.
        if !matches!(error, bollard::errors::Error::DockerResponseServerError { status_code: 404 | 409, .. }) {
            tracing::warn!(%error, id, "a container can't be removed");
        }
    }
}
