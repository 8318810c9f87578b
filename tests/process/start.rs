//! Starting, and what is seen from inside.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use codeinterp::agent::ports::SandboxError;
use codeinterp::sandbox::Backend as _;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::support::{backend, block_on, printed, request, run, start, try_start};

#[test]
fn a_cell_is_executed_and_variables_persist() {
    block_on(async {
        let sandbox = start().await;
        let execution = run(&sandbox, "x = 1 + 1\nx").await;
        assert_eq!((execution.exit_code, execution.result.as_deref()), (0, Some("2")));
        assert_eq!(printed(&sandbox, "print(x + 1)").await.trim(), "3");
        sandbox.stop().await;
    });
}

#[test]
fn the_working_directory_is_workspace_and_the_host_is_not_there() {
    block_on(async {
        let sandbox = start().await;
        let code = "import os\nprint(os.getcwd(), sorted(os.listdir('/')), os.getuid(), os.environ.get('HOME'))";
        let text = printed(&sandbox, code).await;
        assert!(text.starts_with("/workspace "), "{text}");
        for absent in ["'sys'", "'run'", "'boot'", "'srv'", "'mnt'", "'opt'"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        assert_eq!(sandbox.info().workdir, "/workspace");
        sandbox.stop().await;
    });
}

#[test]
fn every_layer_of_the_confinement_comes_into_force_in_a_trial() {
    block_on(async { backend().probe().await.unwrap() });
}

/// Runs `test` where the kernel seems not to have these system calls, which the processes that it starts inherit.
fn without(calls: &[i64], test: impl Future<Output = ()> + Send) {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, std::env::consts::ARCH.try_into().unwrap()).unwrap();
    let program = BpfProgram::try_from(filter).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            seccompiler::apply_filter(&program).unwrap();
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
        });
    });
}

#[test]
fn where_a_layer_is_missing_nothing_is_executed_and_the_error_names_it() {
    for (calls, step) in [
        (&[libc::SYS_landlock_create_ruleset][..], "Landlock"),
        (&[libc::SYS_seccomp], "system call filter"),
        (&[libc::SYS_unshare], "user namespace"),
    ] {
        without(calls, async {
            let refused = |error: SandboxError| match error {
                SandboxError::Unavailable { message, hint } => {
                    assert!(message.contains(step) && !hint.is_empty(), "{step}: {message} {hint}");
                }
                other => panic!("{step}: {other:?}"),
            };
            refused(try_start(&backend(), &request()).await.err().expect("it must not start"));
            refused(backend().check(&request().settings).await.expect_err("it is not usable"));
        });
    }
}

#[test]
fn a_user_without_privileges_gets_every_layer_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("codeinterp");
    std::fs::copy(env!("CARGO_BIN_EXE_codeinterp"), &program).unwrap();
    let spec = serde_json::json!({
        "id": "trial", "probe": true, "program": "", "arguments": [], "environment": [], "read_only": ["/usr/lib"], "mounts": [],
        "limits": {"memory": 1 << 28, "cpus": 1.0, "pids": 64, "no_cgroup": false}, "workspace": "",
    });
    let mut command = Command::new(program);
    command.arg("__confine").arg(spec.to_string()).stdin(Stdio::piped()).stderr(Stdio::piped());
    if nix::unistd::geteuid().is_root() {
        command.uid(1234).gid(1234);
    }
    let mut child = command.spawn().unwrap();
    // Held open: its end would end the trial.
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_helper_started_by_hand_says_what_it_is_and_starts_nothing() {
    let output = Command::new(env!("CARGO_BIN_EXE_codeinterp")).arg("__confine").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("for codeinterp itself"));
}
