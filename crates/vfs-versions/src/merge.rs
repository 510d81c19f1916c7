//! Three-way merge of a fork into another overlay.

use std::collections::BTreeSet;

use vfs_core::{ErrorKind, OpContext, Result, VfsPath};

use crate::overlay::backend::OverlayBackend;
use crate::overlay::overlay_state::{OverlayFileState, OverlayState};
use crate::versioned_entry::fetch_if_exists;

/// Result of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForkMergeResult {
    /// Files that have the state of the fork now, sorted by path.
    pub merged: Vec<VfsPath>,
    /// Files that both overlays changed differently. They are unchanged in this overlay.
    pub conflicts: Vec<VfsPath>,
}

impl OverlayBackend {
    /// Merges the changes of `fork` since its creation into this overlay.
    ///
    /// # Behaviour
    ///
    /// A file that only the fork changed gets the state of the fork. A file that both changed is a conflict, unless both have the
    /// same content; it keeps the state of this overlay, and the rest is merged. The fork is not changed.
    ///
    /// # Errors
    ///
    /// `quota_exceeded` over the budget, and those of the base; nothing is merged then.
    pub async fn merge(&self, cx: &OpContext, fork: &OverlayBackend) -> Result<ForkMergeResult> {
        let theirs = fork.state();
        let origin = fork.origin().cloned().unwrap_or_else(|| OverlayState::new(self.base(), self.budget()));
        self.mutate(cx, &VfsPath::root(), async |draft| {
            let mut merge = ForkMergeResult::default();
            let paths: BTreeSet<_> = theirs.originals.keys().chain(origin.originals.keys()).cloned().collect();
            for path in paths {
                cx.check()?;
                let (old, new) = (origin.file_state(cx, &path).await?, theirs.file_state(cx, &path).await?);
                if old == new {
                    continue;
                }
                let ours = draft.file_state(cx, &path).await?;
                if ours == new {
                    continue;
                }
                if ours == old && take_theirs(cx, draft, &theirs, &path, &new).await? {
                    merge.merged.push(path);
                } else {
                    merge.conflicts.push(path);
                }
            }
            Ok(merge)
        })
        .await
    }
}

/// Gives the file at `path` of `draft` its state `new` in `theirs`. Returns `false` if an entry of another kind is in the way.
async fn take_theirs(
    cx: &OpContext,
    draft: &mut OverlayState,
    theirs: &OverlayState,
    path: &VfsPath,
    new: &OverlayFileState,
) -> Result<bool> {
    let content = match new {
        // The fork discarded the change, so the file is the one of the base again.
        OverlayFileState::Unchanged => return draft.forget(cx, path).await,
        OverlayFileState::Written(_) => fetch_if_exists(&theirs.upper, cx, path).await?.map(|file| file.content),
        OverlayFileState::Removed => None,
    };
    let is_first = !draft.originals.contains_key(path);
    match draft.set(cx, path, content).await {
        Ok(()) => {
            // Expect the base as it was when the fork changed the file: a commit has to detect changes since then.
            if is_first && let Some(original) = theirs.originals.get(path) {
                draft.originals.insert_mut(path.clone(), original.clone());
            }
            Ok(true)
        }
        Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}
