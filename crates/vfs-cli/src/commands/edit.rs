//! `vfs edit`.

use std::io::Write;

use vfs_core::{Backend, Content, EditRequest, Error, ErrorDetail, ErrorKind, ReadRequest, VfsPath};

use crate::args::EditArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

/// Upper bound on the lines that an error shows.
const MAX_LINES: usize = 10;

/// Upper bound on the bytes of each of them.
const MAX_LINE_BYTES: usize = 200;

pub(super) async fn run(session: &Session, out: &mut Output, args: EditArgs) -> Result<Exit, Failure> {
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
            let lines = lines(session, &path, &error).await;
            let error = advised(error, &path);
            return Err(if lines.is_empty() { error.into() } else { Failure::Hinted(error, lines) });
        }
    };
    match result.diff {
        Some(diff) => out.write_all(diff.as_bytes())?,
        None => {
            let places = if result.occurrences == 1 { "place" } else { "places" };
            let path = escaped(result.path.as_str());
            writeln!(out, "edited {path} ({} {places}, version {})", result.occurrences, result.version)?;
        }
    }
    Ok(Exit::Success)
}

/// Returns `error` with the options that help against it.
fn advised(error: Error, path: &VfsPath) -> Error {
    match error.kind() {
        ErrorKind::NotUnique => {
            let advice = "replace all of them with --all, or add the text around one of them to --old and --new";
            Error::new(ErrorKind::NotUnique, format!("{}; {advice}", error.message())).with_path(path)
        }
        _ => error,
    }
}

/// Returns the lines that `error`, of an edit of the file `path`, is about: those that have the text, or those most like it.
async fn lines(session: &Session, path: &VfsPath, error: &Error) -> Vec<String> {
    match error.detail() {
        Some(ErrorDetail::NoMatch { nearest, .. }) => nearest
            .iter()
            .take(MAX_LINES)
            .map(|near| format!("similar line {}: {}", near.line, shown(&near.text)))
            .collect(),
        Some(ErrorDetail::NotUnique { count, lines, .. }) => {
            let mut shown = Vec::new();
            let mut numbers = lines.clone();
            numbers.dedup();
            for number in numbers.iter().take(MAX_LINES) {
                shown.push(match line(session, path, *number).await {
                    Some(text) => format!("line {number}: {text}"),
                    None => format!("line {number}"),
                });
            }
            // Several places of one line are shown once.
            let shown_places = lines.iter().filter(|line| numbers.iter().take(MAX_LINES).any(|number| number == *line));
            let more = count.saturating_sub(shown_places.count() as u64);
            if more > 0 {
                shown.push(format!("and {more} more"));
            }
            shown
        }
        _ => Vec::new(),
    }
}

/// Returns the beginning of the line with this 1-based number; `None` if it cannot be read.
async fn line(session: &Session, path: &VfsPath, number: u64) -> Option<String> {
    let request = ReadRequest::new(path.clone()).lines(number.checked_sub(1)?, 1).max_bytes(MAX_LINE_BYTES as u64 + 1);
    match session.backend.read(&session.cx, request).await.ok()?.content {
        Content::Text(text) => Some(shown(text.trim_end_matches(['\r', '\n'])).to_owned()),
        Content::Binary { .. } => None,
    }
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LINE_BYTES)]
}
