//! Writes: the new content is staged beside the file, and replaces it atomically.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use rustix::fs::FileType;
use vfs_core::{
    Error, ErrorKind, FileUploadRequest, FileUploadResponse, OpContext, Result, Version, VfsPath, WriteMode,
    WriteRequest, WriteResult,
};

use crate::config::policies::HardLinks;
use crate::fs::created_parents::CreatedParents;
use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::PathAccess;
use crate::local_fs::{LocalFs, LockedEntry};
use crate::staging::entry_lock::{LockPurpose, LockedFile};
use crate::staging::staged_file::{ReplacePrecondition, StagedFile};

/// A write of a file, from memory or from a staged file.
#[derive(Debug)]
pub(crate) struct FileWrite {
    pub(crate) path: VfsPath,
    pub(crate) mode: WriteMode,
    pub(crate) modified_at: Option<DateTime<Utc>>,
    pub(crate) content: NewContent,
}

/// The bytes that a write adds.
#[derive(Debug)]
pub(crate) enum NewContent {
    Bytes(Bytes),
    /// The chunks of a writer, and their number of bytes.
    Staged(Arc<StagedFile>, u64),
}

impl NewContent {
    fn len(&self) -> u64 {
        match self {
            NewContent::Bytes(bytes) => bytes.len() as u64,
            NewContent::Staged(_, size) => *size,
        }
    }

    /// Adds the bytes to `staged`.
    fn stage(&self, staged: &StagedFile, cx: &OpContext) -> Result<()> {
        match self {
            NewContent::Bytes(bytes) => staged.write(bytes, cx),
            NewContent::Staged(chunks, size) => staged.copy_from(chunks.fd(), *size, cx).map(drop),
        }
    }
}

impl LocalFs {
    pub(crate) fn write(&self, request: WriteRequest, cx: &OpContext) -> Result<WriteResult> {
        if request.content.len() as u64 > self.max_file_size {
            return Err(self.too_large(&request.path));
        }
        let WriteRequest { path, content, mode, modified_at, .. } = request;
        self.write_file(FileWrite { path, mode, modified_at, content: NewContent::Bytes(content) }, cx)
    }

    /// Writes a file whose size is within the limits.
    pub(crate) fn write_file(&self, request: FileWrite, cx: &OpContext) -> Result<WriteResult> {
        let path = &request.path;
        if path.is_root() {
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        let written = match &request.mode {
            WriteMode::CreateNew => self.create(&request, cx),
            WriteMode::Overwrite => self.replace_or_create(&request, cx),
            WriteMode::Append => self.append(&request, cx),
            WriteMode::IfVersion(version) => self.replace_version(&request, version, cx),
            _ => Err(Error::new(ErrorKind::Unsupported, "this backend does not support the write mode")),
        };
        let (created, metadata) = written.map_err(|error| error.or_path(path))?;
        Ok(WriteResult::new(request.path, created, metadata.version(), metadata.size()))
    }

    pub(crate) fn upload(&self, upload: FileUploadRequest, cx: &OpContext) -> FileUploadResponse {
        let path = upload.path.clone();
        FileUploadResponse::of_write(path, self.write(upload.into(), cx))
    }

    /// Writes a file that must not exist yet.
    fn create(&self, request: &FileWrite, cx: &OpContext) -> Result<(bool, Metadata)> {
        let path = &request.path;
        self.with_created_parents(path, cx, |entry, created| match entry.file_type().map_err(from_errno)? {
            None => self.create_at(entry, created, request, cx),
            Some(FileType::Directory) => Err(Error::of(ErrorKind::IsADirectory)),
            Some(_) => Err(Error::already_exists(path)),
        })
        .map_err(|error| if error.kind() == ErrorKind::AlreadyExists { Error::already_exists(path) } else { error })
    }

    fn create_at(
        &self,
        entry: &EntryLocation,
        created: &CreatedParents,
        request: &FileWrite,
        cx: &OpContext,
    ) -> Result<(bool, Metadata)> {
        let staged = StagedFile::create(entry, None, self.durability)?.with_modified_at(request.modified_at);
        request.content.stage(&staged, cx)?;
        Ok((true, staged.finish()?.publish_new(entry, || created.sync())?))
    }

    fn replace_or_create(&self, request: &FileWrite, cx: &OpContext) -> Result<(bool, Metadata)> {
        self.change_locked(&request.path, HardLinks::Allow, cx, |locked, created| match &locked.file {
            None => self.create_at(locked.entry, created, request, cx),
            Some(file) => {
                let staged = StagedFile::create(locked.entry, Some(file), self.durability)?
                    .with_modified_at(request.modified_at);
                request.content.stage(&staged, cx)?;
                Ok((
                    false,
                    staged.finish()?.publish_over(&self.root, locked.entry, file, ReplacePrecondition::SameFile)?,
                ))
            }
        })
    }

    fn append(&self, request: &FileWrite, cx: &OpContext) -> Result<(bool, Metadata)> {
        self.change_locked(&request.path, self.hard_links, cx, |locked, created| {
            let Some(file) = &locked.file else {
                return self.create_at(locked.entry, created, request, cx);
            };
            if file.metadata.size().saturating_add(request.content.len()) > self.max_file_size {
                return Err(self.too_large(&request.path));
            }
            // The content is copied and extended, not appended in place: a reader or a crash finds all of the new
            // content or none.
            let staged =
                StagedFile::create(locked.entry, Some(file), self.durability)?.with_modified_at(request.modified_at);
            staged.copy_from(file.fd.as_fd(), self.max_file_size, cx)?;
            request.content.stage(&staged, cx)?;
            Ok((false, self.publish_if_unchanged(staged, locked.entry, file)?))
        })
    }

    fn replace_version(&self, request: &FileWrite, expected: &Version, cx: &OpContext) -> Result<(bool, Metadata)> {
        let path = &request.path;
        let entry = self.root.resolve_entry(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::conflict(path, None),
            _ => error,
        })?;
        self.root.check(&entry, PathAccess::Change, path)?;
        let locked = self.lock_entry(LockPurpose::Change, &entry, HardLinks::Allow, cx)?;
        let file = locked.file.as_ref().ok_or_else(|| Error::conflict(path, None))?;
        if file.metadata.version() != *expected {
            return Err(Error::conflict(path, Some(file.metadata.version())));
        }
        let staged = StagedFile::create(&entry, Some(file), self.durability)?.with_modified_at(request.modified_at);
        request.content.stage(&staged, cx)?;
        match self.publish_if_unchanged(staged, &entry, file) {
            Ok(metadata) => Ok((false, metadata)),
            // Another program changed the file first.
            Err(failure) if matches!(failure.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {
                let current = Metadata::at(entry.parent.as_fd(), &entry.name).ok();
                let current = current.filter(|current| current.file_type() == FileType::RegularFile);
                Err(Error::conflict(path, current.map(|current| current.version())))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Replaces `file` by `staged`. Fails with `conflict` if the file has changed since it was checked.
    pub(super) fn publish_if_unchanged(
        &self,
        staged: StagedFile,
        entry: &EntryLocation,
        file: &LockedFile,
    ) -> Result<Metadata> {
        let finished = staged.finish()?;
        match detect_change(entry, file)? {
            Some(_) => Err(Error::of(ErrorKind::Conflict)),
            None => finished.publish_over(&self.root, entry, file, ReplacePrecondition::SameContent),
        }
    }

    /// Runs `change` on the locked entry that `path` leads to, with its parents created.
    fn change_locked(
        &self,
        path: &VfsPath,
        hard_links: HardLinks,
        cx: &OpContext,
        change: impl Fn(&LockedEntry<'_>, &CreatedParents) -> Result<(bool, Metadata)>,
    ) -> Result<(bool, Metadata)> {
        self.with_created_parents(path, cx, |entry, created| {
            let target = match entry.file_type().map_err(from_errno)? {
                Some(FileType::Symlink) => &self.root.resolve_entry(path)?,
                _ => entry,
            };
            self.root.check(target, PathAccess::Change, path)?;
            let changed = change(&self.lock_entry(LockPurpose::Change, target, hard_links, cx)?, created);
            // Another program created a file there after the check: the change applies to that file.
            changed.map_err(|failure| match failure.kind() {
                ErrorKind::AlreadyExists => Error::of(ErrorKind::Conflict),
                _ => failure,
            })
        })
    }

    /// Runs `work` on the entry at `path` with its parents created, and removes these again if it fails.
    ///
    /// The work is retried if another writer interfered: it created the file, removed its directory, or changed the file in
    /// place. A file that was created or changed is a `conflict` of `work`.
    fn with_created_parents(
        &self,
        path: &VfsPath,
        cx: &OpContext,
        work: impl Fn(&EntryLocation, &CreatedParents) -> Result<(bool, Metadata)>,
    ) -> Result<(bool, Metadata)> {
        let deadline = self.lock_deadline();
        loop {
            let (failure, lost_race) = match self.root.create_parents(path) {
                // Missing directories are created, so `not_found` means that one was removed meanwhile.
                Err(failure) => {
                    let lost_race = failure.kind() == ErrorKind::NotFound;
                    (failure, lost_race)
                }
                Ok((entry, created)) => match work(&entry, &created) {
                    Ok(done) => return Ok(done),
                    Err(failure) => {
                        // The parent is checked before the rollback, which removes the directory, too.
                        let lost_race = match failure.kind() {
                            ErrorKind::Conflict => true,
                            // The file itself was removed meanwhile. The error for a dangling link has a path; retrying
                            // would not help.
                            ErrorKind::NotFound if failure.path().is_none() => true,
                            // Nothing can be created in a removed directory, and file systems report that by different
                            // errors.
                            _ => Metadata::from_fd(entry.parent.as_fd()).is_ok_and(|parent| parent.link_count() == 0),
                        };
                        created.rollback();
                        (failure, lost_race)
                    }
                },
            };
            if !lost_race || self.root.is_removed() || Instant::now() >= deadline {
                return Err(match failure.kind() {
                    ErrorKind::Conflict => {
                        Error::new(ErrorKind::Busy, "other programs keep changing the file; try again")
                            .with_source(failure)
                    }
                    _ => failure,
                });
            }
            cx.check()?;
        }
    }

    fn too_large(&self, path: &VfsPath) -> Error {
        Error::new(ErrorKind::TooLarge, format!("the file would be over the limit of {} bytes", self.max_file_size))
            .with_path(path)
    }
}

/// Checks right before the commit whether the file has changed, so that the data of another writer is not lost. Returns
/// the current metadata if the version changed, and fails with `conflict` if another file has replaced it.
pub(super) fn detect_change(entry: &EntryLocation, file: &LockedFile) -> Result<Option<Metadata>> {
    let now = Metadata::at(entry.parent.as_fd(), &entry.name).map_err(from_errno)?;
    if now.identity() != file.metadata.identity() {
        return Err(Error::of(ErrorKind::Conflict));
    }
    Ok((now.version() != file.metadata.version()).then_some(now))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::LocalConfig;
    use crate::config::policies::Durability;

    /// A change of the file by another program.
    type OutsideChange = fn(&Path) -> std::io::Result<()>;

    #[test]
    fn a_change_by_another_program_prevents_the_replacement() {
        let changes: [(OutsideChange, Option<ErrorKind>, Option<&str>); 4] = [
            (|_| Ok(()), None, Some("ours")),
            (|at| fs::write(at, "theirs, in place"), Some(ErrorKind::Conflict), Some("theirs, in place")),
            (
                |at| {
                    fs::write(at.with_extension("new"), "theirs")?;
                    fs::rename(at.with_extension("new"), at)
                },
                Some(ErrorKind::Conflict),
                Some("theirs"),
            ),
            (|at| fs::remove_file(at), Some(ErrorKind::NotFound), None),
        ];
        let cx = OpContext::new();
        for durability in [Durability::Atomic, Durability::Full] {
            for (change, refused, left) in changes {
                let tree = tempfile::tempdir().expect("a temporary directory");
                let at = tree.path().join("f");
                fs::write(&at, "old").expect("it writes");
                let config = LocalConfig::new(tree.path()).durability(durability);
                let local_fs = LocalFs::open(&config).expect("the root opens");
                let entry = local_fs.root.entry(&VfsPath::parse("/f").expect("it is a path")).expect("it is found");
                let locked =
                    local_fs.lock_entry(LockPurpose::Change, &entry, HardLinks::Allow, &cx).expect("it is not locked");
                let file = locked.file.as_ref().expect("it is there");
                let staged = StagedFile::create(&entry, Some(file), durability).expect("it is staged");
                staged.write(b"ours", &cx).expect("it writes");
                change(&at).expect("they may");
                let published = local_fs.publish_if_unchanged(staged, &entry, file);
                assert_eq!(published.err().map(|failure| failure.kind()), refused);
                let names: Vec<_> = fs::read_dir(tree.path())
                    .expect("it lists")
                    .map(|entry| entry.map(|e| e.path()))
                    .collect::<Result<_, _>>()
                    .expect("it lists");
                assert_eq!(names, left.map(|_| at.clone()).as_slice(), "nothing else is left");
                assert_eq!(fs::read_to_string(&at).ok().as_deref(), left);
            }
        }
    }
}
