//! Operation ids of callers, beside what layers and mounts write on their own behalf.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use vfs_composite::{CompositeBackend, MountIdentity, RecoveryOutcome};
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, DeleteRequest, Error, ErrorKind, ExecuteRequest, FileUploadRequest, Interceptor, Layer,
    OpContext, OpenWriterRequest, Operation, OperationId, RenameRequest, Result, VfsPath, WriteMode, WriteRequest,
};
use vfs_layers::{FaultInjection, Idempotency, Quota, QuotaLimits, Retry, Scoped};
use vfs_policy::{Decision, Policy, PolicyHook};
use vfs_sandbox::Workspace;
use vfs_store::{MemoryStore, StoreBackend, StoreConfig};
use vfs_versions::{Checkpoints, OverlayBackend};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use super::links::{disk, path};

/// A backend whose first deletion fails.
#[derive(Debug, Default)]
struct FirstDeletionFails {
    has_failed: AtomicBool,
}

impl Interceptor for FirstDeletionFails {
    fn name(&self) -> &'static str {
        "first_deletion_fails"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if matches!(request.as_request_ref(), RequestRef::Delete(_)) && !self.has_failed.swap(true, Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::PermissionDenied, "it fails on purpose"));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// A backend in which another process writes to the path of a change right after it.
#[derive(Debug)]
struct WrittenByAnotherProcess;

impl Interceptor for WrittenByAnotherProcess {
    fn name(&self) -> &'static str {
        "written_by_another_process"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let changed = match request.as_request_ref() {
            RequestRef::Write(WriteRequest { path, .. })
            | RequestRef::Delete(DeleteRequest { path, .. })
            | RequestRef::Rename(RenameRequest { from: path, .. }) => Some(path.clone()),
            _ => None,
        };
        let output = request.send(inner, cx).await?;
        if let Some(changed) = changed {
            inner.write_text(changed.as_str(), "from another process").await?;
        }
        Ok(output)
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// A policy that denies the first upload.
#[derive(Debug, Default)]
struct FirstUploadIsDenied {
    has_denied: AtomicBool,
}

#[async_trait]
impl PolicyHook for FirstUploadIsDenied {
    async fn check(&self, _cx: &OpContext, action: &RequestRef<'_>) -> Decision {
        if matches!(action, RequestRef::Upload(_)) && !self.has_denied.swap(true, Ordering::Relaxed) {
            return Decision::Deny { reason: "it is denied on purpose".to_owned() };
        }
        Decision::Allow
    }
}

fn store() -> Arc<dyn Backend> {
    Arc::new(StoreBackend::new(MemoryStore::new()))
}

fn with_id(id: &str) -> OpContext {
    OpContext::new().with_operation_id(OperationId::parse(id).expect("a valid id"))
}

#[tokio::test]
async fn a_rename_across_mounts_that_was_rolled_back_is_made_when_it_is_repeated_with_its_id() -> Result<()> {
    let source: Arc<dyn Backend> = Arc::new(Intercepted::new(store(), Arc::new(FirstDeletionFails::default())));
    let files = CompositeBackend::new(source).with_mount("/m", store())?;
    files.create_text("/a", "text").await?;
    let cx = with_id("run-1/step-1");
    let rename = || files.rename(&cx, RenameRequest::new(path("/a"), path("/m/a")));
    assert_eq!(rename().await.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
    assert_eq!(files.read_text("/a").await?, "text");
    assert!(files.read_text("/m/a").await.is_err_and(|error| error.kind() == ErrorKind::NotFound));
    rename().await?;
    assert_eq!(files.read_text("/m/a").await?, "text");
    assert!(files.read_text("/a").await.is_err_and(|error| error.kind() == ErrorKind::NotFound));
    Ok(())
}

#[tokio::test]
async fn an_overlay_records_every_mutation_of_callers_that_use_one_id() -> Result<()> {
    let (base, records, cx) = (store(), store(), with_id("run-1"));
    base.create_text("/a", "old").await?;
    let overlay = OverlayBackend::open(Arc::clone(&base), Arc::clone(&records), path("/overlay")).await?;
    for (name, content) in [("/a", "first"), ("/b", "first"), ("/a", "second"), ("/b", "first")] {
        overlay.write(&cx, WriteRequest::new(path(name), content).mode(WriteMode::Overwrite)).await?;
    }
    drop(overlay);
    let overlay = OverlayBackend::open(Arc::clone(&base), records, path("/overlay")).await?;
    assert_eq!((overlay.read_text("/a").await?, overlay.read_text("/b").await?), ("second".into(), "first".into()));
    overlay.commit(&cx).await?;
    assert_eq!((base.read_text("/a").await?, base.read_text("/b").await?), ("second".into(), "first".into()));
    Ok(())
}

#[tokio::test]
async fn an_undo_makes_changes_of_its_own_for_callers_with_an_operation_id() -> Result<()> {
    let cx = with_id("run-0");
    let files = Checkpoints::new(store(), path("/checkpoints")).over(store());
    files.create_text("/a", "old").await?;
    for run in 0..2 {
        // With the id of the first write, the second would be answered by the result of the first, and change nothing.
        let write_cx = with_id(&format!("run-{run}"));
        files.write(&write_cx, WriteRequest::new(path("/a"), "new").mode(WriteMode::Overwrite)).await?;
        assert_eq!(files.undo(&cx, 1).await?.entries.len(), 1);
        assert_eq!((files.read_text("/a").await?, files.history(&cx).await?.len()), ("old".into(), 1));
    }
    for (step, (from, to)) in [("/a", "/b"), ("/b", "/a"), ("/a", "/b")].into_iter().enumerate() {
        files.rename(&with_id(&format!("step-{step}")), RenameRequest::new(path(from), path(to))).await?;
    }
    assert_eq!(files.undo(&with_id("undo"), 3).await?.entries.len(), 3);
    assert_eq!(files.read_text("/a").await?, "old");
    Ok(())
}

#[tokio::test]
async fn a_retried_append_that_was_applied_at_first_has_one_undo_record() -> Result<()> {
    let (inner, cx) = (store(), OpContext::new());
    inner.create_text("/a", "old").await?;
    let lossy = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Write).next(1).after().layer(inner);
    // Another record would take the place of the only one.
    let files = Checkpoints::new(store(), path("/checkpoints")).max_undo(1).over(lossy);
    let retried = Retry::new().layer(Arc::new(files.clone()));
    let append = WriteRequest::new(path("/a"), " and new").mode(WriteMode::Append);
    retried.write(&with_id("run-1/step-1"), append).await?;
    assert_eq!((files.read_text("/a").await?, files.history(&cx).await?.len()), ("old and new".into(), 1));
    let undone = files.undo(&cx, 1).await?;
    assert_eq!((undone.entries.len(), undone.files, files.read_text("/a").await?), (1, 1, "old".into()));
    Ok(())
}

#[tokio::test]
async fn a_mutation_that_is_sent_again_after_later_changes_has_no_undo_record() -> Result<()> {
    let (write_cx, delete_cx, cx) = (with_id("run-1/step-1"), with_id("run-1/step-2"), OpContext::new());
    let files = Checkpoints::new(store(), path("/checkpoints")).over(store());
    files.create_text("/a", "old").await?;
    files.create_text("/b", "old").await?;
    for _ in 0..2 {
        files.write(&write_cx, WriteRequest::new(path("/a"), "first").mode(WriteMode::Overwrite)).await?;
        files.delete(&delete_cx, DeleteRequest::new(path("/b"))).await?;
        if files.history(&cx).await?.len() == 4 {
            files.write_text("/a", "second").await?;
            files.create_text("/b", "second").await?;
        }
    }
    assert_eq!(files.history(&cx).await?.len(), 6);
    assert_eq!((files.read_text("/a").await?, files.read_text("/b").await?), ("second".into(), "second".into()));
    files.undo(&cx, 2).await?;
    assert!(!files.exists("/b").await?);
    assert_eq!(files.read_text("/a").await?, "first");
    // There is no file before and after this call.
    files.delete(&delete_cx, DeleteRequest::new(path("/b"))).await?;
    files.undo(&cx, 2).await?;
    assert_eq!((files.read_text("/a").await?, files.read_text("/b").await?), ("old".into(), "old".into()));
    Ok(())
}

#[tokio::test]
async fn a_rename_of_an_empty_directory_with_an_id_can_be_undone() -> Result<()> {
    let (root, disk) = disk(&[], &[]);
    std::fs::create_dir(root.path().join("d")).expect("the directory is ours");
    let files = Checkpoints::new(store(), path("/checkpoints")).over(Idempotency::new().layer(disk));
    files.rename(&with_id("run-1"), RenameRequest::new(path("/d"), path("/e"))).await?;
    files.undo(&OpContext::new(), 1).await?;
    assert_eq!((files.exists("/d").await?, files.exists("/e").await?), (true, false));
    // The undo has moved the directory back, and this call does not move it again.
    files.rename(&with_id("run-1"), RenameRequest::new(path("/d"), path("/e"))).await?;
    assert!(files.exists("/d").await?);
    assert_eq!(files.history(&OpContext::new()).await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn an_undo_keeps_what_another_process_wrote_after_the_change() -> Result<()> {
    for (cx, has_id) in [(OpContext::new(), false), (with_id("run-1"), true)] {
        for change in [Operation::Write, Operation::Delete, Operation::Rename] {
            let inner = store();
            inner.create_text("/a", "old").await?;
            let shared = Intercepted::new(inner, Arc::new(WrittenByAnotherProcess));
            let files = Checkpoints::new(store(), path("/checkpoints")).over(Arc::new(shared));
            match change {
                Operation::Delete => drop(files.delete(&cx, DeleteRequest::new(path("/a"))).await?),
                Operation::Rename => drop(files.rename(&cx, RenameRequest::new(path("/a"), path("/b"))).await?),
                _ => {
                    let write = WriteRequest::new(path("/a"), "new").mode(WriteMode::Overwrite);
                    files.write(&cx, write).await?;
                }
            }
            let undone = files.undo(&OpContext::new(), 1).await.map(drop);
            assert_eq!(undone.map_err(|error| error.kind()), Err(ErrorKind::Conflict), "{change:?}, id: {has_id}");
            assert_eq!(files.read_text("/a").await?, "from another process", "{change:?}, id: {has_id}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_deletion_that_is_sent_again_while_another_process_writes_keeps_both_contents() -> Result<()> {
    let inner = store();
    inner.create_text("/a", "old").await?;
    inner.delete(&with_id("run-1"), DeleteRequest::new(path("/a"))).await?;
    inner.create_text("/a", "new").await?;
    let checkpoints = Checkpoints::new(store(), path("/checkpoints"));
    let shared = Intercepted::new(Arc::clone(&inner), Arc::new(WrittenByAnotherProcess));
    let files = checkpoints.clone().over(Arc::new(shared));
    files.delete(&with_id("run-1"), DeleteRequest::new(path("/a"))).await?;
    // The deletion may as well have been made before the other process wrote.
    let files = checkpoints.over(Arc::clone(&inner));
    let undone = files.undo(&OpContext::new(), 1).await.map(drop);
    assert_eq!(undone.map_err(|error| error.kind()), Err(ErrorKind::Conflict));
    assert_eq!(files.read_text("/a").await?, "from another process");
    inner.delete_file("/a").await?;
    files.undo(&OpContext::new(), 1).await?;
    assert_eq!(files.read_text("/a").await?, "new");
    Ok(())
}

#[tokio::test]
async fn a_reported_version_is_recorded_if_the_file_cannot_be_read_after_the_change() -> Result<()> {
    let (inner, cx) = (store(), OpContext::new());
    inner.create_text("/a", "old").await?;
    // The first two are before the change.
    let lossy = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Stat).every(3);
    let checkpoints = Checkpoints::new(store(), path("/checkpoints"));
    let files = checkpoints.clone().over(lossy.layer(Arc::clone(&inner)));
    files.write(&with_id("run-1"), WriteRequest::new(path("/a"), "new").mode(WriteMode::Overwrite)).await?;
    inner.write_text("/a", "from another process").await?;
    let files = checkpoints.over(Arc::clone(&inner));
    assert_eq!(files.undo(&cx, 1).await.map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::Conflict));
    assert_eq!(inner.read_text("/a").await?, "from another process");
    Ok(())
}

#[tokio::test]
async fn a_quota_counts_what_is_stored_where_a_mutation_is_sent_again_with_its_id() -> Result<()> {
    let (inner, cx) = (store(), OpContext::new());
    inner.create_text("/a", "").await?;
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(100)).metered(inner);
    for round in 0..3 {
        let request = WriteRequest::new(path("/a"), "1").mode(WriteMode::Overwrite);
        assert_eq!(files.write(&with_id("write"), request).await?.size, 1);
        let request = OpenWriterRequest::new(path("/a")).mode(WriteMode::Overwrite);
        let mut writer = files.open_writer(&with_id("writer"), request).await?;
        writer.write("12".into()).await?;
        assert_eq!(writer.commit().await?.size, 2);
        let stored = if round == 0 { 2 } else { 90 };
        assert_eq!((meter.usage(&cx).await?.bytes, files.stat_path("/a").await?.size), (stored, stored));
        files.write_text("/a", &"x".repeat(90)).await?;
        let error = files.create_text("/b", &"x".repeat(20)).await.expect_err("110 bytes in all");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    }
    Ok(())
}

#[tokio::test]
async fn a_quota_charges_no_actor_for_the_changes_of_another_process() -> Result<()> {
    let shared: Arc<dyn Backend> = Arc::new(Intercepted::new(store(), Arc::new(WrittenByAnotherProcess)));
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(100)).metered(shared);
    files.write(&with_id("run-1"), WriteRequest::new(path("/a"), "new")).await?;
    assert_eq!(meter.of_actor(None).bytes, 3);
    assert_eq!(meter.usage(&OpContext::new()).await?.bytes, "from another process".len() as u64);
    Ok(())
}

#[tokio::test]
async fn no_file_of_an_upload_is_replaced_by_an_earlier_one_that_failed_at_first() -> Result<()> {
    let lossy = || FaultInjection::new(ErrorKind::Unavailable).only(Operation::Upload).next(1).layer(store());
    let scoped = store();
    scoped.create_text("/d/x", "").await?;
    let scoped = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Upload).next(1).layer(scoped);
    // The mount resolves each path, as it has links and another mount below it.
    let (_root, disk) = disk(&[], &[]);
    let lossy_disk = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Resolve).next(1).layer(disk);
    let mounted = CompositeBackend::new(Idempotency::new().layer(lossy_disk)).with_mount("/m", store())?;
    let setups = [
        ("intercepted", lossy()),
        ("composite", Arc::new(mounted)),
        ("scoped", Scoped::new(path("/d")).layer(scoped)),
        ("policy", Policy::new(Arc::new(FirstUploadIsDenied::default())).layer(store())),
    ];
    for (setup, files) in setups {
        let upload = || ["1", "2"].map(|text| FileUploadRequest::new(path("/a"), text)).into();
        let first = files.upload_files(&with_id("run-1"), upload()).await;
        assert!(first.iter().all(|response| response.error.is_some()), "{setup}: {first:?}");
        assert!(!files.exists("/a").await?, "{setup}");
        for _ in 0..2 {
            let again = files.upload_files(&with_id("run-1"), upload()).await;
            assert!(again.iter().all(|response| response.error.is_none()), "{setup}: {again:?}");
            assert_eq!(files.read_text("/a").await?, "2", "{setup}");
        }
    }
    let files = StoreBackend::with_config(MemoryStore::new(), StoreConfig::default().max_file_size(3));
    let upload = ["too large", "2"].map(|text| FileUploadRequest::new(path("/a"), text)).into();
    let uploaded = files.upload_files(&with_id("run-1"), upload).await;
    let causes: Vec<_> = uploaded.iter().filter_map(|response| response.cause.as_ref().map(Error::kind)).collect();
    assert_eq!(causes, [ErrorKind::TooLarge; 2]);
    Ok(())
}

#[tokio::test]
async fn a_recovery_finishes_every_move_of_callers_that_use_one_id() -> Result<()> {
    let (source, target, journal, cx) = (store(), store(), store(), with_id("run-1"));
    let identity = |namespace: &str| MountIdentity::Store {
        url: "sqlite:/team.db".to_owned(),
        namespace: namespace.to_owned(),
        directory: VfsPath::root(),
    };
    let files = CompositeBackend::new(Arc::clone(&source))
        .with_mount("/m", Arc::clone(&target))?
        .with_identity(&VfsPath::root(), identity("one"))?
        .with_identity(&path("/m"), identity("two"))?
        .with_journal(Arc::clone(&journal), path("/moves"));
    for _ in 0..2 {
        for name in ["a", "b"] {
            source.create_text(&format!("/d/{name}"), name).await?;
        }
        target.write_text("/d/a", "a").await?;
        let mut moved = Vec::new();
        for name in ["a", "b"] {
            let (from, to) = (format!("/d/{name}"), format!("/m/d/{name}"));
            let version = files.stat_path(&from).await?.version;
            moved.push(serde_json::json!({ "from": from, "to": to, "kind": "file", "version": version }));
        }
        let mount = |at: &str, namespace| serde_json::json!({ "path": at, "identity": identity(namespace) });
        let (one, two) = (mount("/", "one"), mount("/m", "two"));
        let record =
            serde_json::json!({ "from": "/d", "to": "/m/d", "source": one, "target": two, "files": moved }).to_string();
        journal.create_text("/moves/move-1-0.json", &record).await?;
        let recovery = files.recover(&cx).await?;
        assert_eq!(recovery.moves.iter().map(|moved| &moved.outcome).collect::<Vec<_>>(), [&RecoveryOutcome::Finished]);
        assert!(!source.exists("/d").await?, "{recovery:?}");
        assert_eq!((target.read_text("/d/a").await?, target.read_text("/d/b").await?), ("a".into(), "b".into()));
        assert!(journal.glob_files("/moves/*.json").await?.is_empty());
        target.delete_file("/d/b").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_command_of_the_virtual_shell_changes_a_file_more_than_once_with_one_id() -> Result<()> {
    let (files, cx) = (store(), with_id("run-1"));
    let shell = VirtualShell::new(Arc::clone(&files), VirtualShellConfig::new());
    let shell = shell.as_shell().expect("a shell");
    for (command, name, expected) in [
        ("echo a >> /f; echo a >> /f", "/f", "a\na\n"),
        ("echo 1 > /g; echo 2 > /g", "/g", "2\n"),
        ("mv /g /h; mv /h /g; mv /g /h", "/h", "2\n"),
    ] {
        let response = shell.execute(&cx, ExecuteRequest::new(command)).await?;
        assert_eq!((response.exit_code, files.read_text(name).await?), (Some(0), expected.into()), "{command}");
    }
    shell.execute(&cx, ExecuteRequest::new("rm /f; touch /f; rm /f")).await?;
    assert!(!files.exists("/f").await?);
    Ok(())
}

#[tokio::test]
async fn a_workspace_collects_every_change_of_callers_that_use_one_id() -> Result<()> {
    let (files, cx) = (store(), with_id("run-1"));
    files.create_text("/a", "0").await?;
    let parent = tempfile::tempdir().expect("a directory");
    let mut workspace = Workspace::checkout(&cx, Arc::clone(&files), VfsPath::root(), parent.path()).await?;
    for content in ["1", "2", "1"] {
        std::fs::write(workspace.directory().join("a"), content).expect("the directory is ours");
        let collected = workspace.collect(&cx).await?;
        assert_eq!((collected.conflicts.len(), files.read_text("/a").await?), (0, content.into()));
    }
    workspace.discard().await
}
