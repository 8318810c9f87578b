//! One workspace folder: its sandbox, its queue of runs and its history.
//!
//! - [`registry`]: the sessions of a process, one a folder.
//! - [`request`]: what is asked of a session.
//! - [`live`]: the record of a run while it grows.
//! - [`worker`]: the one task that owns a session's sandbox and works through its queue.
//! - [`run`]: a run from its inputs to its conclusion.
//! - [`rerun`]: what a rerun executes.
//! - [`prepare`]: sandbox, files and profiles, before the first turn.
//! - [`export`]: a run as something to hand over; [`replay`]: its code, checked in a fresh sandbox before.
//! - [`inputs`]: which files are put into the sandbox, and under which names.
//!
//! Imports the agent and its ports, the report and the store; it is given its edges by `app` through [`Services`].

pub mod export;
pub mod inputs;
pub(crate) mod live;
mod prepare;
pub mod registry;
mod replay;
pub mod request;
mod rerun;
mod run;
mod worker;
mod workspace_sandbox;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dashmap::DashMap;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::agent::execution::Variable;
use crate::agent::ports::{KernelState, Model, ModelError, ResourceUsage, Sandbox, SandboxError};
use crate::agent::run::{ErrorKind, Run, RunError};
use crate::config::Settings;
use crate::profile::ProfileOutcome;
use crate::sandbox::Backend;
use crate::sandbox::consent::Consent;
use crate::store::{RunStore, RunSummary};

pub use registry::Sessions;
pub use request::{EventHandler, RunFile, RunHandle, RunKind, RunRequest};

use live::LiveRun;

/// What a session needs of the outside; implemented by `app`.
#[async_trait]
pub trait Services: Send + Sync {
    /// The backend that the settings ask for, and one sentence saying which it is and why.
    async fn backend(&self, settings: &Settings) -> Result<(Arc<dyn Backend>, String), SandboxError>;

    /// The model that the settings name.
    fn model(&self, settings: &Settings) -> Result<Arc<dyn Model>, ModelError>;

    /// The folder for runs of all workspaces.
    fn state_dir(&self) -> PathBuf;

    /// From now on, asks there before packages of a person's own choice are downloaded.
    fn ask(&self, consent: Arc<dyn Consent>);
}

/// One workspace folder. Cheap to share; ends its sandbox when the last owner drops it or [`Session::close`] is called.
pub struct Session {
    folder: PathBuf,
    store: RunStore,
    services: Arc<dyn Services>,
    settings: Mutex<Settings>,
    /// Runs of this process by id: queued, running and finished ones.
    runs: DashMap<String, Arc<LiveRun>>,
    queue: mpsc::UnboundedSender<worker::Job>,
    /// Ends the worker and everything that it owns.
    closed: CancellationToken,
    shared: Arc<Shared>,
}

/// What the worker lets others see.
#[derive(Default)]
pub(crate) struct Shared {
    sandbox: Mutex<Option<Arc<dyn Sandbox>>>,
    backend: Mutex<Option<String>>,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionStatus {
    /// The folder.
    pub folder: PathBuf,
    /// `docker`, `process`, or nothing where no sandbox was started yet.
    pub backend: Option<String>,
    /// `stopped`, `starting`, `ready`.
    pub state: &'static str,
    /// State of the kernel.
    pub kernel: Option<KernelState>,
    /// Resources of the sandbox.
    #[serde(flatten)]
    pub usage: ResourceUsage,
    /// Queued and running runs.
    pub runs: usize,
}

/// A lock whose holder panicked still holds usable data here: every write is a single assignment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Opens the session of `folder`. Starts its worker on the current tokio runtime; starts no sandbox yet.
    pub fn open(folder: &Path, services: Arc<dyn Services>, settings: Settings) -> Arc<Self> {
        let (queue, jobs) = mpsc::unbounded_channel();
        let store = RunStore::of_folder(&services.state_dir(), folder);
        let closed = CancellationToken::new();
        let shared = Arc::new(Shared::default());
        let worker = worker::Worker::new(folder.to_owned(), store.clone(), Arc::clone(&services), Arc::clone(&shared), closed.clone());
        tokio::spawn(worker.work(jobs));
        Arc::new(Self {
            folder: folder.to_owned(),
            store,
            services,
            settings: Mutex::new(settings),
            runs: DashMap::new(),
            queue,
            closed,
            shared,
        })
    }

    /// The workspace folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where its runs are kept.
    pub fn store(&self) -> &RunStore {
        &self.store
    }

    /// Settings for runs that are submitted from now on.
    pub fn set_settings(&self, settings: Settings) {
        *lock(&self.settings) = settings;
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// Queues a run and returns at once. `events` sees everything that happens; the last event is
    /// [`RunEvent::Concluded`](crate::agent::events::RunEvent::Concluded), after the record and the report are on disk.
    pub fn submit(&self, request: RunRequest, events: EventHandler) -> RunHandle {
        let id = crate::store::runs::new_run_id();
        let live = Arc::new(LiveRun::new(&id, &request));
        let handle = RunHandle { id: id.clone(), cancel: live.cancel.clone() };
        self.runs.insert(id, Arc::clone(&live));
        let job = worker::Job::Run(Box::new(worker::RunJob {
            live: Arc::clone(&live),
            request,
            settings: self.settings(),
            events: Arc::clone(&events),
        }));
        if self.queue.send(job).is_err() {
            let event = run::failed(ErrorKind::Run, "the session is closed", "Open the folder again.");
            live.apply(&event);
            events(&event);
        }
        handle
    }

    /// Profiles files without a run. `events` sees progress and notices.
    pub async fn profile(
        &self,
        files: Vec<RunFile>,
        events: EventHandler,
        cancel: CancellationToken,
    ) -> Result<Vec<ProfileOutcome>, RunError> {
        let (reply, outcome) = oneshot::channel();
        let job = worker::ProfileJob { files, settings: self.settings(), events, cancel, reply };
        self.queued(worker::Job::Profile(Box::new(job)), outcome).await
    }

    /// The exact bytes of the first request to the model that this question would send; nothing is sent.
    /// `None` where the model is one that nothing is ever sent to.
    pub async fn preview(
        &self,
        question: &str,
        files: Vec<RunFile>,
        events: EventHandler,
        cancel: CancellationToken,
    ) -> Result<Option<Vec<u8>>, RunError> {
        let (reply, outcome) = oneshot::channel();
        let job = worker::PreviewJob { question: question.to_owned(), files, settings: self.settings(), events, cancel, reply };
        self.queued(worker::Job::Preview(Box::new(job)), outcome).await
    }

    async fn queued<T>(&self, job: worker::Job, outcome: oneshot::Receiver<Result<T, RunError>>) -> Result<T, RunError> {
        let closed = || RunError::new(ErrorKind::Run, "the session is closed", "Open the folder again.");
        self.queue.send(job).map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?
    }

    /// Starts the sandbox ahead of the first run, where that downloads and builds nothing. Failures are told by the run
    /// that needs it.
    pub fn warm(&self) {
        // A closed session has nothing to warm.
        let _ = self.queue.send(worker::Job::Warm(Box::new(self.settings())));
    }

    /// Cancels a run, or all. Returns the ids of those that were not final yet.
    pub fn cancel(&self, run: Option<&str>) -> Vec<String> {
        let mut cancelled: Vec<String> = self
            .runs
            .iter()
            .filter(|entry| run.is_none_or(|run| run == entry.key()) && !entry.value().snapshot().status.is_final())
            .map(|entry| {
                entry.value().cancel.cancel();
                entry.key().clone()
            })
            .collect();
        cancelled.sort_unstable();
        cancelled
    }

    /// The record of a run as it is now: of this process, else from disk.
    pub fn run(&self, id: &str) -> Option<Arc<Run>> {
        match self.runs.get(id).map(|live| live.snapshot()) {
            Some(run) => Some(run),
            None => self.store.load(id).ok().map(Arc::new),
        }
    }

    /// All runs, newest first: those of this process, and those on disk.
    pub fn runs(&self) -> Vec<Arc<Run>> {
        let mut ids: Vec<String> = self.store.list().into_iter().map(|summary: RunSummary| summary.run).collect();
        ids.extend(self.runs.iter().map(|entry| entry.key().clone()));
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        ids.iter().filter_map(|id| self.run(id)).collect()
    }

    /// Makes an export of a run; see [`export::export`].
    pub async fn export(&self, run: &Run, kind: export::ExportKind, name: Option<&str>, cancel: &CancellationToken) -> export::Exported {
        export::export(&*self.services, &self.settings(), &self.store, run, kind, name, cancel).await
    }

    /// Variables of the kernel; none where no sandbox was started.
    pub async fn variables(&self, name: Option<&str>) -> Result<Vec<Variable>, SandboxError> {
        match self.sandbox() {
            Some(sandbox) => sandbox.variables(name).await,
            None => Ok(Vec::new()),
        }
    }

    /// Replaces the kernel by a new one; nothing happens where no sandbox was started.
    pub async fn restart_kernel(&self) -> Result<(), SandboxError> {
        match self.sandbox() {
            Some(sandbox) => sandbox.restart_kernel().await,
            None => Ok(()),
        }
    }

    /// Cancels all runs and ends the sandbox. The next run starts another.
    pub async fn stop_sandbox(&self) {
        self.cancel(None);
        let (done, stopped) = oneshot::channel();
        if self.queue.send(worker::Job::Stop(done)).is_ok() {
            // An error means that the worker is gone, and the sandbox with it.
            let _ = stopped.await;
        }
    }

    /// Ends the session and everything in it.
    pub async fn close(&self) {
        self.stop_sandbox().await;
        self.closed.cancel();
    }

    /// How it stands.
    pub async fn status(&self) -> SessionStatus {
        let sandbox = self.sandbox();
        let usage = match &sandbox {
            Some(sandbox) => sandbox.usage().await,
            None => ResourceUsage::default(),
        };
        let kernel = sandbox.as_ref().map(|sandbox| sandbox.kernel_state());
        let state = match kernel {
            None | Some(KernelState::Dead) => "stopped",
            Some(KernelState::Starting) => "starting",
            Some(KernelState::Idle | KernelState::Busy) => "ready",
        };
        SessionStatus {
            folder: self.folder.clone(),
            backend: lock(&self.shared.backend).clone(),
            state,
            kernel,
            usage,
            runs: self.runs.iter().filter(|entry| !entry.value().snapshot().status.is_final()).count(),
        }
    }

    fn sandbox(&self) -> Option<Arc<dyn Sandbox>> {
        lock(&self.shared.sandbox).clone()
    }

    /// What the session was given; `analyze --dry-run` and status ask it for the model.
    pub fn services(&self) -> &Arc<dyn Services> {
        &self.services
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
