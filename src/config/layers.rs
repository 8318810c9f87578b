//! Where settings come from, and the order in which they override each other.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::Settings;

/// Settings as a nested JSON object with the same names as [`Settings`]; what is absent is not set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides(pub Map<String, Value>);

impl Overrides {
    /// Sets `path` (names joined by dots) to `value`.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) {
        let mut names: Vec<&str> = path.split('.').collect();
        let Some(last) = names.pop() else { return };
        let mut object = &mut self.0;
        for name in names {
            let entry = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if !entry.is_object() {
                *entry = Value::Object(Map::new());
            }
            let Value::Object(inner) = entry else { return };
            object = inner;
        }
        object.insert(last.to_owned(), value.into());
    }

    /// The settings that the environment holds: `CODEINTERP_MODEL`, `CODEINTERP_ENDPOINT`, `CODEINTERP_SANDBOX_BASE`.
    pub fn from_environment() -> Self {
        let mut overrides = Self::default();
        for (variable, path) in
            [("CODEINTERP_MODEL", "model"), ("CODEINTERP_ENDPOINT", "endpoint"), ("CODEINTERP_SANDBOX_BASE", "sandbox.base")]
        {
            if let Ok(value) = std::env::var(variable)
                && !value.is_empty()
            {
                overrides.set(path, value);
            }
        }
        overrides
    }

    /// The settings that an editor sent, either bare or under the key `codeinterp`.
    /// Flat names with dots (`"sandbox.backend"`) are understood too.
    pub fn from_editor(value: &Value) -> Self {
        let Some(object) = value.get("codeinterp").unwrap_or(value).as_object() else { return Self::default() };
        let mut overrides = Self::default();
        for (name, value) in object {
            match value {
                Value::Null => {}
                _ if name.contains('.') => overrides.set(name, value.clone()),
                _ => merge_into(&mut overrides.0, name, value),
            }
        }
        overrides
    }
}

impl Overrides {
    /// Names, joined by dots, that are no settings.
    fn unknown(&self) -> Vec<String> {
        let known = serde_json::to_value(Settings::default()).unwrap_or_default();
        self.leaves()
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.split('.').try_fold(&known, |at, name| at.get(name)).is_none())
            .collect()
    }

    /// What can be used of it, and why the rest can't. What a model may see is bounded as strictly as can be where its own
    /// setting is wrong.
    pub fn usable(&self) -> (Self, Vec<String>) {
        let (mut usable, mut problems) = (Self::default(), Vec::new());
        for (path, value) in self.leaves() {
            let mut one = Self::default();
            one.set(&path, value.clone());
            match parse(&one.0, "the editor") {
                Ok(_) => usable.set(&path, value.clone()),
                Err(SettingsError::Value { reason, .. } | SettingsError::File { reason, .. }) => {
                    problems.push(format!("{path}: {reason}"));
                    if path.starts_with("privacy") {
                        usable.set("privacy.send", "schema");
                    }
                }
            }
        }
        (usable, problems)
    }

    /// Every value that is no object, with the names that lead to it joined by dots.
    fn leaves(&self) -> Vec<(String, &Value)> {
        fn walk<'a>(object: &'a Map<String, Value>, before: &str, found: &mut Vec<(String, &'a Value)>) {
            for (name, value) in object {
                let path = format!("{before}{name}");
                match value {
                    Value::Object(inner) => walk(inner, &format!("{path}."), found),
                    other => found.push((path, other)),
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.0, "", &mut found);
        found
    }
}

/// Why settings can't be used.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    /// The configuration file can't be read or is not TOML.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the place where it can be told.
        reason: String,
    },
    /// A setting has a value that it can't have.
    #[error("settings from {source_name}: {reason}")]
    Value {
        /// Which layer: `the command line`, `the editor`, …
        source_name: String,
        /// What is wrong.
        reason: String,
    },
}

/// Merges all layers. `editor` and `command_line` may be empty. Reads the environment and the configuration file.
/// Settings of the file that do not exist are warned of.
pub fn load(command_line: &Overrides, editor: &Overrides) -> Result<Settings, SettingsError> {
    let path = config_file();
    let mut merged = Map::new();
    if let Some(file) = path.as_deref().map(read_file).transpose()?.flatten() {
        let source = path.unwrap_or_default().display().to_string();
        for name in file.unknown() {
            tracing::warn!("{source}: there is no setting `{name}`; it is ignored");
        }
        layer(&mut merged, &file, &source)?;
    }
    layer(&mut merged, editor, "the editor")?;
    layer(&mut merged, &Overrides::from_environment(), "the environment")?;
    layer(&mut merged, command_line, "the command line")?;
    parse(&merged, "all layers")
}

fn layer(merged: &mut Map<String, Value>, over: &Overrides, source_name: &str) -> Result<(), SettingsError> {
    for (name, value) in &over.0 {
        merge_into(merged, name, value);
    }
    // Parsed after each layer so that the message names the layer that is wrong.
    parse(merged, source_name).map(|_| ())
}

fn parse(merged: &Map<String, Value>, source_name: &str) -> Result<Settings, SettingsError> {
    serde_json::from_value(Value::Object(merged.clone()))
        .map_err(|error| SettingsError::Value { source_name: source_name.to_owned(), reason: error.to_string() })
}

/// Merges objects deeply; everything else is replaced. Null means not set.
pub(super) fn merge_into(into: &mut Map<String, Value>, name: &str, value: &Value) {
    match (into.get_mut(name), value) {
        (_, Value::Null) => {}
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (name, value) in new {
                merge_into(old, name, value);
            }
        }
        _ => {
            into.insert(name.to_owned(), value.clone());
        }
    }
}

fn read_file(path: &Path) -> Result<Option<Overrides>, SettingsError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SettingsError::File { path: path.to_owned(), reason: error.to_string() }),
    };
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| SettingsError::File { path: path.to_owned(), reason: error.to_string() })?;
    match serde_json::to_value(table) {
        Ok(Value::Object(object)) => Ok(Some(Overrides(object))),
        _ => Err(SettingsError::File { path: path.to_owned(), reason: "not a table of settings".to_owned() }),
    }
}

fn home(variable: &str, fallback: &str) -> Option<PathBuf> {
    // The XDG base directory specification: relative paths in these variables are invalid and ignored.
    match std::env::var_os(variable).map(PathBuf::from) {
        Some(path) if path.is_absolute() => Some(path),
        _ => std::env::home_dir().map(|home| home.join(fallback)),
    }
}

/// The configuration file, whether or not it exists; `None` where there is no home.
pub fn config_file() -> Option<PathBuf> {
    home("XDG_CONFIG_HOME", ".config").map(|base| base.join("codeinterp").join("config.toml"))
}

/// Where runs live: `$XDG_STATE_HOME/codeinterp`.
pub fn state_dir() -> PathBuf {
    home("XDG_STATE_HOME", ".local/state").unwrap_or_else(std::env::temp_dir).join("codeinterp")
}

/// Where Python environments, image contexts and downloads live: `$XDG_CACHE_HOME/codeinterp`.
pub fn cache_dir() -> PathBuf {
    home("XDG_CACHE_HOME", ".cache").unwrap_or_else(std::env::temp_dir).join("codeinterp")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::BackendChoice;

    #[test]
    fn later_layers_override_and_keep_their_neighbours() -> Result<(), SettingsError> {
        let mut merged = Map::new();
        layer(&mut merged, &Overrides::from_editor(&json!({"sandbox": {"backend": "docker", "pids": 64}})), "the editor")?;
        let mut command_line = Overrides::default();
        command_line.set("sandbox.backend", "process");
        layer(&mut merged, &command_line, "the command line")?;
        let settings = parse(&merged, "test")?;
        assert_eq!(settings.sandbox.backend, BackendChoice::Process);
        assert_eq!(settings.sandbox.pids, 64);
        Ok(())
    }

    #[test]
    fn editors_may_send_flat_names_and_a_section() {
        let overrides = Overrides::from_editor(&json!({"codeinterp": {"agent.maxSteps": 3, "model": null}}));
        assert_eq!(Value::Object(overrides.0), json!({"agent": {"maxSteps": 3}}));
    }

    #[test]
    fn a_wrong_setting_of_an_editor_is_named_and_the_others_hold() {
        let sent = json!({"model": "any", "agent": {"maxSteps": "x", "confirm": "always"}, "privacy": {"send": "nothing"}});
        let (usable, problems) = Overrides::from_editor(&sent).usable();
        assert_eq!(Value::Object(usable.0), json!({"model": "any", "agent": {"confirm": "always"}, "privacy": {"send": "schema"}}));
        assert!(problems.len() == 2 && problems.iter().any(|problem| problem.starts_with("agent.maxSteps: ")), "{problems:?}");
    }

    #[test]
    fn settings_that_do_not_exist_are_found() {
        let file = Overrides::from_editor(&json!({"privacy": {"sned": "schema"}, "agnt": {"maxSteps": 3}, "sandbox": {"image": "x"}}));
        assert_eq!(file.unknown(), ["privacy.sned", "agnt.maxSteps"]);
    }

    #[test]
    fn a_wrong_value_names_its_layer() {
        let mut wrong = Overrides::default();
        wrong.set("sandbox.backend", "cloud");
        let error = layer(&mut Map::new(), &wrong, "the command line").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("the command line") && text.contains("cloud")));
    }
}
