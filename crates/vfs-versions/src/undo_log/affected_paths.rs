//! Paths at and below which an operation changes files.

use vfs_core::operation::RequestRef;
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{DeleteRequest, Result, VfsPath};

use crate::snapshots::caller_files::CallerFiles;

/// Returns the real paths at and below which `action` changes files, or `None` if the backend will refuse it, so that no
/// contents are stored in vain.
pub(super) async fn affected_paths(files: &CallerFiles<'_>, action: RequestRef<'_>) -> Result<Option<Vec<VfsPath>>> {
    match action {
        RequestRef::Write(write) => written_file(files, &write.path).await,
        RequestRef::CommitWriter(commit) => written_file(files, &commit.path).await,
        RequestRef::Upload(upload) => written_file(files, &upload.path).await,
        RequestRef::Edit(edit) => match files.file(&edit.path).await? {
            Some(_) => written_file(files, &edit.path).await,
            None => Ok(None),
        },
        RequestRef::Delete(delete) => deleted_entry(files, delete).await,
        RequestRef::Rename(rename) => {
            let Some(to) = transfer_target(files, &rename.from, &rename.to, rename.mode).await? else {
                return Ok(None);
            };
            Ok(Some(vec![files.real_entry(&rename.from).await, to]))
        }
        RequestRef::Copy(copy) => {
            let to = transfer_target(files, &copy.from, &copy.to, copy.mode).await?;
            Ok(to.map(|to| vec![to]))
        }
        _ => Ok(None),
    }
}

async fn written_file(files: &CallerFiles<'_>, path: &VfsPath) -> Result<Option<Vec<VfsPath>>> {
    if path.is_root() || files.is_excluded(path) || files.entry(path).await?.is_some_and(|info| info.is_dir) {
        return Ok(None);
    }
    Ok(Some(vec![files.real(path).await]))
}

async fn deleted_entry(files: &CallerFiles<'_>, delete: &DeleteRequest) -> Result<Option<Vec<VfsPath>>> {
    let path = &delete.path;
    if path.is_root() || files.is_excluded(path) {
        return Ok(None);
    }
    match files.entry(path).await? {
        Some(info) if !info.is_dir || delete.recursive => Ok(Some(vec![files.real_entry(path).await])),
        _ => Ok(None),
    }
}

/// Returns the target of a rename or copy from `from` to `to`.
async fn transfer_target(
    files: &CallerFiles<'_>,
    from: &VfsPath,
    to: &VfsPath,
    mode: TransferTargetMode,
) -> Result<Option<VfsPath>> {
    if from.is_root() || to.starts_with(from) || from.starts_with(to) || files.entry(from).await?.is_none() {
        return Ok(None);
    }
    match files.entry(to).await? {
        Some(_) if mode == TransferTargetMode::CreateNew => Ok(None),
        Some(info) if info.is_dir && !files.below(to).await?.is_empty() => Ok(None),
        _ => Ok(Some(files.real_entry(to).await)),
    }
}
