//! What hostile code tries in a container, and finds closed.

use std::net::TcpListener;

use crate::support::{containers_of, engine, printed, start};

/// Prints the name of the error that an attempt ends with, or `done`.
const TRY: &str = r"
import os, socket, ctypes, errno
def attempt(f):
    try:
        f()
        return 'done'
    except BaseException as error:
        return errno.errorcode.get(getattr(error, 'errno', None) or 0, type(error).__name__)
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), 'done') if libc.syscall(*args) == -1 else 'done'
";

#[tokio::test]
async fn every_kind_of_socket_is_denied_and_a_listener_on_the_host_sees_nothing() {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a listener");
    listener.set_nonblocking(true).expect("non-blocking");
    let port = listener.local_addr().expect("its address").port();
    let sandbox = start("sockets").await;
    let code = format!(
        r"{TRY}
print(attempt(lambda: socket.create_connection(('127.0.0.1', {port}), 2)))
print(attempt(lambda: socket.create_connection(('172.17.0.1', {port}), 2)))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
print(attempt(lambda: socket.socket(socket.AF_INET6)))
print(attempt(lambda: socket.socket(socket.AF_VSOCK)))
print(attempt(lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)))
print(attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
print(attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)))
print(attempt(lambda: socket.socket(socket.AF_UNIX)))
"
    );
    let text = printed(&sandbox, &code).await;
    assert_eq!(text.lines().filter(|line| *line == "EPERM").count(), 9, "{text}");
    assert!(listener.accept().is_err());
    sandbox.stop().await;
}

#[tokio::test]
async fn dangerous_system_calls_are_denied() {
    let sandbox = start("syscalls").await;
    // Numbers of x86-64, from the kernel's syscall_64.tbl; the tests run there.
    let code = format!(
        r"{TRY}
import json
calls = dict(io_uring_setup=425, unshare=272, mount=165, umount2=166, bpf=321, keyctl=250, add_key=248, ptrace=101, setns=308, pivot_root=155,
             process_vm_readv=310, perf_event_open=298, userfaultfd=323, init_module=175, kexec_load=246, open_by_handle_at=304)
print(json.dumps({{name: syscall(number, 0, 0, 0, 0, 0) for name, number in calls.items()}}))
print(open('/proc/self/status').read())
"
    );
    let text = printed(&sandbox, &code).await;
    let (calls, status) = text.split_once('\n').expect("two parts");
    assert_eq!(calls.matches("EPERM").count(), 16, "{calls}");
    for line in
        ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t65532\t65532\t65532\t65532"]
    {
        assert!(status.contains(line), "{line} is missing in {status}");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn nothing_of_the_host_is_there_and_nothing_outside_of_scratch_can_be_written() {
    let sandbox = start("files").await;
    let code = format!(
        r"{TRY}
print(attempt(lambda: open('/var/run/docker.sock')), attempt(lambda: os.stat('/run/dbus')), os.environ.get('SSH_AUTH_SOCK'))
for path in ('/etc/x', '/usr/x', '/opt/codeinterp/supervisor/kernel.py', '/opt/codeinterp/venv/x', '/sys/kernel/x', '/proc/sys/kernel/core_pattern'):
    print(path, attempt(lambda: open(path, 'w')))
print('kcore', attempt(lambda: open('/proc/kcore', 'rb').read(1)))
open('/workspace/x', 'w').write('fine')
open('/tmp/x', 'w').write('fine')
"
    );
    let text = printed(&sandbox, &code).await;
    assert!(text.starts_with("ENOENT ENOENT None"), "{text}");
    assert!(!text.contains("done"), "{text}");
    sandbox.stop().await;
}

#[tokio::test]
async fn the_container_is_made_with_every_bound_and_holds_nothing_of_the_servers_environment() {
    let sandbox = start("bounds").await;
    let engine = engine().await;
    let id = containers_of(&engine, "bounds").await.first().expect("its container").id.clone();
    let inspected = engine.api.inspect_container(&id, None).await.expect("it is inspected");
    let text = serde_json::to_string(&inspected).expect("json");
    for name in ["HOME", "PATH"] {
        let value = std::env::var(name).unwrap_or_default();
        assert!(!text.contains(&format!("{name}={value}\"")), "{name} of the server is in the container");
    }
    let host = inspected.host_config.expect("a host configuration");
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert_eq!(host.readonly_rootfs, Some(true));
    assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
    assert_eq!(host.memory, Some(768 << 20));
    assert_eq!(host.memory_swap, host.memory);
    assert_eq!(host.pids_limit, Some(128));
    assert_eq!(host.auto_remove, Some(true));
    assert_eq!(host.log_config.and_then(|log| log.typ).as_deref(), Some("none"));
    assert_eq!(host.binds, None);
    assert_eq!(host.ipc_mode.as_deref(), Some("private"));
    assert!(host.security_opt.expect("security options").iter().any(|option| option == "no-new-privileges"));
    sandbox.stop().await;
}

#[tokio::test]
async fn what_analyses_use_works_under_the_filter() {
    let sandbox = start("stack").await;
    let code = r"
import asyncio, subprocess, multiprocessing
import numpy, pandas, matplotlib.pyplot as plt, scipy.stats, sklearn.linear_model, polars, duckdb, seaborn, statsmodels.api, plotly.express, pyarrow.parquet, openpyxl
frame = pandas.DataFrame({'x': range(20), 'y': [2 * x + 1 for x in range(20)]})
frame.to_parquet('x.parquet'); frame.to_excel('x.xlsx')
print(pandas.read_parquet('x.parquet').shape, pandas.read_excel('x.xlsx').shape, polars.from_pandas(frame)['y'].sum())
print(round(sklearn.linear_model.LinearRegression().fit(frame[['x']], frame['y']).coef_[0], 6))
print(duckdb.sql('select sum(y) from frame').fetchall()[0][0])
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())
with multiprocessing.get_context('fork').Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
";
    let text = printed(&sandbox, code).await;
    assert_eq!(text, "(20, 2) (20, 3) 400\n2.0\n400\nchild\n[1, 2]\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn chinese_labels_are_drawn_and_not_boxes() {
    let sandbox = start("font").await;
    // A missing character is drawn as the font's box: two different characters then look the same.
    let code = r"
import numpy as np, matplotlib.pyplot as plt
def pixels(text):
    figure = plt.figure(figsize=(1, 1), dpi=100)
    figure.text(0.2, 0.4, text, fontsize=30)
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())[:, :, 0].copy()
    plt.close(figure)
    return image
print(*(bool((pixels(a) != pixels(b)).any()) for a, b in ('销售', '日本', '図표')))
";
    let execution = crate::support::run(&sandbox, code).await;
    assert_eq!(execution.stdout, "True True True\n", "{execution:?}");
    assert!(!execution.stderr.contains("missing from font"), "{}", execution.stderr);
    sandbox.stop().await;
}
