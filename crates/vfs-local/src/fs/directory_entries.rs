//! Directory listing by `getdents64`.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{self, AtFlags, FileType, RawDir};
use rustix::io::{self, Errno};

/// Calls `each` for every entry of a directory except `.` and `..`. Lists from the current position of `dir`, which is
/// the beginning for a descriptor that was not read from before.
pub(crate) fn for_each_entry(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, FileType) -> io::Result<()>,
) -> io::Result<()> {
    // The buffer is on the stack: the C library takes a lock each time that a heap buffer of this size is freed, and
    // many threads list at once.
    let mut buffer = [const { MaybeUninit::uninit() }; 32 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            kind => kind,
        };
        each(name, kind)?;
    }
    Ok(())
}
