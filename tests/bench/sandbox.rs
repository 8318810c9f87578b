//! Sandboxes from inside the library: start, round trip, output, files, new kernel, teardown, memory; beside
//! `jupyter_client` with ipykernel on the host, and beside the plainest use of the same engine and image.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use codeinterp::agent::ports::{ExecuteOptions, FileSource, KernelState, Sandbox};
use codeinterp::app::App;
use codeinterp::config::{self, BackendChoice, Overrides};
use codeinterp::sandbox::{Backend, StartRequest};
use codeinterp::session::Services;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::stream;
use crate::table::{Row, Samples, Unit};

const STARTS: usize = 10;
const ROUND_TRIPS: usize = 300;
const KERNELS: usize = 10;
const COPIES: usize = 3;
const COPY_BYTES: usize = 200_000_000;
/// Bytes of the figure below in base64.
const FIGURE_BYTES: usize = 6_666_680;
// The same code runs in the peer: see peer.py.
const FLOOD: &str = "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65535 + '\\n')";
const FIGURE: &str = "import os, IPython.display\n\
    IPython.display.display({'image/png': __import__('base64').b64encode(\
    b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(5_000_000)).decode()}, raw=True)";
const STACK: &str = "import numpy, pandas, matplotlib.pyplot as plt; pandas.DataFrame({'a': [1]})";
/// The Python of our image.
const PYTHON: &str = "/opt/codeinterp/venv/bin/python";
/// The plainest thing that keeps variables: reads a line, runs it, says that it is done.
const BARE_LOOP: &str = "import sys\nscope = {}\nfor line in sys.stdin:\n    print(eval(line, scope), flush=True)\n";

/// The peer's samples, measured by peer.py.
pub struct Peer(Value);

impl Peer {
    /// Runs the peer's measurements; takes about ten seconds.
    pub fn measure(python: &Path) -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/peer.py");
        let output = Command::new(python).arg(script).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "peer.py failed; its message is above");
        Ok(Self(serde_json::from_slice(&output.stdout).context("peer.py did not print JSON")?))
    }

    fn samples(&self, name: &str) -> Samples {
        let values = self.0[name].as_array().map(Vec::as_slice).unwrap_or_default();
        Samples(values.iter().filter_map(Value::as_f64).collect())
    }
}

/// Everything measured about one backend.
pub async fn rows(choice: BackendChoice, peer: &Peer) -> Result<Vec<Row>> {
    // The environment says which base image the engine has.
    let mut settings = config::load(&Overrides::default(), &Overrides::default())?;
    settings.sandbox.backend = choice;
    let (backend, _) = App::new().backend(&settings).await?;
    let (backend, name) = (&*backend, backend.name());
    let request =
        StartRequest { workspace: format!("bench-{}", std::process::id()), settings: settings.sandbox, ..StartRequest::default() };
    backend.provision(&request.settings, &|_| {}, &CancellationToken::new()).await?;

    let (mut starts, mut stops) = (Samples::default(), Samples::default());
    for _ in 0..STARTS {
        let began = Instant::now();
        let sandbox = start(backend, &request).await?;
        execute(&*sandbox, "1 + 1").await?;
        starts.push(began.elapsed());
        let began = Instant::now();
        sandbox.stop().await;
        stops.push(began.elapsed());
    }

    let claims = claims(backend, &request).await?;
    let sandbox = start(backend, &request).await?;
    execute(&*sandbox, STACK).await?;
    let idle = sandbox.usage().await.memory_bytes;
    let round_trips = repeat(&*sandbox, "1 + 1", ROUND_TRIPS).await?;
    let figures = repeat(&*sandbox, FIGURE, peer.samples("figure").0.len()).await?;
    let before = own_memory()?;
    let floods = repeat(&*sandbox, FLOOD, peer.samples("flood").0.len()).await?;
    let grown = (own_memory()? - before).max(0.0);

    let mut kernels = Samples::default();
    for _ in 0..KERNELS {
        let began = Instant::now();
        sandbox.restart_kernel().await?;
        execute(&*sandbox, STACK).await?;
        kernels.push(began.elapsed());
    }

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("large.bin");
    std::fs::write(&file, vec![b'x'; COPY_BYTES])?;
    let mut puts = Samples::default();
    for _ in 0..COPIES {
        // The scratch folder does not hold many of them.
        execute(&*sandbox, "import pathlib; pathlib.Path('large.bin').unlink(missing_ok=True)").await?;
        let began = Instant::now();
        sandbox.put_file("large.bin", &FileSource::Path(file.clone()), &|_| {}, &CancellationToken::new()).await?;
        puts.push(began.elapsed());
    }
    let image = sandbox.info().image;
    sandbox.stop().await;

    let time = |what: &str, ours, peer: Option<(&'static str, Samples)>, target| Row {
        peer,
        ..Row::alone(format!("{name}: {what}"), Unit::Time, ours, target)
    };
    let plain = if name == "docker" { Some(Plain::measure(&image, &file)?) } else { None };
    let floor = match &plain {
        Some(_) => Some(stream::measure(&image, PYTHON, ROUND_TRIPS, COPY_BYTES, FIGURE_BYTES).await?),
        None => None,
    };
    let (loops, copies, removals, imports) = match plain {
        Some(plain) => (
            Some(("bare loop, same image", plain.first)),
            Some(("docker cp", plain.copies)),
            Some(("docker rm -f", plain.removals)),
            ("cold import, same image", plain.imports),
        ),
        None => (None, None, None, ("ipykernel's import", peer.samples("imports"))),
    };
    let mut rows = vec![
        time("start → first executed cell", starts, loops.clone(), if loops.is_some() { 1.5 } else { 0.5 }),
        Row::alone(format!("{name}: warmed sandbox: claim → first result"), Unit::Time, claims, 0.010),
        time("round trip of `1 + 1`", round_trips, Some(("ipykernel", peer.samples("round_trip"))), 0.25),
        time("100 MB of stdout", floods, Some(("ipykernel", peer.samples("flood"))), 0.5),
        time("a figure of 5 MB", figures, Some(("ipykernel", peer.samples("figure"))), 1.0),
        time("new kernel with the data stack", kernels, Some(imports), 0.05),
        time("put a file of 200 MB", puts, copies.clone(), 1.0),
        time("teardown", stops, removals.clone(), if removals.is_some() { 2.0 } else { 0.1 }),
        Row::alone(format!("{name}: our memory grown by 500 MB of stdout"), Unit::Memory, Samples(vec![grown]), 50e6),
    ];
    if let Some(floor) = floor {
        // What the same targets would mean with nothing of ours at either end.
        rows.push(time("its bare stream: a line and back", floor.round_trips, Some(("ipykernel", peer.samples("round_trip"))), 0.25));
        rows.push(time("its bare stream: the bytes of the figure", floor.gets, Some(("ipykernel", peer.samples("figure"))), 1.0));
        rows.push(time("its bare stream: the bytes of the file", floor.puts, copies, 1.0));
    }
    if let Some(bytes) = idle {
        #[allow(clippy::cast_precision_loss)]
        rows.push(Row::beside(
            format!("{name}: memory of an idle sandbox"),
            Unit::Memory,
            Samples(vec![bytes as f64]),
            ("ipykernel", Samples(peer.0["idle_bytes"].as_f64().into_iter().collect())),
            1.2,
        ));
    }
    Ok(rows)
}

/// From the wish to run code in a sandbox that waits warm to its first result.
async fn claims(backend: &dyn Backend, request: &StartRequest) -> Result<Samples> {
    let mut claims = Samples::default();
    for _ in 0..STARTS {
        let sandbox = start(backend, request).await?;
        while sandbox.kernel_state() != KernelState::Idle {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let began = Instant::now();
        execute(&*sandbox, "1 + 1").await?;
        claims.push(began.elapsed());
        sandbox.stop().await;
    }
    Ok(claims)
}

async fn start(backend: &dyn Backend, request: &StartRequest) -> Result<Arc<dyn Sandbox>> {
    Ok(backend.start(request, &|_| {}, &CancellationToken::new()).await?)
}

async fn execute(sandbox: &dyn Sandbox, code: &str) -> Result<()> {
    let options = ExecuteOptions { timeout: Duration::from_secs(120), ..ExecuteOptions::default() };
    let execution = sandbox.execute(code, &options, &|_| {}, &CancellationToken::new()).await?;
    ensure!(execution.exit_code == 0, "{code} failed: {:?}", execution.error);
    Ok(())
}

async fn repeat(sandbox: &dyn Sandbox, code: &str, times: usize) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..times {
        let began = Instant::now();
        execute(sandbox, code).await?;
        samples.push(began.elapsed());
    }
    Ok(samples)
}

/// The engine by hand: what our Docker backend is measured against.
struct Plain {
    /// `docker run` to the first evaluated line.
    first: Samples,
    copies: Samples,
    removals: Samples,
    /// A new Python that imports the data stack, in a container that runs.
    imports: Samples,
}

impl Plain {
    fn measure(image: &str, file: &Path) -> Result<Self> {
        let mut first = Samples::default();
        for _ in 0..STARTS {
            let began = Instant::now();
            let mut child = docker(&["run", "-i", "--rm", "--network", "none", "--entrypoint", PYTHON, image, "-I", "-c", BARE_LOOP])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let mut input = child.stdin.take().context("no stdin")?;
            writeln!(input, "1 + 1")?;
            let mut answer = String::new();
            BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut answer)?;
            first.push(began.elapsed());
            ensure!(answer.trim() == "2", "the bare loop said {answer:?}");
            drop(input);
            child.wait()?;
        }
        let (mut copies, mut removals, mut imports) = (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..COPIES {
            let sleeping = ["run", "-d", "--rm", "--network", "none", "--entrypoint", PYTHON, image, "-c", "import time; time.sleep(600)"];
            let output = docker(&sleeping).stdout(Stdio::piped()).output()?;
            let id = String::from_utf8(output.stdout)?.trim().to_owned();
            let host = file.display().to_string();
            imports.push(timed(&mut docker(&["exec", &id, PYTHON, "-c", STACK]))?);
            copies.push(timed(&mut docker(&["cp", &host, &format!("{id}:/tmp/large.bin")]))?);
            removals.push(timed(&mut docker(&["rm", "-f", &id]))?);
        }
        Ok(Self { first, copies, removals, imports })
    }
}

fn docker(arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

fn timed(command: &mut Command) -> Result<Duration> {
    let began = Instant::now();
    let status = command.status()?;
    ensure!(status.success(), "{command:?} failed");
    Ok(began.elapsed())
}

/// Our own resident memory (`VmRSS` of proc(5)), in bytes.
fn own_memory() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("no number in VmRSS")?.parse()?;
    Ok(kilobytes * 1024.0)
}
