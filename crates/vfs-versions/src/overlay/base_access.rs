//! Base of an overlay: lookup and conditional replacement of its entries.

use bytes::Bytes;
use rpds::RedBlackTreeSetSync;
use vfs_core::error::ErrorDetail;
use vfs_core::is_link::is_link;
use vfs_core::transfer::remove_empty_dirs;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, ResolveRequest, Result, Version, VfsPath,
};

use super::overlay_state::is_hidden;
use crate::versioned_entry::{VersionedContent, VersionedEntry, fetch_if_exists, replace};

/// Entry of the base, with the content of a file.
pub(crate) type BaseEntry = VersionedEntry<VersionedContent>;

/// Returns the entry of `base` at `path`.
pub(crate) async fn base_entry(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<BaseEntry> {
    if is_link(base, cx, path).await? {
        return Ok(VersionedEntry::Link);
    }
    Ok(fetch_if_exists(base, cx, path).await?.into())
}

/// Returns whether a directory above `path` is a link in `base`. There was none when the overlay recorded the change, since
/// changes are recorded by their real paths.
pub(super) async fn is_behind_link(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<bool> {
    let Some(parent) = path.parent().filter(|_| base.capabilities(path).links) else { return Ok(false) };
    match base.resolve(cx, ResolveRequest::new(parent.clone())).await {
        Ok(real) => Ok(real.path != parent),
        Err(error) if matches!(error.kind(), ErrorKind::PathEscape | ErrorKind::InvalidPath) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Replaces the entry at `path`, which must still be `before`, by a file with the content `after` or by nothing, and returns the
/// new version. A path behind a link is a conflict.
pub(super) async fn replace_in_base(
    base: &dyn Backend,
    cx: &OpContext,
    path: &VfsPath,
    before: &VersionedEntry<Version>,
    after: Option<Bytes>,
) -> Result<Option<Version>> {
    if is_behind_link(base, cx, path).await? {
        return Err(Error::at(ErrorKind::Conflict, path));
    }
    replace(base, cx, path, before, after).await
}

/// Makes room in the base for a file at `path`: a directory there that is `hidden` in the overlay is removed, if no file is left
/// in it.
pub(super) async fn make_room(
    base: &dyn Backend,
    cx: &OpContext,
    hidden: &RedBlackTreeSetSync<VfsPath>,
    path: &VfsPath,
) {
    if is_hidden(hidden, path) && !may_be_behind_link(base, cx, path).await {
        // If the directory stays, the write of the file fails and reports it.
        let _ = remove_empty_dirs(base, cx, path).await;
    }
}

/// Removes the directories at and below those of `hidden` that have no file left in the base.
pub(super) async fn remove_emptied(base: &dyn Backend, cx: &OpContext, hidden: &RedBlackTreeSetSync<VfsPath>) {
    for path in hidden {
        if may_be_behind_link(base, cx, path).await {
            continue;
        }
        // A directory that stays is no reason for a rollback, and a link is a step of its own.
        if remove_empty_dirs(base, cx, path).await.is_err_and(|error| error.kind() == ErrorKind::NotEmpty) {
            remove_empty_below(base, cx, path).await;
        }
    }
}

/// Removes the directories below `path` that are empty, and those that become empty by that.
async fn remove_empty_below(base: &dyn Backend, cx: &OpContext, path: &VfsPath) {
    let Ok(listed) = base.ls(cx, LsRequest::new(path.clone()).recursive()).await else { return };
    // In the order of paths, the entries below a directory come after it.
    for directory in listed.entries.into_iter().rev().filter(|entry| entry.is_dir) {
        let _ = base.delete(cx, DeleteRequest::new(directory.path).only_empty()).await;
    }
}

/// Returns whether a directory above `path` is a link by now, or cannot be resolved.
async fn may_be_behind_link(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> bool {
    is_behind_link(base, cx, path).await.unwrap_or(true)
}

/// Returns the `conflict` of a file that is neither in the state before an interrupted commit nor in the one after it.
pub(super) fn changed_since(path: &VfsPath, actual: Option<Version>) -> Error {
    let message = "the file was changed after an interrupted commit that would write it; restore its content before the \
                   commit, or write the committed content, and try again";
    let detail = ErrorDetail::Conflict { actual };
    Error::new(ErrorKind::Conflict, message).with_path(path).with_detail(detail)
}
