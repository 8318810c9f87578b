//! Landlock: what may be read, executed and written, once more and independent of the file tree.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

/// The oldest version that will do: the first that also mediates truncation. (1: files, 2: renames between folders, 3: truncation.)
pub const MINIMUM: ABI = ABI::V3;
/// The newest version that this list was written for: TCP (4), device ioctls (5), signals and abstract sockets (6).
const BEST: ABI = ABI::V6;

/// Why the rules are not in force.
#[derive(Debug, thiserror::Error)]
pub enum LandlockError {
    /// The kernel refused a rule.
    #[error("{0}")]
    Rules(#[from] RulesetError),
    /// A folder of the list is not there.
    #[error("{0}")]
    Path(#[from] PathFdError),
    /// The kernel does not enforce them.
    #[error("the kernel does not enforce the rules")]
    NotEnforced,
}

/// The Landlock version of this kernel; 0 where it has none.
pub fn version() -> i64 {
    /// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
    const VERSION_FLAG: u32 = 1;
    // SAFETY: asks for the version only; no pointer is read.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION_FLAG) };
    version.max(0)
}

/// Restricts this process and everything that it starts. `read_only` lists what may be read and executed.
pub fn restrict(read_only: &[&Path]) -> Result<(), LandlockError> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let execute = read | AccessFs::Execute;
    // No devices and no socket files; nothing in scratch can be executed.
    let write =
        read | make_bitflags!(AccessFs::{WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeFifo | MakeSym | Refer | Truncate});
    let device = make_bitflags!(AccessFs::{ReadFile | WriteFile});

    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(MINIMUM))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(BEST))?
        .handle_access(AccessNet::from_all(BEST))?
        .scope(Scope::from_all(BEST))?
        .create()?;
    for path in read_only {
        ruleset = ruleset.add_rule(rule(path, execute)?)?;
    }
    for (path, access) in [
        // Names only: everything in this tree was put there for the sandbox.
        ("/", make_bitflags!(AccessFs::{ReadDir})),
        ("/etc", read),
        ("/proc", read | AccessFs::WriteFile),
        ("/dev", read),
        ("/dev/null", device),
        ("/dev/zero", device),
        ("/dev/full", device),
        ("/workspace", write),
        ("/tmp", write),
        ("/dev/shm", write),
    ] {
        // `/proc` is absent where the host does not let it be mounted.
        if Path::new(path).exists() {
            ruleset = ruleset.add_rule(rule(Path::new(path), access)?)?;
        }
    }
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(LandlockError::NotEnforced),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn rule(path: &Path, access: BitFlags<AccessFs>) -> Result<PathBeneath<PathFd>, PathFdError> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(BEST) };
    Ok(PathBeneath::new(PathFd::new(path)?, access))
}
