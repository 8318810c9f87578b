//! What lies in the cache: for `sandbox list` and `sandbox prune`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

/// An environment in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvironmentEntry {
    /// Its folder.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    /// Seconds since it was made.
    pub age_seconds: u64,
    /// Version of its Python; `None` where it was never completed.
    pub python: Option<String>,
    /// Sets that are complete: `core`, `full`.
    pub sets: Vec<String>,
    /// A sandbox runs in it now, or it is being built.
    pub in_use: bool,
}

/// The environments below `cache`, oldest first.
pub fn list_environments(cache: &Path) -> Vec<EnvironmentEntry> {
    let Ok(entries) = std::fs::read_dir(cache.join("envs")) else { return Vec::new() };
    let mut found: Vec<EnvironmentEntry> =
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| describe(&entry.path())).collect();
    found.sort_by_key(|entry| std::cmp::Reverse(entry.age_seconds));
    found
}

/// Removes the environments below `cache` that nobody uses, except `keep`; returns what it removed.
pub fn prune_environments(cache: &Path, keep: Option<&Path>) -> Vec<EnvironmentEntry> {
    let mut removed = Vec::new();
    for entry in list_environments(cache) {
        if keep == Some(entry.path.as_path()) {
            continue;
        }
        // Both locks are held while it goes, so that nobody starts to use it meanwhile.
        let locks: Vec<Option<File>> = ["lock", "use"].map(|kind| take(&entry.path.with_extension(kind))).into();
        if locks.iter().any(Option::is_none) {
            continue;
        }
        if std::fs::remove_dir_all(&entry.path).is_ok() {
            for kind in ["lock", "use"] {
                let _ = std::fs::remove_file(entry.path.with_extension(kind));
            }
            removed.push(entry);
        }
    }
    removed
}

fn describe(path: &Path) -> EnvironmentEntry {
    let marker = std::fs::read(path.join("core.json")).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let made = path.metadata().and_then(|metadata| metadata.created().or_else(|_| metadata.modified())).ok();
    EnvironmentEntry {
        bytes: size(path),
        age_seconds: made.and_then(|made| SystemTime::now().duration_since(made).ok()).map_or(0, |age| age.as_secs()),
        python: marker.as_ref().and_then(|marker| marker["version"].as_str()).map(str::to_owned),
        sets: ["core", "full"].into_iter().filter(|set| path.join(format!("{set}.json")).is_file()).map(str::to_owned).collect(),
        in_use: ["lock", "use"].iter().any(|kind| path.with_extension(kind).exists() && take(&path.with_extension(kind)).is_none()),
        path: path.to_owned(),
    }
}

/// The lock at `path`, where nobody holds it.
fn take(path: &Path) -> Option<File> {
    let file = File::create(path).ok()?;
    file.try_lock().ok().map(|()| file)
}

/// Bytes of the files below a folder; links are not followed.
fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) if metadata.is_file() => metadata.len(),
            _ => 0,
        })
        .sum()
}
