//! Deletion of an empty directory.

use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{DeleteResult, Error, ErrorKind, OpContext, Result, VfsPath};

use crate::config::policies::Durability;
use crate::fs::directory_entries::for_each_entry;
use crate::fs::entry_location::{EntryLocation, sync_directory};
use crate::fs::errno::{from_errno, from_errno_at};
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::PathAccess;
use crate::fs::root::RESERVED_PREFIX;
use crate::local_fs::LocalFs;
use crate::staging::durable_rename::explain_mount_error;
use crate::staging::entry_lock::InProcessEntryLock;
use crate::staging::reserved_names::remove_leftover;

impl LocalFs {
    /// Removes the directory at `path` by one system call, which fails if anything is in the directory by then.
    pub(crate) fn delete_empty(&self, path: &VfsPath, cx: &OpContext) -> Result<DeleteResult> {
        let entry = self.root.entry(path)?;
        self.root.check(&entry, PathAccess::Change, path)?;
        match entry.file_type().map_err(|errno| from_errno_at(errno, path))? {
            None => return Err(Error::not_found(path)),
            Some(FileType::Directory) => {}
            Some(_) => return Err(Error::at(ErrorKind::NotADirectory, path)),
        }
        let _lock =
            InProcessEntryLock::acquire(&entry, cx, self.lock_deadline()).map_err(|error| error.or_path(path))?;
        match self.remove_directory(&entry) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                self.remove_leftovers(&entry, path)?;
                self.remove_directory(&entry)
            }
            removed => removed,
        }
        .map_err(|errno| match errno {
            Errno::NOTEMPTY | Errno::EXIST => Error::at(ErrorKind::NotEmpty, path),
            errno => explain_mount_error(from_errno_at(errno, path), &entry).or_path(path),
        })?;
        Ok(DeleteResult::new(path.clone(), 0))
    }

    fn remove_directory(&self, entry: &EntryLocation) -> io::Result<()> {
        if self.durability == Durability::Atomic {
            return fs::unlinkat(&entry.parent, &entry.name, AtFlags::REMOVEDIR);
        }
        let mode = Metadata::at(entry.parent.as_fd(), &entry.name)?.mode();
        fs::unlinkat(&entry.parent, &entry.name, AtFlags::REMOVEDIR)?;
        sync_directory(entry.parent.as_fd()).map_err(|errno| {
            let back = fs::mkdirat(&entry.parent, &entry.name, Mode::from_raw_mode(mode & 0o7777));
            back.err().unwrap_or(errno)
        })
    }

    /// Removes the files that dead processes left under reserved names, if nothing else is in the directory: every
    /// listing shows it as empty.
    fn remove_leftovers(&self, entry: &EntryLocation, path: &VfsPath) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = self.root.open_child(entry.parent.as_fd(), entry.name.as_bytes(), flags);
        let dir = dir.map_err(|errno| from_errno_at(errno, path))?;
        let (mut reserved, mut is_empty) = (Vec::new(), true);
        let listed = for_each_entry(dir.as_fd(), |name, _| {
            match name.to_str() {
                Ok(name) if name.starts_with(RESERVED_PREFIX) => reserved.push(name.to_owned()),
                _ => is_empty = false,
            }
            Ok(())
        });
        listed.map_err(|errno| from_errno_at(errno, path))?;
        if !is_empty {
            return Err(Error::at(ErrorKind::NotEmpty, path));
        }
        for name in reserved {
            let parent = io::fcntl_dupfd_cloexec(&dir, 0).map_err(from_errno)?;
            remove_leftover(&self.root, &EntryLocation { parent, name }).map_err(|error| error.or_path(path))?;
        }
        Ok(())
    }
}
