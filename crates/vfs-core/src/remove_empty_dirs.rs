//! Directories in which no file is left, removed without the risk of losing one.

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::types::{DeleteRequest, LsRequest};

/// Removes the directory at `path` with those below it, if no file is in any of them.
///
/// # Behaviour
///
/// * Where a file, a link or something that cannot be looked at is at or below `path`, nothing is removed. Of a link to a
///   directory that is only found on the way: it stays, and empty directories beside it may be gone.
/// * Each directory is removed [as an empty one](DeleteRequest::only_empty), the deepest first: a file that comes into one
///   meanwhile stays, with the directories above it. Some of the others may be gone then.
///
/// # Errors
///
/// `not_empty` where something is left, `not_found` and `not_a_directory` where there is no directory, and those of the
/// backend.
pub async fn prune(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<()> {
    // Asked first, as a link to a directory is listed as what it leads to.
    let alone = backend.delete(cx, DeleteRequest::new(path.clone()).only_empty()).await;
    match alone {
        Err(error) if error.kind() == ErrorKind::NotEmpty => {}
        removed => return removed.map(drop),
    }
    let listed = backend.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
    let is_whole = listed.problems.is_empty() && listed.truncated.is_none();
    if !is_whole || listed.entries.iter().any(|entry| !entry.is_dir) {
        return Err(occupied(path));
    }
    // In the order of paths, what is below a directory comes after it.
    let below = listed.entries.into_iter().rev().map(|entry| entry.path);
    for directory in below.chain([path.clone()]) {
        match backend.delete(cx, DeleteRequest::new(directory).only_empty()).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotEmpty | ErrorKind::NotADirectory) => {
                return Err(occupied(path).with_source(error));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn occupied(path: &VfsPath) -> Error {
    Error::new(ErrorKind::NotEmpty, "something is in it, or in a directory below it, which stays").with_path(path)
}
