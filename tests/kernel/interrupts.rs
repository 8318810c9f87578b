//! Timeouts and cancellation, with real waiting code, and the state after each.

use std::time::Duration;

use codeinterp::agent::ports::{ExecuteOptions, Sandbox};
use tokio_util::sync::CancellationToken;

use crate::rig::{Rig, appears, lives};

const STUBBORN: &str = "import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
open('marker', 'w')
while True: pass";

fn seconds(timeout: u64) -> ExecuteOptions {
    ExecuteOptions { timeout: Duration::from_secs(timeout), ..ExecuteOptions::default() }
}

#[tokio::test]
async fn code_that_runs_too_long_is_stopped_and_the_variables_stay() {
    let rig = Rig::start().await;
    rig.run("x = 42").await;
    for code in [
        "import time\nprint('begun')\ntime.sleep(1000)",
        "print('begun')\nwhile True: pass",
        "import numpy as np\na = np.random.rand(200, 200)\nprint('begun')\nwhile True: a @ a",
        "import os\nprint('begun')\nos.system('sleep 98781')",
        "print('begun')\n!sleep 98781",
        "import asyncio\nprint('begun')\nawait asyncio.sleep(1000)",
        "import threading\nprint('begun')\nthreading.Event().wait()",
    ] {
        let execution = rig.run_with(code, &seconds(1)).await;
        assert_eq!(execution.exit_code, -1, "{code}: {:?}", execution.error);
        assert_eq!(execution.error.unwrap().ename, "Timeout", "{code}");
        assert!(execution.stderr.ends_with("Execution timeout"), "{code}: {}", execution.stderr);
        assert_eq!(execution.stdout, "begun\n", "{code}");
        assert!(!execution.variables_lost, "{code}");
        rig.prints("print(x)", "42\n").await;
    }
    assert!(!lives("98781"));
}

#[tokio::test]
async fn code_that_ignores_the_interrupt_loses_its_kernel() {
    let rig = Rig::start().await;
    let execution = rig.run_with(STUBBORN, &seconds(1)).await;
    assert_eq!((execution.exit_code, execution.error.unwrap().ename.as_str()), (-1, "Timeout"));
    assert!(execution.variables_lost);
    rig.prints("import numpy\nprint(1)", "1\n").await;
}

#[tokio::test]
async fn cancelling_ends_the_code_and_says_so() {
    let rig = Rig::start().await;
    for (code, lost) in [("open('marker', 'w')\nwhile True: pass", false), (STUBBORN, true)] {
        let marker = rig.workdir().join("marker");
        let cancel = CancellationToken::new();
        let options = seconds(120);
        let running = rig.sandbox.execute(code, &options, &|_| {}, &cancel);
        let cancelling = async {
            appears(&marker).await;
            cancel.cancel();
        };
        let (execution, ()) = tokio::join!(running, cancelling);
        let execution = execution.unwrap();
        assert_eq!((execution.exit_code, execution.error.unwrap().ename.as_str()), (130, "Interrupted"));
        assert_eq!(execution.variables_lost, lost);
        rig.prints("import os\nos.remove('marker')\nprint('next')", "next\n").await;
    }
}

#[tokio::test]
async fn interrupting_from_outside_ends_the_running_cell_only() {
    let rig = Rig::start().await;
    rig.sandbox.interrupt().await.unwrap();
    rig.prints("print('not touched')", "not touched\n").await;
    let marker = rig.workdir().join("marker");
    let options = seconds(120);
    let cancel = CancellationToken::new();
    let running = rig.sandbox.execute("open('marker', 'w')\nimport time\ntime.sleep(1000)", &options, &|_| {}, &cancel);
    let interrupting = async {
        appears(&marker).await;
        rig.sandbox.interrupt().await.unwrap();
    };
    let (execution, ()) = tokio::join!(running, interrupting);
    let execution = execution.unwrap();
    assert_eq!((execution.exit_code, execution.error.unwrap().ename.as_str()), (130, "Interrupted"));
    rig.prints("print('next')", "next\n").await;
}

#[tokio::test]
async fn code_whose_caller_went_away_is_stopped_before_the_next_begins() {
    let rig = Rig::start().await;
    rig.run("x = 42").await;
    let marker = rig.workdir().join("marker");
    for (code, survives) in [("open('marker', 'w')\nwhile True: pass", true), (STUBBORN, false)] {
        let options = seconds(120);
        let cancel = CancellationToken::new();
        let running = rig.sandbox.execute(code, &options, &|_| {}, &cancel);
        tokio::select! {
            _ = running => panic!("it ended by itself"),
            () = appears(&marker) => {}
        }
        rig.prints("import os\nos.remove('marker')\nprint('next')", "next\n").await;
        assert_eq!(rig.run("x").await.error.is_none(), survives);
    }
}

#[tokio::test]
async fn a_second_execution_waits_for_the_first() {
    let rig = Rig::start().await;
    let (first, second) = tokio::join!(rig.run("import time\nfor i in range(5): print(i); time.sleep(0.02)"), rig.run("print('second')"));
    assert_eq!((first.stdout.as_str(), second.stdout.as_str()), ("0\n1\n2\n3\n4\n", "second\n"));
}
