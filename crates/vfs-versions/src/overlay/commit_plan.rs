//! Commit plan: steps in order, and conflicts with the base.

use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::snapshots::{SnapshotDiffEntry, SnapshotDiffKind};
use vfs_core::{OpContext, Result, Version, VfsPath};

use super::base_access::{BaseEntry, base_entry, is_behind_link};
use super::overlay_state::{OverlayState, at_and_above};
use crate::versioned_entry::{VersionedEntry, fetch_if_exists};

/// A file of the base that has changed since its first change in an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommitConflict {
    /// Path of the file.
    pub path: VfsPath,
    /// Version that the base had at the first change; `None` if it had no such file.
    pub expected: Option<Version>,
    /// Version that the base has now.
    pub actual: Option<Version>,
}

/// One planned change of the base.
#[derive(Debug)]
pub(super) struct PlannedChange {
    pub(super) path: VfsPath,
    pub(super) before: BaseEntry,
    pub(super) after: Option<Bytes>,
}

/// Stage of a commit in which a change is made. Changes that can be rolled back exactly come before those that cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CommitStage {
    /// A file in the way of a write is removed.
    MakeRoom,
    /// A link in the way of a write is removed.
    Unlink,
    /// A file is written.
    Write,
    /// Any other file is removed.
    Delete,
    /// Any other link is removed, or replaced by a file.
    Links,
}

impl PlannedChange {
    /// Returns the stage of this change in a commit that writes the files `written`.
    fn stage(&self, written: &BTreeSet<VfsPath>) -> CommitStage {
        match (&self.before, &self.after) {
            (VersionedEntry::Nothing | VersionedEntry::File(_), Some(_)) => CommitStage::Write,
            (VersionedEntry::Link, None) if is_in_the_way(&self.path, written) => CommitStage::Unlink,
            (VersionedEntry::Link, _) => CommitStage::Links,
            (_, None) if is_in_the_way(&self.path, written) => CommitStage::MakeRoom,
            (_, None) => CommitStage::Delete,
        }
    }
}

/// Returns whether one of the files `written` is above or below `path`.
fn is_in_the_way(path: &VfsPath, written: &BTreeSet<VfsPath>) -> bool {
    let below = format!("{path}/");
    let mut from = written.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    from.next().is_some_and(|next| next.starts_with(path)) || at_and_above(path).any(|at| written.contains(at))
}

/// Returns the planned changes in order, and the conflicts.
pub(super) async fn plan(cx: &OpContext, state: &OverlayState) -> Result<(Vec<PlannedChange>, Vec<CommitConflict>)> {
    let (mut planned, mut conflicts) = (Vec::new(), Vec::new());
    for (path, expected) in &state.originals {
        cx.check()?;
        let Some(before) = base_entry_below_links(cx, state, path).await? else {
            conflicts.push(CommitConflict { path: path.clone(), expected: expected.file().cloned(), actual: None });
            continue;
        };
        let after = fetch_if_exists(&state.upper, cx, path).await?.map(|file| file.content);
        let is_link = matches!(before, VersionedEntry::Link);
        if !is_link && before.content() == after.as_ref() {
            continue;
        }
        if before.to_version() != *expected {
            let (expected, actual) = (expected.file().cloned(), before.version().cloned());
            conflicts.push(CommitConflict { path: path.clone(), expected, actual });
            continue;
        }
        planned.push(PlannedChange { path: path.clone(), before, after });
    }
    let writes = planned.iter().filter(|change| change.after.is_some());
    let written: BTreeSet<_> = writes.map(|change| change.path.clone()).collect();
    planned.sort_by_cached_key(|change| change.stage(&written));
    Ok((planned, conflicts))
}

/// Returns the entry that the base of `state` has at `path`.
///
/// If the overlay removed a link above `path`, the result is [`VersionedEntry::Nothing`], since the base has no entry there
/// without that link. If the base has a link above `path` now, the result is `None`: the path is a conflict.
pub(crate) async fn base_entry_below_links(
    cx: &OpContext,
    state: &OverlayState,
    path: &VfsPath,
) -> Result<Option<BaseEntry>> {
    if state.is_behind_removed_link(cx, path).await? {
        return Ok(Some(VersionedEntry::Nothing));
    }
    if is_behind_link(&*state.base, cx, path).await? {
        return Ok(None);
    }
    base_entry(&*state.base, cx, path).await.map(Some)
}

/// Returns the change of the file at `path` from `before` in the base to `after` in the overlay, or `None` if they are equal. A
/// link has no content: its removal has no diff, and if a file replaces it, all lines are new.
pub(crate) fn file_change(
    path: &VfsPath,
    before: &BaseEntry,
    after: Option<(&[u8], Version)>,
) -> Option<SnapshotDiffEntry> {
    match before {
        VersionedEntry::Nothing => SnapshotDiffEntry::between(path, None, after),
        VersionedEntry::File(file) => SnapshotDiffEntry::between(path, Some(file.as_bytes_and_version()), after),
        VersionedEntry::Link => {
            let kind = if after.is_some() { SnapshotDiffKind::Changed } else { SnapshotDiffKind::Removed };
            let change = SnapshotDiffEntry::new(path.clone(), kind);
            let Some(added) = SnapshotDiffEntry::between(path, None, after) else { return Some(change) };
            Some(change.versions(None, added.after).diff(added.diff))
        }
    }
}
