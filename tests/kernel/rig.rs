//! Starts a supervisor in a folder of its own and hands out the sandbox over it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use codeinterp::agent::execution::{Execution, ExecutionEvent};
use codeinterp::agent::ports::{ExecuteOptions, FileSource, ResourceUsage, Sandbox};
use codeinterp::agent::run::SandboxInfo;
use codeinterp::sandbox::link::Link;
use codeinterp::sandbox::{Enclosure, LinkedSandbox, image};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The interpreter with the sandbox's packages, which `tests/setup/profiler-python.sh` installs.
pub fn python() -> PathBuf {
    if let Some(path) = std::env::var_os("PROFILER_PYTHON") {
        return PathBuf::from(path);
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache"))).expect("a cache folder");
    let path = cache.join("codeinterp-testbed/profiler-python/bin/python");
    assert!(path.exists(), "{} is missing: run tests/setup/profiler-python.sh", path.display());
    path
}

/// A subprocess in place of a container.
pub struct Subprocess {
    child: Mutex<Child>,
    pub pid: u32,
}

#[async_trait]
impl Enclosure for Subprocess {
    async fn kill(&self) {
        let _ = self.child.lock().await.kill().await;
    }

    async fn end_reason(&self) -> Option<String> {
        None
    }

    async fn usage(&self) -> ResourceUsage {
        ResourceUsage::default()
    }

    async fn oom_kills(&self) -> Option<u64> {
        None
    }
}

pub struct Rig {
    pub sandbox: LinkedSandbox,
    pub link: Link,
    pub process: Arc<Subprocess>,
    folder: TempDir,
}

impl Rig {
    pub async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let (modules, workdir) = (folder.path().join("image"), folder.path().join("work"));
        for each in [&modules, &workdir] {
            std::fs::create_dir(each).unwrap();
        }
        image::write_modules(&modules).unwrap();
        let mut child = Command::new(python())
            .arg("-I")
            .arg(modules.join("supervisor.py"))
            .arg("--workdir")
            .arg(&workdir)
            .args(["--threads", "1"])
            .env("MPLCONFIGDIR", cache_for_fonts())
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .process_group(0)
            .spawn()
            .unwrap();
        let link = Link::open(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let pid = child.id().unwrap();
        let process = Arc::new(Subprocess { child: Mutex::new(child), pid });
        link.greeting().await.unwrap();
        let sandbox = LinkedSandbox::new(link.clone(), SandboxInfo::default(), Arc::clone(&process) as Arc<dyn Enclosure>);
        Self { sandbox, link, process, folder }
    }

    pub fn workdir(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Executes with a generous time limit.
    pub async fn run(&self, code: &str) -> Execution {
        self.run_with(code, &ExecuteOptions { timeout: Duration::from_secs(120), ..ExecuteOptions::default() }).await
    }

    pub async fn run_with(&self, code: &str, options: &ExecuteOptions) -> Execution {
        self.sandbox.execute(code, options, &|_| {}, &CancellationToken::new()).await.unwrap()
    }

    /// Executes and returns what was seen live beside the outcome.
    pub async fn watch(&self, code: &str) -> (Execution, Vec<ExecutionEvent>) {
        let events = std::sync::Mutex::new(Vec::new());
        let options = ExecuteOptions { timeout: Duration::from_secs(120), ..ExecuteOptions::default() };
        let sink = |event| events.lock().unwrap().push(event);
        let execution = self.sandbox.execute(code, &options, &sink, &CancellationToken::new()).await.unwrap();
        (execution, events.into_inner().unwrap())
    }

    pub async fn put(&self, name: &str, data: &[u8]) {
        self.sandbox.put_file(name, &FileSource::Bytes(Arc::from(data)), &|_| {}, &CancellationToken::new()).await.unwrap();
    }

    /// The code ran without an error and printed exactly this.
    pub async fn prints(&self, code: &str, expected: &str) {
        let execution = self.run(code).await;
        assert_eq!(execution.error, None, "{code}");
        assert_eq!(execution.stdout, expected, "{code}");
        assert_eq!(execution.exit_code, 0, "{code}");
    }
}

/// Matplotlib's list of fonts takes seconds to build, so all tests share one.
fn cache_for_fonts() -> PathBuf {
    let folder = std::env::temp_dir().join("codeinterp-tests-matplotlib");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether a process with this exact word in its command line lives.
pub fn lives(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}

/// Waits until a file appears that a cell writes: the way to know that it has come that far.
pub async fn appears(path: &Path) {
    let wait = async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the cell did not come that far");
}
