//! Conditional puts and deletes that are applied at most once.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    Attributes, MultipartUpload, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, UpdateVersion,
};
use vfs_core::{Error, ErrorKind, Result};

use super::BucketStore;
use super::error::BucketError;
use super::http_transport::{ChangeAttemptRecord, ObjectCondition};
use super::object_client::ConditionBasis;
use super::object_metadata::{FoundObject, tag, version};
use crate::store::{NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, StoredMeta, ValueContent};

/// Size in bytes above which a value is uploaded in parts.
pub(super) const MULTIPART_THRESHOLD: usize = 16 << 20;
/// Size in bytes of a part. All parts but the last have the same size, as Cloudflare R2 requires.
const PART_BYTES: usize = STAGED_PART_BYTES;
/// Maximum number of parts that are uploaded concurrently.
const MAX_CONCURRENT_PARTS: usize = 4;
/// Maximum number of attempts of a change that concurrent writers invalidate.
const MAX_ATTEMPTS: usize = 64;
/// Timeout of the check after a failed change, and of the removal of its parts. The change has waited for the service already.
const AFTERMATH_TIMEOUT: Duration = Duration::from_secs(5);

/// Outcome of one attempt of a change.
pub(super) enum AttemptOutcome {
    Over(PutOutcome),
    /// A concurrent writer interfered; another attempt checks the precondition again.
    Again,
}

impl BucketStore {
    /// Puts a value.
    pub(super) async fn put_value(
        &self,
        location: &Path,
        value: &NewValue,
        expected: &Precondition,
    ) -> Result<PutOutcome> {
        let content = match &value.content {
            ValueContent::Bytes(content) => content,
            ValueContent::Staged(staged) => return self.put_staged(location, staged, expected).await,
        };
        let labels = self.inner.service.labels.of(value, content).await?;
        for _ in 0..MAX_ATTEMPTS {
            let guard = match self.guard(location, expected).await? {
                Ok(guard) => guard,
                Err(found) => return Ok(PutOutcome::PreconditionFailed(found)),
            };
            if let AttemptOutcome::Over(outcome) =
                self.try_put(location, value, content, &labels, expected, guard).await?
            {
                return Ok(outcome);
            }
        }
        Err(self.contended())
    }

    /// Returns the condition for a put, or the metadata of the object that fails the precondition.
    ///
    /// A put without a precondition is conditional on the current object: a retry after a lost answer could otherwise overwrite the put of
    /// another writer.
    pub(super) async fn guard(
        &self,
        location: &Path,
        expected: &Precondition,
    ) -> Result<Result<ObjectCondition, Option<StoredMeta>>> {
        if *expected == Precondition::Absent {
            return Ok(Ok(ObjectCondition::Nothing));
        }
        if let Precondition::Version(version) = expected
            && self.inner.service.conditions == ConditionBasis::Tags
            && let Some(e_tag) = tag(version)
        {
            return Ok(Ok(ObjectCondition::Tag { e_tag, generation: None }));
        }
        match self.look(location).await? {
            found if !expected.holds(found.as_ref().map(|found| &found.stored)) => {
                Ok(Err(found.map(|found| found.stored)))
            }
            None => Ok(Ok(ObjectCondition::Nothing)),
            Some(FoundObject { guard: Some(guard), .. }) => Ok(Ok(guard)),
            Some(_) => Err(self.without_tags()),
        }
    }

    async fn try_put(
        &self,
        location: &Path,
        value: &NewValue,
        content: &Bytes,
        labels: &Attributes,
        expected: &Precondition,
        guard: ObjectCondition,
    ) -> Result<AttemptOutcome> {
        let (change, answer) = if content.len() <= MULTIPART_THRESHOLD {
            let change = ChangeAttemptRecord::new();
            (change.clone(), change.make(self.put_whole(location, content, labels, &guard)).await)
        } else {
            let change = ChangeAttemptRecord::on(guard.clone());
            (change.clone(), change.make(self.put_parts(location, content, labels, &guard)).await)
        };
        self.conclude(location, value, expected, &guard, &change, answer).await
    }

    /// Finds out what became of a change that ended with `answer`.
    pub(super) async fn conclude(
        &self,
        location: &Path,
        value: &NewValue,
        expected: &Precondition,
        guard: &ObjectCondition,
        change: &ChangeAttemptRecord,
        answer: Result<PutResult, BucketError>,
    ) -> Result<AttemptOutcome> {
        let fault = match answer {
            Ok(PutResult { e_tag: Some(e_tag), .. }) => {
                return Ok(AttemptOutcome::Over(PutOutcome::Applied(put_now(value, &e_tag))));
            }
            Ok(_) => return Err(self.without_tags()),
            Err(fault) => fault,
        };
        if !fault.is_refusal() && !change.is_doubtful() && self.sees_attempts() {
            return Err(self.error(&fault));
        }
        match self.look_up(location, &fault).await? {
            Some(found) if found.is_by(value.id) => Ok(AttemptOutcome::Over(PutOutcome::Applied(found.stored))),
            found => {
                let stored = found.map(|found| found.stored);
                match (fault.is_refusal(), change.is_doubtful()) {
                    (true, false) if expected.holds(stored.as_ref()) => Ok(AttemptOutcome::Again),
                    (true, false) => Ok(AttemptOutcome::Over(PutOutcome::PreconditionFailed(stored))),
                    (false, _) if guarded(guard, stored.as_ref()) => Err(self.not_yet(&self.error(&fault))),
                    _ => Err(self.unknown(&self.error(&fault))),
                }
            }
        }
    }

    async fn put_whole(
        &self,
        location: &Path,
        content: &Bytes,
        labels: &Attributes,
        guard: &ObjectCondition,
    ) -> Result<PutResult, BucketError> {
        let mode = match guard.clone() {
            ObjectCondition::Nothing => PutMode::Create,
            ObjectCondition::Tag { e_tag, generation } => {
                PutMode::Update(UpdateVersion { e_tag: Some(e_tag), version: generation })
            }
        };
        let service = &self.inner.service;
        let options = PutOptions { mode, attributes: labels.clone(), ..PutOptions::default() };
        service.limit.of(service.objects.put_opts(location, PutPayload::from(content.clone()), options)).await
    }

    async fn put_parts(
        &self,
        location: &Path,
        content: &Bytes,
        labels: &Attributes,
        guard: &ObjectCondition,
    ) -> Result<PutResult, BucketError> {
        let service = &self.inner.service;
        let options = PutMultipartOptions { attributes: labels.clone(), ..PutMultipartOptions::default() };
        let mut upload = service.limit.of(service.objects.put_multipart_opts(location, options)).await?;
        let put = self.send_parts(location, content, guard, &mut upload).await;
        // The upload has waited for an unavailable service already.
        if put.as_ref().is_err_and(|fault| !fault.is_unanswered()) {
            self.abort(&mut upload).await;
        }
        put
    }

    /// Removes the parts of an upload. Parts that are left are not visible as an object, but are charged.
    pub(super) async fn abort(&self, upload: &mut Box<dyn MultipartUpload>) {
        if !matches!(tokio::time::timeout(AFTERMATH_TIMEOUT, upload.abort()).await, Ok(Ok(()))) {
            tracing::debug!(bucket = %self, "the parts of a value that was not put are left in the bucket");
        }
    }

    async fn send_parts(
        &self,
        location: &Path,
        content: &Bytes,
        guard: &ObjectCondition,
        upload: &mut Box<dyn MultipartUpload>,
    ) -> Result<PutResult, BucketError> {
        let offsets = (0..content.len()).step_by(PART_BYTES);
        let parts = offsets.map(|from| content.slice(from..content.len().min(from + PART_BYTES)));
        let service = &self.inner.service;
        let sent: Vec<_> = parts.map(|part| service.limit.of(upload.put_part(PutPayload::from(part)))).collect();
        stream::iter(sent).buffer_unordered(MAX_CONCURRENT_PARTS).try_collect::<()>().await?;
        self.complete(location, guard, upload).await
    }

    /// Completes an upload.
    pub(super) async fn complete(
        &self,
        location: &Path,
        guard: &ObjectCondition,
        upload: &mut Box<dyn MultipartUpload>,
    ) -> Result<PutResult, BucketError> {
        let service = &self.inner.service;
        // This check serves services that do not check the condition of a completion, as S3 does.
        let found = service.look(location).await?;
        if !guarded(guard, found.as_ref().map(|found| &found.stored)) {
            return Err(BucketError::refused());
        }
        service.limit.of(upload.complete()).await
    }

    /// Removes a value.
    pub(super) async fn delete_value(&self, location: &Path, expected: &Precondition) -> Result<PutOutcome> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(found) = self.look(location).await? else { return Ok(PutOutcome::PreconditionFailed(None)) };
            if !expected.holds(Some(&found.stored)) {
                return Ok(PutOutcome::PreconditionFailed(Some(found.stored)));
            }
            if let AttemptOutcome::Over(outcome) = self.try_delete(location, found).await? {
                return Ok(outcome);
            }
        }
        Err(self.contended())
    }

    /// Removes `found`. The HTTP transport adds the condition of `change` to the request, if the service is one of S3's kind.
    async fn try_delete(&self, location: &Path, found: FoundObject) -> Result<AttemptOutcome> {
        let change = found.guard.clone().map_or_else(ChangeAttemptRecord::new, ChangeAttemptRecord::on);
        let fault = match change.make(self.inner.service.remove(location)).await {
            Ok(()) => return Ok(AttemptOutcome::Over(PutOutcome::Applied(found.stored))),
            Err(fault) => fault,
        };
        if fault.is_refusal() && !change.is_doubtful() {
            return Ok(AttemptOutcome::Again);
        }
        if !change.is_doubtful() && self.sees_attempts() {
            return Err(self.error(&fault));
        }
        match self.look_up(location, &fault).await? {
            None => Ok(AttemptOutcome::Over(PutOutcome::Applied(found.stored))),
            Some(now) if now.stored.version == found.stored.version => Err(self.not_yet(&self.error(&fault))),
            Some(_) => Err(self.unknown(&self.error(&fault))),
        }
    }

    /// Returns the object after a change that failed with `fault`.
    async fn look_up(&self, location: &Path, fault: &BucketError) -> Result<Option<FoundObject>> {
        let found = tokio::time::timeout(AFTERMATH_TIMEOUT, self.look(location)).await;
        found.unwrap_or_else(|_| Err(self.error(fault))).map_err(|error| self.unknown(&error))
    }

    fn contended(&self) -> Error {
        let reason = format!("{self}: other writers keep changing this file; nothing was changed, try again");
        Error::new(ErrorKind::Busy, reason).with_model_message("Error: other writers keep changing the file; try again")
    }

    /// Returns the error for a change that the service may have received, and had not applied when it was checked.
    fn not_yet(&self, why: &Error) -> Error {
        let reason = format!(
            "{}; the change is not applied yet, and may still be if the service is working on it: check the file before you \
             repeat it",
            why.message()
        );
        Error::new(ErrorKind::Unavailable, reason).with_model_message(
            "Error: the storage failed before it made the change; read the file again before you repeat it",
        )
    }

    fn unknown(&self, why: &Error) -> Error {
        let reason =
            format!("{}; the outcome of the change is unknown, check the file before you repeat it", why.message());
        Error::new(ErrorKind::Unavailable, reason).with_model_message(
            "Error: the storage failed while it made the change; read the file to see whether it was made",
        )
    }

    fn without_tags(&self) -> Error {
        Error::new(
            ErrorKind::Unsupported,
            format!("{self}: the object store has no entity tags, which safe changes require"),
        )
        .with_generic_model_message()
    }
}

fn put_now(value: &NewValue, e_tag: &str) -> StoredMeta {
    use chrono::SubsecRound;

    let modified_at = value.modified_at.trunc_subsecs(6);
    let version = version(Some(e_tag), value.content.size(), modified_at);
    StoredMeta::new(value.content.size(), version, modified_at).created_at(value.created_at.trunc_subsecs(6))
}

/// Returns `true` if the current object meets the condition of a change.
fn guarded(guard: &ObjectCondition, stored: Option<&StoredMeta>) -> bool {
    match guard {
        ObjectCondition::Nothing => stored.is_none(),
        ObjectCondition::Tag { e_tag, .. } => stored.is_some_and(|stored| tag(&stored.version).as_ref() == Some(e_tag)),
    }
}
