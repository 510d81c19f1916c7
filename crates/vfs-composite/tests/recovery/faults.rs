//! Recovery with backends that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use vfs_composite::{CompositeBackend, RecoveryOutcome};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, Error, ErrorKind, Interceptor, OpContext, Operation, RenameRequest, Result, VfsPath,
};

use crate::{Namespace, path, store};

/// Fails operations, and counts those that it was sent.
#[derive(Debug)]
pub(crate) struct Faults {
    operations: &'static [Operation],
    kind: ErrorKind,
    is_failing: AtomicBool,
    calls: AtomicUsize,
}

impl Faults {
    pub(crate) fn new(operations: &'static [Operation], kind: ErrorKind) -> Arc<Self> {
        Arc::new(Self { operations, kind, is_failing: AtomicBool::new(true), calls: AtomicUsize::new(0) })
    }

    /// Returns `backend` with these faults.
    pub(crate) fn layer(self: &Arc<Self>, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(backend, Arc::clone(self)))
    }

    pub(crate) fn set_failing(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::SeqCst);
    }
}

impl Interceptor for Faults {
    fn name(&self) -> &'static str {
        "faults"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.is_failing.load(Ordering::SeqCst) && self.operations.contains(&Q::OPERATION) {
            return Err(Error::of(self.kind));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_rollback_with_nothing_at_the_target_needs_no_right_to_delete_there() -> Result<()> {
    let denied = Faults::new(&[Operation::Delete], ErrorKind::PermissionDenied);
    let namespace = Namespace::with(|source| source, |target| denied.layer(target))?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&["a"]).await?).await?;
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::RolledBack);
    assert_eq!(namespace.records().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_recovery_ends_at_the_first_temporary_error_and_defers_moves_of_the_same_mount() -> Result<()> {
    let down = Faults::new(Operation::ALL, ErrorKind::Unavailable);
    down.set_failing(false);
    let namespace = Namespace::with(|source| source, |target| down.layer(target))?;
    let names = ["a", "b", "c"];
    namespace.source.create_text("/e/a", "a").await?;
    for name in names {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    for number in 0..2 {
        let mut record = namespace.record_of(&names).await?;
        record["has_arrived"] = json!(true);
        namespace.write_record(&format!("move-{number}-0.json"), &record).await?;
    }
    // A move between others of the mounts is none of the failed one's.
    let mut record = namespace.record_of(&["a"]).await?.to_string().replace("/m", "/n");
    record = record.replace("\"/d", "\"/e").replace("/n/d", "/n/e");
    namespace.journal.create_text("/moves/move-2-0.json", &record).await?;
    let other = CompositeBackend::new(Arc::new(namespace.source.clone()))
        .with_mount("/m", down.layer(Arc::new(namespace.target.clone())))?
        .with_mount("/n", Arc::new(namespace.target.clone()))?;
    let other = other.with_identity(&path("/"), store("one"))?.with_identity(&path("/m"), store("two"))?;
    let other = other.with_identity(&path("/n"), store("two"))?;
    let other = other.with_journal(Arc::new(namespace.journal.clone()), path("/moves"));
    down.set_failing(true);
    down.calls.store(0, Ordering::SeqCst);
    let recovery = other.recover(&OpContext::new()).await?;
    let [moved, unrelated] = &recovery.moves[..] else { panic!("two moves: {recovery:?}") };
    assert_eq!((unrelated.to.as_str(), &unrelated.outcome), ("/n/e", &RecoveryOutcome::RolledBack));
    assert!(matches!(&moved.outcome, RecoveryOutcome::Incomplete(error) if error.is_temporary()), "{recovery:?}");
    assert_eq!((recovery.deferred, down.calls.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(namespace.records().await?, 2);
    down.set_failing(false);
    let recovery = other.recover(&OpContext::new()).await?;
    assert_eq!(recovery.moves[0].outcome, RecoveryOutcome::Finished);
    Ok(())
}

/// Fails deletions of files with these names.
#[derive(Debug)]
struct Undeletable(&'static [&'static str]);

impl Interceptor for Undeletable {
    fn name(&self) -> &'static str {
        "undeletable"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_named = |path: &VfsPath| path.name().is_some_and(|name| self.0.contains(&name));
        if Q::OPERATION == Operation::Delete && request.as_request_ref().paths().any(is_named) {
            let error = Error::new(ErrorKind::PermissionDenied, "db.internal:5432 refuses it");
            return Err(error.with_generic_model_message());
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Loses the answers of an operation on files with this name.
#[derive(Debug)]
struct LostAnswers(Operation, &'static str);

impl Interceptor for LostAnswers {
    fn name(&self) -> &'static str {
        "lost_answers"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_named = request.as_request_ref().paths().any(|path| path.name() == Some(self.1));
        let answer = request.send(inner, cx).await?;
        if Q::OPERATION == self.0 && is_named { Err(Error::of(ErrorKind::Unavailable)) } else { Ok(answer) }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_move_whose_rollback_lost_only_an_answer_of_the_target_is_rolled_back() -> Result<()> {
    let namespace = Namespace::with(
        |source| Arc::new(Intercepted::new(source, Arc::new(Undeletable(&["c"])))),
        |target| Arc::new(Intercepted::new(target, Arc::new(LostAnswers(Operation::Delete, "b")))),
    )?;
    for name in ["a", "b", "c"] {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    let request = RenameRequest::new(path("/d"), path("/m/d"));
    let error = namespace.files.rename(&OpContext::new(), request).await.expect_err("a source cannot be deleted");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert_eq!((namespace.source.glob_files("/d/*").await?.len(), namespace.records().await?), (3, 0));
    assert!(!namespace.target.exists("/d").await?);

    let namespace = Namespace::with(
        |source| source,
        |target| Arc::new(Intercepted::new(target, Arc::new(LostAnswers(Operation::Write, "f")))),
    )?;
    namespace.source.create_text("/f", "new").await?;
    namespace.target.create_text("/f", "old").await?;
    let request = RenameRequest::new(path("/f"), path("/m/f")).overwrite();
    let error = namespace.files.rename(&OpContext::new(), request).await.expect_err("the answer is lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!((namespace.target.read_text("/f").await?.as_str(), namespace.records().await?), ("old", 0));
    Ok(())
}

/// The content that is put back at the source gets a version of its own there, as on a disk.
#[tokio::test]
async fn a_source_that_was_put_back_without_an_answer_is_moved_by_the_next_recovery() -> Result<()> {
    let namespace = Namespace::with(
        |source| {
            let source = Arc::new(Intercepted::new(source, Arc::new(Undeletable(&["c"]))));
            Arc::new(Intercepted::new(source, Arc::new(LostAnswers(Operation::Write, "b"))))
        },
        |target| target,
    )?;
    for name in ["a", "b", "c"] {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    let request = RenameRequest::new(path("/d"), path("/m/d"));
    let error = namespace.files.rename(&OpContext::new(), request).await.expect_err("a source cannot be deleted");
    assert!(error.message().contains("1 files could not be restored"), "{error}");
    let [entry] = &namespace.journal.list_dir("/moves").await?[..] else { panic!("one record") };
    let record = namespace.journal.read_text(entry.path.as_str()).await?;
    let mut record: serde_json::Value = serde_json::from_str(&record).expect("a record");
    record["files"][0]["version"] = json!("another version");
    namespace.journal.write_text(entry.path.as_str(), &record.to_string()).await?;
    // Other contents are its owner's.
    namespace.source.write_text("/d/b", "changed since").await?;
    assert!(matches!(namespace.recover_one().await?, RecoveryOutcome::Incomplete(_)));
    namespace.source.write_text("/d/b", "b").await?;
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::FinishedExcept(vec![path("/d")]));
    assert_eq!(
        (namespace.source.glob_files("/d/*").await?.len(), namespace.target.glob_files("/d/*").await?.len()),
        (2, 1)
    );
    assert_eq!((namespace.target.read_text("/d/b").await?.as_str(), namespace.records().await?), ("b", 0));
    Ok(())
}

#[tokio::test]
async fn only_files_that_a_failed_move_could_not_put_back_are_moved_by_a_recovery() -> Result<()> {
    let namespace = Namespace::with(
        |source| Arc::new(Intercepted::new(source, Arc::new(Undeletable(&["c"])))),
        |target| Arc::new(Intercepted::new(target, Arc::new(Undeletable(&["a"])))),
    )?;
    for name in ["a", "b", "c"] {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    let request = RenameRequest::new(path("/d"), path("/m/d"));
    let error = namespace.files.rename(&OpContext::new(), request).await.expect_err("a source cannot be deleted");
    assert!(error.message().contains("1 files could not be restored"), "{error}");
    let words = error.for_model();
    assert!(words.contains("1 files could not be restored") && !words.contains("db.internal"), "{words}");
    // The error says that the others were not moved, and the caller copies one.
    namespace.target.create_text("/d/b", "b").await?;
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::FinishedExcept(vec![path("/d")]));
    assert_eq!(namespace.records().await?, 0);
    for (name, is_at_source) in [("a", false), ("b", true), ("c", true)] {
        assert_eq!(namespace.source.exists(&format!("/d/{name}")).await?, is_at_source, "{name}");
    }
    assert_eq!(namespace.target.read_text("/d/a").await?, "a");
    Ok(())
}

/// The content that is put back at the target gets a version of its own there, as on a disk.
#[tokio::test]
async fn an_overwriting_move_that_was_rolled_back_is_settled_if_only_its_record_stays() -> Result<()> {
    let denied = Faults::new(&[Operation::Delete], ErrorKind::PermissionDenied);
    let namespace = Namespace::with(|source| denied.layer(source), |target| target)?;
    let fault = Faults::new(&[Operation::Delete], ErrorKind::PermissionDenied);
    let files = namespace.files.clone().with_journal(fault.layer(Arc::new(namespace.journal.clone())), path("/moves"));
    namespace.source.create_text("/f", "new").await?;
    namespace.target.create_text("/f", "old").await?;
    let request = RenameRequest::new(path("/f"), path("/m/f")).overwrite();
    let error = files.rename(&OpContext::new(), request).await.expect_err("the source cannot be deleted");
    assert!(error.message().contains("nothing was moved"), "{error}");
    assert_eq!(namespace.records().await?, 1);
    let [entry] = &namespace.journal.list_dir("/moves").await?[..] else { panic!("one record") };
    let record = namespace.journal.read_text(entry.path.as_str()).await?;
    let mut record: serde_json::Value = serde_json::from_str(&record).expect("a record");
    assert_eq!(record["is_rolling_back"], json!(true));
    record["files"][0]["replaces"] = json!("another version");
    namespace.journal.write_text(entry.path.as_str(), &record.to_string()).await?;
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::RolledBack);
    assert_eq!(namespace.source.read_text("/f").await?, "new");
    assert_eq!(namespace.target.read_text("/f").await?, "old");
    Ok(())
}
