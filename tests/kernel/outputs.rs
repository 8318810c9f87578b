//! What is printed, by whom, and to whom it is credited.

use std::sync::Arc;
use std::time::Duration;

use codeinterp::agent::execution::{ExecutionEvent, StreamName};
use codeinterp::agent::ports::{ExecuteOptions, Sandbox};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::rig::Rig;

#[tokio::test]
async fn output_of_python_c_and_subprocesses_comes_in_order() {
    let rig = Rig::start().await;
    let code = "import os, sys, subprocess, ctypes
print('python')
print('part', end=' ')
os.write(1, b'descriptor\\n')
subprocess.run(['echo', 'child'])
os.system('echo system')
sys.stdout.buffer.write(b'buffer\\n')
ctypes.CDLL(None).puts(b'c library')
sys.stderr.write('error\\n')
os.write(2, b'raw error\\n')";
    let execution = rig.run(code).await;
    assert_eq!(execution.stderr, "error\nraw error\n");
    // C code keeps what it writes until its buffer is full or the cell ends.
    assert_eq!(execution.stdout, "python\npart descriptor\nchild\nsystem\nbuffer\nc library\n");
    // What is buffered in a flood does not come after what bypasses the buffer, and lines that are few are not buffered.
    let code = "import ctypes, os, sys
for number in range(2000): sys.stdout.write('x\\n')
os.writev(1, [b'raw', b' end\\n'])
time = __import__('time')
time.sleep(0.03)
sys.stdout.write('python\\n')
ctypes.CDLL(None).write(1, b'c code\\n', 7)
sys.stdout.write('python\\n')
ctypes.CDLL(None).write(1, b'c code\\n', 7)
None";
    rig.prints(code, &format!("{}raw end\npython\nc code\npython\nc code\n", "x\n".repeat(2000))).await;
}

#[tokio::test]
async fn a_running_cell_is_seen_live() {
    let rig = Rig::start().await;
    let seen = Arc::new(Notify::new());
    let go = rig.workdir().join("go");
    let code = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('second')";
    let sink = |event: ExecutionEvent| {
        if matches!(&event, ExecutionEvent::Stream(StreamName::Stdout, text) if text.contains("first")) {
            seen.notify_one();
        }
    };
    let options = ExecuteOptions { timeout: Duration::from_secs(60), ..ExecuteOptions::default() };
    let cancel = CancellationToken::new();
    let running = rig.sandbox.execute(code, &options, &sink, &cancel);
    let answering = async {
        seen.notified().await;
        std::fs::write(&go, "").unwrap();
    };
    let (execution, ()) = tokio::join!(running, answering);
    assert_eq!(execution.unwrap().stdout, "first\nsecond\n");
}

#[tokio::test]
async fn late_output_of_threads_tasks_and_children_never_lands_in_the_next_cell() {
    let rig = Rig::start().await;
    let code = "import threading, time, os, subprocess, asyncio, _thread
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
def late(name):
    while not os.path.exists('go'): time.sleep(0.01)
    print('late', name); os.sys.stderr.write('late error\\n')
    open('done-' + name, 'w')
threading.Thread(target=late, args=['thread']).start()
_thread.start_new_thread(late, ('bare',))
pool.submit(late, 'pool')
subprocess.Popen('while ! test -e go; do sleep 0.01; done; echo late child; touch done-child', shell=True)
print('first')";
    rig.prints(code, "first\n").await;
    let wait = "import glob
open('go', 'w')
while len(glob.glob('done-*')) < 4: time.sleep(0.01)
time.sleep(0.1)
print('second')";
    let second = rig.run(wait).await;
    assert_eq!((second.stdout.as_str(), second.stderr.as_str()), ("second\n", ""));
    // A thread pool made by an earlier cell works for the cell that uses it.
    rig.prints("pool.submit(print, 'mine').result()", "mine\n").await;
}

#[tokio::test]
async fn a_task_of_an_earlier_cell_prints_for_that_cell() {
    let rig = Rig::start().await;
    rig.prints("import asyncio\nasync def later():\n    await asyncio.sleep(0.01)\n    print('of the first')\ntask = asyncio.create_task(later()) if False else None\nloop_task = [later]\nprint(1)", "1\n").await;
    rig.prints("await asyncio.gather(loop_task[0]())", "of the first\n").await;
}

#[tokio::test]
async fn a_flood_is_counted_whole_and_kept_in_head_and_tail() {
    let rig = Rig::start().await;
    let code = "print('START')\nfor i in range(300_000): print('x' * 99)\nprint('END')";
    let (execution, events) = rig.watch(code).await;
    let truncated = execution.truncated.unwrap();
    assert_eq!(truncated.total_bytes, 30_000_010);
    assert!(truncated.kept_bytes <= 8192 && truncated.kept_bytes > 8000, "{truncated:?}");
    assert!(execution.stdout.starts_with("START\n") && execution.stdout.ends_with("END\n"));
    let left_out = truncated.total_bytes - truncated.kept_bytes;
    assert!(execution.stdout.contains(&format!("[... {left_out} bytes left out ...]")), "{}", execution.stdout);
    assert!(events.len() < 200, "{} events", events.len());
    assert_eq!(execution.exit_code, 0);
}

#[tokio::test]
async fn an_endless_line_and_both_streams_have_their_own_budgets() {
    let rig = Rig::start().await;
    let execution = rig.run("import sys\nsys.stdout.write('é' * 5_000_000)\nsys.stderr.write('e' * 100_000)").await;
    assert_eq!(execution.truncated.unwrap().total_bytes, 10_100_000);
    assert!(execution.stdout.len() < 8400 && execution.stderr.len() < 4300);
    assert!(!execution.stdout.contains('\u{fffd}'), "letters are not cut");
    let short = rig.run("print('ok')").await;
    assert_eq!(short.truncated, None);
}

#[tokio::test]
async fn odd_bytes_and_surrogates_are_printed_somehow() {
    let rig = Rig::start().await;
    let execution = rig.run("import os\nprint('\\ud800 \\U0001f600 数据')\nos.write(1, b'\\xff\\xfe\\n')").await;
    assert!(execution.stdout.contains("😀 数据"), "{}", execution.stdout);
    assert_eq!(execution.exit_code, 0);
    rig.prints("import sys\nsys.stdout.reconfigure(encoding='gbk')\nprint('中文')", "中文\n").await;
}

#[tokio::test]
async fn a_cell_that_breaks_its_streams_does_not_break_the_next() {
    let rig = Rig::start().await;
    rig.run("import sys, os\nsys.stdout = None\nos.close(1)").await;
    rig.run("sys.stderr.close(); sys.stdout.close()").await;
    rig.run("sys.stdout = sys.__stdout__ = sys.stderr = sys.__stderr__ = None").await;
    rig.run("import io; sys.stdout = io.StringIO(); os.dup2(2, 1)").await;
    rig.prints("print('fine')\nos.system('echo shell')", "fine\nshell\n").await;
}

#[tokio::test]
async fn a_fork_in_a_cell_prints_once_and_does_not_speak_for_the_kernel() {
    let rig = Rig::start().await;
    let code = "import os\nprint('before')\npid = os.fork()\nif pid == 0:\n    print('child')\n    os._exit(0)\nos.waitpid(pid, 0)\nprint('after')";
    rig.prints(code, "before\nchild\nafter\n").await;
    let pool = "from multiprocessing import get_context
def square(n): return n * n
with get_context('fork').Pool(2) as pool: print(pool.map(square, range(5)))";
    rig.prints(pool, "[0, 1, 4, 9, 16]\n").await;
    // A child that leaves the cell's code by an exception runs the kernel's own code next.
    rig.run("if os.fork() == 0:\n    raise ValueError('in the child')").await;
    rig.prints("print('sound')", "sound\n").await;
}
