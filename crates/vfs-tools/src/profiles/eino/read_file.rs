//! Windows of a file with numbered lines, images, and pages of documents.

use std::fmt::Write as _;

use async_trait::async_trait;
use vfs_core::error::ErrorDetail;
use vfs_core::format::{self, LineLabels, NUMBER_WIDTH};
use vfs_core::multi_modal::MultiModalReadRequest;
use vfs_core::operation::OperationClass;
use vfs_core::{Content, Error, ReadRequest, ReadResult};

use super::language::Language;
use super::words::error_text;
use super::{MAX_CHARACTERS, NOTE_CHARACTERS};
use crate::action::{Action, CallScope, Effect};
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::outcome::{FailureKind, ToolOutcome};
use crate::request_action::{ResultText, read_and_show};

/// Number of lines of a window, unless the call says otherwise.
const DEFAULT_LINES: u64 = 2_000;

/// Maximum number of pages of one call.
const MAX_PAGES: i64 = 20;

/// Maximum number of characters of the pages that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 60;

/// A read of text, of an image, or of pages of a document.
pub(super) struct ReadFileAction {
    language: Language,
    request: MultiModalReadRequest,
}

impl ReadFileAction {
    pub(super) fn new(language: Language, arguments: &Arguments) -> Result<Self, ArgumentError> {
        let positive = |name| arguments.count(name).filter(|number| *number > 0);
        let (first, limit) = (positive("offset").unwrap_or(1), positive("limit").unwrap_or(DEFAULT_LINES));
        let read = ReadRequest::new(arguments.required_path("file_path")?).lines(first - 1, limit);
        // The number of a line takes a few characters, too.
        let read = read.max_bytes((MAX_CHARACTERS - 2 * NOTE_CHARACTERS) as u64);
        let mut request = MultiModalReadRequest::new(read);
        request.pages = arguments.text("pages").filter(|pages| !pages.is_empty()).map(str::to_owned);
        Ok(Self { language, request })
    }
}

#[async_trait]
impl Action for ReadFileAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Read, vec![self.request.read.path.clone()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        if let Some(problem) = self.request.pages.as_deref().and_then(pages_problem) {
            return ToolOutcome::failed(FailureKind::InvalidArguments, problem);
        }
        let read = read_and_show(scope, self.request.clone(), |result| numbered(self.language, result)).await;
        read.unwrap_or_else(|error| {
            let error = error.or_path(&self.request.read.path);
            ToolOutcome::of_error(&error, read_error(&self.request.read, &error))
        })
    }
}

/// Returns why `pages` is neither a page nor a range of them, in the words of eino.
fn pages_problem(pages: &str) -> Option<String> {
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 1);
    let (first, last) = pages.split_once('-').unwrap_or((pages, pages));
    let problem = match number(first).zip(number(last)) {
        None => "expected format like \"3\" or \"1-10\"".to_owned(),
        Some((first, last)) if last < first => "end page must be >= start page".to_owned(),
        Some((first, last)) if last - first >= MAX_PAGES => {
            format!("range exceeds maximum of {MAX_PAGES} pages per request")
        }
        Some(_) => return None,
    };
    let shown: String = pages.chars().take(MAX_SHOWN_CHARACTERS).collect();
    Some(format!("invalid pages parameter {shown:?}: {problem}"))
}

fn read_error(read: &ReadRequest, error: &Error) -> String {
    match error.detail() {
        // eino shows a line that the file does not have.
        Some(ErrorDetail::OffsetOutOfRange { total_lines }) => {
            format!("Error: Line offset {} exceeds file length ({total_lines} lines)", read.offset.saturating_add(1))
        }
        _ => error_text(error),
    }
}

/// Returns numbered lines, and where to continue if the file has more.
fn numbered(language: Language, result: &ReadResult) -> ResultText {
    let text = match &result.content {
        Content::Text(text) if result.start_line > 0 => text,
        _ => return ResultText { text: format::numbered(result), is_truncated: result.truncated.is_some() },
    };
    let text = if result.bytes.start == 0 { text.strip_prefix('\u{FEFF}').unwrap_or(text) } else { text };
    let mut shown = String::with_capacity(text.len() + text.len() / 4);
    let mut labels = LineLabels::new(result.start_line, NUMBER_WIDTH);
    let max = MAX_CHARACTERS - NOTE_CHARACTERS;
    // Characters are counted only once there are as many bytes, and each of them once.
    let (mut characters, mut counted_bytes) = (0, 0);
    // An empty file has one empty line, as in eino.
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let mut first_left_out = None;
    for (number, line) in (result.start_line..).zip(lines) {
        let end = shown.len();
        if number > result.start_line {
            shown.push('\n');
        }
        labels.push_next(&mut shown);
        shown.push_str(without_carriage_return(line));
        if shown.len() >= max {
            characters += shown[counted_bytes..].chars().count();
            counted_bytes = shown.len();
            if characters >= max {
                shown.truncate(end);
                first_left_out = Some(number);
                break;
            }
        }
    }
    let next = if first_left_out.is_some() {
        first_left_out
    } else if result.next_byte.is_some() {
        // No line number leads into the middle of a line.
        shown.push_str(language.choose(
            "\n[truncated: the rest of this line is too long to be shown]",
            "\n[已截断：此行的其余部分过长，无法显示]",
        ));
        Some(result.end_line + 1).filter(|_| result.total_lines != Some(result.end_line))
    } else {
        result.next_offset.map(|offset| offset + 1)
    };
    if let Some(next) = next {
        // Writing to a string cannot fail.
        let _ = match language {
            Language::English => write!(shown, "\n[truncated: continue with offset {next}]"),
            Language::Chinese => write!(shown, "\n[已截断：请从 offset {next} 继续]"),
        };
    }
    ResultText { text: shown, is_truncated: next.is_some() || result.next_byte.is_some() }
}

fn without_carriage_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_a_page_or_a_short_ascending_range() {
        for pages in ["3", "1-20", "7-7"] {
            assert_eq!(pages_problem(pages), None);
        }
        for (pages, problem) in [
            ("", "invalid pages parameter \"\": expected format like \"3\" or \"1-10\""),
            ("0", "invalid pages parameter \"0\": expected format like \"3\" or \"1-10\""),
            ("3-", "invalid pages parameter \"3-\": expected format like \"3\" or \"1-10\""),
            ("-3", "invalid pages parameter \"-3\": expected format like \"3\" or \"1-10\""),
            ("1-2-3", "invalid pages parameter \"1-2-3\": expected format like \"3\" or \"1-10\""),
            ("5-3", "invalid pages parameter \"5-3\": end page must be >= start page"),
            ("1-21", "invalid pages parameter \"1-21\": range exceeds maximum of 20 pages per request"),
        ] {
            assert_eq!(pages_problem(pages).as_deref(), Some(problem));
        }
    }
}
