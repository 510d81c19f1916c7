//! Helpers of the tests.

use std::sync::Arc;

use futures::StreamExt;
use tokio::time::{Duration, Instant};
use vfs_core::{
    Backend, BackendExt, GrepEvent, GrepRequest, OpContext, ReadRequest, ReadResult, Result, VfsPath, WriteMode,
    WriteRequest, WriteResult,
};
use vfs_memory::MemoryBackend;

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A time that only a paused clock gets to the end of. A deadline of a context is also compared with the real clock, so that
/// a shorter one could pass by itself on a busy machine.
pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// A store in memory that holds `/a`, three lines of `one`.
pub(crate) async fn memory() -> Arc<MemoryBackend> {
    let files = MemoryBackend::new();
    files.create_text("/a", "one\none\none\n").await.expect("written");
    Arc::new(files)
}

/// A context with a deadline by the clock of the test, which may be paused.
pub(crate) fn within(time: Duration) -> OpContext {
    OpContext::new().with_deadline((Instant::now() + time).into_std())
}

pub(crate) async fn read(files: &dyn Backend, cx: &OpContext, at: &str) -> Result<ReadResult> {
    files.read(cx, ReadRequest::new(path(at))).await
}

pub(crate) async fn write(files: &dyn Backend, at: &str, text: &str, mode: WriteMode) -> Result<WriteResult> {
    files.write(&OpContext::new(), WriteRequest::new(path(at), text.to_owned()).mode(mode)).await
}

pub(crate) async fn search(files: &dyn Backend, cx: &OpContext) -> Vec<Result<GrepEvent>> {
    files.grep_stream(cx.clone(), GrepRequest::literal("one")).collect().await
}
