//! The helper outside the sandbox: starts it, watches it, and removes every trace of it.
//!
//! One thread, one loop over descriptors. It ends the sandbox when the server's end of the pipe closes (which happens however the
//! server dies), on SIGTERM, and when the supervisor ends; and the supervisor ends with it, should it be killed itself.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::ExitCode;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::cage::{self, Pipes, Privilege};
use super::cgroup::{self, Cgroup};
use super::record::Record;
use super::spec::{Event, INNER_ID, Spec};
use super::tree::Failure;
use super::watcher::{INTERVAL, Watcher};
use crate::sandbox::owner::Owner;

/// Bytes of the supervisor's standard error that are passed on; it is for faults of ours, not for output of cells.
const MAX_LOG: usize = 64 << 10;

/// The hidden command. `spec` is one JSON object.
pub fn main(spec: Option<&OsStr>) -> ExitCode {
    let spec = spec.and_then(OsStr::to_str).and_then(|text| serde_json::from_str::<Spec>(text).ok());
    let Some(spec) = spec else {
        eprintln!("this command is for codeinterp itself: it starts a sandbox");
        return ExitCode::from(2);
    };
    match run(&spec) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&Event::Refused { step: failure.step, reason: failure.reason });
            ExitCode::from(1)
        }
    }
}

fn report(event: &Event) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    // A server that does not listen any more has closed its end of the pipe too, which ends everything.
    let _ = io::stderr().write_all(&line);
}

fn run(spec: &Spec) -> Result<(), Failure> {
    // Out of the terminal's reach: a Ctrl-C there is the server's to handle.
    let _ = nix::unistd::setsid();
    // What the server inherited of its own parents must not stay open because of this process, or reach the sandbox.
    // SAFETY: plain system calls; nothing of this process is open yet beyond the standard streams.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
        libc::umask(0o022);
    }
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().map_err(Failure::at("blocking signals"))?;
    let terminated = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC).map_err(Failure::at("listening for signals"))?;
    // SAFETY: standard input is open for the whole of this process.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    let lifeline = stdin.try_clone_to_owned().map_err(Failure::at("keeping the pipe"))?;

    let cgroup = Cgroup::create(&spec.id, &spec.limits);
    let started = start(spec, &cgroup);
    let outcome = match started {
        Ok(started) => {
            let _ = write_record(spec, &cgroup);
            close_standard_streams();
            watch(spec, &cgroup, &started, &lifeline, &terminated)
        }
        Err(failure) => Err(failure),
    };
    cgroup.remove();
    if let Some(record) = &spec.record {
        let _ = std::fs::remove_file(record);
    }
    if let Ok(Some(ended)) = &outcome {
        report(ended);
    }
    outcome.map(|_| ())
}

/// A process on its way in.
struct Started {
    pid: Pid,
    process: OwnedFd,
    failure: File,
    log: File,
    /// Closing it would tell the process that this monitor has ended.
    wake: OwnedFd,
}

fn pipe(step: &str) -> Result<(OwnedFd, OwnedFd), Failure> {
    nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(Failure::at(step.to_owned()))
}

fn start(spec: &Spec, cgroup: &Cgroup) -> Result<Started, Failure> {
    let privilege = Privilege::of_this_process();
    let (asked, ask) = pipe("making pipes")?;
    let (go, gone) = pipe("making pipes")?;
    let (log_out, log) = pipe("making pipes")?;
    let (failure_out, failure) = pipe("making pipes")?;
    let pid = clone(privilege).map_err(Failure::at("making namespaces"))?;
    if pid == 0 {
        // The monitor's ends would keep its pipes open.
        drop((asked, gone, log_out, failure_out));
        let code = match cage::enter(spec, privilege, &Pipes { ask, go, log }) {
            Ok(_) => 0,
            Err(reason) => {
                cage::write_failure(failure, &reason);
                1
            }
        };
        // SAFETY: ends the process without running anything of the monitor's.
        unsafe { libc::_exit(code) }
    }
    drop((ask, go, log, failure));
    let process = pidfd(pid).map_err(Failure::at("watching the process"))?;
    let started = Started { pid: Pid::from_raw(pid), process, failure: failure_out.into(), log: log_out.into(), wake: gone };
    let prepared = prepare(pid, privilege, cgroup, &asked, &started);
    if prepared.is_err() {
        kill_and_reap(&started);
    }
    prepared.map(|()| started)
}

fn prepare(pid: libc::pid_t, privilege: Privilege, cgroup: &Cgroup, asked: &OwnedFd, started: &Started) -> Result<(), Failure> {
    cgroup.attach(pid).map_err(Failure::at("bounding memory and processes"))?;
    let mut byte = [0];
    let count = nix::unistd::read(asked, &mut byte).map_err(Failure::at("waiting for the process"))?;
    if count == 0 {
        // It failed before it needed the maps: it says why.
        return Err(cage::read_failure(started.failure.try_clone().map_err(Failure::at("reading"))?)
            .ok()
            .flatten()
            .unwrap_or_else(|| Failure { step: "starting".to_owned(), reason: "the process ended".to_owned() }));
    }
    write_maps(pid, privilege).map_err(Failure::at("mapping users into the namespace"))?;
    nix::unistd::write(&started.wake, b"g").map_err(Failure::at("waking the process")).map(|_| ())
}

/// Lets user and group [`INNER_ID`] inside be the same outside where root starts it, and this user's own otherwise.
fn write_maps(pid: libc::pid_t, privilege: Privilege) -> io::Result<()> {
    let (user, group) = match privilege {
        Privilege::Root => (INNER_ID, INNER_ID),
        Privilege::User => {
            std::fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
            (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
        }
    };
    std::fs::write(format!("/proc/{pid}/uid_map"), format!("{INNER_ID} {user} 1\n"))?;
    std::fs::write(format!("/proc/{pid}/gid_map"), format!("{INNER_ID} {group} 1\n"))
}

/// Forks into new namespaces; 0 in the child.
fn clone(privilege: Privilege) -> io::Result<libc::pid_t> {
    let flags = i64::from(privilege.namespaces().bits() | libc::SIGCHLD);
    // SAFETY: like fork: no stack of its own, and this process has one thread, so that the child may do whatever it may.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid >= 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: the result is a new descriptor or -1.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        match libc::c_int::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn write_record(spec: &Spec, cgroup: &Cgroup) -> Option<()> {
    let record = Record {
        id: spec.id.clone(),
        workspace: spec.workspace.clone(),
        folder: spec.folder.clone(),
        monitor: Owner::current().to_string(),
        server: std::os::unix::process::parent_id(),
        started: Record::now(),
        cgroups: cgroup.folders.iter().map(|(_, folder)| folder.clone()).collect(),
    };
    record.write(spec.record.as_deref()?).ok()
}

/// The pipe to the server is the supervisor's alone: its death must be seen at the other end.
fn close_standard_streams() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for fd in [0, 1] {
            // SAFETY: plain system call on descriptors of this process.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
}

/// Waits for whichever end comes first; `None` where a probe passed.
fn watch(spec: &Spec, cgroup: &Cgroup, started: &Started, lifeline: &OwnedFd, terminated: &SignalFd) -> Result<Option<Event>, Failure> {
    let mut watcher = (!cgroup.has("memory")).then(|| Watcher::new(started.pid.as_raw(), spec.limits.memory));
    let mut log = Log { left: MAX_LOG, open: true };
    let mut confined = false;
    let mut killed_by = None;
    loop {
        let timeout = match (&watcher, confined) {
            (Some(_), true) => PollTimeout::try_from(INTERVAL).unwrap_or(PollTimeout::ZERO),
            _ => PollTimeout::NONE,
        };
        let failure_events = if confined { PollFlags::empty() } else { PollFlags::POLLIN };
        let log_events = if log.open { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = vec![
            PollFd::new(started.process.as_fd(), PollFlags::POLLIN),
            PollFd::new(lifeline.as_fd(), PollFlags::empty()),
            PollFd::new(terminated.as_fd(), PollFlags::POLLIN),
        ];
        // A pipe whose other end is closed would wake every poll: looked at only while it matters.
        let failure_at = (!confined).then(|| push(&mut fds, started.failure.as_fd(), failure_events));
        let log_at = log.open.then(|| push(&mut fds, started.log.as_fd(), log_events));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => {
                kill_and_reap(started);
                return Err(Failure { step: "watching".to_owned(), reason: error.to_string() });
            }
        }
        let ready = |index: usize| fds.get(index).and_then(PollFd::revents).is_some_and(|events| !events.is_empty());
        let (ended, closed, asked) = (ready(0), ready(1), ready(2));
        let (said, wrote) = (failure_at.is_some_and(ready), log_at.is_some_and(ready));
        if wrote {
            log.pass_on(&started.log);
        }
        if said {
            let failure = started.failure.try_clone().and_then(cage::read_failure).map_err(Failure::at("reading"))?;
            if let Some(failure) = failure {
                kill_and_reap(started);
                return Err(failure);
            }
            confined = true;
            if !spec.probe {
                report(&Event::Started { pid: started.pid.as_raw().cast_unsigned(), cgroups: cgroup.folders.clone() });
            }
        }
        if closed || asked {
            killed_by.get_or_insert(if closed { "the server closed the pipe" } else { "it was stopped" });
        }
        if let Some(watcher) = &mut watcher
            && confined
            && let Some(victim) = watcher.victim()
        {
            watcher.kill(victim, |kills| report(&Event::OutOfMemory { kills }));
        }
        if ended || killed_by.is_some() {
            let status = kill_and_reap(started);
            // What it wrote last is still in the pipe, and nobody else holds the other end now.
            while log.open {
                log.pass_on(&started.log);
            }
            if spec.probe {
                return Ok(None);
            }
            let counted = cgroup.folders.iter().find(|(name, _)| name == "memory").and_then(|(_, folder)| cgroup::oom_kills(folder));
            let oom_kills = counted.or(watcher.map(|watcher| watcher.kills)).unwrap_or(0);
            let reason = killed_by.map_or_else(|| describe(status), str::to_owned);
            return Ok(Some(Event::Ended { reason, oom_kills }));
        }
    }
}

fn push<'fd>(fds: &mut Vec<PollFd<'fd>>, fd: BorrowedFd<'fd>, events: PollFlags) -> usize {
    fds.push(PollFd::new(fd, events));
    fds.len() - 1
}

/// Kills pid 1 of the namespace, and with it everything in there; returns when all of it is gone.
fn kill_and_reap(started: &Started) -> WaitStatus {
    // SAFETY: a plain system call on an open descriptor; the process may have ended, which is fine.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, started.process.as_raw_fd(), libc::SIGKILL, std::ptr::null::<u8>(), 0) };
    loop {
        match waitpid(started.pid, None::<WaitPidFlag>) {
            Err(nix::errno::Errno::EINTR) => {}
            Ok(status) => return status,
            Err(_) => return WaitStatus::StillAlive,
        }
    }
}

fn describe(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("its supervisor exited with code {code}"),
        WaitStatus::Signaled(_, signal, _) => format!("its supervisor was killed by {signal}"),
        _ => "its supervisor ended".to_owned(),
    }
}

/// Passes the supervisor's standard error on, line by line, up to a bound; the rest is read and dropped.
struct Log {
    left: usize,
    open: bool,
}

impl Log {
    fn pass_on(&mut self, mut from: &File) {
        let mut chunk = [0; 4096];
        match from.read(&mut chunk) {
            Ok(0) => self.open = false,
            Ok(count) => {
                let kept = count.min(self.left);
                self.left -= kept;
                for line in String::from_utf8_lossy(&chunk[..kept]).lines().filter(|line| !line.trim().is_empty()) {
                    report(&Event::Log { text: line.to_owned() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.open = false,
        }
    }
}
