//! Result texts.

use std::fmt::Write as _;

use vfs_core::error::ErrorDetail;
use vfs_core::{
    Content, DeleteRequest, DeleteResult, EditRequest, EditResult, Error, ErrorKind, ExecuteRequest, ExecuteResponse,
    GlobRequest, GlobResult, GrepRequest, GrepResult, LsRequest, LsResult, ReadRequest, ReadResult, VfsPath,
    WriteRequest, WriteResult, format,
};

use super::MAX_CHARACTERS;
use crate::large_text::is_longer;
use crate::python_list::python_list;
use crate::regex_signs::has_regex_signs;
use crate::request_action::ResultText;

/// Last entry or line of a result that is cut.
const CUT: &str = "... [results truncated, try being more specific with your parameters]";

const GREP_STOPPED: &str = "Note: the search stopped early (it hit its time limit or the maximum match count). The matches above are \
    valid but incomplete. Narrow the search (a more specific pattern or a narrower path), or raise max_count, to see the rest.";

const GREP_STOPPED_JS: &str = "Note: the search stopped early because it hit the maximum match count. The matches above are valid but \
    incomplete. Narrow the search (a more specific pattern or a narrower path), or raise max_count, to see the rest.";

const GLOB_STOPPED: &str = "Note: the search stopped early because it hit its time or size limit. The paths above are valid but \
    incomplete. Narrow the search (a more specific pattern or a narrower path) to see the rest.";

const LITERAL_HINT: &str = "Note: grep matches literal text, not regex, so characters like `|`, `.*`, and `\\.` are searched verbatim. \
    Search for the literal text you need instead; for `|` alternation, run a separate search per alternative.";

/// Maximum number of characters of a text that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 1_000;

/// Releases of deepagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// 0.4.
    Classic,
    /// 0.7.
    Current,
    /// 1.14 for JavaScript.
    Js,
}

/// The words of a release.
#[derive(Debug)]
pub(super) struct DeepagentsWording(pub(super) Release);

impl DeepagentsWording {
    pub(super) fn listing(&self, request: &LsRequest, result: &LsResult, _max_characters: usize) -> ResultText {
        if self.0 == Release::Js {
            return listing_with_sizes(request, result);
        }
        let paths = result.entries.iter().map(|entry| match entry.is_dir {
            true if !entry.path.is_root() => format!("{}/", entry.path),
            _ => entry.path.to_string(),
        });
        self.paths(paths.collect(), result.truncated.is_some())
    }

    pub(super) fn window(&self, _request: &ReadRequest, result: &ReadResult) -> ResultText {
        let text = match self.0 {
            Release::Classic => return numbered(result),
            Release::Current | Release::Js => with_header(result),
        };
        ResultText { text, is_truncated: result.truncated.is_some() }
    }

    pub(super) fn written(&self, _request: &WriteRequest, result: &WriteResult, _max_characters: usize) -> ResultText {
        ResultText::whole(match self.0 {
            Release::Js => format!("Successfully wrote to '{}'", result.path),
            _ => format!("Updated file {}", result.path),
        })
    }

    pub(super) fn edited(&self, _request: &EditRequest, result: &EditResult, _max_characters: usize) -> ResultText {
        let EditResult { occurrences, path, .. } = result;
        ResultText::whole(match self.0 {
            Release::Js => format!("Successfully replaced {occurrences} occurrence(s) in '{path}'"),
            _ => format!("Successfully replaced {occurrences} instance(s) of the string in '{path}'"),
        })
    }

    pub(super) fn deleted(
        &self,
        _request: &DeleteRequest,
        result: &DeleteResult,
        _max_characters: usize,
    ) -> ResultText {
        ResultText::whole(format!("Deleted {}", result.path))
    }

    pub(super) fn found(&self, request: &GlobRequest, result: &GlobResult, _max_characters: usize) -> ResultText {
        let paths: Vec<_> = result.entries.iter().map(|entry| entry.path.to_string()).collect();
        match self.0 {
            Release::Js if paths.is_empty() && result.truncated.is_none() => {
                let pattern = request.pattern.trim_start_matches('/');
                ResultText::whole(format!("No files found matching pattern '{pattern}'"))
            }
            Release::Js => lines(paths, result.truncated.is_some()),
            Release::Classic => self.paths(paths, result.truncated.is_some()),
            Release::Current if result.truncated.is_some() => {
                let ResultText { text, .. } = self.paths(paths, false);
                ResultText { text: format!("{text}\n\n{GLOB_STOPPED}"), is_truncated: true }
            }
            Release::Current => self.paths(paths, false),
        }
    }

    pub(super) fn matches(&self, request: &GrepRequest, result: &GrepResult, _max_characters: usize) -> ResultText {
        let (is_current, is_js) = (self.0 == Release::Current, self.0 == Release::Js);
        let is_stopped = result.truncated.is_some();
        let is_empty = result.matches.is_empty() && result.files.is_empty();
        if is_empty && !is_stopped && is_js {
            return ResultText::whole(format!("No matches found for pattern '{}'", request.pattern.as_str()));
        }
        if is_empty && !is_stopped {
            let is_misread = is_current && looks_like_regex(request.pattern.as_str());
            let hint = if is_misread { format!("\n\n{LITERAL_HINT}") } else { String::new() };
            return ResultText::whole(format!("No matches found{hint}"));
        }
        let lines = if is_empty { "No matches found".to_owned() } else { match_lines(result) };
        let mut shown = self.cut(lines, is_stopped && self.0 == Release::Classic);
        shown.is_truncated |= result.matches.iter().any(|found| found.cut);
        if is_stopped && (is_current || is_js) {
            shown.text.push_str("\n\n");
            shown.text.push_str(if is_js { GREP_STOPPED_JS } else { GREP_STOPPED });
            shown.is_truncated = true;
        }
        shown
    }

    pub(super) fn output(
        &self,
        _request: &ExecuteRequest,
        response: &ExecuteResponse,
        _max_characters: usize,
    ) -> ResultText {
        let mut text = response.output.clone();
        match response.exit_code {
            Some(0) => text.push_str("\n[Command succeeded with exit code 0]"),
            // Writing to a string cannot fail.
            Some(code) => drop(write!(text, "\n[Command failed with exit code {code}]")),
            None if response.timed_out => text.push_str("\n[Command was stopped by its timeout]"),
            None => text.push_str("\n[Command was ended by a signal]"),
        }
        if response.truncated {
            text.push_str("\n[Output was truncated due to size limits]");
        }
        ResultText { text, is_truncated: response.truncated }
    }

    pub(super) fn edit_error(&self, edit: &EditRequest, error: &Error) -> String {
        match (error.detail(), edit.replacements.first()) {
            (Some(ErrorDetail::NotUnique { count, .. }), Some(replacement)) => {
                let old: String = replacement.old.chars().take(MAX_SHOWN_CHARACTERS).collect();
                let appears = match self.0 {
                    Release::Js => format!("has multiple occurrences (appears {count} times)"),
                    _ => format!("appears {count} times"),
                };
                format!(
                    "Error: String '{old}' {appears} in file. Use replace_all=True to replace all instances, or \
                     provide a more specific string with surrounding context."
                )
            }
            (_, Some(replacement)) if error.kind() == ErrorKind::InvalidArgument => {
                let words = match (replacement.old.is_empty(), replacement.old == replacement.new) {
                    (true, _) if self.0 == Release::Js => "oldString cannot be empty when file has content",
                    (true, _) => "old_string cannot be empty. Provide the exact text to replace.",
                    (_, true) => "old_string and new_string are equal, so that nothing would change",
                    _ => return error.for_model(),
                };
                format!("Error: {words}")
            }
            _ => error.for_model(),
        }
    }
}

impl DeepagentsWording {
    /// Returns a list of paths, cut to the maximum number of characters.
    fn paths(&self, mut paths: Vec<String>, is_stopped: bool) -> ResultText {
        let kept = match self.0 {
            Release::Current if paths.is_empty() => return ResultText::whole("No files found"),
            Release::Classic | Release::Js => count_by_share(&paths),
            Release::Current => {
                let mut room = MAX_CHARACTERS - CUT.len() - 4;
                let fits = |path: &&String| {
                    // The list shows it in quotes, with a comma and a space after it.
                    let left = room.checked_sub(python_list([path.as_str()]).chars().count());
                    room = left.unwrap_or(0);
                    left.is_some()
                };
                paths.iter().take_while(fits).count()
            }
        };
        let is_truncated = is_stopped || kept < paths.len();
        paths.truncate(kept);
        if is_truncated {
            paths.push(CUT.to_owned());
        }
        ResultText { text: python_list(paths.iter().map(String::as_str)), is_truncated }
    }

    /// Returns `text`, cut to the maximum number of characters.
    fn cut(&self, mut text: String, is_stopped: bool) -> ResultText {
        let is_too_long = is_longer(&text, MAX_CHARACTERS);
        if is_too_long {
            let kept = match self.0 {
                Release::Classic | Release::Js => MAX_CHARACTERS,
                Release::Current => MAX_CHARACTERS - CUT.len() - 1,
            };
            let end = text.char_indices().nth(kept).map_or(text.len(), |(end, _)| end);
            text.truncate(end);
        }
        let is_truncated = is_stopped || is_too_long;
        if is_truncated {
            text.push('\n');
            text.push_str(CUT);
        }
        ResultText { text, is_truncated }
    }
}

/// Returns the number of `lines` that are shown: the share that the maximum has in the number of their characters.
fn count_by_share(lines: &[String]) -> usize {
    let characters: usize = lines.iter().map(|line| line.chars().count()).sum();
    if characters > MAX_CHARACTERS { lines.len() * MAX_CHARACTERS / characters } else { lines.len() }
}

/// Returns `lines` one below the other, cut to the maximum number of characters.
fn lines(mut lines: Vec<String>, is_stopped: bool) -> ResultText {
    let kept = count_by_share(&lines);
    let is_truncated = is_stopped || kept < lines.len();
    lines.truncate(kept);
    if is_truncated {
        lines.push(CUT.to_owned());
    }
    ResultText { text: lines.join("\n"), is_truncated }
}

fn listing_with_sizes(request: &LsRequest, result: &LsResult) -> ResultText {
    if result.entries.is_empty() && result.truncated.is_none() {
        return ResultText::whole(format!("No files found in {}", request.path));
    }
    let shown = result.entries.iter().map(|entry| match (entry.is_dir, entry.size) {
        (true, _) => format!("{}/ (directory)", entry.path),
        (false, 0) => entry.path.to_string(),
        (false, size) => format!("{} ({size} bytes)", entry.path),
    });
    lines(shown.collect(), result.truncated.is_some())
}

/// Returns numbered lines, and where to continue if lines are left out.
fn numbered(result: &ReadResult) -> ResultText {
    let is_blank = result.content.as_text().is_none_or(|text| text.trim().is_empty());
    if is_blank || result.start_line == 0 {
        return ResultText { text: format::numbered(result), is_truncated: result.truncated.is_some() };
    }
    let mut window = result.clone();
    (window.truncated, window.next_offset, window.next_byte) = (None, None, None);
    let mut text = format::numbered(&window);
    let mut next_offset = result.next_offset;
    if let Some((end, line)) = last_line_start(&text).filter(|_| text.len() > MAX_CHARACTERS) {
        text.truncate(end);
        next_offset = Some(line - 1);
    } else if result.next_byte.is_some() {
        // No offset leads into the middle of a line.
        next_offset = Some(result.end_line).filter(|end| result.total_lines != Some(*end));
        text.push_str("\n[truncated: the rest of this line is too long to be shown]");
    }
    if let Some(offset) = next_offset {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[truncated: continue with offset {offset}]");
    }
    ResultText { is_truncated: next_offset.is_some(), text }
}

/// Returns where the last line begins that starts within the maximum number of bytes of numbered `text`, with its number. The parts of a
/// long line, such as 5.1, are no lines.
fn last_line_start(text: &str) -> Option<(usize, u64)> {
    let mut end = text.floor_char_boundary(MAX_CHARACTERS);
    loop {
        end = text[..end].rfind('\n')?;
        if let Some(number) = text[end + 1..].split('\t').next().and_then(|label| label.trim().parse().ok()) {
            return Some((end, number));
        }
    }
}

/// Returns the lines below a header such as `@@ lines 1-100 of 250 | next offset 100 @@`.
fn with_header(result: &ReadResult) -> String {
    let Content::Text(text) = &result.content else { return format::numbered(result) };
    let text = if result.bytes.start == 0 { text.strip_prefix('\u{FEFF}').unwrap_or(text) } else { text };
    let is_whole = result.start_line == 1 && result.next_offset.is_none() && result.next_byte.is_none();
    if text.trim().is_empty() && (is_whole || result.start_line == 0) {
        return format::EMPTY_REMINDER.to_owned();
    }
    let mut header = format!("@@ lines {}-{}", result.start_line, result.end_line);
    if let Some(total) = result.total_lines {
        // Writing to a string cannot fail.
        let _ = write!(header, " of {total}");
    }
    if let Some(offset) = result.next_offset {
        let _ = write!(header, " | next offset {offset}");
    }
    if result.next_byte.is_some() {
        header.push_str(" | truncated mid-line");
    }
    let text = text.strip_suffix('\n').unwrap_or(text).replace("\r\n", "\n");
    format!("{header} @@\n{}", text.strip_suffix('\r').unwrap_or(&text))
}

/// Returns one line for each file, or a file and its matching lines below it.
fn match_lines(result: &GrepResult) -> String {
    let mut lines: Vec<String> = Vec::new();
    for file in &result.files {
        lines.push(match file.count {
            Some(count) => format!("{}: {count}", file.path),
            None => file.path.to_string(),
        });
    }
    let mut last: Option<&VfsPath> = None;
    for found in &result.matches {
        if last != Some(&found.path) {
            lines.push(format!("{}:", found.path));
            last = Some(&found.path);
        }
        let mark = if found.cut { " [line cut]" } else { "" };
        lines.push(format!("  {}: {}{mark}", found.line, found.text));
    }
    lines.join("\n")
}

/// Returns whether `pattern` has what is rare in literal text.
fn looks_like_regex(pattern: &str) -> bool {
    pattern.contains('|') || has_regex_signs(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strong_signs_make_a_pattern_look_like_an_expression() {
        for (pattern, expected) in [
            ("self.tools", false),
            ("def __init__(self):", false),
            ("arr[0]", false),
            ("a|b", true),
            ("fn .*_all", true),
            (r"fn \w+", true),
            (r"a\.b", true),
            (r"C:\temp", false),
        ] {
            assert_eq!(looks_like_regex(pattern), expected, "{pattern}");
        }
    }
}
