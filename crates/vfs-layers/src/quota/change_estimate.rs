//! Estimate of the size of a change before it is made.

use vfs_core::is_link::is_link;
use vfs_core::operation::{OutputRef, RequestRef};
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{
    Backend, EditRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, ResolveRequest, Result, StatRequest,
    VfsPath, WriteMode, WriteRequest,
};

use super::usage_tracker::StorageAmount;

/// Amounts at the paths of a change before and after it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChangeEstimate {
    before: StorageAmount,
    after: StorageAmount,
    /// Size of the largest file that is created or grows, in bytes.
    pub(super) largest: u64,
    /// Whether links or further names of files may be removed. A listing shows each of them as a file, with a size that was not
    /// counted when the file grew.
    pub(super) may_remove_links: bool,
}

impl ChangeEstimate {
    /// Reads the current state. The estimate of a change that the backend will refuse is zero, so that the backend
    /// reports its own error.
    pub(super) async fn of(inner: &dyn Backend, cx: &OpContext, request: RequestRef<'_>) -> Result<Self> {
        match request {
            RequestRef::Write(write) => {
                let existing = stat_optional(inner, cx, &write.path).await?;
                Ok(one_file(existing.as_ref(), size_after(write, existing.as_ref())))
            }
            RequestRef::CommitWriter(commit) => {
                let existing = stat_optional(inner, cx, &commit.path).await?;
                Ok(one_file(existing.as_ref(), Some(commit.size)))
            }
            RequestRef::Upload(upload) => {
                let existing = stat_optional(inner, cx, &upload.path).await?;
                Ok(one_file(existing.as_ref(), Some(upload.content.len() as u64)))
            }
            RequestRef::Edit(edit) => {
                let existing = stat_optional(inner, cx, &edit.path).await?;
                Ok(one_file(existing.as_ref(), size_after_edit(inner, cx, edit).await?))
            }
            RequestRef::Delete(delete) => {
                let (before, entry) = removable_amount(inner, cx, &delete.path, delete.recursive).await?;
                let may_have_links = entry == RemovedEntryKind::Directory && inner.capabilities(&delete.path).links;
                let may_remove_links = entry == RemovedEntryKind::Link || (delete.recursive && may_have_links);
                Ok(Self { before, may_remove_links, ..Self::default() })
            }
            RequestRef::Rename(rename) if rename.mode == TransferTargetMode::Overwrite => {
                let (before, entry) = removable_amount(inner, cx, &rename.to, false).await?;
                Ok(Self { before, may_remove_links: entry == RemovedEntryKind::Link, ..Self::default() })
            }
            RequestRef::Copy(copy) => {
                let existing = stat_optional(inner, cx, &copy.to).await?;
                if existing.is_some() && copy.mode != TransferTargetMode::Overwrite {
                    return Ok(Self::default());
                }
                let (after, largest) = measure(inner, cx, &copy.from).await?;
                Ok(Self { before: file_amount(existing.as_ref()), after, largest, ..Self::default() })
            }
            _ => Ok(Self::default()),
        }
    }

    /// Returns the maximum growth.
    pub(super) fn growth(&self) -> StorageAmount {
        (self.after - self.before).growth()
    }

    /// Returns the actual change by `output`; `None` if it contradicts the state before, because another caller
    /// changed the files, or because of links.
    pub(super) fn change(&self, output: OutputRef<'_>) -> Option<StorageAmount> {
        let had_file = self.before.files > 0;
        let one = |size| StorageAmount::of(1, size);
        match output {
            OutputRef::Write(write) | OutputRef::CommitWriter(write) => {
                (write.created != had_file).then(|| one(write.size) - self.before)
            }
            OutputRef::Edit(edit) => had_file.then(|| one(edit.size) - self.before),
            OutputRef::Copy(copy) => {
                let copied = StorageAmount::of(copy.files, copy.bytes);
                (copy.replaced == had_file && copied == self.after).then(|| copied - self.before)
            }
            OutputRef::Rename(rename) => (rename.replaced == had_file).then(|| -self.before),
            OutputRef::Delete(delete) => (i128::from(delete.files) == self.before.files).then(|| -self.before),
            OutputRef::Upload(_) => Some(self.after - self.before),
            _ => None,
        }
    }
}

/// Returns the amount of an existing file; zero for a directory.
pub(super) fn file_amount(existing: Option<&FileInfo>) -> StorageAmount {
    existing.filter(|info| !info.is_dir).map_or(StorageAmount::default(), |info| StorageAmount::of(1, info.size))
}

/// A file that will have `size` bytes; `None` where it will not be written.
fn one_file(existing: Option<&FileInfo>, size: Option<u64>) -> ChangeEstimate {
    match size.filter(|_| existing.is_none_or(|info| !info.is_dir)) {
        None => ChangeEstimate::default(),
        Some(size) => ChangeEstimate {
            before: file_amount(existing),
            after: StorageAmount::of(1, size),
            largest: if existing.is_some_and(|info| info.size >= size) { 0 } else { size },
            ..ChangeEstimate::default()
        },
    }
}

/// Returns the size that a file has after the write; `None` if the write will be refused.
fn size_after(write: &WriteRequest, existing: Option<&FileInfo>) -> Option<u64> {
    let added = write.content.len() as u64;
    match (&write.mode, existing) {
        (WriteMode::CreateNew, Some(_)) => None,
        (WriteMode::IfVersion(version), existing)
            if existing.and_then(|info| info.version.as_ref()) != Some(version) =>
        {
            None
        }
        (WriteMode::Append, Some(existing)) => Some(existing.size.saturating_add(added)),
        _ => Some(added),
    }
}

/// Returns the size that a file has after the edit; `None` if nothing will be edited, because an earlier call with the
/// same operation id may have made the edit.
async fn size_after_edit(inner: &dyn Backend, cx: &OpContext, edit: &EditRequest) -> Result<Option<u64>> {
    match inner.edit(cx, edit.clone().dry_run()).await {
        Ok(dry_run) => Ok(Some(dry_run.size)),
        // The earlier edit has replaced the text, and the file may have changed since. The backend returns the result of
        // that edit, or refuses this one for the same reason.
        Err(error) if cx.operation_id().is_some() && does_not_apply(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether an edit was refused because of what is stored at its path.
fn does_not_apply(error: &Error) -> bool {
    use ErrorKind::{Conflict, IsADirectory, NoMatch, NotText, NotUnique};
    error.is_absence() || matches!(error.kind(), Conflict | IsADirectory | NoMatch | NotText | NotUnique)
}

/// Returns the entry at `path`; `None` if there is none.
pub(super) async fn stat_optional(inner: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<FileInfo>> {
    match inner.stat(cx, StatRequest::new(path.clone())).await {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Kind of an entry that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovedEntryKind {
    /// A directory.
    Directory,
    /// A file with one name, or nothing.
    File,
    /// A link, or one of several names of a file.
    Link,
}

/// Returns the amount that goes with the entry `path`, and with all below it if `recursive`: zero for a link, and for one of
/// several names of a file, as the content remains. Below a directory both count as `ls` shows them.
pub(super) async fn removable_amount(
    inner: &dyn Backend,
    cx: &OpContext,
    path: &VfsPath,
    recursive: bool,
) -> Result<(StorageAmount, RemovedEntryKind)> {
    if is_link(inner, cx, path).await? {
        return Ok((StorageAmount::default(), RemovedEntryKind::Link));
    }
    Ok(match stat_optional(inner, cx, path).await? {
        Some(info) if info.is_dir && recursive => (measure(inner, cx, path).await?.0, RemovedEntryKind::Directory),
        Some(info) if info.is_dir => (StorageAmount::default(), RemovedEntryKind::Directory),
        Some(_) if has_other_names(inner, cx, path).await? => (StorageAmount::default(), RemovedEntryKind::Link),
        info => (file_amount(info.as_ref()), RemovedEntryKind::File),
    })
}

async fn has_other_names(inner: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<bool> {
    Ok(inner.capabilities(path).links && inner.resolve(cx, ResolveRequest::new(path.clone())).await?.names > 1)
}

/// Returns the amount of all files at and below `path`, following a link, and the size of the largest.
pub(super) async fn measure(inner: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<(StorageAmount, u64)> {
    let entries = match stat_optional(inner, cx, path).await? {
        None => return Ok((StorageAmount::default(), 0)),
        Some(info) if info.is_dir => {
            let listing = inner.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
            if listing.truncated.is_some() {
                let message = "the directory is too large or too deep to be counted; change parts of it separately";
                return Err(Error::new(ErrorKind::TooLarge, message).with_path(path));
            }
            listing.entries
        }
        Some(info) => vec![info],
    };
    let (mut sum, mut largest) = (StorageAmount::default(), 0);
    for file in entries.iter().filter(|entry| !entry.is_dir) {
        sum += StorageAmount::of(1, file.size);
        largest = largest.max(file.size);
    }
    Ok((sum, largest))
}
