//! Checks before a recursive delete, so that it does not stop in the middle.

use std::os::fd::AsFd;

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use vfs_core::{Error, ErrorKind, OpContext, Result};

use crate::fs::entry_location::{EntryLocation, check_access};
use crate::fs::errno::from_errno;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::ProtectedPaths;
use crate::fs::remove_tree::{MAX_OPEN_LEVELS, RemovalDirLevel, RemovalError};
use crate::fs::root::Root;

/// Fails if anything would stop the removal of the directory `entry`: entries that may not be removed, are marked
/// immutable, have a protected name, or are mount points.
///
/// The check covers as many levels of directories as a removal has open descriptors for. If a protected name might be
/// below, deeper directories are refused. Failures that cannot be foreseen, such as a broken disk or a concurrent
/// change, still stop a removal in the middle.
pub(crate) fn check_removable(root: &Root, entry: &EntryLocation, cx: &OpContext) -> Result<(), RemovalError> {
    let failed = |levels: &[RemovalDirLevel], name: Option<&[u8]>, errno| {
        // Opening a directory fails with `EBUSY` if something is mounted on it.
        let failure = if errno == Errno::BUSY { mount_point_error() } else { from_errno(errno) };
        RemovalError::new(levels, name, append_nothing_deleted(failure))
    };
    let top = RemovalDirLevel::open(root, entry.parent.as_fd(), entry.name.as_bytes());
    let mut levels = vec![top.map_err(|errno| failed(&[], None, errno))?];
    let mut sticky = vec![check_level(root.protected_paths(), &levels, false, cx)?];
    while let Some(level) = levels.last_mut() {
        let Some(child) = level.directories.pop() else {
            levels.pop();
            sticky.pop();
            continue;
        };
        if levels.len() >= MAX_OPEN_LEVELS {
            if root.protected_paths().has_protected_names() {
                let message =
                    "directories are nested too deep to check for protected names; delete the deeper ones first";
                let failure = append_nothing_deleted(Error::new(ErrorKind::PolicyDenied, message));
                return Err(RemovalError::new(&levels, Some(&child), failure));
            }
            continue;
        }
        match RemovalDirLevel::open(root, levels[levels.len() - 1].fd.as_fd(), &child) {
            Ok(next) => levels.push(next),
            // The entry was removed, or replaced by something else.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(errno) => return Err(failed(&levels, Some(&child), errno)),
        }
        let is_in_sticky = sticky.last().is_some_and(|sticky| *sticky);
        sticky.push(check_level(root.protected_paths(), &levels, is_in_sticky, cx)?);
    }
    Ok(())
}

/// Checks the deepest of `levels` and its entries that are not directories. Returns whether only the owner of an entry
/// may remove it from there; `is_in_sticky` is the same for the directory itself.
fn check_level(
    protected_paths: &ProtectedPaths,
    levels: &[RemovalDirLevel],
    is_in_sticky: bool,
    cx: &OpContext,
) -> Result<bool, RemovalError> {
    let Some(level) = levels.last() else { return Ok(false) };
    let at_level = |failure: Error| RemovalError::new(levels, None, append_nothing_deleted(failure));
    cx.check().map_err(|error| RemovalError::new(levels, None, error))?;
    let directory = Metadata::from_fd(level.fd.as_fd()).map_err(|errno| at_level(from_errno(errno)))?;
    check_entry(&directory, is_in_sticky).map_err(at_level)?;
    if level.non_directories.is_empty() && level.directories.is_empty() {
        return Ok(false);
    }
    match check_access(level.fd.as_fd(), ".", Access::WRITE_OK | Access::EXEC_OK) {
        // If the kernel or a seccomp filter refuses this check, the removal itself shows the outcome.
        Ok(()) | Err(Errno::NOSYS | Errno::PERM) => {}
        Err(errno @ Errno::ACCESS) => {
            let message = "no entry may be removed from this directory: permission denied";
            let failure = Error::new(ErrorKind::PermissionDenied, message).with_source(std::io::Error::from(errno));
            return Err(at_level(failure));
        }
        Err(errno) => return Err(at_level(from_errno(errno))),
    }
    if let Some(name) =
        level.directories.iter().chain(&level.non_directories).find(|name| protected_paths.is_protected_name(name))
    {
        let failure =
            Error::new(ErrorKind::PolicyDenied, "this name is protected, so no directory above it can be removed");
        return Err(RemovalError::new(levels, Some(name), append_nothing_deleted(failure)));
    }
    let is_sticky = directory.is_sticky() && directory.owner().0 != geteuid().as_raw() && !can_override_owner();
    for name in &level.non_directories {
        let checked = match Metadata::at(level.fd.as_fd(), &name[..]) {
            Ok(metadata) => check_entry(&metadata, is_sticky),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(from_errno(errno)),
        };
        checked.map_err(|failure| RemovalError::new(levels, Some(name), append_nothing_deleted(failure)))?;
    }
    Ok(is_sticky)
}

/// Fails if the entry cannot be removed even though its directory permits removals.
fn check_entry(metadata: &Metadata, is_in_sticky: bool) -> Result<()> {
    if metadata.is_mount_point() {
        return Err(mount_point_error());
    }
    if metadata.is_immutable() {
        let message =
            "the entry is marked immutable or append-only and cannot be removed; clear the mark with chattr first";
        return Err(Error::new(ErrorKind::PermissionDenied, message));
    }
    if is_in_sticky && metadata.owner().0 != geteuid().as_raw() {
        let message = "the entry belongs to another user, and only its owner may remove it from this sticky directory";
        return Err(Error::new(ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

fn mount_point_error() -> Error {
    Error::new(ErrorKind::PermissionDenied, "something is mounted there; unmount it before the delete")
}

/// Adds to the message of `failure` that nothing was deleted.
fn append_nothing_deleted(failure: Error) -> Error {
    Error::new(failure.kind(), format!("{}; nothing was deleted", failure.message())).with_source(failure)
}

/// Returns whether this thread has the rights of every owner. If that cannot be determined, the removal shows it.
fn can_override_owner() -> bool {
    capabilities(None).map_or(true, |sets| sets.effective.contains(CapabilitySet::FOWNER))
}
