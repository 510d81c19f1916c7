//! Write-ahead log of renames across mounts.

use std::any::Any;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::operation::UnaryRequest as _;
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, Result, Version, VfsPath, WriteMode,
    WriteRequest,
};

use crate::mount_identity::MountIdentity;

/// Guard of an acquired [`JournalLock`], which is released when the guard is dropped.
pub type JournalLockGuard = Box<dyn Any + Send + Sync>;

/// A lock that separates the renames and the recoveries of all processes that share a journal.
///
/// # Behaviour
///
/// A rename across mounts holds it shared, from before its record is written until that is removed; a recovery holds
/// it exclusively. The lock must be released when its process ends in any way.
#[async_trait]
pub trait JournalLock: fmt::Debug + Send + Sync + 'static {
    /// Acquires the lock for a rename, and waits until a recovery has ended.
    async fn lock_shared(&self, cx: &OpContext) -> Result<JournalLockGuard>;

    /// Acquires the lock for a recovery, without waiting: `None` while a rename or another recovery holds it.
    async fn try_lock_exclusive(&self, cx: &OpContext) -> Result<Option<JournalLockGuard>>;
}

/// The format of a record. Any change that this version would not read gets another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordFormat(u32);

impl RecordFormat {
    const CURRENT: Self = Self(1);
}

impl Default for RecordFormat {
    fn default() -> Self {
        Self::CURRENT
    }
}

/// The part of a record that every version can read.
#[derive(Deserialize)]
struct RecordHeader {
    #[serde(default)]
    format: RecordFormat,
}

/// The kind of the entry at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryKind {
    File,
    /// A link to a file. The copy is the file that it leads to, and the link itself is removed, which has no version.
    Link,
}

impl EntryKind {
    /// Returns the request that removes the source at `path`, which was copied in version `version`.
    pub(crate) fn removal(self, path: VfsPath, version: Version) -> DeleteRequest {
        match self {
            EntryKind::File => DeleteRequest::new(path).expected_version(version),
            EntryKind::Link => DeleteRequest::new(path),
        }
    }
}

/// The record of one rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveRecord {
    #[serde(default)]
    pub(crate) format: RecordFormat,
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    /// The mount of the source.
    pub(crate) source: RecordedMount,
    /// The mount of the target.
    pub(crate) target: RecordedMount,
    /// The actor of the rename, which may select the files of a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Whether the rename replaces what is at the target.
    #[serde(default)]
    pub(crate) replaced: bool,
    /// Whether a file has arrived at the target, so that the rename can only be finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_arrived: bool,
    /// Number of the first files that a recovery has not found at the target.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) not_arrived: usize,
    /// The source of the first of those that is not at the source either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<VfsPath>,
    /// Whether the rename failed and its rollback had begun, so that sources may have been written again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_rolling_back: bool,
    /// Real paths that links which stay at the source lead to. Files there stay, too.
    #[serde(rename = "kept", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pinned: Vec<VfsPath>,
    /// The problems with which recoveries ended, each an error code and a path.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) problems: BTreeSet<String>,
    /// The files that are not settled, each with the version that is moved.
    pub(crate) files: Vec<RecordedFile>,
    /// Directories of the target without entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty: Vec<VfsPath>,
}

/// A mount at one end of a rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedMount {
    pub(crate) path: VfsPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<MountIdentity>,
}

/// A file of a rename, as its record describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedFile {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    pub(crate) kind: EntryKind,
    pub(crate) version: Version,
    /// The version of the file that is replaced at the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<Version>,
    /// The digest of the replaced file, which a rollback writes again in a new version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaced_digest: Option<String>,
    /// Whether a recovery has copied the file, or found it at the target. Only links are marked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_placed: bool,
    /// Whether a rollback that failed may have written the source again, in another version than `version`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_restored: bool,
}

impl RecordedFile {
    /// Returns whether a target with this `version` and `content` is the file that was there before the rename.
    pub(crate) fn is_replaced(&self, version: &Version, content: &[u8]) -> bool {
        self.replaces.as_ref() == Some(version)
            || self.replaced_digest.as_ref().is_some_and(|replaced| *replaced == digest(content))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Returns the digest of `content`, as a record has it.
pub(crate) fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

impl MoveRecord {
    /// Returns the context of the caller that began the rename.
    pub(crate) fn context(&self, cx: &OpContext) -> OpContext {
        let mut cx = cx.clone();
        if let Some(actor) = &self.actor {
            cx = cx.with_actor(actor.as_str());
        }
        if let Some(session) = &self.session {
            cx = cx.with_session(session.as_str());
        }
        cx
    }

    /// Returns whether a directory is renamed.
    pub(crate) fn is_of_directory(&self) -> bool {
        !self.files.iter().any(|file| file.from == self.from)
    }

    /// Returns whether the ends are in two mounts and all paths are at or below the ends: each file at the same
    /// relative path of both, and each path once.
    fn is_consistent(&self) -> bool {
        let is_moved = |file: &RecordedFile| {
            let (from, to) = (file.from.strip_prefix(&self.from), file.to.strip_prefix(&self.to));
            from.is_some() && from == to
        };
        let sources: HashSet<_> = self.files.iter().map(|file| &file.from).collect();
        let directories: HashSet<_> = self.empty.iter().collect();
        !self.from.is_root()
            && !self.to.is_root()
            && !self.to.starts_with(&self.from)
            && self.source.path != self.target.path
            && self.from.starts_with(&self.source.path)
            && self.to.starts_with(&self.target.path)
            && self.files.iter().all(is_moved)
            && sources.len() == self.files.len()
            && self.empty.iter().all(|path| path.starts_with(&self.to))
            && directories.len() == self.empty.len()
    }
}

/// The directory of records and its lock.
#[derive(Debug)]
pub(crate) struct Journal {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    lock: Option<Arc<dyn JournalLock>>,
}

/// A rename that is recorded, and the lock that excludes recoveries meanwhile.
pub(crate) struct OngoingMove {
    path: VfsPath,
    pub(crate) record: MoveRecord,
    _guard: Option<JournalLockGuard>,
}

/// The files in the directory of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalListing {
    pub(crate) records: Vec<FileInfo>,
    /// An error for each entry that cannot be a record.
    pub(crate) unreadable: Vec<Error>,
}

/// Number of records that this process has begun, which distinguishes records of the same moment.
static RECORD_COUNT: AtomicU64 = AtomicU64::new(0);

impl Journal {
    /// Name of the file that is reserved for a [`JournalLock`].
    const LOCK_FILE: &str = "lock";

    /// Maximum bytes of a record that is read, about those of a record of a million files.
    const MAX_RECORD_SIZE: u64 = 256 << 20;

    pub(crate) fn new(backend: Arc<dyn Backend>, directory: VfsPath, lock: Option<Arc<dyn JournalLock>>) -> Self {
        Self { backend, directory, lock }
    }

    /// Records a rename that is about to begin.
    pub(crate) async fn begin(&self, cx: &OpContext, record: MoveRecord) -> Result<OngoingMove> {
        let guard = match &self.lock {
            Some(lock) => Some(lock.lock_shared(cx).await?),
            None => None,
        };
        // The counter distinguishes records of this process, and the time those of earlier processes.
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = RECORD_COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.child(&format!("move-{timestamp}-{number}.json"))?;
        let text = encode(&record)?;
        let recorded = OngoingMove { path: path.clone(), record, _guard: guard };
        match self.backend.write(cx, WriteRequest::new(path, text)).await {
            Ok(_) => Ok(recorded),
            // The record may have been written nevertheless, and a recovery must not perform a rename that was reported as failed.
            Err(error) => match self.end(&cx.for_cleanup(), recorded).await {
                Err(removal) if !removal.is_absence() => Err(error.with_source(removal)),
                _ => Err(error),
            },
        }
    }

    /// Replaces the record of a running rename.
    pub(crate) async fn update(&self, cx: &OpContext, recorded: &OngoingMove) -> Result<()> {
        self.replace(cx, &recorded.path, &recorded.record).await
    }

    /// Replaces the record at `path`.
    pub(crate) async fn replace(&self, cx: &OpContext, path: &VfsPath, record: &MoveRecord) -> Result<()> {
        let request = WriteRequest::new(path.clone(), encode(record)?).mode(WriteMode::Overwrite);
        self.backend.write(cx, request).await.map(drop)
    }

    /// Removes the record of a rename that has ended, and then releases the lock.
    pub(crate) async fn end(&self, cx: &OpContext, recorded: OngoingMove) -> Result<()> {
        self.remove(cx, recorded.path.clone()).await
    }

    pub(crate) async fn remove(&self, cx: &OpContext, record: VfsPath) -> Result<()> {
        self.backend.delete(cx, DeleteRequest::new(record)).await.map(drop)
    }

    /// Acquires the journal for a recovery; `None` while a rename or another recovery is running.
    pub(crate) async fn try_lock(&self, cx: &OpContext) -> Result<Option<Option<JournalLockGuard>>> {
        match &self.lock {
            Some(lock) => Ok(lock.try_lock_exclusive(cx).await?.map(Some)),
            None => Ok(Some(None)),
        }
    }

    pub(crate) async fn list(&self, cx: &OpContext) -> Result<JournalListing> {
        let mut listing = JournalListing::default();
        let listed = match self.backend.ls(cx, LsRequest::new(self.directory.clone())).await {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(listing),
            Err(error) => return Err(error),
        };
        let problems = listed.problems.into_iter();
        listing
            .unreadable
            .extend(problems.map(|problem| Error::new(problem.code, problem.message).with_path_text(&problem.path)));
        for entry in listed.entries {
            let name = entry.path.name().unwrap_or_default();
            if !entry.is_dir && name.starts_with("move-") && name.ends_with(".json") {
                listing.records.push(entry);
            } else if name != Self::LOCK_FILE {
                listing.unreadable.push(invalid_record(&entry.path));
            }
        }
        Ok(listing)
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// `too_large` and `conflict` for a file that cannot be one, and those of the backend.
    pub(crate) async fn read(&self, cx: &OpContext, entry: &FileInfo) -> Result<MoveRecord> {
        if entry.size > Self::MAX_RECORD_SIZE {
            return Err(
                Error::new(ErrorKind::TooLarge, "the file is larger than any record of a move").with_path(&entry.path)
            );
        }
        let response = FileDownloadRequest::new(entry.path.clone()).send(&*self.backend, cx).await?;
        let content = response.content.unwrap_or_default();
        let record: MoveRecord = serde_json::from_slice(&content).map_err(|source| {
            let header = serde_json::from_slice::<RecordHeader>(&content);
            let is_newer = header.is_ok_and(|header| header.format != RecordFormat::CURRENT);
            let error = if is_newer { newer_record(&entry.path) } else { invalid_record(&entry.path) };
            error.with_source(source)
        })?;
        if record.format != RecordFormat::CURRENT {
            return Err(newer_record(&entry.path));
        }
        if record.is_consistent() { Ok(record) } else { Err(invalid_record(&entry.path)) }
    }
}

fn encode(record: &MoveRecord) -> Result<Vec<u8>> {
    serde_json::to_vec(record).map_err(|source| {
        Error::new(ErrorKind::Internal, "internal: the record of a move cannot be encoded as JSON").with_source(source)
    })
}

/// Returns the error for a record in a format of a newer version.
fn newer_record(path: &VfsPath) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "the record of a move was written by a newer version; recover it with that version",
    )
    .with_path(path)
}

/// Returns the error for a file in a journal that is not a record.
fn invalid_record(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Conflict, "the file is not a record of a move: it is damaged or belongs to another program")
        .with_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips_with_its_wire_names() {
        let filled = include_str!("../tests/golden/move_record.json");
        let record: MoveRecord = serde_json::from_str(filled).expect("a record");
        assert_eq!(serde_json::to_string_pretty(&record).expect("JSON") + "\n", filled);
        let least = concat!(
            r#"{"format":1,"from":"/a","to":"/m/a","source":{"path":"/"},"target":{"path":"/m"},"#,
            r#""replaced":false,"files":[]}"#
        );
        let record: MoveRecord = serde_json::from_str(least).expect("a record");
        assert_eq!(serde_json::to_string(&record).expect("JSON"), least);
    }
}
