//! A runtime for each test.

use std::future::Future;

use libtest_mimic::Failed;
use vfs_core::Result;

/// Runs `test` to its end.
pub(crate) fn on_runtime(test: impl Future<Output = Result<()>>) -> std::result::Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(test).map_err(|error| format!("{error:?}").into())
}
