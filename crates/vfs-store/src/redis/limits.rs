//! Limits that several modules of the Redis store share.

use std::time::Duration;

use super::value_header::HEAD;

/// Maximum size of the content of one file: a string of Redis has at most 512 MiB, including the head of the file.
pub(super) const MAX_VALUE: u64 = (512 << 20) - HEAD as u64;
/// Time for which the server stores the outcome of a change.
pub(super) const RECEIPT_TTL: Duration = Duration::from_secs(10 * 60);
/// Time for which the server stores the record of an operation.
pub(super) const RECORD_TTL: Duration = Duration::from_secs(24 * 60 * 60);
