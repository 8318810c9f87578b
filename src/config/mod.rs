//! One settings type for the command line, the environment, the editor and the configuration file.
//!
//! Order, strongest first: command line, environment, the editor's user settings (`initializationOptions`),
//! `$XDG_CONFIG_HOME/codeinterp/config.toml`, defaults. Settings that arrive from a workspace
//! (`workspace/configuration`, `didChangeConfiguration`) are of unknown scope: see [`Settings::tighten`].

mod layers;
mod tighten;

use serde::{Deserialize, Serialize};

pub use layers::{Overrides, SettingsError, cache_dir, config_file, load, state_dir};

/// All settings. Names in files and editors are the same, nested, in camel case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The model: a genai name (`openai::gpt-5-mini`), `editor`, or `playbook`. Unset: `playbook`, and the report says so.
    pub model: Option<String>,
    /// Base URL of an OpenAI-compatible server, used with any model name.
    pub endpoint: Option<String>,
    /// Name of the environment variable that holds the key for `endpoint`.
    pub api_key_env: Option<String>,
    /// How the model acts.
    pub protocol: Protocol,
    /// Bounds of a run.
    pub agent: AgentSettings,
    /// The sandbox.
    pub sandbox: SandboxSettings,
    /// What may leave the machine.
    pub privacy: PrivacySettings,
    /// Re-run pinned analyses on save.
    pub live: bool,
    /// Inlay hints.
    pub hints: HintSettings,
    /// Diagnostics.
    pub diagnostics: DiagnosticSettings,
    /// Files.
    pub files: FileSettings,
}

/// How a model asks for an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Tool calls where the model has them, else fences.
    #[default]
    Auto,
    /// Tool calls only.
    Tools,
    /// Fenced `python` blocks only.
    Fenced,
}

/// Whether a person is asked before code runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confirm {
    /// Code runs at once, in the sandbox.
    #[default]
    Never,
    /// Code is shown, and runs when the person agrees.
    Always,
}

/// Bounds of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSettings {
    /// Executions in a run; turns are bounded by twice as many.
    pub max_steps: u32,
    /// Input and output tokens of a run together.
    pub max_tokens: Option<u64>,
    /// Wall-clock seconds of a run.
    pub max_seconds: Option<u64>,
    /// Whether code is shown before it runs.
    pub confirm: Confirm,
    /// Bytes of standard output that are kept of an execution.
    pub stdout_bytes: usize,
    /// Bytes of standard error that are kept of an execution.
    pub stderr_bytes: usize,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { max_steps: 10, max_tokens: None, max_seconds: None, confirm: Confirm::Never, stdout_bytes: 8192, stderr_bytes: 4096 }
    }
}

/// Which backend runs the code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// Docker when an engine answers and its image exists or can be built, else the process backend.
    #[default]
    Auto,
    /// A container.
    Docker,
    /// A confined local process (Linux).
    Process,
}

/// The sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSettings {
    /// Which backend.
    pub backend: BackendChoice,
    /// An image of the user's own, used instead of the built one.
    pub image: Option<String>,
    /// Base image that the built image starts from.
    pub base: Option<String>,
    /// Python packages that are added before the sandbox starts.
    pub packages: Vec<String>,
    /// OCI runtime, for example `runsc`.
    pub runtime: Option<String>,
    /// Memory limit: a number of bytes with an optional `k`, `m` or `g`.
    pub memory: ByteSize,
    /// CPUs.
    pub cpus: f64,
    /// Processes and threads.
    pub pids: u32,
    /// Seconds that one execution may take.
    pub timeout_seconds: u64,
    /// Minutes without use after which the sandbox is stopped.
    pub idle_minutes: u64,
    /// Whether a sandbox is started as soon as a data file of a workspace folder is opened.
    pub warm: bool,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            backend: BackendChoice::Auto,
            image: None,
            base: None,
            packages: Vec::new(),
            runtime: None,
            memory: ByteSize(1 << 30),
            cpus: 1.0,
            pids: 256,
            timeout_seconds: 60,
            idle_minutes: 30,
            warm: false,
        }
    }
}

/// What may be sent to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivacySend {
    /// Names and types only.
    Schema,
    /// Profiles and a few rows.
    #[default]
    Sample,
    /// Everything the analysis prints.
    Full,
}

/// What may leave the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivacySettings {
    /// How much of the data a model may see.
    pub send: PrivacySend,
}

/// Inlay hints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HintSettings {
    /// Hints of results on the lines that were asked about.
    pub enabled: bool,
    /// The hint of columns on a header line.
    pub columns: bool,
}

impl Default for HintSettings {
    fn default() -> Self {
        Self { enabled: true, columns: true }
    }
}

/// Diagnostics of broken data files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiagnosticSettings {
    /// Whether there are any.
    pub enabled: bool,
}

impl Default for DiagnosticSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileSettings {
    /// Rows that the model's code is told to load at most.
    pub max_rows: u64,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self { max_rows: 100_000 }
    }
}

/// A number of bytes, written as a number or as text like `512m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        let lower = lower.strip_suffix('b').unwrap_or(&lower);
        let lower = lower.strip_suffix('i').unwrap_or(lower);
        let (digits, shift) = match lower.as_bytes().last() {
            Some(b'k') => (&lower[..lower.len() - 1], 10),
            Some(b'm') => (&lower[..lower.len() - 1], 20),
            Some(b'g') => (&lower[..lower.len() - 1], 30),
            Some(b't') => (&lower[..lower.len() - 1], 40),
            _ => (lower, 0),
        };
        let number: u64 = digits.trim().parse().map_err(|_| format!("{text:?} is not a size such as \"512m\" or \"1g\""))?;
        number.checked_mul(1 << shift).map(ByteSize).ok_or_else(|| format!("{text:?} is too large"))
    }
}

impl Serialize for ByteSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(u64),
            Text(String),
        }
        match Raw::deserialize(deserializer)? {
            Raw::Number(bytes) => Ok(Self(bytes)),
            Raw::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_unit() {
        let size = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("64kb"), Ok(64 << 10));
        assert_eq!(size("1000"), Ok(1000));
        assert!(size("much").is_err());
        assert!(size("99999999999t").is_err());
    }
}
