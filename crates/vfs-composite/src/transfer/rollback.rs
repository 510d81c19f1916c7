//! Rollback of a transfer that failed.

use std::collections::HashMap;

use vfs_core::transfer::remove_empty_dirs;
use vfs_core::{
    Backend as _, DeleteRequest, Error, ErrorKind, OpContext, Result, StatRequest, VfsPath, WriteMode, WriteRequest,
};

use super::{CopiedFile, TransferPlan, TransferProgress};
use crate::backend::CompositeBackend;
use crate::journal::OngoingMove;

impl CompositeBackend {
    /// Removes the directories at and below `path`, if there is no file in them.
    pub(crate) async fn remove_emptied(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        match remove_empty_dirs(self, cx, path).await {
            Err(error) if error.is_absence() => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotEmpty => {
                let message = "directory is not empty: a file was added during the move";
                Err(Error::new(ErrorKind::NotEmpty, message).with_path(path).with_source(error))
            }
            pruned => pruned,
        }
    }

    /// Rolls back a transfer that failed with `error`, and returns that error.
    ///
    /// # Errors
    ///
    /// If the rollback is incomplete: the error with the number of files that stay at the target.
    pub(super) async fn rollback(
        &self,
        cx: &OpContext,
        to: &VfsPath,
        plan: &TransferPlan,
        progress: TransferProgress,
        mut recorded: Option<&mut OngoingMove>,
        error: Error,
    ) -> Result<Error> {
        // A rollback completes even if the caller has cancelled.
        let cx = cx.for_cleanup();
        let is_recorded = recorded.is_some();
        if self.only_returns_changes(to) {
            // Changes that are only returned are discarded with the error.
            return Ok(error);
        }
        // If the mark fails, the rollback continues: a recovery then deletes nothing that is written here.
        let mark_result = match &mut recorded {
            Some(recorded) if !progress.copied.is_empty() => self.record_rollback(&cx, recorded, &progress).await,
            _ => Ok(()),
        };
        let mut unrestored = HashMap::new();
        for mut file in progress.copied.into_iter().rev() {
            // The file may have been restored, and only the response lost.
            if self.rollback_file(&cx, &mut file).await.is_err() && !self.is_rolled_back(&cx, &file).await {
                unrestored.insert(file.from.clone(), file);
            }
        }
        if !unrestored.is_empty() {
            let count = unrestored.len();
            let updated = match recorded {
                Some(recorded) if mark_result.is_ok() => self.record_unrestored(&cx, recorded, unrestored).await,
                _ => mark_result,
            };
            let advice = match (is_recorded, &updated) {
                (false, _) => "finish or undo the transfer by hand",
                (true, Ok(())) => "the next recovery finishes their move",
                (true, Err(_)) => "finish the move by hand, as its record cannot be written",
            };
            let error = error.or_path(to).with_consequence(format_args!(
                "{count} files could not be restored and are complete at the target; {advice}"
            ));
            return Err(match updated {
                Ok(()) => error,
                Err(failed) => error.with_source(failed),
            });
        }
        // Failures with empty directories are ignored: neither a missing nor an additional one loses a file.
        if progress.has_emptied {
            for directory in &plan.empty_dirs {
                let _ = self.restore_directory(&cx, &directory.from).await;
            }
        }
        for directory in &plan.empty_dirs {
            // The creation of the directory may have failed midway.
            let _ = self.remove_marker(&cx, &directory.to).await;
        }
        if plan.is_dir && !plan.replaces_target {
            let _ = self.remove_emptied(&cx, to).await;
        }
        Ok(error)
    }

    /// Creates an empty directory again, unless something is there.
    async fn restore_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        match self.stat(cx, StatRequest::new(path.clone())).await {
            Err(error) if error.kind() == ErrorKind::NotFound => self.make_directory(cx, path).await,
            existing => existing.map(drop),
        }
    }

    /// Restores a source that was, or may have been, removed, and sets its new version.
    async fn restore_source(&self, cx: &OpContext, file: &mut CopiedFile) -> Result<()> {
        match self.stat(cx, StatRequest::new(file.from.clone())).await {
            Ok(source) if source.version.as_ref() == Some(&file.source) => Ok(()),
            // The source was changed since, so the copied content is only at the target.
            Ok(source) => Err(Error::conflict(&file.from, source.version)),
            Err(error) if error.is_absence() => {
                let copy = self.fetch(cx, &file.to).await?;
                file.is_restored = true;
                file.source = self.write_copy(cx, &file.from, &copy, None).await?.version;
                file.is_restored = false;
                self.verify_copy(cx, &file.from, &copy).await
            }
            Err(error) => Err(error),
        }
    }

    async fn rollback_file(&self, cx: &OpContext, file: &mut CopiedFile) -> Result<()> {
        // A source that this transfer did not remove stays as it is, even if another caller has changed it.
        if file.is_source_removed {
            self.restore_source(cx, file).await?;
        }
        let (to, version) = (file.to.clone(), file.version.clone());
        match &file.before {
            Some(before) => {
                let request = WriteRequest::new(to, before.content.clone()).mode(WriteMode::IfVersion(version));
                self.write(cx, request).await.map(drop)
            }
            None => self.delete(cx, DeleteRequest::new(to).expected_version(version)).await.map(drop),
        }
    }

    /// Returns whether a file is at the source, and the earlier content at the target.
    async fn is_rolled_back(&self, cx: &OpContext, file: &CopiedFile) -> bool {
        let is_before = match (self.fetch(cx, &file.to).await, &file.before) {
            (Ok(existing), Some(before)) => existing.content == before.content,
            (Err(error), None) => error.kind() == ErrorKind::NotFound,
            _ => false,
        };
        is_before && self.stat(cx, StatRequest::new(file.from.clone())).await.is_ok()
    }
}
