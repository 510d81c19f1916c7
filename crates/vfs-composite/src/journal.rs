//! Renames across mounts that are under way, noted where a crash does not reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, DeleteRequest, DownloadRequest, Error, ErrorKind, LsRequest, OpContext, Request as _, Result, Version,
    VfsPath, WriteRequest,
};

use crate::backend::CompositeBackend;
use crate::transfer::{Copied, Kind, link_at_target};

/// A rename that recovery came across.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredMove {
    /// Where it came from.
    pub from: VfsPath,
    /// Where it was going.
    pub to: VfsPath,
    /// How it ended.
    pub outcome: Recovered,
}

/// How a rename that was cut short ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovered {
    /// Everything is at the target now, and nothing at the source.
    Finished,
    /// It cannot be finished, because of this; its note stays, and nothing was lost.
    Stuck(Error),
}

/// One rename, as it is noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    /// The files, each by its path and the version that is to be moved.
    pub(crate) files: Vec<NotedFile>,
    /// Directories of the target without anything in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty: Vec<VfsPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedFile {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    /// The version of what is replaced at the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<Version>,
}

/// Where renames are noted.
#[derive(Debug)]
pub(crate) struct Journal {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
}

static NOTES: AtomicU64 = AtomicU64::new(0);

impl Journal {
    pub(crate) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self { backend, directory }
    }

    /// Notes a rename that is about to begin, and says where.
    pub(crate) async fn begin(&self, cx: &OpContext, note: &Note) -> Result<VfsPath> {
        // A process may have begun several, and another may have gone before it.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = NOTES.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.child(&format!("move-{since}-{number}.json"))?;
        let text = serde_json::to_vec(note).map_err(|source| {
            Error::new(ErrorKind::Internal, "the rename cannot be noted").with_path(&path).with_source(source)
        })?;
        match self.backend.write(cx, WriteRequest::new(path.clone(), text)).await {
            Ok(_) => Ok(path),
            Err(error) => {
                // It may be there all the same; a recovery must not do what the caller was told was not done.
                match self.end(&cx.unhurried(), path).await {
                    Err(left) if left.kind() != ErrorKind::NotFound => Err(error.with_source(left)),
                    _ => Err(error),
                }
            }
        }
    }

    /// Forgets a rename that is over.
    pub(crate) async fn end(&self, cx: &OpContext, note: VfsPath) -> Result<()> {
        self.backend.delete(cx, DeleteRequest::new(note)).await.map(drop)
    }

    async fn notes(&self, cx: &OpContext) -> Result<Vec<(VfsPath, Note)>> {
        let listed = match self.backend.ls(cx, LsRequest::new(self.directory.clone())).await {
            Ok(listed) => listed.entries,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut notes = Vec::new();
        for entry in listed {
            let answer = DownloadRequest::new(entry.path.clone()).send(&*self.backend, cx).await?;
            let note = serde_json::from_slice(&answer.content.unwrap_or_default()).map_err(|source| {
                let message = "this is not a note of a rename; another program wrote it";
                Error::new(ErrorKind::Conflict, message).with_path(&entry.path).with_source(source)
            })?;
            notes.push((entry.path, note));
        }
        Ok(notes)
    }
}

impl CompositeBackend {
    /// Finishes the renames across mounts that a crash cut short; to be called before others begin.
    ///
    /// # Behaviour
    ///
    /// Files that are still at the source are copied, compared and deleted there, as the rename would have done. Where the
    /// source or the target was changed since, the rename is [stuck](Recovered::Stuck), and stays noted.
    ///
    /// # Errors
    ///
    /// Those of reading the journal. Without a journal there is nothing to recover.
    pub async fn recover(&self, cx: &OpContext) -> Result<Vec<RecoveredMove>> {
        let Some(journal) = &self.journal else { return Ok(Vec::new()) };
        let mut recovered = Vec::new();
        for (path, note) in journal.notes(cx).await? {
            let outcome = match self.finish(cx, &note).await {
                Ok(()) => {
                    journal.end(cx, path).await?;
                    Recovered::Finished
                }
                Err(error) => Recovered::Stuck(error),
            };
            recovered.push(RecoveredMove { from: note.from, to: note.to, outcome });
        }
        Ok(recovered)
    }

    async fn finish(&self, cx: &OpContext, note: &Note) -> Result<()> {
        for file in &note.files {
            self.finish_file(cx, file).await?;
        }
        for directory in &note.empty {
            self.make_directory(cx, directory).await?;
        }
        self.remove_emptied(cx, &note.from).await
    }

    async fn finish_file(&self, cx: &OpContext, file: &NotedFile) -> Result<()> {
        let source = match self.fetch(cx, &file.from).await {
            Ok(source) => source,
            // It was deleted only after it was found at the target.
            Err(error) if error.is_absence() => return Ok(()),
            Err(error) => return Err(error),
        };
        if source.version != file.version {
            return Err(Error::conflict(&file.from, Some(source.version)));
        }
        let there = match self.fetch(cx, &file.to).await {
            Ok(target) => Some(target),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match there {
            Some(target) if target.content == source.content => {}
            Some(target) if file.replaces.as_ref() != Some(&target.version) => {
                return Err(Error::conflict(&file.to, Some(target.version)));
            }
            _ if self.kind(cx, &file.to).await? == Kind::Link => return Err(link_at_target(&file.to)),
            there => {
                self.put(cx, &file.to, &source, there.as_ref()).await?;
                self.compare(cx, &file.to, &source).await?;
            }
        }
        self.delete(cx, file.kind.removal(file.from.clone(), source.version)).await.map(drop)
    }

    /// The whole file at `path`.
    pub(crate) async fn fetch(&self, cx: &OpContext, path: &VfsPath) -> Result<Copied> {
        let answer = DownloadRequest::new(path.clone()).send(self, cx).await?;
        match (answer.content, answer.version) {
            (Some(content), Some(version)) => Ok(Copied { content, version }),
            _ => Err(Error::new(ErrorKind::Internal, "the backend gave neither file nor error").with_path(path)),
        }
    }
}
