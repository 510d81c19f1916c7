//! Copy of a store into another.

use bytes::Bytes;
use serde::Serialize;
use vfs_core::{Error, ErrorKind, Problem, Result, Version};

use super::value_traversal::visit_values;
use crate::pinned_value::{discard, hash_value, stage_value};
use crate::store::{
    Key, Namespace, NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, Staging, StagingToken, Store, StoredMeta,
    StoredValue, WriteId, has_below,
};

/// Treatment of a value that exists in the target with different content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ConflictPolicy {
    /// The value of the target is left unchanged, and reported as a problem.
    #[default]
    Keep,
    /// The value of the target is replaced.
    Replace,
}

/// Options of [`copy`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// The namespace to copy. Default: all of them.
    pub namespace: Option<Namespace>,
    /// The treatment of a value that exists in the target with different content. Default: it is left unchanged.
    pub conflict_policy: ConflictPolicy,
}

impl CopyOptions {
    /// Returns options that copy every namespace and replace nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Sets the treatment of a value that exists in the target with different content.
    #[must_use]
    pub fn conflict_policy(mut self, policy: ConflictPolicy) -> Self {
        self.conflict_policy = policy;
        self
    }
}

/// Result of a copy, or its progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CopyReport {
    /// Number of values that were copied and read back.
    pub files: u64,
    /// Bytes of the copied values.
    pub bytes: u64,
    /// Number of values that existed in the target with the same content.
    pub present: u64,
    /// Values that were not copied, with the reason.
    pub problems: Vec<Problem>,
}

/// Outcome of the copy of a single value.
enum ValueCopyOutcome {
    /// The value was copied; its number of bytes.
    Copied(u64),
    /// The target has the same value.
    Present,
    /// The value was removed from the source meanwhile.
    Removed,
}

/// Copies the values of `from` into `to`, and passes the report so far to `progress` after each value.
///
/// # Behaviour
///
/// * Each value that is written is read back and compared. Creation and modification times are copied if the target can store them.
/// * A copy that was stopped can be run again, and then copies what is missing. A value that exists in the target is compared by
///   version and size if both stores use the same versions, else byte by byte. A value whose path is a directory in the target, or is
///   below a file of the target, is a problem.
/// * Nothing is removed from the target. A value that changes meanwhile is copied as it was at one moment; one of over 8 MiB is a
///   problem then, as it is read in parts.
///
/// # Errors
///
/// Errors of listing the source; the last of many consecutive values that failed because a store is not available; `not_found` for a
/// [namespace](CopyOptions::namespace) without values. Errors of single values are in [`CopyReport::problems`], at
/// `namespace:/path`, or at the path alone in the namespace without components.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    options: &CopyOptions,
    mut progress: impl FnMut(&CopyReport) + Send,
) -> Result<CopyReport> {
    let namespaces = match &options.namespace {
        Some(namespace) => vec![namespace.clone()],
        None => from.namespaces().await?,
    };
    let policy = options.conflict_policy;
    let mut report = CopyReport::default();
    let visit = |key, listed| async move { copy_value(from, to, &key, &listed, policy).await };
    visit_values(from, &namespaces, visit, |outcome| {
        match outcome {
            Ok(ValueCopyOutcome::Copied(bytes)) => {
                report.files += 1;
                report.bytes += bytes;
            }
            Ok(ValueCopyOutcome::Present) => report.present += 1,
            Ok(ValueCopyOutcome::Removed) => {}
            Err(problem) => report.problems.push(problem),
        }
        progress(&report);
    })
    .await?;
    match &options.namespace {
        Some(namespace) if report == CopyReport::default() => {
            let message = format!("the namespace '{namespace}' has no values; check its name");
            Err(Error::new(ErrorKind::NotFound, message))
        }
        _ => Ok(report),
    }
}

async fn copy_value(
    from: &dyn Store,
    to: &dyn Store,
    key: &Key,
    listed: &StoredMeta,
    policy: ConflictPolicy,
) -> Result<ValueCopyOutcome> {
    let existing = to.head(key).await?;
    if existing.as_ref().is_some_and(|existing| has_same_version(listed, existing)) {
        return Ok(ValueCopyOutcome::Present);
    }
    if listed.size > STAGED_PART_BYTES as u64
        && let Some(staging) = to.as_staging()
    {
        return copy_large(from, to, staging, key, existing, policy).await;
    }
    let Some(value) = from.get(key, None).await? else { return Ok(ValueCopyOutcome::Removed) };
    if let Some(existing) = &existing
        && has_content(to, key, existing, &value.content).await?
    {
        return Ok(ValueCopyOutcome::Present);
    }
    let expected = precondition(to, key, existing, policy).await?;
    write(to, key, value, &expected).await
}

/// Copies a value part by part.
async fn copy_large(
    from: &dyn Store,
    to: &dyn Store,
    staging: &dyn Staging,
    key: &Key,
    existing: Option<StoredMeta>,
    policy: ConflictPolicy,
) -> Result<ValueCopyOutcome> {
    let Some(stored) = from.head(key).await? else { return Ok(ValueCopyOutcome::Removed) };
    if let Some(existing) = existing.as_ref().filter(|existing| existing.size == stored.size)
        && hash_value(from, key, &stored).await? == hash_value(to, key, existing).await?
    {
        return Ok(ValueCopyOutcome::Present);
    }
    let expected = precondition(to, key, existing, policy).await?;
    let token = staging.begin(key, stored.creation_time(), stored.modified_at).await?;
    let (written, version) = match put_staged((from, to), staging, key, &stored, &token, &expected).await {
        Ok(put) => put,
        Err(error) => {
            discard(staging, &token).await;
            return Err(error);
        }
    };
    match hash_value(to, key, &written).await {
        Ok(found) if found != version => Err(damaged()),
        // Another writer replaced or removed the value after it was copied.
        Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
        _ => Ok(ValueCopyOutcome::Copied(stored.size)),
    }
}

async fn put_staged(
    (from, to): (&dyn Store, &dyn Store),
    staging: &dyn Staging,
    key: &Key,
    stored: &StoredMeta,
    token: &StagingToken,
    expected: &Precondition,
) -> Result<(StoredMeta, Version)> {
    let content = stage_value((from, key, stored), staging, token.clone()).await?;
    let version = content.version.clone();
    let new = NewValue::staged(content, stored.modified_at).created_at(stored.creation_time());
    match to.put(key, new, expected).await? {
        PutOutcome::Applied(written) => Ok((written, version)),
        PutOutcome::PreconditionFailed(_) => Err(changed()),
    }
}

/// Returns the precondition of the put in the target, or an error if `policy` does not allow to replace the `existing`
/// value.
async fn precondition(
    to: &dyn Store,
    key: &Key,
    existing: Option<StoredMeta>,
    policy: ConflictPolicy,
) -> Result<Precondition> {
    match (existing, policy) {
        (None, _) => {
            check_no_collision(to, key).await?;
            Ok(Precondition::Absent)
        }
        (Some(existing), ConflictPolicy::Replace) => Ok(Precondition::Version(existing.version)),
        (Some(_), ConflictPolicy::Keep) => {
            let message =
                "the target has a file with different content at this path; copy with replacement to overwrite it";
            Err(Error::new(ErrorKind::AlreadyExists, message))
        }
    }
}

fn changed() -> Error {
    Error::new(ErrorKind::Conflict, "the value in the target was changed during the copy; copy again")
}

fn damaged() -> Error {
    Error::new(ErrorKind::Internal, "the target returned different content from what was written; check the target")
}

/// Returns an error if the target has a file at a parent of the path, or files below it: a file and a directory never
/// share a path.
async fn check_no_collision(to: &dyn Store, key: &Key) -> Result<()> {
    let mut above = key.path.parent();
    while let Some(path) = above.filter(|path| !path.is_root()) {
        above = path.parent();
        if to.head(&Key::new(key.namespace.clone(), path.clone())).await?.is_some() {
            let message = format!("the target has a file at '{path}', so no file can be below it");
            return Err(Error::new(ErrorKind::NotADirectory, message));
        }
    }
    if !has_below(to, &key.namespace, &key.path).await? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::IsADirectory, "the path is a directory in the target, as there are files below it"))
}

/// Returns `true` if two stores report the same size and version of a value.
fn has_same_version(one: &StoredMeta, other: &StoredMeta) -> bool {
    one.size == other.size && one.version == other.version
}

async fn has_content(store: &dyn Store, key: &Key, stored: &StoredMeta, content: &Bytes) -> Result<bool> {
    if stored.size != content.len() as u64 {
        return Ok(false);
    }
    Ok(store.get(key, None).await?.is_some_and(|value| value.content == content))
}

async fn write(to: &dyn Store, key: &Key, value: StoredValue, expected: &Precondition) -> Result<ValueCopyOutcome> {
    let StoredValue { stored, content } = value;
    let new = NewValue {
        content: content.clone().into(),
        created_at: stored.creation_time(),
        modified_at: stored.modified_at,
        id: WriteId::random(),
    };
    let written = match to.put(key, new, expected).await? {
        PutOutcome::Applied(written) => written,
        PutOutcome::PreconditionFailed(_) => return Err(changed()),
    };
    match to.get(key, None).await? {
        Some(read_back) if read_back.content == content => Ok(ValueCopyOutcome::Copied(content.len() as u64)),
        // Another writer replaced or removed the value after it was copied.
        None => Ok(ValueCopyOutcome::Copied(content.len() as u64)),
        Some(read_back) if read_back.stored.version != written.version => {
            Ok(ValueCopyOutcome::Copied(content.len() as u64))
        }
        Some(_) => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use vfs_core::VfsPath;

    use super::*;
    use crate::memory::MemoryStore;

    fn key(namespace: &str, path: &str) -> Key {
        Key::new(Namespace::parse(namespace).expect("a valid namespace"), VfsPath::parse(path).expect("a valid path"))
    }

    async fn put(store: &MemoryStore, key: &Key, content: &'static str) {
        let made = DateTime::<Utc>::from_timestamp_micros(1_700_000_000_123_456).expect("a time");
        let value = NewValue::new(Bytes::from_static(content.as_bytes()), made);
        assert!(matches!(store.put(key, value, &Precondition::Any).await, Ok(PutOutcome::Applied(_))));
    }

    #[test]
    fn a_report_has_these_names_in_json() {
        let copied = CopyReport { files: 2, bytes: 10, present: 1, problems: Vec::new() };
        let json = r#"{"files":2,"bytes":10,"present":1,"problems":[]}"#;
        assert_eq!(serde_json::to_string(&copied).expect("JSON"), json);
    }

    #[tokio::test]
    async fn a_copy_has_every_namespace_with_its_times_and_a_second_one_writes_nothing() {
        let (from, to) = (MemoryStore::new(), MemoryStore::single_valued());
        let keys = [key("", "/a"), key("org", "/a"), key("org/user", "/d/b"), key("org/user", "/d/c")];
        for key in &keys {
            put(&from, key, "text").await;
        }
        put(&to, &keys[3], "text").await;
        let mut seen = Vec::new();
        let copied = copy(&from, &to, &CopyOptions::new(), |copied| seen.push(copied.files + copied.present)).await;
        let copied = copied.expect("it is copied");
        assert_eq!((copied.files, copied.bytes, copied.present, copied.problems.len()), (3, 12, 1, 0));
        assert_eq!(seen, [1, 2, 3, 4]);
        for key in &keys {
            assert_eq!(to.head(key).await.expect("read"), from.head(key).await.expect("read"), "{key:?}");
        }
        let again = copy(&from, &to, &CopyOptions::new(), |_| {}).await.expect("it is copied");
        assert_eq!((again.files, again.present), (0, 4));
    }

    #[tokio::test]
    async fn a_large_value_is_copied_in_parts_and_compared() {
        let (from, to) = (MemoryStore::new(), MemoryStore::single_valued());
        let at = key("org", "/large");
        let content = Bytes::from(vec![7; STAGED_PART_BYTES + 1]);
        let value = NewValue::new(content.clone(), DateTime::<Utc>::UNIX_EPOCH);
        assert!(matches!(from.put(&at, value, &Precondition::Any).await, Ok(PutOutcome::Applied(_))));
        put(&to, &at, "other").await;
        let unchanged = copy(&from, &to, &CopyOptions::new(), |_| {}).await.expect("it is tried");
        assert_eq!((unchanged.files, unchanged.problems.len()), (0, 1));
        let replacing = CopyOptions::new().conflict_policy(ConflictPolicy::Replace);
        let copied = copy(&from, &to, &replacing, |_| {}).await.expect("it is copied");
        assert_eq!((copied.files, copied.bytes, copied.problems.len()), (1, content.len() as u64, 0));
        assert!(to.get(&at, None).await.expect("read").expect("it is there").content == content);
        assert_eq!(to.head(&at).await.expect("read"), from.head(&at).await.expect("read"));
    }

    #[tokio::test]
    async fn a_value_with_different_content_is_replaced_only_if_requested() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        let at = key("org", "/a");
        put(&from, &at, "new").await;
        put(&from, &key("other", "/a"), "not requested").await;
        put(&to, &at, "old").await;
        let options = CopyOptions::new().namespace(at.namespace.clone());
        let unchanged = copy(&from, &to, &options, |_| {}).await.expect("it is copied");
        assert_eq!((unchanged.files, unchanged.problems.len()), (0, 1));
        assert_eq!(
            (unchanged.problems[0].path.as_str(), unchanged.problems[0].code),
            ("org:/a", ErrorKind::AlreadyExists)
        );
        let replaced =
            copy(&from, &to, &options.conflict_policy(ConflictPolicy::Replace), |_| {}).await.expect("it is copied");
        assert_eq!((replaced.files, replaced.problems.len()), (1, 0));
        let value = to.get(&at, None).await.expect("read").expect("it is there");
        assert_eq!(value.content, "new");
        assert_eq!(to.namespaces().await.expect("listed"), [at.namespace]);
    }

    #[tokio::test]
    async fn no_value_is_copied_below_a_file_or_over_a_directory() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        put(&from, &key("", "/a/b/c"), "text").await;
        put(&from, &key("", "/d"), "text").await;
        put(&to, &key("", "/a"), "a file").await;
        put(&to, &key("", "/d/e"), "in a directory").await;
        let copied = copy(&from, &to, &CopyOptions::new(), |_| {}).await.expect("it is tried");
        let mut reported: Vec<_> =
            copied.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
        reported.sort_unstable_by_key(|(path, _)| *path);
        assert_eq!(reported, [("/a/b/c", ErrorKind::NotADirectory), ("/d", ErrorKind::IsADirectory)]);
        assert_eq!(copied.files, 0);
    }
}
