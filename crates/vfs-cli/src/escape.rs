//! Text of other people, made safe to print: no character of it ends a line or steers a terminal.

use std::borrow::Cow;

/// `text` with its control characters, and those that change the direction of text, escaped as in Rust.
///
/// Paths, actors, labels and messages may hold such characters. Printed as they are, they could forge lines of a log.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
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
    fn nothing_is_left_that_ends_a_line_or_steers_a_terminal() {
        for (text, shown) in [
            ("/src/é 🦀.rs", "/src/é 🦀.rs"),
            ("a\nb\r\t\0", r"a\nb\r\t\u{0}"),
            ("\u{1b}[2J\u{9b}1m\u{7f}", r"\u{1b}[2J\u{9b}1m\u{7f}"),
            ("a\u{202e}b\u{2066}c\u{2028}d", r"a\u{202e}b\u{2066}c\u{2028}d"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }
}
