//! Times for which the server stores what is known of changes.

use std::time::Duration;

/// Time for which the server stores the outcome of a change.
pub(super) const RECEIPT_TTL: Duration = Duration::from_secs(10 * 60);

/// Time for which the server stores the record of an operation.
pub(super) const RECORD_TTL: Duration = Duration::from_secs(24 * 60 * 60);
