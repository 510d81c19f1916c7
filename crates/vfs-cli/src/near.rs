//! Suggestions for paths at which nothing is.

use vfs_config::suggest::similar;
use vfs_core::{Backend, Error, ErrorKind, LsRequest, StatRequest, VfsPath};
use vfs_sandbox::SandboxConfig;

use crate::exit::Failure;
use crate::session::Session;

/// Upper bound on the entries of a directory that are compared with a missing name.
const MAX_COMPARED: u64 = 1000;

/// Upper bound on the paths that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Returns paths that may have been meant by the missing one that `error` names: the file that has this path in a sandbox, or
/// else those beside it with a similar name, the most similar first.
///
/// The backend of the session lists the directory, so that a policy hides from suggestions what it hides from listings. An
/// error of the listing means that nothing is suggested.
pub(crate) async fn paths(session: &Session, error: &Error) -> Vec<VfsPath> {
    if error.kind() != ErrorKind::NotFound {
        return Vec::new();
    }
    let Some(missing) = error.path().and_then(|path| VfsPath::parse(path).ok()) else { return Vec::new() };
    if let Some(path) = in_sandbox(session, &missing).await {
        return vec![path];
    }
    let (Some(directory), Some(name)) = (missing.parent(), missing.name()) else { return Vec::new() };
    let mut request = LsRequest::new(directory);
    request.limit = Some(MAX_COMPARED);
    let Ok(listing) = session.backend.ls(&session.cx, request).await else { return Vec::new() };
    let names = listing.entries.iter().filter_map(|entry| entry.path.name());
    let near = similar(name, names, MAX_SUGGESTED);
    near.into_iter().filter_map(|name| missing.parent()?.child(name).ok()).collect()
}

/// Returns `failure` with the paths that may have been meant.
pub(crate) async fn hinted(session: &Session, failure: Failure) -> Failure {
    let Failure::Operation(error) = failure else { return failure };
    let hints = hints(session, &error).await;
    if hints.is_empty() { Failure::Operation(error) } else { Failure::Hinted(error, hints) }
}

/// Returns lines with the paths that may have been meant in place of the missing one that `error` names.
pub(crate) async fn hints(session: &Session, error: &Error) -> Vec<String> {
    if let Some(path) = host_path(session, error).await {
        return vec![format!("paths start at the root of the files; write {path}")];
    }
    let paths = paths(session, error).await;
    let names: Vec<_> = paths.iter().map(VfsPath::as_str).collect();
    match &names[..] {
        [] => Vec::new(),
        [name] => vec![format!("did you mean {name}?")],
        [names @ .., last] => vec![format!("did you mean {} or {last}?", names.join(", "))],
    }
}

/// Returns the path of the file that `missing` is the path of in a sandbox, where the root is not `/`.
async fn in_sandbox(session: &Session, missing: &VfsPath) -> Option<VfsPath> {
    let below = missing.as_str().strip_prefix(SandboxConfig::WORKSPACE)?.strip_prefix('/')?;
    there(session, VfsPath::root().join(below).ok()?).await
}

/// Returns `path` if it exists and may be looked at; for a suggestion, no error matters.
async fn there(session: &Session, path: VfsPath) -> Option<VfsPath> {
    session.backend.stat(&session.cx, StatRequest::new(path.clone())).await.ok()?;
    Some(path)
}

/// Returns the path of the file that the missing path of `error` names if it is taken as a path of this machine.
async fn host_path(session: &Session, error: &Error) -> Option<VfsPath> {
    if error.kind() != ErrorKind::NotFound {
        return None;
    }
    there(session, session.path_of_host_path(error.path()?)?).await
}
