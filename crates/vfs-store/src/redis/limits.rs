//! Limits that several modules of the Redis store share.

use std::time::Duration;

use super::head::HEAD;

/// The largest content of one file: a string of Redis has at most 512 MiB, the head of the file included.
pub(super) const MAX_VALUE: u64 = (512 << 20) - HEAD as u64;
/// How long the outcome of a change is remembered.
pub(super) const RECEIPT_TTL: Duration = Duration::from_secs(10 * 60);
/// How long the record of an operation is kept.
pub(super) const RECORD_TTL: Duration = Duration::from_secs(24 * 60 * 60);
