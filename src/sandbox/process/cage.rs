//! The way in: what the process that becomes the supervisor does between its birth and `execve`.
//!
//! Order matters. The file tree needs the privileges that are then given up; the filter comes last, since it forbids most of what
//! comes before. A failed step ends the process; nothing is executed.

use std::convert::Infallible;
use std::ffi::CString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::spec::Spec;
use super::tree::{self, Failure};
use super::{landlock, limits};
use crate::sandbox::seccomp::Filters;

/// How the process got its namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Root made them; the user namespace comes last, so that nothing inside owns the others.
    Root,
    /// A user without privileges: the user namespace comes first and owns the others.
    User,
}

impl Privilege {
    /// By the effective user of this process.
    pub fn of_this_process() -> Self {
        if nix::unistd::geteuid().is_root() { Self::Root } else { Self::User }
    }

    /// Namespaces that the process is born into.
    pub fn namespaces(self) -> CloneFlags {
        let common = CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWUTS;
        match self {
            Self::Root => common,
            Self::User => common | CloneFlags::CLONE_NEWUSER,
        }
    }
}

/// The process's ends of its pipes to the monitor.
pub struct Pipes {
    /// Asks the monitor to write the maps of the user namespace.
    pub ask: OwnedFd,
    /// Says that they are written; open for as long as the monitor lives.
    pub go: OwnedFd,
    /// Becomes standard error.
    pub log: OwnedFd,
}

/// Goes all the way; returns only where a step fails, or at the end of a probe (`Ok(None)`).
pub fn enter(spec: &Spec, privilege: Privilege, pipes: &Pipes) -> Result<Option<Infallible>, Failure> {
    // Compiled first: nothing that can fail for dull reasons should come late.
    let filters = Filters::compile().map_err(Failure::at("compiling the system call filter"))?;
    match privilege {
        Privilege::Root => {
            tree::build(spec)?;
            nix::unistd::setgroups(&[]).map_err(Failure::at("leaving all groups"))?;
            unshare(CloneFlags::CLONE_NEWUSER).map_err(Failure::at("making a user namespace"))?;
            wait_for_maps(pipes)?;
        }
        Privilege::User => {
            wait_for_maps(pipes)?;
            tree::build(spec)?;
        }
    }
    nix::unistd::sethostname("sandbox").map_err(Failure::at("naming the host")).or_else(|failure| match privilege {
        // Root's user namespace does not own the host name any more; the name is cosmetic.
        Privilege::Root => Ok(()),
        Privilege::User => Err(failure),
    })?;
    limits::become_user().map_err(Failure::at("changing the user"))?;
    limits::set_rlimits(&spec.limits).map_err(Failure::at("setting resource limits"))?;
    die_with_monitor(&pipes.go)?;
    limits::drop_capabilities().map_err(Failure::at("dropping capabilities"))?;
    let read_only: Vec<&Path> = spec.read_only.iter().map(AsRef::as_ref).collect();
    landlock::restrict(&read_only).map_err(Failure::at("restricting files with Landlock"))?;
    standard_streams(&pipes.log).map_err(Failure::at("closing descriptors"))?;
    reset_signals().map_err(Failure::at("resetting signals"))?;
    let program = Program::of(spec).map_err(Failure::at("preparing the command"))?;
    filters.install().map_err(Failure::at("installing the system call filter"))?;
    if spec.probe {
        return Ok(None);
    }
    program.execute().map(Some).map_err(Failure::at(format!("executing {}", spec.program.display())))
}

fn wait_for_maps(pipes: &Pipes) -> Result<(), Failure> {
    let wait = || -> io::Result<()> {
        nix::unistd::write(&pipes.ask, b"m")?;
        let mut answer = [0];
        match nix::unistd::read(&pipes.go, &mut answer)? {
            1 => Ok(()),
            _ => Err(io::Error::other("the monitor ended")),
        }
    };
    wait().map_err(Failure::at("waiting for the maps of the user namespace"))
}

/// Asks for SIGKILL at the monitor's death. The monitor has one thread, so that the death of its thread is its own; and a change of
/// user would clear the wish, so that it comes after that.
fn die_with_monitor(go: &OwnedFd) -> Result<(), Failure> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(Failure::at("tying the process to its monitor"))?;
    // The monitor may have died before the wish was there; its parent's id can't tell, being 0 in another namespace.
    let mut poll = [nix::poll::PollFd::new(std::os::fd::AsFd::as_fd(go), nix::poll::PollFlags::empty())];
    nix::poll::poll(&mut poll, nix::poll::PollTimeout::ZERO).map_err(Failure::at("looking for the monitor"))?;
    if poll[0].revents().is_some_and(|events| !events.is_empty()) {
        return Err(Failure { step: "looking for the monitor".to_owned(), reason: "it has ended".to_owned() });
    }
    Ok(())
}

/// Standard input and output are the server's pipe, standard error the monitor's; everything else closes at `execve`.
fn standard_streams(log: &OwnedFd) -> io::Result<()> {
    for fd in [0, 1] {
        // SAFETY: descriptors of this process; a failure only means a smaller buffer.
        unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, 1 << 20) };
    }
    // SAFETY: plain system calls.
    unsafe {
        if libc::dup2(log.as_raw_fd(), 2) < 0 {
            return Err(io::Error::last_os_error());
        }
        limits::check(libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed()))
    }
}

/// Default handlers and an empty mask: both would survive `execve`, and Rust ignores SIGPIPE.
fn reset_signals() -> io::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: sets the default handler only.
        unsafe { sigaction(signal, &default) }?;
    }
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// A command in the form that `execve` takes; made before the filter is there.
struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    fn of(spec: &Spec) -> io::Result<Self> {
        let path = CString::new(spec.program.as_os_str().as_bytes()).map_err(io::Error::other)?;
        let mut arguments = vec![path.clone()];
        for argument in &spec.arguments {
            arguments.push(CString::new(argument.as_str()).map_err(io::Error::other)?);
        }
        let mut environment = Vec::new();
        for (name, value) in &spec.environment {
            environment.push(CString::new(format!("{name}={value}")).map_err(io::Error::other)?);
        }
        Ok(Self { path, arguments, environment })
    }

    fn execute(&self) -> nix::Result<Infallible> {
        nix::unistd::execve(&self.path, &self.arguments, &self.environment)
    }
}

/// Reads what the way in said about its end: nothing where Python executes (or the probe passed), else the failed step.
pub fn read_failure(from: std::fs::File) -> io::Result<Option<Failure>> {
    let mut text = String::new();
    from.take(64 << 10).read_to_string(&mut text)?;
    Ok(text.split_once('\n').map(|(step, reason)| Failure { step: step.to_owned(), reason: reason.to_owned() }))
}

/// Says which step failed, on a pipe that `execve` would have closed.
pub fn write_failure(to: OwnedFd, failure: &Failure) {
    // Nobody is left to tell where the monitor does not listen.
    let _ = std::fs::File::from(to).write_all(format!("{}\n{}", failure.step, failure.reason).as_bytes());
}
