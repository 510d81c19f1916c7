//! What people do to layers, recorded in the audit logs further out.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use vfs_core::{
    ChangeSet, ErrorKind, MapPaths as _, OpContext, Operation, RestoreRequest, Result, SnapshotInfo, SnapshotRequest,
    Snapshots as _, VfsPath,
};
use vfs_layers::{AuditOperation, Outcome};
use vfs_versions::{CheckpointedBackend, Commit, OverlayBackend, UndoEntry, UndoReport};

use crate::built::Placed;

impl<T> Placed<T> {
    /// Performs `work`, in the namespace of the caller, and has all logs further out record it.
    async fn recorded<'a, R: Send + 'a>(
        &'a self,
        cx: &'a OpContext,
        operation: AuditOperation,
        work: BoxFuture<'a, Result<R>>,
        describe: fn(&R) -> (Outcome, String),
    ) -> Result<R> {
        let nested = self
            .audits
            .iter()
            .fold(work, |work, (audit, path)| audit.record(cx, operation, path, work, describe).boxed());
        nested.await
    }
}

impl Placed<OverlayBackend> {
    /// What was changed, in the namespace of [`Built::backend`](crate::Built::backend).
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`].
    pub async fn diff(&self, cx: &OpContext) -> Result<ChangeSet> {
        let changes = self.part.diff(cx).await.map_err(|error| self.rebase.error(error))?;
        changes.map_paths(&self.rebase)
    }

    /// Brings what was changed to what lies beneath; with paths in the namespace of
    /// [`Built::backend`](crate::Built::backend). It is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::commit`]; `unavailable` where a log cannot be written.
    pub async fn commit(&self, cx: &OpContext) -> Result<Commit> {
        let work = async {
            match self.part.commit(cx).await.map_err(|error| self.rebase.error(error))? {
                Commit::Applied(changes) => Ok(Commit::Applied(changes.map_paths(&self.rebase)?)),
                Commit::Conflicts(mut conflicts) => {
                    for conflict in &mut conflicts {
                        conflict.path = self.rebase.to_outer(&conflict.path)?;
                    }
                    Ok(Commit::Conflicts(conflicts))
                }
                other => Ok(other),
            }
        };
        let changed = if self.histories.is_empty() {
            Vec::new()
        } else {
            self.diff(cx).await?.changes.into_iter().map(|change| change.path).collect()
        };
        let work = self.histories.iter().fold(work.boxed(), |work, (checkpoints, rebase)| {
            let paths: Vec<_> = changed.iter().filter_map(|path| rebase.to_inner(path).ok()).collect();
            async move { checkpoints.keep_undoable(cx, &paths, work).await }.boxed()
        });
        self.recorded(cx, AuditOperation::Commit, work, |commit| match commit {
            Commit::Conflicts(conflicts) => {
                let paths = conflicts.iter().map(|conflict| conflict.path.as_str());
                (Outcome::Failed(ErrorKind::Conflict), counted(paths, "conflict"))
            }
            Commit::Applied(changes) => (Outcome::Ok, files(changes)),
            _ => (Outcome::Ok, String::new()),
        })
        .await
    }

    /// Discards all changes, and returns what they were. It is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`] and [`OverlayBackend::discard`]; `unavailable` where a log cannot be written.
    pub async fn discard(&self, cx: &OpContext) -> Result<ChangeSet> {
        self.discard_paths(cx, std::slice::from_ref(self.rebase.outer())).await
    }

    /// Discards the changes at and below each of `paths`, in the namespace of [`Built::backend`](crate::Built::backend), and
    /// returns what they were. Paths outside of the overlay are skipped. It is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`] and [`OverlayBackend::discard_paths`]; `unavailable` where a log cannot be written.
    pub async fn discard_paths(&self, cx: &OpContext, paths: &[VfsPath]) -> Result<ChangeSet> {
        let outer = self.rebase.outer();
        let inner = paths.iter().filter_map(|path| {
            if outer.starts_with(path) { Some(self.rebase.inner().clone()) } else { self.rebase.to_inner(path).ok() }
        });
        let inner: Vec<_> = inner.collect();
        if inner.is_empty() {
            return Ok(ChangeSet::default());
        }
        let work = async {
            let mut changes = self.diff(cx).await?;
            let discarded = self.part.discard_paths(cx, &inner).await.map_err(|error| self.rebase.error(error))?;
            let is_discarded =
                |path: &VfsPath| self.rebase.to_inner(path).is_ok_and(|inner| discarded.binary_search(&inner).is_ok());
            changes.changes.retain(|change| is_discarded(&change.path));
            Ok(changes)
        };
        self.recorded(cx, AuditOperation::Discard, work.boxed(), |changes| (Outcome::Ok, files(changes))).await
    }
}

impl Placed<CheckpointedBackend> {
    /// Keeps the state of now. It is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::snapshot`](vfs_core::Snapshots::snapshot); `unavailable` where a log cannot be written.
    pub async fn snapshot(&self, cx: &OpContext, request: SnapshotRequest) -> Result<SnapshotInfo> {
        let work = async { self.part.snapshot(cx, request).await.map_err(|error| self.rebase.error(error)) };
        let describe = |taken: &SnapshotInfo| (Outcome::Ok, taken.id.as_str().to_owned());
        self.recorded(cx, Operation::Snapshot.into(), work.boxed(), describe).await
    }

    /// Goes back to a state. It is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::restore`](vfs_core::Snapshots::restore); `unavailable` where a log cannot be written.
    pub async fn restore(&self, cx: &OpContext, request: RestoreRequest) -> Result<()> {
        let id = request.id.clone();
        let work = async {
            self.part.restore(cx, request).await.map_err(|error| self.rebase.error(error))?;
            Ok(id)
        };
        let describe = |id: &vfs_core::SnapshotId| (Outcome::Ok, id.as_str().to_owned());
        self.recorded(cx, Operation::Restore.into(), work.boxed(), describe).await.map(drop)
    }

    /// Takes back the last operations, at most `operations`; with paths in the namespace of
    /// [`Built::backend`](crate::Built::backend). It is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointedBackend::undo`]; `unavailable` where a log cannot be written.
    pub async fn undo(&self, cx: &OpContext, operations: usize) -> Result<UndoReport> {
        let work = async {
            let mut undone = self.part.undo(cx, operations).await.map_err(|error| self.rebase.error(error))?;
            undone.entries.iter_mut().for_each(|entry| self.to_outer(entry));
            Ok(undone)
        };
        self.recorded(cx, AuditOperation::Undo, work.boxed(), |undone| {
            let entries: Vec<_> = undone.entries.iter().map(UndoEntry::to_string).collect();
            (Outcome::Ok, counted(entries.iter().map(String::as_str), "operation"))
        })
        .await
    }

    /// The operations that can be taken back, the newest first; with paths in the namespace of
    /// [`Built::backend`](crate::Built::backend).
    ///
    /// # Errors
    ///
    /// Those of [`CheckpointedBackend::history`].
    pub async fn history(&self, cx: &OpContext) -> Result<Vec<UndoEntry>> {
        let mut history = self.part.history(cx).await.map_err(|error| self.rebase.error(error))?;
        history.iter_mut().for_each(|entry| self.to_outer(entry));
        Ok(history)
    }

    fn to_outer(&self, entry: &mut UndoEntry) {
        for path in &mut entry.paths {
            // What was done to more than the caller can see, such as going back to a checkpoint, was done to all of that.
            *path = self.rebase.to_outer(path).unwrap_or_else(|_| self.rebase.outer().clone());
        }
    }
}

fn files(changes: &ChangeSet) -> String {
    counted(changes.changes.iter().map(|change| change.path.as_str()), "file")
}

/// How many there are, and which: `2 files: /a, /b`.
fn counted<'a>(names: impl ExactSizeIterator<Item = &'a str>, noun: &str) -> String {
    let (count, names) = (names.len(), names.collect::<Vec<_>>().join(", "));
    match count {
        0 => format!("0 {noun}s"),
        1 => format!("1 {noun}: {names}"),
        _ => format!("{count} {noun}s: {names}"),
    }
}
