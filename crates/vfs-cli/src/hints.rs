//! Advice for a search that found nothing.

use vfs_core::{Pattern, Skipped};

/// Upper bound on the bytes of a pattern that are repeated.
const MAX_SHOWN: usize = 200;

/// Returns that `pattern` was searched for literally though it looks like a regular expression, which `instead` says how to search
/// for; `None` if it does not look like one.
pub(crate) fn literal(pattern: &Pattern, instead: &str) -> Option<String> {
    match pattern {
        Pattern::Literal(text) if looks_like_regex(text) => {
            let shown = &text[..text.floor_char_boundary(MAX_SHOWN)];
            Some(format!("no match for the literal text '{shown}'; for a regular expression {instead}"))
        }
        _ => None,
    }
}

/// Returns how many entries a search left out, and what includes those that can be: `hidden`, `no_ignore` and `text` name the
/// options.
pub(crate) fn left_out(skipped: &Skipped, hidden: &str, no_ignore: &str, text: &str) -> Option<String> {
    let counts = [
        (skipped.hidden, format!("hidden ({hidden})")),
        (skipped.ignored, format!("ignored ({no_ignore})")),
        (skipped.binary, format!("binary ({text})")),
        (skipped.too_large, "too large".to_owned()),
        (skipped.links, "links".to_owned()),
    ];
    let named: Vec<_> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Whether a text has what is common in regular expressions and rare in other texts.
///
/// Single brackets, parentheses, dots and operators are common in source code, and no sign of a regular expression.
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
