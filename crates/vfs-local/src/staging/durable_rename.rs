//! Durable renames, rolled back if they cannot be synced to the disk.

use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags, FileType, Mode};
use rustix::io;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::config::policies::Durability;
use crate::fs::created_parents::CreatedParents;
use crate::fs::entry_location::{EntryLocation, sync_directory};
use crate::fs::errno::from_errno;
use crate::fs::metadata::Metadata;
use crate::fs::rename_noreplace::rename_new;
use crate::staging::reserved_names::{ReservedEntry, create_unique_reserved};

/// The directories to sync before a rename counts as done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenameSync<'a> {
    pub(crate) durability: Durability,
    pub(crate) created: &'a CreatedParents,
}

impl RenameSync<'_> {
    /// If the durability is full, syncs the directories of both ends and the parents that were created.
    fn sync(&self, from: &EntryLocation, to: &EntryLocation) -> io::Result<()> {
        if self.durability == Durability::Atomic {
            return Ok(());
        }
        self.created.sync()?;
        sync_directory(to.parent.as_fd())?;
        sync_directory(from.parent.as_fd())
    }
}

/// Renames `from` to `to`, where nothing exists, and rolls back if the sync fails.
pub(crate) fn rename_new_durably(from: &EntryLocation, to: &EntryLocation, sync: RenameSync<'_>) -> io::Result<()> {
    rename_new(from, to)?;
    sync.sync(from, to).map_err(|errno| rename_new(to, from).err().unwrap_or(errno))
}

/// Renames `from` over `to`, which is an `existing` file, link or empty directory, and rolls back if the sync fails
/// and a backup could be created.
pub(crate) fn rename_over_durably(
    from: &EntryLocation,
    to: &EntryLocation,
    existing: FileType,
    sync: RenameSync<'_>,
) -> Result<()> {
    if are_hard_links(from, to).map_err(from_errno)? {
        // The kernel does nothing for two hard links of one file, but the caller expects the old name to be removed.
        fs::unlinkat(&from.parent, &from.name, AtFlags::empty()).map_err(from_errno)?;
        let back = || fs::linkat(&to.parent, &to.name, &from.parent, &from.name, AtFlags::empty());
        return sync.sync(from, to).map_err(|errno| from_errno(back().err().unwrap_or(errno)));
    }
    let backup = match sync.durability {
        Durability::Atomic => ReplacedBackup::Unavailable,
        Durability::Full => ReplacedBackup::create(to, existing)?,
    };
    fs::renameat(&from.parent, &from.name, &to.parent, &to.name).map_err(from_errno)?;
    sync.sync(from, to).map_err(|errno| {
        let back = rename_new(to, from).and_then(|()| backup.restore(to));
        from_errno(back.err().unwrap_or(errno))
    })
}

/// Replaces the `failure` to move or remove `entry` by one that explains it, if something is mounted on the entry:
/// retrying will not help then.
pub(crate) fn explain_mount_error(failure: Error, entry: &EntryLocation) -> Error {
    if !is_caused_by_mount(&failure, entry) {
        return failure;
    }
    let message = "something is mounted there, so the entry cannot be replaced or removed; unmount it first";
    Error::new(ErrorKind::PermissionDenied, message).with_source(failure)
}

/// As [`explain_mount_error`], for an entry that the caller calls `path`.
pub(crate) fn explain_mount_error_at(failure: Error, entry: &EntryLocation, path: &VfsPath) -> Error {
    if is_caused_by_mount(&failure, entry) { explain_mount_error(failure, entry).with_path(path) } else { failure }
}

/// Returns whether an entry could not be moved or removed because something is mounted on it.
fn is_caused_by_mount(failure: &Error, entry: &EntryLocation) -> bool {
    let is_mount_point = || Metadata::at(entry.parent.as_fd(), &entry.name).is_ok_and(|at| at.is_mount_point());
    failure.kind() == ErrorKind::Busy && is_mount_point()
}

/// Returns whether both entries are hard links of one file. On a file system that ignores case, they may be two
/// spellings of a single name, which is not a hard link.
fn are_hard_links(one: &EntryLocation, other: &EntryLocation) -> io::Result<bool> {
    let one = Metadata::at(one.parent.as_fd(), &one.name)?;
    let other = Metadata::at(other.parent.as_fd(), &other.name)?;
    Ok(one.identity() == other.identity() && one.link_count() > 1 && one.file_type() != FileType::Directory)
}

/// A backup of the entry that a rename replaces, until the rename is on the disk.
enum ReplacedBackup {
    Unavailable,
    /// A file or link, under a second name, which is removed when this is dropped.
    Link(ReservedEntry),
    /// The mode of an empty directory, which is enough to create it again.
    EmptyDirectory(Mode),
}

impl ReplacedBackup {
    fn create(entry: &EntryLocation, existing: FileType) -> Result<Self> {
        if existing == FileType::Directory {
            let mode = Metadata::at(entry.parent.as_fd(), &entry.name).map_err(from_errno)?.mode();
            return Ok(ReplacedBackup::EmptyDirectory(Mode::from_raw_mode(mode & 0o7777)));
        }
        let link = |reserved: &EntryLocation| {
            fs::linkat(&entry.parent, &entry.name, &reserved.parent, &reserved.name, AtFlags::empty())
        };
        match create_unique_reserved(entry, link) {
            Ok(reserved) => Ok(ReplacedBackup::Link(ReservedEntry::new(reserved))),
            // The file system cannot create a second name, such as FAT, or the link belongs to another user.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
                Ok(ReplacedBackup::Unavailable)
            }
            Err(error) => Err(error),
        }
    }

    fn restore(self, entry: &EntryLocation) -> io::Result<()> {
        match self {
            ReplacedBackup::Unavailable => Ok(()),
            ReplacedBackup::Link(link) => link.rename_to(entry),
            ReplacedBackup::EmptyDirectory(mode) => fs::mkdirat(&entry.parent, &entry.name, mode),
        }
    }
}
