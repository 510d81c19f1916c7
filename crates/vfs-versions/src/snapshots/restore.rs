//! Restoration of a snapshot.

use std::collections::BTreeSet;

use vfs_core::snapshots::SnapshotId;
use vfs_core::{Result, VfsPath};

use super::apply_transitions::{FileTransition, TransitionFailure, apply};
use super::caller_files::CallerFiles;
use crate::undo_log::UndoLog;
use crate::versioned_entry::StoredFiles;

/// Restores the files of the snapshot `id`, and records that in `log`.
pub(super) async fn restore(log: &mut UndoLog<'_>, files: &CallerFiles<'_>, id: &SnapshotId) -> Result<()> {
    log.settle(files).await?;
    let manifest = log.store.manifest(files.cx, id).await?;
    let steps = plan_restore(log, files, manifest.files).await?;
    if steps.is_empty() {
        return Ok(());
    }
    let record = log.begin_restore(files.cx, &steps).await?;
    let (versions, result) = match apply(log.store, files, steps).await {
        Ok(versions) => (versions, Ok(())),
        Err(TransitionFailure { error, versions }) => (versions, Err(error)),
    };
    if let Some(record) = record {
        log.conclude_restore(&files.cx.for_cleanup(), record, versions).await;
    }
    result
}

/// Returns the steps that bring the files to the state `target`. The contents that they replace are stored first.
async fn plan_restore(
    log: &UndoLog<'_>,
    files: &CallerFiles<'_>,
    mut target: StoredFiles,
) -> Result<Vec<FileTransition>> {
    target.retain(|path, _| !files.is_excluded(path));
    let mut present = files.below(&VfsPath::root()).await?;
    let unchanged =
        present.extract_if(.., |path, current| target.get(path).is_some_and(|file| file.version == current.version));
    let unchanged: BTreeSet<_> = unchanged.map(|(path, _)| path).collect();
    target.retain(|path, _| !unchanged.contains(path));
    let mut present = log.store.capture(files, present, &log.store.newest_files(files.cx).await?).await?;
    let mut steps = Vec::new();
    for (path, file) in target {
        let before = present.remove(&path);
        if before.as_ref().is_none_or(|before| before.object != file.object) {
            steps.push(FileTransition { path, before, after: Some(file) });
        }
    }
    steps.extend(present.into_iter().map(|(path, file)| FileTransition { path, before: Some(file), after: None }));
    Ok(steps)
}
