//! What the server tells the monitor (one JSON argument), and what the monitor reports (JSON lines on its standard error).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// User and group inside. On a host where root starts the sandbox it is the same number outside.
pub const INNER_ID: u32 = 65532;

/// What to start, and in what.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// Name of this sandbox, unique on the machine: letters, digits and hyphens.
    pub id: String,
    /// Go through every step except the last: nothing is executed.
    pub probe: bool,
    /// Program to execute, at the same path inside.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Folders and files of the host that can be read and executed, at the same path inside.
    pub read_only: Vec<PathBuf>,
    /// Files of the host that can be read, below the working directory.
    pub mounts: Vec<SpecMount>,
    /// Folder whose files are copied into `/tmp/matplotlib`.
    pub fonts: Option<PathBuf>,
    /// Limits.
    pub limits: Limits,
    /// File that records the running sandbox; the monitor writes and removes it.
    pub record: Option<PathBuf>,
    /// For the record: id and folder of the workspace.
    pub workspace: String,
    /// For the record.
    pub folder: Option<PathBuf>,
}

/// A file of the host below the working directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SpecMount {
    /// Absolute path on the host.
    pub host: PathBuf,
    /// Path relative to the working directory, checked by the server.
    pub name: PathBuf,
}

/// Limits of a sandbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory of the whole tree, scratch included.
    pub memory: u64,
    /// CPUs of the whole tree.
    pub cpus: f64,
    /// Processes and threads of the whole tree.
    pub pids: u32,
    /// Never use a cgroup: what a machine without a writable one does.
    pub no_cgroup: bool,
}

impl Limits {
    /// Bytes of the working directory. With the two below at most half of the memory, since they count as memory.
    pub fn workspace_bytes(&self) -> u64 {
        self.memory / 8 * 3
    }

    /// Bytes of `/tmp`.
    pub fn temporary_bytes(&self) -> u64 {
        self.memory / 16
    }

    /// Bytes of `/dev/shm`.
    pub fn shared_bytes(&self) -> u64 {
        (self.memory / 16).min(64 << 20)
    }
}

/// What the monitor reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The program is executing, confined.
    Started {
        /// Its process id on the host.
        pid: u32,
        /// The cgroup folders that bound it, by controller; empty where the watcher does.
        cgroups: Vec<(String, PathBuf)>,
    },
    /// A step of the confinement failed; nothing was executed.
    Refused {
        /// The step.
        step: String,
        /// What the system said.
        reason: String,
    },
    /// The program wrote a line to its standard error.
    Log {
        /// The line, cut.
        text: String,
    },
    /// The watcher killed a process because the tree had used too much memory.
    OutOfMemory {
        /// How often so far.
        kills: u64,
    },
    /// Everything in it is gone.
    Ended {
        /// Why, in words.
        reason: String,
        /// Processes killed for memory, by cgroup or watcher.
        oom_kills: u64,
    },
}
