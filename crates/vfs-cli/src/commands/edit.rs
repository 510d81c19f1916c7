//! Command `vfs edit`: replaces text in a file.

use std::io::Write;

use vfs_core::error::ErrorDetail;
use vfs_core::{Backend, Content, EditRequest, Error, ErrorKind, ReadRequest, VfsPath};

use crate::args::EditArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

/// Maximum number of lines that an error shows.
const MAX_LINES: usize = 10;

/// Maximum number of bytes of each shown line.
const MAX_LINE_BYTES: usize = 200;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: EditArgs) -> Result<Exit, Failure> {
    let mut request = EditRequest::new(session.path(&args.path)?, args.old, args.new);
    if args.all {
        request = request.replace_all();
    }
    if args.exact_line_endings {
        request = request.exact_line_endings();
    }
    if args.dry_run {
        request = request.dry_run();
    }
    let path = request.path.clone();
    let result = match session.backend.edit(&session.cx, request).await {
        Ok(result) => result,
        Err(error) => {
            let lines = related_lines(session, &path, &error).await;
            let error = add_advice(error, &path);
            return Err(if lines.is_empty() { error.into() } else { Failure::Hinted(error, lines) });
        }
    };
    match result.diff {
        Some(diff) => out.write_all(diff.as_bytes())?,
        None => {
            let places = if result.occurrences == 1 { "place" } else { "places" };
            let path = escape(result.path.as_str());
            writeln!(out, "edited {path} ({} {places}, version {})", result.occurrences, result.version)?;
        }
    }
    Ok(Exit::Success)
}

/// Adds the options that avoid `error` to its message.
fn add_advice(error: Error, path: &VfsPath) -> Error {
    match error.kind() {
        ErrorKind::NotUnique => {
            let advice = "replace all of them with --all, or add the text around one of them to --old and --new";
            Error::new(ErrorKind::NotUnique, format!("{}; {advice}", error.message())).with_path(path)
        }
        _ => error,
    }
}

/// Returns the lines of the file `path` that `error` refers to: those with the text, or the most similar ones.
async fn related_lines(session: &BackendSession, path: &VfsPath, error: &Error) -> Vec<String> {
    match error.detail() {
        Some(ErrorDetail::NoMatch { nearest, .. }) => nearest
            .iter()
            .take(MAX_LINES)
            .map(|near| format!("similar line {}: {}", near.line, truncate_line(&near.text)))
            .collect(),
        Some(ErrorDetail::NotUnique { count, lines, .. }) => {
            let mut related = Vec::new();
            let mut numbers = lines.clone();
            numbers.dedup();
            for number in numbers.iter().take(MAX_LINES) {
                related.push(match read_line(session, path, *number).await {
                    Some(text) => format!("line {number}: {text}"),
                    None => format!("line {number}"),
                });
            }
            // Several occurrences in one line are shown once.
            let shown_occurrences =
                lines.iter().filter(|line| numbers.iter().take(MAX_LINES).any(|number| number == *line));
            let more = count.saturating_sub(shown_occurrences.count() as u64);
            if more > 0 {
                related.push(format!("and {more} more"));
            }
            related
        }
        _ => Vec::new(),
    }
}

/// Returns the beginning of the line with this 1-based number; `None` if it cannot be read.
async fn read_line(session: &BackendSession, path: &VfsPath, number: u64) -> Option<String> {
    let request = ReadRequest::new(path.clone()).lines(number.checked_sub(1)?, 1).max_bytes(MAX_LINE_BYTES as u64 + 1);
    match session.backend.read(&session.cx, request).await.ok()?.content {
        Content::Text(text) => Some(truncate_line(text.trim_end_matches(['\r', '\n'])).to_owned()),
        Content::Binary { .. } => None,
    }
}

fn truncate_line(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LINE_BYTES)]
}
