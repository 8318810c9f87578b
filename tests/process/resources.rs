//! Memory, processes, scratch, time: bounded, and told apart.

use codeinterp::agent::execution::Execution;
use codeinterp::sandbox::ProcessBackend;

use crate::support::{backend, block_on, printed, request, run, run_for, start, start_with};

fn name(execution: &Execution) -> &str {
    execution.error.as_ref().map_or("", |error| error.ename.as_str())
}

/// Touches what it allocates, in pieces that no single limit of address space stops.
const MEMORY_BOMB: &str = "blocks = []\nwhile True:\n    blocks.append(bytearray(b'x' * (16 << 20)))";

async fn survives_a_memory_bomb(backend: ProcessBackend) {
    let sandbox = start_with(&backend, &request()).await;
    printed(&sandbox, "kept = 1").await;
    let execution = run(&sandbox, MEMORY_BOMB).await;
    assert_eq!((execution.exit_code, name(&execution)), (137, "OutOfMemory"), "{execution:?}");
    assert!(execution.variables_lost);
    assert_eq!(printed(&sandbox, "print('kept' in globals(), 1 + 1)").await.trim(), "False 2");
    sandbox.stop().await;
}

#[test]
fn a_memory_bomb_is_out_of_memory_and_a_new_kernel_follows() {
    block_on(survives_a_memory_bomb(backend()));
}

#[test]
fn a_memory_bomb_is_out_of_memory_where_no_cgroup_can_be_made() {
    block_on(survives_a_memory_bomb(backend().without_cgroup()));
}

#[test]
fn memory_of_the_whole_tree_counts() {
    block_on(async {
        let sandbox = start().await;
        // Four children with a third of the limit each; every single one would fit.
        let code = r"
import os, signal, time
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        block = bytearray(b'x' * (256 << 20))
        time.sleep(30)
        os._exit(0)
    children.append(pid)
killed = 0
while killed == 0:
    pid, status = os.wait()
    killed += os.WIFSIGNALED(status)
for pid in children:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
print('killed', killed > 0)
";
        let execution = run(&sandbox, code).await;
        // The kernel's choice may fall on the cell itself.
        assert!(execution.stdout.contains("killed True") || name(&execution) == "OutOfMemory", "{execution:?}");
        assert_eq!(printed(&sandbox, "print(1 + 1)").await.trim(), "2");
        sandbox.stop().await;
    });
}

async fn survives_a_fork_bomb(backend: ProcessBackend) {
    let sandbox = start_with(&backend, &request()).await;
    let code = r"
import os, time
made = 0
try:
    while made < 5000:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
            os._exit(0)
        made += 1
except OSError as error:
    print(type(error).__name__, made < 128)
";
    assert_eq!(run(&sandbox, code).await.stdout.trim(), "BlockingIOError True");
    sandbox.restart_kernel().await.unwrap();
    // The children, each in a session of its own, went with the kernel.
    let code = "import os\nprint(sum(name.isdigit() for name in os.listdir('/proc')) < 20)";
    assert_eq!(printed(&sandbox, code).await.trim(), "True");
    sandbox.stop().await;
}

#[test]
fn a_fork_bomb_is_capped_and_the_next_cell_works() {
    block_on(survives_a_fork_bomb(backend()));
}

#[test]
fn a_fork_bomb_is_capped_where_no_cgroup_can_be_made() {
    block_on(survives_a_fork_bomb(backend().without_cgroup()));
}

#[test]
fn a_full_scratch_folder_is_an_error_and_not_a_death() {
    block_on(async {
        let sandbox = start().await;
        let code = r"
for folder in ('/workspace', '/tmp', '/dev/shm'):
    try:
        with open(folder + '/big', 'wb') as file:
            for _ in range(4096):
                file.write(b'x' * (1 << 20))
    except OSError as error:
        print(folder, error.strerror)
import os
for folder in ('/workspace', '/tmp', '/dev/shm'):
    os.unlink(folder + '/big')
";
        let text = printed(&sandbox, code).await;
        assert_eq!(text.matches("No space left on device").count(), 3, "{text}");
        assert_eq!(printed(&sandbox, "print(1 + 1)").await.trim(), "2");
        sandbox.stop().await;
    });
}

#[test]
fn a_hundred_thousand_files_are_capped() {
    block_on(async {
        let sandbox = start().await;
        let code = r"
import os
os.mkdir('many'); n = 0
try:
    while n < 200_000:
        open(f'many/{n}', 'w').close(); n += 1
except OSError as error:
    print(n < 100_000, error.strerror)
";
        let execution = run(&sandbox, code).await;
        assert_eq!(execution.stdout.trim(), "True No space left on device", "{execution:?}");
        assert_eq!(printed(&sandbox, "import shutil; shutil.rmtree('many'); print(1 + 1)").await.trim(), "2");
        sandbox.stop().await;
    });
}

#[test]
fn a_loop_that_ignores_interrupts_is_a_timeout_and_is_dead() {
    block_on(async {
        let sandbox = start().await;
        let code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass";
        let execution = run_for(&sandbox, code, 2).await;
        assert_eq!((execution.exit_code, name(&execution)), (-1, "Timeout"), "{execution:?}");
        assert_eq!(printed(&sandbox, "print(1 + 1)").await.trim(), "2");
        sandbox.stop().await;
    });
}

#[test]
fn memory_in_use_is_told() {
    block_on(async {
        for backend in [backend(), backend().without_cgroup()] {
            let sandbox = start_with(&backend, &request()).await;
            printed(&sandbox, "block = bytearray(b'x' * (64 << 20))").await;
            let usage = sandbox.usage().await;
            assert!(usage.memory_bytes.is_some_and(|bytes| (64 << 20..768 << 20).contains(&bytes)), "{usage:?}");
            sandbox.stop().await;
        }
    });
}
