//! File metadata from `statx(2)`, and the version derived from it.

use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime};

use arrayvec::ArrayString;
use chrono::{DateTime, Utc};
use rustix::fs::{self, AtFlags, FileType, Stat, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use rustix::io::{self, Errno};
use rustix::path::Arg;
use vfs_core::{Error, ErrorKind, FileInfo, Result, Version, VfsPath};

use crate::config::policies::HardLinks;
use crate::fs::errno::retry;

/// Maximum length of a version in bytes: seven numbers of 16 hexadecimal digits, and six separators.
const MAX_VERSION_LEN: usize = 7 * 16 + 6;

/// The metadata of one file at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metadata {
    mode: u32,
    link_count: u32,
    owner: (u32, u32),
    device: (u32, u32),
    inode: u64,
    size: u64,
    accessed: UnixTime,
    modified: UnixTime,
    /// The time of the last change of content or metadata.
    changed: UnixTime,
    /// The creation time; zero if the file system does not report it.
    born: UnixTime,
    attributes: StatxAttributes,
    mount_id: u64,
}

/// Seconds since 1970, and nanoseconds.
type UnixTime = (i64, u32);

/// Requests the unique mount number, which is not reused until the machine restarts (`STATX_MNT_ID_UNIQUE`, since Linux
/// 6.8; older kernels leave it out).
const UNIQUE_MOUNT_ID: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The times of the last change of a file's content and of its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeTimes([(i64, u32); 2]);

impl Metadata {
    /// Returns the metadata of the file that `fd` has open, even if it was renamed or removed.
    pub(crate) fn from_fd(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME | UNIQUE_MOUNT_ID;
        match retry(|| fs::statx(fd, "", AtFlags::EMPTY_PATH, flags)) {
            Err(Errno::NOSYS) => retry(|| fs::fstat(fd)).map(|stat| Self::from_stat(&stat)),
            stat => stat.map(|stat| Self::from_statx(&stat)),
        }
    }

    /// Returns the metadata of the entry `name` of `dir`, without following a link.
    pub(crate) fn at(dir: BorrowedFd<'_>, name: impl Arg + Copy) -> io::Result<Self> {
        match retry(|| fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS | StatxFlags::BTIME)) {
            Err(Errno::NOSYS) => {
                retry(|| fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)).map(|stat| Self::from_stat(&stat))
            }
            stat => stat.map(|stat| Self::from_statx(&stat)),
        }
    }

    fn from_statx(stat: &Statx) -> Self {
        let time = |at: StatxTimestamp| (at.tv_sec, at.tv_nsec);
        let has_mount_id = stat.stx_mask & UNIQUE_MOUNT_ID.bits() != 0;
        Self {
            mode: stat.stx_mode.into(),
            link_count: stat.stx_nlink,
            owner: (stat.stx_uid, stat.stx_gid),
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            size: stat.stx_size,
            accessed: time(stat.stx_atime),
            modified: time(stat.stx_mtime),
            changed: time(stat.stx_ctime),
            born: time(stat.stx_btime),
            attributes: stat.stx_attributes,
            mount_id: if has_mount_id { stat.stx_mnt_id } else { 0 },
        }
    }

    /// Converts the result of the older `fstat`, for sandboxes that refuse `statx`: attributes, mount and creation time
    /// are unknown.
    fn from_stat(stat: &Stat) -> Self {
        let time = |seconds: i64, nanoseconds: u64| (seconds, u32::try_from(nanoseconds).unwrap_or(0));
        Self {
            mode: stat.st_mode,
            link_count: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
            owner: (stat.st_uid, stat.st_gid),
            device: (fs::major(stat.st_dev), fs::minor(stat.st_dev)),
            inode: stat.st_ino,
            size: stat.st_size.try_into().unwrap_or(0),
            accessed: time(stat.st_atime, stat.st_atime_nsec),
            modified: time(stat.st_mtime, stat.st_mtime_nsec),
            changed: time(stat.st_ctime, stat.st_ctime_nsec),
            born: (0, 0),
            attributes: StatxAttributes::empty(),
            mount_id: 0,
        }
    }

    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }

    /// Returns when the content or any metadata changed last. No program can set this time back.
    pub(crate) fn changed(&self) -> SystemTime {
        let since = Duration::new(self.changed.0.try_into().unwrap_or(0), self.changed.1);
        SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Returns the times that change with the content, to the nanosecond: of the content and of the inode.
    pub(crate) fn change_times(&self) -> ChangeTimes {
        ChangeTimes([self.modified, self.changed])
    }

    /// Returns whether the content is the one of `before`, judged by size and modification time. Unlike the version,
    /// these do not change when the inode gets another name.
    pub(crate) fn has_same_content(&self, before: &Self) -> bool {
        let state = |of: &Self| (of.size, of.modified);
        state(self) == state(before)
    }

    /// Returns whether the entry is a mount point.
    pub(crate) fn is_mount_point(&self) -> bool {
        self.attributes.contains(StatxAttributes::MOUNT_ROOT)
    }

    /// Returns whether the file is marked immutable or append-only, so that nobody can remove it.
    pub(crate) fn is_immutable(&self) -> bool {
        self.attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND)
    }

    /// Returns whether only the owner of an entry, or of this directory itself, may remove the entry from this
    /// directory.
    pub(crate) fn is_sticky(&self) -> bool {
        self.mode() & 0o1000 != 0
    }

    /// Returns the number of the mount, which distinguishes a file system from another one that is mounted in its place
    /// later; 0 if the kernel does not report it.
    pub(crate) fn mount_id(&self) -> u64 {
        self.mount_id
    }

    /// Returns whether the file system encrypts the file: then the names in a directory depend on the keys that are
    /// loaded.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.attributes.contains(StatxAttributes::ENCRYPTED)
    }

    /// Returns whether opening the file reads more than the file itself: its encryption or verity data.
    pub(crate) fn reads_extra_on_open(&self) -> bool {
        self.attributes.intersects(StatxAttributes::ENCRYPTED | StatxAttributes::VERITY)
    }

    /// Returns whether the file was read after its last change, and within a day before `now`.
    pub(crate) fn was_read_recently(&self, now: SystemTime) -> bool {
        /// A minute less than a day, since clocks differ in granularity.
        const DAY: i64 = 24 * 60 * 60 - 60;
        let read = self.accessed;
        let since = now.duration_since(SystemTime::UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok());
        let is_of_today = since.is_some_and(|now| now.saturating_sub(read.0) < DAY);
        is_of_today && read > self.modified && read > self.changed
    }

    /// Returns the number of hard links.
    pub(crate) fn link_count(&self) -> u32 {
        self.link_count
    }

    /// Returns the number of names as a file: a directory has one.
    pub(crate) fn name_count(&self) -> u64 {
        if self.file_type() == FileType::Directory { 1 } else { self.link_count().max(1).into() }
    }

    pub(crate) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// Returns the device and the inode, which together identify the file on this machine.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (u64::from(self.device.0) << 32 | u64::from(self.device.1), self.inode)
    }

    /// Returns the version of the content.
    ///
    /// Two files of one version have the same inode, size, and times of change of content and of inode. Every write by
    /// this library creates a new inode with a modification time of its own, or with the requested one and a counter
    /// below its microseconds, so that two of them do not share a version; a change in place by another program changes
    /// the inode's time, which no program can set back.
    ///
    /// The device number of a file system without a device of its own (overlay, btrfs, FUSE, network) differs after
    /// each mount, so it is left out: an untouched file keeps its version.
    pub(crate) fn version(&self) -> Version {
        let (device, inode) = self.identity();
        let device = if self.device.0 == 0 { 0 } else { device };
        let mut text = ArrayString::<MAX_VERSION_LEN>::new();
        let (modified, changed) = (self.modified, self.changed);
        let times = [modified.0.cast_unsigned(), modified.1.into(), changed.0.cast_unsigned(), changed.1.into()];
        for number in [device, inode, self.size].into_iter().chain(times) {
            if !text.is_empty() {
                text.push('.');
            }
            push_hex(&mut text, number);
        }
        Version::new(text.as_str())
    }

    /// Converts the metadata to the [`FileInfo`] of `path`.
    ///
    /// # Errors
    ///
    /// `unsupported` if the entry is neither a file nor a directory.
    pub(crate) fn file_info(&self, path: VfsPath) -> Result<FileInfo> {
        let info = match self.file_type() {
            FileType::Directory => FileInfo::directory(path),
            FileType::RegularFile => FileInfo::file(path, self.size(), self.version()),
            _ => return Err(special_file_error().with_path(&path)),
        };
        Ok(info.modified_at(to_date_time(self.modified)).created_at(to_date_time(self.born)))
    }

    /// Fails unless this is a regular file that may be read under the setting `hard_links`.
    pub(crate) fn check_readable_file(&self, hard_links: HardLinks) -> Result<()> {
        match self.file_type() {
            FileType::RegularFile if hard_links == HardLinks::Refuse && self.link_count() > 1 => Err(Error::new(
                ErrorKind::PermissionDenied,
                "the file has more than one hard link, which this backend does not allow",
            )),
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(Error::of(ErrorKind::IsADirectory)),
            _ => Err(special_file_error()),
        }
    }
}

/// Appends `number` in hexadecimal. Every entry of a listing has a version, and formatting it by `write!` would cost
/// more than the rest of the version.
fn push_hex(text: &mut ArrayString<MAX_VERSION_LEN>, number: u64) {
    let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        text.push(char::from(b"0123456789abcdef"[(number >> (4 * digit)) as usize & 0xF]));
    }
}

/// Returns the error for an entry that is neither a file nor a directory, which is never opened.
pub(crate) fn special_file_error() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "the entry is a FIFO, socket or device, not a file; only regular files can be read and written",
    )
}

fn to_date_time(at: UnixTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(at.0, at.1).filter(|_| at != (0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_hex_formats_like_the_standard_library() {
        for number in [0, 1, 9, 15, 16, 0xABC, u64::from(u32::MAX), u64::MAX, (-2_i64).cast_unsigned()] {
            let mut text = ArrayString::new();
            push_hex(&mut text, number);
            assert_eq!(text.as_str(), format!("{number:x}"));
        }
    }

    #[test]
    fn fstat_and_statx_return_equal_versions() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file_path = directory.path().join("file");
        std::fs::write(&file_path, "content").expect("written");
        for path in [directory.path(), &file_path] {
            let file = std::fs::File::open(path).expect("opened");
            let newer = Metadata::from_fd(std::os::fd::AsFd::as_fd(&file)).expect("described");
            let older = Metadata::from_stat(&fs::fstat(&file).expect("described"));
            assert_eq!(older.version(), newer.version(), "{}", path.display());
            assert_eq!(
                (older.mode(), older.link_count(), older.owner()),
                (newer.mode(), newer.link_count(), newer.owner())
            );
            assert_eq!((older.identity(), older.changed()), (newer.identity(), newer.changed()));
        }
    }
}
