//! Compensation of one file of a transfer.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result, Version};

use super::super::transfer::plan::FileTransfer;
use super::super::view::namespace_view::NamespaceView;
use super::{Rollback, TransferError, steady};
use crate::store::{NewValue, Precondition, PutOutcome, Store, StoredMeta, StoredValue, WriteId, version_of};

/// What tells a value that was sent from any other, where the store did not say what became of it.
pub(super) struct SentValue {
    content: Version,
    modified_at: DateTime<Utc>,
}

impl SentValue {
    pub(super) fn new(value: &NewValue) -> Self {
        Self { content: value.content.version(), modified_at: value.modified_at }
    }

    /// Whether `found` is what was sent. Stores keep times to the microsecond.
    pub(super) fn is(&self, found: &StoredValue) -> bool {
        found.stored.modified_at.timestamp_micros() == self.modified_at.timestamp_micros()
            && version_of(&found.content) == self.content
    }
}

/// State of the source of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceState {
    /// This transfer has not removed it.
    Present,
    /// Its removal was requested; unless the answer was lost, it is known to be removed.
    Removed,
    /// Another writer removed it.
    RemovedByOther,
}

/// A file that is put at the target, and what it was before.
pub(super) struct TransferredFile {
    pub(super) file: FileTransfer,
    /// What the source was when it was copied.
    pub(super) source: StoredMeta,
    pub(super) source_state: SourceState,
    /// What was put at the target.
    pub(super) target: Option<StoredMeta>,
    /// What may be at the target, as the answer did not come.
    doubtful: Option<SentValue>,
}

impl TransferredFile {
    /// A file of which nothing is made yet.
    pub(super) fn new(file: FileTransfer, source: StoredMeta) -> Self {
        Self { file, source, source_state: SourceState::Present, target: None, doubtful: None }
    }

    /// Puts it at the target.
    pub(super) async fn put<S: Store>(
        &mut self,
        view: &NamespaceView<S>,
        value: NewValue,
        expected: &Precondition,
    ) -> Result<(), TransferError> {
        let to = &self.file.to;
        let steady = steady(view, to)?;
        self.doubtful = Some(SentValue::new(&value));
        let outcome = steady.put(to, value, expected).await?;
        self.doubtful = None;
        match outcome {
            PutOutcome::Applied(target) => {
                self.target = Some(target);
                Ok(())
            }
            PutOutcome::PreconditionFailed(_) => Err(TransferError::Conflict),
        }
    }

    /// Puts the source back, and makes the target what it was, where nobody changed it since.
    pub(super) async fn roll_back<S: Store>(
        &self,
        view: &NamespaceView<S>,
        replaced: Option<&StoredValue>,
    ) -> Result<Rollback> {
        if self.source_state == SourceState::Removed && !self.put_back(view).await? {
            return Ok(Rollback::Partial);
        }
        self.clear_target(view, replaced).await
    }

    /// Puts the source back, which may be there; `false` where another has changed what was moved, so that it stays moved.
    async fn put_back<S: Store>(&self, view: &NamespaceView<S>) -> Result<bool> {
        let Some(value) = self.at_target(view).await? else { return Ok(false) };
        let from = &self.file.from;
        match view.put(from, moved(value.content, &self.source), &Precondition::Absent).await? {
            PutOutcome::Applied(_) => Ok(true),
            PutOutcome::PreconditionFailed(Some(found)) if found.version == self.source.version => Ok(true),
            PutOutcome::PreconditionFailed(_) => {
                let message = "another file is there by now; what was there before is at the target";
                Err(Error::new(ErrorKind::Busy, message).with_path(from))
            }
        }
    }

    /// Removes what was put at the target, or puts back what it replaced, unless somebody changed it since.
    pub(super) async fn clear_target<S: Store>(
        &self,
        view: &NamespaceView<S>,
        replaced: Option<&StoredValue>,
    ) -> Result<Rollback> {
        let version = match (&self.doubtful, &self.target) {
            (None, None) => return Ok(Rollback::Complete),
            (None, Some(target)) => target.version.clone(),
            (Some(_), _) => match self.at_target(view).await? {
                Some(value) => value.stored.version,
                None => return Ok(Rollback::Complete),
            },
        };
        let (to, expected) = (&self.file.to, Precondition::Version(version));
        let outcome = match replaced {
            Some(old) => view.put(to, moved(old.content.clone(), &old.stored), &expected).await?,
            None => view.delete(to, &expected).await?,
        };
        Ok(match outcome {
            PutOutcome::Applied(_) | PutOutcome::PreconditionFailed(None) => Rollback::Complete,
            PutOutcome::PreconditionFailed(Some(_)) => Rollback::Partial,
        })
    }

    /// What is at the target, where it is what was put there.
    async fn at_target<S: Store>(&self, view: &NamespaceView<S>) -> Result<Option<StoredValue>> {
        let found = view.whole_of(&self.file.to, self.file.size).await?;
        Ok(found.filter(|found| {
            self.target.as_ref().is_some_and(|target| target.version == found.stored.version)
                || self.doubtful.as_ref().is_some_and(|sent| sent.is(found))
        }))
    }
}

/// A value with all that is known of it.
pub(super) fn moved(content: Bytes, stored: &StoredMeta) -> NewValue {
    let modified_at = stored.modified_at;
    NewValue { content: content.into(), created_at: stored.creation_time(), modified_at, id: WriteId::random() }
}
