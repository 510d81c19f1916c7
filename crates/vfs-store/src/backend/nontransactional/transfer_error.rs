//! Error of one step of a transfer.

use vfs_core::Error;

/// Reason why a transfer failed.
pub(super) enum TransferError {
    /// Other writers invalidated the plan; a new plan may succeed.
    Conflict,
    Failed(Error),
}

impl From<Error> for TransferError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
