//! A write-ahead log of renames across mounts.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, DeleteRequest, DownloadRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, Request as _, Result,
    Version, VfsPath, WriteRequest,
};

use crate::transfer::Kind;

/// A held [`JournalLock`], released when it is dropped.
pub type JournalGuard = Box<dyn Any + Send + Sync>;

/// A lock that keeps the renames and the recoveries of all processes that share a journal apart.
///
/// # Behaviour
///
/// A rename across mounts holds it shared, from before its note is written until that is removed; a recovery holds it
/// exclusively. A process that ends has to lose it, in whatever way it ends.
#[async_trait]
pub trait JournalLock: fmt::Debug + Send + Sync + 'static {
    /// Acquires the lock for a rename, and waits for a recovery to end.
    async fn lock_shared(&self, cx: &OpContext) -> Result<JournalGuard>;

    /// Acquires the lock for a recovery, without waiting: `None` while a rename or another recovery holds it.
    async fn try_lock_exclusive(&self, cx: &OpContext) -> Result<Option<JournalGuard>>;
}

/// The record of one rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    /// The caller of the rename, whose files those of a store may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Whether the rename replaces what is at the target.
    #[serde(default)]
    pub(crate) replaced: bool,
    /// The files, each by its path and the version that is to be moved.
    pub(crate) files: Vec<NotedFile>,
    /// Directories of the target without anything in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty: Vec<VfsPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotedFile {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    /// The version of what is replaced at the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<Version>,
}

impl Note {
    /// The context of the caller who began the rename.
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

    /// Whether all paths are at and below the two ends, each file at the same place of both.
    fn is_consistent(&self) -> bool {
        let below = |path: &VfsPath, end: &VfsPath| path.strip_prefix(end).map(str::to_owned);
        let is_moved = |file: &NotedFile| {
            let (from, to) = (below(&file.from, &self.from), below(&file.to, &self.to));
            from.is_some() && from == to
        };
        !self.from.is_root()
            && !self.to.is_root()
            && self.files.iter().all(is_moved)
            && self.empty.iter().all(|path| path.starts_with(&self.to))
    }
}

/// Where renames are recorded.
#[derive(Debug)]
pub(crate) struct Journal {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    lock: Option<Arc<dyn JournalLock>>,
}

/// A rename that is recorded, and the lock that keeps recoveries from it.
pub(crate) struct NotedRename {
    path: VfsPath,
    _guard: Option<JournalGuard>,
}

/// The files in the directory of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalListing {
    pub(crate) notes: Vec<FileInfo>,
    /// An error for each entry that cannot be a note.
    pub(crate) foreign: Vec<Error>,
}

/// Tells notes that one process begins in the same moment apart.
static NOTES: AtomicU64 = AtomicU64::new(0);

impl Journal {
    /// The name in the directory that is left to a [`JournalLock`].
    const LOCK_FILE: &str = "lock";

    /// Largest note that is read, in bytes; one of a million files has about as many.
    const MAX_NOTE_SIZE: u64 = 256 << 20;

    pub(crate) fn new(backend: Arc<dyn Backend>, directory: VfsPath, lock: Option<Arc<dyn JournalLock>>) -> Self {
        Self { backend, directory, lock }
    }

    /// Records a rename that is about to begin.
    pub(crate) async fn begin(&self, cx: &OpContext, note: &Note) -> Result<NotedRename> {
        let guard = match &self.lock {
            Some(lock) => Some(lock.lock_shared(cx).await?),
            None => None,
        };
        // A process may have begun several, and another may have gone before it.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = NOTES.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.child(&format!("move-{since}-{number}.json"))?;
        let text = serde_json::to_vec(note)
            .map_err(|source| Error::new(ErrorKind::Internal, "the record cannot be encoded").with_source(source))?;
        let noted = NotedRename { path: path.clone(), _guard: guard };
        match self.backend.write(cx, WriteRequest::new(path, text)).await {
            Ok(_) => Ok(noted),
            // The note may be there all the same; a recovery must not do what was reported as not done.
            Err(error) => match self.end(&cx.unhurried(), noted).await {
                Err(left) if !left.is_absence() => Err(error.with_source(left)),
                _ => Err(error),
            },
        }
    }

    /// Removes the record of a rename that is over.
    pub(crate) async fn end(&self, cx: &OpContext, noted: NotedRename) -> Result<()> {
        self.remove(cx, noted.path.clone()).await
    }

    pub(crate) async fn remove(&self, cx: &OpContext, note: VfsPath) -> Result<()> {
        self.backend.delete(cx, DeleteRequest::new(note)).await.map(drop)
    }

    /// Acquires the journal for a recovery: `None` while a rename or another recovery is under way.
    pub(crate) async fn try_lock(&self, cx: &OpContext) -> Result<Option<Option<JournalGuard>>> {
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
        let hidden = listed.problems.into_iter();
        listing
            .foreign
            .extend(hidden.map(|hidden| Error::new(hidden.code, hidden.message).with_path_text(&hidden.path)));
        for entry in listed.entries {
            let name = entry.path.name().unwrap_or_default();
            if !entry.is_dir && name.starts_with("move-") && name.ends_with(".json") {
                listing.notes.push(entry);
            } else if name != Self::LOCK_FILE {
                listing.foreign.push(foreign(&entry.path));
            }
        }
        Ok(listing)
    }

    /// Reads a note.
    ///
    /// # Errors
    ///
    /// `too_large` and `conflict` for a file that cannot be one, and those of the backend.
    pub(crate) async fn read(&self, cx: &OpContext, entry: &FileInfo) -> Result<Note> {
        if entry.size > Self::MAX_NOTE_SIZE {
            return Err(
                Error::new(ErrorKind::TooLarge, "it is larger than any record of a move").with_path(&entry.path)
            );
        }
        let answer = DownloadRequest::new(entry.path.clone()).send(&*self.backend, cx).await?;
        let note: Note = serde_json::from_slice(&answer.content.unwrap_or_default())
            .map_err(|source| foreign(&entry.path).with_source(source))?;
        if note.is_consistent() { Ok(note) } else { Err(foreign(&entry.path)) }
    }
}

/// The error for a file in a journal that is not a note.
fn foreign(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Conflict, "this is not a record of a move: it is damaged, or of another program")
        .with_path(path)
}
