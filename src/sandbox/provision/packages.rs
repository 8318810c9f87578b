//! `sandbox.packages`: wheels that the host resolves and downloads before the sandbox starts, since inside there is no network.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::environment::{cannot_write, exclusive, pip_install};
use super::{Environment, installer, lock, wheels};
use crate::agent::ports::{Progress, SandboxError, Sink};
use crate::sandbox::consent::Consent;

/// Folder with the packages of `wanted` and what they need beyond the locked sets; built now where it is not there yet.
/// `None` for an empty list.
pub async fn provide(
    environment: &Environment,
    wanted: &[String],
    consent: &dyn Consent,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<Option<PathBuf>, SandboxError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    for name in wanted {
        wheels::check(name)?;
    }
    let folder = folder_of(environment, wanted);
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    let parent = environment.root.join("packages");
    std::fs::create_dir_all(&parent).map_err(|error| cannot_write(&parent, &error))?;
    let _lock = exclusive(&environment.root.with_extension("lock"), progress, cancel).await?;
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    build(environment, wanted, &folder, consent, progress, cancel).await?;
    Ok(Some(folder))
}

/// Whether [`provide`] has nothing left to do.
pub fn are_there(environment: &Environment, wanted: &[String]) -> bool {
    wanted.is_empty() || folder_of(environment, wanted).is_dir()
}

fn folder_of(environment: &Environment, wanted: &[String]) -> PathBuf {
    environment.root.join("packages").join(key(wanted))
}

fn key(wanted: &[String]) -> String {
    let mut sorted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.dedup();
    lock::hex(&Sha256::digest(sorted.join("\n"))[..8])
}

async fn build(
    environment: &Environment,
    wanted: &[String],
    folder: &Path,
    consent: &dyn Consent,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<(), SandboxError> {
    let listed = wanted.join(", ");
    let constraints = environment.root.join("constraints.txt");
    std::fs::write(&constraints, lock::constraints()).map_err(|error| cannot_write(&constraints, &error))?;
    progress(Progress { what: format!("resolving the packages of sandbox.packages: {listed}"), fraction: None });

    let report = environment.root.join("packages.json");
    let mut resolve = pip_install(environment);
    resolve.args(["--quiet", "--dry-run", "--report"]).arg(&report).arg("--constraint").arg(&constraints).args(wanted);
    resolve.env(super::environment::PACKAGES_VARIABLE, environment.full());
    installer::run(resolve, "resolving sandbox.packages", None, progress, cancel).await?;
    let mut sizes = Command::new(environment.interpreter());
    sizes.args(["-I", "-c", wheels::SCRIPT]).arg(&report);
    let missing = wheels::read(&installer::run(sizes, "asking for the sizes of sandbox.packages", None, progress, cancel).await?)?;

    if !missing.is_empty() {
        wheels::agree(&missing, folder.display().to_string(), consent, progress, cancel).await?;
    }
    let new = folder.with_extension("new");
    let _ = std::fs::remove_dir_all(&new);
    std::fs::create_dir_all(&new).map_err(|error| cannot_write(&new, &error))?;
    if !missing.is_empty() {
        // What was resolved is what is installed, by the hashes of the report.
        let file = environment.root.join("packages.txt");
        std::fs::write(&file, wheels::requirements(&missing)).map_err(|error| cannot_write(&file, &error))?;
        let mut install = pip_install(environment);
        install.args(["--no-deps", "--require-hashes", "--target"]).arg(&new).arg("-r").arg(&file);
        installer::run(install, "installing sandbox.packages", None, progress, cancel).await?;
    }
    std::fs::rename(&new, folder).map_err(|error| cannot_write(folder, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        assert_eq!(key(&["a".into(), "b".into()]), key(&["b".into(), "a".into(), "a".into()]));
        assert_ne!(key(&["a".into()]), key(&["b".into()]));
    }
}
