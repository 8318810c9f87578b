//! What holds on this machine for the process backend, for `doctor`.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What was looked at.
    pub name: String,
    /// It is as the backend needs it; for what is optional: it is there.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
}

impl Fact {
    fn new(name: &str, ok: bool, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), ok, detail: detail.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        if !self.ok {
            self.hint = Some(hint.into());
        }
        self
    }
}

/// Looks at Python, its environment, and every layer of the confinement. `cache` is the folder of environments.
#[cfg(target_os = "linux")]
pub async fn facts(cache: &std::path::Path) -> Vec<Fact> {
    use super::backend::ProcessBackend;
    use super::cgroup::Cgroup;
    use super::landlock;
    use super::spec::Limits;
    use crate::agent::ports::SandboxError;
    use crate::sandbox::provision::python;

    let split = |error: SandboxError| match error {
        SandboxError::Unavailable { message, hint } => (message, hint),
        other => (other.to_string(), String::new()),
    };
    let mut facts = Vec::new();
    let backend = ProcessBackend::new(cache.to_owned());
    match backend.environment().await {
        Ok(environment) => {
            let python = &environment.python;
            facts.push(Fact::new("python", true, format!("Python {} at {}", python.full_version(), python.executable.display())));
            let detail = match (python.venv, python::find_uv()) {
                (_, Some(uv)) => format!("uv at {}", uv.display()),
                (true, None) => "venv and ensurepip".to_owned(),
                (false, None) => "neither venv nor uv".to_owned(),
            };
            facts.push(Fact::new("venv", true, detail));
            let state = match (environment.has_core(), environment.has_full()) {
                (true, true) => "core and full packages",
                (true, false) => "core packages; the full set follows after a first answer",
                _ => "not built yet",
            };
            facts.push(
                Fact::new("environment", environment.has_core(), format!("{state}, in {}", environment.root.display()))
                    .hint("built at first use, or now: codeinterp sandbox build --sandbox process"),
            );
        }
        Err(error) => {
            let (message, hint) = split(error);
            facts.push(Fact::new("python", false, message).hint(hint));
        }
    }
    let version = landlock::version();
    facts.push(
        Fact::new(
            "landlock",
            version >= 3,
            if version == 0 { "this kernel has none".to_owned() } else { format!("version {version}; 3 is needed") },
        )
        .hint("use a Linux 6.2 or newer with Landlock among its security modules (lsm=landlock,…), or Docker"),
    );
    // SAFETY: asks for the mode of this process; no pointer is read.
    let seccomp = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } >= 0;
    facts.push(
        Fact::new("seccomp", seccomp, if seccomp { "filters" } else { "this kernel has none" })
            .hint("use a kernel with CONFIG_SECCOMP_FILTER, or Docker"),
    );
    facts.push(match backend.probe().await {
        Ok(()) => Fact::new(
            "confinement",
            true,
            "namespaces (user, mount, pid, net, ipc, uts), Landlock and the filter were put in force in a trial",
        ),
        Err(error) => {
            let (message, hint) = split(error);
            Fact::new("confinement", false, message).hint(hint)
        }
    });
    let limits = Limits { memory: 1 << 28, cpus: 1.0, pids: 64, no_cgroup: false };
    let cgroup = Cgroup::create(&format!("doctor-{}", std::process::id()), &limits);
    let names: Vec<&str> = cgroup.folders.iter().map(|(name, _)| name.as_str()).collect();
    let detail = if names.is_empty() {
        "none can be made here: the helper watches the memory, a user namespace bounds the processes".to_owned()
    } else {
        names.join(", ")
    };
    facts.push(
        Fact::new("cgroup", cgroup.has("memory"), detail)
            .hint("not needed; a session with delegated cgroups (systemd) bounds memory more exactly"),
    );
    cgroup.remove();
    facts
}

/// Looks at nothing: the backend is for Linux.
#[cfg(not(target_os = "linux"))]
pub async fn facts(_cache: &std::path::Path) -> Vec<Fact> {
    vec![
        Fact::new("process sandbox", false, "needs Linux (Landlock and seccomp)")
            .hint("install Docker or Podman; on this system code runs in containers only"),
    ]
}
