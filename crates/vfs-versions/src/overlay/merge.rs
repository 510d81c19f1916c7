//! Forks of an overlay, and the three-way merge of a fork into another overlay.

use std::collections::BTreeSet;

use vfs_core::{ErrorKind, OpContext, Result, VfsPath};

use super::OverlayBackend;
use super::merged::{Mark, Merged, fetch_if_there};

/// Outcome of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merge {
    /// Files with the state of the fork now, sorted by path.
    pub merged: Vec<VfsPath>,
    /// Files that both overlays changed differently. They are unchanged here.
    pub conflicts: Vec<VfsPath>,
}

impl OverlayBackend {
    /// Returns another overlay over the same base that starts with the present changes, in constant time. The fork is kept in
    /// memory, and neither overlay sees later changes of the other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.state();
        Self::holding(state.draft(), self.inner.budget, None, Some(state.draft()))
    }

    /// Merges the changes of `fork` since its creation into this overlay.
    ///
    /// # Behaviour
    ///
    /// A file that only the fork changed gets the state of the fork. A file that both changed is a conflict, unless both have the
    /// same content; it stays as it is here, and the rest is merged. The fork is not changed.
    ///
    /// # Errors
    ///
    /// `quota_exceeded` over the budget, and those of the base; nothing is merged then.
    pub async fn merge(&self, cx: &OpContext, fork: &OverlayBackend) -> Result<Merge> {
        let theirs = fork.state();
        let origin = fork.inner.origin.clone().unwrap_or_else(|| Merged::new(self.base(), self.inner.budget));
        self.mutate(cx, &VfsPath::root(), async |draft| {
            let mut merge = Merge::default();
            let paths: BTreeSet<_> = theirs.touched.keys().chain(origin.touched.keys()).cloned().collect();
            for path in paths {
                cx.check()?;
                let (was, is) = (origin.mark(cx, &path).await?, theirs.mark(cx, &path).await?);
                if was == is {
                    continue;
                }
                let here = draft.mark(cx, &path).await?;
                if here == is {
                    continue;
                }
                if here == was && adopt(cx, draft, &theirs, &path, &is).await? {
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

/// Makes the file at `path` of `draft` what it is in `theirs`; `false` where something else stands in its way.
async fn adopt(cx: &OpContext, draft: &mut Merged, theirs: &Merged, path: &VfsPath, mark: &Mark) -> Result<bool> {
    let content = match mark {
        // What was taken back there is the base's again.
        Mark::Untouched => return draft.forget(cx, path).await,
        Mark::Present(_) => fetch_if_there(&theirs.upper, cx, path).await?.map(|whole| whole.content),
        Mark::Absent => None,
    };
    let is_first = !draft.touched.contains_key(path);
    match draft.set(cx, path, content).await {
        Ok(()) => {
            // What the base had counts from when the fork changed it, or a commit would not see what was changed since.
            if is_first && let Some(before) = theirs.touched.get(path) {
                draft.touched.insert_mut(path.clone(), before.clone());
            }
            Ok(true)
        }
        Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}
