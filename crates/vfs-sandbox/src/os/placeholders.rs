//! Placeholders for missing protected paths, which exist while commands run.
//!
//! Only an existing path can be covered. Without a placeholder, a command could create a missing one: a repository with hooks,
//! which the next user would run, or a link, which bubblewrap would follow at the start of another command. Since every command
//! has every protected path covered, none can move, replace or remove a placeholder, and bubblewrap finds what was checked.
//!
//! A placeholder is a directory, also for a path that is a file elsewhere: git lists no empty directories.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, MemfdFlags, Mode, OFlags, Stat, Timespec, Timestamps, fchmod, flock, fstat,
    futimens, memfd_create, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::programs::is_same;

/// The mode of a placeholder. Nobody makes such a directory by accident, so that one that a killed process left is known.
const MODE: u32 = 0o1500;

/// The mode of a placeholder that cannot be removed, because somebody has put something in.
const ORDINARY_MODE: u32 = 0o755;

/// The time of modification of a placeholder on a file system that does not keep the sticky bit, as FUSE file systems may not:
/// 2001-02-03 04:05:06.070809 UTC.
const MARKED: Timespec = Timespec { tv_sec: 981_173_106, tv_nsec: 70_809_000 };

/// The placeholders of one sandbox.
///
/// Other sandboxes may use the same ones: each holds a lock on those that it uses, and only the last one removes them.
/// Commands see covers in their place, so they cannot take that lock.
#[derive(Debug)]
pub(super) struct Placeholders {
    /// A file in memory on which each running command has a lock.
    running: OwnedFd,
    used: Mutex<Vec<Placeholder>>,
}

#[derive(Debug)]
struct Placeholder {
    directory: OwnedFd,
    name: String,
    held: OwnedFd,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It stands for something that is protected.
    Stands,
    /// It has to be there for one that does.
    Leads,
}

/// What is at a path.
#[derive(Debug)]
pub(super) enum There {
    Placeholder(OwnedFd),
    Another,
    /// Nothing, and this process may make nothing there: commands may do no more.
    Nothing,
}

/// How often something is looked for anew that another sandbox removes or makes at that moment.
const TRIES: usize = 64;

/// How long that takes it.
const MOMENT: Duration = Duration::from_millis(1);

/// How many of them are waited for before it is believed that a command runs.
const MOMENTS: usize = 8;

impl Placeholders {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self { running: memfd_create("sandbox", MemfdFlags::CLOEXEC)?, used: Mutex::default() })
    }

    /// What a command is to hold open for as long as it runs.
    pub(super) fn hold(&self) -> Result<OwnedFd, Errno> {
        let _used = self.used();
        let path = format!("/proc/self/fd/{}", self.running.as_raw_fd());
        let lock = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        flock(&lock, FlockOperation::LockShared)?;
        Ok(lock)
    }

    /// Returns what has this name; if nothing does, makes a placeholder.
    pub(super) fn put(&self, directory: &OwnedFd, name: &str) -> Result<There, Errno> {
        let mut used = self.used();
        for _ in 0..TRIES {
            let held = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) => {
                    let is_known = |known: &&Placeholder| fstat(&known.held).is_ok_and(|held| is_same(&held, &status));
                    if let Some(known) = used.iter().find(is_known) {
                        return Ok(There::Placeholder(rustix::io::fcntl_dupfd_cloexec(&known.held, 0)?));
                    }
                    if !is_placeholder(&status) {
                        return Ok(There::Another);
                    }
                    match open(directory, name) {
                        Ok(held) => held,
                        // Another user's.
                        Err(Errno::ACCESS) => return Ok(There::Another),
                        Err(_) => continue,
                    }
                }
                Err(Errno::NOENT) => match make(directory, name) {
                    Ok(held) => held,
                    Err(Errno::EXIST) => continue,
                    Err(errno) => return not_made(errno),
                },
                Err(errno) => return not_made(errno),
            };
            if flock(&held, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(MOMENT);
                continue;
            }
            let placeholder = Placeholder {
                directory: rustix::io::fcntl_dupfd_cloexec(directory, 0)?,
                name: name.to_owned(),
                held: rustix::io::fcntl_dupfd_cloexec(&held, 0)?,
                role: Role::Stands,
            };
            // It may have been removed before it was locked.
            if placeholder.is_in_place() {
                used.push(placeholder);
                return Ok(There::Placeholder(held));
            }
        }
        Err(Errno::BUSY)
    }

    /// What has this name and leads to a placeholder; where there is nothing, a directory is made.
    pub(super) fn lead(&self, directory: &OwnedFd, name: &str) -> Result<There, Errno> {
        let mut used = self.used();
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Ok(There::Another),
            Err(Errno::NOENT) => {}
            Err(errno) => return not_made(errno),
        }
        match mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(There::Another),
            Err(errno) => return not_made(errno),
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = openat(directory, name, flags, Mode::empty())?;
        let directory = rustix::io::fcntl_dupfd_cloexec(directory, 0)?;
        used.push(Placeholder { directory, name: name.to_owned(), held, role: Role::Leads });
        Ok(There::Another)
    }

    /// Removes those that nobody uses, unless a command runs. Blocks for a few milliseconds.
    pub(super) fn clear(&self) {
        let mut used = self.used();
        if used.is_empty() || !self.is_idle() {
            return;
        }
        // What is below another one was put after it.
        for placeholder in used.drain(..).rev() {
            placeholder.remove();
        }
        // It goes with the descriptor where this fails, and the next command waits for it.
        let _ = flock(&self.running, FlockOperation::Unlock);
    }

    /// Whether no command runs. Then none is started until the lock is given back.
    fn is_idle(&self) -> bool {
        // A process that this one starts has the locks of other commands for a moment, too, until it closes them.
        (0..MOMENTS).any(|moment| {
            if moment > 0 {
                std::thread::sleep(MOMENT);
            }
            flock(&self.running, FlockOperation::NonBlockingLockExclusive).is_ok()
        })
    }

    fn used(&self) -> MutexGuard<'_, Vec<Placeholder>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        // What a command that still ends leaves, the next sandbox of the directory removes.
        self.clear();
    }
}

impl Placeholder {
    fn is_in_place(&self) -> bool {
        let there = statat(&self.directory, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| fstat(&self.held).is_ok_and(|held| is_same(&there, &held)))
    }

    /// Removes it, unless somebody of the host has put something in, or in its place, or another sandbox uses it.
    fn remove(&self) {
        if self.role == Role::Leads {
            if self.is_in_place() {
                // It stays where commands have put something in.
                let _ = unlinkat(&self.directory, self.name.as_str(), AtFlags::REMOVEDIR);
            }
            return;
        }
        if flock(&self.held, FlockOperation::NonBlockingLockExclusive).is_err() || !self.is_in_place() {
            return;
        }
        let is_unchanged = fstat(&self.held).is_ok_and(|status| is_unwritable_directory(&status));
        let is_removed = is_unchanged && unlinkat(&self.directory, self.name.as_str(), AtFlags::REMOVEDIR).is_ok();
        if !is_removed {
            // It is no placeholder any more; what cannot be changed of it does no harm.
            let _ = fchmod(&self.held, Mode::from_raw_mode(ORDINARY_MODE));
        }
    }
}

/// Returns whether an entry with this status is a placeholder, whichever process made it.
fn is_placeholder(status: &Stat) -> bool {
    let is_marked = status.st_mode & libc::S_ISVTX != 0
        || (status.st_mtime, status.st_mtime_nsec) == (MARKED.tv_sec, MARKED.tv_nsec.unsigned_abs());
    is_marked && is_unwritable_directory(status)
}

fn is_unwritable_directory(status: &Stat) -> bool {
    const WRITABLE: u32 = 0o222;
    FileType::from_raw_mode(status.st_mode).is_dir() && status.st_mode & WRITABLE == 0
}

/// Below what is no directory, nothing can be as long as that stays where it is.
fn not_made(errno: Errno) -> Result<There, Errno> {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOTDIR => Ok(There::Nothing),
        errno => Err(errno),
    }
}

fn make(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    mkdirat(directory, name, Mode::from_raw_mode(MODE))?;
    let made = open(directory, name)?;
    let status = fstat(&made)?;
    if !is_unwritable_directory(&status) {
        // It was replaced before it was opened.
        return Err(Errno::EXIST);
    }
    if status.st_mode & libc::S_ISVTX == 0 {
        // Without this mark, only the sandbox that made it knows it.
        let _ = futimens(&made, &Timestamps { last_access: MARKED, last_modification: MARKED });
    }
    Ok(made)
}

fn open(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(directory: &tempfile::TempDir) -> OwnedFd {
        rustix::fs::open(directory.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("opened")
    }

    fn names(directory: &tempfile::TempDir) -> Vec<&'static str> {
        let is_there = |name: &&str| rustix::fs::lstat(directory.path().join(name)).is_ok();
        [".git", ".env", "keys"].into_iter().filter(is_there).collect()
    }

    #[test]
    fn they_go_with_the_last_command_of_the_last_sandbox() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let (one, other) = (Placeholders::new().expect("made"), Placeholders::new().expect("made"));
        let command = one.hold().expect("a lock");
        for placeholders in [&one, &other, &one] {
            for name in [".git", ".env"] {
                assert!(matches!(placeholders.put(&root, name), Ok(There::Placeholder(_))));
            }
        }
        one.clear();
        assert_eq!(names(&directory), [".git", ".env"], "a command runs");
        drop(command);
        one.clear();
        assert_eq!(names(&directory), [".git", ".env"], "another sandbox uses them");
        drop(other);
        assert_eq!(names(&directory), [""; 0]);
    }

    #[test]
    fn what_is_not_as_it_was_made_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let placeholders = Placeholders::new().expect("made");
        placeholders.put(&root, ".git").expect("put");
        placeholders.put(&root, "keys").expect("put");
        placeholders.put(&root, ".env").expect("put");
        let keys = openat(&root, "keys", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("there");
        rustix::fs::chmodat(&root, "keys", Mode::from_raw_mode(0o1755), AtFlags::empty()).expect("changed");
        make(&keys, "private").expect("made");
        unlinkat(&root, ".env", AtFlags::REMOVEDIR).expect("removed");
        make(&root, ".env").expect("made");
        placeholders.clear();
        assert_eq!(names(&directory), [".env", "keys"]);
        let mode = statat(&root, "keys", AtFlags::empty()).expect("there").st_mode;
        assert_eq!(mode & 0o7777, 0o755, "it is an ordinary directory now");
    }

    #[test]
    fn a_directory_that_leads_to_one_goes_where_it_is_empty() {
        for (has_more, left) in [(false, &[][..]), (true, &["keys"])] {
            let directory = tempfile::tempdir().expect("a directory");
            let root = opened(&directory);
            let placeholders = Placeholders::new().expect("made");
            placeholders.lead(&root, "keys").expect("made");
            let keys = openat(&root, "keys", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("there");
            placeholders.put(&keys, "private").expect("put");
            if has_more {
                mkdirat(&keys, "other", Mode::from_raw_mode(0o755)).expect("made");
            }
            placeholders.clear();
            assert_eq!(names(&directory), left);
            assert_eq!(statat(&keys, "private", AtFlags::empty()).err(), Some(Errno::NOENT));
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_users_made_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        make(&root, ".git").expect("made");
        mkdirat(&root, "keys", Mode::from_raw_mode(0o755)).expect("made");
        let placeholders = Placeholders::new().expect("made");
        assert!(matches!(placeholders.put(&root, ".git"), Ok(There::Placeholder(_))));
        assert!(matches!(placeholders.put(&root, "keys"), Ok(There::Another)));
        placeholders.clear();
        assert_eq!(names(&directory), ["keys"]);
    }

    #[test]
    fn one_without_a_sticky_bit_is_known_by_its_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let [killed, placeholders] = [(); 2].map(|()| Placeholders::new().expect("made"));
        killed.put(&root, ".git").expect("put");
        let held = open(&root, ".git").expect("there");
        // As a file system does that keeps no such bit.
        fchmod(&held, Mode::from_raw_mode(MODE & 0o777)).expect("changed");
        let before = statat(&root, ".git", AtFlags::empty()).expect("there");
        assert!(matches!(placeholders.put(&root, ".git"), Ok(There::Another)), "{before:?}");
        futimens(&held, &Timestamps { last_access: MARKED, last_modification: MARKED }).expect("set");
        assert!(matches!(placeholders.put(&root, ".git"), Ok(There::Placeholder(_))));
        placeholders.clear();
        assert_eq!(names(&directory), [".git"], "another sandbox uses it");
        killed.clear();
        assert_eq!(names(&directory), [""; 0]);
    }
}
