//! Stored amount before and after a change that the backend may not make.

use vfs_core::operation::RequestRef;
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{Backend, OpContext, Result, VfsPath};

use super::change_estimate::{file_amount, measure, removable_amount, stat_optional};
use super::usage_tracker::StorageAmount;

/// The paths of a change, with the amount that was stored there before it.
///
/// A backend that remembers operation ids may answer a call by the result of an earlier call, and change nothing. If
/// such a result were counted, a caller could lower the tracked usage by sending an old change again.
#[derive(Debug)]
pub(super) struct ObservedChange {
    paths: Vec<VfsPath>,
    amount: MeasurementScope,
    /// `None` if it could not be read.
    before: Option<StorageAmount>,
}

/// The files at a path that are measured before and after a change.
#[derive(Debug, Clone, Copy)]
enum MeasurementScope {
    /// The file, following a link. The lock of one file does not exclude changes below a directory that has taken its place.
    File,
    /// The file or all files of the directory, following a link, through which a copy writes.
    Contents,
    /// What is removed with the entry, which is nothing for a link.
    Entry,
}

impl ObservedChange {
    /// Reads the amount before the change. Returns `None` if the result of the change can be trusted. The caller must
    /// hold the lock of the change until the [`end`](Self::end).
    pub(super) async fn begin(inner: &dyn Backend, cx: &OpContext, request: RequestRef<'_>) -> Option<Self> {
        // A rename that replaces nothing adds and removes nothing, whichever call made it.
        let keeps_amount =
            matches!(request, RequestRef::Rename(rename) if rename.mode != TransferTargetMode::Overwrite);
        if keeps_amount || !request.may_be_replayed(inner, cx) {
            return None;
        }
        let (paths, amount) = match request {
            // The source of a copy does not change.
            RequestRef::Copy(copy) => (vec![copy.to.clone()], MeasurementScope::Contents),
            RequestRef::Rename(rename) => (vec![rename.from.clone(), rename.to.clone()], MeasurementScope::Entry),
            RequestRef::Delete(delete) if delete.recursive => (vec![delete.path.clone()], MeasurementScope::Entry),
            request => (request.paths().cloned().collect(), MeasurementScope::File),
        };
        let mut change = Self { paths, amount, before: None };
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
            sum += match self.amount {
                MeasurementScope::File => file_amount(stat_optional(inner, cx, path).await?.as_ref()),
                MeasurementScope::Contents => measure(inner, cx, path).await?.0,
                MeasurementScope::Entry => removable_amount(inner, cx, path, true).await?.0,
            };
        }
        Ok(sum)
    }
}
