//! Lists of texts as Python's `str` shows them.

use std::fmt::Write as _;

/// Returns `texts` as Python shows a list of strings, such as `['/a', '/b']`.
pub(crate) fn python_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<_> = texts.into_iter().map(python_string).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns `text` as Python's `repr` shows it.
fn python_string(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push(quote);
    for letter in text.chars() {
        match letter {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if letter == quote => shown.extend(['\\', letter]),
            _ if is_printable(letter) => shown.push(letter),
            // Writing to a string cannot fail.
            _ => drop(match u32::from(letter) {
                code @ ..=0xFF => write!(shown, "\\x{code:02x}"),
                code @ ..=0xFFFF => write!(shown, "\\u{code:04x}"),
                code => write!(shown, "\\U{code:08x}"),
            }),
        }
    }
    shown.push(quote);
    shown
}

/// Returns whether Python counts `letter` as printable. Rust's table is made from the same Unicode categories; the letter before it
/// keeps a combining mark from being escaped.
fn is_printable(letter: char) -> bool {
    matches!(letter, '\'' | '"') || !String::from_iter(['a', letter]).escape_debug().any(|shown| shown == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_escaped_as_in_python() {
        for (texts, expected) in [
            (&[][..], "[]"),
            (&["/a", "/b c"], "['/a', '/b c']"),
            (&["it's"], r#"["it's"]"#),
            (&["it's \"so\""], r#"['it\'s "so"']"#),
            (&["a\\b\n\t\r"], r"['a\\b\n\t\r']"),
            (&["\u{7f}\u{a0}\u{2028}\u{e0001}"], r"['\x7f\xa0\u2028\U000e0001']"),
            (&["é ü 漢 e\u{301} 😀"], "['é ü 漢 e\u{301} 😀']"),
        ] {
            assert_eq!(python_list(texts.iter().copied()), expected);
        }
    }
}
