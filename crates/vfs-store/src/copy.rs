//! Copying a store into another.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use tokio::sync::Semaphore;
use vfs_core::{Error, ErrorKind, Problem, Result};

use crate::inspect::{place, problem};
use crate::key::{Key, Namespace};
use crate::pages::all;
use crate::store::{Entry, Expected, ListRequest, NewValue, Outcome, Store, Stored, Value, WriteId};

/// How many values are copied at once.
const AT_ONCE: usize = 16;
/// How many values in a row may fail because a store is not there, before it is taken to be down.
const FAILURES: u32 = 32;
/// How much is held at once, in mebibytes; one value may be larger.
const MEBIBYTES: u32 = 64;

/// What becomes of a value that is in the target already, with another content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Existing {
    /// It stays, and is a problem.
    #[default]
    Keep,
    /// It is replaced.
    Replace,
}

/// How a store is copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// The namespace to copy. Default: all of them.
    pub namespace: Option<Namespace>,
    /// What becomes of a value that is there already, with another content. Default: it stays.
    pub existing: Existing,
}

impl CopyOptions {
    /// Copies every namespace, and replaces nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies this namespace alone.
    #[must_use]
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Sets what becomes of a value that is there already, with another content.
    #[must_use]
    pub fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }
}

/// How far a copy is, or what it came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Copied {
    /// Values that were copied, and read back.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Values that were there already, with the same content.
    pub present: u64,
    /// Values that were not copied, and why.
    pub problems: Vec<Problem>,
}

enum One {
    Copied(u64),
    Present,
    /// It is gone from the source by now.
    Gone,
}

/// Copies the values of `from` into `to`, and tells `progress` after each how far it is.
///
/// # Behaviour
///
/// * Each value that is written is read back and compared. Times of making and change go along where the target can keep them.
/// * It can be run again after it was stopped, and then copies what is missing. What is there already is compared: by version and
///   size where both stores tell contents by the same versions, else byte by byte. A value whose place is a directory in the
///   target, or is below a file of it, is a problem.
/// * Nothing is removed from the target. A value that changes meanwhile is copied as it was at one moment.
///
/// # Errors
///
/// Those that keep a store as a whole from being read; the last of many values in a row that failed as the store is not available;
/// `not_found` for a [namespace](CopyOptions::namespace) that holds nothing. What concerns single values is in [`Copied::problems`], at the namespace
/// and the path with a `:` between them, or at the path alone in the namespace without components.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    options: &CopyOptions,
    mut progress: impl FnMut(&Copied) + Send,
) -> Result<Copied> {
    let namespaces = match &options.namespace {
        Some(namespace) => vec![namespace.clone()],
        None => from.namespaces().await?,
    };
    let mut copied = Copied::default();
    let mut failures = 0;
    let room = Semaphore::new(MEBIBYTES as usize);
    for namespace in namespaces {
        let mut pages = all(from, &namespace);
        while let Some(page) = pages.try_next().await? {
            copied.problems.extend(page.problems);
            let mut values = stream::iter(page.entries)
                .map(|entry| copy_entry(from, to, &namespace, entry, options.existing, &room))
                .buffer_unordered(AT_ONCE);
            while let Some(outcome) = values.next().await {
                let is_down = outcome.as_ref().is_err_and(|(_, error)| error.is_temporary());
                failures = if is_down { failures + 1 } else { 0 };
                match outcome {
                    Err((_, error)) if failures == FAILURES => return Err(error),
                    Ok(One::Copied(bytes)) => {
                        copied.files += 1;
                        copied.bytes += bytes;
                    }
                    Ok(One::Present) => copied.present += 1,
                    Ok(One::Gone) => {}
                    Err((place, error)) => copied.problems.push(problem(place, &error)),
                }
                progress(&copied);
            }
        }
    }
    match &options.namespace {
        Some(namespace) if copied == Copied::default() => {
            let message = format!("there is nothing in the namespace '{namespace}'; look for another name");
            Err(Error::new(ErrorKind::NotFound, message))
        }
        _ => Ok(copied),
    }
}

async fn copy_entry(
    from: &dyn Store,
    to: &dyn Store,
    namespace: &Namespace,
    entry: Entry,
    existing: Existing,
    room: &Semaphore,
) -> Result<One, (String, Error)> {
    let key = Key::new(namespace.clone(), entry.path);
    let needed = u32::try_from(entry.stored.size >> 20).unwrap_or(u32::MAX).clamp(1, MEBIBYTES);
    // It is never closed.
    let _held = room.acquire_many(needed).await.ok();
    copy_value(from, to, &key, &entry.stored, existing).await.map_err(|error| (place(&key), error))
}

async fn copy_value(from: &dyn Store, to: &dyn Store, key: &Key, listed: &Stored, existing: Existing) -> Result<One> {
    let there = to.head(key).await?;
    if there.as_ref().is_some_and(|there| is_same(listed, there)) {
        return Ok(One::Present);
    }
    let Some(value) = from.get(key, None).await? else { return Ok(One::Gone) };
    let expected = match there {
        None => {
            check_room(to, key).await?;
            Expected::Nothing
        }
        Some(there) => {
            if is_content(to, key, &there, &value.content).await? {
                return Ok(One::Present);
            }
            match existing {
                Existing::Replace => Expected::Version(there.version),
                Existing::Keep => {
                    let message = "the target has another file here; copy with replacing if this one is meant to win";
                    return Err(Error::new(ErrorKind::AlreadyExists, message));
                }
            }
        }
    };
    write(to, key, value, &expected).await
}

/// Refuses a place that has a file above it or files below it: no directory has a file's path.
async fn check_room(to: &dyn Store, key: &Key) -> Result<()> {
    let mut above = key.path.parent();
    while let Some(path) = above.filter(|path| !path.is_root()) {
        above = path.parent();
        if to.head(&Key::new(key.namespace.clone(), path.clone())).await?.is_some() {
            let message = format!("the target has a file at '{path}', so that nothing can be below it");
            return Err(Error::new(ErrorKind::NotADirectory, message));
        }
    }
    let below = to.list(&key.namespace, &ListRequest::level(key.path.clone()).limit(1)).await?;
    if below.entries.is_empty() && below.directories.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::IsADirectory, "the target has files below it, so that it is a directory there"))
}

/// Whether two stores say the same of a value, in the same words.
fn is_same(one: &Stored, other: &Stored) -> bool {
    one.size == other.size && one.version == other.version
}

async fn is_content(store: &dyn Store, key: &Key, stored: &Stored, content: &Bytes) -> Result<bool> {
    if stored.size != content.len() as u64 {
        return Ok(false);
    }
    Ok(store.get(key, None).await?.is_some_and(|value| value.content == content))
}

async fn write(to: &dyn Store, key: &Key, value: Value, expected: &Expected) -> Result<One> {
    let Value { stored, content } = value;
    let new = NewValue {
        content: content.clone(),
        created_at: stored.created_at.unwrap_or(stored.modified_at),
        modified_at: stored.modified_at,
        id: WriteId::random(),
    };
    let written = match to.put(key, new, expected).await? {
        Outcome::Done(written) => written,
        Outcome::Refused(_) => {
            let message = "the target was changed meanwhile; copy again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
    };
    match to.get(key, None).await? {
        Some(back) if back.content == content => Ok(One::Copied(content.len() as u64)),
        // Somebody wrote or removed it since; what was copied was there.
        None => Ok(One::Copied(content.len() as u64)),
        Some(back) if back.stored.version != written.version => Ok(One::Copied(content.len() as u64)),
        Some(_) => Err(Error::new(ErrorKind::Internal, "what the target gives back is not what was written; check it")),
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
        assert!(matches!(store.put(key, value, &Expected::Anything).await, Ok(Outcome::Done(_))));
    }

    #[test]
    fn the_outcome_of_a_copy_has_these_names_in_json() {
        let copied = Copied { files: 2, bytes: 10, present: 1, problems: Vec::new() };
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
    async fn what_is_there_with_another_content_stays_unless_it_is_to_be_replaced() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        let at = key("org", "/a");
        put(&from, &at, "new").await;
        put(&from, &key("other", "/a"), "not asked for").await;
        put(&to, &at, "old").await;
        let options = CopyOptions::new().namespace(at.namespace.clone());
        let kept = copy(&from, &to, &options, |_| {}).await.expect("it is copied");
        assert_eq!((kept.files, kept.problems.len()), (0, 1));
        assert_eq!((kept.problems[0].path.as_str(), kept.problems[0].code), ("org:/a", ErrorKind::AlreadyExists));
        let replaced = copy(&from, &to, &options.existing(Existing::Replace), |_| {}).await.expect("it is copied");
        assert_eq!((replaced.files, replaced.problems.len()), (1, 0));
        let value = to.get(&at, None).await.expect("read").expect("it is there");
        assert_eq!(value.content, "new");
        assert_eq!(to.namespaces().await.expect("listed"), [at.namespace]);
    }

    #[tokio::test]
    async fn nothing_is_put_below_a_file_or_in_the_place_of_a_directory() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        put(&from, &key("", "/a/b/c"), "text").await;
        put(&from, &key("", "/d"), "text").await;
        put(&to, &key("", "/a"), "a file").await;
        put(&to, &key("", "/d/e"), "in a directory").await;
        let copied = copy(&from, &to, &CopyOptions::new(), |_| {}).await.expect("it is tried");
        let mut told: Vec<_> = copied.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
        told.sort_unstable_by_key(|(path, _)| *path);
        assert_eq!(told, [("/a/b/c", ErrorKind::NotADirectory), ("/d", ErrorKind::IsADirectory)]);
        assert_eq!(copied.files, 0);
    }
}
