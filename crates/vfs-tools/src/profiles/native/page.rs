//! Pages of a list, which put together are the whole.

use std::borrow::Cow;

use super::MAX_RESULT_BYTES;

/// Lines of a result, within the budget of bytes.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    /// Number of items that are in the page.
    pub(super) items: u64,
}

impl Page {
    /// Appends the lines of an item, and returns whether they fit. The first item is always taken.
    pub(super) fn push(&mut self, lines: &str) -> bool {
        if self.items > 0 && self.text.len() + lines.len() > MAX_RESULT_BYTES {
            return false;
        }
        self.text.push_str(lines);
        self.text.push('\n');
        self.items += 1;
        true
    }

    /// Appends a last line, beyond the budget if need be.
    pub(super) fn push_last(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Returns the text: `header`, the lines, and `footer` if it is not empty.
    pub(super) fn into_text(self, header: &str, footer: &str) -> String {
        let text = format!("{header}\n{}{footer}", self.text);
        text.trim_end_matches('\n').to_owned()
    }
}

/// Returns a path, without characters that would break its line.
pub(super) fn in_one_line(path: &str) -> Cow<'_, str> {
    if path.contains(char::is_control) { Cow::Owned(path.escape_debug().to_string()) } else { Cow::Borrowed(path) }
}

/// Returns a number with its noun, such as `1 file` or `2 files`.
pub(super) fn with_count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {}", plural(noun)) }
}

/// Returns which items of a list a page has, such as `match 3` or `files 3 to 5`; the page follows the first `skip` items and ends with
/// the item `last`.
pub(super) fn numbers(noun: &str, skip: u64, last: u64) -> String {
    match last.saturating_sub(skip) {
        0 => format!("no {noun} after the first {last}"),
        1 => format!("{noun} {last}"),
        _ => format!("{} {} to {last}", plural(noun), skip + 1),
    }
}

fn plural(noun: &str) -> String {
    let ending = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{noun}{ending}")
}
