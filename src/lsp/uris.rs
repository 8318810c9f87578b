//! URIs of virtual documents, and of files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use url::Url;

use super::ext::SCHEME;
use crate::store::runs::is_run_id;

/// What a `codeinterp:` URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Virtual {
    /// `codeinterp:/runs/<id>/report.md`
    Report(String),
    /// `codeinterp:/runs/<id>/steps/<n>.py`
    Step(String, u32),
    /// `codeinterp:/runs/<id>/artifacts/<name>`
    Artifact(String, String),
}

impl Virtual {
    /// Reads a URI; both `codeinterp:/runs` and `codeinterp:///runs` are understood. `None` for anything that this
    /// server does not hand out, whatever it may look like after decoding.
    pub fn parse(uri: &Url) -> Option<Self> {
        let plain = uri.scheme() == SCHEME && uri.host_str().is_none_or(str::is_empty) && uri.query().is_none() && uri.fragment().is_none();
        if !plain {
            return None;
        }
        let decoded = percent_decode(uri.path())?;
        let mut parts = decoded.strip_prefix('/')?.splitn(4, '/');
        let (folder, run, kind, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next());
        if folder != "runs" || !is_run_id(run) {
            return None;
        }
        let run = run.to_owned();
        match (kind, name) {
            ("report.md", None) => Some(Self::Report(run)),
            ("steps", Some(name)) => {
                let number = name.strip_suffix(".py")?;
                let step: u32 = number.parse().ok()?;
                (step.to_string() == number).then_some(Self::Step(run, step))
            }
            ("artifacts", Some(name)) => {
                let plain =
                    !name.is_empty() && !name.contains(['/', '\\']) && name != "." && name != ".." && !name.chars().any(char::is_control);
                plain.then(|| Self::Artifact(run, name.to_owned()))
            }
            _ => None,
        }
    }

    /// The run.
    pub fn run(&self) -> &str {
        match self {
            Self::Report(run) | Self::Step(run, _) | Self::Artifact(run, _) => run,
        }
    }
}

/// Percent-decodes a path; `None` where that gives no UTF-8.
fn percent_decode(path: &str) -> Option<String> {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = path.get(at + 1..at + 3)?;
            decoded.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(decoded).ok()
}

/// The URI of a run's report as a virtual document.
pub fn report(run: &str) -> String {
    format!("{SCHEME}:/runs/{run}/report.md")
}

/// The URI of an artifact as a virtual document.
pub fn artifact(run: &str, name: &str) -> String {
    let mut uri = format!("{SCHEME}:/runs/{run}/artifacts/");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            uri.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// The path of a `file:` URI.
pub fn path(uri: &Url) -> Option<PathBuf> {
    (uri.scheme() == "file").then(|| uri.to_file_path().ok())?
}

/// The `file:` URI of an absolute path.
pub fn file(path: &Path) -> Option<Url> {
    Url::from_file_path(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "20260101-000000-abcdef";

    #[test]
    fn both_spellings_name_the_same_document() {
        let report = Some(Virtual::Report(RUN.to_owned()));
        for spelling in ["codeinterp:/", "codeinterp:///"] {
            let parse = |rest: &str| Url::parse(&format!("{spelling}runs/{RUN}/{rest}")).ok().and_then(|uri| Virtual::parse(&uri));
            assert_eq!(parse("report.md"), report);
            assert_eq!(parse("steps/2.py"), Some(Virtual::Step(RUN.to_owned(), 2)));
            assert_eq!(parse("artifacts/%E5%9B%BE%201.png"), Some(Virtual::Artifact(RUN.to_owned(), "图 1.png".to_owned())));
        }
    }

    #[test]
    fn forged_documents_are_none() {
        for forged in [
            "codeinterp:/runs/none/report.md",
            "codeinterp:/runs/../../../etc/passwd",
            "codeinterp:/runs/%2e%2e/%2e%2e/etc/passwd",
            "codeinterp://host/runs/20260101-000000-abcdef/report.md",
            "codeinterp:/runs/20260101-000000-abcdef/report.md?x",
            "codeinterp:/runs/20260101-000000-abcdef/steps/01.py",
            "codeinterp:/runs/20260101-000000-abcdef/steps/-1.py",
            "codeinterp:/runs/20260101-000000-abcdef/artifacts/..%2frun.json",
            "codeinterp:/runs/20260101-000000-abcdef/artifacts/%2e%2e",
            "codeinterp:/runs/20260101-000000-abcdef/artifacts/a%00b",
            "codeinterp:/runs/20260101-000000-abcdef/artifacts/%ff",
            "codeinterp:/runs/20260101-000000-abcdef/run.json",
            "codeinterp:runs/20260101-000000-abcdef/report.md",
            "file:///runs/20260101-000000-abcdef/report.md",
        ] {
            assert_eq!(Url::parse(forged).ok().and_then(|uri| Virtual::parse(&uri)), None, "{forged}");
        }
    }

    #[test]
    fn artifact_uris_are_read_back() {
        let uri = Url::parse(&artifact(RUN, "图 100%.png")).expect("a URI");
        assert_eq!(Virtual::parse(&uri), Some(Virtual::Artifact(RUN.to_owned(), "图 100%.png".to_owned())));
    }
}
