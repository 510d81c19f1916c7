//! Numbers with their nouns.

/// Returns a number with its noun, such as `1 file` or `2 files`.
pub(crate) fn with_count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {}", plural(noun)) }
}

/// Returns the plural of `noun`.
pub(crate) fn plural(noun: &str) -> String {
    let ending = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{noun}{ending}")
}
