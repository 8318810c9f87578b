//! What comes before the first turn: a sandbox, the files in it, their profiles.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::request::RunFile;
use super::worker::Worker;
use super::workspace_sandbox::WorkspaceSandbox;
use crate::agent::events::RunEvent;
use crate::agent::ports::{FileSource, ProfileOptions, PutFile, Sandbox, Sink};
use crate::agent::run::{InputFile, RunError};
use crate::config::Settings;
use crate::profile::ProfileOutcome;
use crate::sandbox::Mount;

/// Everything that the loop is given.
pub(super) struct Prepared {
    pub sandbox: Arc<WorkspaceSandbox>,
    pub files: Vec<PutFile>,
    pub profiles: Vec<ProfileOutcome>,
}

/// Starts the sandbox where there is none that fits, puts the files in and profiles them.
pub(super) async fn prepare(
    worker: &mut Worker,
    settings: &Settings,
    files: &[RunFile],
    sink: Sink<'_, RunEvent>,
    cancel: &CancellationToken,
) -> Result<Prepared, RunError> {
    let mounts = large_files(files, settings.sandbox.memory.0);
    let progress = |progress| sink(RunEvent::Progress(progress));
    let sandbox = worker.sandbox(settings, mounts, &progress, &|notice| sink(RunEvent::Notice(notice)), cancel).await?;
    sink(RunEvent::Sandbox(sandbox.info()));

    let mut put = Vec::with_capacity(files.len());
    for file in files {
        let done = sandbox.put_file(&file.name, &file.source, &progress, cancel).await.map_err(|error| RunError::from(&error))?;
        if done.mounted {
            sink(RunEvent::Notice(format!("{} is large: the sandbox reads it where it stands, read-only.", file.name)));
        }
        let input = InputFile { name: done.name.clone(), source: file.origin.clone(), sha256: done.sha256.clone(), bytes: done.bytes };
        sink(RunEvent::Input(input));
        put.push(done);
    }

    let names: Vec<String> = put.iter().map(|file| file.name.clone()).collect();
    let options = ProfileOptions { max_rows: settings.files.max_rows, ..ProfileOptions::default() };
    let profiles = if names.is_empty() {
        Vec::new()
    } else {
        sandbox.profile(&names, &options, &progress, cancel).await.map_err(|error| RunError::from(&error))?
    };
    sink(RunEvent::Profiles(profiles.clone()));
    Ok(Prepared { sandbox, files: put, profiles })
}

/// Files that are too large to be copied: scratch is charged to the sandbox's memory, so an eighth of it is the bound.
pub(super) fn large_files(files: &[RunFile], memory: u64) -> Vec<Mount> {
    files
        .iter()
        .filter_map(|file| match &file.source {
            FileSource::Path(path) if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > memory / 8) => {
                Some(Mount { host: path.clone(), name: file.name.clone() })
            }
            FileSource::Path(_) | FileSource::Bytes(_) => None,
        })
        .collect()
}
