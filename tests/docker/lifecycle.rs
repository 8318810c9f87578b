//! From the start of a container to its end, however that comes.

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::CreateContainerOptionsBuilder;
use codeinterp::agent::ports::{FileSource, KernelState, SandboxError};
use codeinterp::sandbox::docker::DockerBackend;
use codeinterp::sandbox::{Backend, Mount};
use tokio_util::sync::CancellationToken;

use crate::support::{containers_of, engine, printed, request, run, start, start_with, wait_gone};

#[tokio::test]
async fn a_cell_is_executed_variables_persist_and_a_stop_leaves_nothing() {
    let sandbox = start("plain").await;
    run(&sandbox, "x = 41").await;
    let execution = run(&sandbox, "x + 1").await;
    assert_eq!((execution.exit_code, execution.result.as_deref()), (0, Some("42")));
    assert_eq!(sandbox.info().workdir, "/workspace");
    sandbox.stop().await;
    assert!(wait_gone(&engine().await, "plain").await);
}

#[tokio::test]
async fn a_dropped_sandbox_ends() {
    let sandbox = start("dropped").await;
    run(&sandbox, "1").await;
    drop(sandbox);
    assert!(wait_gone(&engine().await, "dropped").await);
}

#[tokio::test]
async fn a_file_that_was_put_in_is_read_and_a_written_one_is_fetched() {
    let sandbox = start("transfer").await;
    let source = FileSource::Bytes(b"a,b\n1,2\n".as_slice().into());
    let put = sandbox.put_file("data/a b%.csv", &source, &|_| (), &CancellationToken::new()).await.expect("it is put");
    assert_eq!((put.bytes, put.mounted), (8, false));
    let text =
        printed(&sandbox, "import pandas as pd; f = pd.read_csv('data/a b%.csv'); f.to_csv('out.csv', index=False); print(f.shape)").await;
    assert_eq!(text, "(1, 2)\n");
    assert_eq!(sandbox.get_file("out.csv", 1000).await.expect("it is fetched"), b"a,b\n1,2\n");
    for name in ["../etc/passwd", "/etc/passwd", "data/../../x"] {
        assert!(sandbox.get_file(name, 1000).await.is_err(), "{name}");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn a_large_file_is_seen_read_only_in_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = folder.path().join("large file.csv");
    std::fs::write(&host, "x\n1\n").expect("it is written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Whoever runs the code could write it, were it not mounted read-only.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("permissions");
        std::fs::set_permissions(&host, std::fs::Permissions::from_mode(0o666)).expect("permissions");
    }
    let mut request = request("mount");
    request.mounts = vec![Mount { host, name: "data/large file.csv".to_owned() }];
    let sandbox = start_with(&DockerBackend::new(), &request).await;
    let code = "
print(open('data/large file.csv').read().split())
try:
    open('data/large file.csv', 'a')
except OSError as error:
    print(error.strerror)
";
    assert_eq!(printed(&sandbox, code).await, "['x', '1']\nRead-only file system\n");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_container_that_a_person_removes_is_noticed_with_its_cause() {
    let sandbox = start("removed").await;
    run(&sandbox, "1").await;
    let engine = engine().await;
    let id = containers_of(&engine, "removed").await.first().expect("its container").id.clone();
    let waiting = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let options = codeinterp::agent::ports::ExecuteOptions::default();
            sandbox.execute("import time; time.sleep(600)", &options, &|_| (), &CancellationToken::new()).await
        })
    };
    codeinterp::sandbox::docker::owned::remove_container(&engine, &id).await.expect("it is removed");
    match waiting.await.expect("no panic") {
        Err(SandboxError::Gone(reason)) => assert!(reason.contains("container"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(sandbox.kernel_state(), KernelState::Dead);
}

#[tokio::test]
async fn what_a_dead_process_left_is_removed_and_what_is_not_ours_is_not() {
    let engine = engine().await;
    // An image of ours for both: the test is about labels.
    let ready = start("reaper").await;
    let image = ready.info().image;
    let create = |name: String, owner: Option<String>| {
        let labels = owner
            .map(|owner| [("codeinterp.version".to_owned(), "0".to_owned()), ("codeinterp.owner".to_owned(), owner)].into_iter().collect());
        let body = ContainerCreateBody { image: Some(image.clone()), labels, ..ContainerCreateBody::default() };
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let api = engine.api.clone();
        async move { api.create_container(Some(options), body).await.expect("it is created").id }
    };
    let mut dead = codeinterp::sandbox::owner::Owner::current();
    dead.start += 1;
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let stale = create(format!("codeinterp-stale-{unique}"), Some(dead.to_string())).await;
    let foreign = create(format!("foreign-{unique}"), None).await;
    codeinterp::sandbox::docker::owned::reap(&engine).await;
    let there = |id: String| {
        let api = engine.api.clone();
        async move { api.inspect_container(&id, None).await.is_ok() }
    };
    assert!(!there(stale).await);
    assert!(there(foreign.clone()).await);
    assert_eq!(containers_of(&engine, "reaper").await.len(), 1, "a living process' container was removed");
    codeinterp::sandbox::docker::owned::remove_container(&engine, &foreign).await.expect("it is removed");
    ready.stop().await;
}

#[tokio::test]
async fn a_base_image_that_does_not_exist_is_a_clear_error() {
    let mut request = request("nobase");
    request.settings.base = Some("codeinterp-no-such-image:1".to_owned());
    let error = DockerBackend::new().start(&request, &|_| (), &CancellationToken::new()).await.err().expect("an error");
    match error {
        SandboxError::Unavailable { message, hint } => {
            assert!(message.contains("could not be built"), "{message}");
            assert!(!hint.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_image_without_ipython_is_told_in_a_sentence() {
    let mut request = request("own");
    request.settings.image = request.settings.base.take();
    let error = DockerBackend::new().start(&request, &|_| (), &CancellationToken::new()).await.err().expect("an error");
    assert!(error.to_string().contains("no IPython"), "{error}");
}
