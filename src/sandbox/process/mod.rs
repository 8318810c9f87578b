//! The confined local process (Linux): a supervisor behind namespaces, Landlock, a system call filter and resource limits.
//!
//! ```text
//! server ──spawns──► monitor (`codeinterp __confine`)      outside: watches, accounts, cleans up
//!    │  stdin/stdout     │ clone(pid, mount, net, ipc, uts, user)
//!    └───────────────► supervisor, pid 1 of its namespace    inside: no capability, no network, a file tree of its own
//! ```
//!
//! - [`backend`]: the [`Backend`](super::Backend): prepares, starts, hands the pipe over.
//! - [`enclosure`]: the server's handle on a running one.
//! - [`spec`]: what the server tells the monitor, and what the monitor reports.
//! - [`monitor`]: the helper outside. It ends everything when the server's end of the pipe closes, however the server died.
//! - [`cage`], [`tree`], [`limits`]: the way in: namespaces, file tree, Landlock, limits, filter; then Python.
//! - [`cgroup`], [`watcher`]: memory and processes of the whole tree.
//! - [`record`]: which sandboxes run, on disk; what a killed monitor left is removed at the next start.
//! - [`facts`]: what holds on this machine, for `doctor`.
//!
//! Architecture invariant: there is no way through this module that runs Python of a sandbox without every layer of
//! [`cage`]. What is missing is an error.

#[cfg(target_os = "linux")]
pub mod backend;
#[cfg(target_os = "linux")]
mod cage;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
pub mod enclosure;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod monitor;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
pub mod record;
#[cfg(target_os = "linux")]
mod spec;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod watcher;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod facts;

#[cfg(target_os = "linux")]
pub use backend::ProcessBackend;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::ProcessBackend;
pub use facts::{Fact, facts};

/// First argument of the hidden command that is the helper.
pub const HELPER_COMMAND: &str = "__confine";

/// Runs the helper and returns its exit code, where this process was started as one; `None` otherwise.
///
/// Must be the first thing that `main` does: the helper may have one thread only.
pub fn maybe_run_helper() -> Option<std::process::ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HELPER_COMMAND {
        return None;
    }
    #[cfg(target_os = "linux")]
    return Some(monitor::main(arguments.next().as_deref()));
    #[cfg(not(target_os = "linux"))]
    Some(std::process::ExitCode::from(2))
}
