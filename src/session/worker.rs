//! The one task that owns a session's sandbox and works through its queue, one run at a time.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::live::LiveRun;
use super::prepare::prepare;
use super::request::{EventHandler, RunFile, RunRequest};
use super::workspace_sandbox::WorkspaceSandbox;
use super::{Services, Shared, lock, run};
use crate::agent::first_request;
use crate::agent::ports::{KernelState, Progress, Sandbox, Sink};
use crate::agent::run::{ErrorKind, RunError};
use crate::agent::task::{LoopSettings, Task};
use crate::config::{BackendChoice, Settings};
use crate::profile::ProfileOutcome;
use crate::sandbox::{Mount, StartRequest};
use crate::store::RunStore;

/// Something for the worker to do.
pub(super) enum Job {
    Run(Box<RunJob>),
    Profile(Box<ProfileJob>),
    Preview(Box<PreviewJob>),
    Warm(Box<Settings>),
    Stop(oneshot::Sender<()>),
}

/// A queued run with what it needs.
pub(super) struct RunJob {
    pub live: Arc<LiveRun>,
    pub request: RunRequest,
    pub settings: Settings,
    pub events: EventHandler,
}

/// Files to be profiled without a run.
pub(super) struct ProfileJob {
    pub files: Vec<RunFile>,
    pub settings: Settings,
    pub events: EventHandler,
    pub cancel: CancellationToken,
    pub reply: oneshot::Sender<Result<Vec<ProfileOutcome>, RunError>>,
}

/// A question whose first request is wanted.
pub(super) struct PreviewJob {
    pub question: String,
    pub files: Vec<RunFile>,
    pub settings: Settings,
    pub events: EventHandler,
    pub cancel: CancellationToken,
    pub reply: oneshot::Sender<Result<Option<Vec<u8>>, RunError>>,
}

/// Owner of the sandbox.
pub(super) struct Worker {
    pub folder: PathBuf,
    pub store: RunStore,
    pub services: Arc<dyn Services>,
    shared: Arc<Shared>,
    closed: CancellationToken,
    sandbox: Option<Running>,
    /// Kernels that runs of this process worked in: run → [`WorkspaceSandbox::kernel_number`] at its end.
    pub kernels: HashMap<String, u64>,
    /// Said by the next run: the sandbox was stopped meanwhile.
    lost: Option<String>,
    /// Whether the backend was asked for what only later questions need.
    enriched: bool,
}

/// Time after a first answer until the backend may use the network and the disk for more: whoever wanted one answer is gone by then.
const QUIET: Duration = Duration::from_secs(3);

/// Time without use after which a sandbox is stopped.
fn idle_time(settings: &Settings) -> Duration {
    Duration::from_secs(settings.sandbox.idle_minutes.max(1).saturating_mul(60))
}

struct Running {
    sandbox: Arc<WorkspaceSandbox>,
    request: StartRequest,
}

impl Worker {
    pub fn new(folder: PathBuf, store: RunStore, services: Arc<dyn Services>, shared: Arc<Shared>, closed: CancellationToken) -> Self {
        Self { folder, store, services, shared, closed, sandbox: None, kernels: HashMap::new(), lost: None, enriched: false }
    }

    /// Works until the session is closed; then ends the sandbox.
    pub async fn work(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        let closed = self.closed.clone();
        let mut idle = idle_time(&Settings::default());
        loop {
            let idle_at = Instant::now() + idle;
            let has_sandbox = self.sandbox.is_some();
            let job = tokio::select! {
                () = closed.cancelled() => break,
                job = jobs.recv() => job,
                () = tokio::time::sleep_until(idle_at), if has_sandbox => {
                    self.stop("it was not used for a while").await;
                    continue;
                }
            };
            match job {
                None => break,
                Some(Job::Stop(done)) => {
                    self.stop("it was stopped").await;
                    // Whoever asked may have gone away.
                    let _ = done.send(());
                }
                Some(Job::Profile(job)) => {
                    idle = idle_time(&job.settings);
                    let prepared = prepare(&mut self, &job.settings, &job.files, &|event| (job.events)(&event), &job.cancel).await;
                    // Whoever asked may have gone away.
                    let _ = job.reply.send(prepared.map(|prepared| prepared.profiles));
                }
                Some(Job::Preview(job)) => {
                    idle = idle_time(&job.settings);
                    let preview = self.preview(&job).await;
                    let _ = job.reply.send(preview);
                }
                Some(Job::Warm(settings)) => {
                    idle = idle_time(&settings);
                    tokio::select! {
                        () = closed.cancelled() => break,
                        () = self.warm(&settings, &closed) => {}
                    }
                }
                Some(Job::Run(job)) => {
                    idle = idle_time(&job.settings);
                    tokio::select! {
                        () = closed.cancelled() => break,
                        () = self.contained(&job) => {}
                    }
                    self.enrich();
                }
            }
        }
        self.stop("the session was closed").await;
    }

    /// Starts a sandbox ahead of its use. Nobody has asked for anything yet, so nothing is downloaded or built for it, and
    /// one that runs already stays as it is.
    async fn warm(&mut self, settings: &Settings, cancel: &CancellationToken) {
        if self.sandbox.is_some() {
            return;
        }
        let warmed = match self.services.backend(settings).await {
            Ok((backend, _)) if backend.is_provisioned(&settings.sandbox).await => {
                self.sandbox(settings, Vec::new(), &|_| {}, &|_| {}, cancel).await.map(|_| ())
            }
            Ok(_) => return,
            Err(error) => Err(RunError::from(&error)),
        };
        if let Err(error) = warmed {
            tracing::info!(message = error.message, "the sandbox was not warmed");
        }
    }

    async fn preview(&mut self, job: &PreviewJob) -> Result<Option<Vec<u8>>, RunError> {
        let model = self.services.model(&job.settings).map_err(|error| RunError::from(&error))?;
        let prepared = prepare(self, &job.settings, &job.files, &|event| (job.events)(&event), &job.cancel).await?;
        let task = Task { question: job.question.clone(), files: prepared.files, profiles: prepared.profiles, ..Task::default() };
        let request = first_request(&LoopSettings::from(&job.settings), &model.info(), &prepared.sandbox.info(), &task);
        model.preview(&request).await.map_err(|error| RunError::from(&error))
    }

    /// A run whose panic becomes a failed run: the queue goes on.
    async fn contained(&mut self, job: &RunJob) {
        if AssertUnwindSafe(run::perform(self, job)).catch_unwind().await.is_err() {
            let event =
                run::failed(ErrorKind::Run, "a fault in codeinterp ended the run", "Please report it with the log; then ask again.");
            job.live.apply(&event);
            (job.events)(&event);
        }
    }

    /// Lets the backend add, in the background and once, what only later questions need.
    fn enrich(&mut self) {
        let Some(running) = self.sandbox.as_ref().filter(|running| running.sandbox.was_used() && !self.enriched) else { return };
        self.enriched = true;
        let (backend, closed) = (running.sandbox.backend(), self.closed.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = closed.cancelled() => return,
                () = tokio::time::sleep(QUIET) => {}
            }
            let enriched = backend.enrich(&|progress| tracing::info!("{}", progress.what), &closed).await;
            if let Err(error) = enriched {
                tracing::info!(%error, "the sandbox was not enriched");
            }
        });
    }

    /// The running sandbox, started where there is none that fits. `notice` gets sentences for the person.
    pub async fn sandbox(
        &mut self,
        settings: &Settings,
        mounts: Vec<Mount>,
        progress: Sink<'_, Progress>,
        notice: Sink<'_, String>,
        cancel: &CancellationToken,
    ) -> Result<Arc<WorkspaceSandbox>, RunError> {
        if let Some(running) = &self.sandbox {
            let fits = running.request.settings == settings.sandbox && mounts.iter().all(|mount| running.request.mounts.contains(mount));
            if fits && running.sandbox.kernel_state() != KernelState::Dead {
                return Ok(Arc::clone(&running.sandbox));
            }
            let why = if fits { "it had ended" } else { "it was replaced by one with other settings or files" };
            self.stop(why).await;
        }
        let request = StartRequest {
            workspace: self.store.workspace().to_owned(),
            folder: Some(self.folder.clone()),
            settings: settings.sandbox.clone(),
            mounts,
        };
        let sandbox = self.start(settings, &request, progress, notice, cancel).await?;
        if let Some(why) = self.lost.take() {
            notice(format!("A new sandbox was started because {why}: the variables of earlier runs are gone."));
        }
        *lock(&self.shared.backend) = Some(sandbox.info().backend);
        *lock(&self.shared.sandbox) = Some(Arc::clone(&sandbox) as Arc<dyn Sandbox>);
        self.sandbox = Some(Running { sandbox: Arc::clone(&sandbox), request });
        Ok(sandbox)
    }

    /// Starts a sandbox. Where the choice is automatic and Docker fails after all, the process backend is tried: it is
    /// confined too. Nothing ever runs unconfined.
    async fn start(
        &self,
        settings: &Settings,
        request: &StartRequest,
        progress: Sink<'_, Progress>,
        notice: Sink<'_, String>,
        cancel: &CancellationToken,
    ) -> Result<Arc<WorkspaceSandbox>, RunError> {
        let (backend, why) = self.services.backend(settings).await.map_err(|error| RunError::from(&error))?;
        let name = backend.name();
        match WorkspaceSandbox::start(backend, request.clone(), progress, cancel).await {
            Ok(sandbox) => {
                notice(why);
                Ok(Arc::new(sandbox))
            }
            Err(error) if settings.sandbox.backend == BackendChoice::Auto && name == "docker" && !cancel.is_cancelled() => {
                let mut local = settings.clone();
                local.sandbox.backend = BackendChoice::Process;
                let (backend, _) = self.services.backend(&local).await.map_err(|_| RunError::from(&error))?;
                let sandbox =
                    WorkspaceSandbox::start(backend, request.clone(), progress, cancel).await.map_err(|_| RunError::from(&error))?;
                notice(format!("Sandbox: confined local process, because Docker failed: {error}"));
                Ok(Arc::new(sandbox))
            }
            Err(error) => Err(RunError::from(&error)),
        }
    }

    async fn stop(&mut self, why: &str) {
        *lock(&self.shared.sandbox) = None;
        *lock(&self.shared.backend) = None;
        if let Some(running) = self.sandbox.take() {
            running.sandbox.stop().await;
            if running.sandbox.was_used() {
                self.lost = Some(why.to_owned());
            }
        }
    }
}
