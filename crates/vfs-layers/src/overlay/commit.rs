//! Bringing the changes of an overlay to its base.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, ChangeKind, ChangeSet, DeleteRequest, Error, ErrorKind, FileChange, OpContext, Result, Version, VfsPath,
    WriteMode, WriteRequest, prune,
};

use super::OverlayBackend;
use super::merged::{Before, Merged, Whole, fetch_if_there, is_link};

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Commit {
    /// The base has all changes now, and the overlay none.
    Applied(ChangeSet),
    /// The base was changed at these paths since they were changed here; nothing was applied.
    Conflicts(Vec<CommitConflict>),
}

/// A file that is not what it was when it was first changed in an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommitConflict {
    /// The file.
    pub path: VfsPath,
    /// The version that the base had then; `None` where it had no such file.
    pub expected: Option<Version>,
    /// The version that the base has now.
    pub actual: Option<Version>,
}

/// One file that is to be brought to the base.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) path: VfsPath,
    pub(super) before: Seen,
    pub(super) after: Option<Bytes>,
}

/// What the base has at a path, as a commit finds it.
#[derive(Debug)]
pub(super) enum Seen {
    Nothing,
    File(Whole),
    Link,
}

impl Seen {
    fn version(&self) -> Option<&Version> {
        match self {
            Seen::File(whole) => Some(&whole.version),
            Seen::Nothing | Seen::Link => None,
        }
    }

    fn content(&self) -> Option<&Bytes> {
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

impl OverlayBackend {
    /// Brings all changes to the base.
    ///
    /// # Behaviour
    ///
    /// * Every file is looked at first: where the base has another version than when the file was first changed here, and
    ///   not the content that would be written, it is a [conflict](Commit::Conflicts), and nothing is applied.
    /// * Then each is written or deleted on the version that was seen. What fails is taken back.
    /// * A crash in the middle leaves some files changed. With a [journal](Self::with_journal), and in an overlay that is
    ///   [kept](Self::open), the rest follows when the commit is [finished](Self::finish_commit).
    /// * Directories that were deleted here and have no file left go too. Links that were deleted here are removed last, as
    ///   they cannot be put back.
    /// * Until it is over, the old contents of all changed files are held in memory, to be put back.
    ///
    /// # Errors
    ///
    /// Those of the base; all is as it was then, or the error says what is not.
    pub async fn commit(&self, cx: &OpContext) -> Result<Commit> {
        let this = self.clone();
        vfs_search::to_the_end(cx, |cx| async move { this.commit_whole(&cx).await }).await
    }

    async fn commit_whole(&self, cx: &OpContext) -> Result<Commit> {
        cx.check()?;
        let _turn = self.inner.turn.lock().await;
        let state = self.state();
        let (planned, conflicts) = plan(cx, &state).await?;
        if !conflicts.is_empty() {
            return Ok(Commit::Conflicts(conflicts));
        }
        if let Some(kept) = &self.inner.kept {
            kept.begin(cx, &state, &planned).await?;
        }
        let mut applied = Vec::new();
        if let Err(error) = apply_all(cx, &state, planned, &mut applied).await {
            let error = take_back(cx, &*state.base, applied, error).await?;
            if let Some(kept) = &self.inner.kept {
                kept.end(&cx.unhurried(), &state).await?;
            }
            return Err(error);
        }
        let mut changes: Vec<_> = applied.iter().filter_map(told).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        // All is applied, whatever the caller's context says by now.
        let unchanged = Merged::new(self.base(), self.inner.budget);
        if let Some(kept) = &self.inner.kept {
            kept.end(&cx.unhurried(), &unchanged).await?;
        }
        self.inner.state.store(Arc::new(unchanged));
        Ok(Commit::Applied(ChangeSet::new(changes)))
    }

    /// Finishes a commit that a crash cut short, as it is noted in the [journal](Self::with_journal), and says whether
    /// there was one.
    ///
    /// # Errors
    ///
    /// `conflict` where a file that was still to be written was changed since, and those of the base and the journal. The
    /// note then stays.
    pub async fn finish_commit(&self, cx: &OpContext) -> Result<bool> {
        let _turn = self.inner.turn.lock().await;
        let Some(kept) = &self.inner.kept else { return Ok(false) };
        let state = self.state();
        let is_finished = kept.finish(cx, &*state.base).await?;
        if is_finished && !state.touched.is_empty() {
            // What was changed here is in the base by now.
            self.inner.state.store(Arc::new(Merged::new(self.base(), self.inner.budget)));
        }
        Ok(is_finished)
    }
}

/// What is to be done, and what stands against it.
async fn plan(cx: &OpContext, state: &Merged) -> Result<(Vec<Planned>, Vec<CommitConflict>)> {
    let (mut planned, mut conflicts) = (Vec::new(), Vec::new());
    for (path, expected) in &state.touched {
        cx.check()?;
        let before = seen(&*state.base, cx, path).await?;
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
    // Deletions go first: a file may stand where a directory is to be. Links go last, as they cannot be taken back.
    planned.sort_by_key(|change| (matches!(change.before, Seen::Link), change.after.is_some()));
    Ok((planned, conflicts))
}

/// What `base` has at `path`.
pub(super) async fn seen(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Seen> {
    if is_link(base, cx, path).await? {
        return Ok(Seen::Link);
    }
    Ok(fetch_if_there(base, cx, path).await?.map_or(Seen::Nothing, Seen::File))
}

/// A change that was made in the base, and the version that the file has then.
type Applied = (Planned, Option<Version>);

/// Makes every change, and notes those that were made in `applied`.
async fn apply_all(cx: &OpContext, state: &Merged, planned: Vec<Planned>, applied: &mut Vec<Applied>) -> Result<()> {
    let mut has_made_room = false;
    for change in planned {
        cx.check()?;
        if !has_made_room && change.after.is_some() {
            remove_emptied(cx, &*state.base, state.gone.iter()).await;
            has_made_room = true;
        }
        match set(cx, &*state.base, &change.path, &change.before.as_before(), change.after.clone()).await {
            Ok(version) => applied.push((change, version)),
            Err(error) => {
                // It may have been done all the same, with only the answer lost.
                if error.is_temporary()
                    && let Ok(there) = seen(&*state.base, &cx.unhurried(), &change.path).await
                    && there.as_before() != change.before.as_before()
                    && there.content() == change.after.as_ref()
                {
                    let version = there.version().cloned();
                    applied.push((change, version));
                }
                return Err(error);
            }
        }
    }
    remove_emptied(cx, &*state.base, state.gone.iter()).await;
    Ok(())
}

/// Makes the file at `path`, where `before` is, what `after` is, and says what version it has then.
pub(super) async fn set(
    cx: &OpContext,
    base: &dyn Backend,
    path: &VfsPath,
    before: &Before,
    after: Option<Bytes>,
) -> Result<Option<Version>> {
    let delete = || DeleteRequest::new(path.clone());
    let mode = match (before, &after) {
        (Before::Nothing, None) => return Ok(None),
        (Before::File(version), None) => {
            return base.delete(cx, delete().expected_version(version.clone())).await.map(|_| None);
        }
        (Before::Link, _) => {
            // What was a link may be a file by now, which nobody asked to be removed.
            if !is_link(base, cx, path).await? {
                return Err(Error::at(ErrorKind::Conflict, path));
            }
            base.delete(cx, delete()).await?;
            WriteMode::CreateNew
        }
        (Before::Nothing, Some(_)) => WriteMode::CreateNew,
        (Before::File(version), Some(_)) => WriteMode::IfVersion(version.clone()),
    };
    let Some(content) = after else { return Ok(None) };
    let written = base.write(cx, WriteRequest::new(path.clone(), content).mode(mode)).await?;
    Ok(Some(written.version))
}

/// Makes every file that was changed what it was, and gives `error` back.
async fn take_back(cx: &OpContext, base: &dyn Backend, applied: Vec<Applied>, error: Error) -> Result<Error> {
    // The caller may have given up, which is no reason to leave half of it.
    let cx = cx.unhurried();
    let mut left = Vec::new();
    for (change, version) in applied.into_iter().rev() {
        let now = version.map_or(Before::Nothing, Before::File);
        let is_link = matches!(change.before, Seen::Link);
        let before = change.before.content().cloned();
        if is_link || set(&cx, base, &change.path, &now, before).await.is_err() {
            left.push(change.path.to_string());
        }
    }
    if left.is_empty() {
        return Ok(error);
    }
    let message = format!("{}; these files could not be made what they were: {}", error.message(), left.join(", "));
    let path = error.path().unwrap_or("/").to_owned();
    Err(Error::new(error.kind(), message).with_path_text(&path).with_source(error))
}

fn told((change, version): &Applied) -> Option<FileChange> {
    let before = match &change.before {
        Seen::File(whole) => Some((&whole.content[..], whole.version.clone())),
        Seen::Link => return Some(FileChange::new(change.path.clone(), link_became(change))),
        Seen::Nothing => None,
    };
    FileChange::between(&change.path, before, change.after.as_deref().zip(version.clone()))
}

fn link_became(change: &Planned) -> ChangeKind {
    if change.after.is_some() { ChangeKind::Changed } else { ChangeKind::Removed }
}

/// Removes those of `gone` that are directories in the base and have no file left.
pub(super) async fn remove_emptied(cx: &OpContext, base: &dyn Backend, gone: impl Iterator<Item = &VfsPath>) {
    for path in gone {
        // A directory that stays is no reason to take files back, and a link is a step of its own.
        let _ = prune(base, cx, path).await;
    }
}

/// Refuses to go on with a file that is neither what it was nor what it should be.
pub(super) fn changed_since(path: &VfsPath, actual: Option<Version>) -> Error {
    let message = "a commit that was cut short would write this file, which was changed since; make it what it was, or \
                   what it should be, and try again";
    let detail = vfs_core::ErrorDetail::Conflict { actual };
    Error::new(ErrorKind::Conflict, message).with_path(path).with_detail(detail)
}
