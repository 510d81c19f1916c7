//! Helpers for backends on tokio: blocking work, cancellation, completion and the file size signal.

pub(crate) mod blocking;
pub(crate) mod cancellation;
pub(crate) mod file_size_signal;
pub(crate) mod run_to_completion;
