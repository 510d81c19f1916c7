//! Descendants of the supervisor, read from `/proc`.
//!
//! A pass visits processes by ascending number, a few at a time, and signals them as it sees them. New processes get higher
//! numbers, so a pass also meets what is forked while it runs, however fast. If the numbers wrap around, a process may
//! escape one pass, and the next one finds it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use libc::{c_int, pid_t};

/// Process numbers are below this limit of the kernel.
const MAX_PROCESSES: usize = 1 << 22;

/// Upper bound on the passes of one visit over all processes.
const MAX_PASSES: usize = 4;

/// Bit set of process numbers.
struct PidSet([AtomicU64; MAX_PROCESSES / 64]);

static SEEN: PidSet = PidSet::new();
static SIGNALLED: PidSet = PidSet::new();

impl PidSet {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_PROCESSES / 64])
    }

    fn word(&self, number: pid_t) -> Option<(&AtomicU64, u64)> {
        let number = usize::try_from(number).ok()?;
        Some((self.0.get(number / 64)?, 1 << (number % 64)))
    }

    fn contains(&self, number: pid_t) -> bool {
        self.word(number).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    /// Adds `number` and returns whether it is new.
    fn insert(&self, number: pid_t) -> bool {
        self.word(number).is_some_and(|(word, bit)| word.fetch_or(bit, Relaxed) & bit == 0)
    }

    fn clear(&self) {
        for word in &self.0 {
            // Load first: a page that was never written takes no memory.
            if word.load(Relaxed) != 0 {
                word.store(0, Relaxed);
            }
        }
    }
}

/// The descendants of this process.
pub(super) struct ProcessTree {
    supervisor: pid_t,
}

impl ProcessTree {
    /// Creates the view for this process, whose number is `supervisor`.
    pub(super) fn new(supervisor: pid_t) -> Self {
        Self { supervisor }
    }

    /// Calls `visit` once for each process group of the descendants, with the number that `kill` takes for it.
    ///
    /// A group lies within a session, and the program began one of its own, so all members of a descendant's group are
    /// descendants. The kernel signals a group in one step, during which no member can fork.
    ///
    /// Returns `false` without a visit if `/proc` cannot be opened.
    pub(super) fn for_each_group(&self, mut visit: impl FnMut(pid_t)) -> bool {
        SEEN.clear();
        SIGNALLED.clear();
        // Repeat while there are new processes, since a child may have a lower number than its parent. The bound is needed
        // because there may always be new ones.
        for _ in 0..MAX_PASSES {
            match self.pass(&mut visit) {
                None => return false,
                Some(true) => {}
                Some(false) => return true,
            }
        }
        true
    }

    /// Returns whether there were new processes, or `None` if `/proc` cannot be opened.
    fn pass(&self, visit: &mut impl FnMut(pid_t)) -> Option<bool> {
        let mut has_new = false;
        let could_open = each_process(|pid, stat| {
            let Some((parent, group)) = parse(stat) else { return };
            if (parent == self.supervisor || SEEN.contains(parent)) && SEEN.insert(pid) {
                has_new = true;
                if group == self.supervisor || group <= 1 {
                    // This child has not begun its own session yet.
                    visit(pid);
                } else if SIGNALLED.insert(group) {
                    visit(group.wrapping_neg());
                }
            }
        });
        could_open.then_some(has_new)
    }
}

/// Calls `visit` with the beginning of each process's `stat`, and returns whether `/proc` could be opened.
fn each_process(mut visit: impl FnMut(pid_t, &[u8])) -> bool {
    // SAFETY: all memory lives here and has the given length; descriptors are opened and closed here.
    unsafe {
        let proc = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if proc < 0 {
            return false;
        }
        // A small buffer, so that its entries are recent.
        let mut entries = DirEntryBuffer([0; 256]);
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

/// Buffer of directory entries, aligned as the kernel writes them.
#[repr(align(8))]
struct DirEntryBuffer([u8; 256]);

/// Returns the name of the first entry that `getdents64` wrote, and the bytes after the entry. An entry has eight bytes of
/// inode, eight of offset, two of its length, one of its type, and the name up to a NUL.
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

/// Reads the beginning of the `stat` of `name` and returns its length.
fn read_stat(proc: c_int, name: &[u8], into: &mut [u8; 512]) -> usize {
    let mut path = [0_u8; 32];
    for (to, from) in path.iter_mut().zip(name.iter().chain(b"/stat")) {
        *to = *from;
    }
    // The path ends with a NUL, whatever the length of the name.
    if let Some(last) = path.last_mut() {
        *last = 0;
    }
    // SAFETY: the path ends with a NUL, and the buffer has the given length.
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

/// Parses parent and group: the second and third word after the name, which is in parentheses and may hold any character.
fn parse(stat: &[u8]) -> Option<(pid_t, pid_t)> {
    let behind = stat.iter().rposition(|&byte| byte == b')')?;
    let mut words = stat.get(behind..)?.split(|&byte| byte == b' ').skip(2);
    Some((number(words.next()?)?, number(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_group_are_parsed_after_any_process_name() {
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
    fn each_process_visits_this_process() {
        let supervisor = pid_t::try_from(std::process::id()).expect("a process id");
        let mut seen = false;
        each_process(|pid, stat| seen |= pid == supervisor && parse(stat).is_some());
        assert!(seen);
    }
}
