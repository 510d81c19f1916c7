//! Numbered lines of a file, and the header above them.

use vfs_core::ReadResult;
use vfs_core::format::LineLabels;

use crate::session::{Session, short_version};

/// Room in bytes of the first line, at least.
const MIN_LINE_ROOM: usize = 200;

/// Room in bytes for the number of a line.
const NUMBER_ROOM: usize = 12;

/// Returns the path and the version, and a note if it differs from the version that the model has seen last.
pub(super) fn header_of_version(session: &Session, result: &ReadResult) -> String {
    format!("{} {}{}", result.path, short_version(&result.version), change_note(session, result))
}

/// Returns a note if the file has changed since the model has seen it, such as between two pages.
pub(super) fn change_note(session: &Session, result: &ReadResult) -> &'static str {
    match session.version(&result.path) {
        Some(shown) if shown != result.version => " changed since you saw it",
        _ => "",
    }
}

/// Lines that were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AppendedLines {
    pub(super) count: u64,
    /// Whether the rest of the first is left out.
    pub(super) is_cut: bool,
}

/// Appends lines with their numbers, as many as fit into `max` bytes. The first is always taken, and cut if it is too long. The line
/// endings of the file are in the header.
pub(super) fn push_numbered(out: &mut String, first: u64, text: &str, max: usize) -> AppendedLines {
    let (mut count, mut is_cut, mut labels) = (0, false, LineLabels::new(first, 0));
    let max = out.len() + max;
    for line in text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if count > 0 && out.len() + line.len() + NUMBER_ROOM > max {
            break;
        }
        let room = max.saturating_sub(out.len() + NUMBER_ROOM);
        let shown = &line[..line.floor_char_boundary(room.max(MIN_LINE_ROOM))];
        labels.push_next(out);
        out.push_str(shown);
        if shown.len() < line.len() {
            out.push_str(" [line cut]");
            is_cut = true;
        }
        out.push('\n');
        count += 1;
    }
    AppendedLines { count, is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_as_long_as_they_fit() {
        for (text, max, expected, count) in
            [("a\r\nb\n", 100, "7\ta\n8\tb\n", 2), ("a\nb", 16, "7\ta\n", 1), ("\n\n", 100, "7\t\n8\t\n", 2)]
        {
            // What is there already takes no room.
            let header = "header\n".repeat(100);
            let mut out = header.clone();
            let appended = push_numbered(&mut out, 7, text, max);
            assert_eq!(appended, AppendedLines { count, is_cut: false }, "{text:?}");
            assert_eq!(out.strip_prefix(&header), Some(expected), "{text:?}");
        }
        let mut out = String::new();
        assert_eq!(push_numbered(&mut out, 1, &"é".repeat(1_000), 0), AppendedLines { count: 1, is_cut: true });
        assert_eq!(out, format!("1\t{} [line cut]\n", "é".repeat(MIN_LINE_ROOM / 2)));
    }
}
