//! Error of one step of a transfer.

use vfs_core::Error;

/// Reason why a transfer failed.
pub(super) enum TransferStepError {
    /// Other writers invalidated the plan; a new plan may succeed.
    Conflict,
    Failed(Error),
}

impl From<Error> for TransferStepError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
