//! `sandbox.packages` in a container: chosen and sized before they are downloaded, agreed to, there without a network.

use std::process::Command;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use codeinterp::agent::ports::SandboxError;
use codeinterp::sandbox::Backend;
use codeinterp::sandbox::consent::{Consent, PackageDownload};
use codeinterp::sandbox::docker::DockerBackend;
use tokio_util::sync::CancellationToken;

use crate::support::{printed, request};

/// Answers as it was told to, and keeps what it was asked.
#[derive(Debug, Default)]
struct Answer {
    yes: bool,
    asked: Mutex<Vec<PackageDownload>>,
}

#[async_trait]
impl Consent for Answer {
    async fn may_download(&self, download: &PackageDownload) -> bool {
        self.asked.lock().unwrap().push(download.clone());
        self.yes
    }
}

#[tokio::test]
async fn a_package_is_sized_agreed_to_and_there() {
    let mut request = request("packages");
    // A marker that is always true makes the list one that no earlier run has built.
    let unique = uuid::Uuid::new_v4().as_u128() % 1_000_000_000;
    request.settings.packages = vec![format!("humanize; python_version != '2.{unique}'")];
    let said = Mutex::new(Vec::new());
    let progress = |progress: codeinterp::agent::ports::Progress| said.lock().unwrap().push(progress.what);

    let no = Arc::new(Answer::default());
    let declined = DockerBackend::new().asking(Arc::clone(&no) as Arc<dyn Consent>);
    let error = declined.start(&request, &progress, &CancellationToken::new()).await.err().expect("it was declined");
    assert!(matches!(&error, SandboxError::Unavailable { message, .. } if message.contains("did not agree")), "{error:?}");
    let asked = no.asked.lock().unwrap().pop().expect("it was asked");
    assert!(asked.packages.iter().any(|package| package.starts_with("humanize ")), "{asked:?}");
    assert!(asked.bytes.is_some_and(|bytes| (10_000..5_000_000).contains(&bytes)), "{asked:?}");
    let what = asked.to_string();
    assert!(said.lock().unwrap().iter().any(|line| line.contains(&what) && line.contains(" kB")), "size and destination were not said");

    let yes = Arc::new(Answer { yes: true, ..Answer::default() });
    let agreed = DockerBackend::new().asking(Arc::clone(&yes) as Arc<dyn Consent>);
    let sandbox = agreed.start(&request, &progress, &CancellationToken::new()).await.expect("it starts");
    assert_eq!(printed(&sandbox, "import humanize, pandas; print(humanize.intcomma(1234567))").await, "1,234,567\n");
    sandbox.stop().await;
    // What was downloaded once is asked about no more.
    let again = agreed.start(&request, &progress, &CancellationToken::new()).await.expect("it starts");
    again.stop().await;
    assert_eq!(yes.asked.lock().unwrap().len(), 1);
    let engine = crate::support::engine().await;
    let images = codeinterp::sandbox::docker::owned::images(&engine).await.expect("images are listed");
    let own = images.iter().find(|image| image.tags.contains(&again.info().image)).expect("its image");
    codeinterp::sandbox::docker::owned::remove_image(&engine, own).await.expect("it is removed");
}

#[tokio::test]
async fn what_is_no_name_of_a_package_never_reaches_pip() {
    let mut request = request("badname");
    request.settings.packages = vec!["--index-url=http://example.invalid".to_owned()];
    let error = DockerBackend::new().start(&request, &|_| (), &CancellationToken::new()).await.err().expect("an error");
    assert!(error.to_string().contains("not the name of a package"), "{error}");
}

#[test]
fn an_index_that_does_not_answer_is_told_and_what_to_check() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("codeinterp")).expect("a folder");
    std::fs::write(folder.path().join("codeinterp/config.toml"), "[sandbox]\npackages = [\"humanize\"]\n").expect("it is written");
    let output = Command::new(env!("CARGO_BIN_EXE_codeinterp"))
        .args(["sandbox", "build", "--sandbox", "docker"])
        .env("XDG_CONFIG_HOME", folder.path())
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("humanize") && text.contains("check the network") && text.contains("PIP_INDEX_URL"), "{text}");
}
