//! Multipart uploads that are begun before the put that completes them.

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::path::Path;
use object_store::{PutMultipartOptions, PutPayload};
use vfs_core::{Error, ErrorKind, Result};

use super::BucketStore;
use super::change::AttemptOutcome;
use super::http_transport::ChangeAttemptRecord;
use super::open_uploads::OpenUpload;
use crate::store::{Key, NewValue, Precondition, PutOutcome, StagedContent, Staging, StagingToken, WriteId};

/// Maximum size of a value that is uploaded in parts, 64 GiB: services take 10,000 parts.
const MAX_STAGED: u64 = 64 << 30;

impl BucketStore {
    /// Completes an upload if the precondition holds.
    pub(super) async fn put_staged(
        &self,
        location: &Path,
        staged: &StagedContent,
        expected: &Precondition,
    ) -> Result<PutOutcome> {
        let upload = self.inner.uploads.get(&staged.token)?;
        let mut upload = upload.lock().await;
        if upload.location != *location || upload.size != staged.size {
            return Err(StagingToken::unknown());
        }
        let found = self.look(location).await?;
        // An earlier completion whose response was lost may have been applied.
        if let Some(found) = found.as_ref().filter(|found| found.is_by(upload.id)) {
            self.inner.uploads.remove(&staged.token);
            return Ok(PutOutcome::Applied(found.stored.clone()));
        }
        // A refused completion ends the upload, so the precondition is checked first.
        let found = found.map(|found| found.stored);
        if !expected.holds(found.as_ref()) {
            return Ok(PutOutcome::PreconditionFailed(found));
        }
        let guard = match self.guard(location, expected).await? {
            Ok(guard) => guard,
            Err(found) => return Ok(PutOutcome::PreconditionFailed(found)),
        };
        let mut value = NewValue::staged(staged.clone(), upload.created_at);
        (value.id, value.modified_at) = (upload.id, upload.modified_at);
        let change = ChangeAttemptRecord::on(guard.clone());
        // The upload remains doubtful if this future is dropped before the response.
        if std::mem::replace(&mut upload.is_doubtful, true) {
            change.mark_doubtful();
        }
        let answer = change.make(self.complete(location, &guard, &mut upload.upload)).await;
        upload.is_doubtful = change.is_doubtful();
        // A completion that was neither accepted nor refused can be repeated; any other ends the upload.
        let is_open =
            self.inner.service.repeatable_uploads.is_some() && answer.as_ref().is_err_and(|fault| !fault.is_refusal());
        if !is_open {
            self.inner.uploads.remove(&staged.token);
            if answer.as_ref().is_err_and(|fault| !fault.is_unanswered()) {
                self.abort(&mut upload.upload).await;
            }
        }
        match self.conclude(location, &value, expected, &guard, &change, answer).await? {
            AttemptOutcome::Over(outcome @ PutOutcome::Applied(_)) => {
                self.inner.uploads.remove(&staged.token);
                Ok(outcome)
            }
            AttemptOutcome::Over(PutOutcome::PreconditionFailed(_)) | AttemptOutcome::Again => {
                let reason = "another writer changed the file while its upload was completed; write it again";
                Err(Error::new(ErrorKind::Conflict, reason))
            }
        }
    }
}

#[async_trait]
impl Staging for BucketStore {
    fn max_size(&self) -> u64 {
        MAX_STAGED
    }

    async fn begin(&self, key: &Key, created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> Result<StagingToken> {
        let location = self.location(key)?;
        let service = &self.inner.service;
        let id = WriteId::random();
        let attributes = service.labels.without_hash(created_at, modified_at, id);
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let begun = service.begin_upload(&location, options).await;
        let upload = begun.map_err(|fault| self.error(&fault))?;
        let token = StagingToken::random();
        let open = OpenUpload { location, upload, size: 0, is_doubtful: false, id, created_at, modified_at };
        self.inner.uploads.insert(token.clone(), open);
        Ok(token)
    }

    async fn append(&self, token: &StagingToken, offset: u64, part: Bytes) -> Result<()> {
        let upload = self.inner.uploads.get(token)?;
        let mut upload = upload.lock().await;
        let size = offset + part.len() as u64;
        if size > MAX_STAGED {
            let reason =
                format!("the file is larger than the {MAX_STAGED} bytes that an upload of this store can have");
            return Err(Error::new(ErrorKind::TooLarge, reason));
        }
        if upload.size != offset {
            return Err(StagingToken::unknown());
        }
        let sent = upload.upload.put_part(PutPayload::from(part));
        self.inner.service.limit.of(sent).await.map_err(|fault| self.error(&fault))?;
        upload.size = size;
        Ok(())
    }

    async fn discard(&self, token: &StagingToken) -> Result<()> {
        if let Some(upload) = self.inner.uploads.remove(token) {
            self.abort(&mut upload.lock().await.upload).await;
        }
        Ok(())
    }
}
