//! Making everything as it was before a transfer that failed.

use std::collections::HashMap;

use vfs_core::{
    Backend as _, DeleteRequest, Error, ErrorKind, OpContext, Result, StatRequest, VfsPath, WriteMode, WriteRequest,
    remove_empty_dirs,
};

use super::{Inventory, Placed, Progress};
use crate::backend::CompositeBackend;
use crate::journal::RecordedMove;

impl CompositeBackend {
    /// Removes the directories that are left at and below `path`, if there is no file in them.
    pub(crate) async fn remove_emptied(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        match remove_empty_dirs(self, cx, path).await {
            Err(error) if error.is_absence() => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotEmpty => {
                let message = "something was put there meanwhile, which stays";
                Err(Error::new(ErrorKind::NotEmpty, message).with_path(path).with_source(error))
            }
            pruned => pruned,
        }
    }

    /// Makes everything as it was before a transfer that failed with `error`, which it gives back.
    ///
    /// # Errors
    ///
    /// Where not all could be put back: what failed, and where the files are.
    pub(super) async fn put_back(
        &self,
        cx: &OpContext,
        to: &VfsPath,
        inventory: &Inventory,
        progress: Progress,
        mut recorded: Option<&mut RecordedMove>,
        error: Error,
    ) -> Result<Error> {
        // The caller may have given up, which is no reason to leave half of it.
        let cx = cx.for_cleanup();
        let is_recorded = recorded.is_some();
        if self.returns(to) {
            // Nothing was done there but told, and is not told now.
            return Ok(error);
        }
        // Without the mark a recovery deletes nothing that is written here, so it is no reason to leave half of the move.
        let marked = match &mut recorded {
            Some(recorded) if !progress.placed.is_empty() => self.record_rollback(&cx, recorded, &progress).await,
            _ => Ok(()),
        };
        let mut left = HashMap::new();
        for mut file in progress.placed.into_iter().rev() {
            // It may have been put back all the same, with only an answer lost.
            if self.put_back_file(&cx, &mut file).await.is_err() && !self.is_back(&cx, &file).await {
                left.insert(file.from.clone(), file);
            }
        }
        if !left.is_empty() {
            let count = left.len();
            let updated = match recorded {
                Some(recorded) if marked.is_ok() => self.record_left(&cx, recorded, left).await,
                _ => marked,
            };
            let advice = match (is_recorded, &updated) {
                (false, _) => "finish the move by hand",
                (true, Ok(())) => "the next recovery finishes their move",
                (true, Err(_)) => "finish the move by hand, as its record cannot be written",
            };
            let error = error.or_path(to).with_consequence(format_args!(
                "{count} files could not be put back, and are at the target, whole: {advice}"
            ));
            return Err(match updated {
                Ok(()) => error,
                Err(failed) => error.with_source(failed),
            });
        }
        // Directories without files do no harm, whether they are missing at the source or left at the target.
        if progress.has_emptied {
            for directory in &inventory.empty {
                let _ = self.restore_directory(&cx, &directory.from).await;
            }
        }
        for directory in &inventory.empty {
            // Making it may have failed midway.
            let _ = self.remove_marker(&cx, &directory.to).await;
        }
        if inventory.is_dir && !inventory.replaced {
            let _ = self.remove_emptied(&cx, to).await;
        }
        Ok(error)
    }

    /// Makes a directory again that had nothing in it, unless something is there.
    async fn restore_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        match self.stat(cx, StatRequest::new(path.clone())).await {
            Err(error) if error.kind() == ErrorKind::NotFound => self.make_directory(cx, path).await,
            there => there.map(drop),
        }
    }

    /// Puts a source back that was, or may have been, removed, and sets the version that is there.
    async fn restore_source(&self, cx: &OpContext, file: &mut Placed) -> Result<()> {
        match self.stat(cx, StatRequest::new(file.from.clone())).await {
            Ok(source) if source.version.as_ref() == Some(&file.source) => Ok(()),
            // It was changed since: what was copied is only at the target.
            Ok(source) => Err(Error::conflict(&file.from, source.version)),
            Err(error) if error.is_absence() => {
                let copy = self.fetch(cx, &file.to).await?;
                file.is_restored = true;
                file.source = self.put(cx, &file.from, &copy, None).await?.version;
                file.is_restored = false;
                self.compare(cx, &file.from, &copy).await
            }
            Err(error) => Err(error),
        }
    }

    async fn put_back_file(&self, cx: &OpContext, file: &mut Placed) -> Result<()> {
        // A source that this transfer did not touch is its owner's, whatever became of it meanwhile.
        if file.is_taken {
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

    /// Whether a file is at the source, and at the target what was there before.
    async fn is_back(&self, cx: &OpContext, file: &Placed) -> bool {
        let is_before = match (self.fetch(cx, &file.to).await, &file.before) {
            (Ok(there), Some(before)) => there.content == before.content,
            (Err(error), None) => error.kind() == ErrorKind::NotFound,
            _ => false,
        };
        is_before && self.stat(cx, StatRequest::new(file.from.clone())).await.is_ok()
    }
}
