//! Running pip or uv: with the environment they need and no more, with progress, cancellation and readable failures.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::sync::LazyLock;

use regex::Regex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::agent::ports::{Progress, SandboxError, Sink};

/// Lines of an installer's output that a failure shows.
const LAST_LINES: usize = 12;
/// Characters of a line that are kept.
const LINE_CHARS: usize = 400;

/// Variables that installers get: their own settings, certificates, proxies, where homes and caches are.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "NETRC",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SYSTEMROOT",
];

/// Settings of pip that would change what is installed or where.
const REFUSED: &[&str] = &[
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIREMENT",
    "PIP_CONSTRAINT",
    "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
    "PIP_PRE",
    "PIP_NO_DEPS",
    "PIP_NO_COMPILE",
    "PIP_PYTHON",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_DRY_RUN",
    "PIP_REPORT",
    "PIP_IGNORE_INSTALLED",
    "PIP_QUIET",
    "PIP_VERBOSE",
    "PIP_PROGRESS_BAR",
    "PIP_LOG",
    "PIP_UPGRADE",
    "PIP_FORCE_REINSTALL",
    "UV_PYTHON",
    "UV_PROJECT_ENVIRONMENT",
    "UV_SYSTEM_PYTHON",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_NO_BINARY",
    "UV_PRERELEASE",
    "UV_NO_VERIFY_HASHES",
    "UV_RESOLUTION",
    "UV_EXCLUDE_NEWER",
];

/// The environment of an installer.
fn environment() -> Vec<(OsString, OsString)> {
    let all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let mut chosen: Vec<(OsString, OsString)> = all.iter().filter(|(name, _)| passes(name)).cloned().collect();
    // uv has names of its own for what people set for pip.
    for (pip, uv) in [
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
        ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
        ("PIP_CERT", "SSL_CERT_FILE"),
    ] {
        let has = |name: &str| chosen.iter().any(|(each, _)| each == name);
        if !has(uv)
            && let Some((_, value)) = all.iter().find(|(name, _)| name == pip)
        {
            chosen.push((uv.into(), value.clone()));
        }
    }
    for (name, value) in [("PIP_NO_INPUT", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("NO_COLOR", "1"), ("PYTHONIOENCODING", "utf-8")] {
        chosen.push((name.into(), value.into()));
    }
    chosen
}

fn passes(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    PASSED.contains(&name)
        || ((name.starts_with("PIP_") || name.starts_with("UV_") || name.starts_with("XDG_") || name.starts_with("LC_"))
            && !REFUSED.contains(&name))
}

/// Runs an installer to its end.
///
/// `total` is the size of the whole download where it is known; progress then has a fraction. Cancellation kills it.
/// A failure is [`SandboxError::Unavailable`] with the installer's last lines.
pub async fn run(
    mut command: Command,
    doing: &str,
    total: Option<u64>,
    progress: Sink<'_, Progress>,
    cancel: &CancellationToken,
) -> Result<String, SandboxError> {
    let own: Vec<(OsString, OsString)> =
        command.as_std().get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command.env_clear().envs(environment()).envs(own).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A group of its own, so that a Ctrl-C in the terminal reaches us alone and we end it in order.
    #[cfg(unix)]
    command.process_group(0);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| unavailable(doing, &program, &error.to_string()))?;
    let watch = Watch { doing, total, progress };
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(unavailable(doing, &program, "its output is not readable"));
    };
    let mut seen = Seen::default();
    let work = async {
        let mut out = BufReader::new(stdout).lines();
        let mut err = BufReader::new(stderr).lines();
        let (mut out_open, mut err_open) = (true, true);
        while out_open || err_open {
            tokio::select! {
                line = next(&mut out), if out_open => match line { Some(line) => watch.line(&line, true, &mut seen), None => out_open = false },
                line = next(&mut err), if err_open => match line { Some(line) => watch.line(&line, false, &mut seen), None => err_open = false },
            }
        }
        child.wait().await
    };
    let status = tokio::select! {
        status = work => status,
        () = cancel.cancelled() => return Err(SandboxError::Cancelled),
    };
    match status {
        Ok(status) if status.success() => Ok(seen.stdout),
        Ok(status) => Err(failed(doing, &status.to_string(), &seen.last)),
        Err(error) => Err(unavailable(doing, &program, &error.to_string())),
    }
}

async fn next<R: AsyncRead + Unpin>(lines: &mut tokio::io::Lines<BufReader<R>>) -> Option<String> {
    // A line that is no UTF-8 ends the reading of that stream and nothing else.
    lines.next_line().await.ok().flatten()
}

#[derive(Default)]
struct Seen {
    stdout: String,
    last: VecDeque<String>,
    bytes: u64,
}

struct Watch<'a> {
    doing: &'a str,
    total: Option<u64>,
    progress: Sink<'a, Progress>,
}

impl Watch<'_> {
    fn line(&self, line: &str, stdout: bool, seen: &mut Seen) {
        if stdout && seen.stdout.len() < 1 << 22 {
            seen.stdout.push_str(line);
            seen.stdout.push('\n');
        }
        let short: String = line.chars().take(LINE_CHARS).collect();
        // Markers that are for other Pythons tell nothing.
        if !short.trim().is_empty() && !short.starts_with("Ignoring ") {
            if seen.last.len() == LAST_LINES {
                seen.last.pop_front();
            }
            seen.last.push_back(redact(&short));
        }
        let Some((name, bytes)) = download(line) else { return };
        seen.bytes = seen.bytes.saturating_add(bytes);
        #[allow(clippy::cast_precision_loss, reason = "a fraction for a progress bar")]
        let fraction = self.total.filter(|&total| total > 0).map(|total| (seen.bytes as f64 / total as f64).min(1.0));
        (self.progress)(Progress { what: format!("{}: {name}", self.doing), fraction });
    }
}

/// The file and size of a line such as pip's `  Downloading numpy-2.2.6-cp310-….whl (16.8 MB)`.
fn download(line: &str) -> Option<(String, u64)> {
    #[allow(clippy::expect_used, reason = "a constant pattern")]
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s*(?:Downloading|Using cached)\s+(?:\S*/)?([A-Za-z0-9_.]+)\S*\s+\((?:from \S+ )?([0-9.]+) ?(bytes|[kKM]i?B)\)")
            .expect("a constant pattern")
    });
    let found = LINE.captures(line)?;
    let number: f64 = found[2].parse().ok()?;
    let unit = match &found[3] {
        "bytes" => 1.0,
        "kB" | "KB" | "KiB" | "kiB" => 1e3,
        _ => 1e6,
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size that was printed with three digits")]
    Some((found[1].to_owned(), (number * unit) as u64))
}

/// Hides what stands between `//` and `@` in addresses: an index's user and password.
fn redact(line: &str) -> String {
    #[allow(clippy::expect_used, reason = "a constant pattern")]
    static LOGIN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"//[^/@\s]+@").expect("a constant pattern"));
    LOGIN.replace_all(line, "//…@").into_owned()
}

fn unavailable(doing: &str, program: &str, reason: &str) -> SandboxError {
    SandboxError::Unavailable {
        message: format!("{doing}: {program} can't run: {reason}"),
        hint: "check that the program works in a terminal".to_owned(),
    }
}

fn failed(doing: &str, status: &str, last: &VecDeque<String>) -> SandboxError {
    let lines: Vec<&str> = last.iter().map(String::as_str).collect();
    let text = lines.join("\n");
    SandboxError::Unavailable { message: format!("{doing} failed ({status}):\n{text}"), hint: hint(&text).to_owned() }
}

/// What to do about a failed installation, by what the installer said.
pub fn hint(text: &str) -> &'static str {
    let has = |needle: &str| text.contains(needle);
    if has("CERTIFICATE_VERIFY_FAILED") || has("certificate verify failed") || has("UnknownIssuer") {
        "the package index's certificate is not trusted: set PIP_CERT (or SSL_CERT_FILE) to your company's CA bundle"
    } else if has("No space left on device") {
        "the disk is full: free some space, or point XDG_CACHE_HOME to a disk that has it"
    } else if has("DO NOT MATCH THE HASHES") || has("Hash mismatch") {
        "the index gave other files than the locked ones: use an index that mirrors PyPI unchanged"
    } else if has("ProxyError") || has("407 ") {
        "the proxy refused: check HTTPS_PROXY and its login"
    } else if has("from versions: none") {
        "the package index gave no files at all: check the network, HTTPS_PROXY, and PIP_INDEX_URL where you have an index of your own"
    } else if has("No matching distribution") || has("no wheels with a matching") || has("no usable wheels") {
        "the index has no wheel of this package for this Python and machine: use another Python (3.10 to 3.14) or another index"
    } else if has("ConnectTimeout")
        || has("NewConnectionError")
        || has("Name or service not known")
        || has("Temporary failure in name resolution")
        || has("dns error")
    {
        "the package index can't be reached: check the network, HTTPS_PROXY, and PIP_INDEX_URL where you have an index of your own"
    } else {
        "read the lines above; settings of pip (PIP_INDEX_URL, PIP_CERT, HTTPS_PROXY) are used as they are"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_lines_of_pip() {
        assert_eq!(
            download("  Downloading numpy-2.2.6-cp310-cp310-manylinux_2_17_x86_64.whl (16.8 MB)"),
            Some(("numpy".to_owned(), 16_800_000))
        );
        assert_eq!(
            download("  Downloading numpy-2.2.6-cp310-cp310-manylinux_2_17_x86_64.whl.metadata (62 kB)"),
            Some(("numpy".to_owned(), 62_000))
        );
        assert_eq!(download("  Using cached six-1.17.0-py2.py3-none-any.whl (11 kB)"), Some(("six".to_owned(), 11_000)));
        assert_eq!(download("Downloading polars (38.1MiB)"), Some(("polars".to_owned(), 38_100_000)));
        assert_eq!(download("Collecting numpy==2.2.6 (from -r core.txt (line 3))"), None);
    }

    #[test]
    fn passwords_of_an_index_are_not_shown() {
        assert_eq!(
            redact("Looking in indexes: https://me:secret@index.example/simple"),
            "Looking in indexes: https://…@index.example/simple"
        );
    }

    #[test]
    fn settings_that_would_change_what_is_installed_do_not_pass() {
        for name in ["PIP_INDEX_URL", "PIP_CERT", "HTTPS_PROXY", "SSL_CERT_FILE", "PATH", "UV_DEFAULT_INDEX"] {
            assert!(passes(OsStr::new(name)), "{name}");
        }
        for name in ["PIP_TARGET", "PIP_NO_BINARY", "PYTHONPATH", "LD_PRELOAD", "CODEINTERP_API_KEY", "OPENAI_API_KEY", "VIRTUAL_ENV"] {
            assert!(!passes(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn an_untrusted_certificate_gets_its_own_advice() {
        assert!(hint("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]").contains("PIP_CERT"));
        assert!(hint("OSError: [Errno 28] No space left on device").contains("disk is full"));
    }
}
