//! Public behaviour of the crate.

mod concurrency;
mod memory;
mod reducer;
mod snapshots;
mod state;
mod watch;

use std::future::Future;

use vfs_core::{Error, VfsPath};

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// Runs a test that may end early with an error of the filesystem.
fn run(test: impl Future<Output = Result<(), Error>>) {
    futures::executor::block_on(test).expect("no operation of the test fails");
}
