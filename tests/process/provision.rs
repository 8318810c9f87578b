//! Building the Python environment, through the real installer and the real index.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use codeinterp::agent::ports::SandboxError;
use codeinterp::sandbox::consent::{Consent, PackageDownload};
use codeinterp::sandbox::provision::{Provisioner, list_environments, prune_environments};
use codeinterp::sandbox::{Backend, ProcessBackend};
use tokio_util::sync::CancellationToken;

use crate::support::{backend, block_on, printed, request, start_with, try_start};

/// The command line with a cache, a state and a table of its own.
struct Cli {
    folder: tempfile::TempDir,
}

impl Cli {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "a,b\n1,2\n").unwrap();
        Self { folder }
    }

    fn profile(&self, environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_codeinterp"));
        command.args(["profile", "t.csv", "--sandbox", "process"]).current_dir(self.folder.path());
        for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, self.folder.path().join(name));
        }
        command.env_remove("PIP_FIND_LINKS").envs(environment.iter().copied()).output().unwrap()
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("XDG_CACHE_HOME/codeinterp")
    }
}

fn complete(cache: &Path) -> usize {
    list_environments(cache).iter().filter(|entry| entry.sets.contains(&"core".to_owned())).count()
}

#[test]
fn without_python_the_message_says_what_to_install() {
    let output = Cli::new().profile(&[("PATH", "/nonexistent")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("Python") && text.contains("install"), "{text}");
}

#[test]
fn an_index_that_does_not_answer_is_told_with_the_installers_words_and_leaves_nothing_half_built() {
    let cli = Cli::new();
    let output = cli.profile(&[("PIP_INDEX_URL", "http://127.0.0.1:9/simple"), ("PIP_RETRIES", "0"), ("PIP_NO_CACHE_DIR", "1")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains(" MB") && text.contains("envs"), "size and destination: {text}");
    assert!(text.contains("No matching distribution") && !text.contains("Ignoring"), "{text}");
    assert!(text.contains("check the network") && text.contains("PIP_INDEX_URL"), "{text}");
    assert_eq!(complete(&cli.cache()), 0);
}

#[test]
fn an_environment_is_built_once_by_two_at_a_time_and_a_cancelled_build_is_started_again() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let provisioner = Provisioner::new(folder.path().to_owned());
        let cancel = CancellationToken::new();
        let said = Mutex::new(Vec::new());
        let stop_it = |progress: codeinterp::agent::ports::Progress| {
            if progress.what.starts_with("installing") {
                cancel.cancel();
            }
            said.lock().unwrap().push(progress.what);
        };
        assert_eq!(provisioner.core(&stop_it, &cancel).await.unwrap_err(), SandboxError::Cancelled);
        assert_eq!(complete(folder.path()), 0);
        let first = said.lock().unwrap()[0].clone();
        assert!(first.contains(" MB") && first.contains(&folder.path().display().to_string()), "{first}");

        said.lock().unwrap().clear();
        let say = |progress: codeinterp::agent::ports::Progress| said.lock().unwrap().push(progress.what);
        let going = CancellationToken::new();
        let (one, two) = tokio::join!(provisioner.core(&say, &going), provisioner.core(&say, &going));
        assert_eq!(one.unwrap(), two.unwrap());
        let builds = said.lock().unwrap().iter().filter(|what| what.starts_with("downloading Python packages")).count();
        assert_eq!(builds, 1);
        assert_eq!(complete(folder.path()), 1);

        let sandbox = start_with(&ProcessBackend::new(folder.path().to_owned()), &request()).await;
        assert!(prune_environments(folder.path(), None).is_empty(), "it is in use");
        sandbox.stop().await;
        drop(sandbox);
        assert_eq!(prune_environments(folder.path(), None).len(), 1);
        assert!(list_environments(folder.path()).is_empty());
    });
}

#[test]
fn packages_of_the_settings_can_be_imported_without_a_network() {
    block_on(async {
        let mut request = request();
        request.settings.packages = vec!["humanize".to_owned()];
        let sandbox = start_with(&backend(), &request).await;
        assert_eq!(printed(&sandbox, "import humanize; print(humanize.intcomma(1234567))").await.trim(), "1,234,567");
        sandbox.stop().await;

        request.settings.packages = vec!["--index-url=http://127.0.0.1".to_owned()];
        assert!(matches!(try_start(&backend(), &request).await.err(), Some(SandboxError::Unavailable { .. })));
    });
}

/// Agrees to no download.
#[derive(Debug)]
struct Never;

#[async_trait::async_trait]
impl Consent for Never {
    async fn may_download(&self, _download: &PackageDownload) -> bool {
        false
    }
}

#[test]
fn a_package_whose_download_is_declined_is_sized_and_not_downloaded() {
    block_on(async {
        let mut request = request();
        // A marker that is always true makes the list one that no earlier run has built.
        let unique = uuid::Uuid::new_v4().as_u128() % 1_000_000_000;
        request.settings.packages = vec![format!("inflection; python_version != '2.{unique}'")];
        let said = Mutex::new(Vec::new());
        let progress = |progress: codeinterp::agent::ports::Progress| said.lock().unwrap().push(progress.what);
        let error = backend().asking(Arc::new(Never)).start(&request, &progress, &CancellationToken::new()).await.err().unwrap();
        assert!(matches!(&error, SandboxError::Unavailable { message, .. } if message.contains("did not agree")), "{error:?}");
        let said = said.into_inner().unwrap();
        let download = said.iter().find(|what| what.starts_with("downloading") && what.contains("inflection ")).unwrap();
        assert!(download.contains(" kB for sandbox.packages") && download.contains("/packages/"), "{download}");
        let packages = backend().environment().await.unwrap().root.join("packages");
        let left = std::fs::read_dir(packages).unwrap().flatten().any(|entry| entry.path().join("inflection").exists());
        assert!(!left);
    });
}

#[test]
#[ignore = "downloads the full set, about 140 MB: cargo test --test process -- --ignored full_set"]
fn the_full_set_can_be_imported_once_it_is_there_in_a_sandbox_that_ran_before() {
    block_on(async {
        let sandbox = start_with(&backend(), &request()).await;
        backend().enrich(&|progress| eprintln!("{}", progress.what), &CancellationToken::new()).await.unwrap();
        let code = "import polars, scipy, sklearn, statsmodels.api, seaborn, plotly, altair, lxml, pyreadstat, xlrd\nprint('all there')";
        assert_eq!(printed(&sandbox, code).await.trim(), "all there");
        sandbox.stop().await;
    });
}
