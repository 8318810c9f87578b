//! The death of the editor. Most editors close our input when they die; a child of theirs may keep it open.

use tokio_util::sync::CancellationToken;

/// Cancels `end` when the process `parent` ends.
#[cfg(target_os = "linux")]
pub fn watch(parent: u32, end: CancellationToken) {
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    // A number of another namespace, or of a process that is gone already, is nothing to go by.
    let Some(fd) = i32::try_from(parent).ok().and_then(Pid::from_raw).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        tracing::debug!(parent, "the editor's process is not visible here; only the end of input will be noticed");
        return;
    };
    let watch = move || {
        // Readable means: the process has ended. A thread of its own waits, and ends with this process.
        loop {
            match poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return,
                Ok(_) => break,
            }
        }
        tracing::info!(parent, "the editor has ended");
        end.cancel();
    };
    if let Err(error) = std::thread::Builder::new().name("parent".to_owned()).spawn(watch) {
        tracing::debug!(%error, "the editor's process is not watched; only the end of input will be noticed");
    }
}

/// Elsewhere the end of input has to do.
#[cfg(not(target_os = "linux"))]
pub fn watch(_parent: u32, _end: CancellationToken) {}
