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

/// Appends lines with their numbers, as many as fit into `max` bytes of `out`, and returns how many there are. The first is always taken,
/// and cut if it is too long. The line endings of the file are in the header.
pub(super) fn push_numbered(out: &mut String, first: u64, text: &str, max: usize) -> u64 {
    let (mut count, mut labels) = (0, LineLabels::new(first, 0));
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
        out.push_str(if shown.len() < line.len() { " [line cut]\n" } else { "\n" });
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_as_long_as_they_fit() {
        for (text, max, expected, count) in
            [("a\r\nb\n", 100, "7\ta\n8\tb\n", 2), ("a\nb", 16, "7\ta\n", 1), ("\n\n", 100, "7\t\n8\t\n", 2)]
        {
            let mut out = String::new();
            assert_eq!((push_numbered(&mut out, 7, text, max), out.as_str()), (count, expected), "{text:?}");
        }
        let mut out = String::new();
        assert_eq!(push_numbered(&mut out, 1, &"é".repeat(1_000), 0), 1);
        assert_eq!(out, format!("1\t{} [line cut]\n", "é".repeat(MIN_LINE_ROOM / 2)));
    }
}
