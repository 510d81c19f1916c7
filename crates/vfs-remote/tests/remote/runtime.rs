//! Trials, each in a runtime of its own.

use std::future::Future;

use libtest_mimic::{Failed, Trial};
use vfs_core::Result;

/// Runs `test` to its end.
pub(crate) fn on_runtime(test: impl Future<Output = Result<()>>) -> std::result::Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(test).map_err(|error| format!("{error:?}").into())
}

/// Creates the trial `name` of `test`, on a runtime of its own.
pub(crate) fn trial(name: &str, test: impl Future<Output = Result<()>> + Send + 'static) -> Trial {
    Trial::test(name, move || on_runtime(test))
}

/// Tests of a room, by their own names.
macro_rules! trials {
    ($room:literal: $($test:ident),+ $(,)?) => {
        vec![$($crate::runtime::trial(concat!("remote-", $room, "::", stringify!($test)), $test())),+]
    };
}
pub(crate) use trials;
