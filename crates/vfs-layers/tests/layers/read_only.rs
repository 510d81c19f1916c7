//! Refusal of changes.

use vfs_core::backend::AccessMode;
use vfs_core::operation::Intercepted;
use vfs_core::snapshots::{RestoreRequest, SnapshotRequest};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, Layer, OpContext,
    RenameRequest,
};
use vfs_layers::ReadOnly;
use vfs_testkit::CallCounter;

use super::support::{memory, path, write};

#[tokio::test]
async fn every_change_is_refused_at_its_path_and_does_not_reach_the_backend() {
    let counting = std::sync::Arc::new(CallCounter::default());
    let counted = std::sync::Arc::new(Intercepted::new(memory().await, std::sync::Arc::clone(&counting)));
    let (files, cx) = (ReadOnly.layer(counted), OpContext::new());
    let uploaded = files.upload_files(&cx, vec![FileUploadRequest::new(path("/u"), "x")]).await.remove(0);
    let refused = [
        write(&*files, "/w", "x", vfs_core::WriteMode::CreateNew).await.expect_err("refused"),
        files.edit(&cx, EditRequest::new(path("/a"), "one", "x").replace_all()).await.expect_err("refused"),
        files.delete(&cx, DeleteRequest::new(path("/a"))).await.expect_err("refused"),
        files.rename(&cx, RenameRequest::new(path("/a"), path("/b"))).await.expect_err("refused"),
        files.copy(&cx, CopyRequest::new(path("/a"), path("/b"))).await.expect_err("refused"),
        uploaded.cause.expect("refused"),
    ];
    assert_eq!(counting.total(), 0);
    let at: Vec<_> = refused.iter().map(|error| error.path().expect("at a path")).collect();
    assert_eq!(at, ["/w", "/a", "/a", "/a", "/a", "/u"]);
    for error in &refused {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.for_model().contains("read-only"), "{}", error.for_model());
    }
}

#[tokio::test]
async fn a_dry_run_and_a_snapshot_pass_and_a_restore_does_not() {
    let (files, cx) = (ReadOnly.layer(memory().await), OpContext::new());
    let dry = files.edit(&cx, EditRequest::new(path("/a"), "one", "x").replace_all().dry_run()).await;
    assert!(dry.expect("only looks").diff.expect("a diff").contains("+x"));
    let snapshots = files.as_snapshots().expect("memory has them");
    let taken = snapshots.snapshot(&cx, SnapshotRequest::new()).await.expect("only looks");
    let error = snapshots.restore(&cx, RestoreRequest::new(taken.id)).await.expect_err("refused");
    assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some("/")));
    assert_eq!(files.read_text("/a").await.expect("readable"), "one\none\none\n");
}

#[tokio::test]
async fn capabilities_and_name_show_read_only() {
    let inner = memory().await;
    assert_eq!(inner.capabilities(&path("/")).access, AccessMode::ReadWrite);
    let files = ReadOnly.layer(inner);
    assert_eq!(files.capabilities(&path("/")).access, AccessMode::ReadOnly);
    assert_eq!(files.to_string(), "read_only(memory)");
}
