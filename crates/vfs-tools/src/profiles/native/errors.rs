//! Errors in words that say what to do next.

use vfs_core::edit::diff;
use vfs_core::error::ErrorDetail;
use vfs_core::suggest::similar_paths;
use vfs_core::{Content, Error, ErrorKind, ReadRequest, VfsPath};

use super::max_content_bytes;
use crate::action::CallScope;
use crate::outcome::ToolOutcome;
use crate::session::short_version;
use crate::with_count::with_count;

/// Maximum size in bytes of a diff in the answer.
const MAX_DIFF_BYTES: usize = 1_400;

/// Returns the outcome of `error`, about `path` unless it names another one.
pub(super) async fn failure_outcome(scope: &CallScope<'_>, path: &VfsPath, error: Error) -> ToolOutcome {
    let error = error.or_path(path);
    let text = error_text(scope, path, &error).await;
    ToolOutcome::of_error(&error, text)
}

/// Returns what to answer to `error`: paths like one that is missing, or what has changed since the file was shown.
pub(super) async fn error_text(scope: &CallScope<'_>, path: &VfsPath, error: &Error) -> String {
    let words = error.for_model();
    match (error.kind(), error.detail()) {
        (ErrorKind::NotFound, _) => {
            let missing = error.path().and_then(|path| VfsPath::parse(path).ok());
            let near = similar_paths(scope.backend, scope.cx, missing.as_ref().unwrap_or(path)).await;
            let near: Vec<_> = near.iter().map(VfsPath::as_str).collect();
            if near.is_empty() { words } else { format!("{words}; near it: {}", near.join(", ")) }
        }
        (ErrorKind::InvalidArgument, Some(ErrorDetail::OffsetOutOfRange { total_lines })) => {
            format!("Error: {path} has only {}", with_count(*total_lines, "line"))
        }
        (ErrorKind::NotUnique, _) => match words.strip_suffix(", or replace all occurrences.") {
            Some(rest) => format!("{rest}, or replace all occurrences with all=true."),
            None => words,
        },
        (ErrorKind::Conflict, _) => changed_since(scope, path, error).await,
        _ => words,
    }
}

/// Returns whether `error` only says that the file has another version than the one that was shown, and it still has the text that was
/// shown, as after a `touch`. The session records the new version then.
pub(super) async fn is_text_unchanged(scope: &CallScope<'_>, path: &VfsPath, error: &Error) -> bool {
    // The first attempt of an operation that is sent again was made.
    let is_of_version = error.kind() == ErrorKind::Conflict && error.detail() != Some(&ErrorDetail::OperationIdReused);
    let Some(shown) = scope.session.get(path).filter(|_| is_of_version) else { return false };
    let request = ReadRequest::new(path.clone()).max_bytes(max_content_bytes(scope) as u64);
    let Ok(now) = scope.backend.read(scope.cx, request).await else { return false };
    let text = now.content.as_text().map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    let is_whole = now.next_offset.is_none() && now.next_byte.is_none();
    let is_unchanged = is_whole && now.version != shown.version && text.is_some() && text == shown.text.as_deref();
    if is_unchanged {
        scope.session.show(path, &now.version, shown.text);
    }
    is_unchanged
}

/// Returns what has changed since the file was shown.
async fn changed_since(scope: &CallScope<'_>, path: &VfsPath, error: &Error) -> String {
    let Some(shown) = scope.session.get(path) else { return error.for_model() };
    let request = ReadRequest::new(path.clone()).max_bytes(max_content_bytes(scope) as u64);
    let Ok(now) = scope.backend.read(scope.cx, request).await else { return error.for_model() };
    if now.version == shown.version {
        return error.for_model();
    }
    let (then, current) = (short_version(&shown.version), short_version(&now.version));
    let changed = format!(
        "Error: {path} has changed since you saw it (it was {then} and is {current}); the call changed nothing there."
    );
    let is_whole = now.next_offset.is_none() && now.next_byte.is_none();
    let (Some(before), Content::Text(after), true) = (&shown.text, &now.content, is_whole) else {
        return format!("{changed} Read it again first.");
    };
    let difference = diff(path, before.as_bytes(), after.as_bytes());
    if difference.len() > MAX_DIFF_BYTES {
        return format!("{changed} Read it again first.");
    }
    scope.session.show(path, &now.version, Some(after.clone()));
    format!("{changed} What has changed:\n{difference}Repeat the call if it still applies.")
}
