//! Memory of the whole tree where no cgroup can be made: a sample of `/proc` now and then, and a kill.
//!
//! This is the one place that looks at a clock: the kernel has no event for "this tree has used so much". The interval
//! is bounded on both sides. Processes are found as descendants; whatever daemonizes is still a child of pid 1 inside.

use std::fs;
use std::time::Duration;

/// Between two samples.
pub const INTERVAL: Duration = Duration::from_millis(50);
/// Most processes that are looked at.
const MAX_PROCESSES: usize = 4096;

/// Watches one tree.
#[derive(Debug)]
pub struct Watcher {
    root: libc::pid_t,
    limit: u64,
    /// Processes that it has killed.
    pub kills: u64,
}

impl Watcher {
    /// `root` is the supervisor's process id on the host; `limit` is in bytes.
    pub fn new(root: libc::pid_t, limit: u64) -> Self {
        Self { root, limit, kills: 0 }
    }

    /// Takes a sample: where the tree has used too much, its largest process, which is never the root.
    pub fn victim(&self) -> Option<libc::pid_t> {
        let processes = descendants(self.root);
        // Cheap first: shared pages count for each process, so that this is never too small.
        let resident: u64 = processes.iter().filter_map(|&pid| resident(pid)).sum::<u64>() + scratch(self.root);
        if resident <= self.limit {
            return None;
        }
        let exact: Vec<(libc::pid_t, u64)> = processes.iter().filter_map(|&pid| Some((pid, proportional(pid)?))).collect();
        if exact.iter().map(|(_, bytes)| bytes).sum::<u64>() + scratch(self.root) <= self.limit {
            return None;
        }
        exact.iter().filter(|(pid, _)| *pid != self.root).max_by_key(|(_, bytes)| *bytes).map(|&(pid, _)| pid)
    }

    /// Kills it. The count goes to `report` before: whoever hears of the death by another way must find the cause there already.
    pub fn kill(&mut self, victim: libc::pid_t, report: impl Fn(u64)) {
        self.kills += 1;
        report(self.kills);
        // SAFETY: a plain system call. The process is alive or a zombie: its parent, in the tree, has not reaped it between
        // the sample and now except by a rare chance, and then its number is not in use again so soon.
        if unsafe { libc::kill(victim, libc::SIGKILL) } != 0 {
            self.kills -= 1;
            report(self.kills);
        }
    }
}

/// Bytes of memory of a tree, pages shared among processes counted once.
pub fn memory(root: libc::pid_t) -> u64 {
    descendants(root).iter().filter_map(|&pid| proportional(pid)).sum::<u64>() + scratch(root)
}

/// The process and all its descendants.
fn descendants(root: libc::pid_t) -> Vec<libc::pid_t> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() && found.len() < MAX_PROCESSES {
        let pid = found[next];
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<libc::pid_t>().ok()));
        }
    }
    found
}

/// Bytes of resident memory, shared pages included (`proc_pid_statm(5)`, second field, in pages).
fn resident(pid: libc::pid_t) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: no arguments to get wrong.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    pages.checked_mul(page)
}

/// Bytes of resident memory, each page divided by the number of processes that share it.
fn proportional(pid: libc::pid_t) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kilobytes: u64 = text.lines().find_map(|line| line.strip_prefix("Pss:"))?.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Bytes in the scratch folders, which are memory too.
fn scratch(root: libc::pid_t) -> u64 {
    ["workspace", "tmp", "dev/shm"]
        .iter()
        .filter_map(|folder| nix::sys::statvfs::statvfs(format!("/proc/{root}/root/{folder}").as_str()).ok())
        .map(|status| status.blocks().saturating_sub(status.blocks_free()).saturating_mul(status.fragment_size()))
        .sum()
}
