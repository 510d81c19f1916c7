//! Moves and copies across mounts of which a step fails.

use vfs_core::{CopyRequest, ErrorKind, Operation};

use super::super::LawResult;
use super::stage::{CASES, DIRECTORY, Side, MIN_STEPS, MAX_STEPS, Stage};
use super::steps::path;
use crate::meddling::{Calls, Deed, Meddling};
use crate::namespaces::NamespaceFactory;

namespace_laws! {
    "NS24" a_move_that_fails_at_any_step_at_its_target_is_taken_back,
    "NS24" a_move_that_fails_at_any_step_at_its_source_is_taken_back,
    "NS24" a_move_whose_sources_cannot_be_deleted_is_taken_back,
    "NS24" a_move_whose_target_goes_away_leaves_the_source_whole,
    "NS24" a_copy_that_fails_at_any_step_leaves_nothing,
}

/// Moves with `deed` done at each call of `operations` at `end`, in turn, until there are no more.
async fn at_each_step(n: &NamespaceFactory, end: Side, operations: fn(Operation) -> bool, deed: Deed) -> LawResult {
    for case in &CASES {
        for step in 1.. {
            assert!(step < MAX_STEPS, "there is no end to it");
            let meddling = Meddling::new(operations, Calls::Only(step), deed.clone());
            let stage = Stage::meddled(n, case, end, &meddling).await?;
            let result = stage.files.rename((case.rename)()).await;
            let what = format!("{deed:?} at step {step} of {end:?}");
            case.assert_told(&what, &result, &stage.state().await?);
            if !meddling.has_struck() {
                result?;
                assert!(step > MIN_STEPS, "{end:?} was hardly asked");
                break;
            }
            if let Err(error) = result {
                stage.files.assert_fit_to_be_shown(&error);
                assert!(error.path().is_some(), "{what}: {error:?}");
            }
        }
    }
    Ok(())
}

async fn a_move_that_fails_at_any_step_at_its_target_is_taken_back(n: &NamespaceFactory) -> LawResult {
    at_each_step(n, Side::Target, |_| true, Deed::FailBefore).await?;
    at_each_step(n, Side::Target, |_| true, Deed::FailAfter).await
}

async fn a_move_that_fails_at_any_step_at_its_source_is_taken_back(n: &NamespaceFactory) -> LawResult {
    at_each_step(n, Side::Source, |_| true, Deed::FailBefore).await?;
    at_each_step(n, Side::Source, |_| true, Deed::FailAfter).await
}

async fn a_move_whose_sources_cannot_be_deleted_is_taken_back(n: &NamespaceFactory) -> LawResult {
    let is_delete = |operation| operation == Operation::Delete;
    for case in &CASES {
        for (calls, deed) in [
            (Calls::Every, Deed::FailBefore),
            (Calls::Every, Deed::FailAfter),
            (Calls::From(1), Deed::FailBefore),
            (Calls::From(2), Deed::FailBefore),
            (Calls::From(3), Deed::FailBefore),
        ] {
            let meddling = Meddling::new(is_delete, calls, deed.clone());
            let stage = Stage::meddled(n, case, Side::Source, &meddling).await?;
            let result = stage.files.rename((case.rename)()).await;
            case.assert_told(&format!("{calls:?} {deed:?}"), &result, &stage.state().await?);
            if meddling.has_struck() {
                stage.files.refused(result, ErrorKind::Unavailable);
            }
        }
    }
    Ok(())
}

async fn a_move_whose_target_goes_away_leaves_the_source_whole(n: &NamespaceFactory) -> LawResult {
    for case in &CASES {
        for step in 1..MAX_STEPS {
            let meddling = Meddling::new(|_| true, Calls::From(step), Deed::FailBefore);
            let stage = Stage::meddled(n, case, Side::Target, &meddling).await?;
            let result = stage.files.rename((case.rename)()).await;
            let ([source, target], old, new) = (stage.state().await?, case.unmoved(), case.moved());
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
            if !meddling.has_struck() {
                break;
            }
        }
    }
    Ok(())
}

async fn a_copy_that_fails_at_any_step_leaves_nothing(n: &NamespaceFactory) -> LawResult {
    for end in [Side::Source, Side::Target] {
        for deed in [Deed::FailBefore, Deed::FailAfter] {
            for step in 1..MAX_STEPS {
                let meddling = Meddling::new(|_| true, Calls::Only(step), deed.clone());
                let stage = Stage::meddled(n, &DIRECTORY, end, &meddling).await?;
                let result = stage.files.copy(CopyRequest::new(path("/s/d"), path("/t/in/d"))).await;
                let [source, target] = stage.state().await?;
                assert_eq!(source, DIRECTORY.unmoved()[0]);
                let expected = if result.is_ok() { DIRECTORY.moved() } else { DIRECTORY.unmoved() };
                assert_eq!(target, expected[1], "{deed:?} at step {step} of {end:?}: {result:?}");
                if !meddling.has_struck() {
                    break;
                }
            }
        }
    }
    Ok(())
}
