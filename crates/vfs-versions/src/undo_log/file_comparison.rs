//! Comparison of the files that an operation left with those before it.

use std::collections::BTreeSet;

use vfs_core::{Operation, Result, VfsPath};

use super::RenewedVersions;
use super::undo_record::{OperationOutcome, UndoRecord};
use crate::snapshots::caller_files::{CallerFiles, CurrentFiles};

/// Present files of an operation whose result does not determine them, by what became of them.
#[derive(Debug, Default)]
pub(crate) struct FileComparison {
    /// Paths of files that have the content that they had before, maybe in another version.
    unchanged: BTreeSet<VfsPath>,
    /// Targets of a rename that have the content of their sources; all of them if the rename succeeded.
    moved: BTreeSet<VfsPath>,
    /// Paths of files that another process wrote, as the operation cannot have left them.
    pub(crate) foreign: BTreeSet<VfsPath>,
}

impl FileComparison {
    pub(crate) async fn new(
        record: &UndoRecord,
        files: &CallerFiles<'_>,
        present: &CurrentFiles,
        outcome: OperationOutcome,
    ) -> Result<Self> {
        let mut comparison = Self::default();
        for (path, current) in present {
            let before = record.before(path);
            let is_unchanged = before.is_some() && files.has_content(path, Some(current), before).await?;
            let moved = record.source(path).and_then(|source| record.before(&source));
            let is_moved = moved.is_some()
                && (outcome == OperationOutcome::Success || files.has_content(path, Some(current), moved).await?);
            let can_be_left = match record.operation {
                // A copy may leave any file below its target.
                Operation::Copy => true,
                Operation::Rename => is_unchanged || is_moved,
                Operation::Delete => is_unchanged,
                _ => record.roots.contains(path) || record.files.contains_key(path),
            };
            comparison.unchanged.extend(is_unchanged.then(|| path.clone()));
            comparison.moved.extend(is_moved.then(|| path.clone()));
            comparison.foreign.extend((!can_be_left).then(|| path.clone()));
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
        match (outcome, record.operation) {
            (OperationOutcome::Success, _) => true,
            (_, Operation::Rename) => {
                // The target that a rename replaces is compared itself, and a source together with its target.
                let is_affected = |path: &VfsPath| match record.target(path) {
                    Some(target) => self.is_source_affected(path, &target, files, present, outcome),
                    None => !is_unchanged(path),
                };
                self.moved.iter().any(|path| !is_unchanged(path)) || record.paths_before().any(is_affected)
            }
            _ => {
                record.paths_before().any(|path| !present.contains_key(path))
                    || !record.paths_before().any(is_unchanged)
            }
        }
    }

    /// Returns whether a rename may have moved the file at `path`. If it failed, a file that is gone was removed by another process,
    /// unless something took the place of its target.
    fn is_source_affected(
        &self,
        path: &VfsPath,
        target: &VfsPath,
        files: &CallerFiles<'_>,
        present: &CurrentFiles,
        outcome: OperationOutcome,
    ) -> bool {
        let is_target_taken = files.is_excluded(target)
            || self.moved.contains(target)
            || (present.contains_key(target) && !self.unchanged.contains(target));
        let is_gone = !present.contains_key(path);
        match outcome {
            OperationOutcome::Failure => is_gone && is_target_taken,
            _ => is_gone || (is_target_taken && !self.unchanged.contains(path)),
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
