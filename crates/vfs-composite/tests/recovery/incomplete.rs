//! Records of which not all can be settled at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use vfs_composite::{RecoveryObserver, RecoveryOptions, RecoveryOutcome};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, BackendExt, ErrorKind, Interceptor, OpContext, Operation, Result, VfsPath};

use crate::faults::Faults;
use crate::{Namespace, path};

#[tokio::test]
async fn a_later_recovery_leaves_files_alone_that_were_settled_by_an_earlier_one() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.source.create_text("/d/b", "b").await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "b"]).await?).await?;
    namespace.target.create_text("/d/a", "of somebody else").await?;
    assert!(matches!(namespace.recover_one().await?, RecoveryOutcome::Incomplete(_)));
    assert_eq!(namespace.target.read_text("/d/b").await?, "b");
    // A deliberate copy.
    namespace.source.create_text("/d/b", "b").await?;
    assert!(matches!(namespace.recover_one().await?, RecoveryOutcome::Incomplete(_)));
    assert_eq!(namespace.source.read_text("/d/b").await?, "b");
    // The other file can only be finished, whatever becomes of the one that has arrived.
    namespace.target.delete_file("/d/a").await?;
    namespace.target.delete_file("/d/b").await?;
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::FinishedExcept(vec![path("/d")]));
    assert_eq!(namespace.target.read_text("/d/a").await?, "a");
    assert_eq!(namespace.source.read_text("/d/b").await?, "b");
    Ok(())
}

#[tokio::test]
async fn a_source_of_equal_content_in_another_version_is_deleted_only_after_a_rollback_had_begun() -> Result<()> {
    for is_rolling_back in [false, true] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.target.create_text("/d/a", "a").await?;
        let mut record = namespace.record_of(&["a"]).await?;
        record["files"][0]["version"] = json!("another version");
        record["is_rolling_back"] = json!(is_rolling_back);
        namespace.write_record("move-1-0.json", &record).await?;
        match namespace.recover_one().await? {
            RecoveryOutcome::Finished => assert!(is_rolling_back),
            RecoveryOutcome::Incomplete(error) => {
                assert_eq!((is_rolling_back, error.kind()), (false, ErrorKind::Conflict))
            }
            outcome => panic!("{outcome:?}"),
        }
        assert_eq!(namespace.source.exists("/d/a").await?, !is_rolling_back);
        assert_eq!(namespace.target.read_text("/d/a").await?, "a");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_at_neither_end_is_reported_and_its_record_stays() -> Result<()> {
    for arrived in [None, Some("/d/b")] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.source.create_text("/d/b", "b").await?;
        namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "b"]).await?).await?;
        namespace.source.delete_file("/d/a").await?;
        if let Some(arrived) = arrived {
            namespace.target.create_text(arrived, "b").await?;
        }
        for _ in 0..2 {
            let RecoveryOutcome::Incomplete(error) = namespace.recover_one().await? else {
                panic!("a file is missing")
            };
            assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some("/d/a")));
            assert_eq!(namespace.records().await?, 1);
        }
        assert_eq!(namespace.source.exists("/d/b").await?, arrived.is_none());
    }
    Ok(())
}

/// Remembers the moves of which files are copied.
#[derive(Debug, Default)]
struct CopiedMoves(Mutex<Vec<String>>);

impl RecoveryObserver for CopiedMoves {
    fn on_recovery(&self, from: &VfsPath, to: &VfsPath) {
        self.0.lock().expect("not poisoned").push(format!("{from} {to}"));
    }
}

#[tokio::test]
async fn an_observer_is_called_once_before_files_are_copied_and_only_then() -> Result<()> {
    for copied in [["a", "b", "c"].as_slice(), &[]] {
        let namespace = Namespace::new()?;
        for name in ["a", "b", "c", "z"] {
            namespace.source.create_text(&format!("/d/{name}"), name).await?;
            if !copied.contains(&name) {
                namespace.target.create_text(&format!("/d/{name}"), name).await?;
            }
        }
        namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "b", "c", "z"]).await?).await?;
        let moves = Arc::new(CopiedMoves::default());
        let options = RecoveryOptions::default().observer(Arc::clone(&moves) as Arc<dyn RecoveryObserver>);
        let recovery = namespace.files.recover_with(&OpContext::new(), options).await?;
        assert_eq!(recovery.moves[0].outcome, RecoveryOutcome::Finished);
        let expected: &[&str] = if copied.is_empty() { &[] } else { &["/d /m/d"] };
        assert_eq!(*moves.0.lock().expect("not poisoned"), expected);
    }
    Ok(())
}

#[tokio::test]
async fn moves_beyond_the_time_limit_are_deferred() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    for number in 0..3 {
        namespace.write_record(&format!("move-{number}-0.json"), &namespace.record_of(&["a"]).await?).await?;
    }
    let options = RecoveryOptions::default().time_limit(Duration::ZERO);
    let recovery = namespace.files.recover_with(&OpContext::new(), options).await?;
    assert_eq!((recovery.moves.len(), recovery.deferred, namespace.records().await?), (0, 3, 3));
    Ok(())
}

#[tokio::test]
async fn each_recovery_settles_a_file_whatever_time_it_has() -> Result<()> {
    let names = ["a", "b", "c", "z"];
    for arrived in [&names[..0], &names[..1]] {
        let namespace = Namespace::new()?;
        for name in names {
            namespace.source.create_text(&format!("/d/{name}"), name).await?;
        }
        for name in arrived {
            namespace.target.create_text(&format!("/d/{name}"), name).await?;
        }
        let mut record = namespace.record_of(&names).await?;
        record["has_arrived"] = json!(!arrived.is_empty());
        namespace.write_record("move-1-0.json", &record).await?;
        let options = RecoveryOptions::default().yield_after(Duration::ZERO);
        for settled in 1..names.len() {
            let recovery = namespace.files.recover_with(&OpContext::new(), options.clone()).await?;
            let at_source = namespace.source.glob_files("/d/*").await?.len();
            if arrived.is_empty() {
                assert!(
                    matches!(recovery.moves[0].outcome, RecoveryOutcome::Unfinished { remaining: 4 }),
                    "{recovery:?}"
                );
                assert_eq!(at_source, names.len(), "it is still being looked at");
            } else {
                let remaining = names.len() - settled;
                assert_eq!(recovery.moves[0].outcome, RecoveryOutcome::Unfinished { remaining });
                assert_eq!((at_source, namespace.target.glob_files("/d/*").await?.len()), (remaining, settled));
            }
        }
        let recovery = namespace.files.recover_with(&OpContext::new(), options).await?;
        let outcome = if arrived.is_empty() { RecoveryOutcome::RolledBack } else { RecoveryOutcome::Finished };
        assert_eq!((&recovery.moves[0].outcome, namespace.records().await?), (&outcome, 0));
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_file_is_reported_whatever_time_each_recovery_has_and_blocks_no_other_move() -> Result<()> {
    let namespace = Namespace::new()?;
    let names = ["a", "b", "c"];
    for name in names {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    namespace.write_record("move-1-0.json", &namespace.record_of(&names).await?).await?;
    namespace.write_record("move-2-0.json", &namespace.record_of(&["b"]).await?).await?;
    namespace.source.delete_file("/d/a").await?;
    let options = RecoveryOptions::default().yield_after(Duration::ZERO);
    let cx = OpContext::new();
    let recover = || namespace.files.recover_with(&cx, options.clone());
    for _ in 0..2 {
        let recovery = recover().await?;
        assert!(matches!(recovery.moves[0].outcome, RecoveryOutcome::Unfinished { remaining: 3 }), "{recovery:?}");
        assert_eq!((recovery.moves.len(), recovery.deferred), (1, 1));
    }
    for moves in [2, 1] {
        let recovery = recover().await?;
        let RecoveryOutcome::Incomplete(error) = &recovery.moves[0].outcome else { panic!("{recovery:?}") };
        assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some("/d/a")));
        assert_eq!((recovery.moves.len(), recovery.deferred, namespace.records().await?), (moves, 0, 1));
    }
    namespace.source.create_text("/d/a", "a").await?;
    for _ in 0..2 {
        let recovery = recover().await?;
        assert!(matches!(recovery.moves[0].outcome, RecoveryOutcome::Unfinished { remaining: 3 }), "{recovery:?}");
    }
    assert_eq!(recover().await?.moves[0].outcome, RecoveryOutcome::RolledBack);
    Ok(())
}

#[tokio::test]
async fn each_recovery_makes_progress_if_a_later_file_is_the_one_that_has_arrived() -> Result<()> {
    let namespace = Namespace::new()?;
    let names = ["a", "b", "c"];
    for name in names {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    namespace.target.create_text("/d/c", "c").await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&names).await?).await?;
    let options = RecoveryOptions::default().yield_after(Duration::ZERO);
    for at_source in [3, 3, 2, 1] {
        let recovery = namespace.files.recover_with(&OpContext::new(), options.clone()).await?;
        assert!(matches!(recovery.moves[0].outcome, RecoveryOutcome::Unfinished { .. }), "{recovery:?}");
        assert_eq!(namespace.source.glob_files("/d/*").await?.len(), at_source);
    }
    let recovery = namespace.files.recover_with(&OpContext::new(), options).await?;
    assert_eq!(recovery.moves[0].outcome, RecoveryOutcome::Finished);
    Ok(())
}

#[tokio::test]
async fn files_that_were_settled_before_the_time_limit_stay_settled() -> Result<()> {
    let late = Faults::new(&[Operation::Write], ErrorKind::Timeout);
    let namespace = Namespace::with(|source| source, |target| late.layer(target))?;
    for name in ["a", "b"] {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    namespace.target.create_text("/d/a", "a").await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "b"]).await?).await?;
    let RecoveryOutcome::Incomplete(error) = namespace.recover_one().await? else { panic!("it cannot be finished") };
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(!namespace.source.exists("/d/a").await? && namespace.source.exists("/d/b").await?);
    // The record has only the other one, so this copy is left alone.
    namespace.source.create_text("/d/a", "a").await?;
    late.set_failing(false);
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::FinishedExcept(vec![path("/d")]));
    assert_eq!(namespace.target.read_text("/d/b").await?, "b");
    Ok(())
}

/// Holds up listings until an observer is called.
#[derive(Debug)]
struct UntilNotice(Semaphore);

impl RecoveryObserver for UntilNotice {
    fn on_recovery(&self, _from: &VfsPath, _to: &VfsPath) {
        self.0.close();
    }
}

impl Interceptor for UntilNotice {
    fn name(&self) -> &'static str {
        "until_notice"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION == Operation::Stat && cx.actor() == Some("slow") {
            self.0.acquire().await.expect_err("it is closed by the notice");
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn an_observer_is_called_if_a_recovery_takes_long_without_copying() -> Result<()> {
    let slow = Arc::new(UntilNotice(Semaphore::new(0)));
    let layer = Arc::clone(&slow);
    let namespace = Namespace::with(|source| source, |target| Arc::new(Intercepted::new(target, layer)))?;
    namespace.source.create_text("/d/a", "a").await?;
    let mut record = namespace.record_of(&["a"]).await?;
    record["actor"] = json!("slow");
    namespace.write_record("move-1-0.json", &record).await?;
    let options = RecoveryOptions::default().observer(slow);
    let recovery = namespace.files.recover_with(&OpContext::new(), options).await?;
    assert_eq!(recovery.moves[0].outcome, RecoveryOutcome::RolledBack);
    Ok(())
}
