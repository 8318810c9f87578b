//! `sandbox.packages`: wheels that the host resolves and downloads before the sandbox starts, since inside there is no network.

use std::path::PathBuf;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::environment::{cannot_write, exclusive, pip_install};
use super::{Environment, installer, lock};
use crate::agent::ports::{Progress, SandboxError, Sink};

/// Folder with the packages of `wanted` and what they need beyond the locked sets; built now where it is not there yet.
/// `None` for an empty list.
pub async fn provide(
    environment: &Environment,
    wanted: &[String],
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<Option<PathBuf>, SandboxError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    for name in wanted {
        check(name)?;
    }
    let folder = environment.root.join("packages").join(key(wanted));
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    let parent = environment.root.join("packages");
    std::fs::create_dir_all(&parent).map_err(|error| cannot_write(&parent, &error))?;
    let _lock = exclusive(&environment.root.with_extension("lock"), progress, cancel).await?;
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    build(environment, wanted, &folder, progress, cancel).await?;
    Ok(Some(folder))
}

/// A requirement as the setting may hold it: a name with extras, versions and a marker. No paths, addresses or options.
fn check(requirement: &str) -> Result<(), SandboxError> {
    let plain = requirement.chars().all(|c| c.is_ascii_alphanumeric() || " ._-[],<>=!~*;'\"()".contains(c));
    if plain && requirement.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(SandboxError::Unavailable {
        message: format!("sandbox.packages holds {requirement:?}, which is not the name of a package"),
        hint: "write names with optional versions, such as \"xgboost\" or \"xgboost>=2\"; they come from the package index".to_owned(),
    })
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
    folder: &std::path::Path,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<(), SandboxError> {
    let listed = wanted.join(", ");
    let constraints = environment.root.join("constraints.txt");
    std::fs::write(&constraints, lock::constraints()).map_err(|error| cannot_write(&constraints, &error))?;
    progress(Progress { what: format!("resolving the packages of sandbox.packages: {listed}"), fraction: None });

    let mut resolve = pip_install(environment);
    resolve.args(["--quiet", "--dry-run", "--report", "-", "--constraint"]).arg(&constraints).args(wanted);
    resolve.env(super::environment::PACKAGES_VARIABLE, environment.full());
    let report = installer::run(resolve, "resolving sandbox.packages", None, progress, cancel).await?;
    let missing = to_install(&report).map_err(|reason| SandboxError::Unavailable {
        message: format!("pip's report on sandbox.packages can't be read: {reason}"),
        hint: "remove the folder of this environment, so that it is built with a newer pip".to_owned(),
    })?;

    let new = folder.with_extension("new");
    let _ = std::fs::remove_dir_all(&new);
    std::fs::create_dir_all(&new).map_err(|error| cannot_write(&new, &error))?;
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|item| item.metadata.name.as_str()).collect();
        progress(Progress {
            what: format!("downloading {} packages into {}: {}", missing.len(), folder.display(), names.join(", ")),
            fraction: None,
        });
        // What was resolved is what is installed, by the hashes of the report.
        let requirements: String = missing.iter().map(Item::requirement).collect();
        let file = environment.root.join("packages.txt");
        std::fs::write(&file, requirements).map_err(|error| cannot_write(&file, &error))?;
        let mut install = pip_install(environment);
        install.args(["--no-deps", "--require-hashes", "--target"]).arg(&new).arg("-r").arg(&file);
        installer::run(install, "installing sandbox.packages", None, progress, cancel).await?;
    }
    std::fs::rename(&new, folder).map_err(|error| cannot_write(folder, &error))
}

/// Part of pip's installation report, version 1 (pip's documentation, "Installation Report").
#[derive(Debug, Deserialize)]
struct Report {
    install: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    metadata: Metadata,
    download_info: DownloadInfo,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Debug, Deserialize)]
struct DownloadInfo {
    archive_info: Option<ArchiveInfo>,
}

#[derive(Debug, Deserialize)]
struct ArchiveInfo {
    hash: Option<String>,
}

impl Item {
    fn requirement(&self) -> String {
        let hash = self.download_info.archive_info.as_ref().and_then(|info| info.hash.as_deref()).unwrap_or_default();
        format!("{}=={} --hash={}\n", self.metadata.name, self.metadata.version, hash.replace('=', ":"))
    }
}

fn to_install(report: &str) -> Result<Vec<Item>, String> {
    let report: Report = serde_json::from_str(report).map_err(|error| error.to_string())?;
    for item in &report.install {
        if item.download_info.archive_info.as_ref().is_none_or(|info| info.hash.is_none()) {
            return Err(format!("{} has no hash", item.metadata.name));
        }
    }
    Ok(report.install)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_packages_are_taken() {
        for good in ["xgboost", "xgboost>=2,<3", "pandas[excel]", "a; python_version < '3.12'"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["--index-url=x", "-e .", "./x", "git+https://x/y", "https://x/y.whl", "/tmp/x", "a\nb", ""] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        assert_eq!(key(&["a".into(), "b".into()]), key(&["b".into(), "a".into(), "a".into()]));
        assert_ne!(key(&["a".into()]), key(&["b".into()]));
    }

    #[test]
    fn a_report_of_pip_becomes_requirements_with_hashes() {
        let report = r#"{"version":"1","install":[{"metadata":{"name":"x","version":"1.2"},"download_info":{"url":"u","archive_info":{"hash":"sha256=ab","hashes":{"sha256":"ab"}}}}]}"#;
        let items = to_install(report).unwrap_or_default();
        assert_eq!(items.iter().map(Item::requirement).collect::<String>(), "x==1.2 --hash=sha256:ab\n");
    }
}
