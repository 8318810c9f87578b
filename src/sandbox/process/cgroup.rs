//! Memory, processes and CPU of the whole tree by the kernel's control groups, where this user may make one.
//!
//! Version 2 is one hierarchy (`/sys/fs/cgroup`), version 1 one for each controller. Formats: the kernel's documentation,
//! admin-guide/cgroup-v1 and admin-guide/cgroup-v2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::spec::Limits;

/// Folders of ours begin so.
const PREFIX: &str = "codeinterp-";
/// Time that an emptied group may take until it can be removed.
const REMOVAL: Duration = Duration::from_millis(500);
/// Period of the CPU quota in microseconds, the kernel's default.
const PERIOD: u64 = 100_000;

/// The groups of one sandbox: controllers and folders.
#[derive(Debug, Default)]
pub struct Cgroup {
    /// One entry for each controller that holds; in version 2 they share a folder.
    pub folders: Vec<(String, PathBuf)>,
}

impl Cgroup {
    /// Makes what can be made. Nothing that fails here is an error: the watcher and the limits of processes stand in.
    pub fn create(id: &str, limits: &Limits) -> Self {
        if limits.no_cgroup {
            return Self::default();
        }
        let Ok(membership) = fs::read_to_string("/proc/self/cgroup") else { return Self::default() };
        let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else { return Self::default() };
        let name = format!("{PREFIX}{id}");
        let mut made = Self::default();
        for controller in ["memory", "pids", "cpu", "cpuacct"] {
            let Some(parent) = v1_folder(controller, &membership, &mounts) else { continue };
            made.add_v1(controller, &parent.join(&name), limits);
        }
        if !made.has("memory") && !made.has("pids") {
            made.add_v2(&name, &membership, &mounts, limits);
        }
        made
    }

    /// True where this controller bounds the sandbox.
    pub fn has(&self, controller: &str) -> bool {
        self.folders.iter().any(|(each, _)| each == controller)
    }

    /// Puts a process, and so everything that it will start, into the groups.
    pub fn attach(&self, pid: libc::pid_t) -> io::Result<()> {
        for folder in self.unique() {
            fs::write(folder.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// Removes the groups, once everything in them is dead.
    pub fn remove(&self) {
        for folder in self.unique() {
            // What can't be removed now is removed by way of its record at the next start.
            let _ = remove_folder(folder);
        }
    }

    fn unique(&self) -> Vec<&Path> {
        let mut folders: Vec<&Path> = self.folders.iter().map(|(_, folder)| folder.as_path()).collect();
        folders.dedup();
        folders
    }

    fn add_v1(&mut self, controller: &str, folder: &Path, limits: &Limits) {
        if fs::create_dir(folder).is_err() {
            return;
        }
        let memory = limits.memory.to_string();
        let settings: Vec<(&str, String)> = match controller {
            "memory" => vec![("memory.limit_in_bytes", memory.clone())],
            "pids" => vec![("pids.max", limits.pids.to_string())],
            "cpu" => vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", quota(limits.cpus).to_string())],
            _ => Vec::new(),
        };
        if settings.iter().any(|(file, value)| fs::write(folder.join(file), value).is_err()) {
            let _ = fs::remove_dir(folder);
            return;
        }
        if controller == "memory" {
            // Absent where swap is not accounted.
            let _ = fs::write(folder.join("memory.memsw.limit_in_bytes"), &memory);
        }
        self.folders.push((controller.to_owned(), folder.to_owned()));
    }

    /// In version 2 a group with processes gives no controllers to groups below it, so that ours lies beside the one that
    /// this process is in, or higher up, as far as this user's delegation reaches.
    fn add_v2(&mut self, name: &str, membership: &str, mounts: &str, limits: &Limits) {
        let Some(mount) = mount_points(mounts).find(|mount| mount.kind == "cgroup2").map(|mount| mount.folder) else { return };
        let Some(own) = membership.lines().find_map(|line| line.strip_prefix("0::")) else { return };
        let own = mount.join(own.trim_start_matches('/'));
        for parent in own.ancestors().take_while(|folder| folder.starts_with(&mount)) {
            let enabled = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
            let enabled: Vec<&str> = enabled.split_whitespace().collect();
            if !enabled.contains(&"memory") && !enabled.contains(&"pids") {
                continue;
            }
            let folder = parent.join(name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let settings = [
                ("memory", "memory.max", limits.memory.to_string()),
                ("pids", "pids.max", limits.pids.to_string()),
                ("cpu", "cpu.max", format!("{} {PERIOD}", quota(limits.cpus))),
            ];
            for (controller, file, value) in settings {
                if enabled.contains(&controller) && fs::write(folder.join(file), value).is_ok() {
                    self.folders.push((controller.to_owned(), folder.clone()));
                }
            }
            let _ = fs::write(folder.join("memory.swap.max"), "0");
            if self.folders.is_empty() {
                let _ = fs::remove_dir(&folder);
            } else {
                return;
            }
        }
    }
}

/// Processes killed for memory in a group, by its folder; `None` where it does not say.
pub fn oom_kills(folder: &Path) -> Option<u64> {
    ["memory.events", "memory.oom_control"].iter().find_map(|file| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")).and_then(|count| count.trim().parse().ok())
    })
}

/// Bytes of memory in use in a group, without what is only cached of files.
pub fn memory(folder: &Path) -> Option<u64> {
    let used = ["memory.current", "memory.usage_in_bytes"].iter().find_map(|file| number(&folder.join(file)))?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = ["inactive_file ", "total_inactive_file "]
        .iter()
        .filter_map(|name| stat.lines().find_map(|line| line.strip_prefix(name)))
        .filter_map(|value| value.trim().parse::<u64>().ok())
        .max();
    Some(used.saturating_sub(cached.unwrap_or(0)))
}

/// CPU time that a group has used.
pub fn cpu_time(folder: &Path) -> Option<Duration> {
    if let Some(nanoseconds) = number(&folder.join("cpuacct.usage")) {
        return Some(Duration::from_nanos(nanoseconds));
    }
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()?;
    Some(Duration::from_micros(microseconds))
}

/// Removes a group that a dead monitor left, if it is one of ours. True where it is gone.
pub fn remove_stale(folder: &Path) -> bool {
    let ours = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let plain = folder.starts_with("/sys/fs/cgroup") && !folder.components().any(|part| part == std::path::Component::ParentDir);
    // What is not ours is left alone, and forgotten.
    !(ours && plain) || remove_folder(folder).is_ok()
}

/// Removes a group whose members are dead.
fn remove_folder(folder: &Path) -> io::Result<()> {
    let start = std::time::Instant::now();
    loop {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // The last member's exit is accounted a moment after it is reaped, and no event tells of it in version 1.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < REMOVAL => {
                std::thread::sleep(Duration::from_millis(2));
            }
            outcome => return outcome,
        }
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few CPUs at most")]
fn quota(cpus: f64) -> u64 {
    ((cpus * PERIOD as f64) as u64).max(1000)
}

struct MountPoint {
    root: PathBuf,
    folder: PathBuf,
    kind: String,
    options: String,
}

/// The lines of a mountinfo file (`proc_pid_mountinfo(5)`): fields, a hyphen, then type, source and the file system's options.
fn mount_points(mounts: &str) -> impl Iterator<Item = MountPoint> {
    mounts.lines().filter_map(|line| {
        let (fields, rest) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, folder) = (fields.next()?, fields.next()?);
        let mut rest = rest.split(' ');
        let (kind, options) = (rest.next()?, rest.nth(1)?);
        Some(MountPoint { root: root.into(), folder: folder.into(), kind: kind.to_owned(), options: options.to_owned() })
    })
}

/// The folder of the group that this process is in, for a controller of version 1.
fn v1_folder(controller: &str, membership: &str, mounts: &str) -> Option<PathBuf> {
    let own = membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers.split(',').any(|each| each == controller).then(|| parts.next()).flatten()
    })?;
    let mount = mount_points(mounts).find(|mount| mount.kind == "cgroup" && mount.options.split(',').any(|each| each == controller))?;
    // Inside a container the mount may begin below the hierarchy's root.
    let relative = Path::new(own).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    Some(mount.folder.join(relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 /docker/ab /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
";

    #[test]
    fn the_own_group_of_a_version_1_controller_is_found() {
        let membership = "4:memory:/user/x\n3:cpu,cpuacct:/\n2:pids:/docker/ab/c\n0::/\n";
        let folder = |controller| v1_folder(controller, membership, MOUNTS);
        assert_eq!(folder("memory"), Some("/sys/fs/cgroup/memory/user/x".into()));
        assert_eq!(folder("cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(folder("pids"), Some("/sys/fs/cgroup/pids/c".into()));
        assert_eq!(folder("io"), None);
    }

    #[test]
    fn in_version_2_the_group_lies_where_the_controllers_are_given_on() -> Result<(), Box<dyn std::error::Error>> {
        // The kernel of the tests' machine has its controllers in version 1: a folder stands in for the hierarchy.
        let mount = tempfile::tempdir()?;
        let session = mount.path().join("user.slice/session.scope");
        fs::create_dir_all(&session)?;
        fs::write(session.join("cgroup.subtree_control"), "")?;
        fs::write(mount.path().join("user.slice/cgroup.subtree_control"), "cpu memory pids\n")?;
        fs::write(mount.path().join("cgroup.subtree_control"), "cpu io memory pids\n")?;
        let mounts = format!("35 25 0:30 / {} rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", mount.path().display());
        let limits = Limits { memory: 1 << 28, cpus: 0.5, pids: 64, no_cgroup: false };
        let mut made = Cgroup::default();
        made.add_v2("codeinterp-x", "0::/user.slice/session.scope\n", &mounts, &limits);
        let folder = mount.path().join("user.slice/codeinterp-x");
        assert_eq!(made.folders, ["memory", "pids", "cpu"].map(|controller| (controller.to_owned(), folder.clone())));
        for (file, value) in [("memory.max", "268435456"), ("memory.swap.max", "0"), ("pids.max", "64"), ("cpu.max", "50000 100000")] {
            assert_eq!(fs::read_to_string(folder.join(file))?, value, "{file}");
        }
        fs::write(folder.join("memory.events"), "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 0\n")?;
        fs::write(folder.join("memory.current"), "5000\n")?;
        fs::write(folder.join("memory.stat"), "anon 3000\ninactive_file 1200\n")?;
        assert_eq!((oom_kills(&folder), memory(&folder)), (Some(2), Some(3800)));
        Ok(())
    }

    #[test]
    fn half_a_cpu_is_half_a_period() {
        assert_eq!(quota(0.5), 50_000);
        assert_eq!(quota(2.0), 200_000);
        assert_eq!(quota(0.0), 1000);
    }
}
