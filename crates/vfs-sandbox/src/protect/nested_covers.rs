//! Mounts over protected entries deep in a tree, which the helper creates through descriptors.
//!
//! Bubblewrap resolves paths, and creates missing ones. That is safe if running commands cannot change the directories
//! on the way, because they have the same covers. Below a directory that commands can change, they could make
//! bubblewrap create a file outside. The helper opens each entry, compares it with the one that was found, and covers
//! that file, even after a rename.
#![expect(unsafe_code, reason = "no crate makes these calls")]

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use rustix::fs::{Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::process::{chdir, getcwd};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, unshare_unsafe};

/// The file from which the helper reads the list of covers.
pub(crate) const LIST: &str = "/run/vfs-covers";

/// Empty file and directory that nobody may open, mounted over hidden files and directories.
pub(crate) const HIDDEN_FILE: &str = "/run/vfs-hidden-file";
pub(crate) const HIDDEN_DIRECTORY: &str = "/run/vfs-hidden-directory";

/// How an entry is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NestedCoverMethod {
    /// By a read-only mount of the entry itself.
    ReadOnly,
    HiddenFile,
    HiddenDirectory,
    /// As a hidden file, or not at all if the socket has vanished: the filter denies all sockets.
    DeniedSocket,
}

impl NestedCoverMethod {
    const WORDS: [(Self, u8); 4] =
        [(Self::ReadOnly, b'r'), (Self::HiddenFile, b'f'), (Self::HiddenDirectory, b'd'), (Self::DeniedSocket, b's')];
}

/// An entry to cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NestedEntry {
    /// Path of the entry in the sandbox.
    pub(crate) path: OsString,
    pub(crate) cover: NestedCoverMethod,
    /// Device and inode of the entry, if it is to be verified.
    pub(crate) file: Option<(u64, u64)>,
}

/// Encodes the list as the helper reads it.
pub(crate) fn encode(entries: &[NestedEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let word =
            NestedCoverMethod::WORDS.iter().find(|(cover, _)| *cover == entry.cover).map_or(b'f', |(_, word)| *word);
        let (device, inode) = entry.file.unwrap_or_default();
        bytes.push(word);
        bytes.extend_from_slice(format!(" {device} {inode} ").as_bytes());
        bytes.extend_from_slice(entry.path.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<NestedEntry>> {
    let records = bytes.split_inclusive(|byte| *byte == 0);
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let entry = |record: &[u8]| {
        let mut fields = record.strip_suffix(&[0])?.splitn(4, |byte| *byte == b' ');
        let word = fields.next()?;
        let (cover, _) = NestedCoverMethod::WORDS.into_iter().find(|(_, other)| word == [*other])?;
        let file = (number(fields.next()?)?, number(fields.next()?)?);
        let path = OsString::from_vec(fields.next()?.to_vec());
        Some(NestedEntry { path, cover, file: Some(file).filter(|(_, inode)| *inode != 0) })
    };
    records.map(entry).collect()
}

/// Mounts the listed covers in a new mount namespace, and drops the capability that mounting needs.
///
/// The first process of the sandbox stays in the old mount namespace, which Landlock denies to commands.
pub(crate) fn mount_covers() -> Result<(), String> {
    let bytes = read_file(LIST).map_err(|error| format!("the list of covers cannot be read: {error}"))?;
    let entries = decode(&bytes).ok_or("the list of covers is damaged")?;
    // SAFETY: this process has one thread, and shares no table of descriptors with another one.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(|errno| format!("no mount namespace can be created: {errno}"))?;
    let hidden = |path: &str| open(path, TARGET, Mode::empty()).map_err(|errno| format!("{path} is missing: {errno}"));
    let (hidden_file, hidden_directory) = (hidden(HIDDEN_FILE)?, hidden(HIDDEN_DIRECTORY)?);
    let mut closed: Vec<Vec<u8>> = Vec::new();
    for entry in &entries {
        if closed.iter().any(|above| entry.path.as_bytes().starts_with(above)) {
            continue;
        }
        let not_covered = |errno: Errno| format!("{} cannot be covered: {errno}", display(&entry.path));
        let target = match find(entry)? {
            LocatedCoverTarget::Entry(target) => target,
            LocatedCoverTarget::ClosedDirectory(directory, path) => {
                mount_over(&hidden_directory, &directory).map_err(not_covered)?;
                closed.push(path);
                continue;
            }
            LocatedCoverTarget::Vanished => continue,
        };
        let cover = match entry.cover {
            NestedCoverMethod::ReadOnly => &target,
            NestedCoverMethod::HiddenFile | NestedCoverMethod::DeniedSocket => &hidden_file,
            NestedCoverMethod::HiddenDirectory => &hidden_directory,
        };
        mount_over(cover, &target).map_err(not_covered)?;
    }
    // Enter the working directory again: it is still the one below the covers.
    let directory = getcwd(Vec::new()).map_err(|errno| format!("the working directory is unknown: {errno}"))?;
    chdir(&directory).map_err(|errno| format!("{} cannot be entered: {errno}", directory.to_string_lossy()))?;
    let nothing = CapabilitySet::empty();
    let nothing = CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing };
    set_capabilities(None, nothing).map_err(|errno| format!("a capability cannot be given up: {errno}"))
}

/// Reads a file that bubblewrap created for the helper.
pub(crate) fn read_file(path: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    std::fs::File::from(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Flags for opening the target of a cover: no access, no links.
const TARGET: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Target of a cover.
#[derive(Debug)]
enum LocatedCoverTarget {
    Entry(OwnedFd),
    /// A directory above the entry that this process may not search, with its path and a final `/`. The owner could
    /// permit the search, so the whole directory is hidden.
    ClosedDirectory(OwnedFd, Vec<u8>),
    /// None: the entry has vanished, which is allowed.
    Vanished,
}

/// Finds an entry and verifies that it is the file that the scan found.
fn find(entry: &NestedEntry) -> Result<LocatedCoverTarget, String> {
    let replaced = || match entry.cover {
        NestedCoverMethod::DeniedSocket => Ok(LocatedCoverTarget::Vanished),
        _ => {
            let path = display(&entry.path);
            Err(format!("{path} was replaced while the command was started, which is not run; try again"))
        }
    };
    let root = open("/", TARGET, Mode::empty()).map_err(|errno| format!("the root cannot be opened: {errno}"))?;
    let names = entry.path.as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let (mut file, mut path) = (root, vec![b'/']);
    for name in names {
        file = match openat(&file, OsStr::from_bytes(name), TARGET, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::ACCESS) => return Ok(LocatedCoverTarget::ClosedDirectory(file, path)),
            Err(_) => return replaced(),
        };
        path.extend_from_slice(name);
        path.push(b'/');
    }
    let is_same =
        entry.file.is_none_or(|expected| fstat(&file).is_ok_and(|status| expected == (status.st_dev, status.st_ino)));
    if is_same { Ok(LocatedCoverTarget::Entry(file)) } else { replaced() }
}

/// Mounts `cover` read-only on `target`.
fn mount_over(cover: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(cover, c"", flags)?;
    let read_only = libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a string that ends with NUL, and the length is that of the attributes; both outlive the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(&read_only),
            size_of::<libc::mount_attr>(),
        )
    };
    if set != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM));
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&tree, c"", target, c"", flags)
}

fn display(path: &OsStr) -> std::path::Display<'_> {
    std::path::Path::new(path).display()
}

#[cfg(test)]
mod tests {
    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn a_list_is_read_back_as_it_was_written() {
        let entry = |path: &[u8], cover, file| NestedEntry { path: OsString::from_vec(path.to_vec()), cover, file };
        let entries = [
            entry(b"/w/a b\n/.git", NestedCoverMethod::ReadOnly, Some((2049, 17))),
            entry(b"/w/\xff/.env", NestedCoverMethod::HiddenFile, Some((1, u64::MAX))),
            entry(b"/etc/decoy", NestedCoverMethod::HiddenDirectory, None),
            entry(b"/w/socket", NestedCoverMethod::DeniedSocket, Some((1, 2))),
        ];
        assert_eq!(decode(&encode(&entries)).expect("it is whole"), entries);
        assert_eq!(decode(b"").expect("nothing to cover"), []);
        for damaged in [&b"r 1 2 /w"[..], b"x 1 2 /w\0", b"r 1 /w\0", b"r 1 two /w\0"] {
            assert_eq!(decode(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn a_replaced_entry_is_not_covered() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a/.env");
        rustix::fs::symlinkat("/etc", CWD, directory.path().join("link")).expect("a link");
        rustix::fs::mkdirat(CWD, directory.path().join("a"), Mode::from_raw_mode(0o755)).expect("made");
        rustix::fs::mkdirat(CWD, &path, Mode::from_raw_mode(0o755)).expect("made");
        let status = rustix::fs::stat(&path).expect("there");
        let file = Some((status.st_dev, status.st_ino));
        let entry = |path: std::path::PathBuf, file| NestedEntry {
            path: path.into_os_string(),
            cover: NestedCoverMethod::HiddenDirectory,
            file,
        };
        assert!(matches!(find(&entry(path.clone(), file)), Ok(LocatedCoverTarget::Entry(_))));
        find(&entry(path, Some((status.st_dev, status.st_ino + 1)))).expect_err("another file");
        find(&entry(directory.path().join("link/passwd"), None)).expect_err("below a link");
        find(&entry(directory.path().join("missing"), None)).expect_err("nothing is there");
        let socket = |path, file| NestedEntry { cover: NestedCoverMethod::DeniedSocket, ..entry(path, file) };
        let [missing, replaced] = ["missing", "a"].map(|name| socket(directory.path().join(name), Some((0, 0))));
        assert!(matches!(find(&missing), Ok(LocatedCoverTarget::Vanished)));
        assert!(matches!(find(&replaced), Ok(LocatedCoverTarget::Vanished)));
    }
}
