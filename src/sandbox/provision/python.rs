//! Which Python of this machine can serve as the base of an environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::agent::ports::SandboxError;

/// Minor versions of Python 3 that the locked requirements are resolved for.
pub const MINORS: std::ops::RangeInclusive<u32> = 10..=14;

/// Time that a Python may take to describe itself; a cold disk is slow.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);

/// What a Python prints about itself.
const QUERY: &str = r#"
import importlib.util, json, os, platform, sys, sysconfig
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:3]),
    "prefixes": sorted({os.path.realpath(p) for p in (
        sys.base_prefix, sys.base_exec_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"),
        sysconfig.get_config_var("LIBDIR") or sys.base_prefix) if p}),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "machine": platform.machine(),
    "glibc": platform.libc_ver()[0] == "glibc",
    "venv": all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
}))
"#;

/// A Python interpreter of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    /// Its real path, all links followed.
    pub executable: PathBuf,
    /// `cpython` for the one that can serve.
    pub implementation: String,
    /// Major, minor and micro version.
    pub version: [u32; 3],
    /// Real folders that it needs to run: prefix, standard library, shared library.
    pub prefixes: Vec<PathBuf>,
    /// Built without the global interpreter lock; extension modules differ.
    pub free_threaded: bool,
    /// Machine as `uname -m` says it.
    pub machine: String,
    /// Linked against the GNU C library (and not musl).
    pub glibc: bool,
    /// The modules `venv` and `ensurepip` are there.
    pub venv: bool,
}

impl Python {
    /// Asks the interpreter at `path` to describe itself; `None` where it can't.
    pub async fn query(path: &Path) -> Option<Self> {
        let mut command = Command::new(path);
        command.args(["-I", "-c", QUERY]).stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(QUERY_TIMEOUT, command.output()).await.ok()?.ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// `3.12`.
    pub fn minor(&self) -> String {
        format!("{}.{}", self.version[0], self.version[1])
    }

    /// `3.12.4`.
    pub fn full_version(&self) -> String {
        format!("{}.{}.{}", self.version[0], self.version[1], self.version[2])
    }

    /// The locked requirements have wheels for it.
    fn fits(&self) -> bool {
        self.implementation == "cpython" && self.version[0] == 3 && MINORS.contains(&self.version[1]) && !self.free_threaded
    }
}

/// The program `uv` on the search path.
pub fn find_uv() -> Option<PathBuf> {
    find_programs(&["uv".to_owned()]).into_iter().next()
}

/// The Python that serves: the first on the search path (then of uv's) that fits and can make environments.
pub async fn find() -> Result<Python, SandboxError> {
    let uv = find_uv();
    let mut names = vec!["python3".to_owned()];
    names.extend(MINORS.rev().map(|minor| format!("python3.{minor}")));
    names.push("python".to_owned());
    let mut without_venv = None;
    let mut other = None;
    for path in find_programs(&names) {
        let Some(python) = Python::query(&path).await else { continue };
        if !python.fits() {
            other.get_or_insert(python);
        } else if python.venv || uv.is_some() {
            return Ok(python);
        } else {
            without_venv.get_or_insert(python);
        }
    }
    if let Some(uv) = &uv
        && let Some(python) = managed_by(uv).await
    {
        return Ok(python);
    }
    Err(missing(without_venv.as_ref(), other.as_ref()))
}

/// The same as [`find`], remembered in `cache` for as long as the first candidate's file stays as it is.
pub async fn find_remembered(cache: &Path) -> Result<Python, SandboxError> {
    let memory = cache.join("python.json");
    let key = find_programs(&["python3".to_owned()]).first().and_then(|path| identify(path));
    let remembered = std::fs::read(&memory).ok().and_then(|bytes| serde_json::from_slice::<Remembered>(&bytes).ok());
    if let Some(remembered) = remembered
        && Some(&remembered.key) == key.as_ref()
        && identify(&remembered.python.executable).as_ref() == Some(&remembered.executable)
        && (remembered.python.venv || find_uv().is_some())
    {
        return Ok(remembered.python);
    }
    let python = find().await?;
    if let (Some(key), Some(executable)) = (key, identify(&python.executable))
        && let Ok(bytes) = serde_json::to_vec(&Remembered { key, executable, python: python.clone() })
    {
        // Only a memory: where it can't be written the next start asks again.
        let new = cache.join(format!("python.json.{}", std::process::id()));
        let _ = std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, &memory));
    }
    Ok(python)
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    key: String,
    executable: String,
    python: Python,
}

/// Path, size and time of change of a file.
fn identify(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", path.display(), metadata.len(), changed.as_nanos()))
}

/// A Python that uv has installed, where the search path has none.
async fn managed_by(uv: &Path) -> Option<Python> {
    let mut command = Command::new(uv);
    command.args(["python", "find", "--no-python-downloads", ">=3.10,<3.15"]).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(QUERY_TIMEOUT, command.output()).await.ok()?.ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Python::query(&path).await.filter(Python::fits)
}

fn missing(without_venv: Option<&Python>, other: Option<&Python>) -> SandboxError {
    let (message, hint) = if let Some(python) = without_venv {
        (
            format!(
                "Python {} ({}) lacks the modules venv and ensurepip, which make environments",
                python.full_version(),
                python.executable.display()
            ),
            install_venv(python, &os_release()),
        )
    } else if let Some(python) = other {
        (
            format!(
                "no Python that can serve: the sandbox needs CPython 3.{} to 3.{}, and {} is {} {}",
                MINORS.start(),
                MINORS.end(),
                python.executable.display(),
                python.implementation,
                python.full_version()
            ),
            install_python(&os_release()),
        )
    } else {
        (
            format!("there is no Python on the search path; the sandbox needs CPython 3.{} to 3.{}", MINORS.start(), MINORS.end()),
            install_python(&os_release()),
        )
    };
    SandboxError::Unavailable { message, hint }
}

fn os_release() -> String {
    std::fs::read_to_string("/etc/os-release").unwrap_or_default()
}

/// The command that installs what `venv` needs. Only Debian and its kin take it apart.
fn install_venv(python: &Python, os_release: &str) -> String {
    if is_like(os_release, &["debian", "ubuntu"]) && python.executable.starts_with("/usr/bin") {
        format!("install it: sudo apt install python{}-venv (or install uv, which needs no venv module)", python.minor())
    } else {
        "install Python with its venv and ensurepip modules, or install uv, which needs neither".to_owned()
    }
}

fn install_python(os_release: &str) -> String {
    let command = if is_like(os_release, &["debian", "ubuntu"]) {
        "sudo apt install python3 python3-venv"
    } else if is_like(os_release, &["fedora", "rhel", "centos"]) {
        "sudo dnf install python3"
    } else if is_like(os_release, &["arch"]) {
        "sudo pacman -S python"
    } else if is_like(os_release, &["suse", "opensuse"]) {
        "sudo zypper install python3"
    } else {
        return "install Python 3.10 or newer, or let uv do it: uv python install".to_owned();
    };
    format!("install it: {command} (or let uv do it: uv python install)")
}

/// True where `ID` or `ID_LIKE` of an os-release file (freedesktop.org's format) names one of `families`.
fn is_like(os_release: &str, families: &[&str]) -> bool {
    os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split_whitespace())
        .any(|word| families.iter().any(|family| word.starts_with(family)))
}

/// Executables of these names on the search path, in the order of the names, then of the path; each file once.
fn find_programs(names: &[String]) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let mut found: Vec<PathBuf> = Vec::new();
    for name in names {
        for candidate in folders.iter().map(|folder| folder.join(name)) {
            if candidate.is_file() && !found.contains(&candidate) {
                found.push(candidate);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debian_python() -> Python {
        Python {
            executable: "/usr/bin/python3.11".into(),
            implementation: "cpython".into(),
            version: [3, 11, 2],
            prefixes: vec!["/usr".into()],
            free_threaded: false,
            machine: "x86_64".into(),
            glibc: true,
            venv: false,
        }
    }

    #[test]
    fn a_debian_python_without_venv_names_the_exact_package() {
        let hint = install_venv(&debian_python(), "NAME=\"Debian GNU/Linux\"\nID=debian\n");
        assert!(hint.contains("sudo apt install python3.11-venv"), "{hint}");
        let hint = install_venv(&debian_python(), "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n");
        assert!(hint.contains("python3.11-venv"), "{hint}");
    }

    #[test]
    fn a_python_that_is_too_old_or_another_one_does_not_serve() {
        assert!(debian_python().fits());
        for version in [[2, 7, 18], [3, 9, 1], [3, 99, 0]] {
            assert!(!Python { version, ..debian_python() }.fits());
        }
        assert!(!Python { implementation: "pypy".into(), ..debian_python() }.fits());
        assert!(!Python { free_threaded: true, ..debian_python() }.fits());
    }
}
