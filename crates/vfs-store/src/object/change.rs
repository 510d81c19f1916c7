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
use super::http::{ChangeAttempts, ObjectCondition};
use super::read::{ConditionKind, FoundObject, tag, version};
use crate::store::{NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, StoredMeta, ValueContent};

/// A value of more bytes is put in parts.
pub(super) const MULTIPART_THRESHOLD: usize = 16 << 20;
/// Bytes of a part; all but the last have as many, as R2 wants it.
const PART_BYTES: usize = STAGED_PART_BYTES;
/// How many parts are on their way at once.
const MAX_CONCURRENT_PARTS: usize = 4;
/// How often a change is tried that someone else comes before.
const MAX_ATTEMPTS: usize = 64;
/// How long the look at what a failed change left, or the removal of its parts, may take: a service that does not answer has
/// been waited for already.
const AFTERMATH_TIMEOUT: Duration = Duration::from_secs(5);

/// What became of one try.
pub(super) enum AttemptOutcome {
    Over(PutOutcome),
    /// Something came in between, and is gone or is what was expected by now.
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
        Err(self.crowded())
    }

    /// What a put depends on, or what is there instead.
    ///
    /// One that expects anything depends on what is there now: else a second attempt, after an answer that was lost, could go
    /// over what another put there meanwhile.
    pub(super) async fn guard(
        &self,
        location: &Path,
        expected: &Precondition,
    ) -> Result<Result<ObjectCondition, Option<StoredMeta>>> {
        if *expected == Precondition::Absent {
            return Ok(Ok(ObjectCondition::Nothing));
        }
        if let Precondition::Version(version) = expected
            && self.inner.service.conditions == ConditionKind::Tags
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
            let change = ChangeAttempts::new();
            (change.clone(), change.make(self.put_whole(location, content, labels, &guard)).await)
        } else {
            let change = ChangeAttempts::on(guard.clone());
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
        change: &ChangeAttempts,
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
        // A service that is gone is not waited for again.
        if put.as_ref().is_err_and(|fault| !fault.is_unanswered()) {
            self.abort(&mut upload).await;
        }
        put
    }

    /// Removes the parts of an upload. What is left of it is no object, and does no harm but its price.
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

    /// Puts the parts of an upload together.
    pub(super) async fn complete(
        &self,
        location: &Path,
        guard: &ObjectCondition,
        upload: &mut Box<dyn MultipartUpload>,
    ) -> Result<PutResult, BucketError> {
        let service = &self.inner.service;
        // S3 checks the condition itself; the others do not, and here is the last moment to.
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
        Err(self.crowded())
    }

    async fn try_delete(&self, location: &Path, found: FoundObject) -> Result<AttemptOutcome> {
        let change = found.guard.clone().map_or_else(ChangeAttempts::new, ChangeAttempts::on);
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

    /// What is there after a change that ended with `fault`.
    async fn look_up(&self, location: &Path, fault: &BucketError) -> Result<Option<FoundObject>> {
        let found = tokio::time::timeout(AFTERMATH_TIMEOUT, self.look(location)).await;
        found.unwrap_or_else(|_| Err(self.error(fault))).map_err(|error| self.unknown(&error))
    }

    fn crowded(&self) -> Error {
        let reason = format!("{self}: others change this file without a pause; nothing was changed, try again");
        Error::new(ErrorKind::Busy, reason)
            .with_model_message("Error: the file is changed by others all the time; try again")
    }

    /// A change that the service may have got, and did not make until it was asked again.
    fn not_yet(&self, why: &Error) -> Error {
        let reason = format!(
            "{}; the change was not made so far, and may be made yet if the service still works on it: look before you make \
             it again",
            why.message()
        );
        Error::new(why.kind(), reason).with_model_message(
            "Error: the storage failed before it made the change; read the file again before you repeat it",
        )
    }

    fn unknown(&self, why: &Error) -> Error {
        let reason =
            format!("{}; whether the change was made is not known, look before you make it again", why.message());
        Error::new(ErrorKind::Unavailable, reason).with_model_message(
            "Error: the storage failed while it made the change; read the file to see whether it was made",
        )
    }

    fn without_tags(&self) -> Error {
        Error::new(
            ErrorKind::Unsupported,
            format!("{self}: the object store has no entity tags, without which nothing can be changed safely"),
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

/// Whether what is there is what a change depends on.
fn guarded(guard: &ObjectCondition, stored: Option<&StoredMeta>) -> bool {
    match guard {
        ObjectCondition::Nothing => stored.is_none(),
        ObjectCondition::Tag { e_tag, .. } => stored.is_some_and(|stored| tag(&stored.version).as_ref() == Some(e_tag)),
    }
}
