//! Write-ahead undo log: records of the files that changes are about to touch.

mod affected_paths;
mod file_comparison;
mod undo;
pub(crate) mod undo_record;
mod undo_report;

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::MutexGuard;
use vfs_core::error::ErrorDetail;
use vfs_core::operation::{OutputRef, RequestRef};
use vfs_core::{Error, ErrorKind, OpContext, Operation, Result, Version, VfsPath};

pub use self::undo_report::{UndoEntry, UndoReport};

use self::affected_paths::affected_paths;
use self::undo_record::{OperationOutcome, RenewedVersions, UndoRecord, versions};
use crate::snapshots::apply_transitions::{FileTransition, FileVersions, existing};
use crate::snapshots::caller_files::{CallerFiles, CurrentFiles};
use crate::snapshots::checkpoint_store::CheckpointStore;
use crate::versioned_entry::StoredFiles;

/// Minimum number of records between two removals of unreferenced contents.
const MIN_COLLECTION_INTERVAL: u64 = 100;

/// Position in the undo log.
#[derive(Debug, Default)]
pub(crate) struct UndoCursor {
    /// Number of the next record; `None` if it has to be read from the store.
    next: Option<u64>,
    /// Number of a record whose operation has no known result.
    open: Option<u64>,
}

/// Undo log of a store, locked by one change at a time.
#[derive(Debug)]
pub(crate) struct UndoLog<'a> {
    pub(crate) store: &'a CheckpointStore,
    pub(crate) cursor: MutexGuard<'a, UndoCursor>,
    pub(crate) max_records: u64,
}

impl UndoLog<'_> {
    /// Writes the undo record of `action` before it starts. Returns `None` if the backend will refuse the operation.
    pub(crate) async fn begin(
        &mut self,
        files: &CallerFiles<'_>,
        action: RequestRef<'_>,
    ) -> Result<Option<UndoRecord>> {
        if self.max_records == 0 {
            return Ok(None);
        }
        self.settle(files).await?;
        let Some(roots) = affected_paths(files, action).await? else { return Ok(None) };
        let (mut present, mut broken_links) = (CurrentFiles::new(), BTreeSet::new());
        for root in &roots {
            let tree = files.tree(root).await?;
            present.extend(tree.files);
            broken_links.extend(tree.broken_links);
        }
        let stored = if present.len() > 1 { self.store.newest_files(files.cx).await? } else { StoredFiles::new() };
        let before = self.store.capture(files, present, &stored).await?.into_iter();
        let before = before.map(|(path, file)| (path, Some(file)));
        let paths = action.paths().cloned().collect();
        let record = UndoRecord::begin(files.cx, action.operation(), paths, roots, before);
        self.append(files.cx, UndoRecord { broken_links, ..record }).await.map(Some)
    }

    /// Writes the undo record of a restore by `steps` before it starts.
    pub(crate) async fn begin_restore(
        &mut self,
        cx: &OpContext,
        steps: &[FileTransition],
    ) -> Result<Option<UndoRecord>> {
        if self.max_records == 0 {
            return Ok(None);
        }
        let before = steps.iter().map(|step| (step.path.clone(), step.before.clone()));
        let record = UndoRecord::begin(cx, Operation::Restore, vec![VfsPath::root()], Vec::new(), before);
        self.append(cx, record).await.map(Some)
    }

    async fn append(&mut self, cx: &OpContext, mut record: UndoRecord) -> Result<UndoRecord> {
        let next = self.cursor.next.unwrap_or(1);
        let numbered = |number| UndoRecord { number, ..record.clone() };
        record.number = self.store.undo_records.append(cx, next, numbered).await?;
        *self.cursor = UndoCursor { next: Some(record.number + 1), open: Some(record.number) };
        Ok(record)
    }

    /// Completes or removes `record` after its operation.
    pub(crate) async fn conclude(&mut self, files: &CallerFiles<'_>, record: UndoRecord, result: ReportedOutcome) {
        let cx = files.cx.for_cleanup();
        let files = CallerFiles { cx: &cx, ..*files };
        let concluded = match result {
            ReportedOutcome::Success(after) => self.complete(&files, record, after).await,
            ReportedOutcome::NoEffect => {
                self.remove(&cx, &record).await;
                Ok(())
            }
            ReportedOutcome::PossibleReplay(after) => self.complete_or_remove(&files, record, after).await,
            ReportedOutcome::Partial(outcome) => self.complete_partial(&files, record, outcome).await,
            ReportedOutcome::Unknown => self.settle(&files).await,
        };
        if let Err(error) = concluded {
            tracing::warn!(%error, "failed to complete an undo record, which is settled before the next change");
        }
    }

    /// Completes or removes `record` of a restore that left `versions`, also after a failure and rollback.
    pub(crate) async fn conclude_restore(&mut self, cx: &OpContext, mut record: UndoRecord, versions: FileVersions) {
        record.files.retain(|path, _| versions.contains_key(path));
        record.complete(existing(versions));
        if let Err(error) = self.save_or_remove(cx, &record).await {
            tracing::warn!(%error, "failed to complete the undo record of a restore, which is settled before the next change");
        }
    }

    /// Saves `record` with the versions `after` of its files, or those that the operation left.
    async fn complete(
        &mut self,
        files: &CallerFiles<'_>,
        mut record: UndoRecord,
        after: Option<BTreeMap<VfsPath, Version>>,
    ) -> Result<()> {
        match after {
            Some(after) => record.complete(after),
            None => drop(record.complete_by_files(files, OperationOutcome::Success).await?),
        }
        self.save(files.cx, &record).await
    }

    /// Completes `record` by the present files, or removes it if its operation had no effect.
    async fn complete_partial(
        &mut self,
        files: &CallerFiles<'_>,
        mut record: UndoRecord,
        outcome: OperationOutcome,
    ) -> Result<()> {
        let renewed = record.complete_by_files(files, outcome).await?;
        self.save_or_remove_renewed(files, &record, &renewed).await
    }

    /// Completes `record` like [`complete`](Self::complete), or removes it if its operation had no effect. Otherwise an undo of this
    /// record would succeed without effect, and the record would take the place of an older one.
    async fn complete_or_remove(
        &mut self,
        files: &CallerFiles<'_>,
        mut record: UndoRecord,
        after: Option<BTreeMap<VfsPath, Version>>,
    ) -> Result<()> {
        if let (Operation::Delete | Operation::Rename, Some(removed)) = (record.operation, record.roots.first()) {
            if files.entry(removed).await?.is_none() {
                return self.complete(files, record, after).await;
            }
            // Unless this is a replay, another process has written there since.
            return self.complete_partial(files, record, OperationOutcome::Unknown).await;
        }
        let after = match (record.present_files(files).await.map(versions), after) {
            (Ok(left), _) if !record.is_changed_by(&left) => {
                self.remove(files.cx, &record).await;
                return Ok(());
            }
            // Another process may have changed the file since, so the present version is not the one that the operation left.
            (_, Some(after)) => after,
            (left, None) => left?,
        };
        record.complete(after);
        self.save_or_remove(files.cx, &record).await
    }

    /// Saves the completed `record`, or removes it if its operation had no effect.
    async fn save_or_remove(&mut self, cx: &OpContext, record: &UndoRecord) -> Result<()> {
        if record.has_effect() {
            return self.save(cx, record).await;
        }
        self.remove(cx, record).await;
        Ok(())
    }

    /// Saves or removes the completed `record`, after older records have the versions in which a rollback wrote files again.
    async fn save_or_remove_renewed(
        &mut self,
        files: &CallerFiles<'_>,
        record: &UndoRecord,
        renewed: &RenewedVersions,
    ) -> Result<()> {
        match self.save_in_records(files, renewed, Some(record.number)).await {
            Err(error) if error.kind() != ErrorKind::Internal => return Err(error),
            // A damaged record keeps neither this one from being removed nor later changes from being made.
            Err(error) => {
                tracing::warn!(%error, "failed to update undo records, so some older operations cannot be undone")
            }
            Ok(()) => {}
        }
        self.save_or_remove(files.cx, record).await
    }

    async fn save(&mut self, cx: &OpContext, record: &UndoRecord) -> Result<()> {
        self.store.undo_records.save(cx, record.number, record).await?;
        self.cursor.open = None;
        let Some(expired) = record.number.checked_sub(self.max_records) else { return Ok(()) };
        self.store.undo_records.remove(cx, expired).await?;
        // If no snapshot is ever forgotten, nothing else removes the contents of expired records.
        if record.number.is_multiple_of(self.max_records.max(MIN_COLLECTION_INTERVAL)) {
            self.store.collect_garbage(cx).await;
        }
        Ok(())
    }

    /// Removes the record of an operation without effect.
    async fn remove(&mut self, cx: &OpContext, record: &UndoRecord) {
        match self.store.undo_records.remove(cx, record.number).await {
            Ok(()) => *self.cursor = UndoCursor { next: Some(record.number), open: None },
            Err(error) => tracing::warn!(%error, "failed to remove the undo record of a failed change"),
        }
    }

    /// Completes or removes the record of an operation without a known result, according to the present files.
    pub(crate) async fn settle(&mut self, files: &CallerFiles<'_>) -> Result<()> {
        if self.cursor.next.is_none() {
            self.load_cursor(files.cx).await?;
        }
        let Some(number) = self.cursor.open else { return Ok(()) };
        let mut record = match self.store.undo_records.load(files.cx, number).await {
            Ok(Some(record)) if !record.is_done => record,
            Ok(_) => {
                self.cursor.open = None;
                return Ok(());
            }
            // Skip a damaged record: otherwise no file could be changed any more.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::warn!(%error, "failed to read an undo record, whose operation cannot be undone");
                self.cursor.open = None;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        match record.complete_by_files(files, OperationOutcome::Unknown).await {
            Ok(renewed) => self.save_or_remove_renewed(files, &record, &renewed).await,
            Err(error) if error.is_temporary() || error.kind() == ErrorKind::Cancelled => Err(error),
            Err(error) => {
                // Skip this record, too: an undo completes it if the files can be read then.
                tracing::warn!(%error, "failed to complete an undo record, whose operation cannot be undone for now");
                self.cursor.open = None;
                Ok(())
            }
        }
    }

    /// Reads the number of the next record, and of an operation whose process ended before it did. Removes expired records.
    async fn load_cursor(&mut self, cx: &OpContext) -> Result<()> {
        let numbers = self.store.undo_records.numbers(cx).await?;
        let last = numbers.last().map_or(0, |(number, _)| *number);
        let oldest = (last + 1).saturating_sub(self.max_records);
        for (number, _) in numbers.iter().filter(|(number, _)| *number < oldest) {
            self.store.undo_records.remove(cx, *number).await?;
        }
        *self.cursor = UndoCursor { next: Some(last + 1), open: (last > 0).then_some(last) };
        Ok(())
    }
}

/// Result of an operation, as far as its undo record is concerned.
#[derive(Debug)]
pub(crate) enum ReportedOutcome {
    /// Success with these versions; `None` if they have to be read.
    Success(Option<BTreeMap<VfsPath, Version>>),
    /// Failure without effect.
    NoEffect,
    /// Failure of a delete or rename that may have removed or moved some of its files.
    Partial(OperationOutcome),
    /// Success, whose result may be that of an earlier call with the same operation id, so that this one had no effect. The
    /// versions are those of [`Success`](Self::Success).
    PossibleReplay(Option<BTreeMap<VfsPath, Version>>),
    /// Failure with an unknown effect.
    Unknown,
}

impl ReportedOutcome {
    pub(crate) fn of(record: &UndoRecord, output: Result<OutputRef<'_>, &Error>, may_be_replayed: bool) -> Self {
        match output {
            Ok(output) if may_be_replayed => Self::PossibleReplay(reported_versions(record, output)),
            Ok(output) => Self::Success(reported_versions(record, output)),
            Err(error) if record.operation == Operation::Delete && has_removed_files(error) => {
                Self::Partial(OperationOutcome::Success)
            }
            Err(error) if may_have_effect(record.operation, error.kind()) => Self::Unknown,
            // A rename of many files may not have been rolled back, whatever stopped it.
            Err(_) if record.operation == Operation::Rename => Self::Partial(OperationOutcome::Failure),
            Err(_) => Self::NoEffect,
        }
    }
}

/// Returns the versions that an operation left, as far as its result determines them.
fn reported_versions(record: &UndoRecord, output: OutputRef<'_>) -> Option<BTreeMap<VfsPath, Version>> {
    let [root] = &record.roots[..] else { return None };
    let version = match output {
        OutputRef::Delete(_) => return Some(BTreeMap::new()),
        OutputRef::Write(write) | OutputRef::CommitWriter(write) => Some(&write.version),
        OutputRef::Edit(edit) => Some(&edit.version),
        OutputRef::Upload(upload) => upload.version.as_ref(),
        _ => None,
    };
    version.map(|version| BTreeMap::from([(root.clone(), version.clone())]))
}

fn has_removed_files(error: &Error) -> bool {
    matches!(error.detail(), Some(ErrorDetail::PartialDelete { files: 1.. }))
}

/// Returns whether an error of `kind` leaves the effect of `operation` unknown. A tree that is removed, moved or copied in many steps may
/// be left at a part that is in use; one file is as another writer left it.
fn may_have_effect(operation: Operation, kind: ErrorKind) -> bool {
    use ErrorKind::{Busy, Cancelled, Internal, NotEmpty, PermissionDenied, StorageFull, Timeout, Unavailable};
    match kind {
        Busy => matches!(operation, Operation::Delete | Operation::Rename | Operation::Copy | Operation::Restore),
        _ => matches!(kind, Cancelled | Internal | NotEmpty | PermissionDenied | StorageFull | Timeout | Unavailable),
    }
}
