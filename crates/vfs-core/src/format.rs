//! Numbered output of files for models.

use std::fmt::Write as _;

use crate::requests::{Content, ReadResult, TruncationReason};

/// The text that replaces the content of an empty file.
pub const EMPTY_REMINDER: &str = "System reminder: File exists but has empty contents";

/// The number of characters after which a line is split into chunks.
pub const MAX_LINE_LENGTH: usize = 5_000;

/// The last digit of a number, and the tab after it.
const UNITS: [&str; 10] = ["0\t", "1\t", "2\t", "3\t", "4\t", "5\t", "6\t", "7\t", "8\t", "9\t"];

/// The columns of a line number in the style of `cat -n`, at least.
pub const NUMBER_WIDTH: usize = 6;

/// The labels of consecutive lines: the number, right-aligned, and a tab.
///
/// ```
/// use vfs_core::format::{LineLabels, NUMBER_WIDTH};
///
/// let (mut labels, mut text) = (LineLabels::new(9, NUMBER_WIDTH), String::new());
/// for line in ["x\n", "y\n"] {
///     labels.push_next(&mut text);
///     text.push_str(line);
/// }
/// assert_eq!(text, "     9\tx\n    10\ty\n");
/// ```
#[derive(Debug, Clone)]
pub struct LineLabels {
    next: u64,
    width: usize,
    /// The label of the next line without its last digit and the tab: formatting it for each line would take most of the time.
    tens: String,
}

impl LineLabels {
    /// Creates the labels of the lines from `first`. Numbers have at least `width` columns.
    pub fn new(first: u64, width: usize) -> Self {
        let mut labels = Self { next: first, width, tens: String::new() };
        labels.format_tens();
        labels
    }

    /// Appends the label of the next line to `text`.
    #[inline]
    pub fn push_next(&mut self, text: &mut String) {
        let unit = self.next % 10;
        text.push_str(&self.tens);
        text.push_str(UNITS[unit as usize]);
        self.next = self.next.saturating_add(1);
        if unit == 9 {
            self.format_tens();
        }
    }

    fn format_tens(&mut self) {
        let width = self.width.saturating_sub(1);
        self.tens.clear();
        // Writing to a string cannot fail.
        let _ = match self.next / 10 {
            0 => write!(self.tens, "{:width$}", ""),
            tens => write!(self.tens, "{tens:width$}"),
        };
    }
}

/// Renders a window in the style of `cat -n`.
///
/// # Behaviour
///
/// * Each line has its number, right-aligned to 6 columns, a tab, and its text without line ending. A line over
///   [`MAX_LINE_LENGTH`] characters is split into chunks with the numbers `5`, `5.1`, `5.2`.
/// * A window by bytes has no line numbers, and is returned unchanged.
/// * A file that is empty or only white space becomes [`EMPTY_REMINDER`], and a binary file one line with its type and size. A byte
///   order mark is omitted.
/// * If the window is incomplete, the last line says how to continue.
pub fn numbered(result: &ReadResult) -> String {
    let text = match &result.content {
        Content::Binary { mime_type, .. } => return format!("[binary file: {mime_type}, {} bytes]", result.size),
        Content::Text(text) if result.bytes.start == 0 => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        Content::Text(text) => text,
    };
    if is_whole(result) && text.trim().is_empty() {
        return EMPTY_REMINDER.to_owned();
    }
    let mut shown = if result.start_line == 0 { text.to_owned() } else { number_lines(text, result.start_line) };
    if let Some(note) = continuation(result) {
        if !shown.is_empty() {
            shown.push('\n');
        }
        shown.push_str(&note);
    }
    shown
}

fn is_whole(result: &ReadResult) -> bool {
    result.truncated.is_none()
        && result.next_offset.is_none()
        && result.next_byte.is_none()
        && (result.start_line == 1 || result.bytes.start == 0)
}

fn number_lines(text: &str, start_line: u64) -> String {
    let mut shown = String::with_capacity(text.len() + text.len() / 4);
    let mut labels = LineLabels::new(start_line, NUMBER_WIDTH);
    for (number, line) in (start_line..).zip(text.split_inclusive('\n')) {
        let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        if number > start_line {
            shown.push('\n');
        }
        labels.push_next(&mut shown);
        let (mut chunk, mut rest) = split_chunk(line);
        shown.push_str(chunk);
        for part in 1_u64.. {
            if rest.is_empty() {
                break;
            }
            (chunk, rest) = split_chunk(rest);
            let label = format!("{number}.{part}");
            // Writing to a string cannot fail.
            let _ = write!(shown, "\n{label:>NUMBER_WIDTH$}\t{chunk}");
        }
    }
    shown
}

fn split_chunk(line: &str) -> (&str, &str) {
    if line.len() <= MAX_LINE_LENGTH {
        return (line, "");
    }
    let end = line.char_indices().nth(MAX_LINE_LENGTH).map_or(line.len(), |(at, _)| at);
    line.split_at(end)
}

fn continuation(result: &ReadResult) -> Option<String> {
    let reason = result.truncated?;
    let mut note = String::from("[truncated");
    match (reason, result.next_offset, result.next_byte) {
        (TruncationReason::LongLine, next_offset, Some(byte)) => {
            // Writing to a string cannot fail.
            let _ = write!(note, ": line {} goes on; continue with bytes from {byte}", result.end_line);
            if let Some(offset) = next_offset {
                let _ = write!(note, ", or with offset {offset} after this line");
            }
        }
        (_, Some(offset), _) => {
            let _ = write!(note, ": continue with offset {offset}");
        }
        (_, None, Some(byte)) => {
            let _ = write!(note, ": continue with bytes from {byte}");
        }
        (_, None, None) => {}
    }
    note.push(']');
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::VfsPath;
    use crate::requests::ReadRequest;
    use crate::window::read_bytes;

    fn show(content: &[u8], set: impl FnOnce(ReadRequest) -> ReadRequest) -> String {
        let request = set(ReadRequest::new(VfsPath::parse("/f").expect("valid")));
        numbered(&read_bytes(&content.to_vec().into(), &request, "v".into()).expect("reads"))
    }

    #[test]
    fn lines_are_numbered_as_cat_does() {
        for (content, expected) in [
            (&b"a\nb\n"[..], "     1\ta\n     2\tb"),
            (b"a\r\nb", "     1\ta\n     2\tb"),
            (b"a\r", "     1\ta\r"),
            (b"\n\nx\n", "     1\t\n     2\t\n     3\tx"),
            (b"\xEF\xBB\xBFa", "     1\ta"),
            (b"\xFF\xFEa\0\n\0", "     1\ta"),
            (b"", EMPTY_REMINDER),
            (b" \n\t\r\n", EMPTY_REMINDER),
            (b"\xEF\xBB\xBF", EMPTY_REMINDER),
            (b"\x89PNG\r\n\x1a\n", "[binary file: image/png, 8 bytes]"),
        ] {
            assert_eq!(show(content, |request| request), expected, "{content:?}");
        }
    }

    #[test]
    fn labels_are_numbers_in_columns() {
        for first in [0, 1, 7, 95, 99_995, 999_995, 9_999_999_995] {
            for width in [0, 1, 2, NUMBER_WIDTH, 20] {
                let (mut labels, mut text) = (LineLabels::new(first, width), String::new());
                (0..20).for_each(|_| labels.push_next(&mut text));
                let expected: String = (first..first + 20).map(|number| format!("{number:width$}\t")).collect();
                assert_eq!(text, expected);
            }
        }
    }

    #[test]
    fn long_lines_come_in_chunks() {
        let content = format!("x\n{}{}\n", "é".repeat(5_000), "b".repeat(5_001));
        let expected = format!("     1\tx\n     2\t{}\n   2.1\t{}\n   2.2\tb", "é".repeat(5_000), "b".repeat(5_000));
        assert_eq!(show(content.as_bytes(), |request| request), expected);
        assert_eq!(show("a".repeat(5_000).as_bytes(), |request| request), format!("     1\t{}", "a".repeat(5_000)));
    }

    #[test]
    fn a_truncated_window_says_how_to_continue() {
        let content = b" \n \nccc\nddd\n";
        for (request, expected) in [
            (
                ReadRequest::new(VfsPath::root()).lines(0, 2),
                "     1\t \n     2\t \n[truncated: continue with offset 2]",
            ),
            (ReadRequest::new(VfsPath::root()).lines(2, 5), "     3\tccc\n     4\tddd"),
            (ReadRequest::new(VfsPath::root()).lines(1, 0), "[truncated: continue with offset 1]"),
            (
                ReadRequest::new(VfsPath::root()).offset(2).max_bytes(2),
                "     3\tcc\n[truncated: line 3 goes on; continue with bytes from 6, or with offset 3 after this line]",
            ),
            (ReadRequest::new(VfsPath::root()).bytes(4, Some(6)), "cc"),
            (
                ReadRequest::new(VfsPath::root()).bytes(4, None).max_bytes(1),
                "c\n[truncated: continue with bytes from 5]",
            ),
        ] {
            assert_eq!(show(content, |_| request.clone()), expected, "{request:?}");
        }
    }
}
