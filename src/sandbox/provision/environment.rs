//! Where an environment lies and how it is built.
//!
//! ```text
//! CACHE/envs/<hash>.lock          held while it is built
//! CACHE/envs/<hash>.use           held, shared, by every sandbox that runs in it
//! CACHE/envs/<hash>/core/         a venv with the core set
//! CACHE/envs/<hash>/core.json     written last: the venv is complete
//! CACHE/envs/<hash>/full/         packages of the full set, found by way of `core`; empty until complete
//! CACHE/envs/<hash>/full.json     written last
//! CACHE/envs/<hash>/matplotlib/   its list of fonts
//! CACHE/envs/<hash>/packages/     `sandbox.packages`, a folder for each list
//! ```
//!
//! A venv holds absolute paths, so that it is built where it stays; what has no marker is built again.

use std::fs::File;
use std::path::{Path, PathBuf};

use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::lock::{self, Set};
use super::{Python, installer, python};
use crate::agent::ports::{Progress, SandboxError, Sink};

/// Variable that names further folders of packages, joined by colons, to the Python of an environment.
pub const PACKAGES_VARIABLE: &str = "CODEINTERP_PACKAGES";

/// Read by Python at its start, also in isolated mode, which ignores `PYTHONPATH`.
const PATH_FILE: &str = "import os, sys; sys.path.extend(p for p in os.environ.get('CODEINTERP_PACKAGES', '').split(':') if p)\n";

/// An environment, complete or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its folder, absolute, all links followed.
    pub root: PathBuf,
    /// The Python that it is made of.
    pub python: Python,
}

impl Environment {
    /// The interpreter to start.
    pub fn interpreter(&self) -> PathBuf {
        self.root.join("core/bin/python")
    }

    /// Folder of the packages of the core set.
    pub fn site_packages(&self) -> PathBuf {
        self.root.join(format!("core/lib/python{}/site-packages", self.python.minor()))
    }

    /// Folder of the packages of the full set; empty until they are there.
    pub fn full(&self) -> PathBuf {
        self.root.join("full")
    }

    /// Folder with matplotlib's list of fonts.
    pub fn matplotlib(&self) -> PathBuf {
        self.root.join("matplotlib")
    }

    /// The core set is complete.
    pub fn has_core(&self) -> bool {
        self.root.join("core.json").is_file() && self.interpreter().exists()
    }

    /// The full set is complete.
    pub fn has_full(&self) -> bool {
        self.root.join("full.json").is_file()
    }

    /// Compiles the Python files below a folder. What is compiled is used whatever time the file says: nobody changes these.
    pub async fn compile(&self, folder: &Path, progress: Sink<'_, Progress>, cancel: &CancellationToken) -> Result<(), SandboxError> {
        let mut command = Command::new(self.interpreter());
        command.args(["-I", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]).arg(folder);
        match installer::run(command, "compiling Python files", None, progress, cancel).await {
            // Some packages carry files of another Python's syntax; they are never imported.
            Ok(_) | Err(SandboxError::Unavailable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps it from being pruned for as long as the file is open.
    pub fn hold(&self) -> std::io::Result<File> {
        let file = File::create(self.root.with_extension("use"))?;
        file.lock_shared()?;
        Ok(file)
    }
}

/// Builds environments in a cache folder.
#[derive(Debug, Clone)]
pub struct Provisioner {
    cache: PathBuf,
}

impl Provisioner {
    /// `cache` is the folder that [`cache_dir`](crate::config::cache_dir) gives.
    pub fn new(cache: PathBuf) -> Self {
        Self { cache }
    }

    /// Finds the Python and says where its environment is or would be. Builds nothing.
    pub async fn locate(&self) -> Result<Environment, SandboxError> {
        let envs = self.cache.join("envs");
        std::fs::create_dir_all(&envs).map_err(|error| cannot_write(&envs, &error))?;
        let envs = envs.canonicalize().map_err(|error| cannot_write(&envs, &error))?;
        let python = python::find_remembered(&self.cache).await?;
        let hash = lock::hash(&python);
        Ok(Environment { root: envs.join(&hash[..16]), python })
    }

    /// The environment with the core set, built now where it is not there yet.
    pub async fn core(&self, progress: Sink<'_, Progress>, cancel: &CancellationToken) -> Result<Environment, SandboxError> {
        let environment = self.locate().await?;
        if environment.has_core() {
            return Ok(environment);
        }
        let _lock = exclusive(&environment.root.with_extension("lock"), progress, cancel).await?;
        // Another process may have built it while this one waited.
        if !environment.has_core() {
            Build { environment: &environment, progress, cancel }.core().await?;
        }
        Ok(environment)
    }

    /// Adds the full set, built now where it is not there yet. Running sandboxes find its packages as soon as it is complete.
    pub async fn full(&self, progress: Sink<'_, Progress>, cancel: &CancellationToken) -> Result<Environment, SandboxError> {
        let environment = self.core(progress, cancel).await?;
        if environment.has_full() {
            return Ok(environment);
        }
        let _lock = exclusive(&environment.root.with_extension("lock"), progress, cancel).await?;
        if !environment.has_full() {
            Build { environment: &environment, progress, cancel }.full().await?;
        }
        Ok(environment)
    }
}

/// Waits for the lock at `path`. It goes when the file is dropped, or its process dies.
pub(super) async fn exclusive(path: &Path, progress: Sink<'_, Progress>, cancel: &CancellationToken) -> Result<File, SandboxError> {
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            progress(Progress { what: "waiting for another process that builds the Python environment".to_owned(), fraction: None });
        }
        Err(std::fs::TryLockError::Error(error)) => return Err(cannot_write(path, &error)),
    }
    let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
    tokio::select! {
        // A wait that is given up takes the lock some time later, and drops it at once.
        () = cancel.cancelled() => Err(SandboxError::Cancelled),
        locked = waiting => match locked {
            Ok(Ok(file)) => Ok(file),
            Ok(Err(error)) => Err(cannot_write(path, &error)),
            Err(error) => Err(SandboxError::Gone(error.to_string())),
        },
    }
}

pub(super) fn cannot_write(path: &Path, error: &std::io::Error) -> SandboxError {
    SandboxError::Unavailable {
        message: format!("the Python environment can't be kept: {}: {error}", path.display()),
        hint: "make this folder writable and see that its disk has space, or set XDG_CACHE_HOME to another one".to_owned(),
    }
}

/// One build, under the lock.
struct Build<'a> {
    environment: &'a Environment,
    progress: Sink<'a, Progress>,
    cancel: &'a CancellationToken,
}

impl Build<'_> {
    fn say(&self, what: String) {
        (self.progress)(Progress { what, fraction: None });
    }

    async fn run(&self, command: Command, doing: &str, total: Option<u64>) -> Result<String, SandboxError> {
        installer::run(command, doing, total, self.progress, self.cancel).await
    }

    async fn core(&self) -> Result<(), SandboxError> {
        let environment = self.environment;
        let root = &environment.root;
        remove(root)?;
        std::fs::create_dir_all(environment.full()).map_err(|error| cannot_write(root, &error))?;
        let download = Set::Core.download(&environment.python);
        self.say(format!(
            "downloading Python packages once, {download}, into {} (Python {}; cancelling keeps nothing; in an editor {} more follow after the first answer)",
            root.display(),
            environment.python.full_version(),
            Set::Full.download(&environment.python)
        ));
        let uv = python::find_uv();
        let mut outcome = match &uv {
            Some(uv) => self.core_with_uv(uv).await,
            None => self.core_with_pip().await,
        };
        if uv.is_some() && environment.python.venv && matches!(outcome, Err(SandboxError::Unavailable { .. })) {
            // uv does not read pip's configuration files, which may name the only index that answers here.
            self.say("uv did not succeed; trying pip".to_owned());
            remove(&root.join("core"))?;
            outcome = self.core_with_pip().await;
        }
        outcome?;
        relink(environment).map_err(|error| cannot_write(root, &error))?;
        std::fs::write(environment.site_packages().join("codeinterp.pth"), PATH_FILE).map_err(|error| cannot_write(root, &error))?;
        self.say("compiling the packages".to_owned());
        environment.compile(&environment.site_packages(), self.progress, self.cancel).await?;
        self.say("listing the fonts".to_owned());
        self.fonts().await?;
        self.complete("core").await
    }

    async fn core_with_pip(&self) -> Result<(), SandboxError> {
        let environment = self.environment;
        let mut venv = Command::new(&environment.python.executable);
        venv.args(["-I", "-m", "venv", "--symlinks"]).arg(environment.root.join("core"));
        self.run(venv, "making the Python environment", None).await?;
        let requirements = self.requirements(Set::Core)?;
        let mut pip = pip_install(environment);
        pip.args(["--require-hashes", "--no-deps", "-r"]).arg(requirements);
        self.run(pip, "installing Python packages", Some(Set::Core.download(&environment.python).bytes)).await?;
        Ok(())
    }

    async fn core_with_uv(&self, uv: &Path) -> Result<(), SandboxError> {
        let environment = self.environment;
        let mut venv = Command::new(uv);
        venv.args(["venv", "--quiet", "--no-project", "--seed", "--python"])
            .arg(&environment.python.executable)
            .arg(environment.root.join("core"));
        self.run(venv, "making the Python environment", None).await?;
        let requirements = self.requirements(Set::Core)?;
        let mut install = Command::new(uv);
        install.args(["pip", "install", "--no-config", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--python"]);
        install.arg(environment.interpreter()).arg("-r").arg(requirements);
        self.run(install, "installing Python packages", Some(Set::Core.download(&environment.python).bytes)).await?;
        Ok(())
    }

    async fn full(&self) -> Result<(), SandboxError> {
        let environment = self.environment;
        let target = environment.root.join("full.new");
        remove(&target)?;
        let download = Set::Full.download(&environment.python);
        self.say(format!("downloading more Python packages once, {download}, into {}", environment.full().display()));
        let requirements = self.requirements(Set::Full)?;
        let mut pip = pip_install(environment);
        pip.args(["--require-hashes", "--no-deps", "--target"]).arg(&target).arg("-r").arg(requirements);
        self.run(pip, "installing more Python packages", Some(download.bytes)).await?;
        environment.compile(&target, self.progress, self.cancel).await?;
        readable(&target).map_err(|error| cannot_write(&target, &error))?;
        // Takes the place of the empty folder in one step: an import sees nothing of it or all.
        std::fs::rename(&target, environment.full()).map_err(|error| cannot_write(&target, &error))?;
        self.complete("full").await
    }

    fn requirements(&self, set: Set) -> Result<PathBuf, SandboxError> {
        let path = self.environment.root.join(format!("{}.txt", set.name()));
        std::fs::write(&path, set.requirements()).map_err(|error| cannot_write(&path, &error))?;
        Ok(path)
    }

    /// Puts the font that came as a package where matplotlib looks, and lets it list all fonts once. Proves on the way that the packages load.
    async fn fonts(&self) -> Result<(), SandboxError> {
        let environment = self.environment;
        let site = environment.site_packages();
        let font = site.join("paperang_p2_fonts_cjk/fonts/wqy-microhei.ttc");
        if font.is_file() {
            let to = site.join("matplotlib/mpl-data/fonts/ttf/wqy-microhei.ttc");
            std::fs::rename(&font, &to).map_err(|error| cannot_write(&to, &error))?;
        }
        let folder = environment.matplotlib();
        std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
        let mut command = Command::new(environment.interpreter());
        let program = format!(
            "import os; os.environ['MPLCONFIGDIR'] = {}; import matplotlib.font_manager, pandas, pyarrow, IPython",
            python_string(&folder)
        );
        command.args(["-I", "-c", &program]);
        self.run(command, "loading the Python packages", None).await?;
        Ok(())
    }

    /// Writes the marker, after everything else is on disk.
    async fn complete(&self, set: &str) -> Result<(), SandboxError> {
        let root = self.environment.root.clone();
        let python = &self.environment.python;
        let marker = serde_json::json!({"python": python.executable, "version": python.full_version()}).to_string();
        let name = format!("{set}.json");
        let work = tokio::task::spawn_blocking(move || {
            readable(&root)?;
            let new = root.join("marker.new");
            std::fs::write(&new, marker)?;
            File::open(&new)?.sync_all()?;
            std::fs::rename(&new, root.join(name))
        });
        match work.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(cannot_write(&self.environment.root, &error)),
            Err(error) => Err(SandboxError::Gone(error.to_string())),
        }
    }
}

/// `pip install` of an environment, wheels only.
pub(super) fn pip_install(environment: &Environment) -> Command {
    let mut pip = Command::new(environment.interpreter());
    pip.args([
        "-I",
        "-m",
        "pip",
        "install",
        "--progress-bar",
        "off",
        "--only-binary",
        ":all:",
        "--no-compile",
        "--no-warn-script-location",
    ]);
    pip
}

/// A path as a Python string.
fn python_string(path: &Path) -> String {
    // JSON's escapes are Python's too.
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

/// Lets the environment name its base Python by the real path: in the sandbox, links on the way may not exist.
fn relink(environment: &Environment) -> std::io::Result<()> {
    let bin = environment.root.join("core/bin");
    let real = &environment.python.executable;
    for name in ["python".to_owned(), "python3".to_owned(), format!("python{}", environment.python.minor())] {
        let link = bin.join(name);
        if link.is_symlink() {
            std::fs::remove_file(&link)?;
        }
        if !link.exists() {
            symlink(real, &link)?;
        }
    }
    let config = environment.root.join("core/pyvenv.cfg");
    let text = std::fs::read_to_string(&config)?;
    let home = real.parent().unwrap_or(real).display().to_string();
    let lines: Vec<String> =
        text.lines().map(|line| if line.starts_with("home") { format!("home = {home}") } else { line.to_owned() }).collect();
    std::fs::write(&config, lines.join("\n") + "\n")
}

#[cfg(unix)]
fn symlink(to: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn symlink(_to: &Path, _link: &Path) -> std::io::Result<()> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}

/// Makes everything readable to others: where root starts a sandbox, another user runs in it.
#[cfg(unix)]
pub(crate) fn readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = path.symlink_metadata()?;
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = metadata.permissions().mode();
    let execute = if metadata.is_dir() || mode & 0o100 != 0 { 0o111 } else { 0 };
    let wanted = mode | 0o444 | execute;
    if wanted != mode {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(wanted))?;
    }
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path)? {
            readable(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn readable(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

fn remove(path: &Path) -> Result<(), SandboxError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot_write(path, &error)),
        _ => Ok(()),
    }
}
