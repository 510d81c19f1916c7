//! Recovery of renames across mounts that a crash interrupted.

use std::sync::Arc;

use vfs_core::{
    Backend as _, DeleteRequest, DownloadRequest, Error, ErrorKind, OpContext, Request as _, ResolveRequest, Result,
    StatRequest, Version, VfsPath,
};

use crate::backend::{CompositeBackend, same_mount};
use crate::journal::{Journal, Note, NotedFile};
use crate::transfer::{Copied, Kind, link_at_target};

/// The report of one recovery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// The renames that were recovered, or could not be, oldest first.
    pub moves: Vec<RecoveredMove>,
    /// An error for each file of the journal that is not a record of a rename, with its path there. The files stay.
    pub unreadable: Vec<Error>,
    /// Number of records that are left to a later recovery, because a rename or another recovery is under way.
    pub deferred: usize,
}

/// A rename that a recovery found in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredMove {
    /// The source of the rename.
    pub from: VfsPath,
    /// The target of the rename.
    pub to: VfsPath,
    /// The path of its record in the backend of the journal.
    pub note: VfsPath,
    /// What became of it.
    pub outcome: Recovered,
}

/// The outcome of recovering one rename.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovered {
    /// Everything is at the target now, and nothing at the source.
    Finished,
    /// As [`Finished`](Self::Finished), but for these: they were changed or added at the source since, stay there, and are
    /// not at the target.
    FinishedExcept(Vec<VfsPath>),
    /// Nothing had arrived at the target: the source is as it was left, and the rename did not take place.
    RolledBack,
    /// The rename cannot be completed because of this error. Its record stays for the next recovery, and nothing is lost.
    Stuck(Error),
}

/// The place of one file of a rename.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Placement {
    /// At the target, and at the source in this version.
    Both(Version),
    /// Not at the source, or there as a link that leads nowhere.
    NotAtSource,
    /// Only at the source, where it was changed since.
    OnlyAtSource,
}

impl CompositeBackend {
    /// Completes the renames across mounts that a crash interrupted.
    ///
    /// # Behaviour
    ///
    /// * A rename of which nothing has arrived at the target is rolled back: its record is removed. Otherwise files that are
    ///   still at the source are copied, compared and deleted there, as the rename would have done.
    /// * Files are copied, replaced and deleted only in the versions that were recorded, or if both ends have the same
    ///   content. A file of which the source was changed since, and which is not at the target, stays at the source. A rename
    ///   of which both ends have different contents is [stuck](Recovered::Stuck), and is tried again by the next recovery,
    ///   until one of them is gone.
    /// * With a [lock](Self::with_locked_journal) nothing is done while a rename or another recovery is under way, and an empty
    ///   journal takes no lock. Without one, call this before renames begin.
    /// * It is done for the actor and session of the rename, in the layers around each mount. Layers around this backend do
    ///   not see it.
    ///
    /// # Errors
    ///
    /// Those of listing and locking the journal. Without a journal there is nothing to recover.
    pub async fn recover(&self, cx: &OpContext) -> Result<Recovery> {
        let Some(journal) = &self.journal else { return Ok(Recovery::default()) };
        let listed = journal.list(cx).await?;
        let waiting = listed.notes.len();
        if waiting == 0 {
            return Ok(Recovery { unreadable: listed.foreign, ..Recovery::default() });
        }
        let (this, journal) = (self.clone(), Arc::clone(journal));
        vfs_search::to_the_end(cx, |cx| async move {
            let Some(_guard) = journal.try_lock(&cx).await? else {
                return Ok(Recovery { deferred: waiting, ..Recovery::default() });
            };
            this.recover_all(&cx, &journal).await
        })
        .await
    }

    /// Recovers the renames of a journal that is locked.
    async fn recover_all(&self, cx: &OpContext, journal: &Journal) -> Result<Recovery> {
        // Some of the notes may have been removed until the lock was acquired.
        let listed = journal.list(cx).await?;
        let mut recovery = Recovery { unreadable: listed.foreign, ..Recovery::default() };
        for entry in listed.notes {
            cx.check()?;
            let note = match journal.read(cx, &entry).await {
                Ok(note) => note,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    recovery.unreadable.push(error.or_path(&entry.path));
                    continue;
                }
            };
            let settled = match self.settle(&note.context(cx), &note).await {
                Ok(outcome) => journal.remove(cx, entry.path.clone()).await.map(|()| outcome).map_err(unremoved),
                Err(error) => Err(error),
            };
            let outcome = settled.unwrap_or_else(Recovered::Stuck);
            recovery.moves.push(RecoveredMove { from: note.from, to: note.to, note: entry.path, outcome });
        }
        Ok(recovery)
    }

    async fn settle(&self, cx: &OpContext, note: &Note) -> Result<Recovered> {
        if same_mount(&self.table(), &note.from, &note.to) {
            let message = "both ends of the move are in one mount now; restore the mounts, or remove the record";
            return Err(Error::new(ErrorKind::Conflict, message).with_path(&note.to));
        }
        if !note.files.is_empty() && !self.has_arrived(cx, note).await? {
            // Directories may have been created, which would be in the way of the next attempt.
            if !note.replaced {
                self.remove_unoccupied(cx, &note.to).await?;
            }
            return Ok(Recovered::RolledBack);
        }
        let mut left = self.finish_files(cx, note).await?;
        for directory in &note.empty {
            self.make_directory(cx, directory).await?;
        }
        if !self.remove_unoccupied(cx, &note.from).await? && left.is_empty() {
            left.push(note.from.clone());
        }
        Ok(if left.is_empty() { Recovered::Finished } else { Recovered::FinishedExcept(left) })
    }

    /// Moves the files, as far as they are not; returns those that stay at the source.
    ///
    /// # Errors
    ///
    /// The first one. The files that do not fail are moved all the same.
    async fn finish_files(&self, cx: &OpContext, note: &Note) -> Result<Vec<VfsPath>> {
        let (mut placements, mut left, mut failure) = (Vec::new(), Vec::new(), None);
        // All are copied before any is deleted: one may be a link to another.
        for file in &note.files {
            match self.place_file(cx, file).await {
                Ok(placement) => placements.push((file, placement)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        for (file, placement) in placements {
            let is_moved = match placement {
                Placement::Both(version) => self.remove_source(cx, file, version).await.map(|()| true),
                Placement::NotAtSource => self.remove_dangling(cx, note, file).await,
                Placement::OnlyAtSource => Ok(false),
            };
            match is_moved {
                Ok(true) => {}
                Ok(false) => left.push(file.from.clone()),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(left),
        }
    }

    /// Removes the directories at and below `path`; `false` if a file is in one of them, which stays.
    async fn remove_unoccupied(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        match self.remove_emptied(cx, path).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotEmpty => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether any file is at the target that was not there before the rename.
    async fn has_arrived(&self, cx: &OpContext, note: &Note) -> Result<bool> {
        for file in &note.files {
            match self.stat(cx, StatRequest::new(file.to.clone())).await {
                Ok(there) if there.version != file.replaces => return Ok(true),
                Err(error) if !error.is_absence() => return Err(error),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Copies a file, unless it is at the target or must stay at the source.
    async fn place_file(&self, cx: &OpContext, file: &NotedFile) -> Result<Placement> {
        let source = match self.fetch(cx, &file.from).await {
            Ok(source) => source,
            // It was deleted only after it was found at the target.
            Err(error) if error.is_absence() => return Ok(Placement::NotAtSource),
            Err(error) => return Err(error),
        };
        let there = match self.fetch(cx, &file.to).await {
            Ok(target) => Some(target),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // What is behind a link may be the source itself.
        if self.kind(cx, &file.to).await? == Kind::Link {
            return Err(link_at_target(&file.to));
        }
        // Equal versions at both ends may be those of one file with two names. Only a write shows that.
        let may_be_one_file = file.replaces.as_ref() == Some(&file.version);
        let is_untouched = there.as_ref().map(|there| &there.version) == file.replaces.as_ref();
        match there {
            Some(there) if there.content == source.content && !may_be_one_file => {}
            _ if source.version != file.version && is_untouched && !may_be_one_file => {
                return Ok(Placement::OnlyAtSource);
            }
            _ if source.version != file.version => return Err(Error::conflict(&file.from, Some(source.version))),
            Some(there) if !is_untouched => return Err(Error::conflict(&file.to, Some(there.version))),
            there => {
                self.put(cx, &file.to, &source, there.as_ref()).await?;
                self.compare(cx, &file.to, &source).await?;
            }
        }
        Ok(Placement::Both(source.version))
    }

    /// Deletes the source of a file that is at the target, in the version whose content is there.
    async fn remove_source(&self, cx: &OpContext, file: &NotedFile, version: Version) -> Result<()> {
        // A link has no version that its removal could depend on, so what is there is looked at last.
        let kind = self.kind(cx, &file.from).await?;
        if kind == Kind::Link && file.kind == Kind::File {
            return Err(Error::conflict(&file.from, Some(version)));
        }
        self.delete(cx, kind.removal(file.from.clone(), version)).await.map(drop)
    }

    /// Removes a link to a file that was moved with it, so that it leads nowhere; `false` if it has to stay.
    async fn remove_dangling(&self, cx: &OpContext, note: &Note, file: &NotedFile) -> Result<bool> {
        if file.kind == Kind::File || self.kind(cx, &file.from).await? != Kind::Link {
            return Ok(true);
        }
        let real = self.resolve(cx, ResolveRequest::new(file.from.clone())).await?.path;
        let is_target_moved = note.files.iter().any(|other| other.from == real);
        match self.stat(cx, StatRequest::new(file.to.clone())).await {
            Ok(_) if is_target_moved => {}
            Err(error) if !error.is_absence() => return Err(error),
            _ => return Ok(false),
        }
        self.delete(cx, DeleteRequest::new(file.from.clone())).await.map(|_| true)
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

/// The error for a rename that is settled, of which the record cannot be removed.
fn unremoved(source: Error) -> Error {
    let message = format!("the move is settled, but its record cannot be removed: {}", source.message());
    Error::new(source.kind(), message).with_source(source)
}
