//! Deletion: a file or link by one system call, a directory by renaming it to a reserved name first.

use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags, FileType, OFlags};
use vfs_core::transfer::DeleteScope;
use vfs_core::{DeleteRequest, DeleteResult, Error, ErrorKind, OpContext, Result, VfsPath};

use crate::config::policies::{Durability, HardLinks};
use crate::fs::created_parents::CreatedParents;
use crate::fs::entry_location::{EntryLocation, sync_directory};
use crate::fs::errno::{from_errno, from_errno_at};
use crate::fs::metadata::special_file_error;
use crate::fs::protected_paths::PathAccess;
use crate::fs::remove_tree::{RemovedCounts, remove_tree};
use crate::fs::rename_noreplace::rename_new;
use crate::local_fs::LocalFs;
use crate::ops::removal_checks::check_removable;
use crate::staging::durable_rename::{RenameSync, explain_mount_error, rename_new_durably};
use crate::staging::entry_lock::{InProcessEntryLock, LockPurpose};
use crate::staging::reserved_names::{create_reserved, create_unique_reserved, lock_against_cleanup};

impl LocalFs {
    pub(crate) fn delete(&self, request: DeleteRequest, cx: &OpContext) -> Result<DeleteResult> {
        let path = &request.path;
        if path.is_root() {
            return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
        }
        if request.scope == DeleteScope::EmptyDirectory {
            return self.delete_empty(path, cx);
        }
        let entry = self.root.entry(path)?;
        self.root.check(&entry, PathAccess::Change, path)?;
        let files = match entry.file_type().map_err(|errno| from_errno_at(errno, path))? {
            None => return Err(Error::not_found(path)),
            Some(FileType::Directory) => {
                request.check_directory()?;
                let _lock = InProcessEntryLock::acquire(&entry, cx, self.lock_deadline())
                    .map_err(|error| error.or_path(path))?;
                let untouched = RemovedCounts::default();
                check_removable(&self.root, &entry, cx).map_err(|failure| failure.into_error(path, untouched))?;
                self.remove_via_reserved_name(&entry, path).map_err(|error| error.or_path(path))?
            }
            Some(FileType::RegularFile) => {
                let locked = self
                    .lock_entry(LockPurpose::Removal, &entry, HardLinks::Allow, cx)
                    .map_err(|error| error.or_path(path))?;
                let Some(file) = &locked.file else { return Err(Error::not_found(path)) };
                let version = file.metadata.version();
                if request.expected_version.as_ref().is_some_and(|expected| *expected != version) {
                    return Err(Error::conflict(path, Some(version)));
                }
                self.remove_entry(&entry, path).map_err(|error| error.or_path(path))?
            }
            Some(FileType::Symlink) if request.expected_version.is_some() => {
                return Err(Error::invalid_argument("a link has no version; delete it without an expected version")
                    .with_path(path));
            }
            Some(FileType::Symlink) => {
                let _lock = InProcessEntryLock::acquire(&entry, cx, self.lock_deadline())
                    .map_err(|error| error.or_path(path))?;
                self.remove_entry(&entry, path).map_err(|error| error.or_path(path))?
            }
            Some(_) => return Err(special_file_error().with_path(path)),
        };
        Ok(DeleteResult::new(path.clone(), files))
    }

    /// Removes a file or link.
    fn remove_entry(&self, entry: &EntryLocation, path: &VfsPath) -> Result<u64> {
        if self.durability == Durability::Full {
            return self.remove_via_reserved_name(entry, path);
        }
        fs::unlinkat(&entry.parent, &entry.name, AtFlags::empty())
            .map_err(|errno| explain_mount_error(from_errno(errno), entry))?;
        Ok(1)
    }

    /// Removes `entry` with everything below it, and returns the number of files. `path` is the caller's name of it.
    ///
    /// The rename to a reserved name is the commit point, after which no reader finds the entry, whether or not the
    /// caller waits for the rest. If something below cannot be removed, the remaining tree is renamed back; if
    /// that fails, too, the error says so. A directory that cannot be renamed is emptied in place.
    fn remove_via_reserved_name(&self, entry: &EntryLocation, path: &VfsPath) -> Result<u64> {
        let sync = RenameSync { durability: self.durability, created: &CreatedParents::default() };
        let rename_aside = |reserved: &EntryLocation| rename_new_durably(entry, reserved, sync);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open_file = match entry.file_type().map_err(from_errno)? {
            Some(FileType::Directory | FileType::RegularFile) => {
                Some(self.root.open_child(entry.parent.as_fd(), entry.name.as_bytes(), flags).map_err(from_errno)?)
            }
            _ => None,
        };
        let outcome = match &open_file {
            Some(open_file) => {
                lock_against_cleanup(open_file).map_err(from_errno)?;
                create_reserved(&self.root, entry, rename_aside)
            }
            None => create_unique_reserved(entry, rename_aside),
        };
        let reserved = match outcome {
            Ok(reserved) => reserved,
            // On a layered file system, a directory of a lower layer cannot be renamed.
            Err(failure) if failure.kind() == ErrorKind::PathEscape => return self.remove_in_place(entry, path),
            Err(failure) => return Err(explain_mount_error(failure, entry)),
        };
        let mut removed = RemovedCounts::default();
        match remove_tree(&self.root, &reserved, &mut removed) {
            Ok(()) => Ok(removed.files),
            Err(failure) => Err(match rename_new(&reserved, entry) {
                Ok(()) => failure.into_error(path, removed),
                // A new entry has its name, or the cause of the failed removal prevents the rename as well.
                Err(_) => failure.into_displaced_error(path, removed),
            }),
        }
    }

    fn remove_in_place(&self, entry: &EntryLocation, path: &VfsPath) -> Result<u64> {
        let mut removed = RemovedCounts::default();
        remove_tree(&self.root, entry, &mut removed).map_err(|failure| failure.into_error(path, removed))?;
        if self.durability == Durability::Full {
            sync_directory(entry.parent.as_fd()).map_err(from_errno)?;
        }
        Ok(removed.files)
    }
}
