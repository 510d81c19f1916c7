//! Directories that go because nothing is left in them: what somebody puts there at the last moment is not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use vfs_composite::CompositeBackend;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::snapshots::{RestoreRequest, SnapshotRequest};
use vfs_core::transfer::DeleteScope;
use vfs_core::{
    Backend, BackendExt, DeleteRequest, ErrorKind, Interceptor, LsRequest, OpContext, RenameRequest, Result, Snapshots,
    VfsPath,
};
use vfs_local::{Durability, LocalBackend, LocalConfig};
use vfs_memory::MemoryBackend;
use vfs_versions::{Checkpoints, CommitResult, OverlayBackend};

/// Somebody else, who writes a file just before the first directory is removed.
#[derive(Debug)]
struct Late {
    file: &'static str,
    has_written: AtomicBool,
}

impl Interceptor for Late {
    fn name(&self) -> &'static str {
        "late"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if let RequestRef::Delete(delete) = request.as_request_ref()
            && (delete.recursive || delete.scope == DeleteScope::EmptyDirectory)
            && !self.has_written.swap(true, Ordering::Relaxed)
        {
            inner.create_text(self.file, "late").await?;
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// A disk, and the same with somebody else at it.
struct Stage {
    disk: LocalBackend,
    meddled: Arc<dyn Backend>,
    late: Arc<Late>,
    _root: TempDir,
}

impl Stage {
    fn new(file: &'static str) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory can be made");
        let disk = LocalConfig::new(root.path()).durability(Durability::Atomic).open().expect("the root can be opened");
        let late = Arc::new(Late { file, has_written: AtomicBool::new(false) });
        let meddled = Arc::new(Intercepted::new(Arc::new(disk.clone()), Arc::clone(&late)));
        Self { disk, meddled, late, _root: root }
    }

    /// Makes files, each with its path as its text.
    async fn with(self, files: &[&str]) -> Self {
        for file in files {
            self.disk.create_text(file, file).await.expect("a new file");
        }
        self
    }

    fn assert_that_somebody_wrote(&self) {
        assert!(self.late.has_written.load(Ordering::Relaxed), "no directory was removed");
    }
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

async fn names(files: &dyn Backend, at: &str) -> Vec<String> {
    let listed = files.ls(&OpContext::new(), LsRequest::new(path(at)).recursive()).await.expect("it is there");
    listed.entries.into_iter().map(|entry| entry.path.to_string()).collect()
}

#[tokio::test]
async fn a_move_across_mounts_is_taken_back_when_a_file_comes_to_its_source_at_the_last_moment() {
    for late in ["/d/late", "/d/e/late", "/d/empty/late"] {
        let stage = Stage::new(late).with(&["/d/x", "/d/e/f", "/d/empty/gone"]).await;
        stage.disk.delete_file("/d/empty/gone").await.expect("removed");
        let target = Arc::new(MemoryBackend::new());
        let files = CompositeBackend::new(Arc::clone(&stage.meddled))
            .with_mount("/m", Arc::<MemoryBackend>::clone(&target))
            .expect("a free place");
        let moved = files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/m/d"))).await;
        stage.assert_that_somebody_wrote();
        assert_eq!(moved.expect_err("something is left").kind(), ErrorKind::NotEmpty, "{late}");
        let mut expected = vec!["/d/e", "/d/e/f", "/d/empty", "/d/x", late];
        expected.sort_unstable();
        assert_eq!(names(&stage.disk, "/d").await, expected);
        assert_eq!(stage.disk.read_text(late).await.as_deref(), Ok("late"));
        assert_eq!(names(&*target, "/").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_commit_keeps_a_file_that_comes_into_a_deleted_directory_at_the_last_moment() {
    for late in ["/d/late", "/d/e/late"] {
        let stage = Stage::new(late).with(&["/d/x", "/d/e/f"]).await;
        let cx = OpContext::new();
        let overlay = OverlayBackend::new(Arc::clone(&stage.meddled));
        overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await.expect("deleted");
        let committed = overlay.commit(&cx).await.expect("nothing fails");
        stage.assert_that_somebody_wrote();
        assert!(matches!(committed, CommitResult::Applied(_)), "{committed:?}");
        assert_eq!(stage.disk.read_text(late).await.as_deref(), Ok("late"));
        for gone in ["/d/x", "/d/e/f"] {
            assert_eq!(stage.disk.read_text(gone).await.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        }
    }
}

#[tokio::test]
async fn going_back_keeps_a_file_that_comes_where_a_file_was_at_the_last_moment() {
    for late in ["/p/late", "/p/e/late"] {
        let stage = Stage::new(late).with(&["/p"]).await;
        let cx = OpContext::new();
        let files = Checkpoints::new(Arc::new(MemoryBackend::new()), path("/state")).over(Arc::clone(&stage.meddled));
        let snapshot = files.snapshot(&cx, SnapshotRequest::new()).await.expect("taken");
        stage.disk.delete_file("/p").await.expect("removed");
        stage.disk.create_text("/p/e/f", "f").await.expect("a new file");
        stage.disk.delete_file("/p/e/f").await.expect("removed");
        let restored = files.restore(&cx, RestoreRequest::new(snapshot.id)).await;
        stage.assert_that_somebody_wrote();
        assert_eq!(restored.expect_err("a file is in the way").kind(), ErrorKind::Conflict);
        assert_eq!(stage.disk.read_text(late).await.as_deref(), Ok("late"));
    }
}
