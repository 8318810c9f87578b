//! Ends that come again and again, or from somebody else: nothing is left, and the cause is told.
//!
//! ```text
//! CODEINTERP_TEST_CYCLES=200 cargo nextest run --test docker endings::    # the long run; a few cycles without it
//! CODEINTERP_TEST_MINUTES=10 cargo test --test docker four_workspaces      # four workspaces in use for so long
//! ```

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use bollard::query_parameters::KillContainerOptionsBuilder;
use codeinterp::agent::ports::{ExecuteOptions, KernelState, SandboxError};
use codeinterp::sandbox::docker::owned;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::support::{containers_of, engine, printed, run, run_for, start, wait_gone};

/// How many starts and stops a test makes: a few, or as many as `CODEINTERP_TEST_CYCLES` says.
fn cycles() -> usize {
    std::env::var("CODEINTERP_TEST_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// How long the workspaces are in use at least: no time of its own, or as many minutes as `CODEINTERP_TEST_MINUTES` says.
fn minutes() -> Duration {
    let minutes = std::env::var("CODEINTERP_TEST_MINUTES").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(60 * minutes.unwrap_or(0))
}

/// How many processes a test kills: a quarter of the cycles.
fn kills() -> usize {
    cycles().div_ceil(4).max(2)
}

#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn many_starts_and_stops_leave_no_container_and_no_descriptor() {
    let engine = engine().await;
    start("cycles").await.stop().await;
    let open = descriptors();
    for _ in 0..cycles() {
        let sandbox = start("cycles").await;
        assert_eq!(run(&sandbox, "1 + 1").await.result.as_deref(), Some("2"));
        sandbox.stop().await;
    }
    assert!(wait_gone(&engine, "cycles").await, "a container was left");
    // Connections to the engine are kept for a while, and tests beside this one have their own; a leak grows with the cycles.
    assert!(descriptors() < open + 48.max(cycles() / 2), "{open} {}", descriptors());
}

#[tokio::test]
async fn a_supervisor_killed_with_kill_9_is_told_and_leaves_nothing() {
    let engine = engine().await;
    for _ in 0..kills() {
        let sandbox = start("slain").await;
        run(&sandbox, "x = 1").await;
        let id = containers_of(&engine, "slain").await.first().expect("its container").id.clone();
        let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
        engine.api.kill_container(&id, Some(options)).await.expect("it is killed");
        let error = sandbox.execute("x", &ExecuteOptions::default(), &|_| (), &CancellationToken::new()).await.expect_err("it is dead");
        assert!(matches!(&error, SandboxError::Gone(reason) if reason.contains("killed")), "{error:?}");
        assert_eq!(sandbox.kernel_state(), KernelState::Dead);
        drop(sandbox);
        assert!(wait_gone(&engine, "slain").await, "a container was left");
    }
}

/// Run by other tests in a process of its own that is then killed.
#[tokio::test]
async fn server_to_be_killed() {
    let Ok(workspace) = std::env::var("CODEINTERP_TEST_SERVER") else { return };
    let sandbox = start(&workspace).await;
    run(&sandbox, "1").await;
    println!("\nready");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_server_killed_with_kill_9_takes_its_container_with_it() {
    let engine = engine().await;
    for _ in 0..kills() {
        let mut server = Command::new(std::env::current_exe().expect("this program"))
            .args(["endings::server_to_be_killed", "--exact", "--nocapture"])
            .env("CODEINTERP_TEST_SERVER", "killed")
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(server.stdout.take().expect("its output")).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")), "the server did not get ready");
        assert_eq!(containers_of(&engine, "killed").await.len(), 1);
        server.kill().expect("it is killed");
        server.wait().expect("it is dead");
        assert!(wait_gone(&engine, "killed").await, "a container was left");
    }
}

#[tokio::test]
async fn a_pause_delays_code_and_loses_nothing() {
    let engine = engine().await;
    let sandbox = start("paused").await;
    // While it still imports at the limit of its CPU time, runc may give up freezing it.
    run(&sandbox, "import pandas; x = 41").await;
    let id = containers_of(&engine, "paused").await.first().expect("its container").id.clone();
    engine.api.pause_container(&id).await.expect("it is paused");
    let waiting = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { run(&sandbox, "x + 1").await })
    };
    engine.api.unpause_container(&id).await.expect("it goes on");
    assert_eq!(waiting.await.expect("no panic").result.as_deref(), Some("42"));
    sandbox.stop().await;
}

#[tokio::test]
async fn code_that_is_paused_beyond_its_time_is_dead_and_the_container_with_it() {
    let engine = engine().await;
    let sandbox = start("frozen").await;
    // As above: nothing but what is to be paused should be at work.
    run(&sandbox, "import pandas").await;
    let id = containers_of(&engine, "frozen").await.first().expect("its container").id.clone();
    let (begun, running) = tokio::sync::oneshot::channel();
    let begun = std::sync::Mutex::new(Some(begun));
    let waiting = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let options = ExecuteOptions { timeout: Duration::from_secs(3), ..ExecuteOptions::default() };
            let said = move |_| {
                if let Some(begun) = begun.lock().unwrap().take() {
                    let _ = begun.send(());
                }
            };
            let code = "import time; print('running', flush=True); time.sleep(600)";
            sandbox.execute(code, &options, &said, &CancellationToken::new()).await
        })
    };
    running.await.expect("it runs");
    engine.api.pause_container(&id).await.expect("it is paused");
    let execution = waiting.await.expect("no panic").expect("a verdict");
    assert_eq!((execution.exit_code, execution.variables_lost), (-1, true), "{execution:?}");
    assert!(wait_gone(&engine, "frozen").await, "a container was left");
}

#[tokio::test]
async fn an_image_of_ours_is_listed_and_removed_and_the_name_that_others_gave_it_stays() {
    use bollard::query_parameters::{BuildImageOptionsBuilder, RemoveImageOptions, TagImageOptionsBuilder};
    use futures::StreamExt;

    let engine = engine().await;
    let base = std::env::var("CODEINTERP_SANDBOX_BASE").expect("CODEINTERP_SANDBOX_BASE names an image: bash tests/setup/base-image.sh");
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let (tag, foreign) = (format!("codeinterp-sandbox:{unique}"), format!("foreign-{unique}"));
    let mut archive = tar::Builder::new(Vec::new());
    let dockerfile = format!("FROM {base}\nLABEL codeinterp.version=0 unique={unique}\n");
    let mut header = tar::Header::new_gnu();
    header.set_size(dockerfile.len() as u64);
    archive.append_data(&mut header, "Dockerfile", dockerfile.as_bytes()).expect("an archive");
    let body = bollard::body_full(archive.into_inner().expect("an archive").into());
    let options = BuildImageOptionsBuilder::default().t(&tag).rm(true).build();
    let built: Vec<_> = engine.api.build_image(options, None, Some(body)).collect().await;
    assert!(built.iter().all(Result::is_ok), "{built:?}");
    let options = TagImageOptionsBuilder::default().repo(&foreign).tag("1").build();
    engine.api.tag_image(&tag, Some(options)).await.expect("it is tagged");

    let ours = || async {
        let images = owned::images(&engine).await.expect("images are listed");
        images.into_iter().find(|image| image.tags.contains(&tag))
    };
    let image = ours().await.expect("it is listed");
    assert_eq!((image.tags.as_slice(), image.in_use), ([tag.clone()].as_slice(), false));
    owned::remove_image(&engine, &image).await.expect("it is removed");
    assert!(ours().await.is_none());
    engine.api.inspect_image(&format!("{foreign}:1")).await.expect("the other name stays");
    engine.api.remove_image(&format!("{foreign}:1"), None::<RemoveImageOptions>, None).await.expect("it is removed");
}

#[tokio::test]
async fn an_image_that_a_container_is_made_of_is_in_use() {
    let sandbox = start("using").await;
    let (images, tag) = (owned::images(&engine().await).await.expect("images are listed"), sandbox.info().image);
    assert!(images.iter().any(|image| image.in_use && image.tags.contains(&tag)), "{images:?}");
    assert_eq!(printed(&sandbox, "print(1)").await, "1\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn four_workspaces_at_once_see_nothing_of_each_other() {
    let until = Instant::now() + minutes();
    let used = (0..4).map(|number| async move {
        let workspace = format!("beside{number}");
        let sandbox = start(&workspace).await;
        run(&sandbox, &format!("me = {number}; open('mine.txt', 'w').write(str(me))")).await;
        let mut round = 0;
        while round < cycles() || Instant::now() < until {
            // The same names everywhere, contents of one's own.
            let data = format!("a\n{}\n", number * 1_000_000 + round);
            let source = codeinterp::agent::ports::FileSource::Bytes(data.as_bytes().into());
            sandbox.put_file("data.csv", &source, &|_| (), &CancellationToken::new()).await.expect("it is put");
            let code = format!(
                r#"import os, pandas, sys, threading, time
say = sys.stdout.write
def late():
    time.sleep(0.05)
    say(f'late {{me}}\n')
threading.Thread(target=late).start()
say('x' * 200_000 + '\n')
seen_{number} = {round}
seen = [name for name in globals() if name.startswith('seen_')]
mine = open('mine.txt').read()
say(f'{{me}} {{mine}} {{pandas.read_csv("data.csv").a.tolist()}} {{sorted(os.listdir())}} {{seen}}\n')"#
            );
            let execution = run_for(&sandbox, &code, 120).await;
            let expected = format!("{number} {number} [{}] ['data.csv', 'mine.txt'] ['seen_{number}']\n", number * 1_000_000 + round);
            assert!(
                execution.stdout.contains(&expected),
                "{:?} {:?}",
                execution.error,
                &execution.stdout[execution.stdout.len().saturating_sub(400)..]
            );
            for other in (0..4).filter(|other| *other != number) {
                assert!(!execution.stdout.contains(&format!("late {other}")), "output of another workspace");
            }
            if round % 3 == 2 {
                sandbox.restart_kernel().await.expect("a new kernel");
                assert_eq!(printed(&sandbox, "print('me' in globals())").await, "False\n");
                run(&sandbox, "me = int(open('mine.txt').read())").await;
            }
            round += 1;
        }
        println!("workspace {number}: {round} rounds");
        sandbox.stop().await;
        assert!(wait_gone(&engine().await, &workspace).await, "a container was left");
    });
    futures::future::join_all(used).await;
}
