//! Giving back the serving process' memory, of which the supervisor is a copy.
//!
//! As long as both have a page, whoever writes it first gets a copy. A supervisor lives as long as its command, so a few jobs
//! that run for hours would each hold on to all that the serving process had when they began. What the supervisor needs is on
//! its stack, in the data of the program and its libraries, and in the block of its thread, where `errno` is; all else that
//! was written, and belongs to no file, is dropped from this copy.

use libc::c_int;

/// A mapping, as a line of `/proc/self/maps` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It shows a file.
    File,
    /// It is memory that was taken while the process ran, its own and writable.
    Taken,
    Other,
}

/// Drops what is not needed here.
///
/// # Safety
///
/// Nothing in memory that was allocated may be used afterwards.
pub(super) unsafe fn give_back() {
    let stack = 0_u8;
    // SAFETY: libc gives a valid address, always.
    let block = unsafe { libc::__errno_location() };
    let needed = [(&raw const stack).addr(), block.addr()];
    let mut file_end = 0;
    each_line(|line| {
        let Some(mapping) = parse(line) else { return };
        // What follows a file is the part of its data that begins as zeros.
        let is_data = mapping.start == file_end;
        if mapping.kind == Kind::File {
            file_end = mapping.end;
        }
        let is_needed = needed.iter().any(|address| (mapping.start..mapping.end).contains(address));
        if mapping.kind == Kind::Taken && !is_data && !is_needed {
            let start = std::ptr::with_exposed_provenance_mut(mapping.start);
            // SAFETY: it stays mapped, reads as zeros, and is not used. Where it fails, as for a kind of memory that cannot
            // be given back, the copy stays.
            unsafe { libc::madvise(start, mapping.end.wrapping_sub(mapping.start), libc::MADV_DONTNEED) };
        }
    });
}

/// Hands on the beginning of each line.
fn each_line(mut visit: impl FnMut(&[u8])) {
    // SAFETY: the buffer is as long as is said; the descriptor that is opened here is closed here.
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
                } else if let Some(place) = line.get_mut(length) {
                    *place = byte;
                    length = length.wrapping_add(1);
                }
            }
        }
        libc::close(maps);
    }
}

/// What can be read at once; `None` at the end.
fn read(from: c_int, buffer: &mut [u8; 2048]) -> Option<&[u8]> {
    // SAFETY: the buffer is as long as is said.
    let read = unsafe { libc::read(from, buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(read).ok()?).filter(|bytes| !bytes.is_empty())
}

/// Reads `start-end permissions offset device inode name`, of which the last may be missing.
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let mut range = words.next()?.split(|&byte| byte == b'-');
    let (start, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    let (permissions, inode) = (words.next()?, words.nth(2)?);
    let name = words.next().unwrap_or_default();
    let kind = if inode != b"0" {
        Kind::File
    } else if permissions == b"rw-p" && (name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:")) {
        Kind::Taken
    } else {
        Kind::Other
    };
    Some(Mapping { start, end, kind })
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
    fn mappings_are_told_apart() {
        for (line, expected) in [
            ("55d0-55e0 r-xp 00001000 fe:01 123    /usr/bin/a b", Some(Kind::File)),
            ("55d0-55e0 rw-p 00001000 fe:01 123    /usr/bin/a", Some(Kind::File)),
            ("55d0-55e0 rw-p 00000000 00:00 0      [heap]", Some(Kind::Taken)),
            ("55d0-55e0 rw-p 00000000 00:00 0 ", Some(Kind::Taken)),
            ("55d0-55e0 rw-p 00000000 00:00 0      [anon: glibc: malloc arena]", Some(Kind::Taken)),
            ("55d0-55e0 rw-s 00000000 00:00 0 ", Some(Kind::Other)),
            ("55d0-55e0 ---p 00000000 00:00 0 ", Some(Kind::Other)),
            ("55d0-55e0 rw-p 00000000 00:00 0      [stack]", Some(Kind::Other)),
            ("55d0-55e0 rw-s 00000000 00:01 99     /memfd:x (deleted)", Some(Kind::File)),
            ("55d0-xyz rw-p 00000000 00:00 0", None),
            ("", None),
        ] {
            let expected = expected.map(|kind| Mapping { start: 0x55d0, end: 0x55e0, kind });
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn the_stack_and_the_heap_of_this_process_are_seen() {
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
        assert_eq!(holders[1], Some(Kind::Taken));
    }
}
