//! The system calls that code in a sandbox may make, for both backends: see `seccomp.toml`, which gives a reason for each group.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The list, readable by people.
const LIST: &str = include_str!("seccomp.toml");

/// System calls that only x86-64 has; elsewhere the C library makes the newer ones of the same effect.
#[cfg(target_os = "linux")]
const ONLY_X86_64: &[&str] = &[
    "access",
    "alarm",
    "arch_prctl",
    "chmod",
    "chown",
    "creat",
    "dup2",
    "epoll_create",
    "epoll_wait",
    "eventfd",
    "fork",
    "getdents",
    "getpgrp",
    "inotify_init",
    "lchown",
    "link",
    "lstat",
    "mkdir",
    "open",
    "pause",
    "pipe",
    "poll",
    "readlink",
    "rename",
    "rmdir",
    "select",
    "signalfd",
    "stat",
    "symlink",
    "time",
    "unlink",
    "utime",
    "utimes",
    "vfork",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    group: Vec<Group>,
}

/// System calls that are allowed for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    /// For whoever reads the list; the code has no use for it.
    #[serde(rename = "reason")]
    _reason: String,
    names: Vec<String>,
    /// All of these must hold.
    #[serde(default)]
    when: Vec<Condition>,
    /// Or all of these.
    #[serde(default)]
    or_when: Vec<Condition>,
    /// Not allowed but answered with this error, where EPERM would be misunderstood.
    errno: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    argument: u8,
    mask: Option<u64>,
    value: u64,
}

impl Group {
    /// The alternatives under which its calls are allowed; one empty alternative is "always".
    fn alternatives(&self) -> Vec<&[Condition]> {
        let mut all = vec![self.when.as_slice()];
        if !self.or_when.is_empty() {
            all.push(&self.or_when);
        }
        all
    }
}

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub enum SeccompError {
    /// The embedded list does not parse: a fault of this build.
    #[error("the list of system calls is broken: {0}")]
    List(#[from] toml::de::Error),
    /// The list can't be compiled for this machine.
    #[cfg(target_os = "linux")]
    #[error("the system call filter can't be built for this machine: {0}")]
    Compile(String),
    /// The kernel refused the filter.
    #[cfg(target_os = "linux")]
    #[error("the system call filter can't be installed: {0}")]
    Install(String),
}

fn list() -> Result<List, SeccompError> {
    Ok(toml::from_str(LIST)?)
}

/// The list as a seccomp profile of the OCI runtime specification (`linux.seccomp`), as text of JSON.
///
/// Docker's API takes it as the value of `seccomp=` in `SecurityOpt`. Names that a machine does not have are ignored by runtimes.
pub fn oci_profile() -> Result<String, SeccompError> {
    let mut calls = Vec::new();
    for group in list()?.group {
        if let Some(errno) = group.errno {
            calls.push(json!({"names": group.names, "action": "SCMP_ACT_ERRNO", "errnoRet": errno}));
            continue;
        }
        for alternative in group.alternatives() {
            let mut call = json!({"names": group.names, "action": "SCMP_ACT_ALLOW"});
            if !alternative.is_empty() {
                call["args"] = alternative.iter().map(oci_condition).collect();
            }
            calls.push(call);
        }
    }
    let profile = json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": calls,
    });
    Ok(profile.to_string())
}

fn oci_condition(condition: &Condition) -> Value {
    match condition.mask {
        // For a masked comparison `value` is the mask and `valueTwo` what must remain.
        Some(mask) => json!({"index": condition.argument, "value": mask, "valueTwo": condition.value, "op": "SCMP_CMP_MASKED_EQ"}),
        None => json!({"index": condition.argument, "value": condition.value, "op": "SCMP_CMP_EQ"}),
    }
}

#[cfg(target_os = "linux")]
mod program {
    use std::collections::BTreeMap;

    use seccompiler::{BpfProgram, TargetArch};
    use serde_json::{Value, json};

    use super::{Condition, ONLY_X86_64, SeccompError, list};

    /// The filters for one machine, in the order in which they are to be installed.
    pub(super) fn compile(arch: TargetArch) -> Result<Vec<BpfProgram>, SeccompError> {
        let mut allowed = Vec::new();
        let mut answered: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
        for group in list()?.group {
            let present = |name: &&String| arch == TargetArch::x86_64 || !ONLY_X86_64.contains(&name.as_str());
            for name in group.names.iter().filter(present) {
                for alternative in group.alternatives() {
                    let mut rule = json!({"syscall": name});
                    if !alternative.is_empty() {
                        rule["args"] = alternative.iter().map(condition).collect();
                    }
                    allowed.push(rule);
                }
                if let Some(errno) = group.errno {
                    answered.entry(errno).or_default().push(json!({"syscall": name}));
                }
            }
        }
        // A filter has one answer for what it lists. Where two filters disagree an error beats "allow", so that one filter
        // more for each other error is enough. The allow-list comes last: it forbids installing filters.
        let answer = |(errno, rules)| json!({"mismatch_action": "allow", "match_action": {"errno": errno}, "filter": rules});
        let mut filters: Vec<Value> = answered.into_iter().map(answer).collect();
        filters.push(json!({"mismatch_action": {"errno": 1}, "match_action": "allow", "filter": allowed}));
        let mut programs = Vec::new();
        for filter in filters {
            let text = json!({"sandbox": filter}).to_string();
            let mut compiled =
                seccompiler::compile_from_json(text.as_bytes(), arch).map_err(|error| SeccompError::Compile(error.to_string()))?;
            programs.extend(compiled.remove("sandbox"));
        }
        Ok(programs)
    }

    fn condition(condition: &Condition) -> Value {
        let operator = match condition.mask {
            Some(mask) => json!({"masked_eq": mask}),
            None => json!("eq"),
        };
        // The kernel looks at the lower half of these arguments only: they are of type int or hold flags below 2³².
        json!({"index": condition.argument, "type": "dword", "op": operator, "val": condition.value})
    }
}

/// The compiled filters of this machine.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Filters(Vec<seccompiler::BpfProgram>);

#[cfg(target_os = "linux")]
impl Filters {
    /// Compiles the list for this machine.
    pub fn compile() -> Result<Self, SeccompError> {
        let arch =
            std::env::consts::ARCH.try_into().map_err(|error: seccompiler::BackendError| SeccompError::Compile(error.to_string()))?;
        program::compile(arch).map(Self)
    }

    /// Installs them for the calling thread and everything that it starts. Sets `no_new_privs`; can't be undone.
    pub fn install(&self) -> Result<(), SeccompError> {
        for program in &self.0 {
            seccompiler::apply_filter(program).map_err(|error| SeccompError::Install(error.to_string()))?;
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_list_compiles_for_every_machine() {
        for arch in [seccompiler::TargetArch::x86_64, seccompiler::TargetArch::aarch64] {
            let programs = program::compile(arch).map_err(|error| error.to_string());
            assert_eq!(programs.map(|programs| programs.len()), Ok(2), "{arch:?}");
        }
    }

    #[test]
    fn the_oci_profile_allows_no_socket_but_a_pair() {
        let profile: Value = serde_json::from_str(&oci_profile().unwrap_or_default()).unwrap_or_default();
        let names: Vec<&str> = profile["syscalls"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|call| call["names"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        assert!(names.contains(&"socketpair"));
        for absent in
            ["socket", "connect", "bind", "listen", "accept", "accept4", "io_uring_setup", "unshare", "mount", "ptrace", "bpf", "keyctl"]
        {
            assert!(!names.contains(&absent), "{absent}");
        }
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    }
}
