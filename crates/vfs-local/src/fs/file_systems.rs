//! Properties of file systems, by their magic numbers in `statfs(2)`.

use std::fs::read_to_string;
use std::os::fd::AsFd;
use std::sync::LazyLock;

use rustix::fs::{StatVfsMountFlags, fstatfs, fstatvfs};

/// File systems on a local disk: they answer without contacting another machine or process, and every change of a
/// directory or of a file's content, by anyone, shows in its timestamps.
const LOCAL_DISK_MAGICS: [u32; 7] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x3153_464A, // JFS
];

/// The file system in memory, where a write through a memory map does not show in the timestamps.
const TMPFS_MAGIC: u32 = 0x0102_1994;

/// Returns whether `fd` is on a local disk.
pub(crate) fn is_on_local_disk(fd: impl AsFd) -> bool {
    read_magic(fd).is_some_and(|magic| LOCAL_DISK_MAGICS.contains(&magic))
}

/// Returns whether `syncfs(2)` reports write errors since the file was opened, as it does from Linux 5.8 on.
pub(crate) fn syncfs_reports_errors() -> bool {
    static RELEASE: LazyLock<Option<String>> = LazyLock::new(|| read_to_string("/proc/sys/kernel/osrelease").ok());
    RELEASE.as_deref().is_some_and(is_since_5_8)
}

/// Returns whether the kernel `release`, such as `6.1.0-18-amd64`, is version 5.8 or later.
fn is_since_5_8(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse::<u32>().ok());
    matches!((numbers.next().flatten(), numbers.next().flatten()), (Some(major), Some(minor)) if (major, minor) >= (5, 8))
}

/// Returns whether `fd` is on a file system that resolves names without contacting another machine or process.
pub(crate) fn resolves_names_locally(fd: impl AsFd) -> bool {
    read_magic(fd).is_some_and(|magic| LOCAL_DISK_MAGICS.contains(&magic) || magic == TMPFS_MAGIC)
}

/// When a read updates a file's access time. The update is a change of the file system, which may have to wait for
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtimeMountOption {
    Never,
    /// Once after each change of the file, and once a day.
    Relative,
    Always,
}

/// Returns the access time policy of the mount that `fd` is on.
pub(crate) fn access_time_policy(fd: impl AsFd) -> AtimeMountOption {
    let flags = fstatvfs(fd).map_or(StatVfsMountFlags::empty(), |found| found.f_flag);
    if flags.intersects(StatVfsMountFlags::NOATIME | StatVfsMountFlags::RDONLY) {
        AtimeMountOption::Never
    } else if flags.contains(StatVfsMountFlags::RELATIME) {
        AtimeMountOption::Relative
    } else {
        AtimeMountOption::Always
    }
}

fn read_magic(fd: impl AsFd) -> Option<u32> {
    fstatfs(fd).ok().and_then(|found| u32::try_from(found.f_type).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_compared_numerically() {
        for (release, is_later) in [
            ("5.8.0", true),
            ("5.10.0-28-cloud-amd64", true),
            ("6.1-rc1", true),
            ("10.0", true),
            ("5.7.19", false),
            ("4.18.0-513.el8.x86_64", false),
            ("5", false),
            ("", false),
        ] {
            assert_eq!(is_since_5_8(release), is_later, "{release}");
        }
    }
}
