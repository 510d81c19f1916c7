//! What commands left in the mounts that could make a program of the host run something.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Problem};

use super::config::Protected;
use super::held::{Held, Kept};
use super::programs::is_same;
use super::tree_scan::{EntryKind, ScanEntry};

/// An entry, by the number of its mount and its path below it.
type Key = (usize, Vec<u8>);

/// The entries that were there before the first command, and those that were told.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Mutex<Option<BTreeSet<Key>>>);

impl Leftovers {
    /// Takes `entries` for those that no command made, unless that was done before.
    pub(super) fn begin(&self, entries: &[(usize, ScanEntry)]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| {
            // A link is told once, whoever made it, since it is not covered.
            let lasting = entries.iter().filter(|(_, entry)| is_told(entry) && entry.kind != EntryKind::Link);
            lasting.map(|(mount, entry)| (*mount, entry.path.clone())).collect()
        });
    }

    /// Whether [`begin`](Self::begin) was called.
    pub(super) fn has_begun(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Those of `entries` that are to be told, each one once.
    pub(super) fn new_problems(
        &self,
        mounts: &[Held],
        protected: &[Protected],
        entries: &[(usize, ScanEntry)],
    ) -> Vec<Problem> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let mut problems = Vec::new();
        for (number, entry) in entries.iter().filter(|(_, entry)| is_told(entry)) {
            let Some(mount) = mounts.get(*number) else { continue };
            let is_new = known.insert((*number, entry.path.clone()));
            if is_new && !(entry.kind == EntryKind::Link && leads_to_covered(mount, entry, protected, entries)) {
                let error = Error::new(ErrorKind::PolicyDenied, message(entry.kind));
                problems.push(error.with_path(&mount.spelled(&entry.path)).into());
            }
        }
        problems
    }
}

fn is_told(entry: &ScanEntry) -> bool {
    matches!(entry.kind, EntryKind::Name(_) | EntryKind::Link | EntryKind::Repository)
}

fn message(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Repository => {
            "this directory is new and has the shape of a git repository, whose configuration can name programs to run; \
             look at it before git is run in it, and set safe.bareRepository=explicit"
        }
        EntryKind::Link => {
            "this link has a protected name, and what it leads to is not protected; protect the path that it leads to, \
             or replace the link"
        }
        _ => {
            "this is new and has a protected name; look at it before a program outside of the sandbox uses it, or remove it"
        }
    }
}

/// Whether what a link leads to is covered, or not there.
fn leads_to_covered(mount: &Held, link: &ScanEntry, protected: &[Protected], entries: &[(usize, ScanEntry)]) -> bool {
    let relative = link.path.strip_prefix(b"/").unwrap_or(&link.path);
    let target = match statat(&mount.root, relative, AtFlags::empty()) {
        Ok(target) => target,
        Err(errno) => return errno == Errno::NOENT,
    };
    if entries.iter().any(|(_, entry)| entry.is_covered() && is_same(&entry.status, &target)) {
        return true;
    }
    let Ok(kept) = mount.kept(protected, None) else { return false };
    let covers = |what: Kept| what != Kept::InPlace;
    kept.iter().any(|(_, what, held)| covers(*what) && fstat(held).is_ok_and(|status| is_same(&status, &target)))
}
