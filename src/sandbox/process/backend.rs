//! The backend: prepares what a sandbox needs, starts the monitor, and hands the supervisor's pipe over.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::enclosure::{ProcessEnclosure, Reports};
use super::spec::{Event, Limits, Spec, SpecMount};
use super::tree::WORKSPACE;
use super::{HELPER_COMMAND, paths, record};
use crate::agent::ports::{Progress, Sandbox, SandboxError, Sink};
use crate::agent::run::SandboxInfo;
use crate::config::SandboxSettings;
use crate::sandbox::consent::{BySetting, Consent};
use crate::sandbox::provision::environment::{PACKAGES_VARIABLE, readable};
use crate::sandbox::provision::lock::hex;
use crate::sandbox::provision::{Environment, Provisioner, packages};
use crate::sandbox::{Backend, StartRequest, image, open_sandbox};

/// Time for the confinement to be in force, or refused.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Less memory than this does not hold the data stack.
const MIN_MEMORY: u64 = 256 << 20;

/// The confined local process.
#[derive(Debug, Clone)]
pub struct ProcessBackend {
    cache: PathBuf,
    helper: PathBuf,
    no_cgroup: bool,
    /// Asked before packages are downloaded.
    consent: Arc<dyn Consent>,
}

impl ProcessBackend {
    /// `cache` is the folder that [`cache_dir`](crate::config::cache_dir) gives: environments and records lie there.
    pub fn new(cache: PathBuf) -> Self {
        Self { cache, helper: helper_program(), no_cgroup: false, consent: Arc::new(BySetting) }
    }

    /// Asks there before packages are downloaded.
    #[must_use]
    pub fn asking(mut self, consent: Arc<dyn Consent>) -> Self {
        self.consent = consent;
        self
    }

    /// Never makes a control group, as if this user could not: memory is then bounded by the monitor's watcher and processes by their
    /// user namespace. For machines whose control groups misbehave.
    #[must_use]
    pub fn without_cgroup(mut self) -> Self {
        self.no_cgroup = true;
        self
    }

    /// Goes through every step of the confinement without executing anything.
    pub async fn probe(&self) -> Result<(), SandboxError> {
        let limits = Limits { memory: MIN_MEMORY, cpus: 1.0, pids: 64, no_cgroup: self.no_cgroup };
        let spec = Spec { id: new_id(), probe: true, limits, ..Spec::default() };
        let mut started = self.spawn(&spec)?;
        // Its end of the pipe must stay open until it has answered.
        let _stdin = started.monitor.stdin.take();
        match tokio::time::timeout(START_TIMEOUT, started.first).await {
            Ok(Ok(first)) => first.map(|_| ()),
            // A probe that passes reports nothing.
            Ok(Err(_)) => Ok(()),
            Err(_) => Err(refused("starting", "the helper did not answer")),
        }
    }

    /// The environment that sandboxes use, built or not.
    pub async fn environment(&self) -> Result<Environment, SandboxError> {
        Provisioner::new(self.cache.clone()).locate().await
    }

    fn spawn(&self, spec: &Spec) -> Result<Spawned, SandboxError> {
        let text = serde_json::to_string(spec).map_err(|error| refused("describing the sandbox", &error.to_string()))?;
        let mut command = Command::new(&self.helper);
        command.arg(HELPER_COMMAND).arg(text).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut monitor = command.spawn().map_err(|error| SandboxError::Unavailable {
            message: format!("the sandbox's helper {} can't be started: {error}", self.helper.display()),
            hint: "install codeinterp again, so that its program can be executed".to_owned(),
        })?;
        let stderr = monitor.stderr.take().ok_or_else(|| refused("starting", "the helper has no output"))?;
        let (first_sender, first) = oneshot::channel();
        let (ended_sender, ended) = watch::channel(None);
        let oom_kills = Arc::new(AtomicU64::new(0));
        tokio::spawn(read_reports(stderr, first_sender, Reports { ended: ended_sender, oom_kills: Arc::clone(&oom_kills) }));
        Ok(Spawned { monitor, first, ended, oom_kills })
    }

    fn spec(
        &self,
        request: &StartRequest,
        environment: &Environment,
        modules: &Path,
        packages: Option<&Path>,
    ) -> Result<Spec, SandboxError> {
        let settings = &request.settings;
        let limits = Limits {
            memory: settings.memory.0.max(MIN_MEMORY),
            cpus: settings.cpus,
            pids: settings.pids.max(16),
            no_cgroup: self.no_cgroup,
        };
        let threads = threads(settings.cpus);
        let own = [environment.root.as_path(), modules];
        let id = new_id();
        Ok(Spec {
            probe: false,
            program: environment.interpreter(),
            arguments: vec![
                "-I".to_owned(),
                modules.join("supervisor.py").to_string_lossy().into_owned(),
                "--workdir".to_owned(),
                WORKSPACE.to_owned(),
                "--memory".to_owned(),
                limits.memory.to_string(),
                "--threads".to_owned(),
                threads.to_string(),
            ],
            environment: variables(environment, packages, threads),
            read_only: paths::read_only(&environment.python, &own),
            mounts: mounts(request)?,
            fonts: Some(environment.matplotlib()),
            limits,
            record: Some(record::folder(&self.cache).join(format!("{id}.json"))),
            id,
            workspace: request.workspace.clone(),
            folder: request.folder.clone(),
        })
    }
}

/// The monitor's first word: process id of the supervisor and the control groups made, or why it could not start.
type FirstWord = Result<(u32, Vec<(String, PathBuf)>), SandboxError>;

/// A spawned monitor, before it has said whether the confinement holds.
struct Spawned {
    monitor: Child,
    first: oneshot::Receiver<FirstWord>,
    ended: watch::Receiver<Option<String>>,
    oom_kills: Arc<AtomicU64>,
}

#[async_trait]
impl Backend for ProcessBackend {
    fn name(&self) -> &'static str {
        "process"
    }

    async fn check(&self, _settings: &SandboxSettings) -> Result<(), SandboxError> {
        self.probe().await?;
        self.environment().await.map(|_| ())
    }

    async fn provision(
        &self,
        settings: &SandboxSettings,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<(), SandboxError> {
        let environment = Provisioner::new(self.cache.clone()).full(progress, cancel).await?;
        modules(&self.cache, &environment, progress, cancel).await?;
        packages::provide(&environment, &settings.packages, &*self.consent, progress, cancel).await.map(|_| ())
    }

    async fn is_provisioned(&self, settings: &SandboxSettings) -> bool {
        match self.environment().await {
            Ok(environment) => environment.has_core() && packages::are_there(&environment, &settings.packages),
            Err(_) => false,
        }
    }

    async fn enrich(&self, progress: Sink<'_, Progress>, cancel: &CancellationToken) -> Result<(), SandboxError> {
        Provisioner::new(self.cache.clone()).full(progress, cancel).await.map(|_| ())
    }

    async fn start(
        &self,
        request: &StartRequest,
        progress: Sink<'_, Progress>,
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let cache = self.cache.clone();
        // May wait for a control group to empty. Whatever it can do nothing about stays for the next start.
        let _ = tokio::task::spawn_blocking(move || record::reap(&cache)).await;
        let environment = Provisioner::new(self.cache.clone()).core(progress, cancel).await?;
        let packages = packages::provide(&environment, &request.settings.packages, &*self.consent, progress, cancel).await?;
        let hold = environment.hold().ok();
        let modules = modules(&self.cache, &environment, progress, cancel).await?;
        let records = record::folder(&self.cache);
        std::fs::create_dir_all(&records).map_err(|error| refused("recording the sandbox", &format!("{}: {error}", records.display())))?;
        let spec = self.spec(request, &environment, &modules, packages.as_deref())?;

        let mut spawned = self.spawn(&spec)?;
        let (Some(stdin), Some(stdout)) = (spawned.monitor.stdin.take(), spawned.monitor.stdout.take()) else {
            return Err(refused("starting", "the helper has no pipe"));
        };
        let first = tokio::select! {
            first = tokio::time::timeout(START_TIMEOUT, spawned.first) => first,
            // The pipe closes with this future, which ends the monitor.
            () = cancel.cancelled() => return Err(SandboxError::Cancelled),
        };
        let (pid, cgroups) = match first {
            Ok(Ok(first)) => first?,
            Ok(Err(_)) => return Err(refused("starting", "the helper ended without a word")),
            Err(_) => return Err(refused("starting", "the helper did not answer")),
        };
        let info = SandboxInfo {
            backend: "process".to_owned(),
            image: format!("Python {}", environment.python.full_version()),
            workdir: WORKSPACE.to_owned(),
            memory_bytes: spec.limits.memory,
        };
        let enclosure = ProcessEnclosure::new(spawned.monitor, pid, cgroups, spawned.ended, spawned.oom_kills, hold);
        tokio::select! {
            sandbox = open_sandbox(stdout, stdin, info, Arc::new(enclosure)) => sandbox,
            () = cancel.cancelled() => Err(SandboxError::Cancelled),
        }
    }
}

/// Reads the monitor's reports until it ends.
async fn read_reports(stderr: ChildStderr, first: oneshot::Sender<FirstWord>, reports: Reports) {
    let mut first = Some(first);
    let mut reason = None;
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(Event::Started { pid, cgroups }) => {
                if let Some(first) = first.take() {
                    // Whoever started it may have gone away; the pipe closes then and the monitor ends.
                    let _ = first.send(Ok((pid, cgroups)));
                }
            }
            Ok(Event::Refused { step, reason }) => {
                if let Some(first) = first.take() {
                    let _ = first.send(Err(refused(&step, &reason)));
                }
            }
            Ok(Event::Log { text }) => tracing::debug!(target: "codeinterp::sandbox", "supervisor: {text}"),
            Ok(Event::OutOfMemory { kills }) => reports.oom_kills.store(kills, Ordering::Release),
            Ok(Event::Ended { reason: why, oom_kills }) => {
                reports.oom_kills.fetch_max(oom_kills, Ordering::AcqRel);
                reason = Some(why);
            }
            Err(_) => tracing::warn!(target: "codeinterp::sandbox", "the sandbox's helper: {line}"),
        }
    }
    reports.ended.send_replace(Some(reason.unwrap_or_else(|| "its helper was killed".to_owned())));
}

/// The program to start as helper: this one, if it is `codeinterp`; else (in a test, or an embedding program) the `codeinterp` beside it or
/// one folder up, where Cargo puts it.
fn helper_program() -> PathBuf {
    let Ok(own) = std::env::current_exe() else { return "/proc/self/exe".into() };
    if own.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("codeinterp") && !stem.to_string_lossy().contains('-')) {
        // Also right after the file was replaced by a newer build.
        return "/proc/self/exe".into();
    }
    let name = Path::new("codeinterp");
    own.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap_or(own)
}

fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Threads for libraries that would take one for each CPU of the machine.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few CPUs at most")]
fn threads(cpus: f64) -> u32 {
    cpus.ceil().clamp(1.0, 256.0) as u32
}

/// The whole environment inside: nothing of the server's own, which may hold keys.
fn variables(environment: &Environment, packages: Option<&Path>, threads: u32) -> Vec<(String, String)> {
    let mut folders = vec![environment.full()];
    folders.extend(packages.map(Path::to_path_buf));
    let folders: Vec<String> = folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
    let bin = environment.root.join("core/bin");
    let threads = threads.to_string();
    let mut all = vec![
        ("PATH", format!("{}:/usr/bin:/bin", bin.display())),
        ("HOME", "/tmp/home".to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("MPLCONFIGDIR", "/tmp/matplotlib".to_owned()),
        ("IPYTHONDIR", "/tmp/home/.ipython".to_owned()),
        ("JUPYTER_RUNTIME_DIR", "/tmp/home/.jupyter".to_owned()),
        (PACKAGES_VARIABLE, folders.join(":")),
    ];
    for name in
        ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"]
    {
        all.push((name, threads.clone()));
    }
    let mut all: Vec<(String, String)> = all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // Times in charts are the user's.
    if let Ok(zone) = std::env::var("TZ") {
        all.push(("TZ".to_owned(), zone));
    }
    all
}

/// The large files of a request, checked: relative names, regular files that the user inside can read.
fn mounts(request: &StartRequest) -> Result<Vec<SpecMount>, SandboxError> {
    let mut mounts = Vec::new();
    for each in &request.mounts {
        let name = PathBuf::from(&each.name);
        let plain = !each.name.is_empty() && name.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !plain || each.name.chars().any(char::is_control) {
            return Err(SandboxError::RefusedName {
                name: each.name.clone(),
                reason: "it must be a plain path below the working directory".to_owned(),
            });
        }
        let file = |reason: String| SandboxError::File { name: each.name.clone(), reason };
        let host = each.host.canonicalize().map_err(|error| file(error.to_string()))?;
        let metadata = host.metadata().map_err(|error| file(error.to_string()))?;
        if !metadata.is_file() {
            return Err(file("it is not a regular file".to_owned()));
        }
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata);
        if nix::unistd::geteuid().is_root() && mode & 0o004 == 0 {
            return Err(file(format!(
                "started by root, the sandbox runs as another user, who may not read it: chmod o+r {}",
                host.display()
            )));
        }
        mounts.push(SpecMount { host, name });
    }
    Ok(mounts)
}

/// The supervisor's modules in a folder of the cache, by the hash of their contents and the Python that they are compiled
/// for; written where they are not there yet.
async fn modules(
    cache: &Path,
    environment: &Environment,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<PathBuf, SandboxError> {
    let mut hasher = Sha256::new();
    for (name, text) in image::MODULES {
        for part in [name, text] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
    }
    let hash = &hex(&hasher.finalize())[..16];
    let parent = cache.join("supervisor");
    let failed = |error: std::io::Error| refused("writing the supervisor", &format!("{}: {error}", parent.display()));
    std::fs::create_dir_all(&parent).map_err(failed)?;
    let folder = parent.canonicalize().map_err(failed)?.join(format!("{hash}-{}", environment.python.minor()));
    if folder.is_dir() {
        return Ok(folder);
    }
    let new = tempfile::Builder::new().prefix("new-").tempdir_in(&parent).map_err(failed)?;
    image::write_modules(new.path()).map_err(failed)?;
    environment.compile(new.path(), progress, cancel).await?;
    readable(new.path()).map_err(failed)?;
    match std::fs::rename(new.path(), &folder) {
        // Another process was quicker with the same contents.
        Err(_) if folder.is_dir() => Ok(folder),
        Err(error) => Err(failed(error)),
        Ok(()) => {
            // It has another name now: nothing is left to remove.
            let _ = new.keep();
            Ok(folder)
        }
    }
}

/// What to tell people about a step of the confinement that failed.
fn refused(step: &str, reason: &str) -> SandboxError {
    let hint = if step.contains("namespace") {
        "allow user namespaces (as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or kernel.unprivileged_userns_clone=1), or use Docker"
    } else if step.contains("Landlock") {
        "this needs Linux 6.2 or newer with Landlock among its security modules (CONFIG_LSM or lsm=landlock,…), or use Docker"
    } else if step.contains("filter") {
        "this needs a kernel with seccomp filters (CONFIG_SECCOMP_FILTER), or use Docker"
    } else {
        "`codeinterp doctor` tells what works on this machine; code never runs unconfined"
    };
    SandboxError::Unavailable { message: format!("the process sandbox can't be made: {step}: {reason}"), hint: hint.to_owned() }
}
