//! Comparison of the files that an operation left with those before it.

use std::collections::BTreeSet;

use vfs_core::{Operation, Result, VfsPath};

use super::undo_record::{OperationOutcome, RenewedVersions, UndoRecord};
use crate::snapshots::caller_files::{CallerFiles, CurrentFiles};

/// Present files of an operation whose result does not determine them, by what became of them.
#[derive(Debug, Default)]
pub(crate) struct FileComparison {
    /// Paths of files that are as before: with their versions, or for a rename that may not have succeeded with their contents, which a
    /// rollback writes in new versions.
    unchanged: BTreeSet<VfsPath>,
    /// Paths of files that have the versions recorded before the operation.
    same_version: BTreeSet<VfsPath>,
    /// Targets of a rename that have the content of their sources; all of them if the rename succeeded.
    moved: BTreeSet<VfsPath>,
    /// Paths of files that the operation cannot have left: another process wrote them, or a rollback did.
    pub(crate) not_left: BTreeSet<VfsPath>,
}

impl FileComparison {
    pub(crate) async fn new(
        record: &UndoRecord,
        files: &CallerFiles<'_>,
        present: &CurrentFiles,
        outcome: OperationOutcome,
    ) -> Result<Self> {
        let mut comparison = Self::default();
        let compares_contents = record.operation == Operation::Rename && outcome != OperationOutcome::Success;
        for (path, current) in present {
            let before = record.before(path);
            let has_version = before.is_some_and(|before| before.version == current.version);
            let moved = record.source(path).and_then(|source| record.before(&source));
            let (is_unchanged, is_moved) = if compares_contents {
                let is_unchanged = before.is_some() && files.has_content(path, Some(current), before).await?;
                (is_unchanged, moved.is_some() && files.has_content(path, Some(current), moved).await?)
            } else {
                (has_version, moved.is_some())
            };
            let can_be_left = match record.operation {
                // A copy may leave any file below its target.
                Operation::Copy => true,
                Operation::Rename => has_version || is_moved,
                Operation::Delete => has_version,
                _ => record.roots.contains(path) || record.files.contains_key(path),
            };
            comparison.unchanged.extend(is_unchanged.then(|| path.clone()));
            comparison.same_version.extend(has_version.then(|| path.clone()));
            comparison.moved.extend(is_moved.then(|| path.clone()));
            comparison.not_left.extend((!can_be_left).then(|| path.clone()));
        }
        Ok(comparison)
    }

    /// Returns whether a delete or rename had an effect, as far as the `present` files show. Otherwise it is taken for one that was
    /// never made, or was rolled back.
    pub(crate) fn shows_effect(
        &self,
        record: &UndoRecord,
        files: &CallerFiles<'_>,
        present: &CurrentFiles,
        outcome: OperationOutcome,
    ) -> bool {
        let is_unchanged = |path: &VfsPath| self.unchanged.contains(path);
        let is_gone = |path: &VfsPath| !present.contains_key(path);
        // The file at a target was moved there, or is not the one that was to be replaced.
        let has_new_target = self.moved.iter().any(|path| !is_unchanged(path))
            || record.paths_before().any(|path| record.source(path).is_some() && !is_unchanged(path));
        match outcome {
            OperationOutcome::Success => true,
            OperationOutcome::Failure => {
                // A source that is gone was removed by another process, unless something is at its target, or may be.
                let may_be_there = |target: VfsPath| {
                    let is_written = !is_gone(&target) && !is_unchanged(&target);
                    files.is_excluded(&target) || self.moved.contains(&target) || is_written
                };
                let is_moved = |path: &VfsPath| is_gone(path) && record.target(path).is_some_and(may_be_there);
                has_new_target || record.paths_before().any(is_moved)
            }
            OperationOutcome::Unknown => {
                // Files that were written again may have been moved before, even if they have their old contents.
                let has_same_version = |path: &VfsPath| self.same_version.contains(path);
                let may_be_written_again = record.paths_before().any(|path| !is_unchanged(path))
                    && !record.paths_before().any(has_same_version);
                has_new_target || record.paths_before().any(is_gone) || may_be_written_again
            }
        }
    }

    /// Returns the old and the present version of each file that was written again with its old content.
    pub(crate) fn renewed(&self, record: &UndoRecord, present: &CurrentFiles) -> RenewedVersions {
        let renewed = |path: &VfsPath| {
            let (old, new) = (&record.before(path)?.version, &present.get(path)?.version);
            (old != new).then(|| (path.clone(), (old.clone(), new.clone())))
        };
        self.unchanged.iter().filter_map(renewed).collect()
    }
}
