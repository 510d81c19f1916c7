//! Bringing the changes of an overlay to its base.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, ChangeSet, DeleteRequest, Error, ErrorKind, FileChange, LsRequest, OpContext, Result, Version, VfsPath,
    WriteMode, WriteRequest,
};

use super::OverlayBackend;
use super::kept::{NotedChange, NotedCommit};
use super::merged::{Merged, Whole, fetch_if_there};

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
struct Planned {
    path: VfsPath,
    before: Option<Whole>,
    after: Option<Bytes>,
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
    /// * Directories that were deleted here and have no file left go too.
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
            kept.begin(cx, &state, &noted(&planned)).await?;
        }
        let mut changes = Vec::new();
        let mut applied: Vec<(Planned, Option<Version>)> = Vec::new();
        for change in planned {
            let outcome = match cx.check() {
                Ok(()) => apply(cx, &*state.base, &change).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(version) => {
                    changes.extend(told(&change, version.clone()));
                    applied.push((change, version));
                }
                Err(error) => {
                    let error = take_back(&*state.base, applied, error).await?;
                    if let Some(kept) = &self.inner.kept {
                        kept.save(&OpContext::new(), &state).await?;
                    }
                    return Err(error);
                }
            }
        }
        remove_emptied(&state).await;
        // All is applied, whatever the caller's context says by now.
        self.replace(&OpContext::new(), Merged::new(self.base())).await?;
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
        match &self.inner.kept {
            Some(kept) => kept.finish(cx, &*self.state().base).await,
            None => Ok(false),
        }
    }
}

/// What is to be done, and what stands against it.
async fn plan(cx: &OpContext, state: &Merged) -> Result<(Vec<Planned>, Vec<CommitConflict>)> {
    let (mut planned, mut conflicts) = (Vec::new(), Vec::new());
    for (path, expected) in &state.touched {
        cx.check()?;
        let before = fetch_if_there(&*state.base, cx, path).await?;
        let after = fetch_if_there(&state.upper, cx, path).await?.map(|whole| whole.content);
        if before.as_ref().map(|whole| &whole.content) == after.as_ref() {
            continue;
        }
        let actual = before.as_ref().map(|whole| whole.version.clone());
        if actual != *expected {
            conflicts.push(CommitConflict { path: path.clone(), expected: expected.clone(), actual });
            continue;
        }
        planned.push(Planned { path: path.clone(), before, after });
    }
    // Deletions go first: a file may stand where a directory is to be, and the other way round.
    planned.sort_by_key(|change| change.after.is_some());
    Ok((planned, conflicts))
}

fn noted(planned: &[Planned]) -> NotedCommit {
    let change = |change: &Planned| NotedChange {
        path: change.path.clone(),
        before: change.before.as_ref().map(|whole| whole.version.clone()),
        after: change.after.clone(),
    };
    NotedCommit { changes: planned.iter().map(change).collect() }
}

/// Writes or deletes one file, and says what version it has then.
async fn apply(cx: &OpContext, base: &dyn Backend, change: &Planned) -> Result<Option<Version>> {
    let before = change.before.as_ref().map(|whole| &whole.version);
    set(cx, base, &change.path, before, change.after.clone()).await
}

/// Makes the file at `path`, which has the version `before`, what `after` is.
pub(super) async fn set(
    cx: &OpContext,
    base: &dyn Backend,
    path: &VfsPath,
    before: Option<&Version>,
    after: Option<Bytes>,
) -> Result<Option<Version>> {
    match (after, before) {
        (Some(content), before) => {
            let mode = before.map_or(WriteMode::CreateNew, |version| WriteMode::IfVersion(version.clone()));
            let written = base.write(cx, WriteRequest::new(path.clone(), content).mode(mode)).await?;
            Ok(Some(written.version))
        }
        (None, Some(version)) => {
            base.delete(cx, DeleteRequest::new(path.clone()).expected_version(version.clone())).await?;
            Ok(None)
        }
        (None, None) => Ok(None),
    }
}

/// Makes every file that was changed what it was, and gives `error` back.
async fn take_back(base: &dyn Backend, applied: Vec<(Planned, Option<Version>)>, error: Error) -> Result<Error> {
    // The caller may have given up, which is no reason to leave half of it.
    let cx = OpContext::new();
    let mut left = Vec::new();
    for (change, version) in applied.into_iter().rev() {
        let before = change.before.map(|whole| whole.content);
        if set(&cx, base, &change.path, version.as_ref(), before).await.is_err() {
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

fn told(change: &Planned, version: Option<Version>) -> Option<FileChange> {
    let before = change.before.as_ref().map(|whole| (&whole.content[..], whole.version.clone()));
    FileChange::between(&change.path, before, change.after.as_deref().zip(version))
}

/// Removes directories that were deleted in the overlay and have no file left in the base.
async fn remove_emptied(state: &Merged) {
    let cx = OpContext::new();
    for path in state.gone.iter() {
        let listed = state.base.ls(&cx, LsRequest::new(path.clone()).recursive()).await;
        let is_empty = listed.is_ok_and(|listed| {
            listed.problems.is_empty() && listed.truncated.is_none() && listed.entries.iter().all(|entry| entry.is_dir)
        });
        // All files are as they should be; an empty directory that stays is no reason to take them back.
        if is_empty {
            let _ = state.base.delete(&cx, DeleteRequest::new(path.clone()).recursive()).await;
        }
    }
}

/// Refuses to go on with a file that is neither what it was nor what it should be.
pub(super) fn changed_since(path: &VfsPath, actual: Option<Version>) -> Error {
    let message = "a commit that was cut short would write this file, which was changed since; make it what it was, or \
                   what it should be, and try again";
    let detail = vfs_core::ErrorDetail::Conflict { actual };
    Error::new(ErrorKind::Conflict, message).with_path(path).with_detail(detail)
}
