//! Tool `read`: numbered lines of a file.

use async_trait::async_trait;
use vfs_core::error::ErrorDetail;
use vfs_core::operation::OperationClass;
use vfs_core::text::{Encoding, LineEnding};
use vfs_core::{Content, Error, ErrorKind, ReadRequest, ReadResult, VfsPath};

use super::numbered::{change_note, push_numbered};
use super::{errors, max_content_bytes, outline};
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::ResultText;
use crate::session::short_version;
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Number of lines of a file that is read without a range.
const DEFAULT_LINES: u64 = 250;

const NUMBER: ParameterKind = ParameterKind::Integer { min: i64::MIN, max: i64::MAX };

pub(super) const READ: ToolDefinition = ToolDefinition {
    name: "read",
    parameters: &[
        Parameter::required("path", ParameterKind::Path, "The file.").aliases(&["file_path", "file"]),
        Parameter::optional(
            "lines",
            ParameterKind::Range,
            "Such as '20-60', '20-' or '-40' for the last 40. Default: all, or the outline of over 250 lines.",
        )
        .aliases(&["range", "view_range", "line_range"]),
        Parameter::optional("symbol", ParameterKind::Text, "Name of a function, type or section, to see all of it.")
            .aliases(&["definition"]),
        Parameter::optional("outline", ParameterKind::Boolean, "Only where its functions, types or sections are."),
        Parameter::optional(
            "bytes",
            ParameterKind::Range,
            "Such as '16000-31999', for a part of a very long line, without line numbers.",
        ),
        Parameter::hidden("start_line", NUMBER).aliases(&["offset", "start", "from_line", "line_start"]),
        Parameter::hidden("end_line", NUMBER).aliases(&["end", "to_line", "line_end"]),
        Parameter::hidden("limit", NUMBER).aliases(&["line_count", "num_lines"]),
    ],
    annotations: Annotations::read_only("Read a file"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |offered| {
        let edit = if offered.changes { " An edit is refused if the file has changed since." } else { "" };
        format!(
            "Shows the lines of a text file, each after its number and a tab. Read several files by calls in parallel.{edit}"
        )
    },
    action: |arguments| {
        let path = arguments.required_path("path")?;
        let lines = given_range(arguments, "lines")?.or_else(|| range_of_other_tools(arguments));
        let part = match (given_range(arguments, "bytes")?, arguments.text("symbol").filter(|name| !name.is_empty())) {
            (Some(range), _) => ReadPart::Bytes(range),
            (None, Some(name)) => ReadPart::Symbol(name.to_owned()),
            (None, None) if arguments.boolean("outline") == Some(true) => ReadPart::Outline,
            (None, None) => ReadPart::Lines(lines),
        };
        Ok(Box::new(ReadAction { path, part }))
    },
};

struct ReadAction {
    path: VfsPath,
    part: ReadPart,
}

enum ReadPart {
    /// A range of lines, or what fits of the file.
    Lines(Option<RangeArgument>),
    Bytes(RangeArgument),
    Symbol(String),
    Outline,
}

/// A range as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeArgument {
    /// `20-60` or `20-`, both ends included.
    Between(u64, Option<u64>),
    /// `-40`.
    Last(u64),
}

impl RangeArgument {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_matches(['[', ']']);
        let number = |text: &str| text.trim().parse::<u64>().ok();
        if let Some(last) = text.strip_prefix('-') {
            return number(last).filter(|last| *last > 0).map(Self::Last);
        }
        let Some((start, end)) = text.split_once(['-', ':', ',']) else {
            return number(text).map(|line| Self::Between(line, Some(line)));
        };
        let start = number(start)?;
        match end.trim() {
            // Some models write -1 for the end of the file.
            "" | "-1" | "$" => Some(Self::Between(start, None)),
            end => number(end).filter(|end| *end >= start).map(|end| Self::Between(start, Some(end))),
        }
    }
}

fn given_range(arguments: &Arguments, name: &str) -> Result<Option<RangeArgument>, ArgumentError> {
    match arguments.text(name).filter(|text| !text.trim().is_empty()) {
        None => Ok(None),
        Some(text) => match RangeArgument::parse(text) {
            Some(range) => Ok(Some(range)),
            None => Err(ArgumentError::refused(name, "a range such as '20-60', '20-' or '-40'", &text.into())),
        },
    }
}

/// Returns the range in the parameters that other tools have for it. Lines count from 1; 0 and less leaves a parameter out. An end before
/// the start shows the line of the start.
fn range_of_other_tools(arguments: &Arguments) -> Option<RangeArgument> {
    let [start, end, limit] =
        ["start_line", "end_line", "limit"].map(|name| arguments.count(name).filter(|count| *count > 0));
    let first = start.unwrap_or(1);
    let end = end.or_else(|| limit.map(|limit| first.saturating_add(limit - 1)));
    match (start, end) {
        (None, None) => None,
        (_, end) => Some(RangeArgument::Between(first, end.map(|end| end.max(first)))),
    }
}

#[async_trait]
impl Action for ReadAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Read, vec![self.path.clone()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let read = match &self.part {
            ReadPart::Lines(range) => self.lines(scope, *range).await,
            ReadPart::Bytes(range) => self.bytes(scope, *range).await,
            ReadPart::Symbol(name) => outline::symbol(scope, &self.path, name).await,
            ReadPart::Outline => match outline::outline(scope, &self.path).await {
                Ok(None) => self.lines(scope, None).await,
                Ok(Some(outline)) => Ok(outline),
                Err(error) => Err(error),
            },
        };
        match read {
            Ok(ResultText { text, is_truncated }) => ToolOutcome { is_truncated, ..ToolOutcome::text(text) },
            Err(error) => errors::failure_outcome(scope, &self.path, error).await,
        }
    }
}

impl ReadAction {
    async fn lines(&self, scope: &CallScope<'_>, range: Option<RangeArgument>) -> Result<ResultText, Error> {
        let max_bytes = max_content_bytes(scope);
        let request = ReadRequest::new(self.path.clone()).max_bytes(max_bytes as u64);
        let request = match range {
            None => request.limit(DEFAULT_LINES),
            Some(RangeArgument::Between(start, end)) => {
                let offset = start.saturating_sub(1);
                let request = request.offset(offset);
                end.map_or(request.clone(), |end| request.limit(end.max(1) - offset))
            }
            Some(RangeArgument::Last(count)) => request.offset(self.total_lines(scope).await?.saturating_sub(count)),
        };
        let result = scope.backend.read(scope.cx, request).await?;
        let Content::Text(text) = &result.content else {
            scope.session.show(&self.path, &result.version, None);
            return Ok(ResultText::whole(binary(&result)));
        };
        // A long file is easier to find one's way in by its outline, if it has one.
        if range.is_none()
            && result.next_offset.is_some()
            && let Ok(Some(outline)) = outline::outline(scope, &self.path).await
        {
            return Ok(outline);
        }
        let start = result.start_line;
        let text = if result.bytes.start == 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        let note = change_note(scope.session, &result);
        if text.is_empty() {
            let header = header(&result, result.end_line) + note;
            scope.session.show(
                &self.path,
                &result.version,
                result.total_lines.filter(|total| *total == 0).map(|_| String::new()),
            );
            return Ok(ResultText::whole(format!("{header} is empty")));
        }
        let mut lines = String::new();
        let shown = push_numbered(&mut lines, start, text, max_bytes + max_bytes / 4);
        let next_line = start + shown.count;
        let header = header(&result, next_line - 1) + note;
        if scope.session.show_lines(&self.path, &result.version, start..=next_line - 1) {
            return Ok(ResultText::whole(format!(
                "{header} is unchanged since you read it; repeat the call to see it"
            )));
        }
        let continuation = continuation(&result, next_line, shown.is_cut);
        let is_whole = start == 1 && result.bytes.start == 0 && continuation.is_none();
        scope.session.show(&self.path, &result.version, is_whole.then(|| text.to_owned()));
        match &continuation {
            Some(note) => lines.push_str(note),
            None => drop(lines.pop()),
        }
        Ok(ResultText { text: format!("{header}\n{lines}"), is_truncated: continuation.is_some() })
    }

    /// Returns the number of lines of the file, which the error of an offset beyond its end has.
    async fn total_lines(&self, scope: &CallScope<'_>) -> Result<u64, Error> {
        let request = ReadRequest::new(self.path.clone()).offset(u64::MAX).limit(1).max_bytes(1);
        match scope.backend.read(scope.cx, request).await {
            Ok(result) => Ok(result.total_lines.unwrap_or(0)),
            Err(error) => match error.detail() {
                Some(ErrorDetail::OffsetOutOfRange { total_lines }) => Ok(*total_lines),
                _ => Err(error),
            },
        }
    }

    /// Shows bytes of a text in UTF-8: whole characters, whose real range is in the header.
    async fn bytes(&self, scope: &CallScope<'_>, range: RangeArgument) -> Result<ResultText, Error> {
        // A range of bytes has no encoding; that of the file is found at its first line.
        let first_line = ReadRequest::new(self.path.clone()).limit(1).max_bytes(64);
        let first_line = scope.backend.read(scope.cx, first_line).await?;
        let (start, end) = match range {
            RangeArgument::Between(start, end) => (start, end.map(|end| end.saturating_add(1))),
            RangeArgument::Last(count) => (first_line.size.saturating_sub(count), None),
        };
        let request = ReadRequest::new(self.path.clone()).raw().max_bytes(max_content_bytes(scope) as u64);
        let result = scope.backend.read(scope.cx, request.bytes(start, end)).await?;
        let (before, text) = whole_characters(result.content.as_bytes());
        let Some(text) = text.filter(|_| is_utf8(first_line.encoding)) else {
            let words = "the bytes are no text in UTF-8; read lines in place of bytes";
            return Err(Error::new(ErrorKind::Unsupported, words).with_path(&self.path));
        };
        let first = result.bytes.start + before;
        let next = first + text.len() as u64;
        let version = short_version(&result.version);
        let note = change_note(scope.session, &result);
        scope.session.show(&self.path, &result.version, None);
        let last = next.saturating_sub(1);
        let mut shown = format!("{} bytes {first}-{last} of {} {version}{note}\n{text}", self.path, result.size);
        let is_truncated = next < result.size && !text.is_empty();
        if is_truncated {
            shown.push_str(&format!("\n[more: bytes=\"{next}-\"]"));
        }
        Ok(ResultText { text: shown, is_truncated })
    }
}

/// Returns how the model reads the rest of a file of which the lines before `next_line` are shown, or `None` if all is shown. The text of
/// an encoding other than UTF-8 may be longer than its bytes, so that its only line is cut.
fn continuation(result: &ReadResult, next_line: u64, is_cut: bool) -> Option<String> {
    let end = result.end_line;
    // The room of the numbers may leave out lines that were read.
    let next_offset = if next_line <= end { Some(next_line - 1) } else { result.next_offset };
    let note = match (result.next_byte, next_offset) {
        (Some(byte), _) if next_line > end && is_utf8(result.encoding) => {
            format!("[line {end} goes on: bytes=\"{byte}-\"]")
        }
        (byte, Some(next)) if is_cut || (byte.is_some() && next_line > end) => {
            format!("[line {} is too long to be shown; more: lines=\"{}-\"]", next_line - 1, next + 1)
        }
        (None, None) if is_cut => format!("[line {} is too long to be shown]", next_line - 1),
        (Some(_), None) if result.total_lines.is_some_and(|total| total > end) => {
            format!("[line {end} is too long to be shown; more: lines=\"{}-\"]", end + 1)
        }
        (Some(_), None) if result.total_lines.is_none() => {
            format!("[line {end} is too long to be shown; if more follows: lines=\"{}-\"]", end + 1)
        }
        (Some(_), None) => format!("[line {end} is too long to be shown]"),
        (_, Some(next)) => {
            let left = result.total_lines.map(|total| with_count(total.saturating_sub(next), "line") + " ");
            format!("[{}more: lines=\"{}-\"]", left.unwrap_or_default(), next + 1)
        }
        (None, None) => return None,
    };
    Some(note)
}

fn is_utf8(encoding: Option<Encoding>) -> bool {
    matches!(encoding, None | Some(Encoding::Utf8 | Encoding::Utf8Bom))
}

/// Returns the characters that are whole in `bytes`, and the number of bytes before them; or no text, if the bytes are not UTF-8.
fn whole_characters(bytes: &[u8]) -> (u64, Option<&str>) {
    let before = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    let bytes = &bytes[before..];
    let text = match str::from_utf8(bytes) {
        Ok(text) => Some(text),
        // A character that the end of the bytes cuts.
        Err(error) if error.error_len().is_none() => str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    (before as u64, text)
}

/// Returns the path, the lines until `end`, the number of all and the version, such as `/a.c 20-60 of 1225 @25e4`.
fn header(result: &ReadResult, end: u64) -> String {
    let start = result.start_line;
    let total = result.total_lines.map(|total| format!(" of {total}")).unwrap_or_default();
    let lines = match start {
        0 => String::new(),
        _ if start > end => String::new(),
        _ if start == end => format!(" {start}{total}"),
        _ => format!(" {start}-{end}{total}"),
    };
    let endings = match result.line_ending {
        LineEnding::Crlf => " CRLF",
        LineEnding::Mixed => " mixed line endings",
        _ => "",
    };
    let encoding = match result.encoding {
        None | Some(Encoding::Utf8) => String::new(),
        Some(encoding) => format!(" {encoding}"),
    };
    format!("{}{lines} {}{endings}{encoding}", result.path, short_version(&result.version))
}

fn binary(result: &ReadResult) -> String {
    let kind = match &result.content {
        Content::Binary { mime_type, .. } => mime_type.as_str(),
        Content::Text(_) => "text",
    };
    format!("{} is binary: {kind}, {} bytes {}", result.path, result.size, short_version(&result.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_cut_between_characters() {
        let text = "aé€😀".as_bytes();
        for (from, to, before, expected) in [
            (0, 10, 0, Some("aé€😀")),
            (2, 10, 1, Some("€😀")),
            (0, 9, 0, Some("aé€")),
            (4, 5, 1, Some("")),
            (7, 10, 3, Some("")),
        ] {
            assert_eq!(whole_characters(&text[from..to]), (before, expected), "{from}..{to}");
        }
        assert_eq!(whole_characters(b"a\xff").1, None);
    }

    #[test]
    fn ranges_are_read_as_models_write_them() {
        for (text, expected) in [
            ("20-60", Some(RangeArgument::Between(20, Some(60)))),
            (" 20 : 60 ", Some(RangeArgument::Between(20, Some(60)))),
            ("[20, 60]", Some(RangeArgument::Between(20, Some(60)))),
            ("20-", Some(RangeArgument::Between(20, None))),
            ("[20, -1]", Some(RangeArgument::Between(20, None))),
            ("7", Some(RangeArgument::Between(7, Some(7)))),
            ("-40", Some(RangeArgument::Last(40))),
            ("60-20", None),
            ("-0", None),
            ("a-b", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(RangeArgument::parse(text), expected, "{text}");
        }
    }
}
