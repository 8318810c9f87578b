//! Being asked before the packages of a person's own choice are downloaded.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

/// What `sandbox.packages` needs to have downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageDownload {
    /// Name and version of each package, those that they depend on among them.
    pub packages: Vec<String>,
    /// Bytes of all wheels; `None` where the index does not tell the size of each.
    pub bytes: Option<u64>,
    /// Where they go: a folder, or an engine's store.
    pub destination: String,
}

impl fmt::Display for PackageDownload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            Some(bytes) if bytes < 1_000_000 => write!(f, "{} kB", bytes.div_ceil(1000))?,
            Some(bytes) => write!(f, "{} MB", bytes.div_ceil(1_000_000))?,
            None => f.write_str("a download of unknown size")?,
        }
        write!(f, " for sandbox.packages ({}) into {}", self.packages.join(", "), self.destination)
    }
}

/// Who decides about a download.
#[async_trait]
pub trait Consent: fmt::Debug + Send + Sync {
    /// Whether it may begin. Size and destination were said as progress already.
    async fn may_download(&self, download: &PackageDownload) -> bool;
}

/// The setting itself is the consent: where nobody can be asked, or a person decided beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub struct BySetting;

#[async_trait]
impl Consent for BySetting {
    async fn may_download(&self, _download: &PackageDownload) -> bool {
        true
    }
}

/// Asks whoever can answer, once there is somebody; until then the setting decides.
#[derive(Debug, Default)]
pub struct Relay(OnceLock<Arc<dyn Consent>>);

impl Relay {
    /// Passes questions on to `consent` from now on. The first one that is given stays.
    pub fn to(&self, consent: Arc<dyn Consent>) {
        // A process has one terminal or one editor.
        let _ = self.0.set(consent);
    }
}

#[async_trait]
impl Consent for Relay {
    async fn may_download(&self, download: &PackageDownload) -> bool {
        match self.0.get() {
            Some(consent) => consent.may_download(download).await,
            None => BySetting.may_download(download).await,
        }
    }
}
