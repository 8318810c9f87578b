//! What happens to code in a sandbox that is cancelled, suspended, or left running.

use std::time::Duration;

use codeinterp::agent::execution::{ExecutionEvent, StreamName};
use codeinterp::agent::ports::{ExecuteOptions, FileSource};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::support::{block_on, printed, run, start};

/// Executes code that says `here`, and calls `then` at that word.
async fn at_here<F: Future<Output = ()>>(
    sandbox: &std::sync::Arc<dyn codeinterp::agent::ports::Sandbox>,
    code: &str,
    cancel: &CancellationToken,
    then: impl FnOnce() -> F,
) -> codeinterp::agent::execution::Execution {
    let said = Notify::new();
    let sink = |event: ExecutionEvent| {
        if matches!(&event, ExecutionEvent::Stream(StreamName::Stdout, text) if text.contains("here")) {
            said.notify_one();
        }
    };
    let options = ExecuteOptions { timeout: Duration::from_secs(60), ..ExecuteOptions::default() };
    let (execution, ()) = tokio::join!(sandbox.execute(code, &options, &sink, cancel), async {
        said.notified().await;
        then().await;
    });
    execution.unwrap()
}

#[test]
fn cancelled_code_is_dead_inside_with_all_that_it_started() {
    block_on(async {
        let sandbox = start().await;
        let cancel = CancellationToken::new();
        let code = r"
import os, signal, subprocess
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(['setsid', 'sleep', '4711'])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: pass
    os._exit(0)
print('here', flush=True)
while True: pass
";
        let execution = at_here(&sandbox, code, &cancel, || async { cancel.cancel() }).await;
        assert_eq!((execution.exit_code, execution.error.unwrap().ename.as_str()), (130, "Interrupted"));
        let left = r"
import os
commands = [open(f'/proc/{pid}/cmdline', 'rb').read() for pid in os.listdir('/proc') if pid.isdigit()]
print(sum(b'4711' in command for command in commands), len(commands))
";
        // The supervisor, the processes that fork kernels, and the new kernel.
        let text = printed(&sandbox, left).await;
        let (sleeping, all) = text.trim().split_once(' ').unwrap();
        assert!(sleeping == "0" && all.parse::<u32>().unwrap() <= 4, "{text}");
        sandbox.stop().await;
    });
}

#[test]
fn a_suspended_sandbox_goes_on_where_it_was() {
    block_on(async {
        let sandbox = start().await;
        // Found by a secret word: ids inside are others than outside.
        let word = uuid::Uuid::new_v4().simple().to_string();
        let code = format!(
            "import os, subprocess, time
child = subprocess.Popen(['sleep', '600'], env={{'WORD': '{word}'}})
print('here', flush=True)
while not os.path.exists('go'): time.sleep(0.005)
child.kill()
print('ended', child.wait())"
        );
        let never = CancellationToken::new();
        let execution = at_here(&sandbox, &code, &never, || async {
            let processes = family(&word);
            assert!(processes.len() >= 3, "sleep, kernel and supervisor: {processes:?}");
            for pid in &processes {
                kill(*pid, Signal::SIGSTOP).unwrap();
            }
            let file = FileSource::Bytes(std::sync::Arc::from(&b"x"[..]));
            let mut put = sandbox.put_file("go", &file, &|_| (), &never);
            let early = tokio::time::timeout(Duration::from_millis(300), &mut put).await;
            assert!(early.is_err(), "a suspended supervisor answered: {early:?}");
            for pid in processes.iter().rev() {
                kill(*pid, Signal::SIGCONT).unwrap();
            }
            put.await.unwrap();
        })
        .await;
        assert_eq!(execution.stdout, "here\nended -9\n", "{:?}", execution.error);
        assert_eq!(printed(&sandbox, "print(child.returncode)").await.trim(), "-9");
        sandbox.stop().await;
    });
}

/// The process with this word in its environment, and its forebears up to the sandbox's first process.
fn family(word: &str) -> Vec<Pid> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_word =
        |pid: &i32| std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| String::from_utf8_lossy(&text).contains(word));
    let mut found: Vec<i32> = pids.filter(has_word).collect();
    while let Some(parent) = found.last().and_then(|pid| parent_inside(*pid)) {
        found.push(parent);
    }
    found.into_iter().map(Pid::from_raw).collect()
}

/// The parent, where it is in a process namespace of its own too (`NSpid` of proc(5) has several numbers then).
fn parent_inside(pid: i32) -> Option<i32> {
    let status = |pid: i32, name: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
    };
    let parent: i32 = status(pid, "PPid:")?.parse().ok()?;
    (status(parent, "NSpid:")?.split_whitespace().count() > 1).then_some(parent)
}

#[test]
fn late_output_of_background_work_belongs_to_no_later_step() {
    block_on(async {
        let sandbox = start().await;
        let code = r"
import os, subprocess, threading, time
def late():
    while not os.path.exists('go'): time.sleep(0.005)
    print('late thread', flush=True); os.mkdir('gone')
threading.Thread(target=late).start()
child = subprocess.Popen('until [ -d gone ]; do sleep 0.01; done; echo late child', shell=True)
";
        assert_eq!(run(&sandbox, code).await.stdout, "");
        assert_eq!(printed(&sandbox, "open('go', 'w').close(); child.wait(); print('mine')").await, "mine\n");
        sandbox.restart_kernel().await.unwrap();
        assert_eq!(printed(&sandbox, "print('new')").await, "new\n");
        sandbox.stop().await;
    });
}
