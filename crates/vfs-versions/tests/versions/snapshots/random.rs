//! Random operations, and the laws, through checkpoints.

use std::sync::Arc;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use vfs_core::snapshots::SnapshotId;
use vfs_core::{Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, Layer, Operation, RenameRequest, Result};
use vfs_layers::FaultInjection;
use vfs_memory::MemoryBackend;
use vfs_testkit::{ALL, StrictBackend, Target, model};
use vfs_versions::{CheckpointedBackend, Checkpoints};

use super::{DIRECTORY, cx, fixture, restore, take, undo};
use crate::support::path;

#[derive(Debug, Clone)]
enum Step {
    Write(&'static str, u8),
    Append(&'static str),
    Delete(&'static str),
    Rename(&'static str, &'static str, bool),
    Copy(&'static str, &'static str, bool),
    Snapshot,
    Restore(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let file = || proptest::sample::select(vec!["/a", "/b", "/d", "/d/a", "/d/b", "/d/e", "/d/e/a", "/f/a"]);
    prop_oneof![
        4 => (file(), 0..4_u8).prop_map(|(at, text)| Step::Write(at, text)),
        1 => file().prop_map(Step::Append),
        2 => file().prop_map(Step::Delete),
        2 => (file(), file(), any::<bool>()).prop_map(|(from, to, over)| Step::Rename(from, to, over)),
        2 => (file(), file(), any::<bool>()).prop_map(|(from, to, over)| Step::Copy(from, to, over)),
        1 => Just(Step::Snapshot),
        1 => any::<usize>().prop_map(Step::Restore),
    ]
}

async fn run(files: &CheckpointedBackend, step: &Step, taken: &[SnapshotId]) -> Result<()> {
    let cx = &cx();
    match *step {
        Step::Write(at, text) => files.write_text(at, &text.to_string()).await.map(drop),
        Step::Append(at) => files.append_text(at, "+").await.map(drop),
        Step::Delete(at) => files.delete(cx, DeleteRequest::new(path(at)).recursive()).await.map(drop),
        Step::Rename(from, to, over) => {
            let request = RenameRequest::new(path(from), path(to));
            files.rename(cx, if over { request.overwrite() } else { request }).await.map(drop)
        }
        Step::Copy(from, to, over) => {
            let request = CopyRequest::new(path(from), path(to));
            files.copy(cx, if over { request.overwrite() } else { request }).await.map(drop)
        }
        Step::Snapshot => Ok(()),
        Step::Restore(_) if taken.is_empty() => Ok(()),
        Step::Restore(which) => restore(files, &taken[which % taken.len()]).await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn all_operations_undone_and_all_snapshots_restored_give_what_was(steps in proptest::collection::vec(step(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let fixture = fixture();
            fixture.inner.create_text("/d/a", "at first").await.expect("written");
            let first = fixture.inner.snapshot();
            let (mut taken, mut states) = (Vec::new(), Vec::new());
            for step in &steps {
                if matches!(step, Step::Snapshot) {
                    taken.push(take(&fixture.files, "").await);
                    states.push(fixture.inner.snapshot());
                }
                // Many of them are refused, as there is nothing, or something, at a path.
                run(&fixture.files, step, &taken).await.ok();
                if let Step::Restore(which) = step && !taken.is_empty() {
                    assert!(states[which % taken.len()].diff(&fixture.inner.snapshot()).is_empty());
                }
            }
            undo(&fixture.again(), usize::MAX).await.expect("undone");
            let differs = first.diff(&fixture.inner.snapshot());
            assert!(differs.is_empty(), "{}", differs.unified());
        });
    }

    #[test]
    fn an_undo_or_restore_among_faults_leaves_a_state_that_it_can_be_repeated_from(
        steps in proptest::collection::vec(step(), 1..12),
        seed in any::<u64>(),
        is_after in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let fixture = fixture();
            fixture.inner.create_text("/d/a", "at first").await.expect("written");
            let first = take(&fixture.files, "first").await;
            let before = fixture.inner.snapshot();
            for step in &steps {
                run(&fixture.files, step, std::slice::from_ref(&first)).await.ok();
            }
            let fault = FaultInjection::new(ErrorKind::Unavailable).randomly(0.2, seed).only(Operation::Write);
            let fault = fault.only(Operation::Delete).only(Operation::Rename).only(Operation::Download);
            let fault = if is_after { fault.after() } else { fault };
            let failing = fixture.failing(&fault);
            for _ in 0..10 {
                let old = fixture.inner.snapshot();
                match undo(&failing, 1).await {
                    Ok(_) => {}
                    Err(error) if error.message().contains("could not be rolled back") => {}
                    Err(_) if is_after => {}
                    Err(_) => assert!(old.diff(&fixture.inner.snapshot()).is_empty(), "nothing is half undone"),
                }
            }
            undo(&fixture.again(), usize::MAX).await.expect("undone");
            assert!(before.diff(&fixture.inner.snapshot()).is_empty());
        });
    }
}

/// An empty store in memory that is checkpointed, strictly observed on either side.
fn target() -> Target {
    let files = Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new())));
    let checkpoints = Checkpoints::new(Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new()))), path(DIRECTORY));
    Target::new(Arc::new(StrictBackend::new(checkpoints.layer(files))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_holds_through_checkpoints() {
    let mut checked = 0;
    for law in ALL {
        let target = target();
        if law.need.missing_in(&target).is_none() {
            let answer = (law.run)(&target).await;
            assert!(answer.is_ok(), "{} {}: {answer:?}", law.number, law.name);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} laws");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_operations_through_checkpoints_do_what_they_do_without(steps in model::steps()) {
        model::check(&target(), &steps);
    }
}
