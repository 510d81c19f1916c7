//! What is known of file systems, by the numbers of statfs(2).

use std::os::fd::AsFd;

use rustix::fs::{StatVfsMountFlags, fstatfs, fstatvfs};

/// Those on a disk of this machine: they answer without asking anybody else, and every change of a directory or a content,
/// whoever makes it, shows in its times.
const DISKS: [u32; 7] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x3153_464A, // JFS
];

/// In memory, where a write through a memory map does not show in the times.
const TMPFS: u32 = 0x0102_1994;

/// Whether `held` is on a disk of this machine.
pub(crate) fn is_on_disk(held: impl AsFd) -> bool {
    kind(held).is_some_and(|kind| DISKS.contains(&kind))
}

/// Whether `held` is on a file system that looks names up by itself: no other machine and no other process is asked.
pub(crate) fn answers_itself(held: impl AsFd) -> bool {
    kind(held).is_some_and(|kind| DISKS.contains(&kind) || kind == TMPFS)
}

/// When reading a file moves its time of access. That is a change of the file system, which may wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessTimes {
    Never,
    /// Once after each change of the file, and once a day.
    Relative,
    Always,
}

/// How the mount that `held` is on keeps times of access.
pub(crate) fn access_times(held: impl AsFd) -> AccessTimes {
    let flags = fstatvfs(held).map_or(StatVfsMountFlags::empty(), |found| found.f_flag);
    if flags.intersects(StatVfsMountFlags::NOATIME | StatVfsMountFlags::RDONLY) {
        AccessTimes::Never
    } else if flags.contains(StatVfsMountFlags::RELATIME) {
        AccessTimes::Relative
    } else {
        AccessTimes::Always
    }
}

fn kind(held: impl AsFd) -> Option<u32> {
    fstatfs(held).ok().and_then(|found| u32::try_from(found.f_type).ok())
}
