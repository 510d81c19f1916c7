//! New content, staged in an unnamed or reserved file and published atomically.

mod finished_file;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use chrono::{DateTime, Utc};
use rustix::fs::{self, Mode, OFlags, SeekFrom, Timespec, Timestamps};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, OpContext, Result};
use vfs_search::without_size_signal;

use self::finished_file::FinishedFile;
pub(crate) use self::finished_file::ReplacePrecondition;
use crate::config::policies::Durability;
use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::errno::retry;
use crate::fs::metadata::Metadata;
use crate::fs::syscall_probes::is_linkat_refused;
use crate::staging::entry_lock::LockedFile;
use crate::staging::preserved_attributes;
use crate::staging::reserved_names::{ReservedEntry, create_unique_reserved, lock_against_cleanup};
use crate::staging::unique_mtime::{make_unique, next_unique_time};

/// Number of bytes that are written or copied between two checks of the context.
const MAX_CHUNK_SIZE: usize = 8 << 20;

/// Number of bytes that are read at once if the kernel does not copy the file by itself.
const COPY_BUFFER_SIZE: usize = 64 << 10;

/// The permissions of a new file, before the process's umask.
const NEW_FILE_MODE: u32 = 0o666;

/// A file with new content that has no name yet, or only a reserved one.
#[derive(Debug)]
pub(crate) struct StagedFile {
    fd: OwnedFd,
    /// The reserved name, if the file system does not support unnamed files.
    name: Option<ReservedEntry>,
    durability: Durability,
    /// The modification time to set; `None` for the time when the file is finished.
    modified_at: Option<DateTime<Utc>>,
}

impl StagedFile {
    /// Creates an empty file in the directory of `entry`, which will replace `replaced` or be new.
    pub(crate) fn create(entry: &EntryLocation, replaced: Option<&LockedFile>, durability: Durability) -> Result<Self> {
        let mode = Mode::from_raw_mode(if replaced.is_some() { 0o600 } else { NEW_FILE_MODE });
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let opened_unnamed = if is_linkat_refused() {
            Err(Errno::OPNOTSUPP)
        } else {
            retry(|| fs::openat(&entry.parent, ".", flags, mode))
        };
        let staged = match opened_unnamed {
            Ok(fd) => Self { fd, name: None, durability, modified_at: None },
            // In a directory that was just removed, ext4 fails with `EPERM`, while the creation of a named file there
            // fails with `ENOENT`.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::PERM) => {
                Self::create_named(entry, mode, durability)?
            }
            Err(errno) => return Err(from_errno(errno)),
        };
        if let Some(replaced) = replaced {
            preserved_attributes::copy_attributes(replaced, staged.fd.as_fd())?;
        }
        Ok(staged)
    }

    fn create_named(entry: &EntryLocation, mode: Mode, durability: Durability) -> Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = Err(Errno::EXIST);
        let reserved_entry = create_unique_reserved(entry, |reserved_entry| {
            opened = retry(|| fs::openat(&reserved_entry.parent, &reserved_entry.name, flags, mode));
            opened.as_ref().map(drop).map_err(|errno| *errno)
        })?;
        let fd = opened.map_err(from_errno)?;
        lock_against_cleanup(&fd).map_err(from_errno)?;
        Ok(Self { fd, name: Some(ReservedEntry::new(reserved_entry)), durability, modified_at: None })
    }

    /// Wraps a file that already has its final name, in a directory that is itself staged and synced as a whole.
    pub(crate) fn adopt(fd: OwnedFd) -> Self {
        Self { fd, name: None, durability: Durability::Atomic, modified_at: None }
    }

    /// Sets the modification time; `None` for the time when the file is finished.
    pub(crate) fn with_modified_at(self, at: Option<DateTime<Utc>>) -> Self {
        Self { modified_at: at, ..self }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Appends `bytes`.
    pub(crate) fn write(&self, mut bytes: &[u8], cx: &OpContext) -> Result<()> {
        while !bytes.is_empty() {
            cx.check()?;
            let chunk = &bytes[..bytes.len().min(MAX_CHUNK_SIZE)];
            match without_size_signal(|| retry(|| io::write(&self.fd, chunk))).0.map_err(from_errno)? {
                0 => return Err(from_errno(Errno::IO)),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Copies the file `from` into this one, which is empty, and returns the size. The kernel copies the data if it
    /// can. Holes in `from` are holes in the copy. Fails with `too_large` if the content exceeds `max_size` bytes.
    pub(crate) fn copy_from(&self, from: BorrowedFd<'_>, max_size: u64, cx: &OpContext) -> Result<u64> {
        let size = match file_size(from)? {
            size if size > max_size => return Err(too_large(max_size)),
            // Files generated by the kernel, such as those in `/proc`, report a size of zero.
            0 => self.copy_range(from, 0..u64::MAX, max_size, cx)?,
            _ => self.copy_data(from, max_size, cx)?,
        };
        // Later writes are appended.
        fs::seek(&self.fd, SeekFrom::Start(size)).map_err(from_errno)?;
        Ok(size)
    }

    fn copy_data(&self, from: BorrowedFd<'_>, max_size: u64, cx: &OpContext) -> Result<u64> {
        let mut offset = 0;
        let size = loop {
            // The size is read before and after the search for data: data that another program appends after the search
            // is no hole, nor is a part that it truncates.
            let before = file_size(from)?;
            let Some(data) = next_data_range(from, offset).map_err(from_errno)? else {
                break before.min(file_size(from)?).max(offset);
            };
            let end = data.end;
            offset = self.copy_range(from, data, max_size, cx)?;
            if offset < end {
                // The file ends there, or was truncated before the start of this data.
                return file_size(self.fd());
            }
        };
        if size > max_size {
            return Err(too_large(max_size));
        }
        if size > offset {
            without_size_signal(|| retry(|| fs::ftruncate(&self.fd, size))).0.map_err(from_errno)?;
        }
        Ok(size)
    }

    /// Copies a range of `from` to the same position. Returns where the copy ended, which is before the end of the
    /// range if the file ends there.
    fn copy_range(&self, from: BorrowedFd<'_>, range: Range<u64>, max_size: u64, cx: &OpContext) -> Result<u64> {
        let (mut read, mut written) = (range.start, range.start);
        while read < range.end {
            cx.check()?;
            let length = usize::try_from(range.end - read).unwrap_or(MAX_CHUNK_SIZE).min(MAX_CHUNK_SIZE);
            let mut copy = || fs::copy_file_range(from, Some(&mut read), &self.fd, Some(&mut written), length);
            match without_size_signal(|| retry(&mut copy)).0 {
                Ok(0) => break,
                Ok(_) if read > max_size => return Err(too_large(max_size)),
                Ok(_) => {}
                Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) => break,
                Err(errno) => return Err(from_errno(errno)),
            }
        }
        // Data that the kernel cannot copy, such as from `/proc`, is read and written here; at the end of the file this
        // reads nothing.
        let mut buffer = Vec::new();
        while read < range.end {
            cx.check()?;
            buffer.resize(usize::try_from(range.end - read).unwrap_or(COPY_BUFFER_SIZE).min(COPY_BUFFER_SIZE), 0);
            let mut rest = match retry(|| io::pread(from, &mut buffer[..], read)).map_err(from_errno)? {
                0 => break,
                count => &buffer[..count],
            };
            while !rest.is_empty() {
                match without_size_signal(|| retry(|| io::pwrite(&self.fd, rest, read))).0.map_err(from_errno)? {
                    0 => return Err(from_errno(Errno::IO)),
                    count => {
                        read += count as u64;
                        rest = &rest[count..];
                    }
                }
            }
            if read > max_size {
                return Err(too_large(max_size));
            }
        }
        Ok(read)
    }

    /// Sets a modification time that distinguishes this write from others, and syncs the file if the durability is
    /// full.
    pub(crate) fn finish(self) -> Result<FinishedFile> {
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
            last_modification: self.modified_at.map_or_else(next_unique_time, make_unique),
        };
        fs::futimens(&self.fd, &times).map_err(from_errno)?;
        if self.durability == Durability::Full {
            retry(|| fs::fsync(&self.fd)).map_err(from_errno)?;
        }
        Ok(FinishedFile(self))
    }
}

/// Returns the next range of data in `from` at or after `offset`, or `None` if only a hole or nothing follows.
fn next_data_range(from: BorrowedFd<'_>, offset: u64) -> io::Result<Option<Range<u64>>> {
    let start = match retry(|| fs::seek(from, SeekFrom::Data(offset))) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not report holes: treat the rest of the file as data.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Some(offset..u64::MAX)),
        Err(errno) => return Err(errno),
    };
    match retry(|| fs::seek(from, SeekFrom::Hole(start))) {
        Ok(end) => Ok(Some(start..end)),
        // The file was truncated meanwhile.
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn file_size(file: BorrowedFd<'_>) -> Result<u64> {
    Metadata::from_fd(file).map(|found| found.size()).map_err(from_errno)
}

fn too_large(max_size: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the file is over the limit of {max_size} bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    use vfs_core::VfsPath;

    use super::*;
    use crate::config::LocalConfig;
    use crate::local_fs::LocalFs;

    #[test]
    fn creation_fails_in_a_removed_directory() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(tree.path().join("d")).expect("it is made");
        let local_fs = LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens");
        let entry = local_fs.root.entry(&VfsPath::parse("/d/f").expect("it is a path")).expect("it is found");
        std::fs::remove_dir(tree.path().join("d")).expect("it goes");
        // tmpfs creates an unnamed file even there, but cannot give it a name.
        let published = StagedFile::create(&entry, None, Durability::Atomic)
            .and_then(|staged| staged.finish()?.publish_new(&entry, || Ok(())));
        let failure = published.expect_err("there is nowhere to make it");
        assert_eq!(failure.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn copy_of_a_growing_file_contains_only_its_data() {
        let (cx, tree) = (OpContext::new(), tempfile::tempdir().expect("a temporary directory"));
        let local_fs = LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens");
        let entry = local_fs.root.entry(&VfsPath::parse("/copy").expect("it is a path")).expect("it is found");
        for _ in 0..20 {
            let at = tree.path().join("log");
            std::fs::write(&at, "x").expect("it writes");
            let log = std::fs::File::options().append(true).open(&at).expect("it opens");
            let source = OwnedFd::from(std::fs::File::open(&at).expect("it opens"));
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| (0..5_000).for_each(|_| (&log).write_all(b"x").expect("it writes")));
                while !writer.is_finished() {
                    let staged = StagedFile::create(&entry, None, Durability::Atomic).expect("it is staged");
                    let size = staged.copy_from(source.as_fd(), u64::MAX, &cx).expect("it copies");
                    let mut content = vec![0; usize::try_from(size).expect("it is small") + 1];
                    let read = io::pread(staged.fd(), &mut content[..], 0).expect("it reads");
                    assert_eq!(read as u64, size);
                    let strange = content[..read].iter().position(|byte| *byte != b'x');
                    assert_eq!(strange, None, "of {size} bytes");
                }
            });
        }
    }

    #[test]
    fn copy_of_a_truncated_file_ends_where_the_file_ends() {
        let (cx, tree) = (OpContext::new(), tempfile::tempdir().expect("a temporary directory"));
        let local_fs = LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens");
        let entry = local_fs.root.entry(&VfsPath::parse("/copy").expect("it is a path")).expect("it is found");
        let file = std::fs::File::create_new(tree.path().join("source")).expect("it is made");
        let source = OwnedFd::from(std::fs::File::open(tree.path().join("source")).expect("it opens"));
        let (is_over, mut sizes) = (AtomicBool::new(false), Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // A hole, then data, then nothing.
                    file.write_all_at(&[b'x'; 4096], 1 << 20).expect("it writes");
                    file.set_len(0).expect("it is cut");
                }
            });
            for _ in 0..5_000 {
                let staged = StagedFile::create(&entry, None, Durability::Atomic).expect("it is staged");
                let reported = staged.copy_from(source.as_fd(), u64::MAX, &cx).expect("it copies");
                sizes.push((reported, file_size(staged.fd()).expect("it is there")));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        sizes.iter().for_each(|(reported, actual)| assert_eq!(reported, actual));
    }
}
