//! What hostile code tries, and finds closed.

use std::fmt::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};

use codeinterp::agent::ports::ExecuteOptions;
use tokio_util::sync::CancellationToken;

use crate::support::{block_on, printed, start};

/// Prints the name of the exception that an expression raises, or `done` and its value.
const TRY: &str = r"
import os, socket, ctypes, errno
def attempt(f):
    try:
        return 'done ' + repr(f())
    except BaseException as error:
        return type(error).__name__ + ' ' + errno.errorcode.get(getattr(error, 'errno', None) or 0, '')
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*args):
    ctypes.set_errno(0)
    answer = libc.syscall(*args)
    return errno.errorcode.get(ctypes.get_errno(), 'done') if answer == -1 else 'done'
";

#[test]
fn every_kind_of_socket_is_denied_and_listeners_on_the_host_see_nothing() {
    block_on(async {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let sandbox = start().await;
        let code = format!(
            r"{TRY}
print(attempt(lambda: socket.create_connection(('127.0.0.1', {tcp_port}), 2)))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp_port}))))
print(attempt(lambda: socket.socket(socket.AF_INET6)))
print(attempt(lambda: socket.socket(socket.AF_VSOCK)))
print(attempt(lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)))
print(attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)))
print(attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)))
print(attempt(lambda: socket.socket(socket.AF_UNIX)))
print(attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)))
"
        );
        let text = printed(&sandbox, &code).await;
        assert_eq!(text.lines().count(), 10, "{text}");
        for line in text.lines() {
            assert!(line.contains("EPERM"), "{text}");
        }
        assert!(
            printed(&sandbox, &format!("{TRY}\nprint(attempt(lambda: socket.getaddrinfo('example.com', 80)))"))
                .await
                .starts_with("gaierror")
        );
        assert!(tcp.accept().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
        assert!(udp.recv(&mut [0; 8]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
        sandbox.stop().await;
    });
}

#[test]
fn path_sockets_and_abstract_sockets_of_the_host_are_out_of_reach() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let stream = folder.path().join("engine.sock");
        let datagram = folder.path().join("log.sock");
        let listener = UnixListener::bind(&stream).unwrap();
        listener.set_nonblocking(true).unwrap();
        let log = UnixDatagram::bind(&datagram).unwrap();
        log.set_nonblocking(true).unwrap();
        let sandbox = start().await;
        // A pair that is allowed must not become a way to a named socket either.
        let code = format!(
            r"{TRY}
stream, datagram = {stream:?}, {datagram:?}
a, b = socket.socketpair()
print(attempt(lambda: socket.socket(socket.AF_UNIX).connect(stream)))
print(attempt(lambda: socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')))
print(attempt(lambda: a.connect(stream)))
print(attempt(lambda: a.bind('/workspace/s')))
print(attempt(lambda: a.sendto(b'x', datagram)))
print(attempt(lambda: a.sendmsg([b'x'], [], 0, datagram)))
print(os.path.exists(stream), os.path.exists('/var/run/docker.sock'), os.path.exists('/run'))
"
        );
        let text = printed(&sandbox, &code).await;
        assert!(!text.contains("done"), "{text}");
        assert!(text.ends_with("False False False\n"), "{text}");
        assert!(listener.accept().is_err() && log.recv(&mut [0; 8]).is_err());
        sandbox.stop().await;
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn dangerous_system_calls_are_denied() {
    block_on(async {
        let sandbox = start().await;
        // Numbers of x86-64; io_uring, pidfd_getfd, process_madvise and clone3 have the same everywhere.
        let calls = [
            ("io_uring_setup", "425, 8, 0"),
            ("unshare user", "272, 0x10000000"),
            ("setns", "308, 0, 0"),
            ("mount", "165, 0, 0, 0, 0, 0"),
            ("pivot_root", "155, 0, 0"),
            ("bpf", "321, 0, 0, 0"),
            ("keyctl", "250, 0, 0, 0"),
            ("add_key", "248, 0, 0, 0, 0, 0"),
            ("ptrace", "101, 0, 0, 0, 0"),
            ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0"),
            ("pidfd_getfd", "438, 0, 0, 0"),
            ("perf_event_open", "298, 0, 0, 0, 0, 0"),
            ("userfaultfd", "323, 0"),
            ("open_by_handle_at", "304, 0, 0, 0"),
            ("init_module", "175, 0, 0, 0"),
            ("kexec_load", "246, 0, 0, 0, 0"),
            ("seccomp", "317, 0, 0, 0"),
            ("sched_setaffinity", "203, 0, 8, 0"),
            ("shmget", "29, 0, 4096, 0o1666"),
            ("mknod", "133, b'/workspace/n', 0o20666, 259"),
            ("clone into a user namespace", "56, 0x10000011, 0, 0, 0, 0"),
        ];
        let mut code = TRY.to_owned();
        for (name, arguments) in calls {
            writeln!(code, "print({name:?}, syscall({arguments}))").unwrap();
        }
        code.push_str("print('clone3', syscall(435, 0, 0))\n");
        let text = printed(&sandbox, &code).await;
        for (name, _) in calls {
            assert!(text.contains(&format!("{name} EPERM\n")), "{text}");
        }
        assert!(text.contains("clone3 ENOSYS"), "{text}");
        sandbox.stop().await;
    });
}

#[test]
fn nothing_of_the_host_can_be_read_or_written() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let canary = folder.path().join("canary.txt");
        std::fs::write(&canary, "secret of the host").unwrap();
        let home = std::env::var("HOME").unwrap();
        let sandbox = start().await;
        let code = format!(
            r"{TRY}
print(attempt(lambda: open({canary:?}).read()))
print(attempt(lambda: open('/etc/shadow').read()))
print(attempt(lambda: open('/proc/kcore', 'rb').read(1)))
print(attempt(lambda: open('/proc/sys/kernel/core_pattern').read()))
print(attempt(lambda: os.listdir('/sys')))
print(attempt(lambda: os.listdir({home:?} + '/.ssh')))
for path in ('/usr/lib/x', '/etc/x', '/x', os.path.dirname(os.__file__) + '/x', '/bin/x', '/dev/x'):
    print(attempt(lambda: open(path, 'w')))
print(attempt(lambda: os.mkfifo('/dev/x')))
print(attempt(lambda: open('/proc/1/environ').read()))
print(attempt(lambda: os.listdir('/proc/1/fd')))
print(attempt(lambda: open('/proc/1/root/etc/passwd').read()))
print(attempt(lambda: open('/proc/1/mem', 'r+b')))
"
        );
        let text = printed(&sandbox, &code).await;
        assert!(!text.contains("done"), "{text}");
        assert_eq!(std::fs::read_to_string(&canary).unwrap(), "secret of the host");
        sandbox.stop().await;
    });
}

#[test]
fn the_environment_and_the_arguments_hold_nothing_of_the_servers() {
    // SAFETY: the tests of this file read no environment at the same time except by way of this runtime's own calls.
    unsafe { std::env::set_var("CODEINTERP_API_KEY", "canary-key-4711") };
    block_on(async {
        let sandbox = start().await;
        let code = "
import os, glob
found = [' '.join(f'{k}={v}' for k, v in os.environ.items())]
for path in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):
    try:
        found.append(open(path).read())
    except OSError:
        pass
print(len(found), any('canary-key-4711' in each for each in found))
";
        let text = printed(&sandbox, code).await;
        assert!(text.trim_end().ends_with("False"), "{text}");
        sandbox.stop().await;
    });
}

#[test]
fn frames_forged_into_the_supervisors_pipe_do_not_get_there() {
    block_on(async {
        let sandbox = start().await;
        let code = format!(
            r"{TRY}
for pid in (1, os.getppid(), os.getpid()):
    for fd in range(0, 20):
        try:
            with open(f'/proc/{{pid}}/fd/{{fd}}', 'wb', buffering=0) as pipe:
                pipe.write(b'\x00\x00\x00\x02\x01{{}}')
        except OSError:
            pass
others = [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) != os.getpid()]
print([pid for pid in others if 'done' in attempt(lambda: os.listdir(f'/proc/{{pid}}/fd'))])
"
        );
        // What went to its own standard output is only that.
        assert!(printed(&sandbox, &code).await.ends_with("[]\n"), "descriptors of another process can be seen");
        assert_eq!(printed(&sandbox, "print(6 * 7)").await.trim(), "42");
        sandbox.stop().await;
    });
}

#[test]
fn code_has_no_capability_and_can_gain_none() {
    block_on(async {
        let sandbox = start().await;
        let code = r"
status = dict(line.split(':\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\t' in line)
print(status['CapEff'], status['CapPrm'], status['CapInh'], status['CapAmb'], status['NoNewPrivs'], status['Seccomp'], status['Uid'].split()[0])
import subprocess
print(subprocess.run(['/bin/sh', '-c', 'id -u'], capture_output=True, text=True).stdout.strip())
";
        let text = printed(&sandbox, code).await;
        let zero = "0".repeat(16);
        assert_eq!(text, format!("{zero} {zero} {zero} {zero} 1 2 65532\n65532\n"));
        sandbox.stop().await;
    });
}

#[test]
fn programs_in_scratch_can_not_be_executed_and_those_of_the_system_can() {
    block_on(async {
        let sandbox = start().await;
        let code = format!(
            r"{TRY}
import shutil, subprocess
shutil.copy('/bin/true', '/workspace/tool'); os.chmod('/workspace/tool', 0o755)
print(attempt(lambda: subprocess.run(['/workspace/tool']).returncode))
print(attempt(lambda: subprocess.run(['/bin/true']).returncode))
"
        );
        assert_eq!(printed(&sandbox, &code).await, "PermissionError EACCES\ndone 0\n");
        sandbox.stop().await;
    });
}

#[test]
fn what_analyses_use_works_under_the_filter() {
    block_on(async {
        let sandbox = start().await;
        let code = r"
import asyncio, multiprocessing, subprocess, tempfile, threading
import numpy as np, pandas as pd, duckdb
frame = pd.DataFrame({'a': range(1000), 'b': np.random.rand(1000)})
frame.to_parquet('x.parquet'); frame.to_excel('x.xlsx')
print(pd.read_parquet('x.parquet').shape, pd.read_excel('x.xlsx', index_col=0).shape)
print(duckdb.sql('select count(*) from frame').fetchall())
process = await asyncio.create_subprocess_exec('/bin/echo', 'hello', stdout=asyncio.subprocess.PIPE)
print((await process.communicate())[0])
with multiprocessing.get_context('fork').Pool(2) as pool:
    print(pool.map(abs, [-1, -2, -3]))
print(subprocess.check_output(['sh', '-c', 'echo $((2+3))']))
threads = [threading.Thread(target=lambda: None) for _ in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
print((np.ones((500, 500)) @ np.ones((500, 500)))[0, 0])
print(tempfile.gettempdir())
";
        let text = printed(&sandbox, code).await;
        assert_eq!(text, "(1000, 2) (1000, 2)\n[(1000,)]\nb'hello\\n'\n[1, 2, 3]\nb'5\\n'\n500.0\n/tmp\n");
        sandbox.stop().await;
    });
}

#[test]
fn labels_in_chinese_find_a_font() {
    block_on(async {
        let sandbox = start().await;
        let code = "
import matplotlib.pyplot as plt, warnings
warnings.simplefilter('error')
plt.figure(); plt.title('销售额 売上 매출'); plt.plot([1, 2]); plt.show()
";
        let options = ExecuteOptions::default();
        let execution = sandbox.execute(code, &options, &|_| (), &CancellationToken::new()).await.unwrap();
        assert_eq!(execution.exit_code, 0, "{:?} {}", execution.error, execution.stderr);
        assert!(!execution.stderr.contains("missing from"), "{}", execution.stderr);
        sandbox.stop().await;
    });
}
