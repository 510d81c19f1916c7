//! Checks that a recursive delete makes before it removes anything.

use std::os::fd::AsFd;

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use vfs_core::{Error, ErrorKind, OpContext, Result};

use crate::fs::entry::{Entry, require_access};
use crate::fs::errno::error;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::Guard;
use crate::fs::remove_tree::{Level, MAX_HELD, Obstacle};
use crate::fs::root::Root;

/// Finds what would stop the removal of the directory that `entry` names: entries that may not be removed, are marked
/// immutable, have a protected name, or that something is mounted on.
///
/// It looks at as many levels of directories as a removal can hold descriptors for. Where a protected name might be below, what
/// goes deeper is refused. What it cannot know, such as a disk that fails or an entry that changes meanwhile, still stops a
/// removal in the middle.
pub(crate) fn check_removable(root: &Root, entry: &Entry, cx: &OpContext) -> Result<(), Obstacle> {
    let failed = |levels: &[Level], name: Option<&[u8]>, errno| {
        // Opening a directory that something is mounted on is what is busy.
        let failure = if errno == Errno::BUSY { mount_error() } else { error(errno) };
        Obstacle::new(levels, name, nothing_deleted(failure))
    };
    let top = Level::open(root, entry.parent.as_fd(), entry.name.as_bytes());
    let mut levels = vec![top.map_err(|errno| failed(&[], None, errno))?];
    let mut sticky = vec![check_level(root.guard(), &levels, false, cx)?];
    while let Some(level) = levels.last_mut() {
        let Some(child) = level.directories.pop() else {
            levels.pop();
            sticky.pop();
            continue;
        };
        if levels.len() >= MAX_HELD {
            if root.guard().protects_names() {
                let message =
                    "directories are nested too deep here to look for protected names; delete the deeper ones first";
                let failure = nothing_deleted(Error::new(ErrorKind::PolicyDenied, message));
                return Err(Obstacle::new(&levels, Some(&child), failure));
            }
            continue;
        }
        match Level::open(root, levels[levels.len() - 1].fd.as_fd(), &child) {
            Ok(next) => levels.push(next),
            // It has gone, or become something else.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(errno) => return Err(failed(&levels, Some(&child), errno)),
        }
        let is_in_sticky = sticky.last().is_some_and(|sticky| *sticky);
        sticky.push(check_level(root.guard(), &levels, is_in_sticky, cx)?);
    }
    Ok(())
}

/// Checks the deepest of `levels` and its entries that are not directories. Returns whether only the owner of an entry may
/// remove it from there; `is_in_sticky` says that of the directory itself.
fn check_level(guard: &Guard, levels: &[Level], is_in_sticky: bool, cx: &OpContext) -> Result<bool, Obstacle> {
    let Some(level) = levels.last() else { return Ok(false) };
    let itself = |failure: Error| Obstacle::new(levels, None, nothing_deleted(failure));
    cx.check().map_err(|error| Obstacle::new(levels, None, error))?;
    let directory = Metadata::of(level.fd.as_fd()).map_err(|errno| itself(error(errno)))?;
    check_entry(&directory, is_in_sticky).map_err(itself)?;
    if level.others.is_empty() && level.directories.is_empty() {
        return Ok(false);
    }
    match require_access(level.fd.as_fd(), ".", Access::WRITE_OK | Access::EXEC_OK) {
        // Where the kernel or a filter does not let this be asked, the removal shows it.
        Ok(()) | Err(Errno::NOSYS | Errno::PERM) => {}
        Err(errno @ Errno::ACCESS) => {
            let message = "nothing may be removed from this directory: permission denied";
            let failure = Error::new(ErrorKind::PermissionDenied, message).with_source(std::io::Error::from(errno));
            return Err(itself(failure));
        }
        Err(errno) => return Err(itself(error(errno))),
    }
    if let Some(name) = level.directories.iter().chain(&level.others).find(|name| guard.protects_name(name)) {
        let failure =
            Error::new(ErrorKind::PolicyDenied, "this name is protected, so no directory above can be removed");
        return Err(Obstacle::new(levels, Some(name), nothing_deleted(failure)));
    }
    let is_sticky = directory.is_sticky() && directory.owner().0 != geteuid().as_raw() && !acts_for_all_owners();
    for name in &level.others {
        let checked = match Metadata::at(level.fd.as_fd(), &name[..]) {
            Ok(found) => check_entry(&found, is_sticky),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(error(errno)),
        };
        checked.map_err(|failure| Obstacle::new(levels, Some(name), nothing_deleted(failure)))?;
    }
    Ok(is_sticky)
}

/// Refuses an entry that cannot be removed whatever its directory allows.
fn check_entry(found: &Metadata, is_in_sticky: bool) -> Result<()> {
    if found.is_mount_point() {
        return Err(mount_error());
    }
    if found.is_immutable() {
        let message =
            "the entry is marked immutable or append-only and cannot be removed; clear the mark with chattr first";
        return Err(Error::new(ErrorKind::PermissionDenied, message));
    }
    if is_in_sticky && found.owner().0 != geteuid().as_raw() {
        let message = "the entry belongs to another user, and only its owner may remove it from this sticky directory";
        return Err(Error::new(ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

fn mount_error() -> Error {
    Error::new(ErrorKind::PermissionDenied, "something is mounted there; unmount that before the delete")
}

/// `failure`, which came before anything was removed.
fn nothing_deleted(failure: Error) -> Error {
    Error::new(failure.kind(), format!("{}; nothing was deleted", failure.message())).with_source(failure)
}

/// Whether this thread may do with an entry what its owner may. Where that is not known, the removal shows it.
fn acts_for_all_owners() -> bool {
    capabilities(None).map_or(true, |sets| sets.effective.contains(CapabilitySet::FOWNER))
}
