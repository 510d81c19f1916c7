//! Commit plan: steps in order, and conflicts with the base.

use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;
use vfs_core::links::is_link;
use vfs_core::{Backend, ChangeKind, ErrorKind, FileChange, OpContext, ResolveRequest, Result, Version, VfsPath};

use super::commit::CommitConflict;
use super::merged::{Before, Merged, WholeFile, at_and_above, fetch_if_there};

/// One planned change of the base.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) path: VfsPath,
    pub(super) before: BaseEntry,
    pub(super) after: Option<Bytes>,
}

/// Stage of a commit in which a change is made. Changes that can be rolled back exactly come before those that cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
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

impl Planned {
    /// Returns the stage of this change in a commit that writes the files `written`.
    fn stage(&self, written: &BTreeSet<VfsPath>) -> Stage {
        match (&self.before, &self.after) {
            (BaseEntry::Nothing | BaseEntry::File(_), Some(_)) => Stage::Write,
            (BaseEntry::Link, None) if stands_in_the_way(&self.path, written) => Stage::Unlink,
            (BaseEntry::Link, _) => Stage::Links,
            (_, None) if stands_in_the_way(&self.path, written) => Stage::MakeRoom,
            (_, None) => Stage::Delete,
        }
    }
}

/// Returns whether one of the files `written` is above or below `path`.
fn stands_in_the_way(path: &VfsPath, written: &BTreeSet<VfsPath>) -> bool {
    let below = format!("{path}/");
    let mut from = written.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    from.next().is_some_and(|next| next.starts_with(path)) || at_and_above(path).any(|at| written.contains(at))
}

/// Entry of the base at a path, as a commit finds it.
#[derive(Debug)]
pub(super) enum BaseEntry {
    Nothing,
    File(WholeFile),
    Link,
}

impl BaseEntry {
    pub(super) fn version(&self) -> Option<&Version> {
        match self {
            BaseEntry::File(whole) => Some(&whole.version),
            BaseEntry::Nothing | BaseEntry::Link => None,
        }
    }

    pub(super) fn content(&self) -> Option<&Bytes> {
        match self {
            BaseEntry::File(whole) => Some(&whole.content),
            BaseEntry::Nothing | BaseEntry::Link => None,
        }
    }

    pub(super) fn as_before(&self) -> Before {
        match self {
            BaseEntry::Nothing => Before::Nothing,
            BaseEntry::File(whole) => Before::File(whole.version.clone()),
            BaseEntry::Link => Before::Link,
        }
    }
}

/// Returns the planned changes in order, and the conflicts.
pub(super) async fn plan(cx: &OpContext, state: &Merged) -> Result<(Vec<Planned>, Vec<CommitConflict>)> {
    let (mut planned, mut conflicts) = (Vec::new(), Vec::new());
    for (path, expected) in &state.touched {
        cx.check()?;
        let Some(before) = seen_below(cx, state, path).await? else {
            conflicts.push(CommitConflict { path: path.clone(), expected: expected.version().cloned(), actual: None });
            continue;
        };
        let after = fetch_if_there(&state.upper, cx, path).await?.map(|whole| whole.content);
        let is_link = matches!(before, BaseEntry::Link);
        if !is_link && before.content() == after.as_ref() {
            continue;
        }
        if before.as_before() != *expected {
            let (expected, actual) = (expected.version().cloned(), before.version().cloned());
            conflicts.push(CommitConflict { path: path.clone(), expected, actual });
            continue;
        }
        planned.push(Planned { path: path.clone(), before, after });
    }
    let writes = planned.iter().filter(|change| change.after.is_some());
    let written: BTreeSet<_> = writes.map(|change| change.path.clone()).collect();
    planned.sort_by_cached_key(|change| change.stage(&written));
    Ok((planned, conflicts))
}

/// Returns what the base of `state` has at `path`: nothing if a link above it was removed in the overlay, and `None` if a link
/// above it leads elsewhere, which is a conflict.
pub(super) async fn seen_below(cx: &OpContext, state: &Merged, path: &VfsPath) -> Result<Option<BaseEntry>> {
    if state.is_behind_removed_link(cx, path).await? {
        return Ok(Some(BaseEntry::Nothing));
    }
    if is_elsewhere(&*state.base, cx, path).await? {
        return Ok(None);
    }
    seen(&*state.base, cx, path).await.map(Some)
}

/// Returns whether a directory above `path` is a link in `base`. There was none when the overlay recorded the change, since
/// changes are recorded by their real paths.
pub(super) async fn is_elsewhere(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<bool> {
    let Some(parent) = path.parent().filter(|_| base.capabilities(path).links) else { return Ok(false) };
    match base.resolve(cx, ResolveRequest::new(parent.clone())).await {
        Ok(real) => Ok(real.path != parent),
        Err(error) if matches!(error.kind(), ErrorKind::PathEscape | ErrorKind::InvalidPath) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns the entry of `base` at `path`.
pub(super) async fn seen(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<BaseEntry> {
    if is_link(base, cx, path).await? {
        return Ok(BaseEntry::Link);
    }
    Ok(fetch_if_there(base, cx, path).await?.map_or(BaseEntry::Nothing, BaseEntry::File))
}

/// Returns the change of the file at `path` from `before` in the base to `after` in the overlay, or `None` if they are equal. A
/// link has no content: its removal has no diff, and if a file replaces it, all lines are new.
pub(super) fn file_change(path: &VfsPath, before: &BaseEntry, after: Option<(&[u8], Version)>) -> Option<FileChange> {
    match before {
        BaseEntry::Nothing => FileChange::between(path, None, after),
        BaseEntry::File(whole) => FileChange::between(path, Some((&whole.content[..], whole.version.clone())), after),
        BaseEntry::Link => {
            let kind = if after.is_some() { ChangeKind::Changed } else { ChangeKind::Removed };
            let change = FileChange::new(path.clone(), kind);
            let Some(added) = FileChange::between(path, None, after) else { return Some(change) };
            Some(change.versions(None, added.after).diff(added.diff))
        }
    }
}
