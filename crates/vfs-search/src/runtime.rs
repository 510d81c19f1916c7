//! Helpers for backends on tokio: blocking work, cancellation, completion and the file size signal.

pub(crate) mod blocking;
pub(crate) mod run_to_completion;
pub(crate) mod run_until_cancelled;
pub(crate) mod sigxfsz;
