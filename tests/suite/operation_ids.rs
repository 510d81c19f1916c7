//! Operation ids of callers, beside what layers and mounts write on their own behalf.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vfs_composite::{CompositeBackend, MountIdentity, RecoveryOutcome};
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, Error, ErrorKind, ExecuteRequest, Interceptor, OpContext, OperationId, RenameRequest, Result,
    VfsPath, WriteMode, WriteRequest,
};
use vfs_sandbox::Workspace;
use vfs_store::{MemoryStore, StoreBackend};
use vfs_versions::{Checkpoints, OverlayBackend};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use super::links::path;

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
async fn an_undo_undoes_every_change_of_callers_that_use_one_id() -> Result<()> {
    let cx = with_id("run-1");
    let files = Checkpoints::new(store(), path("/checkpoints")).over(store());
    files.create_text("/a", "old").await?;
    for _ in 0..2 {
        files.write(&cx, WriteRequest::new(path("/a"), "new").mode(WriteMode::Overwrite)).await?;
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
