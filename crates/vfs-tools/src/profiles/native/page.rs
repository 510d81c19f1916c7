//! Pages of a list, which put together are the whole.

use std::borrow::Cow;

use crate::with_count::plural;

/// Lines of a result, within a number of bytes.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    max_bytes: usize,
    /// Number of items that are in the page.
    pub(super) items: u64,
}

impl Page {
    /// Creates a page without lines.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { text: String::new(), max_bytes, items: 0 }
    }

    /// Appends the lines of an item, and returns whether they fit. The first item is always taken.
    pub(super) fn push(&mut self, lines: &str) -> bool {
        if self.items > 0 && self.text.len() + lines.len() > self.max_bytes {
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

/// Returns which items of a list a page has, such as `match 3` or `files 3 to 5`; the page follows the first `skip` items and ends with
/// the item `last`.
pub(super) fn numbers(noun: &str, skip: u64, last: u64) -> String {
    match last.saturating_sub(skip) {
        0 => format!("no {noun} after the first {last}"),
        1 => format!("{noun} {last}"),
        _ => format!("{} {} to {last}", plural(noun), skip + 1),
    }
}
