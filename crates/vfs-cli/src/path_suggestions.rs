//! Suggestions for paths that do not exist.

use vfs_core::{Backend, Error, ErrorKind, StatRequest, VfsPath, suggest};

use crate::backend_session::BackendSession;
use crate::exit::Failure;
use crate::sandbox;

/// Returns suggestions for the missing path of `error`: the file with this path in a sandbox, or else entries of the same
/// directory with similar names, the most similar first.
///
/// The directory is listed through the backend of the session, so suggestions contain no path that a policy hides. If the
/// listing fails, there are no suggestions.
pub(crate) async fn similar_paths(session: &BackendSession, error: &Error) -> Vec<VfsPath> {
    if error.kind() != ErrorKind::NotFound {
        return Vec::new();
    }
    let Some(missing) = error.path().and_then(|path| VfsPath::parse(path).ok()) else { return Vec::new() };
    if let Some(path) = outside_sandbox(session, &missing).await {
        return vec![path];
    }
    suggest::similar_paths(&*session.backend, &session.cx, &missing).await
}

/// Adds suggestions for a missing path to `failure`.
pub(crate) async fn add_suggestions(session: &BackendSession, failure: Failure) -> Failure {
    let Failure::Operation(error) = failure else { return failure };
    let hints = suggestion_lines(session, &error).await;
    if hints.is_empty() { Failure::Operation(error) } else { Failure::Hinted(error, hints) }
}

/// Returns the suggestions for the missing path of `error` as lines.
pub(crate) async fn suggestion_lines(session: &BackendSession, error: &Error) -> Vec<String> {
    if let Some(path) = from_host_path(session, error).await {
        return vec![format!("paths start at the root of the files; write {path}")];
    }
    let paths = similar_paths(session, error).await;
    let names: Vec<_> = paths.iter().map(VfsPath::as_str).collect();
    match &names[..] {
        [] => Vec::new(),
        [name] => vec![format!("did you mean {name}?")],
        [names @ .., last] => vec![format!("did you mean {} or {last}?", names.join(", "))],
    }
}

/// Converts `missing` from a path in a sandbox, where the root is not `/`; returns `None` if that path does not exist either.
async fn outside_sandbox(session: &BackendSession, missing: &VfsPath) -> Option<VfsPath> {
    existing(session, VfsPath::root().join(sandbox::below_workspace(missing)?).ok()?).await
}

/// Returns `path` if it exists and the caller can `stat` it.
async fn existing(session: &BackendSession, path: VfsPath) -> Option<VfsPath> {
    session.backend.stat(&session.cx, StatRequest::new(path.clone())).await.ok()?;
    Some(path)
}

/// Converts the missing path of `error` from a host path; returns `None` if that file does not exist either.
async fn from_host_path(session: &BackendSession, error: &Error) -> Option<VfsPath> {
    if error.kind() != ErrorKind::NotFound {
        return None;
    }
    existing(session, session.path_of_host_path(error.path()?)?).await
}
