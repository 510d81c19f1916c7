//! Signs of regular expressions in a pattern that is taken literally.

/// Returns whether `pattern` has what is rare in literal text: `.*`, `.+`, or a `\` before a letter or sign of expressions.
pub(crate) fn has_regex_signs(pattern: &str) -> bool {
    let is_escape = |pair: &[u8]| pair[0] == b'\\' && b".wWdDsSbB(){}[]|+*?^$".contains(&pair[1]);
    pattern.contains(".*") || pattern.contains(".+") || pattern.as_bytes().windows(2).any(is_escape)
}
