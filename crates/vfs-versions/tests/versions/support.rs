//! Short forms for the tests.

use tokio::time::{Duration, Instant};
use vfs_core::{OpContext, VfsPath};

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// A time that only a paused clock gets to the end of. A deadline of a context is also compared with the real clock, so that
/// a shorter one could pass by itself on a busy machine.
pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// A context with a deadline by the clock of the test, which may be paused.
pub(crate) fn within(time: Duration) -> OpContext {
    OpContext::new().with_deadline((Instant::now() + time).into_std())
}
