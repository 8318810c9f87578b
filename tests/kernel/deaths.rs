//! Ends of the kernel, of the zygote and of the supervisor, and what comes after.

use std::time::Duration;

use codeinterp::agent::ports::{ExecuteOptions, KernelState, Sandbox, SandboxError};
use codeinterp::sandbox::link::{LinkEvent, LinkState};
use tokio_util::sync::CancellationToken;

use crate::rig::{Rig, appears, lives};

#[tokio::test]
async fn a_dead_kernel_is_told_with_its_cause_and_another_serves_at_once() {
    let rig = Rig::start().await;
    let mut events = rig.link.events();
    for (code, exit_code, words) in [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 139, "SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", 137, "SIGKILL"),
        ("import os; os.abort()", 134, "SIGABRT"),
        ("import os; os._exit(5)", 5, "code 5"),
        ("import os; os._exit(0)", 1, "code 0"),
        ("import os; os.closerange(3, 4096)", 1, "code 1"),
        ("import os; os.execv('/bin/true', ['true'])", 1, "code 0"),
        // The channel closes long before the end.
        ("import os; os.execv('/bin/sh', ['sh', '-c', 'sleep 0.5; exit 7'])", 7, "code 7"),
        ("import os; os.execv('/bin/sleep', ['sleep', '1000'])", 137, "closed its channel"),
        // Whoever reports the end is stopped before.
        ("import os, signal; os.kill(os.getppid(), signal.SIGSTOP); os._exit(6)", 6, "code 6"),
    ] {
        rig.run("x = 1\nprint('alive', flush=True)").await;
        let execution = rig.run(&format!("print('last words')\n{code}")).await;
        let error = execution.error.unwrap();
        assert_eq!(error.ename, "KernelDied", "{code}");
        assert_eq!(execution.exit_code, exit_code, "{code}: {}", error.evalue);
        assert!(error.evalue.contains(words), "{code}: {}", error.evalue);
        assert!(execution.variables_lost);
        assert_eq!(rig.run("x").await.error.unwrap().ename, "NameError", "{code}");
        rig.prints("import pandas\nprint(pandas.Series([1, 2]).sum())", "3\n").await;
    }
    let mut deaths = 0;
    while let Ok(event) = events.try_recv() {
        deaths += u32::from(matches!(event, LinkEvent::KernelDied { during: Some(_), .. }));
    }
    assert_eq!(deaths, 10);
}

#[tokio::test]
async fn variables_asked_for_right_after_a_death_are_those_of_the_new_kernel() {
    let rig = Rig::start().await;
    // Before the first cell there is no kernel either.
    assert_eq!(rig.sandbox.variables(None).await, Ok(Vec::new()));
    for _ in 0..5 {
        rig.run("x = 1").await;
        assert_eq!(rig.sandbox.variables(None).await.unwrap().len(), 1);
        assert!(rig.run("import os; os._exit(5)").await.variables_lost);
        assert_eq!(rig.sandbox.variables(None).await, Ok(Vec::new()));
    }
}

#[tokio::test]
async fn what_a_dying_cell_printed_and_wrote_is_kept() {
    let rig = Rig::start().await;
    let execution = rig.run("open('made.csv', 'w').write('x')\nprint('before', flush=True)\nimport os\nos.abort()").await;
    assert_eq!(execution.stdout, "before\n");
    assert_eq!(execution.files.len(), 1);
}

#[tokio::test]
async fn background_children_die_with_their_kernel() {
    let rig = Rig::start().await;
    // Other test runs on this machine have children of their own: these are told by this process' id.
    let word = |number: u32| format!("9{:07}{number}", std::process::id());
    let (first, second, third, fourth, all) = (word(1), word(2), word(3), word(4), format!("9{:07}", std::process::id()));
    let code = format!(
        "import subprocess
subprocess.Popen(['sleep', '{first}'])
subprocess.Popen(['setsid', 'sleep', '{second}'])
subprocess.Popen('setsid sh -c \"setsid sleep {third} & sleep {fourth}\" &', shell=True)
{}",
        waits_for(&all, 4)
    );
    let execution = rig.run(&code).await;
    assert_eq!(execution.exit_code, 0, "{:?}", execution.error);
    assert!(lives(&third));
    rig.sandbox.restart_kernel().await.unwrap();
    for word in [first, second, third, fourth] {
        assert!(!lives(&word), "{word}");
    }
}

#[tokio::test]
async fn children_that_fork_on_and_on_into_sessions_of_their_own_die_with_their_kernel() {
    let rig = Rig::start().await;
    let word = format!("chain-{}", std::process::id());
    // Each generation lives for less than a millisecond: whoever is found in a list may have a successor already.
    let code = format!(
        "import subprocess, sys
chain = 'import os\\nwhile True:\\n    if os.fork(): os._exit(0)\\n    os.setsid()'
for _ in range(3): subprocess.Popen([sys.executable, '-I', '-S', '-c', chain, '{word}'])
{}",
        waits_for(&word, 1)
    );
    for end in ["restart", "death"] {
        let execution = rig.run(&code).await;
        assert_eq!(execution.exit_code, 0, "{:?}", execution.error);
        if end == "restart" {
            rig.sandbox.restart_kernel().await.unwrap();
        } else {
            assert!(rig.run("import os; os._exit(4)").await.error.unwrap().evalue.contains("code 4"));
        }
        rig.prints("print('again')", "again\n").await;
        assert!(!lives(&word), "{end}");
    }
}

/// Code that waits until so many processes with this text in their command lines live.
fn waits_for(text: &str, count: usize) -> String {
    format!(
        "import os, time
def command(pid):
    try: return open(f'/proc/{{pid}}/cmdline', 'rb').read()
    except OSError: return b''  # It has ended in between.
while len([pid for pid in os.listdir('/proc') if pid.isdigit() and b'{text}' in command(pid)]) < {count}: time.sleep(0.01)"
    )
}

#[tokio::test]
async fn closing_the_pipe_ends_everything() {
    let rig = Rig::start().await;
    let code =
        "import subprocess, os\nsubprocess.Popen(['setsid', 'sleep', '98771'])\nprint(os.getpid())\nopen('marker', 'w')\nwhile True: pass";
    let marker = rig.workdir().join("marker");
    let mut state = rig.link.state();
    let Rig { sandbox, link, process, .. } = rig;
    let sandbox = std::sync::Arc::new(sandbox);
    let running = tokio::spawn({
        let sandbox = std::sync::Arc::clone(&sandbox);
        async move {
            let options = ExecuteOptions { timeout: Duration::from_secs(120), ..ExecuteOptions::default() };
            sandbox.execute(code, &options, &|_| {}, &CancellationToken::new()).await
        }
    });
    appears(&marker).await;
    running.abort();
    let _ = running.await;
    drop((sandbox, link));
    // The supervisor closes its own end when it is through.
    let closed = state.wait_for(|state| matches!(state, LinkState::Closed(_)));
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap().unwrap();
    assert!(!lives("98771"));
    drop(process);
}

#[tokio::test]
async fn user_code_that_kills_the_zygote_or_the_supervisor_is_noticed() {
    let rig = Rig::start().await;
    rig.run("1").await;
    let execution = rig.run("import os, signal; os.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass").await;
    assert_eq!(execution.error.unwrap().ename, "KernelDied");
    rig.prints("print('again')", "again\n").await;
    let options = ExecuteOptions::default();
    let code = format!("import os, signal; os.kill({}, signal.SIGKILL)\nimport time; time.sleep(100)", rig.process.pid);
    let gone = rig.sandbox.execute(&code, &options, &|_| {}, &CancellationToken::new()).await;
    assert!(matches!(gone, Err(SandboxError::Gone(_))), "{gone:?}");
    assert_eq!(rig.sandbox.kernel_state(), KernelState::Dead);
    let next = rig.sandbox.execute("1", &options, &|_| {}, &CancellationToken::new()).await;
    assert!(matches!(next, Err(SandboxError::Gone(_))), "{next:?}");
}
