//! Escaping of control and bidirectional characters in untrusted text.

use std::borrow::Cow;

/// Escapes the control characters of `text`, and those that change the direction of text, as in Rust.
///
/// Paths, actors, labels and messages may contain such characters. Unescaped, they could forge lines of a log.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) { safe.extend(character.escape_default()) } else { safe.push(character) }
    }
    Cow::Owned(safe)
}

fn is_unsafe(character: char) -> bool {
    // Controls; line and paragraph separators; marks, embeddings, overrides and isolates of bidirectional text.
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_terminal_control_characters_are_escaped() {
        for (text, shown) in [
            ("/src/é 🦀.rs", "/src/é 🦀.rs"),
            ("a\nb\r\t\0", r"a\nb\r\t\u{0}"),
            ("\u{1b}[2J\u{9b}1m\u{7f}", r"\u{1b}[2J\u{9b}1m\u{7f}"),
            ("a\u{202e}b\u{2066}c\u{2028}d", r"a\u{202e}b\u{2066}c\u{2028}d"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }
}
