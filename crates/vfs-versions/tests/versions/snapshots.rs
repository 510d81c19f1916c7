//! Snapshots and undo through checkpoints.

mod random;
mod settlement;
mod undo;

use std::sync::Arc;

use vfs_core::operation::{Intercepted, OperationClass, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::snapshots::{
    ForgetRequest, ListSnapshotsRequest, RestoreRequest, SnapshotDiffRequest, SnapshotId, SnapshotRequest,
};
use vfs_core::{
    Backend, BackendExt, DeleteRequest, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, Result, Snapshots,
};
use vfs_layers::FaultInjection;
use vfs_memory::MemoryBackend;
use vfs_testkit::CallCounter;
use vfs_versions::{CheckpointedBackend, Checkpoints};

use super::support::path;

const DIRECTORY: &str = "/state";

fn cx() -> OpContext {
    OpContext::new().with_actor("tester")
}

/// A checkpointed backend in memory, with the store of its checkpoints.
struct Fixture {
    inner: Arc<MemoryBackend>,
    store: Arc<MemoryBackend>,
    files: CheckpointedBackend,
}

fn checkpoints(store: &Arc<MemoryBackend>) -> Checkpoints {
    Checkpoints::new(Arc::<MemoryBackend>::clone(store), path(DIRECTORY))
}

fn fixture() -> Fixture {
    let (inner, store) = (Arc::new(MemoryBackend::new()), Arc::new(MemoryBackend::new()));
    let files = checkpoints(&store).over(Arc::<MemoryBackend>::clone(&inner));
    Fixture { inner, store, files }
}

impl Fixture {
    /// The same files and the same store, as another process finds them.
    fn again(&self) -> CheckpointedBackend {
        checkpoints(&self.store).over(Arc::<MemoryBackend>::clone(&self.inner))
    }

    /// The same with `fault` between the layer and the files.
    fn failing(&self, fault: &FaultInjection) -> CheckpointedBackend {
        checkpoints(&self.store).over(fault.layer(Arc::<MemoryBackend>::clone(&self.inner)))
    }

    /// Creates files that another process writes.
    async fn create(&self, files: &[(&str, &str)]) {
        for (at, text) in files {
            self.inner.create_text(at, text).await.expect("written");
        }
    }

    fn has(&self, expected: &[(&str, &str)]) {
        let expected = MemoryBackend::from_files(expected.iter().map(|(at, text)| (path(at), text.to_string().into())));
        let differs = expected.expect("valid").snapshot().diff(&self.inner.snapshot());
        assert!(differs.is_empty(), "{}", differs.unified());
    }

    async fn objects(&self) -> usize {
        self.store.glob_files(&format!("{DIRECTORY}/objects/**")).await.map_or(0, |found| found.len())
    }
}

async fn take(files: &CheckpointedBackend, label: &str) -> SnapshotId {
    files.snapshot(&cx(), SnapshotRequest::new().label(label)).await.expect("taken").id
}

async fn restore(files: &CheckpointedBackend, id: &SnapshotId) -> Result<()> {
    files.restore(&cx(), RestoreRequest::new(id.clone())).await
}

async fn undo(files: &CheckpointedBackend, operations: usize) -> Result<usize> {
    Ok(files.undo(&cx(), operations).await?.entries.len())
}

fn assert_conflict(error: &Error, at: &str) {
    assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some(at)), "{error}");
}

#[tokio::test]
async fn a_snapshot_downloads_changed_files_only() {
    let (inner, store) = (Arc::new(MemoryBackend::new()), Arc::new(MemoryBackend::new()));
    let counting = Arc::new(CallCounter::default());
    let files = checkpoints(&store)
        .over(Arc::new(Intercepted::new(Arc::<MemoryBackend>::clone(&inner), Arc::clone(&counting))));
    for number in 0..50 {
        inner.create_text(&format!("/d/{number}"), &format!("text {number}")).await.expect("written");
    }
    take(&files, "first").await;
    assert_eq!(counting.calls(Operation::Download), 50);
    inner.write_text("/d/7", "other").await.expect("written");
    inner.create_text("/new", "new").await.expect("written");
    take(&files, "second").await;
    assert_eq!((counting.calls(Operation::Download), counting.calls(Operation::Ls)), (52, 2));
    take(&files, "third").await;
    assert_eq!(counting.calls(Operation::Download), 52);
}

#[tokio::test]
async fn snapshots_are_listed_compared_and_forgotten() {
    let fixture = fixture();
    let files = &fixture.files;
    fixture.inner.create_text("/a", "one\n").await.expect("written");
    fixture.inner.create_text("/same", "same\n").await.expect("written");
    let first = take(files, "first").await;
    fixture.inner.write_text("/a", "two\n").await.expect("written");
    fixture.inner.create_text("/b", "new\n").await.expect("written");
    let second = take(files, "second").await;
    fixture.inner.delete_file("/b").await.expect("removed");

    let listed = fixture.again().snapshots(&cx(), ListSnapshotsRequest::new()).await.expect("listed");
    let seen: Vec<_> = listed.iter().map(|info| (&info.id, info.label.as_deref(), info.files, info.bytes)).collect();
    assert_eq!(seen, [(&first, Some("first"), 2, 9), (&second, Some("second"), 3, 13)]);

    let changed =
        files.diff(&cx(), SnapshotDiffRequest::between(first.clone(), second.clone())).await.expect("compared");
    assert_eq!(changed.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["/a", "/b"]);
    assert!(changed.unified().contains("-one\n+two\n"), "{}", changed.unified());
    let now = files.diff(&cx(), SnapshotDiffRequest::since(second.clone())).await.expect("compared");
    assert_eq!(now.changes.len(), 1);
    assert!(now.unified().contains("-new"), "{}", now.unified());

    assert_eq!(fixture.objects().await, 4);
    files.forget(&cx(), ForgetRequest::new(second.clone())).await.expect("forgotten");
    assert_eq!(fixture.objects().await, 2, "what the first one names stays");
    for gone in [second.clone(), SnapshotId::new("snap-9"), SnapshotId::new("snap-01"), SnapshotId::new("../x")] {
        let error = files.forget(&cx(), ForgetRequest::new(gone.clone())).await.expect_err("gone");
        assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some("/")));
        assert_eq!(restore(files, &gone).await.expect_err("gone").kind(), ErrorKind::NotFound);
    }
    let third = take(&fixture.again(), "third").await;
    assert_ne!(third, second, "a name is not given again");
    assert_eq!(fixture.again().snapshots(&cx(), ListSnapshotsRequest::new()).await.expect("listed").len(), 2);
}

#[tokio::test]
async fn going_back_brings_every_file_and_can_be_undone() {
    let fixture = fixture();
    fixture.create(&[("/a", "one"), ("/d/x", "x"), ("/d/y", "y"), ("/f", "file")]).await;
    let first = take(&fixture.files, "first").await;
    let files = &fixture.files;
    files.write_text("/a", "two").await.expect("written");
    files.delete_file("/d/x").await.expect("removed");
    files.delete_file("/f").await.expect("removed");
    files.create_text("/f/now/a/directory", "below").await.expect("written");
    files.create_text("/extra", "extra").await.expect("written");
    restore(files, &first).await.expect("restored");
    fixture.has(&[("/a", "one"), ("/d/x", "x"), ("/d/y", "y"), ("/f", "file")]);
    restore(files, &first).await.expect("nothing is left to do");

    assert_eq!(undo(files, 1).await.expect("undone"), 1);
    fixture.has(&[("/a", "two"), ("/d/y", "y"), ("/extra", "extra"), ("/f/now/a/directory", "below")]);
    assert_eq!(undo(files, 100).await.expect("undone"), 5);
    fixture.has(&[("/a", "one"), ("/d/x", "x"), ("/d/y", "y"), ("/f", "file")]);
}

#[tokio::test]
async fn a_restore_that_fails_is_rolled_back() {
    let fixture = fixture();
    for number in 0..6 {
        fixture.inner.create_text(&format!("/{number}"), "old").await.expect("written");
    }
    let first = take(&fixture.files, "first").await;
    for number in 0..4 {
        fixture.inner.write_text(&format!("/{number}"), "new").await.expect("written");
    }
    fixture.inner.delete_file("/5").await.expect("removed");
    fixture.inner.create_text("/extra", "extra").await.expect("written");
    let before = fixture.inner.snapshot();
    for (kind, operation) in [
        (ErrorKind::Conflict, Operation::Write),
        (ErrorKind::Unavailable, Operation::Write),
        (ErrorKind::Conflict, Operation::Delete),
    ] {
        let calls = if operation == Operation::Write { 3 } else { 1 };
        let fault = FaultInjection::new(kind).only(operation).every(calls);
        let error = restore(&fixture.failing(&fault), &first).await.expect_err("it fails");
        assert_eq!(error.kind(), kind);
        // A rollback writes, too: every third write fails, so at most one file is not rolled back.
        let differs = before.diff(&fixture.inner.snapshot()).changes.len();
        assert_eq!(differs > 0, error.message().contains("could not be rolled back"), "{error}");
        fixture.inner.restore(&before);
        assert_eq!(fixture.again().history(&cx()).await.expect("listed").len(), differs.min(1));
        for entry in fixture.store.glob_files(&format!("{DIRECTORY}/undo/*")).await.expect("listed") {
            fixture.store.delete_file(entry.path.as_str()).await.expect("removed");
        }
    }
    let lost = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Write).only(Operation::Delete).after();
    restore(&fixture.failing(&lost), &first).await.expect("only the answers are lost");
    fixture.has(&[("/0", "old"), ("/1", "old"), ("/2", "old"), ("/3", "old"), ("/4", "old"), ("/5", "old")]);
}

/// Changes `/2` right before it is written or deleted, like another process.
#[derive(Debug)]
struct ConcurrentWriter;

impl Interceptor for ConcurrentWriter {
    fn name(&self) -> &'static str {
        "concurrent_writer"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_change = request.as_request_ref().class() == OperationClass::Write;
        if is_change && request.as_request_ref().paths().any(|path| path.as_str() == "/2") {
            inner.write_text("/2", "foreign").await?;
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_concurrent_change_is_a_conflict_and_earlier_steps_are_rolled_back() {
    let fixture = fixture();
    for number in 0..4 {
        fixture.inner.create_text(&format!("/{number}"), "old").await.expect("written");
    }
    let first = take(&fixture.files, "first").await;
    for number in 0..4 {
        fixture.files.write_text(&format!("/{number}"), "new").await.expect("written");
    }
    fixture.files.delete(&cx(), DeleteRequest::new(path("/0"))).await.expect("deleted");
    fixture.files.create_text("/extra", "extra").await.expect("written");
    let inner = Arc::<MemoryBackend>::clone(&fixture.inner) as Arc<dyn Backend>;
    let changed_meanwhile =
        checkpoints(&fixture.store).over(Arc::new(Intercepted::new(inner, Arc::new(ConcurrentWriter))));
    assert_conflict(&restore(&changed_meanwhile, &first).await.expect_err("changed meanwhile"), "/2");
    fixture.has(&[("/1", "new"), ("/2", "foreign"), ("/3", "new"), ("/extra", "extra")]);
    assert_eq!(undo(&fixture.files, 9).await.map_err(|error| error.kind()), Err(ErrorKind::Conflict));
    fixture.has(&[("/0", "new"), ("/1", "new"), ("/2", "foreign"), ("/3", "old")]);
    restore(&fixture.files, &first).await.expect("restored");
    fixture.has(&[("/0", "old"), ("/1", "old"), ("/2", "old"), ("/3", "old")]);
}

#[tokio::test]
async fn contents_that_nothing_names_go_and_those_of_the_history_stay() {
    let fixture = fixture();
    let files = &fixture.files;
    files.create_text("/a", "first").await.expect("written");
    let snapshot = take(files, "first").await;
    files.write_text("/a", "second").await.expect("written");
    files.write_text("/a", "third").await.expect("written");
    undo(files, 1).await.expect("undone");
    assert_eq!(fixture.objects().await, 3);
    files.forget(&cx(), ForgetRequest::new(snapshot)).await.expect("forgotten");
    assert_eq!(fixture.objects().await, 1, "what the write was made over");
    assert_eq!(undo(files, 9).await.expect("undone"), 2);
    fixture.has(&[]);
}

#[tokio::test]
async fn a_missing_or_damaged_content_is_an_error_without_effect() {
    let fixture = fixture();
    for at in ["/a", "/b"] {
        fixture.inner.create_text(at, at).await.expect("written");
    }
    let first = take(&fixture.files, "first").await;
    for at in ["/a", "/b"] {
        fixture.files.write_text(at, "other").await.expect("written");
    }
    let object = blake3::hash(b"/b").to_hex();
    let object = format!("{DIRECTORY}/objects/{}/{}", &object[..2], &object[2..]);
    fixture.store.write_text(&object, "damaged").await.expect("written");
    for _ in 0..2 {
        let error = restore(&fixture.files, &first).await.expect_err("damaged");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Internal, Some("/b")), "{error}");
        assert_eq!(undo(&fixture.files, 1).await.expect_err("damaged").path(), Some("/b"));
        fixture.has(&[("/a", "other"), ("/b", "other")]);
        fixture.store.delete_file(&object).await.ok();
    }
}

#[tokio::test]
async fn a_store_in_the_same_files_is_left_out() {
    let inner = Arc::new(MemoryBackend::new());
    let shared = || Arc::<MemoryBackend>::clone(&inner);
    let files = Checkpoints::new(shared(), path("/keep/state")).exclude(path("/keep")).over(shared());
    files.create_text("/a", "one").await.expect("written");
    let first = take(&files, "first").await;
    files.create_text("/keep/mine", "mine").await.expect("written");
    files.write_text("/a", "two").await.expect("written");
    restore(&files, &first).await.expect("restored");
    assert_eq!(files.read_text("/a").await.expect("read"), "one");
    assert_eq!(files.read_text("/keep/mine").await.expect("read"), "mine");
    assert_eq!(undo(&files, 9).await.expect("undone"), 3);
    assert!(!inner.exists("/a").await.expect("known"));
    assert_eq!(files.snapshots(&cx(), ListSnapshotsRequest::new()).await.expect("listed")[0].files, 1);
}
