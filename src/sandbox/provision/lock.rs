//! The locked requirements: what is in each set, and how large its download is.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::Python;

/// The core set, enough for a first answer, in pip's format with hashes.
pub const CORE: &str = include_str!("../image/requirements/core.txt");
/// The full set, locked on top of the core set; names some packages of the core set again.
pub const FULL: &str = include_str!("../image/requirements/full.txt");
/// Bytes of the wheels by Python and machine.
const SIZES: &str = include_str!("../image/requirements/sizes.toml");

/// Which packages an environment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Enough for a first answer.
    Core,
    /// Everything else that models like to use.
    Full,
}

impl Set {
    /// `core` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Full => "full",
        }
    }

    /// Requirements to install for this set alone.
    pub fn requirements(self) -> String {
        match self {
            Self::Core => CORE.to_owned(),
            Self::Full => without(FULL, &names(CORE)),
        }
    }

    /// Bytes to download for this set, and whether that is exact.
    pub fn download(self, python: &Python) -> Download {
        #[derive(Deserialize)]
        struct Sizes {
            core: BTreeMap<String, u64>,
            full: BTreeMap<String, u64>,
        }
        let Ok(sizes) = toml::from_str::<Sizes>(SIZES) else { return Download { bytes: 0, exact: false } };
        let table = if self == Self::Core { sizes.core } else { sizes.full };
        match table.get(&format!("{}-{}", python.minor(), python.machine)) {
            Some(&bytes) => Download { bytes, exact: python.glibc },
            None => Download { bytes: table.values().copied().max().unwrap_or(0), exact: false },
        }
    }
}

/// Size of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download {
    /// Bytes.
    pub bytes: u64,
    /// False where the lock does not tell it for this machine and another machine's stands for it.
    pub exact: bool,
}

impl std::fmt::Display for Download {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let about = if self.exact { "" } else { "about " };
        write!(f, "{about}{} MB", self.bytes.div_ceil(1_000_000))
    }
}

/// Hex SHA-256 of everything that decides what an environment holds.
pub fn hash(python: &Python) -> String {
    let mut hasher = Sha256::new();
    // The layout's number: raise it when an environment of an earlier build can't be used any more.
    hasher.update("environment 2\n");
    for part in [CORE, FULL, &python.full_version(), &python.machine, &python.executable.to_string_lossy()] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| char::from(DIGITS[usize::from(half)])).collect()
}

/// Names of the packages in a lock.
pub fn names(lock: &str) -> Vec<&str> {
    lock.lines().filter_map(requirement_name).collect()
}

/// A line that begins a requirement is not indented; its hashes, on the lines after it, are.
fn requirement_name(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t', '#', '-']) {
        return None;
    }
    line.split_once("==").map(|(name, _)| name)
}

/// The lock without the packages of these names.
fn without(lock: &str, names: &[&str]) -> String {
    let mut keep = true;
    let mut rest = String::new();
    for line in lock.lines() {
        if let Some(name) = requirement_name(line) {
            keep = !names.contains(&name);
        }
        if keep {
            rest.push_str(line);
            rest.push('\n');
        }
    }
    rest
}

/// The lock as constraints: names, versions and markers, without hashes.
pub fn constraints() -> String {
    let mut text = String::new();
    for line in CORE.lines().chain(FULL.lines()) {
        if requirement_name(line).is_some() {
            text.push_str(line.trim_end_matches('\\').trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_set_installs_nothing_of_the_core_set_again() {
        let full = Set::Full.requirements();
        let core = names(CORE);
        assert!(core.contains(&"pandas"));
        assert!(names(&full).contains(&"polars"));
        assert!(names(&full).iter().all(|name| !core.contains(name)));
    }

    #[test]
    fn every_locked_requirement_has_hashes_and_no_index_is_named() {
        for lock in [CORE, FULL] {
            assert!(!lock.contains("index-url") && !lock.contains("http"));
            let mut lines = lock.lines().peekable();
            while let Some(line) = lines.next() {
                if requirement_name(line).is_some() {
                    assert!(lines.peek().is_some_and(|next| next.trim_start().starts_with("--hash=sha256:")), "{line}");
                }
            }
        }
    }

    #[test]
    fn sizes_are_known_for_every_python_that_serves() {
        for minor in super::super::python::MINORS {
            let python = Python {
                executable: "/usr/bin/python3".into(),
                implementation: "cpython".into(),
                version: [3, minor, 0],
                prefixes: Vec::new(),
                free_threaded: false,
                machine: "x86_64".into(),
                glibc: true,
                venv: true,
            };
            for set in [Set::Core, Set::Full] {
                let download = set.download(&python);
                assert!(download.exact && download.bytes > 50_000_000, "{minor} {set:?} {download}");
            }
        }
    }

    #[test]
    fn constraints_have_versions_and_markers_only() {
        let constraints = constraints();
        assert!(constraints.lines().any(|line| line.starts_with("pandas==")));
        assert!(!constraints.contains("--hash") && !constraints.contains('\\'));
    }
}
