//! Limits of single processes, and the end of all privileges.

use std::io;

use super::spec::{INNER_ID, Limits};

/// Open files of a process.
const OPEN_FILES: u64 = 1024;
/// Address space beyond four times the memory: libraries reserve far more than they use (256 MiB breaks pyarrow and scikit-learn).
const ADDRESS_SPACE: u64 = 4 << 30;

/// Sets the resource limits. After the change of user: the number of processes counts for a user of a user namespace.
pub fn set_rlimits(limits: &Limits) -> io::Result<()> {
    let wanted = [
        (libc::RLIMIT_AS, limits.memory.saturating_mul(4).saturating_add(ADDRESS_SPACE)),
        (libc::RLIMIT_NPROC, u64::from(limits.pids)),
        (libc::RLIMIT_FSIZE, limits.memory),
        (libc::RLIMIT_NOFILE, OPEN_FILES),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
    ];
    for (resource, value) in wanted {
        let mut current = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the struct is valid for the call.
        check(unsafe { libc::getrlimit(resource, &raw mut current) })?;
        let value = value.min(current.rlim_max);
        let new = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: as above.
        check(unsafe { libc::setrlimit(resource, &raw const new) })?;
    }
    Ok(())
}

/// Becomes the user of the sandbox.
pub fn become_user() -> io::Result<()> {
    // SAFETY: plain system calls; this process has one thread.
    unsafe {
        check(libc::setresgid(INNER_ID, INNER_ID, INNER_ID))?;
        check(libc::setresuid(INNER_ID, INNER_ID, INNER_ID))
    }
}

/// Gives up every capability, now and for whatever is executed later.
pub fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: libc::c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h: two words of flags.
    const VERSION_3: u32 = 0x2008_0522;
    /// More than there are; the kernel says EINVAL after the last one.
    const CAPABILITIES: libc::c_ulong = 64;
    const ZERO: libc::c_ulong = 0;

    // SAFETY: plain system calls with valid pointers.
    unsafe {
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, ZERO, ZERO, ZERO))?;
        for capability in 0..CAPABILITIES {
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, ZERO, ZERO, ZERO) != 0 {
                match io::Error::last_os_error().raw_os_error() {
                    // EINVAL: there are no more. EPERM: without CAP_SETPCAP the set can't shrink; `no_new_privs` then
                    // keeps anything from being gained.
                    Some(libc::EINVAL | libc::EPERM) => break,
                    _ => return Err(io::Error::last_os_error()),
                }
            }
        }
        let header = Header { version: VERSION_3, pid: 0 };
        let none = [Data::default(); 2];
        if libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, ZERO, ZERO, ZERO))
    }
}

/// The system's verdict of a call that answers 0 or -1.
pub fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
