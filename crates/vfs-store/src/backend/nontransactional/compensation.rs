//! Compensation of one file of a transfer.

use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result, Version, VfsPath};

use super::super::transfer::transfer_plan::{FileTransfer, TransferKind};
use super::super::view::namespace_view::NamespaceView;
use super::load::{discard_loaded, load, put_loaded, put_retained};
use super::transfer_step_error::TransferStepError;
use super::{RollbackOutcome, steady};
use crate::pinned_value::hash_value;
use crate::store::{NewValue, Precondition, PutOutcome, Store, StoredMeta, ValueContent};

/// Description of a value that was sent, by which it is recognised if the store did not answer.
pub(super) struct SentValue {
    size: u64,
    content: Version,
    /// `None` for a staged value, which may have the time at which its staging began.
    modified_at: Option<DateTime<Utc>>,
}

impl SentValue {
    pub(super) fn new(value: &NewValue) -> Self {
        let modified_at = match value.content {
            ValueContent::Bytes(_) => Some(value.modified_at),
            ValueContent::Staged(_) => None,
        };
        Self { size: value.content.size(), content: value.content.version(), modified_at }
    }

    /// Returns `true` if the value `found` at `path` is the one that was sent. Stores keep times to the microsecond.
    pub(super) async fn is<S: Store>(
        &self,
        view: &NamespaceView<S>,
        path: &VfsPath,
        found: &StoredMeta,
    ) -> Result<bool> {
        let micros = |at: DateTime<Utc>| at.timestamp_micros();
        let has_other_time = self.modified_at.is_some_and(|at| micros(at) != micros(found.modified_at));
        if has_other_time || found.size != self.size {
            return Ok(false);
        }
        match view.ask(path, hash_value(view.store(), &view.key(path), found)).await {
            Ok(content) => Ok(content == self.content),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// State of the source of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferSourceState {
    /// This transfer has not removed it.
    Present,
    /// Its removal was requested, and applied unless the answer was lost.
    Removed,
    /// Another writer removed it.
    RemovedByOther,
}

/// File of a transfer with the steps that were applied, for their rollback.
pub(super) struct TransferredFile {
    pub(super) file: FileTransfer,
    /// Metadata of the source when it was copied.
    pub(super) source: StoredMeta,
    pub(super) source_state: TransferSourceState,
    /// Metadata of the target after the put.
    pub(super) target: Option<StoredMeta>,
    /// Value of a put whose answer did not arrive, so that it may be at the target.
    doubtful: Option<SentValue>,
}

impl TransferredFile {
    /// Returns a file with no step applied.
    pub(super) fn new(file: FileTransfer, source: StoredMeta) -> Self {
        Self { file, source, source_state: TransferSourceState::Present, target: None, doubtful: None }
    }

    /// Puts the file at the target.
    pub(super) async fn put<S: Store>(
        &mut self,
        view: &NamespaceView<S>,
        value: NewValue,
        expected: &Precondition,
    ) -> Result<(), TransferStepError> {
        let to = &self.file.to;
        let steady = match steady(view, to) {
            Ok(steady) => steady,
            Err(error) => {
                discard_loaded(view, &value).await;
                return Err(error.into());
            }
        };
        self.doubtful = Some(SentValue::new(&value));
        let outcome = put_loaded(&steady, to, value, expected).await?;
        self.doubtful = None;
        match outcome {
            PutOutcome::Applied(target) => {
                self.target = Some(target);
                Ok(())
            }
            PutOutcome::PreconditionFailed(_) => Err(TransferStepError::Conflict),
        }
    }

    /// Restores the source and the target, unless another writer changed them since.
    pub(super) async fn roll_back<S: Store>(
        &self,
        view: &NamespaceView<S>,
        replaced: Option<&NewValue>,
    ) -> Result<RollbackOutcome> {
        if self.source_state == TransferSourceState::Removed && !self.put_back(view).await? {
            return Ok(RollbackOutcome::Partial);
        }
        self.clear_target(view, replaced).await
    }

    /// Puts the source back if it is missing. Returns `false` if another writer changed the target, which then stays renamed.
    async fn put_back<S: Store>(&self, view: &NamespaceView<S>) -> Result<bool> {
        let FileTransfer { from, to, .. } = &self.file;
        let Some(target) = self.at_target(view).await? else { return Ok(false) };
        let value = match load(view, (to, &target), from, TransferKind::Rename).await {
            Ok(value) => value,
            Err(TransferStepError::Conflict) => return Ok(false),
            Err(TransferStepError::Failed(error)) => return Err(error),
        };
        match put_loaded(view, from, value, &Precondition::Absent).await? {
            PutOutcome::Applied(_) => Ok(true),
            PutOutcome::PreconditionFailed(Some(found)) if found.version == self.source.version => Ok(true),
            PutOutcome::PreconditionFailed(_) => {
                let message = "another writer created a file here; the renamed file stays at the target";
                Err(Error::new(ErrorKind::Busy, message).with_path(from))
            }
        }
    }

    /// Removes the file at the target, or restores the file that it replaced, unless another writer changed it since.
    pub(super) async fn clear_target<S: Store>(
        &self,
        view: &NamespaceView<S>,
        replaced: Option<&NewValue>,
    ) -> Result<RollbackOutcome> {
        let version = match (&self.doubtful, &self.target) {
            (None, None) => return Ok(RollbackOutcome::Complete),
            (None, Some(target)) => target.version.clone(),
            (Some(_), _) => match self.at_target(view).await? {
                Some(target) => target.version,
                None => return Ok(RollbackOutcome::Complete),
            },
        };
        let (to, expected) = (&self.file.to, Precondition::Version(version));
        let outcome = match replaced {
            Some(old) => put_retained(view, to, old, &expected).await?,
            None => view.delete(to, &expected).await?,
        };
        Ok(match outcome {
            PutOutcome::Applied(_) | PutOutcome::PreconditionFailed(None) => RollbackOutcome::Complete,
            PutOutcome::PreconditionFailed(Some(_)) => RollbackOutcome::Partial,
        })
    }

    /// Returns the metadata of the target if it is the value that was put there.
    async fn at_target<S: Store>(&self, view: &NamespaceView<S>) -> Result<Option<StoredMeta>> {
        let to = &self.file.to;
        let Some(found) = view.head(to).await? else { return Ok(None) };
        let is_own = match (&self.target, &self.doubtful) {
            (Some(target), _) if target.version == found.version => true,
            (_, Some(sent)) => sent.is(view, to, &found).await?,
            (_, None) => false,
        };
        Ok(is_own.then_some(found))
    }
}
