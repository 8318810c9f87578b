//! Which process sandboxes run, on disk: for `sandbox list`, and for removing what a killed monitor left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::cgroup;
use crate::sandbox::owner::Owner;

/// A running sandbox, or one that was killed before it could clean up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the sandbox.
    pub id: String,
    /// Id of the workspace.
    pub workspace: String,
    /// Folder of the workspace.
    pub folder: Option<PathBuf>,
    /// The monitor, as [`Owner`] writes itself.
    pub monitor: String,
    /// The server that it belongs to, by process id.
    pub server: u32,
    /// When it was started, seconds since 1970.
    pub started: u64,
    /// Its control groups.
    pub cgroups: Vec<PathBuf>,
}

/// Folder of the records below a cache folder.
pub fn folder(cache: &Path) -> PathBuf {
    cache.join("sandboxes")
}

impl Record {
    /// Its monitor runs. A record of another start of the machine is dead.
    fn is_alive(&self) -> bool {
        self.monitor.parse::<Owner>().is_ok_and(|owner| owner.is_alive() == Some(true))
    }

    /// Writes it; a reader sees all of it or nothing.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, path)
    }

    /// Seconds since 1970, now.
    pub fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
    }
}

/// The sandboxes that run, of all servers of this user.
pub fn running(cache: &Path) -> Vec<Record> {
    all(cache).into_iter().map(|(_, record)| record).filter(Record::is_alive).collect()
}

/// Removes what dead monitors left; returns how many there were.
pub fn reap(cache: &Path) -> usize {
    let mut reaped = 0;
    for (path, record) in all(cache) {
        if !record.is_alive() {
            // A record stays until everything that it names is gone.
            let gone = record.cgroups.iter().filter(|folder| !cgroup::remove_stale(folder)).count() == 0;
            reaped += usize::from(gone && fs::remove_file(path).is_ok());
        }
    }
    reaped
}

fn all(cache: &Path) -> Vec<(PathBuf, Record)> {
    let Ok(entries) = fs::read_dir(folder(cache)) else { return Vec::new() };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| {
            let record = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            Some((path, record))
        })
        .collect()
}
