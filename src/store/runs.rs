//! The folder of a workspace's runs.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{files, names};
use crate::agent::ports::{ArtifactStore, StoreError};
use crate::agent::run::{Artifact, Run, RunStatus};

/// Most artifacts of a run.
const MAX_ARTIFACTS: usize = 200;

/// Runs that a workspace keeps; older ones are removed when a new one is saved.
const MAX_RUNS: usize = 200;

/// The empty file in a run's folder that says that its hints were cleared.
const CLEARED: &str = "hints-cleared";

/// The runs of one workspace. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunStore {
    /// `$XDG_STATE_HOME/codeinterp/<workspace>/runs`.
    root: PathBuf,
    workspace: String,
}

/// What a list of runs shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Id of the run.
    pub run: String,
    /// Its status; a run that was under way when its process died is `failed`.
    pub status: RunStatus,
    /// What was asked.
    pub question: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// The model.
    pub model: String,
    /// Number of steps.
    pub steps: u32,
    /// Number of artifacts.
    pub artifacts: usize,
    /// Name of the workspace's folder in the state directory.
    pub workspace: String,
    /// The document asked about.
    pub uri: Option<String>,
}

impl RunStore {
    /// The store of `folder` below `state` (see [`crate::config::state_dir`]). Creates nothing.
    pub fn of_folder(state: &Path, folder: &Path) -> Self {
        Self::named(state, &workspace_id(folder))
    }

    /// The store of the workspace with this id.
    pub fn named(state: &Path, workspace: &str) -> Self {
        Self { root: state.join(workspace).join("runs"), workspace: workspace.to_owned() }
    }

    /// Id of the workspace.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// The run's folder on the host.
    pub fn run_dir(&self, run: &str) -> PathBuf {
        self.root.join(run)
    }

    /// Keeps the report of a run beside its record.
    pub async fn save_report(&self, run: &str, markdown: String) -> Result<PathBuf, StoreError> {
        let relative = self.relative(run, "report.md")?;
        self.write(relative, markdown.into_bytes()).await
    }

    /// Reads the record of a run.
    pub fn load(&self, run: &str) -> Result<Run, StoreError> {
        let path = self.root.join(self.relative(run, "run.json")?);
        let text = std::fs::read(&path).map_err(|_| StoreError::NotFound(format!("run {run}")))?;
        let mut record: Run = serde_json::from_slice(&text).map_err(|error| StoreError::Io { path, reason: error.to_string() })?;
        // The process that was to finish it is gone when a record is read from disk with such a status.
        if !record.status.is_final() {
            record.status = RunStatus::Failed;
        }
        Ok(record)
    }

    /// The host's path of an artifact of a run, if the run has it.
    pub fn artifact_path(&self, run: &str, name: &str) -> Result<PathBuf, StoreError> {
        let missing = || StoreError::NotFound(format!("artifact {name:?} of run {run}"));
        let plain = names::artifact_name(name).map_err(|_| missing())?;
        let path = self.root.join(self.relative(run, "artifacts")?).join(&plain);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() && plain == name => Ok(path),
            _ => Err(missing()),
        }
    }

    /// Keeps an input that stands nowhere else; `place` is its place among the run's inputs.
    pub async fn save_input(&self, run: &str, place: usize, data: &[u8]) -> Result<PathBuf, StoreError> {
        let relative = self.relative(run, &format!("inputs/{place}"))?;
        self.write(relative, data.to_vec()).await
    }

    /// The host's path of a kept input, if the run has it.
    pub fn input_path(&self, run: &str, place: usize) -> Option<PathBuf> {
        let path = self.root.join(self.relative(run, &format!("inputs/{place}")).ok()?);
        std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()).then_some(path)
    }

    /// All runs, newest first. Records that can't be read are left out.
    pub fn list(&self) -> Vec<RunSummary> {
        self.ids().iter().rev().filter_map(|id| self.load(id).ok()).map(|run| self.summary(&run)).collect()
    }

    /// The newest runs about the document of this URI, newest first, at most `most`.
    pub fn about(&self, uri: &str, most: usize) -> Vec<Run> {
        // The whole of a record is read only where the URI stands in it.
        let needle = serde_json::to_vec(uri).unwrap_or_default();
        let mentions = |id: &&String| {
            std::fs::read(self.run_dir(id).join("run.json")).is_ok_and(|text| memchr::memmem::find(&text, &needle).is_some())
        };
        let ids = self.ids();
        let about = ids.iter().rev().filter(mentions).filter_map(|id| self.load(id).ok());
        about.filter(|run| run.uri.as_deref() == Some(uri)).take(most).collect()
    }

    /// Remembers that a person cleared the hints of these runs, and of all runs about `uri`, or of all runs where there
    /// is none: a later server does not draw them again.
    pub fn clear_hints(&self, uri: Option<&str>, runs: &[String]) -> Result<(), StoreError> {
        let about: Vec<String> = match uri {
            Some(uri) => self.about(uri, usize::MAX).into_iter().map(|run| run.run).collect(),
            None => self.ids(),
        };
        for run in about.iter().chain(runs).filter(|run| !self.hints_cleared(run)) {
            files::write_beneath(&self.root, &self.relative(run, CLEARED)?, b"")?;
        }
        Ok(())
    }

    /// A person has cleared the hints of this run.
    pub fn hints_cleared(&self, run: &str) -> bool {
        self.relative(run, CLEARED).is_ok_and(|path| self.root.join(path).exists())
    }

    /// Ids of all runs, oldest first.
    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = std::fs::read_dir(&self.root)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| is_run_id(name))
            .collect();
        ids.sort_unstable();
        ids
    }

    fn summary(&self, run: &Run) -> RunSummary {
        RunSummary {
            run: run.run.clone(),
            status: run.status,
            question: run.question.clone(),
            started_at: run.started_at.clone(),
            model: run.model.clone(),
            steps: run.total_steps,
            artifacts: run.artifacts.len(),
            workspace: self.workspace.clone(),
            uri: run.uri.clone(),
        }
    }

    fn relative(&self, run: &str, rest: &str) -> Result<PathBuf, StoreError> {
        if is_run_id(run) { Ok(Path::new(run).join(rest)) } else { Err(StoreError::NotFound(format!("run {run:?} in {}", self.workspace))) }
    }

    async fn write(&self, relative: PathBuf, data: Vec<u8>) -> Result<PathBuf, StoreError> {
        let root = self.root.clone();
        let path = root.join(&relative);
        tokio::task::spawn_blocking(move || files::write_beneath(&root, &relative, &data))
            .await
            .map_err(|error| StoreError::Io { path, reason: error.to_string() })?
    }

    /// Removes the oldest runs beyond [`MAX_RUNS`].
    fn prune(&self) {
        let ids = self.ids();
        let surplus = ids.len().saturating_sub(MAX_RUNS);
        for id in &ids[..surplus] {
            if let Err(error) = files::remove_beneath(&self.root, Path::new(id)) {
                tracing::warn!(%error, "an old run can't be removed");
            }
        }
    }
}

#[async_trait]
impl ArtifactStore for RunStore {
    async fn save_artifact(&self, run: &str, name: &str, data: &[u8], step: u32, caption: Option<String>) -> Result<Artifact, StoreError> {
        let refused = |reason: String| StoreError::Refused { name: name.to_owned(), reason };
        let plain = names::artifact_name(name).map_err(refused)?;
        let mime = names::checked_mime(&plain, data).map_err(refused)?;
        let folder = self.relative(run, "artifacts")?;
        let taken = std::fs::read_dir(self.root.join(&folder)).map_or(0, Iterator::count);
        if taken >= MAX_ARTIFACTS {
            return Err(refused(format!("the run has {taken} artifacts already")));
        }
        let mut free = plain.clone();
        let mut number = 1;
        while let Ok(old) = std::fs::read(self.root.join(&folder).join(&free)) {
            if old == data {
                break;
            }
            number += 1;
            free = names::numbered(&plain, number);
        }
        let path = self.write(folder.join(&free), data.to_vec()).await?;
        Ok(Artifact { name: free, path, mime: mime.to_owned(), bytes: data.len() as u64, step, caption })
    }

    async fn save_run(&self, run: &Run) -> Result<(), StoreError> {
        let relative = self.relative(&run.run, "run.json")?;
        let text = serde_json::to_vec_pretty(run).map_err(|error| StoreError::Io { path: relative.clone(), reason: error.to_string() })?;
        self.write(relative, text).await?;
        if run.status.is_final() {
            self.prune();
        }
        Ok(())
    }
}

/// A new id of a run: UTC time to the second, so that ids sort by age, and six random hexadecimal digits.
pub fn new_run_id() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"), &random[..6])
}

/// Whether `text` has the form of an id; nothing else ever becomes part of a path.
pub fn is_run_id(text: &str) -> bool {
    text.len() == 22
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 15 => byte == b'-',
            0..=14 => byte.is_ascii_digit(),
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

/// A stable id of a workspace folder: its name made plain, and a hash of its whole path.
pub fn workspace_id(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name: String = folder
        .file_name()
        .map(|name| name.to_string_lossy().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).take(32).collect())
        .unwrap_or_default();
    let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let hex: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{hex}", if name.is_empty() { "root" } else { &name })
}

/// The runs of all workspaces below `state`, newest first.
pub fn list_all(state: &Path) -> Vec<RunSummary> {
    let mut runs: Vec<RunSummary> = stores(state).flat_map(|store| store.list()).collect();
    runs.sort_by(|a, b| b.run.cmp(&a.run));
    runs
}

/// The store that holds this run, whichever workspace it belongs to.
pub fn find_run(state: &Path, run: &str) -> Result<(RunStore, Run), StoreError> {
    stores(state)
        .find_map(|store| store.load(run).ok().map(|record| (store, record)))
        .ok_or_else(|| StoreError::NotFound(format!("run {run:?}")))
}

fn stores(state: &Path) -> impl Iterator<Item = RunStore> {
    let state = state.to_owned();
    std::fs::read_dir(&state)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(move |name| RunStore::named(&state, &name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_form_and_nothing_else_is_taken_for_one() {
        assert!(is_run_id(&new_run_id()));
        for wrong in ["", "..", "20260101-000000-abcde/", "20260101-000000-abcdeg", "../../../etc/passwd000"] {
            assert!(!is_run_id(wrong), "{wrong}");
        }
    }

    #[tokio::test]
    async fn artifacts_keep_their_names_and_collisions_are_numbered() -> Result<(), StoreError> {
        let state = tempfile::tempdir().expect("temporary folder");
        let store = RunStore::of_folder(state.path(), Path::new("/nowhere"));
        let run = new_run_id();
        let first = store.save_artifact(&run, "out/a.csv", b"x\n1\n", 1, None).await?;
        let same = store.save_artifact(&run, "a.csv", b"x\n1\n", 2, None).await?;
        let other = store.save_artifact(&run, "a.csv", b"x\n2\n", 2, None).await?;
        assert_eq!((first.name.as_str(), same.name.as_str(), other.name.as_str()), ("a.csv", "a.csv", "a-2.csv"));
        assert_eq!(first.mime, "text/csv");
        assert!(store.artifact_path(&run, "a-2.csv").is_ok());
        assert!(store.artifact_path(&run, "../run.json").is_err());
        assert!(store.artifact_path("../x", "a.csv").is_err());
        Ok(())
    }

    #[tokio::test]
    async fn a_run_is_read_back_as_it_was_saved() -> Result<(), StoreError> {
        let state = tempfile::tempdir().expect("temporary folder");
        let store = RunStore::of_folder(state.path(), Path::new("/nowhere"));
        let run = Run { run: new_run_id(), status: RunStatus::Completed, question: "why?".to_owned(), ..Run::default() };
        store.save_run(&run).await?;
        assert_eq!(store.load(&run.run)?, run);
        assert_eq!(list_all(state.path()).len(), 1);
        assert_eq!(find_run(state.path(), &run.run)?.1, run);
        Ok(())
    }
}
