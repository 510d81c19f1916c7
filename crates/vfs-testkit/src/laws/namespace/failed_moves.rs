//! Moves and copies across mounts in which a step fails.

use vfs_core::{CopyRequest, ErrorKind, Operation};

use super::super::LawResult;
use super::cross_mount_fixture::{CASES, CrossMountFixture, DIRECTORY, MAX_STEPS, MIN_STEPS, MoveFaultSide};
use super::law_helpers::path;
use crate::fault_injector::{FaultInjector, FaultSchedule, InjectedFault};
use crate::namespace_factory::NamespaceFactory;

namespace_laws! {
    "NS24" a_move_that_fails_at_any_step_at_its_target_is_rolled_back,
    "NS24" a_move_that_fails_at_any_step_at_its_source_is_rolled_back,
    "NS24" a_move_whose_sources_cannot_be_deleted_is_rolled_back,
    "NS24" a_move_whose_target_disappears_leaves_the_source_complete,
    "NS24" a_copy_that_fails_at_any_step_leaves_nothing,
}

/// Moves with `fault` done at each call of `operations` at `end`, in turn, until there are no more.
async fn at_each_step(
    n: &NamespaceFactory,
    end: MoveFaultSide,
    operations: fn(Operation) -> bool,
    fault: InjectedFault,
) -> LawResult {
    for case in &CASES {
        for step in 1.. {
            assert!(step < MAX_STEPS, "there is no end to it");
            let injector = FaultInjector::new(operations, FaultSchedule::Only(step), fault.clone());
            let fixture = CrossMountFixture::with_faults(n, case, end, &injector).await?;
            let result = fixture.files.rename((case.rename)()).await;
            let what = format!("{fault:?} at step {step} of {end:?}");
            case.assert_outcome(&what, &result, &fixture.state().await?);
            if !injector.has_fired() {
                result?;
                assert!(step > MIN_STEPS, "{end:?} had hardly a call");
                break;
            }
            if let Err(error) = result {
                fixture.files.assert_fit_to_be_shown(&error);
                assert!(error.path().is_some(), "{what}: {error:?}");
            }
        }
    }
    Ok(())
}

async fn a_move_that_fails_at_any_step_at_its_target_is_rolled_back(n: &NamespaceFactory) -> LawResult {
    at_each_step(n, MoveFaultSide::Target, |_| true, InjectedFault::FailBefore).await?;
    at_each_step(n, MoveFaultSide::Target, |_| true, InjectedFault::FailAfter).await
}

async fn a_move_that_fails_at_any_step_at_its_source_is_rolled_back(n: &NamespaceFactory) -> LawResult {
    at_each_step(n, MoveFaultSide::Source, |_| true, InjectedFault::FailBefore).await?;
    at_each_step(n, MoveFaultSide::Source, |_| true, InjectedFault::FailAfter).await
}

async fn a_move_whose_sources_cannot_be_deleted_is_rolled_back(n: &NamespaceFactory) -> LawResult {
    let is_delete = |operation| operation == Operation::Delete;
    for case in &CASES {
        for (calls, fault) in [
            (FaultSchedule::Every, InjectedFault::FailBefore),
            (FaultSchedule::Every, InjectedFault::FailAfter),
            (FaultSchedule::From(1), InjectedFault::FailBefore),
            (FaultSchedule::From(2), InjectedFault::FailBefore),
            (FaultSchedule::From(3), InjectedFault::FailBefore),
        ] {
            let injector = FaultInjector::new(is_delete, calls, fault.clone());
            let fixture = CrossMountFixture::with_faults(n, case, MoveFaultSide::Source, &injector).await?;
            let result = fixture.files.rename((case.rename)()).await;
            case.assert_outcome(&format!("{calls:?} {fault:?}"), &result, &fixture.state().await?);
            if injector.has_fired() {
                fixture.files.refused(result, ErrorKind::Unavailable);
            }
        }
    }
    Ok(())
}

async fn a_move_whose_target_disappears_leaves_the_source_complete(n: &NamespaceFactory) -> LawResult {
    for case in &CASES {
        for step in 1..MAX_STEPS {
            let injector = FaultInjector::new(|_| true, FaultSchedule::From(step), InjectedFault::FailBefore);
            let fixture = CrossMountFixture::with_faults(n, case, MoveFaultSide::Target, &injector).await?;
            let result = fixture.files.rename((case.rename)()).await;
            let ([source, target], old, new) = (fixture.state().await?, case.unmoved(), case.moved());
            if result.is_ok() {
                assert_eq!([source, target], new);
            } else {
                assert_eq!(source, old[0], "step {step}: {result:?}");
                let is_whole = |(path, text): (&String, &String)| {
                    [&old[1], &new[1]].iter().any(|files| files.get(path) == Some(text))
                };
                assert!(target.iter().all(is_whole), "step {step}: {target:?}");
                assert!(old[1].keys().all(|path| target.contains_key(path)), "step {step}: {target:?}");
            }
            if !injector.has_fired() {
                break;
            }
        }
    }
    Ok(())
}

async fn a_copy_that_fails_at_any_step_leaves_nothing(n: &NamespaceFactory) -> LawResult {
    for end in [MoveFaultSide::Source, MoveFaultSide::Target] {
        for fault in [InjectedFault::FailBefore, InjectedFault::FailAfter] {
            for step in 1..MAX_STEPS {
                let injector = FaultInjector::new(|_| true, FaultSchedule::Only(step), fault.clone());
                let fixture = CrossMountFixture::with_faults(n, &DIRECTORY, end, &injector).await?;
                let result = fixture.files.copy(CopyRequest::new(path("/s/d"), path("/t/in/d"))).await;
                let [source, target] = fixture.state().await?;
                assert_eq!(source, DIRECTORY.unmoved()[0]);
                let expected = if result.is_ok() { DIRECTORY.moved() } else { DIRECTORY.unmoved() };
                assert_eq!(target, expected[1], "{fault:?} at step {step} of {end:?}: {result:?}");
                if !injector.has_fired() {
                    break;
                }
            }
        }
    }
    Ok(())
}
