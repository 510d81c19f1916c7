//! The languages of descriptions and notes.

/// The language of descriptions and notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    /// Returns the text in this language.
    pub(super) const fn choose(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

/// A language as a type, for definitions that both languages share.
pub(super) trait LanguageMarker {
    const LANGUAGE: Language;
}

pub(super) struct English;

impl LanguageMarker for English {
    const LANGUAGE: Language = Language::English;
}

pub(super) struct Chinese;

impl LanguageMarker for Chinese {
    const LANGUAGE: Language = Language::Chinese;
}
