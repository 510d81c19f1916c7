//! Commit plan: steps in order, and conflicts with the base.

use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;
use vfs_core::links::is_link;
use vfs_core::{Backend, ChangeKind, ErrorKind, FileChange, OpContext, ResolveRequest, Result, Version, VfsPath};

use super::commit::CommitConflict;
use super::merged::{Before, Merged, Whole, at_and_above, fetch_if_there};

/// One file that is to be brought to the base.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) path: VfsPath,
    pub(super) before: Seen,
    pub(super) after: Option<Bytes>,
}

/// When a change is made: what can be taken back as it was comes before what cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// A file that stands in the way of a write goes.
    MakeRoom,
    /// So does a link.
    Unlink,
    /// A file is written.
    Write,
    /// Any other file goes.
    Delete,
    /// So does any other link, or a file takes its place.
    Links,
}

impl Planned {
    /// When this is to be done, beside the files that are `written`.
    fn stage(&self, written: &BTreeSet<VfsPath>) -> Stage {
        match (&self.before, &self.after) {
            (Seen::Nothing | Seen::File(_), Some(_)) => Stage::Write,
            (Seen::Link, None) if stands_in_the_way(&self.path, written) => Stage::Unlink,
            (Seen::Link, _) => Stage::Links,
            (_, None) if stands_in_the_way(&self.path, written) => Stage::MakeRoom,
            (_, None) => Stage::Delete,
        }
    }
}

/// Whether one of the files that are `written` is to be above or below `path`.
fn stands_in_the_way(path: &VfsPath, written: &BTreeSet<VfsPath>) -> bool {
    let below = format!("{path}/");
    let mut from = written.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    from.next().is_some_and(|next| next.starts_with(path)) || at_and_above(path).any(|at| written.contains(at))
}

/// What the base has at a path, as a commit finds it.
#[derive(Debug)]
pub(super) enum Seen {
    Nothing,
    File(Whole),
    Link,
}

impl Seen {
    pub(super) fn version(&self) -> Option<&Version> {
        match self {
            Seen::File(whole) => Some(&whole.version),
            Seen::Nothing | Seen::Link => None,
        }
    }

    pub(super) fn content(&self) -> Option<&Bytes> {
        match self {
            Seen::File(whole) => Some(&whole.content),
            Seen::Nothing | Seen::Link => None,
        }
    }

    pub(super) fn as_before(&self) -> Before {
        match self {
            Seen::Nothing => Before::Nothing,
            Seen::File(whole) => Before::File(whole.version.clone()),
            Seen::Link => Before::Link,
        }
    }
}

/// What is to be done, and what stands against it.
pub(super) async fn plan(cx: &OpContext, state: &Merged) -> Result<(Vec<Planned>, Vec<CommitConflict>)> {
    let (mut planned, mut conflicts) = (Vec::new(), Vec::new());
    for (path, expected) in &state.touched {
        cx.check()?;
        let Some(before) = seen_below(cx, state, path).await? else {
            conflicts.push(CommitConflict { path: path.clone(), expected: expected.version().cloned(), actual: None });
            continue;
        };
        let after = fetch_if_there(&state.upper, cx, path).await?.map(|whole| whole.content);
        let is_link = matches!(before, Seen::Link);
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
pub(super) async fn seen_below(cx: &OpContext, state: &Merged, path: &VfsPath) -> Result<Option<Seen>> {
    if state.is_behind_removed_link(cx, path).await? {
        return Ok(Some(Seen::Nothing));
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

/// What `base` has at `path`.
pub(super) async fn seen(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Seen> {
    if is_link(base, cx, path).await? {
        return Ok(Seen::Link);
    }
    Ok(fetch_if_there(base, cx, path).await?.map_or(Seen::Nothing, Seen::File))
}

/// How the file at `path` changes from `before` in the base to `after` here; `None` if it does not. A link has no content: one
/// that is removed has no diff, and where it becomes a file, all lines are new.
pub(super) fn file_change(path: &VfsPath, before: &Seen, after: Option<(&[u8], Version)>) -> Option<FileChange> {
    match before {
        Seen::Nothing => FileChange::between(path, None, after),
        Seen::File(whole) => FileChange::between(path, Some((&whole.content[..], whole.version.clone())), after),
        Seen::Link => {
            let kind = if after.is_some() { ChangeKind::Changed } else { ChangeKind::Removed };
            let change = FileChange::new(path.clone(), kind);
            let Some(added) = FileChange::between(path, None, after) else { return Some(change) };
            Some(change.versions(None, added.after).diff(added.diff))
        }
    }
}
