//! Start and end, in every way that things end, and what is left: nothing.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use codeinterp::agent::ports::{ExecuteOptions, Sandbox, SandboxError};
use codeinterp::sandbox::{Backend, Mount, StartRequest};
use tokio_util::sync::CancellationToken;

use crate::support::{backend, block_on, cache, printed, request, run, start, start_with, try_start};

/// Host process ids of the supervisor of this test's sandboxes, by the workspace that the monitor's argument names.
fn monitors(workspace: &str) -> BTreeSet<i32> {
    let needle = format!("\"workspace\":\"{workspace}\"");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&needle))
        })
        .collect()
}

fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn cgroups() -> BTreeSet<PathBuf> {
    fn look(folder: &std::path::Path, found: &mut BTreeSet<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()) {
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("codeinterp-")) {
                found.insert(path);
            } else {
                look(&path, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    look("/sys/fs/cgroup".as_ref(), &mut found);
    found
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn named(workspace: &str) -> StartRequest {
    StartRequest { workspace: workspace.to_owned(), ..request() }
}

/// Seconds in which everything of a dead server must be gone.
const GONE: i32 = 2;

/// Waits until a process is gone, by a descriptor that becomes readable then.
fn wait_gone(pid: i32, seconds: i32) -> bool {
    // SAFETY: plain system calls; the descriptor is closed again.
    unsafe {
        let fd = i32::try_from(libc::syscall(libc::SYS_pidfd_open, pid, 0)).unwrap();
        if fd < 0 {
            return true;
        }
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let ready = libc::poll(&raw mut poll, 1, seconds * 1000);
        libc::close(fd);
        ready == 1
    }
}

fn kill(pid: i32) {
    // SAFETY: plain system call.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

#[test]
fn a_stopped_sandbox_leaves_nothing() {
    block_on(async {
        let sandbox = start_with(&backend(), &named("stopped")).await;
        printed(&sandbox, "import subprocess\np = subprocess.Popen(['sleep', '600'], start_new_session=True)").await;
        let monitor = *monitors("stopped").first().unwrap();
        let supervisor = children(monitor)[0];
        sandbox.stop().await;
        assert!(wait_gone(supervisor, GONE) && wait_gone(monitor, GONE));
        assert!(monitors("stopped").is_empty());
        assert!(matches!(
            sandbox.execute("1", &ExecuteOptions::default(), &|_| (), &CancellationToken::new()).await,
            Err(SandboxError::Gone(_))
        ));
    });
}

#[test]
fn a_dropped_sandbox_ends() {
    block_on(async {
        let sandbox = start_with(&backend(), &named("dropped")).await;
        let monitor = *monitors("dropped").first().unwrap();
        drop(sandbox);
        assert!(wait_gone(monitor, GONE));
    });
}

/// Starts the test `child_that_is_killed` of this same program as a process of its own, and waits until it has a sandbox.
fn server(workspace: &str) -> std::process::Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifecycle::child_that_is_killed", "--ignored", "--nocapture"])
        .env("CODEINTERP_TEST_WORKSPACE", workspace)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("sandbox is up"))), "the child has no sandbox");
    child
}

#[test]
#[ignore = "the process that other tests start and kill"]
fn child_that_is_killed() {
    block_on(async {
        let sandbox = start_with(&backend(), &named(&std::env::var("CODEINTERP_TEST_WORKSPACE").unwrap())).await;
        printed(&sandbox, "import subprocess\np = subprocess.Popen(['sleep', '600'], start_new_session=True)").await;
        println!("sandbox is up");
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_server_killed_with_kill_9_takes_its_sandbox_with_it() {
    let mut server = server("killed-server");
    let monitor = *monitors("killed-server").first().unwrap();
    let supervisor = children(monitor)[0];
    let before = cgroups();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(wait_gone(supervisor, GONE) && wait_gone(monitor, GONE));
    assert!(monitors("killed-server").is_empty());
    let ours = before.difference(&cgroups()).count();
    assert!(ours > 0 || before.is_empty(), "its control groups are still there");
}

#[test]
fn a_killed_monitor_takes_the_sandbox_with_it_and_the_next_start_cleans_up() {
    block_on(async {
        let sandbox = start_with(&backend(), &named("killed-monitor")).await;
        let monitor = *monitors("killed-monitor").first().unwrap();
        let supervisor = children(monitor)[0];
        let records = || {
            let folder = codeinterp::sandbox::process::record::folder(&cache());
            std::fs::read_dir(folder)
                .unwrap()
                .flatten()
                .filter(|entry| std::fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("killed-monitor")))
                .count()
        };
        assert_eq!(records(), 1);
        kill(monitor);
        assert!(wait_gone(supervisor, GONE));
        assert!(matches!(
            sandbox.execute("1", &ExecuteOptions::default(), &|_| (), &CancellationToken::new()).await,
            Err(SandboxError::Gone(_))
        ));
        // Any start cleans up, also one of a test beside this one.
        start_with(&backend(), &named("after")).await.stop().await;
        assert_eq!(records(), 0);
    });
}

#[test]
fn a_killed_supervisor_is_told_with_its_cause() {
    block_on(async {
        let sandbox = start_with(&backend(), &named("killed-supervisor")).await;
        let supervisor = children(*monitors("killed-supervisor").first().unwrap())[0];
        kill(supervisor);
        let error = sandbox.execute("1", &ExecuteOptions::default(), &|_| (), &CancellationToken::new()).await.unwrap_err();
        assert!(matches!(&error, SandboxError::Gone(reason) if reason.contains("killed")), "{error:?}");
    });
}

#[test]
fn two_sandboxes_of_one_workspace_do_not_touch_each_other() {
    block_on(async {
        let (first, second) = (start().await, start().await);
        printed(&first, "x = 'first'; open('only-first.txt', 'w').write('1')").await;
        assert_eq!(printed(&second, "import os; print('x' in globals(), os.path.exists('only-first.txt'))").await.trim(), "False False");
        first.stop().await;
        assert_eq!(printed(&second, "print(1 + 1)").await.trim(), "2");
        second.stop().await;
    });
}

#[test]
fn a_large_file_is_seen_read_only_in_its_place() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("big.csv");
        std::fs::write(&host, "a,b\n1,2\n").unwrap();
        let mount = |host: &std::path::Path, name: &str| StartRequest {
            mounts: vec![Mount { host: host.to_owned(), name: name.to_owned() }],
            ..request()
        };
        let sandbox = start_with(&backend(), &mount(&host, "data/big one.csv")).await;
        let code = "
print(open('data/big one.csv').read())
for do in (lambda: open('data/big one.csv', 'a'), lambda: __import__('os').unlink('data/big one.csv')):
    try:
        do(); print('done')
    except OSError as error:
        print(error.strerror)
open('data/beside.txt', 'w').write('x')
";
        let text = printed(&sandbox, code).await;
        assert!(text.starts_with("a,b\n1,2\n") && !text.contains("done"), "{text}");
        sandbox.stop().await;
        assert_eq!(std::fs::read_to_string(&host).unwrap(), "a,b\n1,2\n");

        for name in ["../x", "/etc/x", "", "a/../../b", "a\nb"] {
            let error = try_start(&backend(), &mount(&host, name)).await.err();
            assert!(matches!(error, Some(SandboxError::RefusedName { .. })), "{name:?} {error:?}");
        }
        assert!(matches!(try_start(&backend(), &mount(folder.path(), "x")).await.err(), Some(SandboxError::File { .. })));
    });
}

#[test]
fn a_start_that_is_cancelled_leaves_nothing() {
    block_on(async {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let result = backend().start(&named("cancelled"), &|_| (), &cancel).await;
        if let Ok(sandbox) = result {
            sandbox.stop().await;
        }
        for monitor in monitors("cancelled") {
            assert!(wait_gone(monitor, GONE));
        }
    });
}

async fn cycle(sandbox: Arc<dyn Sandbox>) {
    assert_eq!(run(&sandbox, "1 + 1").await.result.as_deref(), Some("2"));
    sandbox.stop().await;
}

/// How many starts and stops a test makes: a few, or as many as `CODEINTERP_TEST_CYCLES` says.
fn cycles() -> usize {
    std::env::var("CODEINTERP_TEST_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

#[test]
fn many_starts_and_stops_leave_no_process_descriptor_group_or_record() {
    block_on(async {
        let ids = || -> Vec<String> {
            let running = codeinterp::sandbox::process::record::running(&cache());
            running.into_iter().filter(|record| record.workspace == "cycles").map(|record| record.id).collect()
        };
        let mut used = Vec::new();
        let open = descriptors();
        for _ in 0..cycles() {
            let sandbox = start_with(&backend(), &named("cycles")).await;
            used.extend(ids());
            cycle(sandbox).await;
        }
        assert_eq!(used.len(), cycles());
        for monitor in monitors("cycles") {
            assert!(wait_gone(monitor, GONE));
        }
        let groups = cgroups();
        let left = groups.iter().filter(|group| used.iter().any(|id| group.to_string_lossy().contains(id.as_str())));
        assert_eq!(left.count(), 0, "{groups:?}");
        // Other tests of this program have sandboxes at the same time, with a few descriptors each; a leak grows with the cycles.
        assert!(descriptors() < open + 64, "{open} {}", descriptors());
        let records = codeinterp::sandbox::process::record::running(&cache());
        assert!(records.iter().all(|record| record.workspace != "cycles"), "{records:?}");
    });
}
