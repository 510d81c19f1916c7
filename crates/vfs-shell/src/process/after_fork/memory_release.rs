//! Release of the pages that the supervisor shares with the serving process.
//!
//! While both have a page, the first write copies it. A supervisor lives as long as its command, so a few jobs that run for
//! hours would each keep all memory that the serving process had when they began. The supervisor needs its stack, the data
//! of the program and its libraries, and the block of its thread, where `errno` is. All other written pages that belong to
//! no file are dropped from this copy.

use libc::c_int;

/// Mapping of this process, parsed from a line of `/proc/self/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MemoryMapping {
    start: usize,
    end: usize,
    kind: MappingKind,
}

/// Kind of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappingKind {
    /// Maps a file.
    File,
    /// Private writable memory without a file.
    Anonymous,
    Other,
}

/// Releases the pages that the supervisor does not need.
///
/// # Safety
///
/// No allocated memory may be used afterwards.
pub(super) unsafe fn release_pages() {
    let stack = 0_u8;
    // SAFETY: libc always returns a valid address.
    let block = unsafe { libc::__errno_location() };
    let needed = [(&raw const stack).addr(), block.addr()];
    let mut file_end = 0;
    each_line(|line| {
        let Some(mapping) = parse(line) else { return };
        // The mapping that follows a file is the zero-initialised part of its data.
        let is_data = mapping.start == file_end;
        if mapping.kind == MappingKind::File {
            file_end = mapping.end;
        }
        let is_needed = needed.iter().any(|address| (mapping.start..mapping.end).contains(address));
        if mapping.kind == MappingKind::Anonymous && !is_data && !is_needed {
            let start = std::ptr::with_exposed_provenance_mut(mapping.start);
            // SAFETY: the range stays mapped, reads as zeros, and is not used. If the call fails, as it does for locked
            // memory, the copy stays.
            unsafe { libc::madvise(start, mapping.end.wrapping_sub(mapping.start), libc::MADV_DONTNEED) };
        }
    });
}

/// Calls `visit` with the beginning of each line of `/proc/self/maps`.
fn each_line(mut visit: impl FnMut(&[u8])) {
    // SAFETY: the buffer has the given length; the descriptor is opened and closed here.
    unsafe {
        let maps = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if maps < 0 {
            return;
        }
        let (mut line, mut length) = ([0_u8; 128], 0_usize);
        let mut buffer = [0_u8; 2048];
        while let Some(bytes) = read(maps, &mut buffer) {
            for &byte in bytes {
                if byte == b'\n' {
                    visit(line.get(..length).unwrap_or_default());
                    length = 0;
                } else if let Some(slot) = line.get_mut(length) {
                    *slot = byte;
                    length = length.wrapping_add(1);
                }
            }
        }
        libc::close(maps);
    }
}

/// Reads the next bytes; `None` at the end.
fn read(from: c_int, buffer: &mut [u8; 2048]) -> Option<&[u8]> {
    // SAFETY: the buffer has the given length.
    let read = unsafe { libc::read(from, buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(read).ok()?).filter(|bytes| !bytes.is_empty())
}

/// Parses `start-end permissions offset device inode name`, of which the name may be missing.
fn parse(line: &[u8]) -> Option<MemoryMapping> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let mut range = words.next()?.split(|&byte| byte == b'-');
    let (start, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    let (permissions, inode) = (words.next()?, words.nth(2)?);
    let name = words.next().unwrap_or_default();
    let kind = if inode != b"0" {
        MappingKind::File
    } else if permissions == b"rw-p" && (name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:")) {
        MappingKind::Anonymous
    } else {
        MappingKind::Other
    };
    Some(MemoryMapping { start, end, kind })
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    let mut number: usize = 0;
    for &digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit.wrapping_sub(b'0'),
            b'a'..=b'f' => digit.wrapping_sub(b'a').wrapping_add(10),
            _ => return None,
        };
        number = number.checked_mul(16)?.checked_add(usize::from(value))?;
    }
    if digits.is_empty() { None } else { Some(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_classified_by_kind() {
        for (line, expected) in [
            ("55d0-55e0 r-xp 00001000 fe:01 123    /usr/bin/a b", Some(MappingKind::File)),
            ("55d0-55e0 rw-p 00001000 fe:01 123    /usr/bin/a", Some(MappingKind::File)),
            ("55d0-55e0 rw-p 00000000 00:00 0      [heap]", Some(MappingKind::Anonymous)),
            ("55d0-55e0 rw-p 00000000 00:00 0 ", Some(MappingKind::Anonymous)),
            ("55d0-55e0 rw-p 00000000 00:00 0      [anon: glibc: malloc arena]", Some(MappingKind::Anonymous)),
            ("55d0-55e0 rw-s 00000000 00:00 0 ", Some(MappingKind::Other)),
            ("55d0-55e0 ---p 00000000 00:00 0 ", Some(MappingKind::Other)),
            ("55d0-55e0 rw-p 00000000 00:00 0      [stack]", Some(MappingKind::Other)),
            ("55d0-55e0 rw-s 00000000 00:01 99     /memfd:x (deleted)", Some(MappingKind::File)),
            ("55d0-xyz rw-p 00000000 00:00 0", None),
            ("", None),
        ] {
            let expected = expected.map(|kind| MemoryMapping { start: 0x55d0, end: 0x55e0, kind });
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn stack_and_heap_of_this_process_are_parsed() {
        let (local, allocated) = (0_u8, Box::new([0_u8; 100_000]));
        let holders = [(&raw const local).addr(), allocated.as_ptr().addr()].map(|address| {
            let mut found = None;
            each_line(|line| {
                let mapping = parse(line).expect("as the kernel writes them");
                if (mapping.start..mapping.end).contains(&address) {
                    found = Some(mapping.kind);
                }
            });
            found
        });
        assert!(holders[0].is_some());
        assert_eq!(holders[1], Some(MappingKind::Anonymous));
    }
}
