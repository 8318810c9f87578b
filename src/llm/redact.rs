//! Keeps keys out of every text that leaves this folder: errors, notices, and what a provider echoes.

use std::sync::LazyLock;

use regex::Regex;

/// What stands in a key's place.
const MARK: &str = "[key removed]";

/// Removes one known key and everything that looks like one.
#[derive(Clone, Default)]
pub struct Redactor {
    key: Option<String>,
}

// A derived one would print the key.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor")
    }
}

impl Redactor {
    /// A redactor that knows this key.
    pub fn new(key: Option<&str>) -> Self {
        // A very short key would mutilate ordinary words.
        Self { key: key.map(str::trim).filter(|key| key.len() >= 6).map(str::to_owned) }
    }

    /// `text` without keys, of bounded length: for messages to people.
    pub fn message(&self, text: &str) -> String {
        const LONGEST: usize = 600;
        #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
        static KEYS: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(
                r#"(?x) \b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|github_pat|key)[-_][A-Za-z0-9_\-]{12,} | \bAIza[A-Za-z0-9_\-]{20,}
                 | (?i:\bbearer\s+)[^\s"',;}]{6,} | (?i:\b(?:api[-_]?key|x-api-key|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+)?)[^\s"',;}]{6,}"#,
            )
            .unwrap()
        });
        let known = self.text(text);
        let clean = crate::report::escape::plain(&KEYS.replace_all(&known, MARK));
        let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > LONGEST { format!("{}…", line.chars().take(LONGEST).collect::<String>()) } else { line }
    }

    /// A JSON value without the known key in any of its texts: for the arguments of calls.
    pub fn value(&self, value: serde_json::Value) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(entries) => Value::Object(entries.into_iter().map(|(name, value)| (name, self.value(value))).collect()),
            other => other,
        }
    }

    /// `text` without the known key, else as it is: for what a model said.
    pub fn text(&self, text: &str) -> String {
        match &self.key {
            Some(key) if text.contains(key.as_str()) => text.replace(key.as_str(), MARK),
            _ => text.to_owned(),
        }
    }
}

/// A streamed text without keys: one that comes in two pieces is removed as well. What may be the beginning of the key
/// is held back until the next piece tells.
#[derive(Debug, Default)]
pub struct Streamed {
    held: String,
}

impl Streamed {
    /// Takes a piece in; gives what can be told now.
    pub fn push(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.held.push_str(piece);
        let text = redactor.text(&std::mem::take(&mut self.held));
        let Some(key) = &redactor.key else { return text };
        let begins = |at: &usize| text.is_char_boundary(*at) && key.starts_with(&text[*at..]);
        let from = text.len().saturating_sub(key.len().saturating_sub(1));
        let held = (from..text.len()).find(begins).unwrap_or(text.len());
        text[held..].clone_into(&mut self.held);
        text[..held].to_owned()
    }

    /// What was held back, at the end of the stream.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_several_pieces_is_removed() {
        let redactor = Redactor::new(Some("my-very-own-secret"));
        for size in 1..20 {
            let text: Vec<char> = "It is my-very-own-secret, my-very friend: 我的 my".chars().collect();
            let mut streamed = Streamed::default();
            let pieces = text.chunks(size).map(|piece| streamed.push(&redactor, &piece.iter().collect::<String>()));
            let mut told: String = pieces.collect();
            told.push_str(&streamed.finish());
            assert_eq!(told, "It is [key removed], my-very friend: 我的 my", "pieces of {size}");
        }
    }

    #[test]
    fn known_keys_and_what_looks_like_one_are_removed() {
        let redactor = Redactor::new(Some("my-very-own-secret"));
        for text in [
            "Incorrect API key provided: my-very-own-secret.",
            "Incorrect API key provided: sk-proj-abcdefghijklmnop1234.",
            "header Authorization: Bearer abcdef123456",
            "{\"api_key\": \"abcdefg12345\"}",
            "AIzaSyA1234567890abcdefghijkl",
        ] {
            let clean = redactor.message(text);
            assert!(clean.contains(MARK), "{clean}");
            for secret in ["my-very-own", "abcdefghijklmnop1234", "abcdef123456", "abcdefg12345", "AIzaSy"] {
                assert!(!clean.contains(secret), "{clean}");
            }
        }
        assert_eq!(format!("{redactor:?}"), "Redactor");
    }

    #[test]
    fn other_words_stay() {
        assert_eq!(Redactor::new(None).message("model gpt-5 not found,\n try again"), "model gpt-5 not found, try again");
    }
}
