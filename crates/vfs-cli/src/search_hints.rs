//! Hints for searches without a match.

use vfs_core::Pattern;
use vfs_core::search::Skipped;

/// Maximum number of bytes of a pattern that a hint repeats.
const MAX_PATTERN_BYTES: usize = 200;

/// Returns a hint if the literal text `pattern` looks like a regular expression; `instead` says how to search for one.
pub(crate) fn literal_pattern_hint(pattern: &Pattern, instead: &str) -> Option<String> {
    match pattern {
        Pattern::Literal(text) if looks_like_regex(text) => {
            let shown = &text[..text.floor_char_boundary(MAX_PATTERN_BYTES)];
            Some(format!("no match for the literal text '{shown}'; for a regular expression {instead}"))
        }
        _ => None,
    }
}

/// Returns how many entries a search has skipped, each with the option that includes them: `hidden`, `no_ignore` or `text`.
pub(crate) fn count_skipped(skipped: &Skipped, hidden: &str, no_ignore: &str, text: &str) -> Option<String> {
    let counts = [
        (skipped.hidden, format!("hidden ({hidden})")),
        (skipped.ignored, format!("ignored ({no_ignore})")),
        (skipped.binary, format!("binary ({text})")),
        (skipped.too_large, "too large".to_owned()),
        (skipped.links, "links".to_owned()),
    ];
    let parts: Vec<_> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns whether a text has character sequences that are common in regular expressions and rare in other texts.
///
/// Single brackets, parentheses, dots and operators do not count, because they are common in source code.
fn looks_like_regex(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b')' | b'(' | b'\\');
    let pair = |pair: &[u8]| match pair {
        [b'.', b'*' | b'+'] | [b')' | b']', b'*' | b'+'] | [b'[', b'^'] => true,
        [b'\\', escaped] => b"bBdDwWsS.()[]{}|*+?^$".contains(escaped),
        _ => false,
    };
    let triple = |triple: &[u8]| match triple {
        [before, b'|', after] => is_word(*before) && is_word(*after),
        [from, b'-', to] => text.contains('[') && text.contains(']') && from.is_ascii_alphanumeric() && from < to,
        _ => false,
    };
    let is_anchored = match bytes {
        [b'^', next, ..] if is_word(*next) => true,
        [.., last, b'$'] => is_word(*last),
        _ => false,
    };
    is_anchored || bytes.windows(2).any(pair) || bytes.windows(3).any(triple)
}
