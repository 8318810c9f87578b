//! What the image is built from, and its tag by content.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::config::SandboxSettings;
use crate::sandbox::image::MODULES;

const DOCKERFILE: &str = include_str!("../image/Dockerfile");
const DOCKERFILE_OWN: &str = include_str!("../image/Dockerfile.own");
const CORE: &str = include_str!("../image/requirements/core.txt");
const FULL: &str = include_str!("../image/requirements/full.txt");

/// Base image where no setting names one.
const DEFAULT_BASE: &str = "python:3.12-slim";

/// Name of every image that is built here.
pub(super) const REPOSITORY: &str = "codeinterp-sandbox";

/// A build context.
pub(super) struct Context {
    /// `codeinterp-sandbox:<hash>`; the same contents always have the same tag.
    pub tag: String,
    /// The base image.
    pub base: String,
    /// Build arguments: the base, and the host's package index and proxies.
    pub arguments: HashMap<String, String>,
    /// Whether packages are downloaded: not where the image is the user's own.
    pub downloads: bool,
    /// Paths in it, and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Context {
    /// The context that the settings ask for. Reads the host's certificates.
    pub fn new(settings: &SandboxSettings) -> Self {
        let own = settings.image.as_deref();
        let base = own.or(settings.base.as_deref()).unwrap_or(DEFAULT_BASE).to_owned();
        let mut files: Vec<(String, Vec<u8>)> =
            MODULES.iter().map(|(name, text)| (format!("supervisor/{name}"), text.as_bytes().to_vec())).collect();
        files.push(("Dockerfile".to_owned(), own.map_or(DOCKERFILE, |_| DOCKERFILE_OWN).as_bytes().to_vec()));
        if own.is_none() {
            files.push(("requirements/core.txt".to_owned(), CORE.as_bytes().to_vec()));
            files.push(("requirements/full.txt".to_owned(), FULL.as_bytes().to_vec()));
        }
        let tag = tag(&base, &files);
        // Certificates and indexes are the host's and not part of what the image is.
        files.push(("ca.pem".to_owned(), certificates()));
        let arguments = arguments(&base);
        Self { tag, base, arguments, downloads: own.is_none(), files }
    }
}

/// `codeinterp-sandbox:<hash>` of what is built from `base` and these files.
pub(super) fn tag(base: &str, files: &[(String, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    hash.update(base);
    for (name, data) in files {
        hash.update(name);
        hash.update([0]);
        hash.update(data);
    }
    let hex: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{REPOSITORY}:{hex}")
}

/// Arguments of a build from `base`.
pub(super) fn arguments(base: &str) -> HashMap<String, String> {
    let passed =
        PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok().filter(|value| !value.is_empty())?)));
    std::iter::once(("BASE".to_owned(), base.to_owned())).chain(passed).collect()
}

/// The files as a tar archive. Times and owners are constant, so that the engine's layer cache is hit.
pub(super) fn archive(files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, data) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, name, data.as_slice())?;
    }
    archive.into_inner()
}

/// Variables of the host that the build is given. Proxies are predefined build arguments and leave no trace in the
/// image; the index is used in a stage that is thrown away.
const PASSED_ON: &[&str] = &[
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The host's bundle of certificate authorities, for companies whose proxy ends TLS; empty where the host names none.
pub(super) fn certificates() -> Vec<u8> {
    ["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]
        .iter()
        .filter_map(|name| std::env::var_os(name).map(PathBuf::from))
        .find_map(|path| std::fs::read(path).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_follows_the_contents_and_nothing_else() {
        let settings = SandboxSettings::default();
        let other = SandboxSettings { base: Some("other".to_owned()), ..SandboxSettings::default() };
        assert_eq!(Context::new(&settings).tag, Context::new(&settings).tag);
        assert_ne!(Context::new(&settings).tag, Context::new(&other).tag);
    }

    #[test]
    fn the_archive_is_the_same_each_time() -> io::Result<()> {
        let settings = SandboxSettings::default();
        assert_eq!(archive(&Context::new(&settings).files)?, archive(&Context::new(&settings).files)?);
        Ok(())
    }
}
