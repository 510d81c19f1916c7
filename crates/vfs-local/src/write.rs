//! Writing and editing: the new content is staged beside the file and takes its place in one step.

use std::os::fd::AsFd;

use bytes::Bytes;
use rustix::fs::FileType;
use vfs_core::{
    EditMode, EditRequest, EditResult, Error, ErrorKind, FileUpload, FileUploadResponse, OpContext, Result, Version,
    VfsPath, WriteMode, WriteRequest, WriteResult, edit,
};

use crate::disk::{Disk, HeldEntry};
use crate::errno::error_at;
use crate::lock::HeldFile;
use crate::metadata::Metadata;
use crate::read::read_to_end;
use crate::root::{Entry, MadeDirectories};
use crate::staging::Staged;

/// How often an edit starts again because something outside this library changed the file in place under it.
const MAX_EDIT_ATTEMPTS: usize = 64;

impl Disk {
    pub(crate) fn write(&self, request: WriteRequest, cx: &OpContext) -> Result<WriteResult> {
        let WriteRequest { path, content, mode, .. } = request;
        if content.len() as u64 > self.max_file_size {
            return Err(self.too_large(&path));
        }
        if path.is_root() {
            return Err(Error::at(ErrorKind::IsADirectory, &path));
        }
        let written = match mode {
            WriteMode::CreateNew => self.create(&path, &content, cx),
            WriteMode::Overwrite => self.replace_or_create(&path, &content, cx),
            WriteMode::Append => self.append(&path, &content, cx),
            WriteMode::IfVersion(version) => self.replace_version(&path, &content, &version, cx),
            _ => Err(Error::new(ErrorKind::Unsupported, "this write mode is not known here")),
        };
        let (created, metadata) = written.map_err(|error| error.or_path(&path))?;
        Ok(WriteResult::new(path, created, metadata.version(), metadata.size()))
    }

    pub(crate) fn upload(&self, upload: FileUpload, cx: &OpContext) -> FileUploadResponse {
        let request = WriteRequest::new(upload.path.clone(), upload.content).mode(WriteMode::Overwrite);
        match self.write(request, cx) {
            Ok(written) => FileUploadResponse::ok(written.path, written.version),
            Err(error) => FileUploadResponse::failed(upload.path, error),
        }
    }

    pub(crate) fn edit(&self, request: EditRequest, cx: &OpContext) -> Result<EditResult> {
        edit::check(&request)?;
        let path = &request.path;
        if path.is_root() {
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        let entry = self.root.followed_entry(path)?;
        let held = self.hold(&entry, path, cx)?;
        let Some(mut file) = held.file else {
            return Err(Error::not_found(path));
        };
        for _ in 0..MAX_EDIT_ATTEMPTS {
            let version = file.metadata.version();
            if request.expected_version.as_ref().is_some_and(|expected| *expected != version) {
                return Err(Error::conflict(path, Some(version)));
            }
            let old =
                read_to_end(&file.fd, &file.metadata, self.max_file_size, cx).map_err(|error| error.or_path(path))?;
            let edited =
                edit::apply(&old, &request.replacements, self.max_file_size).map_err(|error| error.or_path(path))?;
            let diff = request.wants_diff().then(|| edit::diff(path, &old, &edited.content));
            let size = edited.content.len() as u64;
            if request.mode == EditMode::DryRun {
                return Ok(EditResult::new(path.clone(), edited.occurrences, version, size).with_diff(diff));
            }
            let staged = Staged::new(&entry, Some(&file), self.durability).map_err(|error| error.or_path(path))?;
            staged.write(&edited.content, cx).map_err(|error| error.or_path(path))?;
            // A last look before the commit: what another program wrote into the file meanwhile must not be lost.
            let now = Metadata::at(entry.parent.as_fd(), &entry.name).map_err(|errno| error_at(errno, path))?;
            if now.identity() != file.metadata.identity() {
                return Err(Error::conflict(path, Some(now.version())));
            }
            if now.version() != version {
                file.metadata = now;
                continue;
            }
            let metadata = staged.publish_over(&entry, &file).map_err(|error| error.or_path(path))?;
            return Ok(EditResult::new(path.clone(), edited.occurrences, metadata.version(), size).with_diff(diff));
        }
        Err(Error::at(ErrorKind::Busy, path))
    }

    /// Writes a file that must not be there yet.
    fn create(&self, path: &VfsPath, content: &Bytes, cx: &OpContext) -> Result<(bool, Metadata)> {
        let (entry, made) = self.root.make_parents(path)?;
        match entry.file_type().map_err(|errno| error_at(errno, path))? {
            None => self.create_at(&entry, made, path, content, cx),
            Some(FileType::Directory) => Err(Error::at(ErrorKind::IsADirectory, path)),
            Some(_) => Err(Error::already_exists(path)),
        }
    }

    fn create_at(
        &self,
        entry: &Entry,
        made: MadeDirectories,
        path: &VfsPath,
        content: &[u8],
        cx: &OpContext,
    ) -> Result<(bool, Metadata)> {
        let created = Staged::new(entry, None, self.durability)
            .and_then(|staged| staged.write(content, cx).map(|()| staged))
            .and_then(|staged| staged.publish_new(entry, || made.sync()));
        match created {
            Ok(metadata) => Ok((true, metadata)),
            Err(error) => {
                made.undo();
                Err(if error.kind() == ErrorKind::AlreadyExists { Error::already_exists(path) } else { error })
            }
        }
    }

    fn replace_or_create(&self, path: &VfsPath, content: &Bytes, cx: &OpContext) -> Result<(bool, Metadata)> {
        self.change(path, cx, |held, made| match &held.file {
            None => self.create_at(held.entry, made, path, content, cx),
            Some(file) => self.replace(held.entry, file, content, cx),
        })
    }

    fn append(&self, path: &VfsPath, content: &Bytes, cx: &OpContext) -> Result<(bool, Metadata)> {
        self.change(path, cx, |held, made| {
            let Some(file) = &held.file else {
                return self.create_at(held.entry, made, path, content, cx);
            };
            if file.metadata.size().saturating_add(content.len() as u64) > self.max_file_size {
                return Err(self.too_large(path));
            }
            // A copy with the rest behind it, not a write at the end: a reader or a crash finds all of it or nothing.
            let staged = Staged::new(held.entry, Some(file), self.durability)?;
            staged.copy_from(file.fd.as_fd(), self.max_file_size, cx)?;
            staged.write(content, cx)?;
            Ok((false, staged.publish_over(held.entry, file)?))
        })
    }

    fn replace_version(
        &self,
        path: &VfsPath,
        content: &Bytes,
        expected: &Version,
        cx: &OpContext,
    ) -> Result<(bool, Metadata)> {
        let entry = self.root.followed_entry(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::conflict(path, None),
            _ => error,
        })?;
        let held = self.hold(&entry, path, cx)?;
        match &held.file {
            None => Err(Error::conflict(path, None)),
            Some(file) if file.metadata.version() != *expected => {
                Err(Error::conflict(path, Some(file.metadata.version())))
            }
            Some(file) => self.replace(&entry, file, content, cx),
        }
    }

    fn replace(&self, entry: &Entry, file: &HeldFile, content: &[u8], cx: &OpContext) -> Result<(bool, Metadata)> {
        let staged = Staged::new(entry, Some(file), self.durability)?;
        staged.write(content, cx)?;
        Ok((false, staged.publish_over(entry, file)?))
    }

    /// Runs `change` on the entry that `path` leads to, held, with its parents made.
    ///
    /// Another process may create the file between the look and the commit; then the change starts again on that file.
    fn change(
        &self,
        path: &VfsPath,
        cx: &OpContext,
        change: impl Fn(&HeldEntry<'_>, MadeDirectories) -> Result<(bool, Metadata)>,
    ) -> Result<(bool, Metadata)> {
        let until = self.wait_until();
        loop {
            let (mut entry, made) = self.root.make_parents(path)?;
            if entry.file_type().map_err(|errno| error_at(errno, path))? == Some(FileType::Symlink) {
                entry = self.root.followed_entry(path)?;
            }
            let held = match self.hold(&entry, path, cx) {
                Ok(held) => held,
                Err(error) => {
                    made.undo();
                    return Err(error);
                }
            };
            match change(&held, made) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && std::time::Instant::now() < until => {
                    cx.check()?;
                }
                changed => return changed,
            }
        }
    }

    fn too_large(&self, path: &VfsPath) -> Error {
        Error::new(
            ErrorKind::TooLarge,
            format!("the content is over the limit of {} bytes for a file", self.max_file_size),
        )
        .with_path(path)
    }
}
