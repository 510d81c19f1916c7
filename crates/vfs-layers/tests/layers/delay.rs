//! Delays of operations.

use tokio::time::Instant;
use vfs_core::{BackendExt, ErrorKind, Layer, OpContext, Operation};
use vfs_layers::Delay;

use super::support::{memory, millis, minutes, read, within};

#[tokio::test(start_paused = true)]
async fn each_operation_has_its_own_delay() {
    let files = Delay::new(millis(80)).for_operation(Operation::Stat, millis(5)).layer(memory().await);
    let begun = Instant::now();
    files.read_text("/a").await.expect("read");
    assert_eq!(begun.elapsed(), millis(80));
    files.stat_path("/a").await.expect("described");
    assert_eq!(begun.elapsed(), millis(85));
}

#[tokio::test(start_paused = true)]
async fn a_delay_ends_on_cancellation_and_at_the_deadline() {
    let files = Delay::new(minutes(1000)).layer(memory().await);
    let begun = Instant::now();
    let error = read(&*files, &within(minutes(30)), "/a").await.expect_err("late");
    assert_eq!((error.kind(), error.path(), begun.elapsed()), (ErrorKind::Timeout, Some("/a"), minutes(30)));

    let cx = OpContext::new();
    let token = cx.cancel_token().clone();
    let cancel = async {
        tokio::time::sleep(minutes(20)).await;
        token.cancel();
    };
    let (answer, ()) = futures::join!(read(&*files, &cx, "/a"), cancel);
    let error = answer.expect_err("cancelled");
    assert_eq!((error.kind(), error.path(), begun.elapsed()), (ErrorKind::Cancelled, Some("/a"), minutes(50)));
}
