//! Renames that are taken back where they cannot be brought to the disk.

use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags, FileType, Mode, RenameFlags};
use rustix::io::{self, Errno};

use crate::config::Durability;
use crate::metadata::Metadata;
use crate::root::{Entry, MadeDirectories, sync_directory};
use crate::staging::{ReservedName, Sharing, reserved_name};

/// What has to reach the disk before a rename counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settle<'a> {
    pub(crate) durability: Durability,
    pub(crate) made: &'a MadeDirectories,
}

impl Settle<'_> {
    /// Syncs the directories of both ends, and those that were made on the way, where that is asked for.
    fn sync(&self, from: &Entry, to: &Entry) -> io::Result<()> {
        if self.durability == Durability::Atomic {
            return Ok(());
        }
        self.made.sync()?;
        sync_directory(to.parent.as_fd())?;
        sync_directory(from.parent.as_fd())
    }
}

/// Renames `from` to `to`, where nothing is.
pub(crate) fn move_new(from: &Entry, to: &Entry, settle: Settle<'_>) -> io::Result<()> {
    rename_new(from, to)?;
    settle.sync(from, to).map_err(|errno| rename_new(to, from).err().unwrap_or(errno))
}

/// Renames `from` over `to`, which is an `existing` file, link or empty directory.
pub(crate) fn move_over(from: &Entry, to: &Entry, existing: FileType, settle: Settle<'_>) -> io::Result<()> {
    if same_file(from, to)? {
        // To the kernel two names of one file are renamed already; to the caller the old one must go.
        fs::unlinkat(&from.parent, &from.name, AtFlags::empty())?;
        let back = || fs::linkat(&to.parent, &to.name, &from.parent, &from.name, AtFlags::empty());
        return settle.sync(from, to).map_err(|errno| back().err().unwrap_or(errno));
    }
    let aside = match settle.durability {
        Durability::Atomic => Aside::Nothing,
        Durability::Full => Aside::keep(to, existing)?,
    };
    fs::renameat(&from.parent, &from.name, &to.parent, &to.name)?;
    settle.sync(from, to).map_err(|errno| {
        let back = rename_new(to, from).and_then(|()| aside.restore(to));
        back.err().unwrap_or(errno)
    })
}

/// Renames `from` to `to` where nothing is, in one step.
pub(crate) fn rename_new(from: &Entry, to: &Entry) -> io::Result<()> {
    match fs::renameat_with(&from.parent, &from.name, &to.parent, &to.name, RenameFlags::NOREPLACE) {
        // A file system without this flag: looking first leaves a gap, which is the best that it offers.
        Err(Errno::INVAL | Errno::NOSYS) if to.file_type()?.is_none() => {
            fs::renameat(&from.parent, &from.name, &to.parent, &to.name)
        }
        Err(Errno::NOSYS) => Err(Errno::EXIST),
        renamed => renamed,
    }
}

fn same_file(one: &Entry, other: &Entry) -> io::Result<bool> {
    let identity = |entry: &Entry| Metadata::at(entry.parent.as_fd(), &entry.name).map(|found| found.identity());
    Ok(identity(one)? == identity(other)?)
}

/// What a rename replaces, kept until the rename is on the disk.
enum Aside {
    Nothing,
    /// A file or link, under a second name, which goes when this is dropped.
    Name(ReservedName),
    /// An empty directory is no more than its mode.
    EmptyDirectory(Mode),
}

impl Aside {
    fn keep(entry: &Entry, existing: FileType) -> io::Result<Self> {
        if existing == FileType::Directory {
            let mode = Metadata::at(entry.parent.as_fd(), &entry.name)?.mode();
            return Ok(Aside::EmptyDirectory(Mode::from_raw_mode(mode & 0o7777)));
        }
        let hidden = entry.sibling(reserved_name(entry, Sharing::Unique))?;
        fs::linkat(&entry.parent, &entry.name, &hidden.parent, &hidden.name, AtFlags::empty())?;
        Ok(Aside::Name(ReservedName::of(hidden)))
    }

    fn restore(self, entry: &Entry) -> io::Result<()> {
        match self {
            Aside::Nothing => Ok(()),
            Aside::Name(kept) => kept.become_entry(entry),
            Aside::EmptyDirectory(mode) => fs::mkdirat(&entry.parent, &entry.name, mode),
        }
    }
}
