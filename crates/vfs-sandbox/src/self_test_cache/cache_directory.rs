//! Directory of the self-test cache: its possible locations, and the checks that it is safe to use.
//!
//! The locations depend only on the user, so that each process of the user hides the directory that any other one uses.
//! A variable such as `XDG_RUNTIME_DIR` is not read: a process without the variable would show commands the directory
//! that a process with the variable trusts.
#![expect(clippy::disallowed_methods, reason = "the directory is the host's")]

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, mkdirat, open as open_path, openat};
use rustix::io::Errno;
use rustix::process::geteuid;
use vfs_core::VfsPath;

use super::mount_table::MountTable;

/// Returns the possible locations of the directory for this user, each as the real path of its parent and its name. The
/// first usable location is used.
fn locations() -> Vec<(PathBuf, String)> {
    let user = geteuid().as_raw();
    let locations = match user {
        0 => vec![("/run".to_owned(), "vfs-sandbox".to_owned())],
        _ => vec![
            (format!("/run/user/{user}"), "vfs-sandbox".to_owned()),
            ("/tmp".to_owned(), format!("vfs-sandbox-{user}")),
        ],
    };
    let real = |(parent, name): (String, String)| (std::fs::canonicalize(&parent).unwrap_or(parent.into()), name);
    locations.into_iter().map(real).collect()
}

/// Opens the directory, after creating it if it is missing; `None` if no location is safe.
pub(super) fn open() -> Option<OwnedFd> {
    locations().iter().find_map(|(parent, name)| open_in(parent, name))
}

/// Opens `name` in `parent`, if only root and this user can change its entries or replace it.
pub(super) fn open_in(parent: &Path, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = open_path(parent, flags, Mode::empty()).ok()?;
    protects_entries(&fstat(&parent).ok()?).then_some(())?;
    match mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(_) => return None,
    }
    let directory = openat(&parent, name, flags, Mode::empty()).ok()?;
    is_private(&fstat(&directory).ok()?).then_some(directory)
}

/// Returns whether only root and this user can rename the entries of this user in a directory.
fn protects_entries(directory: &Stat) -> bool {
    let is_ours = [0, geteuid().as_raw()].contains(&directory.st_uid);
    is_ours && (directory.st_mode & 0o022 == 0 || directory.st_mode & libc::S_ISVTX != 0)
}

fn is_private(directory: &Stat) -> bool {
    directory.st_uid == geteuid().as_raw() && directory.st_mode & 0o7777 == 0o700
}

/// Visibility of the directory of the self-test cache below another directory of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SelfTestCacheExposure {
    /// The directory of the self-test cache is, or would be, at these paths below the other directory; usually there are none.
    Below(Vec<VfsPath>),
    /// The other directory is in the directory of the self-test cache, or shows it at a path that cannot be expressed.
    Whole,
}

/// Returns how the directory of the self-test cache is visible below `directory`, also through other mounts of the same file system.
pub(crate) fn exposed_below(directory: &Path) -> SelfTestCacheExposure {
    let locations = locations().into_iter().map(|(parent, name)| parent.join(name));
    exposed_through(&MountTable::read(), locations, directory)
}

fn exposed_through(
    mounts: &MountTable,
    locations: impl Iterator<Item = PathBuf>,
    directory: &Path,
) -> SelfTestCacheExposure {
    let mut below = Vec::new();
    for path in locations.flat_map(|place| mounts.paths_of(&place)) {
        if directory.starts_with(&path) {
            return SelfTestCacheExposure::Whole;
        }
        let Ok(relative) = path.strip_prefix(directory) else { continue };
        match relative.to_str().and_then(|relative| VfsPath::root().join(relative).ok()) {
            Some(path) => below.push(path),
            None => return SelfTestCacheExposure::Whole,
        }
    }
    SelfTestCacheExposure::Below(below)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_a_private_directory_is_used() {
        let parent = tempfile::tempdir().expect("a directory");
        let parent = parent.path();
        assert!(open_in(parent, "made").is_some());
        assert_eq!(fs::metadata(parent.join("made")).expect("there").permissions().mode() & 0o7777, 0o700);
        for mode in [0o770, 0o701, 0o1700, 0o500] {
            fs::set_permissions(parent.join("made"), fs::Permissions::from_mode(mode)).expect("set");
            assert!(open_in(parent, "made").is_none(), "{mode:o}");
        }
        symlink("made", parent.join("link")).expect("linked");
        fs::set_permissions(parent.join("made"), fs::Permissions::from_mode(0o700)).expect("set");
        assert!(open_in(parent, "link").is_none(), "a link is not followed");
        fs::write(parent.join("file"), "").expect("written");
        assert!(open_in(parent, "file").is_none());
        for (mode, is_safe) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true)] {
            fs::set_permissions(parent, fs::Permissions::from_mode(mode)).expect("set");
            assert_eq!(open_in(parent, "made").is_some(), is_safe, "in a directory of mode {mode:o}");
        }
    }

    #[test]
    fn every_path_of_the_directory_is_found() {
        let table = MountTable::parse(
            b"1 0 8:1 / / rw - ext4 /dev/sda rw\n\
              2 1 0:5 / /run rw - tmpfs tmpfs rw\n\
              3 1 0:5 /user /mnt/run\\040user rw - tmpfs tmpfs rw\n\
              4 1 8:1 /srv /mnt/srv rw - ext4 /dev/sda rw\n",
        );
        let exposed = |directory: &str| {
            let place = PathBuf::from("/run/user/7/vfs-sandbox");
            exposed_through(&table, [place].into_iter(), Path::new(directory))
        };
        let below = |paths: &[&str]| {
            SelfTestCacheExposure::Below(paths.iter().map(|path| VfsPath::parse(path).expect("a path")).collect())
        };
        assert_eq!(exposed("/"), below(&["/run/user/7/vfs-sandbox", "/mnt/run user/7/vfs-sandbox"]));
        assert_eq!(exposed("/run"), below(&["/user/7/vfs-sandbox"]));
        assert_eq!(exposed("/mnt"), below(&["/run user/7/vfs-sandbox"]));
        assert_eq!(exposed("/mnt/srv"), below(&[]));
        assert_eq!(exposed("/home/me"), below(&[]));
        for inside in ["/run/user/7/vfs-sandbox", "/mnt/run user/7/vfs-sandbox/deep"] {
            assert_eq!(exposed(inside), SelfTestCacheExposure::Whole, "{inside}");
        }
    }
}
