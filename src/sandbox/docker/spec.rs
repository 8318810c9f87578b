//! How a container is made: every bound and every denial.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};

use super::WORKDIR;
use super::engine::Engine;
use super::owned;
use crate::agent::ports::SandboxError;
use crate::config::cache_dir;
use crate::sandbox::StartRequest;
use crate::sandbox::seccomp;

/// User and group inside; the `nonroot` of common minimal images.
const USER: &str = "65532:65532";

/// Smallest memory that the data packages start in.
const LEAST_MEMORY: u64 = 256 << 20;

/// The body of the request that creates the container.
pub(super) fn create_body(engine: &Engine, image: &str, request: &StartRequest) -> Result<ContainerCreateBody, SandboxError> {
    let settings = &request.settings;
    let memory = settings.memory.0;
    if memory < LEAST_MEMORY {
        return Err(SandboxError::Unavailable {
            message: format!("sandbox.memory is {memory} bytes; the data packages need at least {LEAST_MEMORY}"),
            hint: "Set sandbox.memory to \"512m\" or more.".to_owned(),
        });
    }
    let threads = threads(settings.cpus);
    let command = [
        "/opt/codeinterp/venv/bin/python",
        "-I",
        "/opt/codeinterp/supervisor/supervisor.py",
        "--workdir",
        WORKDIR,
        "--memory",
        &memory.to_string(),
        "--threads",
        &threads.to_string(),
    ];
    Ok(ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(Vec::new()),
        cmd: Some(command.iter().map(|word| (*word).to_owned()).collect()),
        user: Some(USER.to_owned()),
        working_dir: Some(WORKDIR.to_owned()),
        env: Some(environment(threads)),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        hostname: Some("sandbox".to_owned()),
        labels: Some(owned::labels(request)),
        host_config: Some(host_config(engine, request)?),
        ..ContainerCreateBody::default()
    })
}

fn host_config(engine: &Engine, request: &StartRequest) -> Result<HostConfig, SandboxError> {
    let settings = &request.settings;
    let memory = settings.memory.0;
    // Scratch is charged to memory: all of it together stays at half, so that a full scratch can't kill everything.
    let shared_memory = (memory / 16).min(64 << 20);
    let temporary = memory / 8;
    let scratch = memory / 2 - shared_memory - temporary;
    // Podman knows no owner of a tmpfs; there is one user inside anyhow.
    let owner = if engine.podman { "mode=1777" } else { "mode=0700,uid=65532,gid=65532" };
    let tmpfs = |bytes: u64| format!("rw,nosuid,nodev,size={bytes},{owner}");
    Ok(HostConfig {
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned(), format!("seccomp={}", seccomp_option(engine)?)]),
        pids_limit: Some(i64::from(settings.pids)),
        memory: Some(signed(memory)),
        memory_swap: Some(signed(memory)),
        // Nine digits behind the point are what the engine knows.
        #[expect(clippy::cast_possible_truncation, reason = "a number of CPUs is far below 2^63 / 10^9")]
        nano_cpus: Some((settings.cpus.clamp(0.01, 1024.0) * 1e9) as i64),
        ipc_mode: Some("private".to_owned()),
        shm_size: Some(signed(shared_memory)),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        // The supervisor is process 1 itself: another init's descriptors, the supervisor's pipe to us, could be opened by
        // user code through /proc/1/fd.
        init: Some(false),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        auto_remove: Some(true),
        runtime: settings.runtime.clone(),
        ulimits: Some(ulimits(engine)),
        tmpfs: Some(HashMap::from([(WORKDIR.to_owned(), tmpfs(scratch)), ("/tmp".to_owned(), tmpfs(temporary))])),
        mounts: mounts(engine, request)?,
        ..HostConfig::default()
    })
}

/// Files of the host that are too large to be copied, each mounted read-only by itself.
fn mounts(engine: &Engine, request: &StartRequest) -> Result<Option<Vec<Mount>>, SandboxError> {
    if request.mounts.is_empty() {
        return Ok(None);
    }
    if !engine.local {
        return Err(SandboxError::Unavailable {
            message: "the file is too large to be copied, and a Docker engine on another machine can't mount it".to_owned(),
            hint: "Raise sandbox.memory to eight times the file's size, or use an engine on this machine.".to_owned(),
        });
    }
    let mounts = request.mounts.iter().map(|mount| Mount {
        target: Some(format!("{WORKDIR}/{}", mount.name)),
        source: Some(mount.host.display().to_string()),
        typ: Some(MountType::BIND),
        read_only: Some(true),
        ..Mount::default()
    });
    Ok(Some(mounts.collect()))
}

/// Docker takes the contents of a seccomp profile, Podman its path.
fn seccomp_option(engine: &Engine) -> Result<String, SandboxError> {
    let unusable = |error: String| SandboxError::Unavailable {
        message: format!("the seccomp profile can't be made: {error}"),
        hint: "Please report it: nothing runs without the profile.".to_owned(),
    };
    let profile = seccomp::oci_profile().map_err(|error| unusable(error.to_string()))?;
    if !engine.podman {
        return Ok(profile);
    }
    let path = cache_dir().join("seccomp.json");
    crate::store::files::write_beneath(&cache_dir(), std::path::Path::new("seccomp.json"), profile.as_bytes())
        .map_err(|error| unusable(error.to_string()))?;
    Ok(path.display().to_string())
}

fn environment(threads: u64) -> Vec<String> {
    let mut variables: Vec<String> = [
        ("PATH", "/opt/codeinterp/venv/bin:/usr/local/bin:/usr/bin:/bin"),
        ("HOME", WORKDIR),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("MPLBACKEND", "agg"),
        ("MPLCONFIGDIR", "/tmp/matplotlib"),
        ("CODEINTERP_FONT_CACHE", "/opt/codeinterp/matplotlib"),
        ("IPYTHONDIR", "/tmp/ipython"),
        ("JUPYTER_RUNTIME_DIR", "/tmp/jupyter"),
        ("XDG_CACHE_HOME", "/tmp/cache"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ]
    .iter()
    .map(|(name, value)| format!("{name}={value}"))
    .collect();
    for name in
        ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"]
    {
        variables.push(format!("{name}={threads}"));
    }
    variables
}

/// Threads of numerical libraries: the CPU limit, rounded up.
fn threads(cpus: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a small positive number")]
    let threads = cpus.clamp(1.0, 1024.0).ceil() as u64;
    threads
}

fn ulimits(engine: &Engine) -> Vec<ResourcesUlimits> {
    let mut limits = vec![limit("nofile", 1024), limit("core", 0)];
    if engine.podman {
        // Unasked, Podman sets more than a service without CAP_SYS_RESOURCE may. It counts all sandboxes together; the
        // bound of each is the control group's.
        limits.push(limit("nproc", 16384));
    }
    limits
}

fn limit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(value), hard: Some(value) }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
