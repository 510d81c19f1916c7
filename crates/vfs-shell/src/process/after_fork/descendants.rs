//! Who descends from the supervisor, as `/proc` tells.
//!
//! Processes are visited in the order of their numbers, a few at a time, and signalled as they are seen. New ones get higher
//! numbers: what is forked while a visit goes on is met later in the same visit, however fast it forks. What escapes a visit
//! all the same, because the numbers began anew, is found by the next.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use libc::{c_int, pid_t};

/// The kernel numbers processes below this.
const MOST_PROCESSES: usize = 1 << 22;

/// How often one visit looks through all processes.
const MOST_PASSES: usize = 4;

/// A set of process numbers.
struct Numbers([AtomicU64; MOST_PROCESSES / 64]);

static SEEN: Numbers = Numbers::new();
static SIGNALLED: Numbers = Numbers::new();

impl Numbers {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MOST_PROCESSES / 64])
    }

    fn word(&self, number: pid_t) -> Option<(&AtomicU64, u64)> {
        let number = usize::try_from(number).ok()?;
        Some((self.0.get(number / 64)?, 1 << (number % 64)))
    }

    fn contains(&self, number: pid_t) -> bool {
        self.word(number).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    /// Whether it is new.
    fn insert(&self, number: pid_t) -> bool {
        self.word(number).is_some_and(|(word, bit)| word.fetch_or(bit, Relaxed) & bit == 0)
    }

    fn clear(&self) {
        for word in &self.0 {
            // Looked at first: a page that was never written takes no memory.
            if word.load(Relaxed) != 0 {
                word.store(0, Relaxed);
            }
        }
    }
}

/// The processes that descend from this one.
pub(super) struct Descendants {
    me: pid_t,
}

impl Descendants {
    /// `me` is this process.
    pub(super) fn of(me: pid_t) -> Self {
        Self { me }
    }

    /// Visits each group of theirs once, as the number that `kill` takes for it.
    ///
    /// A group lies within a session, and the program began one of its own: whoever shares a group with a descendant is
    /// one, too. The kernel signals a group in one step, in which none of its members can fork.
    ///
    /// Says whether it could look: without `/proc`, or without a descriptor left for it, nobody is visited.
    pub(super) fn each(&self, mut visit: impl FnMut(pid_t)) -> bool {
        SEEN.clear();
        SIGNALLED.clear();
        // Once more while there are new ones, since a child may have a lower number than its parent; but not forever, since
        // there may always be new ones.
        for _ in 0..MOST_PASSES {
            match self.pass(&mut visit) {
                None => return false,
                Some(true) => {}
                Some(false) => return true,
            }
        }
        true
    }

    /// Whether there were new ones; `None` where it could not look.
    fn pass(&self, visit: &mut impl FnMut(pid_t)) -> Option<bool> {
        let mut found = false;
        let looked = each_process(|pid, stat| {
            let Some((parent, group)) = parse(stat) else { return };
            if (parent == self.me || SEEN.contains(parent)) && SEEN.insert(pid) {
                found = true;
                if group == self.me || group <= 1 {
                    // It has not begun its own session yet.
                    visit(pid);
                } else if SIGNALLED.insert(group) {
                    visit(group.wrapping_neg());
                }
            }
        });
        looked.then_some(found)
    }
}

/// Visits every process with the beginning of its `stat`, and says whether it could.
fn each_process(mut visit: impl FnMut(pid_t, &[u8])) -> bool {
    // SAFETY: all memory lives here and is as long as is said; descriptors that are opened here are closed here.
    unsafe {
        let proc = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if proc < 0 {
            return false;
        }
        // Small, so that what is read is never old.
        let mut entries = Entries([0; 256]);
        loop {
            let read = libc::syscall(libc::SYS_getdents64, proc, entries.0.as_mut_ptr(), entries.0.len());
            let Some(mut rest) = usize::try_from(read).ok().and_then(|read| entries.0.get(..read)) else { break };
            if rest.is_empty() {
                break;
            }
            while let Some((name, next)) = first_entry(rest) {
                rest = next;
                let Some(pid) = number(name) else { continue };
                let mut stat = [0_u8; 512];
                let length = read_stat(proc, name, &mut stat);
                if let Some(stat) = stat.get(..length) {
                    visit(pid, stat);
                }
            }
        }
        libc::close(proc);
    }
    true
}

/// Aligned as the kernel writes it.
#[repr(align(8))]
struct Entries([u8; 256]);

/// The name of the first entry of what `getdents64` wrote, and what follows: eight bytes each of inode and offset, two of the
/// entry's length, one of its type, and the name up to a NUL.
fn first_entry(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes([*entries.get(16)?, *entries.get(17)?]));
    let name = entries.get(19..length)?;
    let end = name.iter().position(|&byte| byte == 0)?;
    Some((name.get(..end)?, entries.get(length..)?))
}

fn number(digits: &[u8]) -> Option<pid_t> {
    let mut number: pid_t = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(pid_t::from(digit.wrapping_sub(b'0')))?;
    }
    if digits.is_empty() { None } else { Some(number) }
}

/// Reads the beginning of `name`'s `stat`, and says how much.
fn read_stat(proc: c_int, name: &[u8], into: &mut [u8; 512]) -> usize {
    let mut path = [0_u8; 32];
    for (to, from) in path.iter_mut().zip(name.iter().chain(b"/stat")) {
        *to = *from;
    }
    // The last byte stays a NUL, whatever the name.
    if let Some(last) = path.last_mut() {
        *last = 0;
    }
    // SAFETY: the path ends with a NUL, and the buffer is as long as is said.
    unsafe {
        let stat = libc::openat(proc, path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if stat < 0 {
            return 0;
        }
        let read = libc::read(stat, into.as_mut_ptr().cast(), into.len());
        libc::close(stat);
        usize::try_from(read).unwrap_or(0)
    }
}

/// Parent and group: the second and third word behind the name, which stands in parentheses and may hold any character.
fn parse(stat: &[u8]) -> Option<(pid_t, pid_t)> {
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    let mut words = stat.get(behind..)?.split(|&byte| byte == b' ').skip(2);
    Some((number(words.next()?)?, number(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_group_are_found_behind_any_name() {
        for (stat, expected) in [
            ("12 (sh) S 7 12 12 0 -1", Some((7, 12))),
            ("12 (a b) S 1 2) R 70 120 12 0", Some((70, 120))),
            ("12 () Z 0 0 0", Some((0, 0))),
            ("12 (sh) S 7", None),
            ("12 sh S 7 12", None),
            ("12 (sh) S -1 99999999999 1", None),
            ("", None),
        ] {
            assert_eq!(parse(stat.as_bytes()), expected, "{stat}");
        }
    }

    #[test]
    fn this_process_is_among_all_processes() {
        let me = pid_t::try_from(std::process::id()).expect("a process id");
        let mut seen = false;
        each_process(|pid, stat| seen |= pid == me && parse(stat).is_some());
        assert!(seen);
    }
}
