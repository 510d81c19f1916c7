//! Audited operations of operators on overlays and checkpoints.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use vfs_core::path::MapResultPaths as _;
use vfs_core::snapshots::{RestoreRequest, SnapshotDiffResult, SnapshotInfo, SnapshotRequest};
use vfs_core::{ErrorKind, OpContext, Operation, Result, Snapshots as _, VfsPath};
use vfs_layers::{AuditOperation, Outcome};
use vfs_versions::{CheckpointedBackend, CommitResult, OverlayBackend, UndoEntry, UndoReport};

use crate::layer_handle::LayerHandle;

impl<T> LayerHandle<T> {
    /// Awaits `work` and records its outcome in all audit logs further out.
    async fn record<'a, R: Send + 'a>(
        &'a self,
        cx: &'a OpContext,
        operation: AuditOperation,
        work: BoxFuture<'a, Result<R>>,
        describe: fn(&R) -> (Outcome, String),
    ) -> Result<R> {
        let recorded = self
            .audits
            .iter()
            .fold(work, |work, (audit, path)| audit.record(cx, operation, path, work, describe).boxed());
        recorded.await
    }
}

impl LayerHandle<OverlayBackend> {
    /// Returns the changes of the overlay, with paths of [`ConfiguredBackend::backend`](crate::ConfiguredBackend::backend).
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`].
    pub async fn diff(&self, cx: &OpContext) -> Result<SnapshotDiffResult> {
        let changes = self.layer.diff(cx).await.map_err(|error| self.mapping.error(error))?;
        changes.map_paths(&self.mapping)
    }

    /// Applies the changes of the overlay to the backend below, and records that in the audit logs further out. Paths are those
    /// of [`ConfiguredBackend::backend`](crate::ConfiguredBackend::backend).
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::commit`]; `unavailable` if an audit log cannot be written.
    pub async fn commit(&self, cx: &OpContext) -> Result<CommitResult> {
        let work = async {
            match self.layer.commit(cx).await.map_err(|error| self.mapping.error(error))? {
                CommitResult::Applied(changes) => Ok(CommitResult::Applied(changes.map_paths(&self.mapping)?)),
                CommitResult::Conflicts(mut conflicts) => {
                    for conflict in &mut conflicts {
                        conflict.path = self.mapping.to_outer(&conflict.path)?;
                    }
                    Ok(CommitResult::Conflicts(conflicts))
                }
                other => Ok(other),
            }
        };
        let changed = if self.checkpoints.is_empty() {
            Vec::new()
        } else {
            self.diff(cx).await?.changes.into_iter().map(|change| change.path).collect()
        };
        let work = self.checkpoints.iter().fold(work.boxed(), |work, (checkpoints, mapping)| {
            let paths: Vec<_> = changed.iter().filter_map(|path| mapping.to_inner(path).ok()).collect();
            async move { checkpoints.keep_undoable(cx, &paths, work).await }.boxed()
        });
        self.record(cx, AuditOperation::Commit, work, |commit| match commit {
            CommitResult::Conflicts(conflicts) => {
                let paths = conflicts.iter().map(|conflict| conflict.path.as_str());
                (Outcome::Failed(ErrorKind::Conflict), list_with_count(paths, "conflict"))
            }
            CommitResult::Applied(changes) => (Outcome::Ok, list_files(changes)),
            _ => (Outcome::Ok, String::new()),
        })
        .await
    }

    /// Discards all changes and returns them, and records that in the audit logs further out.
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`] and [`OverlayBackend::discard`]; `unavailable` if an audit log cannot be written.
    pub async fn discard(&self, cx: &OpContext) -> Result<SnapshotDiffResult> {
        self.discard_paths(cx, std::slice::from_ref(self.mapping.outer())).await
    }

    /// Discards the changes at and below each of `paths` and returns them, and records that in the audit logs further out.
    ///
    /// # Behaviour
    ///
    /// Paths are those of [`ConfiguredBackend::backend`](crate::ConfiguredBackend::backend). Paths outside the overlay are skipped.
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`] and [`OverlayBackend::discard_paths`]; `unavailable` if an audit log cannot be written.
    pub async fn discard_paths(&self, cx: &OpContext, paths: &[VfsPath]) -> Result<SnapshotDiffResult> {
        let outer = self.mapping.outer();
        let inner = paths.iter().filter_map(|path| {
            if outer.starts_with(path) { Some(self.mapping.inner().clone()) } else { self.mapping.to_inner(path).ok() }
        });
        let inner: Vec<_> = inner.collect();
        if inner.is_empty() {
            return Ok(SnapshotDiffResult::default());
        }
        let work = async {
            let mut changes = self.diff(cx).await?;
            let discarded = self.layer.discard_paths(cx, &inner).await.map_err(|error| self.mapping.error(error))?;
            let is_discarded =
                |path: &VfsPath| self.mapping.to_inner(path).is_ok_and(|inner| discarded.binary_search(&inner).is_ok());
            changes.changes.retain(|change| is_discarded(&change.path));
            Ok(changes)
        };
        self.record(cx, AuditOperation::Discard, work.boxed(), |changes| (Outcome::Ok, list_files(changes))).await
    }
}

impl LayerHandle<CheckpointedBackend> {
    /// Takes a snapshot of the current state, and records that in the audit logs further out.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::snapshot`](vfs_core::Snapshots::snapshot); `unavailable` if an audit log cannot be written.
    pub async fn snapshot(&self, cx: &OpContext, request: SnapshotRequest) -> Result<SnapshotInfo> {
        let work = async { self.layer.snapshot(cx, request).await.map_err(|error| self.mapping.error(error)) };
        let describe = |snapshot: &SnapshotInfo| (Outcome::Ok, snapshot.id.as_str().to_owned());
        self.record(cx, Operation::Snapshot.into(), work.boxed(), describe).await
    }

    /// Restores a snapshot, and records that in the audit logs further out.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::restore`](vfs_core::Snapshots::restore); `unavailable` if an audit log cannot be written.
    pub async fn restore(&self, cx: &OpContext, request: RestoreRequest) -> Result<()> {
        let id = request.id.clone();
        let work = async {
            self.layer.restore(cx, request).await.map_err(|error| self.mapping.error(error))?;
            Ok(id)
        };
        let describe = |id: &vfs_core::snapshots::SnapshotId| (Outcome::Ok, id.as_str().to_owned());
        self.record(cx, Operation::Restore.into(), work.boxed(), describe).await.map(drop)
    }

    /// Undoes the last operations, at most `operations`, and records that in the audit logs further out. Paths are those of
    /// [`ConfiguredBackend::backend`](crate::ConfiguredBackend::backend).
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointedBackend::undo`]; `unavailable` if an audit log cannot be written.
    pub async fn undo(&self, cx: &OpContext, operations: usize) -> Result<UndoReport> {
        let work = async {
            let mut report = self.layer.undo(cx, operations).await.map_err(|error| self.mapping.error(error))?;
            report.entries.iter_mut().for_each(|entry| self.to_outer(entry));
            Ok(report)
        };
        self.record(cx, AuditOperation::Undo, work.boxed(), |report| {
            let entries: Vec<_> = report.entries.iter().map(UndoEntry::to_string).collect();
            (Outcome::Ok, list_with_count(entries.iter().map(String::as_str), "operation"))
        })
        .await
    }

    /// Returns the operations that can be undone, newest first. Paths are those of
    /// [`ConfiguredBackend::backend`](crate::ConfiguredBackend::backend).
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointedBackend::history`].
    pub async fn history(&self, cx: &OpContext) -> Result<Vec<UndoEntry>> {
        let mut history = self.layer.history(cx).await.map_err(|error| self.mapping.error(error))?;
        history.iter_mut().for_each(|entry| self.to_outer(entry));
        Ok(history)
    }

    fn to_outer(&self, entry: &mut UndoEntry) {
        for path in &mut entry.paths {
            // A path outside the mapping belongs to an operation on more than this mount, such as a restore.
            *path = self.mapping.to_outer(path).unwrap_or_else(|_| self.mapping.outer().clone());
        }
    }
}

fn list_files(changes: &SnapshotDiffResult) -> String {
    list_with_count(changes.changes.iter().map(|change| change.path.as_str()), "file")
}

/// Returns the count and the names, such as `2 files: /a, /b`.
fn list_with_count<'a>(names: impl ExactSizeIterator<Item = &'a str>, noun: &str) -> String {
    let (count, names) = (names.len(), names.collect::<Vec<_>>().join(", "));
    match count {
        0 => format!("0 {noun}s"),
        1 => format!("1 {noun}: {names}"),
        _ => format!("{count} {noun}s: {names}"),
    }
}
