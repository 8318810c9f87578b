//! What `sandbox.packages` comes to: the wheels that pip chose, by their hashes, and their size.

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::agent::ports::{Progress, SandboxError, Sink};
use crate::sandbox::consent::{Consent, PackageDownload};

/// Reads pip's report and prints what [`read`] reads.
pub const SCRIPT: &str = include_str!("wheels.py");

/// Wheels of one list; more is no list that a person wrote.
const MAX_WHEELS: usize = 1000;

/// A wheel that pip chose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Wheel {
    name: String,
    version: String,
    /// `sha256:` and hexadecimal digits.
    hash: String,
    /// Its size; `None` where its server does not tell.
    bytes: Option<u64>,
}

/// A requirement as the setting may hold it: a name with extras, versions and a marker. No paths, addresses or options.
pub fn check(requirement: &str) -> Result<(), SandboxError> {
    let plain = requirement.chars().all(|c| c.is_ascii_alphanumeric() || " ._-[],<>=!~*;'\"()".contains(c));
    if plain && requirement.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(SandboxError::Unavailable {
        message: format!("sandbox.packages holds {requirement:?}, which is not the name of a package"),
        hint: "write names with optional versions, such as \"xgboost\" or \"xgboost>=2\"; they come from the package index".to_owned(),
    })
}

/// Reads the line that [`SCRIPT`] prints. What an index says of itself is as untrusted as anything else from outside.
pub fn read(line: &str) -> Result<Vec<Wheel>, SandboxError> {
    let unreadable = |reason: String| SandboxError::Unavailable {
        message: format!("what pip chose for sandbox.packages can't be read: {reason}"),
        hint: "see that the package index is a complete one, with hashes of its files".to_owned(),
    };
    let wheels: Vec<Wheel> = serde_json::from_str(line.trim()).map_err(|error| unreadable(error.to_string()))?;
    if wheels.len() > MAX_WHEELS {
        return Err(unreadable(format!("{} packages", wheels.len())));
    }
    for wheel in &wheels {
        // What begins with a dash would be an option of pip.
        let word = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
        };
        let hash = wheel.hash.strip_prefix("sha256:").unwrap_or_default();
        if !word(&wheel.name) || !word(&wheel.version) {
            return Err(unreadable("a name or version that is none".to_owned()));
        }
        if hash.len() != 64 || !hash.bytes().all(|letter| letter.is_ascii_hexdigit()) {
            return Err(unreadable(format!("{} has no hash", wheel.name)));
        }
    }
    Ok(wheels)
}

/// The same wheels and no others, in pip's format.
pub fn requirements(wheels: &[Wheel]) -> String {
    wheels.iter().map(|wheel| format!("{}=={} --hash={}\n", wheel.name, wheel.version, wheel.hash)).collect()
}

/// Says what would be downloaded, and asks. An error where it may not be.
pub async fn agree(
    wheels: &[Wheel],
    destination: String,
    consent: &dyn Consent,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<(), SandboxError> {
    let bytes = wheels.iter().map(|wheel| wheel.bytes).try_fold(0u64, |sum, bytes| sum.checked_add(bytes?));
    let packages = wheels.iter().map(|wheel| format!("{} {}", wheel.name, wheel.version)).collect();
    let download = PackageDownload { packages, bytes, destination };
    progress(Progress { what: format!("downloading {download}"), fraction: None });
    let agreed = tokio::select! {
        agreed = consent.may_download(&download) => agreed,
        // A person may take longer to answer than the run is wanted.
        () = cancel.cancelled() => return Err(SandboxError::Cancelled),
    };
    if agreed {
        return Ok(());
    }
    Err(SandboxError::Unavailable {
        message: format!("nothing was downloaded, because you did not agree to {download}"),
        hint: "take the packages out of sandbox.packages, or agree the next time".to_owned(),
    })
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
    fn wheels_become_requirements_with_hashes_and_what_is_no_wheel_is_refused() {
        let hash = "a".repeat(64);
        let line = |name: &str, hash: &str| format!(r#"[{{"name":"{name}","version":"1.2","hash":"{hash}","bytes":5}}]"#);
        let wheels = read(&line("x", &format!("sha256:{hash}"))).unwrap_or_default();
        assert_eq!(requirements(&wheels), format!("x==1.2 --hash=sha256:{hash}\n"));
        for bad in [line("x", ""), line("x", "md5:0"), line("--pre", &format!("sha256:{hash}")), "{}".to_owned(), "[".to_owned()] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
