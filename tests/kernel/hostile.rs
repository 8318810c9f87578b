//! User code that attacks the protocol.

use codeinterp::agent::ports::Sandbox;

use crate::rig::Rig;

/// Finds the kernel's channel and writes frames of its own there.
const FORGE: &str = "import os, json, struct, socket, stat
def channels():
    for name in os.listdir('/proc/self/fd'):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode): yield int(name)
        except OSError: pass
def forge(message, raw=None):
    data = raw if raw is not None else json.dumps(message).encode()
    for fd in channels():
        os.write(fd, struct.pack('>IB', len(data), 1) + data)
";

#[tokio::test]
async fn forged_messages_never_reach_another_execution() {
    let rig = Rig::start().await;
    rig.run(FORGE).await;
    let attack = "for identity in ['', 'x', None, 3, [], {}, 'm' * 10**6]:
    for kind in ['display_data', 'execute_result', 'reply', 'hello', 'stream', 'unheard', None, []]:
        for content in [{}, {'data': {'text/plain': 'forged'}, 'metadata': {}}, None, 'x', [1]]:
            forge({'type': kind, 'id': identity, 'content': content})
forge(None, b'not json'); forge(None, b'[' * 100000); forge(None, b'{}')";
    let execution = rig.run(attack).await;
    assert_eq!(execution.exit_code, 0, "{execution:?}");
    assert!(!format!("{:?}", execution.outputs).contains("forged"));
    rig.prints("print('next')", "next\n").await;
}

#[tokio::test]
async fn a_forged_reply_ends_its_own_cell_only() {
    let rig = Rig::start().await;
    rig.run(FORGE).await;
    let code = "import gc
for each in gc.get_objects():
    if type(each).__name__ == 'Execution' and hasattr(each, 'parent'): identity = each.parent
forge({'type': 'reply', 'id': identity, 'content': {'status': 'ok', 'exit_code': 'x', 'variables': [1], 'traceback': 3, 'files': {}, 'streams': 1}})
forge({'type': 'display_data', 'id': identity, 'content': {'data': {'text/plain': 'forged'}, 'metadata': {}}})
print('after the forged reply')";
    rig.run(code).await;
    let next = rig.run("print('mine')").await;
    assert_eq!(next.stdout, "mine\n");
    assert!(!format!("{:?}", next.outputs).contains("forged"));
}

#[tokio::test]
async fn a_broken_frame_costs_the_kernel_and_nothing_else() {
    let rig = Rig::start().await;
    rig.run(FORGE).await;
    let execution = rig.run("for fd in channels(): os.write(fd, b'\\xff' * 100)\nimport time\ntime.sleep(100)").await;
    assert_eq!(execution.error.unwrap().ename, "KernelDied");
    rig.prints("print('new')", "new\n").await;
}

#[tokio::test]
async fn children_cannot_write_into_the_pipes_of_kernel_zygote_and_supervisor() {
    let rig = Rig::start().await;
    let code = "import subprocess, sys, os
script = '''
import os, sys
opened = []
for pid in sys.argv[1:]:
    try:
        for name in os.listdir(f'/proc/{pid}/fd'):
            opened.append(os.open(f'/proc/{pid}/fd/{name}', os.O_WRONLY))
    except OSError as error:
        pass
print(len(opened), os.getuid())
'''
parent = os.getppid()
grand = int(open(f'/proc/{parent}/stat').read().rpartition(')')[2].split()[1])
drop = {'user': 65534} if os.getuid() == 0 else {}
r = subprocess.run([sys.executable, '-c', script, str(os.getpid()), str(parent), str(grand)], capture_output=True, text=True)
print(r.stdout, r.stderr)";
    let execution = rig.run(code).await;
    let root = execution.stdout.contains(" 0\n");
    // Root may read everything; the backends never run as root.
    assert!(root || execution.stdout.starts_with("0 "), "{execution:?}");
    let inherited = "r = subprocess.run(['sh', '-c', 'for f in /proc/self/fd/*; do readlink $f; done'], capture_output=True, text=True)\nprint(sum('socket' in line for line in r.stdout.splitlines()))";
    rig.prints(inherited, "0\n").await;
}

#[tokio::test]
async fn a_patched_shell_breaks_its_own_answers_only() {
    let rig = Rig::start().await;
    for patch in [
        "get_ipython().run_cell = lambda *a, **k: None",
        "get_ipython().send = None",
        "get_ipython().user_ns.clear()",
        "import builtins; builtins.len = builtins.print = None",
        "import sys; sys.modules.clear()",
        "import json; json.dumps = json.JSONEncoder.encode = None",
        "import threading; threading.enumerate = None",
    ] {
        rig.run(patch).await;
        let state = rig.sandbox.variables(None).await;
        drop(state);
        rig.sandbox.restart_kernel().await.unwrap();
        rig.prints("print('restored')", "restored\n").await;
    }
}
