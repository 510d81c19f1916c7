//! Moves across mounts that something comes in between of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, poll_immediate, select};
use vfs_core::{
    Backend, CopyRequest, ErrorKind, OpContext, Operation, RenameRequest, RenameResult, Result, WriteMode, WriteRequest,
};

use super::super::LawResult;
use super::super::steps::{QUICK, cx};
use super::steps::{Files, around, path};
use crate::counting::Counting;
use crate::meddling::{Calls, Deed, Gate, Meddling};
use crate::namespaces::NamespaceFactory;
use crate::strict::StrictBackend;
use crate::target::Target;

namespace_laws! {
    "NS24" a_move_that_fails_at_any_step_at_its_target_is_taken_back,
    "NS24" a_move_that_fails_at_any_step_at_its_source_is_taken_back,
    "NS24" a_move_whose_sources_cannot_be_deleted_is_taken_back,
    "NS24" a_move_whose_target_goes_away_leaves_the_source_whole,
    "NS24" a_copy_that_fails_at_any_step_leaves_nothing,
    "NS25" a_change_of_the_source_during_a_move_is_not_lost,
    "NS25" a_file_that_is_made_in_the_source_during_a_move_is_not_lost,
    "NS25" a_change_of_the_target_during_a_move_is_not_lost,
    "NS26" a_move_that_is_dropped_at_any_step_is_whole_or_not_there,
    "NS26" a_move_that_is_dropped_after_any_time_is_whole_or_not_there,
    "NS26" a_move_that_is_cancelled_at_any_step_is_whole_or_not_there,
}

/// A move from one mount to another: the files of both before it, and after it.
struct Case {
    rename: fn() -> RenameRequest,
    before: [&'static [(&'static str, &'static str)]; 2],
    after: [&'static [(&'static str, &'static str)]; 2],
}

/// Where the mounts are.
const MOUNTS: [&str; 2] = ["/s", "/t"];

const DIRECTORY: Case = Case {
    rename: || RenameRequest::new(path("/s/d"), path("/t/in/d")),
    before: [&[("/d/a", "a\n"), ("/d/b/c", "c\n"), ("/d/e", "e\n"), ("/kept", "kept\n")], &[("/there", "there\n")]],
    after: [
        &[("/kept", "kept\n")],
        &[("/in/d/a", "a\n"), ("/in/d/b/c", "c\n"), ("/in/d/e", "e\n"), ("/there", "there\n")],
    ],
};

const OVER_A_FILE: Case = Case {
    rename: || RenameRequest::new(path("/s/f"), path("/t/f")).overwrite(),
    before: [&[("/f", "new\n"), ("/kept", "kept\n")], &[("/f", "old\n")]],
    after: [&[("/kept", "kept\n")], &[("/f", "new\n")]],
};

const CASES: [Case; 2] = [DIRECTORY, OVER_A_FILE];

/// More steps than any of these moves has: one that needs more does not end.
const MANY: u64 = 500;

fn files(list: &[(&str, &str)]) -> Files {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// Which end is meddled with.
#[derive(Debug, Clone, Copy)]
enum End {
    Source,
    Target,
}

/// A namespace of two mounts with something around one of them.
struct Stage {
    files: Target,
    ends: [Target; 2],
    counting: Arc<Counting>,
}

impl Stage {
    async fn set(
        n: &NamespaceFactory,
        case: &Case,
        wrap: impl Fn(usize, &Arc<dyn Backend>) -> Arc<dyn Backend>,
    ) -> Result<Self> {
        let ends = [n.backend(), n.backend()];
        for (end, list) in ends.iter().zip(case.before) {
            for (path, text) in list {
                end.put(path, *text).await?;
            }
        }
        let counting = Arc::new(Counting::default());
        let wrapped = [0, 1].map(|end| around(&wrap(end, &ends[end].backend), &counting));
        let mounts = [(MOUNTS[0], &wrapped[0]), (MOUNTS[1], &wrapped[1])];
        Ok(Self { files: n.mount(&n.backend().backend, &mounts), ends, counting })
    }

    async fn meddled(n: &NamespaceFactory, case: &Case, end: End, meddling: &Arc<Meddling>) -> Result<Self> {
        Self::set(
            n,
            case,
            |place, backend| {
                if place == end as usize { around(backend, meddling) } else { Arc::clone(backend) }
            },
        )
        .await
    }

    /// The files of the source and of the target.
    async fn state(&self) -> Result<[Files; 2]> {
        Ok([self.ends[0].files().await?, self.ends[1].files().await?])
    }

    /// The state when nothing moves any more; one that is neither of `whole` is waited for as long as there is hope.
    async fn settled(&self, whole: &[[Files; 2]]) -> Result<[Files; 2]> {
        let start = Instant::now();
        loop {
            let (calls, state) = (self.counting.total(), self.state().await?);
            tokio::time::sleep(Duration::from_millis(5)).await;
            let is_still = calls == self.counting.total() && state == self.state().await?;
            if is_still && whole.contains(&state) || start.elapsed() > QUICK {
                return Ok(state);
            }
        }
    }
}

impl Case {
    fn unmoved(&self) -> [Files; 2] {
        self.before.map(files)
    }

    fn moved(&self) -> [Files; 2] {
        self.after.map(files)
    }

    /// Asserts that the files are where `result` says.
    fn assert_told(&self, what: &str, result: &Result<RenameResult>, state: &[Files; 2]) {
        let expected = if result.is_ok() { self.moved() } else { self.unmoved() };
        assert_eq!(*state, expected, "{what}: {result:?}");
    }
}

/// Moves with `deed` done at each call of `operations` at `end`, in turn, until there are no more.
async fn at_each_step(n: &NamespaceFactory, end: End, operations: fn(Operation) -> bool, deed: Deed) -> LawResult {
    for case in &CASES {
        for step in 1.. {
            assert!(step < MANY, "there is no end to it");
            let meddling = Meddling::new(operations, Calls::Only(step), deed.clone());
            let stage = Stage::meddled(n, case, end, &meddling).await?;
            let result = stage.files.rename((case.rename)()).await;
            let what = format!("{deed:?} at step {step} of {end:?}");
            case.assert_told(&what, &result, &stage.state().await?);
            if !meddling.has_struck() {
                result?;
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
    at_each_step(n, End::Target, |_| true, Deed::FailBefore).await?;
    at_each_step(n, End::Target, |_| true, Deed::FailAfter).await
}

async fn a_move_that_fails_at_any_step_at_its_source_is_taken_back(n: &NamespaceFactory) -> LawResult {
    at_each_step(n, End::Source, |_| true, Deed::FailBefore).await?;
    at_each_step(n, End::Source, |_| true, Deed::FailAfter).await
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
            let stage = Stage::meddled(n, case, End::Source, &meddling).await?;
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
        for step in 1..MANY {
            let meddling = Meddling::new(|_| true, Calls::From(step), Deed::FailBefore);
            let stage = Stage::meddled(n, case, End::Target, &meddling).await?;
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
    for end in [End::Source, End::Target] {
        for deed in [Deed::FailBefore, Deed::FailAfter] {
            for step in 1..MANY {
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

const MEANWHILE: &str = "meanwhile\n";

/// Moves while somebody else writes `file` at `end`, before each of its calls in turn, and hands what is found to `check`.
async fn written_at_each_step(
    n: &NamespaceFactory,
    case: &Case,
    end: End,
    file: &str,
    check: impl Fn(&str, &Result<RenameResult>, [Files; 2]),
) -> LawResult {
    let write = WriteRequest::new(path(file), MEANWHILE).mode(WriteMode::Overwrite);
    for step in 1.. {
        assert!(step < MANY, "there is no end to it");
        let meddling = Meddling::new(|_| true, Calls::Only(step), Deed::Write(write.clone()));
        let stage = Stage::meddled(n, case, end, &meddling).await?;
        let result = stage.files.rename((case.rename)()).await;
        if !meddling.has_struck() {
            return result.map(drop);
        }
        check(&format!("step {step}: {result:?}"), &result, stage.state().await?);
    }
    Ok(())
}

fn holds(files: &Files, file: &str, text: &str) -> bool {
    files.get(file).is_some_and(|found| found == text)
}

async fn a_change_of_the_source_during_a_move_is_not_lost(n: &NamespaceFactory) -> LawResult {
    written_at_each_step(n, &DIRECTORY, End::Source, "/d/b/c", |what, result, [source, target]| {
        let moved = |file: &str| format!("/in{file}");
        let is_kept = holds(&source, "/d/b/c", MEANWHILE) || holds(&target, "/in/d/b/c", MEANWHILE);
        assert!(is_kept, "{what}: {source:?} {target:?}");
        for (file, text) in [("/d/a", "a\n"), ("/d/e", "e\n")] {
            let place = if result.is_ok() { holds(&target, &moved(file), text) } else { holds(&source, file, text) };
            assert!(place, "{file}, {what}: {source:?} {target:?}");
        }
        assert!(result.is_err() || target.contains_key("/in/d/b/c"), "{what}: {target:?}");
    })
    .await?;
    written_at_each_step(n, &OVER_A_FILE, End::Source, "/f", |what, result, [source, target]| {
        let is_kept = holds(&source, "/f", MEANWHILE) || holds(&target, "/f", MEANWHILE);
        assert!(is_kept, "{what}: {source:?} {target:?}");
        let is_replaced = holds(&target, "/f", "new\n") || holds(&target, "/f", MEANWHILE);
        assert_eq!(is_replaced, result.is_ok(), "{what}: {source:?} {target:?}");
    })
    .await
}

async fn a_file_that_is_made_in_the_source_during_a_move_is_not_lost(n: &NamespaceFactory) -> LawResult {
    written_at_each_step(n, &DIRECTORY, End::Source, "/d/b/made", |what, result, [source, mut target]| {
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
        written_at_each_step(n, case, End::Target, file, |what, result, [source, target]| {
            // It stays, unless it was there before the move looked, which may then replace it.
            let is_replaced = result.is_ok() && target.get(file) == case.moved()[1].get(file);
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

/// Moves up to each call at each end in turn, lets `leave` do with the move what it will, and checks what becomes of it.
async fn left_at_each_step(n: &NamespaceFactory, is_dropped: bool) -> LawResult {
    for case in &CASES {
        for end in [End::Source, End::Target] {
            for step in 1..MANY {
                let gate = Gate::new();
                let meddling = Meddling::new(|_| true, Calls::Only(step), Deed::Wait(Arc::clone(&gate)));
                let stage = Stage::meddled(n, case, end, &meddling).await?;
                let cx = OpContext::new();
                let moving = stage.files.backend.rename(&cx, (case.rename)());
                let what = format!("left at step {step} of {end:?}");
                let moving = match select(moving, Box::pin(gate.reached())).await {
                    Either::Left((result, _)) => {
                        case.assert_told(&what, &result, &stage.state().await?);
                        result?;
                        break;
                    }
                    Either::Right(((), moving)) => moving,
                };
                if is_dropped {
                    drop(moving);
                    gate.open();
                    let whole = [case.unmoved(), case.moved()];
                    let state = stage.settled(&whole).await?;
                    assert!(whole.contains(&state), "{what}: {state:?}");
                    continue;
                }
                cx.cancel_token().cancel();
                gate.open();
                let result = moving.await;
                case.assert_told(&what, &result, &stage.state().await?);
                if let Err(error) = result {
                    assert_eq!(error.kind(), ErrorKind::Cancelled, "{what}: {error:?}");
                }
            }
        }
    }
    Ok(())
}

async fn a_move_that_is_dropped_at_any_step_is_whole_or_not_there(n: &NamespaceFactory) -> LawResult {
    left_at_each_step(n, true).await
}

async fn a_move_that_is_cancelled_at_any_step_is_whole_or_not_there(n: &NamespaceFactory) -> LawResult {
    left_at_each_step(n, false).await
}

async fn a_move_that_is_dropped_after_any_time_is_whole_or_not_there(n: &NamespaceFactory) -> LawResult {
    for case in &CASES {
        let whole = [case.unmoved(), case.moved()];
        for polls in 0..60 {
            let strict = |_, backend: &Arc<dyn Backend>| -> Arc<dyn Backend> {
                Arc::new(StrictBackend::new(Arc::clone(backend)))
            };
            let stage = Stage::set(n, case, strict).await?;
            let cx = cx();
            let mut moving = stage.files.backend.rename(&cx, (case.rename)());
            let mut result = None;
            for _ in 0..polls {
                result = poll_immediate(&mut moving).await;
                if result.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(moving);
            let state = stage.settled(&whole).await?;
            assert!(whole.contains(&state), "after {polls} polls: {state:?}");
            if let Some(result) = result {
                case.assert_told(&format!("after {polls} polls"), &result, &state);
            }
        }
    }
    Ok(())
}
