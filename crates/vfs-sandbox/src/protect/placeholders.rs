//! Placeholder directories for missing protected paths, present only while commands run.
//!
//! Only an existing path can be covered. Without a placeholder, a command could create a missing one: a repository with
//! hooks, which the next user would run, or a link, which bubblewrap would follow at the start of another command.
//! Since every command has every protected path covered, none can move, replace or remove a placeholder, and bubblewrap
//! finds the entry that was checked.
//!
//! A placeholder is a directory even for `.env`, which is usually a file: git does not list empty directories.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, MemfdFlags, Mode, OFlags, Stat, Timespec, Timestamps, fchmod, flock, fstat,
    futimens, memfd_create, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::file_descriptors::is_same;

/// Mode of a placeholder. Nobody creates such a directory by accident, so one left by a killed process is recognised.
const MODE: u32 = 0o1500;

/// Mode given to a placeholder that stays because it is no longer empty.
const ORDINARY_MODE: u32 = 0o755;

/// Modification time of a placeholder on a file system that does not store its mode, as some FUSE and FAT file systems:
/// 2001-02-03 04:05:06 UTC. The seconds are even, since FAT stores times in steps of two seconds.
const MARK: Timespec = Timespec { tv_sec: 981_173_106, tv_nsec: 0 };

/// The placeholders of one sandbox.
///
/// Other sandboxes may use the same placeholders: each sandbox has a lock on those that it uses, and only the last one
/// removes them. Commands see covers in place of placeholders, so they cannot take that lock.
#[derive(Debug)]
pub(crate) struct Placeholders {
    /// A file in memory on which each running command has a lock.
    running: OwnedFd,
    used: Mutex<Vec<Placeholder>>,
}

/// A directory that this sandbox uses, with its lock.
#[derive(Debug)]
struct Placeholder {
    directory: OwnedFd,
    name: String,
    file: OwnedFd,
    /// The mode at the time it was opened.
    mode: u32,
    role: PlaceholderRole,
}

/// Purpose of a directory in the list of placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceholderRole {
    /// The directory stands for a missing protected path.
    Placeholder,
    /// The directory is the parent of a placeholder, and was missing.
    Parent,
    /// The directory may be a placeholder that another sandbox has not marked yet, and is locked so that it is not
    /// removed.
    Locked,
}

/// Result of a request for a placeholder at a path.
#[derive(Debug)]
pub(crate) enum PlaceholderResult {
    Placeholder(OwnedFd),
    /// Another entry has the name.
    Existing,
    /// The path is missing and this process may not create it, so commands cannot either.
    NotCreatable,
}

/// Maximum number of attempts at a path that another sandbox creates or removes at the same time.
const MAX_ATTEMPTS: usize = 64;

/// Delay before the next attempt.
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// Number of attempts to take the lock after which a command counts as running.
const MAX_RETRIES: usize = 8;

impl Placeholders {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self { running: memfd_create("sandbox", MemfdFlags::CLOEXEC)?, used: Mutex::default() })
    }

    /// Returns a locked descriptor that has to stay open in a command while it runs.
    pub(crate) fn lock_for_command(&self) -> Result<OwnedFd, Errno> {
        let _used = self.used();
        let path = format!("/proc/self/fd/{}", self.running.as_raw_fd());
        let lock = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        flock(&lock, FlockOperation::LockShared)?;
        Ok(lock)
    }

    /// Returns the state of `name`, after creating a placeholder if it was missing.
    pub(crate) fn create(&self, directory: &OwnedFd, name: &str) -> Result<PlaceholderResult, Errno> {
        let mut used = self.used();
        for _ in 0..MAX_ATTEMPTS {
            let status = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) => status,
                Err(Errno::NOENT) => match mkdirat(directory, name, Mode::from_raw_mode(MODE)) {
                    // Check again: another process may have replaced it.
                    Ok(()) => {
                        mark(directory, name)?;
                        continue;
                    }
                    Err(Errno::EXIST) => continue,
                    Err(errno) => return state_after(errno),
                },
                Err(errno) => return state_after(errno),
            };
            if let Some(existing) = used.iter().find(|placeholder| placeholder.matches(&status)) {
                return existing.state();
            }
            let role = match role_of(&status) {
                Some(role) => role,
                None => return Ok(PlaceholderResult::Existing),
            };
            let file = match open(directory, name) {
                Ok(file) => file,
                // The directory belongs to another user.
                Err(Errno::ACCESS) => return Ok(PlaceholderResult::Existing),
                Err(errno @ (Errno::MFILE | Errno::NFILE)) => return Err(errno),
                Err(_) => continue,
            };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(RETRY_DELAY);
                continue;
            }
            let placeholder = Placeholder {
                directory: rustix::io::fcntl_dupfd_cloexec(directory, 0)?,
                name: name.to_owned(),
                file,
                mode: status.st_mode,
                role,
            };
            // The directory may have been removed before it was locked.
            if placeholder.is_in_place() {
                let there = placeholder.state();
                used.push(placeholder);
                return there;
            }
        }
        Err(Errno::BUSY)
    }

    /// Returns the state of `name`, the parent of a placeholder, after creating a directory if it was missing.
    pub(crate) fn create_parent(&self, directory: &OwnedFd, name: &str) -> Result<PlaceholderResult, Errno> {
        let mut used = self.used();
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Ok(PlaceholderResult::Existing),
            Err(Errno::NOENT) => {}
            Err(errno) => return state_after(errno),
        }
        match mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(PlaceholderResult::Existing),
            Err(errno) => return state_after(errno),
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty())?;
        let directory = rustix::io::fcntl_dupfd_cloexec(directory, 0)?;
        used.push(Placeholder { directory, name: name.to_owned(), file, mode: 0, role: PlaceholderRole::Parent });
        Ok(PlaceholderResult::Existing)
    }

    /// Removes the placeholders that no other sandbox uses, unless a command runs. Blocks for a few milliseconds.
    pub(crate) fn clear(&self) {
        let mut used = self.used();
        if used.is_empty() || !self.is_idle() {
            return;
        }
        // A lock of this sandbox would prevent the removal of its own placeholder.
        used.retain(|placeholder| placeholder.role != PlaceholderRole::Locked);
        // A placeholder below another one was created after it.
        for placeholder in used.drain(..).rev() {
            placeholder.remove();
        }
        // If this fails, the next command waits for the lock.
        let _ = flock(&self.running, FlockOperation::Unlock);
    }

    /// Returns whether no command runs. If so, the lock that this takes delays new commands until it is released.
    fn is_idle(&self) -> bool {
        // A process that was just started inherits the locks of other commands until it closes them.
        (0..MAX_RETRIES).any(|moment| {
            if moment > 0 {
                std::thread::sleep(RETRY_DELAY);
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
        // If a command is still ending, the next sandbox of the directory removes its placeholders.
        self.clear();
    }
}

impl Placeholder {
    /// Returns whether an entry with this status is this placeholder, with an unchanged mode.
    fn matches(&self, status: &Stat) -> bool {
        self.role != PlaceholderRole::Parent
            && self.mode == status.st_mode
            && fstat(&self.file).is_ok_and(|file| is_same(&file, status))
    }

    fn state(&self) -> Result<PlaceholderResult, Errno> {
        if self.role != PlaceholderRole::Placeholder {
            return Ok(PlaceholderResult::Existing);
        }
        rustix::io::fcntl_dupfd_cloexec(&self.file, 0).map(PlaceholderResult::Placeholder)
    }

    fn is_in_place(&self) -> bool {
        let there = statat(&self.directory, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| fstat(&self.file).is_ok_and(|file| is_same(&there, &file)))
    }

    /// Removes the placeholder, unless it was filled or replaced on the host, or another sandbox uses it.
    fn remove(&self) {
        if self.role == PlaceholderRole::Parent {
            if self.is_in_place() {
                // This fails if a command has created something in it, which then stays.
                let _ = unlinkat(&self.directory, self.name.as_str(), AtFlags::REMOVEDIR);
            }
            return;
        }
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() || !self.is_in_place() {
            return;
        }
        let Ok(status) = fstat(&self.file) else { return };
        let is_removed =
            status.st_mode == self.mode && unlinkat(&self.directory, self.name.as_str(), AtFlags::REMOVEDIR).is_ok();
        if !is_removed {
            // The directory is in use. If its mode cannot be changed, it stays read-only, which is harmless.
            let mode = if is_unwritable(&status) { ORDINARY_MODE } else { status.st_mode & 0o777 };
            let _ = fchmod(&self.file, Mode::from_raw_mode(mode));
        }
    }
}

/// Returns the role of an entry with this status, whichever process created it; `None` if it is no placeholder.
fn role_of(status: &Stat) -> Option<PlaceholderRole> {
    let is_sticky = status.st_mode & libc::S_ISVTX != 0;
    if !FileType::from_raw_mode(status.st_mode).is_dir() {
        None
    } else if (is_sticky && is_unwritable(status)) || status.st_mtime == MARK.tv_sec {
        Some(PlaceholderRole::Placeholder)
    } else {
        (status.st_mode & 0o7777 == MODE & 0o777).then_some(PlaceholderRole::Locked)
    }
}

fn is_unwritable(status: &Stat) -> bool {
    status.st_mode & 0o222 == 0
}

/// Returns the state of a path that could not be created. Below a file, no path can exist while the file does.
fn state_after(errno: Errno) -> Result<PlaceholderResult, Errno> {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOTDIR => Ok(PlaceholderResult::NotCreatable),
        errno => Err(errno),
    }
}

/// Marks a new directory by its modification time, unless its mode marks it already. A directory that cannot be opened
/// or marked counts as one of the user: it is covered as well, but not removed.
fn mark(directory: &OwnedFd, name: &str) -> Result<(), Errno> {
    let made = match open(directory, name) {
        Ok(made) => made,
        Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
            let _ = unlinkat(directory, name, AtFlags::REMOVEDIR);
            return Err(errno);
        }
        Err(_) => return Ok(()),
    };
    if role_of(&fstat(&made)?) != Some(PlaceholderRole::Placeholder) {
        let _ = futimens(&made, &Timestamps { last_access: MARK, last_modification: MARK });
    }
    Ok(())
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
    fn placeholders_are_removed_after_the_last_command_of_the_last_sandbox() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let (one, other) = (Placeholders::new().expect("made"), Placeholders::new().expect("made"));
        let command = one.lock_for_command().expect("a lock");
        for placeholders in [&one, &other, &one] {
            for name in [".git", ".env"] {
                assert!(matches!(placeholders.create(&root, name), Ok(PlaceholderResult::Placeholder(_))));
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
    fn changed_placeholders_are_not_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let placeholders = Placeholders::new().expect("made");
        placeholders.create(&root, ".git").expect("put");
        placeholders.create(&root, "keys").expect("put");
        placeholders.create(&root, ".env").expect("put");
        let keys = openat(&root, "keys", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("there");
        rustix::fs::chmodat(&root, "keys", Mode::from_raw_mode(0o1755), AtFlags::empty()).expect("changed");
        mkdirat(&keys, "private", Mode::from_raw_mode(MODE)).expect("made");
        unlinkat(&root, ".env", AtFlags::REMOVEDIR).expect("removed");
        mkdirat(&root, ".env", Mode::from_raw_mode(MODE)).expect("made");
        placeholders.clear();
        assert_eq!(names(&directory), [".env", "keys"]);
        let mode = statat(&root, "keys", AtFlags::empty()).expect("there").st_mode;
        assert_eq!(mode & 0o7777, 0o755, "it is an ordinary directory now");
    }

    #[test]
    fn an_empty_parent_of_a_placeholder_is_removed() {
        for (has_more, left) in [(false, &[][..]), (true, &["keys"])] {
            let directory = tempfile::tempdir().expect("a directory");
            let root = opened(&directory);
            let placeholders = Placeholders::new().expect("made");
            placeholders.create_parent(&root, "keys").expect("made");
            let keys = openat(&root, "keys", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("there");
            placeholders.create(&keys, "private").expect("put");
            if has_more {
                mkdirat(&keys, "other", Mode::from_raw_mode(0o755)).expect("made");
            }
            placeholders.clear();
            assert_eq!(names(&directory), left);
            assert_eq!(statat(&keys, "private", AtFlags::empty()).err(), Some(Errno::NOENT));
        }
    }

    #[test]
    fn placeholders_of_a_killed_process_are_removed_and_directories_of_users_are_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        mkdirat(&root, ".git", Mode::from_raw_mode(MODE)).expect("made");
        mkdirat(&root, "keys", Mode::from_raw_mode(0o755)).expect("made");
        let placeholders = Placeholders::new().expect("made");
        assert!(matches!(placeholders.create(&root, ".git"), Ok(PlaceholderResult::Placeholder(_))));
        assert!(matches!(placeholders.create(&root, "keys"), Ok(PlaceholderResult::Existing)));
        placeholders.clear();
        assert_eq!(names(&directory), ["keys"]);
    }

    #[test]
    fn a_placeholder_without_its_mode_is_recognised_by_its_time() {
        for mode in [MODE & 0o777, 0o755] {
            let directory = tempfile::tempdir().expect("a directory");
            let root = opened(&directory);
            let [one, other] = [(); 2].map(|()| Placeholders::new().expect("made"));
            mkdirat(&root, ".git", Mode::from_raw_mode(mode)).expect("made");
            assert!(matches!(one.create(&root, ".git"), Ok(PlaceholderResult::Existing)));
            one.clear();
            mark(&root, ".git").expect("marked");
            for placeholders in [&one, &other] {
                assert!(matches!(placeholders.create(&root, ".git"), Ok(PlaceholderResult::Placeholder(_))));
            }
            one.clear();
            assert_eq!(names(&directory), [".git"], "another sandbox uses it");
            other.clear();
            assert_eq!(names(&directory), [""; 0]);
        }
    }

    #[test]
    fn a_possible_placeholder_stays_while_another_sandbox_uses_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let [one, other] = [(); 2].map(|()| Placeholders::new().expect("made"));
        mkdirat(&root, ".git", Mode::from_raw_mode(MODE & 0o777)).expect("made");
        assert!(matches!(other.create(&root, ".git"), Ok(PlaceholderResult::Existing)));
        mark(&root, ".git").expect("marked");
        assert!(matches!(one.create(&root, ".git"), Ok(PlaceholderResult::Placeholder(_))));
        one.clear();
        assert_eq!(names(&directory), [".git"]);
        other.clear();
        one.create(&root, ".git").expect("put");
        one.clear();
        assert_eq!(names(&directory), [""; 0]);
    }

    #[test]
    fn a_mode_that_a_user_sets_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = opened(&directory);
        let placeholders = Placeholders::new().expect("made");
        placeholders.create(&root, "keys").expect("put");
        rustix::fs::chmodat(&root, "keys", Mode::from_raw_mode(0o700), AtFlags::empty()).expect("changed");
        assert!(matches!(placeholders.create(&root, "keys"), Ok(PlaceholderResult::Existing)), "it is a user's now");
        placeholders.clear();
        assert_eq!(statat(&root, "keys", AtFlags::empty()).expect("there").st_mode & 0o7777, 0o700);
    }
}
