//! A profile as text, for the model and for people: the same words in the prompt, the report and the terminal.

use super::ProfileOutcome;

/// The language that a question is asked and answered in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English, and every language that has no texts of its own here.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// Chinese where the question holds Chinese characters and no kana (which would make it Japanese), else English.
    pub fn of(question: &str) -> Self {
        let han = question.chars().any(|c| matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}'));
        let kana = question.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
        if han && !kana { Self::Chinese } else { Self::English }
    }
}

/// The profile as markdown: `**name** (N rows × M columns)`, then a line for each column.
pub fn render(outcome: &ProfileOutcome, language: Language) -> String {
    let _ = language;
    format!("**{}**", outcome.file())
}
