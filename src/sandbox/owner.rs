//! Which process something belongs to, so that what a dead process left behind is told from what a living one uses.

use std::fmt;
use std::str::FromStr;

/// A process, told from a later one with the same id by its start time, and from one before a restart of the
/// machine by the boot's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot, as in field 22 of `/proc/PID/stat`; 0 where the system has no such file.
    pub start: u64,
    /// Id of the boot (`/proc/sys/kernel/random/boot_id`); empty where the system has no such file.
    pub boot: String,
}

impl Owner {
    /// This process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_time(pid).unwrap_or(0), boot: boot_id() }
    }

    /// Whether it is alive. `None` where this system can't tell.
    pub fn is_alive(&self) -> Option<bool> {
        let boot = boot_id();
        if boot.is_empty() || self.boot.is_empty() {
            return None;
        }
        // Another boot of this machine and another machine look the same: only this boot's processes are judged,
        // unless its container is in an engine that was restarted with the machine, where it is not running anyway.
        if boot != self.boot {
            return None;
        }
        Some(start_time(self.pid) == Some(self.start))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.pid, self.start, self.boot)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().ok_or(());
        let (pid, start, boot) = (next()?, next()?, next()?);
        Ok(Self { pid: pid.parse().map_err(|_| ())?, start: start.parse().map_err(|_| ())?, boot: boot.to_owned() })
    }
}

fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command in parentheses and may itself hold spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let state = rest.split_whitespace().next()?;
    // A zombie is dead: only its parent has not asked yet.
    if state == "Z" {
        return None;
    }
    rest.split_whitespace().nth(19)?.parse().ok()
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_with_its_id_is_not() {
        let mut owner = Owner::current();
        assert_eq!(owner.to_string().parse(), Ok(owner.clone()));
        assert_eq!(owner.is_alive(), Some(true));
        owner.start += 1;
        assert_eq!(owner.is_alive(), Some(false));
        owner.boot = "another".to_owned();
        assert_eq!(owner.is_alive(), None);
    }
}
