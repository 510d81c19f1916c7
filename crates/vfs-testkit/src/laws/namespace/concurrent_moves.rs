//! Moves across mounts beside writes of other callers, and cancelled moves.

use std::sync::Arc;

use futures::future::{Either, poll_immediate, select};
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{Backend, ErrorKind, OpContext, RenameResult, Result, WriteMode, WriteRequest};

use super::super::LawResult;
use super::super::law_helpers::cx;
use super::cross_mount_fixture::{
    CASES, CrossMountFixture, DIRECTORY, MAX_STEPS, MIN_STEPS, MoveCase, MoveFaultSide, OVER_A_FILE,
};
use super::law_helpers::{FileTexts, path};
use crate::fault_injector::{CallGate, FaultInjector, FaultSchedule, InjectedFault};
use crate::namespace_factory::NamespaceFactory;
use crate::strict_backend::StrictBackend;

namespace_laws! {
    "NS25" a_change_of_the_source_during_a_move_is_not_lost,
    "NS25" a_file_that_is_made_in_the_source_during_a_move_is_not_lost,
    "NS25" a_change_of_the_target_during_a_move_is_not_lost,
    "NS26" a_move_that_is_dropped_at_any_step_is_complete_or_absent,
    "NS26" a_move_that_is_dropped_after_any_time_is_complete_or_absent,
    "NS26" a_move_that_is_cancelled_at_any_step_is_complete_or_absent,
}

const MEANWHILE: &str = "meanwhile\n";

/// Moves while another caller writes `file` at `end`, before each of its calls in turn, and passes the final state to `check`.
async fn written_at_each_step(
    n: &NamespaceFactory,
    case: &MoveCase,
    end: MoveFaultSide,
    file: &str,
    check: impl Fn(&str, &Result<RenameResult>, [FileTexts; 2]),
) -> LawResult {
    let write = WriteRequest::new(path(file), MEANWHILE).mode(WriteMode::Overwrite);
    for step in 1.. {
        assert!(step < MAX_STEPS, "there is no end to it");
        let injector = FaultInjector::new(|_| true, FaultSchedule::Only(step), InjectedFault::Write(write.clone()));
        let fixture = CrossMountFixture::with_faults(n, case, end, &injector).await?;
        let result = fixture.files.rename((case.rename)()).await;
        if !injector.has_fired() {
            assert!(step > MIN_STEPS, "{end:?} had hardly a call");
            return result.map(drop);
        }
        check(&format!("step {step}: {result:?}"), &result, fixture.state().await?);
    }
    Ok(())
}

fn holds(files: &FileTexts, file: &str, text: &str) -> bool {
    files.get(file).is_some_and(|found| found == text)
}

async fn a_change_of_the_source_during_a_move_is_not_lost(n: &NamespaceFactory) -> LawResult {
    written_at_each_step(n, &DIRECTORY, MoveFaultSide::Source, "/d/b/c", |what, result, [source, target]| {
        let moved = |file: &str| format!("/in{file}");
        let is_preserved = holds(&source, "/d/b/c", MEANWHILE) || holds(&target, "/in/d/b/c", MEANWHILE);
        assert!(is_preserved, "{what}: {source:?} {target:?}");
        for (file, text) in [("/d/a", "a\n"), ("/d/e", "e\n")] {
            let place = if result.is_ok() { holds(&target, &moved(file), text) } else { holds(&source, file, text) };
            assert!(place, "{file}, {what}: {source:?} {target:?}");
        }
        assert!(result.is_err() || target.contains_key("/in/d/b/c"), "{what}: {target:?}");
    })
    .await?;
    written_at_each_step(n, &OVER_A_FILE, MoveFaultSide::Source, "/f", |what, result, [source, target]| {
        let is_preserved = holds(&source, "/f", MEANWHILE) || holds(&target, "/f", MEANWHILE);
        assert!(is_preserved, "{what}: {source:?} {target:?}");
        // If the move fails, the version that it has copied may stay at the target, as no other copy of it exists.
        let is_whole =
            holds(&target, "/f", "new\n") || holds(&target, "/f", if result.is_ok() { MEANWHILE } else { "old\n" });
        assert!(is_whole, "{what}: {source:?} {target:?}");
    })
    .await
}

async fn a_file_that_is_made_in_the_source_during_a_move_is_not_lost(n: &NamespaceFactory) -> LawResult {
    written_at_each_step(n, &DIRECTORY, MoveFaultSide::Source, "/d/b/made", |what, result, [source, mut target]| {
        let mut expected = if result.is_ok() { DIRECTORY.moved() } else { DIRECTORY.unmoved() };
        if result.is_ok() && !source.contains_key("/d/b/made") {
            assert_eq!(target.remove("/in/d/b/made").as_deref(), Some(MEANWHILE), "{what}");
        } else {
            expected[0].insert("/d/b/made".into(), MEANWHILE.into());
        }
        assert_eq!([source, target], expected, "{what}");
    })
    .await
}

async fn a_change_of_the_target_during_a_move_is_not_lost(n: &NamespaceFactory) -> LawResult {
    for (case, file) in [(&DIRECTORY, "/in/d/b/c"), (&OVER_A_FILE, "/f")] {
        written_at_each_step(n, case, MoveFaultSide::Target, file, |what, result, [source, target]| {
            // The file stays, unless it was there before the move checked its target, and the move overwrites.
            let may_replace = (case.rename)().mode == TransferTargetMode::Overwrite;
            let is_replaced = may_replace && result.is_ok() && target.get(file) == case.moved()[1].get(file);
            assert!(holds(&target, file, MEANWHILE) || is_replaced, "{what}: {target:?}");
            assert_eq!(source, if result.is_ok() { case.moved() } else { case.unmoved() }[0], "{what}");
            for (other, text) in if result.is_ok() { case.after[1] } else { case.before[1] } {
                assert!(*other == file || holds(&target, other, text), "{other}, {what}: {target:?}");
            }
        })
        .await?;
    }
    Ok(())
}

/// Drops or cancels a move at each call at each end in turn, and checks the outcome.
async fn left_at_each_step(n: &NamespaceFactory, is_dropped: bool) -> LawResult {
    for case in &CASES {
        for end in [MoveFaultSide::Source, MoveFaultSide::Target] {
            for step in 1..MAX_STEPS {
                let gate = CallGate::new();
                let injector =
                    FaultInjector::new(|_| true, FaultSchedule::Only(step), InjectedFault::Wait(Arc::clone(&gate)));
                let fixture = CrossMountFixture::with_faults(n, case, end, &injector).await?;
                let cx = OpContext::new();
                let moving = fixture.files.backend.rename(&cx, (case.rename)());
                let what = format!("left at step {step} of {end:?}");
                let moving = match select(moving, Box::pin(gate.reached())).await {
                    Either::Left((result, _)) => {
                        case.assert_outcome(&what, &result, &fixture.state().await?);
                        result?;
                        assert!(step > MIN_STEPS, "{end:?} had hardly a call");
                        break;
                    }
                    Either::Right(((), moving)) => moving,
                };
                if is_dropped {
                    drop(moving);
                    gate.open();
                    let whole = [case.unmoved(), case.moved()];
                    let state = fixture.settled(&whole).await?;
                    assert!(whole.contains(&state), "{what}: {state:?}");
                    continue;
                }
                cx.cancel_token().cancel();
                gate.open();
                let result = moving.await;
                case.assert_outcome(&what, &result, &fixture.state().await?);
                if let Err(error) = result {
                    assert_eq!(error.kind(), ErrorKind::Cancelled, "{what}: {error:?}");
                }
            }
        }
    }
    Ok(())
}

async fn a_move_that_is_dropped_at_any_step_is_complete_or_absent(n: &NamespaceFactory) -> LawResult {
    left_at_each_step(n, true).await
}

async fn a_move_that_is_cancelled_at_any_step_is_complete_or_absent(n: &NamespaceFactory) -> LawResult {
    left_at_each_step(n, false).await
}

async fn a_move_that_is_dropped_after_any_time_is_complete_or_absent(n: &NamespaceFactory) -> LawResult {
    for case in &CASES {
        let whole = [case.unmoved(), case.moved()];
        for polls in 0..60 {
            let strict = |_, backend: &Arc<dyn Backend>| -> Arc<dyn Backend> {
                Arc::new(StrictBackend::new(Arc::clone(backend)))
            };
            let fixture = CrossMountFixture::set(n, case, strict).await?;
            let cx = cx();
            let mut moving = fixture.files.backend.rename(&cx, (case.rename)());
            let mut result = None;
            for _ in 0..polls {
                result = poll_immediate(&mut moving).await;
                if result.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(moving);
            let state = fixture.settled(&whole).await?;
            assert!(whole.contains(&state), "after {polls} polls: {state:?}");
            if let Some(result) = result {
                case.assert_outcome(&format!("after {polls} polls"), &result, &state);
            }
        }
    }
    Ok(())
}
