//! Report of entries that commands left, and that could make a program of the host run code.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Problem};

use crate::protect::open_mount::{OpenMount, PathCover};
use crate::protect::tree_scan::{ScanMatch, ScanMatchReason};

/// Identity of an entry: the number of its mount, its path below it, and its device and inode, so that a replacement
/// counts as another entry.
type LeftoverKey = (usize, Vec<u8>, u64, u64);

/// Maximum number of entries that one response names.
const MAX_PROBLEMS: usize = 100;

/// Reporter of entries that commands left. It omits those that existed before the first command, and those already
/// reported.
#[derive(Debug, Default)]
pub(crate) struct UncoveredEntryReporter(Mutex<Option<HashSet<LeftoverKey>>>);

impl UncoveredEntryReporter {
    /// Notes the entries that exist before a command starts. The first call records them as not created by commands; a
    /// later call forgets entries that no longer exist, so that they are reported if a command creates them again.
    pub(crate) fn note_existing(&self, entries: &[(usize, ScanMatch)]) {
        let reported = entries.iter().filter(|(_, entry)| is_reported(entry));
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *noted {
            Some(noted) => {
                let existing: HashSet<LeftoverKey> = reported.map(key).collect();
                noted.retain(|key| existing.contains(key));
            }
            // Links are not covered, so each is reported once, even if it existed before.
            None => *noted = Some(reported.filter(|(_, entry)| entry.kind != ScanMatchReason::Link).map(key).collect()),
        }
    }

    /// Returns a problem for each of `entries` that has not been reported yet. If there are more than one response
    /// names, the rest is counted, and later responses name it.
    pub(crate) fn new_problems(&self, mounts: &[OpenMount], entries: &[(usize, ScanMatch)]) -> Vec<Problem> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = noted.get_or_insert_default();
        let covered = covered_files(mounts, entries);
        let mut problems = Vec::new();
        let mut unnamed = 0_usize;
        for numbered @ (number, entry) in entries.iter().filter(|(_, entry)| is_reported(entry)) {
            let Some(mount) = mounts.get(*number) else { continue };
            let key = key(numbered);
            if noted.contains(&key) || (entry.kind == ScanMatchReason::Link && leads_to_covered(mount, entry, &covered))
            {
                continue;
            }
            if problems.len() == MAX_PROBLEMS {
                unnamed += 1;
                continue;
            }
            noted.insert(key);
            let error = Error::new(ErrorKind::PolicyDenied, message(entry.kind));
            problems.push(error.with_path(&mount.visible_path(&entry.path)).into());
        }
        if let Some(mount) = mounts.first().filter(|_| unnamed > 0) {
            let message = format!(
                "and {unnamed} more new entries have a protected name, cannot be searched or have the shape of a git \
                 repository; later responses name them"
            );
            problems.push(Error::new(ErrorKind::PolicyDenied, message).with_path(&mount.at).into());
        }
        problems
    }
}

fn key((mount, entry): &(usize, ScanMatch)) -> LeftoverKey {
    (*mount, entry.path.clone(), entry.status.st_dev, entry.status.st_ino)
}

fn is_reported(entry: &ScanMatch) -> bool {
    entry.kind != ScanMatchReason::Socket
}

fn message(kind: ScanMatchReason) -> &'static str {
    match kind {
        ScanMatchReason::Repository => {
            "this directory is new and has the shape of a git repository, whose configuration can name programs to run; \
             inspect it before git runs in it, and set safe.bareRepository=explicit"
        }
        ScanMatchReason::RootRepository => {
            "this directory has become a git repository in shape, whose configuration can name programs to run, and commands \
             can change it; remove HEAD before git runs in it, and set safe.bareRepository=explicit"
        }
        ScanMatchReason::Link => {
            "this link has a protected name, and its target is not protected; protect the path that it leads to, or \
             replace the link"
        }
        ScanMatchReason::Unlistable => {
            "this directory is new and cannot be searched for entries that commands left in it; make it readable and \
             inspect it, or remove it"
        }
        ScanMatchReason::Name(_) | ScanMatchReason::Socket => {
            "this entry is new and has a protected name; inspect it before a program outside of the sandbox uses it, or \
             remove it"
        }
    }
}

/// A file, by its device and inode.
type FileId = (u64, u64);

fn file_id(status: &Stat) -> FileId {
    (status.st_dev, status.st_ino)
}

/// Returns the files that are covered in commands, if there is a link to compare with them. Files of a mount that
/// cannot be read are missing, so more links are reported.
fn covered_files(mounts: &[OpenMount], entries: &[(usize, ScanMatch)]) -> HashSet<FileId> {
    if !entries.iter().any(|(_, entry)| entry.kind == ScanMatchReason::Link) {
        return HashSet::new();
    }
    let found = entries.iter().filter(|(_, entry)| entry.is_covered()).map(|(_, entry)| file_id(&entry.status));
    let covered = mounts.iter().filter_map(|mount| mount.path_covers(None).ok()).flatten();
    let covered =
        covered.filter(|(_, what, _)| *what != PathCover::InPlace).filter_map(|(_, _, file)| fstat(file).ok());
    found.chain(covered.map(|status| file_id(&status))).collect()
}

/// Returns whether the target of a link is covered or missing. A command chose the target, so no path outside of the mount is
/// resolved: the report would reveal whether the host has that file.
fn leads_to_covered(mount: &OpenMount, link: &ScanMatch, covered: &HashSet<FileId>) -> bool {
    let relative = link.path.strip_prefix(b"/").unwrap_or(&link.path);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&mount.root, relative, flags, Mode::empty(), resolve) {
        Ok(target) => fstat(&target).is_ok_and(|status| covered.contains(&file_id(&status))),
        Err(errno) => errno == Errno::NOENT,
    }
}
