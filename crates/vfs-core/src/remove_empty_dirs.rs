//! Removal of directory trees that contain no file.

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::requests::{DeleteRequest, LsRequest};

/// Removes the directory at `path` and those below it, if none of them contains a file.
///
/// # Behaviour
///
/// * If a file, a link or an unreadable entry is at or below `path`, nothing is removed. A link to a directory is the exception:
///   it is found only when its parent is removed, and empty directories beside it may have been removed by then.
/// * Each directory is removed [only if empty](DeleteRequest::only_empty), deepest first. A file that is created meanwhile stays,
///   with the directories above it; other directories may have been removed.
///
/// # Errors
///
/// `not_empty` if an entry remains; `not_found` or `not_a_directory` if `path` is no directory; those of
/// [`Backend::delete`] and [`Backend::ls`].
pub async fn remove_empty_dirs(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<()> {
    // Delete before listing, as a link to a directory is listed as its target.
    let alone = backend.delete(cx, DeleteRequest::new(path.clone()).only_empty()).await;
    match alone {
        Err(error) if error.kind() == ErrorKind::NotEmpty => {}
        removed => return removed.map(drop),
    }
    let listed = backend.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
    let is_whole = listed.problems.is_empty() && listed.truncated.is_none();
    if !is_whole || listed.entries.iter().any(|entry| !entry.is_dir) {
        return Err(not_empty(path));
    }
    // Entries are sorted by path, so that each directory comes before its entries.
    let below = listed.entries.into_iter().rev().map(|entry| entry.path);
    for directory in below.chain([path.clone()]) {
        match backend.delete(cx, DeleteRequest::new(directory).only_empty()).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotEmpty | ErrorKind::NotADirectory) => {
                return Err(not_empty(path).with_source(error));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn not_empty(path: &VfsPath) -> Error {
    Error::new(
        ErrorKind::NotEmpty,
        "the directory, or one below it, is not empty; delete it recursively to remove its files too",
    )
    .with_path(path)
}
