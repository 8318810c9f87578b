//! An engine that is restarted, or killed and started again: an engine of the tests' own, beside the one that others use.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use codeinterp::agent::events::RunEvent;
use codeinterp::agent::ports::{FileSource, Model, ModelError, SandboxError};
use codeinterp::agent::run::Run;
use codeinterp::config::Settings;
use codeinterp::sandbox::Backend;
use codeinterp::sandbox::consent::Consent;
use codeinterp::sandbox::docker::DockerBackend;
use codeinterp::sandbox::docker::engine::Engine;
use codeinterp::session::{RunFile, RunKind, RunRequest, Services, Session};
use tempfile::TempDir;

use crate::support::{request, start, wait_gone};

/// Time for an engine to answer, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);

/// Packages that these tests need not copy into the store of a second engine.
const LEFT_OUT: [&str; 10] =
    ["*polars*", "*pyarrow*", "*duckdb*", "*scipy*", "*plotly*", "*statsmodels*", "*sklearn*", "*jedi*", "*fontTools*", "./usr/share/*"];

/// An engine with a socket and a store of its own.
struct OwnEngine {
    folder: TempDir,
    daemon: Mutex<Child>,
}

impl OwnEngine {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let daemon = Mutex::new(daemon(folder.path()));
        let engine = Self { folder, daemon };
        engine.answers().await;
        engine
    }

    fn address(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.path().display())
    }

    async fn answers(&self) -> Engine {
        let answer = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(100));
            loop {
                ticks.tick().await;
                if let Ok(engine) = Engine::at(&self.address(), Duration::from_secs(10)).await {
                    return engine;
                }
                let ended = self.daemon.lock().unwrap().try_wait().expect("its state");
                assert!(ended.is_none(), "dockerd ended: {}", self.log());
            }
        };
        tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| panic!("dockerd does not answer: {}", self.log()))
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines().rev().take(10).collect::<Vec<_>>().join("\n")
    }

    /// Ends it by a signal, and starts it again.
    async fn restart(&self, signal: &str) {
        self.end(signal);
        self.containerd_ends().await;
        *self.daemon.lock().unwrap() = daemon(self.folder.path());
        self.answers().await;
    }

    /// The engine's own helper dies with it. Where nobody waits for that process, it still has its number, by which the next
    /// engine would take it for one that lives.
    async fn containerd_ends(&self) {
        let file = self.folder.path().join("exec/containerd/containerd.pid");
        let Ok(pid) = std::fs::read_to_string(&file) else { return };
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z ")) {
            ticks.tick().await;
        }
        std::fs::remove_file(&file).expect("its number is removed");
    }

    fn end(&self, signal: &str) {
        let mut daemon = self.daemon.lock().unwrap();
        let sent = Command::new("kill").args([signal, &daemon.id().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "the engine had ended before");
        daemon.wait().expect("it has ended");
    }

    /// Copies an image of the usual engine, without what is large and not needed here.
    fn take_image(&self, tag: &str) {
        let mut export = Command::new("docker");
        export.args(["run", "--rm", "--network", "none", "--user", "0", "--entrypoint", "tar", tag, "-c", "-C", "/"]);
        export.args(["./proc", "./sys", "./dev"].map(|folder| format!("--exclude={folder}/*")));
        export.args(LEFT_OUT.map(|name| format!("--exclude={name}"))).arg(".");
        let mut export = export.stdout(Stdio::piped()).spawn().expect("docker runs");
        let from = export.stdout.take().expect("its output");
        let imported = Command::new("docker").args(["-H", &self.address(), "import", "-", tag]).stdin(from).stdout(Stdio::null()).status();
        assert!(imported.expect("docker runs").success(), "the image was not imported");
        assert!(export.wait().expect("it has ended").success(), "the image was not exported");
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end("-TERM");
        }
        self.clear();
    }
}

impl OwnEngine {
    /// Ends what is left, which is nothing but mounts unless a test has failed: such a test says why, and nothing here hides that.
    fn clear(&self) {
        let folder = self.folder.path().display().to_string();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&command).contains(&folder) {
                let _ = Command::new("kill").arg("-KILL").arg(entry.file_name()).status();
            }
        }
        if let Ok(mut daemon) = self.daemon.lock() {
            let _ = daemon.wait();
        }
        // Its store is a mount of its own, beside those of containers that it did not end.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for place in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)).filter(|place| place.starts_with(&folder)) {
            let _ = Command::new("umount").args(["--lazy", place]).status();
        }
    }
}

fn daemon(folder: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    // One that was killed has left its number.
    let _ = std::fs::remove_file(folder.join("pid"));
    let place = |name: &str| folder.join(name).display().to_string();
    // In a network of its own: an engine without a bridge removes the one that it finds, which is the other engine's.
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "dockerd"]);
    command.args(["--host", &format!("unix://{}", place("docker.sock")), "--pidfile", &place("pid")]);
    command.args(["--data-root", &place("data"), "--exec-root", &place("exec"), "--config-file", &place("none.json")]);
    command.args(["--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]);
    std::fs::write(folder.join("none.json"), "{}").expect("it is written");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    command.spawn().expect("dockerd runs: bash tests/setup/docker.sh")
}

/// Sessions on that engine, without a model.
struct OnEngine {
    backend: Arc<DockerBackend>,
    state: TempDir,
}

#[async_trait]
impl Services for OnEngine {
    async fn backend(&self, _: &Settings) -> Result<(Arc<dyn Backend>, String), SandboxError> {
        Ok((Arc::clone(&self.backend) as Arc<dyn Backend>, "Sandbox: a container of another engine.".to_owned()))
    }

    fn model(&self, settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        codeinterp::llm::connect(settings)
    }

    fn state_dir(&self) -> std::path::PathBuf {
        self.state.path().to_owned()
    }

    fn ask(&self, _: Arc<dyn Consent>) {}
}

/// Runs code about one file to its end. `seen` sees what happens.
async fn run(session: &Session, code: &str, seen: impl Fn(&RunEvent) + Send + Sync + 'static) -> Arc<Run> {
    let (sender, ended) = tokio::sync::oneshot::channel();
    let sender = Mutex::new(Some(sender));
    let events = move |event: &RunEvent| {
        seen(event);
        if let RunEvent::Concluded { .. } = event
            && let Some(sender) = sender.lock().unwrap().take()
        {
            let _ = sender.send(());
        }
    };
    let data = FileSource::Bytes(b"a\n1\n".as_slice().into());
    let file = RunFile { name: "data.csv".to_owned(), source: data, origin: "data.csv".to_owned() };
    let handle = session.submit(RunRequest::new(RunKind::Code { code: code.to_owned() }, vec![file]), Arc::new(events));
    tokio::time::timeout(PATIENCE * 2, ended).await.expect("the run ends").expect("it is told");
    session.run(&handle.id).expect("its record")
}

#[tokio::test]
async fn an_engine_that_is_restarted_or_killed_costs_the_variables_and_nothing_else() {
    let usual_bridge = || Path::new("/sys/class/net/docker0").exists();
    let before = usual_bridge();
    let engine = OwnEngine::start().await;
    let ready = start("restart-image").await;
    engine.take_image(&ready.info().image);
    ready.stop().await;

    let backend = Arc::new(DockerBackend::at(&engine.address(), Duration::from_secs(30)));
    let services = Arc::new(OnEngine { backend, state: tempfile::tempdir().expect("a folder") });
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { sandbox: request("restart").settings, ..Settings::default() };
    let session = Session::open(folder.path(), services, settings);
    let first = run(&session, "x = 41\nprint(x + 1)", |_| ()).await;
    assert_eq!(first.steps.last().map(|step| step.stdout.as_str()), Some("42\n"), "{first:?}");

    // Between two runs, as by an update: the next one says what is gone, and finds its file.
    engine.restart("-TERM").await;
    let next = run(&session, "print(open('data.csv').read().split())\nprint('x' in globals())", |_| ()).await;
    assert_eq!(next.steps.last().map(|step| step.stdout.as_str()), Some("['a', '1']\nFalse\n"), "{next:?}");
    assert!(next.notices.iter().any(|notice| notice.contains("the variables of earlier runs are gone")), "{:?}", next.notices);

    // In the middle of a cell, without a word: told by that cell's outcome, and a new container follows with the file.
    let (begun, running) = tokio::sync::oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let seen = move |event: &RunEvent| {
        if format!("{event:?}").contains("so far")
            && let Some(begun) = begun.lock().unwrap().take()
        {
            let _ = begun.send(());
        }
    };
    let code = "import time\nprint('so', 'far', flush=True)\ntime.sleep(600)";
    let killing = async {
        running.await.expect("it runs");
        engine.restart("-KILL").await;
    };
    let (broken, ()) = tokio::join!(run(&session, code, seen), killing);
    let error = broken.steps.last().and_then(|step| step.error.clone()).expect("the cell failed");
    assert_eq!(error.ename, "KernelDied");
    assert!(error.evalue.contains("the Docker engine went away") && error.evalue.contains("all variables are lost"), "{}", error.evalue);
    assert!(session.status().await.state != "stopped", "no container followed");
    let last = run(&session, "print(open('data.csv').read().split(), 6 * 7)", |_| ()).await;
    assert_eq!(last.steps.last().map(|step| step.stdout.as_str()), Some("['a', '1'] 42\n"), "{last:?}");

    session.close().await;
    let workspace = session.store().workspace().to_owned();
    assert!(wait_gone(&engine.answers().await, &workspace).await, "a container was left");
    assert_eq!(usual_bridge(), before, "the other engine's network was touched");
}
