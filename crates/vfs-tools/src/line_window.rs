//! Windows of numbered lines; a line break at the end of a file begins an empty last line.

use vfs_core::error::ErrorDetail;
use vfs_core::format::{LineLabels, NUMBER_WIDTH};
use vfs_core::operation::UnaryRequest as _;
use vfs_core::{Content, Error, ErrorKind, ReadRequest, VfsPath};

use crate::action::CallScope;

/// Maximum number of characters of the lines, which leaves room for a header with a long path and for notes.
const MAX_CHARACTERS: usize = 70_000;

/// Room in characters for what is around the lines, without the path.
const ROOM_AROUND: usize = 1_000;

/// Number of characters of the lines that a long path leaves at least.
const MIN_CHARACTERS: usize = 200;

/// Lines of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineWindow {
    /// The lines without `\n`. A `\r` before it is a part of the line.
    pub(crate) lines: Vec<String>,
    /// The number of the first line, from 1.
    pub(crate) first: u64,
    /// The number of lines of the file, if the window reaches its end.
    pub(crate) total: Option<u64>,
    /// The number of the last line that was requested; `None` for the end of the file.
    last: Option<u64>,
    /// The number of the first line that was requested and is left out.
    next: Option<u64>,
    /// Whether the rest of the only line is left out.
    is_line_cut: bool,
    /// Maximum number of characters of the lines with their numbers.
    max_characters: usize,
}

/// Why there is no window.
#[derive(Debug)]
pub(crate) enum LineWindowError {
    /// The read failed.
    Backend(Error),
    /// The file has `total` lines, and the window starts after them.
    PastEnd { total: u64 },
}

/// Numbered lines, and a note if some are left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NumberedLines {
    pub(crate) text: String,
    pub(crate) note: Option<String>,
}

/// Returns the maximum number of characters of lines in a result that names `path`. Lines beyond it are left out before the result is
/// laid out, as its note says at which line to go on.
fn max_characters(scope: &CallScope<'_>, path: &VfsPath) -> usize {
    let around = ROOM_AROUND + path.as_str().chars().count();
    scope.max_characters.saturating_sub(around).clamp(MIN_CHARACTERS, MAX_CHARACTERS)
}

/// Reads the lines `first` to `last` of a file, counted from 1, at a cost proportional to the window.
pub(crate) async fn read_lines(
    scope: &CallScope<'_>,
    path: &VfsPath,
    first: u64,
    last: Option<u64>,
) -> Result<LineWindow, LineWindowError> {
    let max_characters = max_characters(scope, path);
    let request = ReadRequest::new(path.clone()).offset(first - 1).max_bytes(max_characters as u64);
    let request = match last {
        Some(last) => request.limit((last + 1).saturating_sub(first)),
        None => request,
    };
    let result = match request.send(scope.backend, scope.cx).await {
        Ok(result) => result,
        Err(error) => match error.detail() {
            Some(ErrorDetail::OffsetOutOfRange { total_lines }) => {
                return empty_last_line(scope, path, first, last, *total_lines).await;
            }
            _ => return Err(LineWindowError::Backend(error)),
        },
    };
    let text = match &result.content {
        Content::Text(text) if result.bytes.start == 0 => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        Content::Text(text) => text,
        Content::Binary { mime_type, .. } => {
            let message = format!("the file is not text, but {mime_type} of {} bytes", result.size);
            return Err(LineWindowError::Backend(Error::new(ErrorKind::NotText, message)));
        }
    };
    scope.session.show(path, &result.version, None);
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let mut window =
        LineWindow { lines: Vec::new(), first, total: None, last, next: None, is_line_cut: false, max_characters };
    if result.next_byte.is_some() {
        let after = result.next_offset.map(|offset| offset + 1);
        (window.is_line_cut, window.next) = (lines.len() == 1, after);
        if lines.len() > 1 {
            lines.pop();
            window.next = Some(first + lines.len() as u64);
        }
    } else if let Some(offset) = result.next_offset {
        // The text ends with the break of its last line.
        lines.pop();
        window.next = Some(offset + 1);
    } else {
        let total = first - 1 + lines.len() as u64;
        if text.ends_with('\n') && last.is_some_and(|last| last < total) {
            lines.pop();
        }
        window.total = Some(total);
    }
    window.next = window.next.filter(|next| last.is_none_or(|last| *next <= last));
    window.lines = lines;
    Ok(window)
}

/// Returns the window from `first`, which is after the `total` lines that reads count: the empty last line, or none.
async fn empty_last_line(
    scope: &CallScope<'_>,
    path: &VfsPath,
    first: u64,
    last: Option<u64>,
    total: u64,
) -> Result<LineWindow, LineWindowError> {
    if total == 0 {
        return Err(LineWindowError::PastEnd { total: 1 });
    }
    let request = ReadRequest::new(path.clone()).lines(total - 1, 1).raw();
    let result = request.send(scope.backend, scope.cx).await.map_err(LineWindowError::Backend)?;
    // In UTF-16, a zero may follow the line break.
    let is_ended = result.content.as_bytes().ends_with(b"\n") || result.content.as_bytes().ends_with(b"\n\0");
    let total = total + u64::from(is_ended);
    if first > total {
        return Err(LineWindowError::PastEnd { total });
    }
    let lines = vec![String::new()];
    let max_characters = max_characters(scope, path);
    Ok(LineWindow { lines, first, total: Some(total), last, next: None, is_line_cut: false, max_characters })
}

impl LineWindow {
    /// Returns the lines as `show` shows them, with their numbers.
    pub(crate) fn numbered(&self, show: fn(&str) -> &str) -> NumberedLines {
        let lines = self.lines.iter().map(|line| show(line));
        let Numbered { text, next, is_line_cut } = number(lines, self.first, self.max_characters);
        let range = next.or(self.next).map(|next| match self.last {
            Some(last) => format!("view_range [{next}, {last}]"),
            None => format!("view_range [{next}, -1]"),
        });
        let first = self.first;
        let note = match (is_line_cut || self.is_line_cut, range) {
            (false, None) => None,
            (false, Some(range)) => Some(format!("truncated: continue with {range}")),
            (true, None) => Some(format!("truncated: line {first} is too long to be shown as a whole")),
            (true, Some(range)) => {
                Some(format!("truncated: line {first} is too long to be shown as a whole; continue with {range}"))
            }
        };
        NumberedLines { text, note }
    }
}

/// Returns the lines `first` to `last` of `text`, the content of `path`, as `show` shows them, with their numbers. Lines count from 1.
pub(crate) fn numbered_snippet(
    scope: &CallScope<'_>,
    path: &VfsPath,
    text: &str,
    (first, last): (u64, u64),
    show: fn(&str) -> &str,
) -> NumberedLines {
    let lines = text.strip_prefix('\u{FEFF}').unwrap_or(text).split('\n');
    let index = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    let lines = lines.take(index(last)).skip(index(first.saturating_sub(1))).map(show);
    let Numbered { text, next, is_line_cut } = number(lines, first, max_characters(scope, path));
    let is_whole = next.is_none() && !is_line_cut;
    let note = "truncated: the change is too long to be shown as a whole; view the file with view_range";
    NumberedLines { text, note: (!is_whole).then(|| note.to_owned()) }
}

struct Numbered {
    text: String,
    next: Option<u64>,
    is_line_cut: bool,
}

/// Numbers lines in the style of `cat -n`, until the maximum number of characters.
fn number<'a>(lines: impl Iterator<Item = &'a str>, first: u64, max_characters: usize) -> Numbered {
    let mut numbered = Numbered { text: String::new(), next: None, is_line_cut: false };
    let mut room = max_characters;
    let mut labels = LineLabels::new(first, NUMBER_WIDTH);
    for (number, line) in (first..).zip(lines) {
        let end = numbered.text.len();
        if number > first {
            numbered.text.push('\n');
        }
        let start = numbered.text.len();
        labels.push_next(&mut numbered.text);
        let label = numbered.text.len() - start;
        let length = label + line.chars().count() + 1;
        if numbered.is_line_cut || (length > room && number > first) {
            numbered.text.truncate(end);
            numbered.next = Some(number);
            break;
        }
        if length > room {
            numbered.text.extend(line.chars().take(room - label - 1));
            numbered.is_line_cut = true;
        } else {
            numbered.text.push_str(line);
            room -= length;
        }
    }
    numbered
}
