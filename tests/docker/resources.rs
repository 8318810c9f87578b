//! Bounds of a container, and what is said when code hits them.

use crate::support::{printed, run, run_for, start};

#[tokio::test]
async fn a_memory_bomb_is_out_of_memory_and_a_new_kernel_follows() {
    let sandbox = start("memory").await;
    run(&sandbox, "kept = 1").await;
    let execution = run(&sandbox, "x = bytearray(4 << 30); x[::4096] = b'x' * len(x[::4096])").await;
    let error = execution.error.expect("an error");
    // Python itself may see that so much can't be had; a kill by the kernel is told as what it is.
    assert!(error.ename == "OutOfMemory" || error.ename == "MemoryError", "{error:?}");
    let text = "
blocks = []
while True:
    blocks.append(b'x' * (16 << 20))
";
    let execution = run(&sandbox, text).await;
    assert_eq!(
        (execution.exit_code, execution.error.map(|error| error.ename).as_deref()),
        (137, Some("OutOfMemory")),
        "{:?}",
        execution.stderr
    );
    assert!(execution.variables_lost);
    assert_eq!(printed(&sandbox, "import pandas; print(1 + 1, 'kept' in globals())").await, "2 False\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_fork_bomb_is_capped_and_the_next_cell_works() {
    let sandbox = start("forks").await;
    let bomb = "
import os, time
children = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
        children += 1
except OSError as error:
    print(type(error).__name__, children < 200)
";
    let execution = run_for(&sandbox, bomb, 30).await;
    assert!(execution.stdout.contains("BlockingIOError True"), "{execution:?}");
    sandbox.restart_kernel().await.expect("a new kernel");
    assert_eq!(printed(&sandbox, "print(1 + 1)").await, "2\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_full_scratch_folder_is_an_error_and_not_a_death() {
    let sandbox = start("scratch").await;
    let fill = "
try:
    with open('big', 'wb') as file:
        while True:
            file.write(b'x' * (8 << 20))
except OSError as error:
    print(error.errno)
import os; os.remove('big')
";
    assert_eq!(printed(&sandbox, fill).await, "28\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_loop_that_ignores_interrupts_is_a_timeout_and_is_dead() {
    let sandbox = start("stubborn").await;
    let stubborn = "
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    try:
        time.sleep(0.01)
    except BaseException:
        pass
";
    let execution = run_for(&sandbox, stubborn, 1).await;
    assert_eq!((execution.exit_code, execution.stderr.contains("Execution timeout")), (-1, true), "{execution:?}");
    assert_eq!(printed(&sandbox, "print('alive')").await, "alive\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_flood_of_output_is_cut_with_counts() {
    let sandbox = start("flood").await;
    let execution = run(&sandbox, "for _ in range(100): print('x' * (1 << 20))").await;
    let truncated = execution.truncated.expect("it is cut");
    assert_eq!(truncated.total_bytes, 100 * ((1 << 20) + 1));
    assert!(truncated.kept_bytes <= 2 * (64 << 10) && execution.stdout.len() <= 2 * (64 << 10), "{truncated:?}");
    sandbox.stop().await;
}

#[tokio::test]
async fn memory_in_use_is_told() {
    let sandbox = start("usage").await;
    run(&sandbox, "x = bytearray(100 << 20)").await;
    let memory = sandbox.usage().await.memory_bytes.expect("a figure");
    assert!((50 << 20..768 << 20).contains(&memory), "{memory}");
    sandbox.stop().await;
}
