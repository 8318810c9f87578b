//! What code in a container does to the pipe, to the host's disk and to what comes after it.

use codeinterp::agent::ports::{ExecuteOptions, FileSource};
use tokio_util::sync::CancellationToken;

use crate::support::{containers_of, engine, printed, run, start, wait_gone};

#[tokio::test]
async fn no_process_in_the_container_lends_its_end_of_the_pipe_to_user_code() {
    let sandbox = start("forgery").await;
    // Frames written there would be the supervisor's to the host, and what is read there never reaches the supervisor.
    let code = r"
import os, subprocess, sys
script = '''
import os
for pid in filter(str.isdigit, os.listdir('/proc')):
    for fd in range(20):
        for mode in (os.O_RDONLY, os.O_WRONLY):
            try:
                os.open(f'/proc/{pid}/fd/{fd}', mode | os.O_NONBLOCK)
                if int(pid) != os.getpid(): print('opened', pid, fd)
            except OSError:
                pass
'''
print(subprocess.run([sys.executable, '-c', script], capture_output=True, text=True).stdout)
print(open('/proc/1/cmdline').read().split(chr(0))[0].rpartition('/')[2])
";
    assert_eq!(printed(&sandbox, code).await, "\npython\n");
    assert_eq!(printed(&sandbox, "print(6 * 7)").await, "42\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_flood_of_output_of_any_kind_leaves_the_hosts_disk_alone() {
    let sandbox = start("log").await;
    let code = "import os
for _ in range(2000):
    for fd in range(1, 30):
        try: os.write(fd, b'x' * 10_000)
        except OSError: pass
os.system('for i in 1 2 3; do head -c 10000000 /dev/zero >&2; done')";
    // A descriptor of the kernel's own may be among them: then the code has cost itself the kernel.
    run(&sandbox, code).await;
    let id = containers_of(&engine().await, "log").await.first().expect("its container").id.clone();
    let told = std::process::Command::new("docker").args(["logs", &id]).output().expect("docker runs");
    assert!(told.stdout.is_empty() && !told.status.success(), "the engine keeps a log");
    assert_eq!(printed(&sandbox, "print(6 * 7)").await, "42\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn late_output_of_background_work_belongs_to_no_later_step() {
    let sandbox = start("late").await;
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
    sandbox.restart_kernel().await.expect("a new kernel");
    assert_eq!(printed(&sandbox, "print('new')").await, "new\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn cancelled_code_is_dead_inside_with_all_that_it_started() {
    let sandbox = start("cancelled-code").await;
    let cancel = CancellationToken::new();
    let code = "import subprocess, time
child = subprocess.Popen(['setsid', 'sleep', '1000'])
print('here', flush=True)
while True:
    try: time.sleep(600)
    except KeyboardInterrupt: pass";
    let said = |_| cancel.cancel();
    let execution = sandbox.execute(code, &ExecuteOptions::default(), &said, &cancel).await.expect("a verdict");
    assert_eq!((execution.exit_code, execution.variables_lost), (130, true), "{execution:?}");
    let left = "import glob
print([line for line in (open(path).read() for path in glob.glob('/proc/[0-9]*/cmdline')) if 'sleep' in line])";
    assert_eq!(printed(&sandbox, left).await, "[]\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn two_sandboxes_of_one_workspace_do_not_touch_each_other() {
    let (one, two) = (start("shared-folder").await, start("shared-folder").await);
    let file = FileSource::Bytes(b"1".as_slice().into());
    one.put_file("only-in-one", &file, &|_| (), &CancellationToken::new()).await.expect("it is put");
    run(&two, "x = 2").await;
    one.stop().await;
    assert_eq!(printed(&two, "import os; print(x, os.listdir('.'))").await, "2 []\n");
    two.stop().await;
    assert!(wait_gone(&engine().await, "shared-folder").await);
}
