//! Recovery of an interrupted commit: its recorded steps are applied to the base (roll-forward).

use vfs_core::{Backend, OpContext, Result};

use super::OverlayPersistence;
use super::overlay_manifest::{CommitStep, OngoingCommit, OverlayManifest};
use super::overlay_manifest_file::at_root;
use crate::content_store::ObjectId;
use crate::overlay::base_access::{BaseEntry, base_entry, changed_since, make_room, remove_emptied, replace_in_base};
use crate::versioned_entry::VersionedEntry;

/// Overlay that began a recorded commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitOwner {
    /// Begun by this overlay.
    Own,
    /// Begun by another process.
    Foreign,
}

impl OverlayPersistence {
    /// Applies the remaining steps of the recorded commit, and returns its origin, or `None` if no commit is
    /// recorded. The commit stays recorded until [`end_applied`](Self::end_applied).
    pub(crate) async fn finish(&mut self, cx: &OpContext, base: &dyn Backend) -> Result<Option<CommitOwner>> {
        let mut record = self.file.reload(cx).await.map_err(at_root)?;
        if record.phase().is_some_and(|commit| commit.is_rolling_back) {
            // If the process that rolls the commit back is still running, it stops then.
            record = record.with_rollback(false);
            self.file.write(cx, record.clone()).await.map_err(at_root)?;
        }
        let OverlayManifest { commit: Some(OngoingCommit { steps, .. }), hidden, .. } = record else {
            return Ok(None);
        };
        let (_, contents) = self.file.contents()?;
        let origin = if self.file.is_own_commit() { CommitOwner::Own } else { CommitOwner::Foreign };
        let hidden = hidden.into_iter().collect();
        for CommitStep { path, before, before_content, after } in steps {
            if !self.file.is_current(cx).await {
                // Another process rolls the commit back, or recorded its end, after which the base may be changed again.
                return Err(at_root(self.file.changed_elsewhere()));
            }
            let present = base_entry(base, cx, &path).await?;
            if is_applied(&present, after.as_ref()) {
                continue;
            }
            let version = present.to_version();
            // A link may have been removed before the file that takes its place was written.
            let is_halved = before == VersionedEntry::Link && version == VersionedEntry::Nothing;
            let object = present.content().map(|content| ObjectId::of(content));
            let is_rolled_back = object.is_some() && object == before_content;
            if version != before && !is_halved && !is_rolled_back {
                return Err(changed_since(&path, version.file().cloned()));
            }
            let content = match &after {
                Some(object) => Some(contents.get(cx, object).await.map_err(at_root)?),
                None => None,
            };
            if version == VersionedEntry::Nothing {
                make_room(base, cx, &hidden, &path).await;
            }
            if let Err(error) = replace_in_base(base, cx, &path, &version, content).await {
                // The process that began the commit may still be running, or another one may finish it, too.
                let present = base_entry(base, cx, &path).await;
                if !present.is_ok_and(|present| is_applied(&present, after.as_ref())) {
                    return Err(error);
                }
            }
        }
        remove_emptied(base, &cx.for_cleanup(), &hidden).await;
        Ok(Some(origin))
    }
}

/// Returns whether `present` is a file with the content `after`, or nothing if that is `None`. The content may be missing from
/// the store, if only the end of the commit could not be recorded.
fn is_applied(present: &BaseEntry, after: Option<&ObjectId>) -> bool {
    match present {
        VersionedEntry::Link => false,
        VersionedEntry::Nothing => after.is_none(),
        VersionedEntry::File(file) => after.is_some_and(|after| ObjectId::of(&file.content) == *after),
    }
}
