//! Stored amount before and after a change that the backend may not make.

use vfs_core::operation::RequestRef;
use vfs_core::transfer::TransferMode;
use vfs_core::{Backend, OpContext, Result, VfsPath};

use super::change_estimate::{file_amount, removable_amount, stat_optional};
use super::usage_tracker::StorageAmount;

/// The paths of a change, with the amount that was stored there before it.
///
/// A backend that remembers operation ids may answer a call by the result of an earlier call, and change nothing. If
/// such a result were counted, a caller could lower the tracked usage by sending an old change again.
#[derive(Debug)]
pub(super) struct ObservedChange {
    paths: Vec<VfsPath>,
    /// Whether files below the paths may change too.
    includes_below: bool,
    /// `None` if it could not be read.
    before: Option<StorageAmount>,
}

impl ObservedChange {
    /// Reads the amount before the change. Returns `None` if the result of the change can be trusted. The caller must
    /// hold the lock of the change until the [`end`](Self::end).
    pub(super) async fn begin(inner: &dyn Backend, cx: &OpContext, request: RequestRef<'_>) -> Option<Self> {
        // A rename that replaces nothing adds and removes nothing, whichever call made it.
        let keeps_amount = matches!(request, RequestRef::Rename(rename) if rename.mode != TransferMode::Overwrite);
        if keeps_amount || !request.may_be_replayed(inner, cx) {
            return None;
        }
        let (paths, includes_below) = match request {
            // The source of a copy does not change.
            RequestRef::Copy(copy) => (vec![copy.to.clone()], true),
            RequestRef::Rename(rename) => (vec![rename.from.clone(), rename.to.clone()], true),
            RequestRef::Delete(delete) => (vec![delete.path.clone()], delete.recursive),
            request => (request.paths().cloned().collect(), false),
        };
        let mut change = Self { paths, includes_below, before: None };
        change.before = change.stored(inner, cx).await.ok();
        Some(change)
    }

    /// Returns the change since [`begin`](Self::begin); `None` if it is unknown, because an amount could not be read.
    pub(super) async fn end(&self, inner: &dyn Backend, cx: &OpContext) -> Option<StorageAmount> {
        let before = self.before?;
        let after = self.stored(inner, cx).await.ok()?;
        Some(after - before)
    }

    /// Returns the amount that is stored at the paths.
    async fn stored(&self, inner: &dyn Backend, cx: &OpContext) -> Result<StorageAmount> {
        let mut sum = StorageAmount::default();
        for path in &self.paths {
            // The lock of one file does not exclude changes below a directory that has taken its place.
            let amount = if self.includes_below {
                removable_amount(inner, cx, path, true).await?.0
            } else {
                file_amount(stat_optional(inner, cx, path).await?.as_ref())
            };
            sum += amount;
        }
        Ok(sum)
    }
}
