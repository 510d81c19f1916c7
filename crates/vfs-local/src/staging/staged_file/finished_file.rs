//! Complete staged files, and their atomic publication under a name.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{self, AtFlags, RenameFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result};

use super::StagedFile;
use crate::config::policies::Durability;
use crate::fs::entry_location::{EntryLocation, sync_directory};
use crate::fs::errno::from_errno;
use crate::fs::metadata::Metadata;
use crate::fs::rename_noreplace::rename_new;
use crate::fs::root::Root;
use crate::staging::durable_rename::explain_mount_error;
use crate::staging::entry_lock::LockedFile;
use crate::staging::reserved_names::{ReservedEntry, create_reserved, create_unique_reserved, lock_against_cleanup};

/// A staged file whose content is complete, and synced if the durability is full. Only its final name is missing.
///
/// Syncing takes long, so callers check after it whether the old file is unchanged.
#[derive(Debug)]
pub(crate) struct FinishedFile(pub(super) StagedFile);

/// The precondition for a replacement, checked when the old file is exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplacePrecondition {
    /// The same file with the same content: data that another program wrote into it must not be lost.
    SameContent,
    /// The same file, whatever its content.
    SameFile,
}

impl FinishedFile {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    /// Publishes the file under a name that does not exist yet. Fails with `already_exists` if something exists there
    /// by now. `sync_created` must then succeed as well, or the file is removed again.
    pub(crate) fn publish_new(
        mut self,
        entry: &EntryLocation,
        sync_created: impl FnOnce() -> io::Result<()>,
    ) -> Result<Metadata> {
        let placed = match self.0.name.take() {
            None => link_unnamed(self.0.fd.as_fd(), entry),
            // The reserved name is given up now: removing a name later would change the version.
            Some(reserved) => link_or_rename(reserved.entry(), entry),
        };
        placed.map_err(from_errno)?;
        let sync_outcome = match self.0.durability {
            Durability::Atomic => Ok(()),
            Durability::Full => sync_created().and_then(|()| sync_directory(entry.parent.as_fd())),
        };
        sync_outcome.and_then(|()| self.metadata()).map_err(|errno| {
            self.remove_if_own(entry);
            from_errno(errno)
        })
    }

    /// Removes `entry` if it is still this file.
    fn remove_if_own(&self, entry: &EntryLocation) {
        let found = Metadata::at(entry.parent.as_fd(), &entry.name);
        if found.is_ok_and(|found| self.metadata().is_ok_and(|own| own.identity() == found.identity())) {
            // The error that is being reported already says that the state is uncertain.
            let _removed = fs::unlinkat(&entry.parent, &entry.name, AtFlags::empty());
        }
    }

    /// Publishes the file in place of `replaced`. Fails with `conflict` if the existing file does not satisfy
    /// `precondition`.
    pub(crate) fn publish_over(
        mut self,
        root: &Root,
        entry: &EntryLocation,
        replaced: &LockedFile,
        precondition: ReplacePrecondition,
    ) -> Result<Metadata> {
        let fd = &self.0.fd;
        let reserved = match self.0.name.take() {
            Some(reserved) => reserved,
            None if replaced.exclusive => {
                lock_against_cleanup(fd).map_err(from_errno)?;
                ReservedEntry::new(create_reserved(root, entry, |reserved_entry| {
                    link_unnamed(fd.as_fd(), reserved_entry)
                })?)
            }
            None => {
                lock_against_cleanup(fd).map_err(from_errno)?;
                ReservedEntry::new(create_unique_reserved(entry, |reserved_entry| {
                    link_unnamed(fd.as_fd(), reserved_entry)
                })?)
            }
        };
        self.exchange(entry, reserved, replaced, precondition)
    }

    /// Exchanges the two names, so that the old file can be restored if it does not satisfy the precondition, or if the
    /// exchange cannot be synced.
    ///
    /// An exchange is also many times faster than a rename over the old file, for which ext4 and other file systems
    /// first write the new content to the disk.
    fn exchange(
        &self,
        entry: &EntryLocation,
        reserved: ReservedEntry,
        replaced: &LockedFile,
        precondition: ReplacePrecondition,
    ) -> Result<Metadata> {
        let reserved_entry = reserved.entry();
        let swap = || {
            fs::renameat_with(
                &reserved_entry.parent,
                &reserved_entry.name,
                &entry.parent,
                &entry.name,
                RenameFlags::EXCHANGE,
            )
        };
        match swap() {
            // After this, `reserved` names the old file, or after a rollback the new one; it is removed in both cases.
            Ok(()) => {
                self.verify_exchange(entry, reserved_entry, replaced, precondition).map_err(|failure| match swap() {
                    Ok(()) => failure,
                    // Our file was removed meanwhile, and the file that was exchanged may belong to another program:
                    // put that one back.
                    Err(Errno::NOENT) => rename_new(reserved_entry, entry).err().map_or(failure, from_errno),
                    Err(errno) => from_errno(errno),
                })
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                // Without an exchange nothing can be restored: a change between this check and the rename is lost.
                let current = Metadata::at(entry.parent.as_fd(), &entry.name).map_err(from_errno)?;
                check_precondition(&current, replaced, precondition)?;
                reserved.rename_to(entry).map_err(|errno| explain_mount_error(from_errno(errno), entry))?;
                self.sync_parent(entry).map_err(from_errno)
            }
            Err(errno) => Err(explain_mount_error(from_errno(errno), entry)),
        }
    }

    /// Verifies that the file that was exchanged satisfies the precondition, and that no other program replaced or
    /// changed it just before.
    fn verify_exchange(
        &self,
        entry: &EntryLocation,
        reserved_entry: &EntryLocation,
        replaced: &LockedFile,
        precondition: ReplacePrecondition,
    ) -> Result<Metadata> {
        let exchanged = Metadata::at(reserved_entry.parent.as_fd(), &reserved_entry.name).map_err(from_errno)?;
        check_precondition(&exchanged, replaced, precondition)?;
        self.sync_parent(entry).map_err(from_errno)
    }

    /// Syncs the new name if the durability is full, and returns the file's metadata.
    fn sync_parent(&self, entry: &EntryLocation) -> io::Result<Metadata> {
        if self.0.durability == Durability::Full {
            sync_directory(entry.parent.as_fd())?;
        }
        self.metadata()
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Metadata::from_fd(self.0.fd.as_fd())
    }
}

/// Fails with `conflict` unless the file of `current` is the one to be `replaced` and satisfies `precondition`.
fn check_precondition(current: &Metadata, replaced: &LockedFile, precondition: ReplacePrecondition) -> Result<()> {
    // Exchanging a file of a lower layer copies it to the upper layer, where its inode number may differ.
    let is_that_file = current.identity() == replaced.metadata.identity()
        || current.identity() == Metadata::from_fd(replaced.fd.as_fd()).map_err(from_errno)?.identity();
    let is_as_expected = match precondition {
        ReplacePrecondition::SameContent => is_that_file && current.has_same_content(&replaced.metadata),
        ReplacePrecondition::SameFile => is_that_file,
    };
    if is_as_expected { Ok(()) } else { Err(Error::of(ErrorKind::Conflict)) }
}

/// Gives the unnamed file `fd` a name.
fn link_unnamed(fd: BorrowedFd<'_>, entry: &EntryLocation) -> io::Result<()> {
    match fs::linkat(fd, "", &entry.parent, &entry.name, AtFlags::EMPTY_PATH) {
        // Before Linux 6.10, an empty path needs a capability; the path through `/proc` does not.
        Err(Errno::NOENT) => {
            let proc = format!("/proc/self/fd/{}", fd.as_raw_fd());
            fs::linkat(fs::CWD, proc, &entry.parent, &entry.name, AtFlags::SYMLINK_FOLLOW)
        }
        linked => linked,
    }
}

/// Gives a file with a reserved name its final name, where nothing exists.
fn link_or_rename(reserved_entry: &EntryLocation, entry: &EntryLocation) -> io::Result<()> {
    match fs::linkat(&reserved_entry.parent, &reserved_entry.name, &entry.parent, &entry.name, AtFlags::empty()) {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => rename_new(reserved_entry, entry),
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use rustix::fs::Mode;
    use vfs_core::{OpContext, VfsPath};

    use super::super::NEW_FILE_MODE;
    use super::*;
    use crate::config::LocalConfig;
    use crate::config::policies::HardLinks;
    use crate::local_fs::LocalFs;
    use crate::staging::entry_lock::LockPurpose;

    /// Calls `test` right before the staged content `ours` replaces the file `f`, which contains `old`.
    fn run_before_replace(
        durability: Durability,
        test: impl FnOnce(&Path, &LocalFs, &EntryLocation, &LockedFile, StagedFile),
    ) {
        let (cx, tree) = (OpContext::new(), tempfile::tempdir().expect("a temporary directory"));
        let at = tree.path().join("f");
        std::fs::write(&at, "old").expect("it writes");
        let local_fs = LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens");
        let entry = local_fs.root.entry(&VfsPath::parse("/f").expect("it is a path")).expect("it is found");
        let locked = local_fs.lock_entry(LockPurpose::Change, &entry, HardLinks::Allow, &cx).expect("it is not locked");
        let file = locked.file.as_ref().expect("it is there");
        let staged = StagedFile::create(&entry, Some(file), durability).expect("it is staged");
        staged.write(b"ours", &cx).expect("it writes");
        test(&at, &local_fs, &entry, file, staged);
        assert_eq!(std::fs::read_dir(tree.path()).expect("it lists").count(), 1, "nothing else is left");
    }

    #[test]
    fn replacement_keeps_data_written_at_the_last_moment() {
        for (durability, precondition) in [
            (Durability::Atomic, ReplacePrecondition::SameContent),
            (Durability::Full, ReplacePrecondition::SameContent),
            (Durability::Atomic, ReplacePrecondition::SameFile),
        ] {
            run_before_replace(durability, |at, local_fs, entry, file, staged| {
                let finished = staged.finish().expect("it is whole");
                let mut log = std::fs::File::options().append(true).open(at).expect("it opens");
                log.write_all(b" and theirs").expect("it writes");
                let published = finished.publish_over(&local_fs.root, entry, file, precondition);
                let content = std::fs::read_to_string(at).expect("it reads");
                match precondition {
                    ReplacePrecondition::SameContent => {
                        assert_eq!(published.expect_err("it was changed").kind(), ErrorKind::Conflict);
                        assert_eq!(content, "old and theirs");
                    }
                    ReplacePrecondition::SameFile => {
                        published.expect("any content is replaced");
                        assert_eq!(content, "ours");
                    }
                }
            });
        }
    }

    #[test]
    fn published_version_does_not_change() {
        let (cx, tree) = (OpContext::new(), tempfile::tempdir().expect("a temporary directory"));
        let local_fs = LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens");
        let entry_of =
            |name: &str| local_fs.root.entry(&VfsPath::parse(name).expect("it is a path")).expect("it is found");
        let (nameless, create_named) = (entry_of("/nameless"), entry_of("/named"));
        for (entry, staged) in [
            (&nameless, StagedFile::create(&nameless, None, Durability::Atomic)),
            // As on a file system without unnamed files.
            (
                &create_named,
                StagedFile::create_named(&create_named, Mode::from_raw_mode(NEW_FILE_MODE), Durability::Atomic),
            ),
        ] {
            let staged = staged.expect("it is staged");
            staged.write(b"content", &cx).expect("it writes");
            let finished = staged.finish().expect("it is whole");
            let reported = finished.publish_new(entry, || Ok(())).expect("nothing is there").version();
            let there = Metadata::at(entry.parent.as_fd(), &entry.name).expect("it is there").version();
            assert_eq!(reported, there, "{}", entry.name);
        }
        assert_eq!(std::fs::read_dir(tree.path()).expect("it lists").count(), 2, "nothing else is left");
    }

    #[test]
    fn replacement_keeps_an_entry_put_there_at_the_last_moment() {
        for durability in [Durability::Atomic, Durability::Full] {
            for theirs_is_directory in [false, true] {
                run_before_replace(durability, |at, local_fs, entry, file, staged| {
                    std::fs::remove_file(at).expect("it goes");
                    let theirs = if theirs_is_directory { at.join("g") } else { at.to_owned() };
                    if theirs_is_directory {
                        std::fs::create_dir(at).expect("it is made");
                    }
                    std::fs::write(&theirs, "theirs").expect("it writes");
                    let finished = staged.finish().expect("it is whole");
                    let published = finished.publish_over(&local_fs.root, entry, file, ReplacePrecondition::SameFile);
                    let failure = published.expect_err("the file is another one");

                    assert_eq!(failure.kind(), ErrorKind::Conflict);
                    assert_eq!(std::fs::read_to_string(theirs).expect("it reads"), "theirs");
                });
            }
        }
    }
}
