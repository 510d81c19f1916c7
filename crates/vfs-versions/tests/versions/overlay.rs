//! Overlays: changes, commits, forks and merges, budgets.

use std::sync::Arc;

use futures::future::poll_immediate;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::time::Instant;
use vfs_core::snapshots::SnapshotDiffKind;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, GlobRequest, GrepRequest, Layer,
    LsRequest, OpContext, Operation, RenameRequest, Result, VfsPath, WriteMode, WriteRequest,
};
use vfs_layers::{Delay, FaultInjection};
use vfs_memory::MemoryBackend;
use vfs_versions::{CommitResult, OverlayBackend};

use super::support::{minutes, path, within};

async fn project() -> MemoryBackend {
    let files = MemoryBackend::new();
    for (at, text) in [("/a.txt", "one\n"), ("/d/b.txt", "two\n"), ("/d/c.txt", "three\n"), ("/e/f", "four\n")] {
        files.create_text(at, text).await.expect("a new file");
    }
    files
}

fn over(base: &MemoryBackend) -> OverlayBackend {
    OverlayBackend::new(Arc::new(base.clone()))
}

#[tokio::test]
async fn the_base_stays_as_it_is_until_the_commit() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let (before, overlay) = (base.snapshot(), over(&base));
    overlay.edit_text("/a.txt", "one", "1").await?;
    overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
    overlay.rename(&cx, RenameRequest::new(path("/e/f"), path("/g/h"))).await?;
    overlay.create_text("/d/new.txt", "new\n").await?;
    assert_eq!(base.snapshot(), before);

    let listed = overlay.ls(&cx, LsRequest::new(path("/")).recursive()).await?;
    let names: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/a.txt", "/d", "/d/new.txt", "/g", "/g/h"]);
    assert_eq!(overlay.read_text("/d/b.txt").await.expect_err("deleted").kind(), ErrorKind::NotFound);

    let diff = overlay.diff(&cx).await?;
    let kinds: Vec<_> = diff.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    let expected = [
        ("/a.txt", SnapshotDiffKind::Changed),
        ("/d/b.txt", SnapshotDiffKind::Removed),
        ("/d/c.txt", SnapshotDiffKind::Removed),
        ("/d/new.txt", SnapshotDiffKind::Added),
        ("/e/f", SnapshotDiffKind::Removed),
        ("/g/h", SnapshotDiffKind::Added),
    ];
    assert_eq!(kinds, expected);
    assert!(diff.unified().contains("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"), "{}", diff.unified());

    let CommitResult::Applied(applied) = overlay.commit(&cx).await? else { panic!("nothing stands against it") };
    assert_eq!(applied.changes.len(), 6);
    let listed = base.ls(&cx, LsRequest::new(path("/")).recursive()).await?;
    assert_eq!(listed.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), names);
    assert!(overlay.is_unchanged() && overlay.diff(&cx).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn all_conflicts_are_reported_and_nothing_is_applied() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    overlay.edit_text("/a.txt", "one", "1").await?;
    overlay.delete_file("/d/b.txt").await?;
    overlay.create_text("/new", "ours").await?;
    overlay.edit_text("/d/c.txt", "three", "3").await?;
    base.write_text("/a.txt", "changed\n").await?;
    base.write_text("/d/b.txt", "changed\n").await?;
    base.create_text("/new", "theirs").await?;
    let before = base.snapshot();

    let CommitResult::Conflicts(conflicts) = overlay.commit(&cx).await? else { panic!("three files were changed") };
    let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(paths, ["/a.txt", "/d/b.txt", "/new"]);
    assert!(conflicts[2].expected.is_none() && conflicts[2].actual.is_some());
    assert_eq!(base.snapshot(), before);
    assert_eq!(overlay.read_text("/d/c.txt").await?, "3\n");

    // A file of the base that has the content to be written is not a conflict.
    base.write_text("/a.txt", "1\n").await?;
    base.delete_file("/d/b.txt").await?;
    base.write_text("/new", "ours").await?;
    assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
    assert_eq!(base.read_text("/d/c.txt").await?, "3\n");
    Ok(())
}

#[tokio::test]
async fn a_commit_that_fails_at_any_step_is_rolled_back() -> Result<()> {
    let cx = OpContext::new();
    for operation in [Operation::Write, Operation::Delete] {
        for skipped in 0..3 {
            let base = project().await;
            let before = contents(&base).await?;
            let fault = FaultInjection::new(ErrorKind::StorageFull).only(operation).every(skipped + 2);
            let overlay = OverlayBackend::new(fault.layer(Arc::new(base.clone())));
            for (at, text) in [("/a.txt", "1"), ("/d/b.txt", "2"), ("/x/y", "3")] {
                overlay.write_text(at, text).await?;
            }
            overlay.delete_file("/d/c.txt").await?;
            overlay.delete_file("/e/f").await?;
            let Err(error) = overlay.commit(&cx).await else {
                assert_ne!(contents(&base).await?, before);
                continue;
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            // The fault may also hit the rollback, which the error reports.
            let is_reported = error.message().contains("could not be restored");
            assert_eq!(is_reported, contents(&base).await? != before, "{operation} {skipped}: {error}");
            assert!(!overlay.is_unchanged());
        }
    }
    Ok(())
}

/// The paths and versions of all files.
async fn contents(files: &MemoryBackend) -> Result<Vec<(VfsPath, Option<vfs_core::Version>)>> {
    let listed = files.ls(&OpContext::new(), LsRequest::new(VfsPath::root()).recursive()).await?;
    Ok(listed.entries.into_iter().map(|entry| (entry.path, entry.version)).collect())
}

#[tokio::test]
async fn two_forks_merge_with_one_conflict() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    overlay.write_text("/shared", "start\n").await?;
    let (one, two) = (overlay.fork(), overlay.fork());
    one.edit_text("/a.txt", "one", "by one").await?;
    one.write_text("/shared", "by one\n").await?;
    one.delete_file("/d/b.txt").await?;
    two.edit_text("/d/c.txt", "three", "by two").await?;
    two.write_text("/shared", "by two\n").await?;
    two.write_text("/d/b.txt", "by two\n").await?;
    two.write_text("/same", "same\n").await?;
    one.write_text("/same", "same\n").await?;
    assert_eq!(overlay.read_text("/shared").await?, "start\n");

    let first = overlay.merge(&cx, &one).await?;
    assert!(first.conflicts.is_empty());
    assert_eq!(first.merged, ["/a.txt", "/d/b.txt", "/same", "/shared"].map(path));
    let second = overlay.merge(&cx, &two).await?;
    assert_eq!(second.conflicts, ["/d/b.txt", "/shared"].map(path));
    assert_eq!(second.merged, [path("/d/c.txt")]);
    assert_eq!(overlay.read_text("/shared").await?, "by one\n");
    assert!(!overlay.exists("/d/b.txt").await?);
    assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
    assert_eq!(base.read_text("/d/c.txt").await?, "by two\n");
    Ok(())
}

#[tokio::test]
async fn a_fork_that_took_back_a_file_conflicts_with_a_directory_in_its_place() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    overlay.delete_file("/a.txt").await?;
    overlay.create_text("/a.txt/q", "new\n").await?;
    let fork = overlay.fork();
    fork.discard(&cx).await?;
    overlay.write_text("/a.txt/later", "new\n").await?;
    let merge = overlay.merge(&cx, &fork).await?;
    assert_eq!(merge.conflicts, ["/a.txt", "/a.txt/q"].map(path));
    assert_eq!(overlay.read_text("/a.txt/later").await?, "new\n");
    Ok(())
}

#[tokio::test]
async fn over_the_budget_there_is_an_error_and_nothing_changes() -> Result<()> {
    let base = project().await;
    let overlay = over(&base).with_budget(100);
    overlay.create_text("/x", &"x".repeat(90)).await?;
    let error = overlay.create_text("/y", &"y".repeat(11)).await.expect_err("over the budget");
    assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/y")));
    assert!(!overlay.exists("/y").await?);
    overlay.delete_file("/x").await?;
    overlay.create_text("/y", &"y".repeat(11)).await?;
    let error = overlay.copy(&OpContext::new(), CopyRequest::new(path("/y"), path("/z"))).await;
    assert!(error.is_ok());
    overlay.discard(&OpContext::new()).await?;
    assert!(overlay.is_unchanged() && !overlay.exists("/y").await?);
    Ok(())
}

#[tokio::test]
async fn the_budget_applies_to_the_contents_after_a_change() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base).with_budget(100);
    overlay.create_text("/x", &"x".repeat(90)).await?;
    overlay.write_text("/x", &"x".repeat(99)).await?;
    overlay.write_text("/x", &format!("begin{}", "x".repeat(94))).await?;
    let error = overlay.edit_text("/x", "begin", "beginning").await.expect_err("over the budget");
    assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/x")));
    assert!(overlay.read_text("/x").await?.starts_with("beginx"));

    let edit = || EditRequest::new(path("/a.txt"), "one", "two");
    let error = overlay.edit(&cx, edit()).await.expect_err("over the budget");
    assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/a.txt")));
    overlay.edit(&cx, edit().dry_run()).await?;

    // What is moved is in two places for a moment only.
    overlay.rename(&cx, RenameRequest::new(path("/x"), path("/y"))).await?;
    overlay.rename(&cx, RenameRequest::new(path("/y"), path("/x"))).await?;
    let error = overlay.copy(&cx, CopyRequest::new(path("/x"), path("/y"))).await.expect_err("over the budget");
    assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/y")));

    // What holds too much already may be made less.
    let overlay = overlay.with_budget(10);
    overlay.edit_text("/x", "begin", "at").await?;
    overlay.edit_text("/x", "at", "").await?;
    assert_eq!(overlay.edit_text("/x", "x".repeat(94).as_str(), "").await?.size, 0);
    overlay.edit(&cx, edit()).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_ones_turn_ends_when_the_caller_wants_it_no_more() {
    let slow = Delay::new(minutes(60)).layer(Arc::new(project().await));
    let overlay = OverlayBackend::new(slow);
    let mut first = Box::pin(overlay.write_text("/a.txt", "1\n"));
    assert!(poll_immediate(&mut first).await.is_none(), "it is its turn");
    let late = || within(minutes(3));
    let begun = Instant::now();
    let cx = late();
    let write = overlay.write(&cx, WriteRequest::new(path("/b"), "x"));
    let write = tokio::time::timeout(minutes(30), write).await.expect("it waits no longer than its caller");
    let error = write.expect_err("the first one takes an hour");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Timeout, Some("/b")));
    for error in [
        overlay.discard(&late()).await.expect_err("as above"),
        overlay.commit(&late()).await.expect_err("as above"),
        overlay.finish_commit(&late()).await.expect_err("as above"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Timeout);
    }
    assert_eq!(begun.elapsed(), minutes(12));
    let cx = OpContext::new();
    let mut cancelled = Box::pin(overlay.write(&cx, WriteRequest::new(path("/b"), "x")));
    assert!(poll_immediate(&mut cancelled).await.is_none(), "it waits");
    cx.cancel_token().cancel();
    let error = tokio::time::timeout(minutes(30), cancelled).await.expect("nobody waits for it");
    assert_eq!(error.expect_err("it was cancelled").kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_persistent_overlay_is_found_by_the_next_process_and_by_one_at_a_time() -> Result<()> {
    let (base, store, cx) = (project().await, MemoryBackend::new(), OpContext::new());
    let open = || OverlayBackend::open(Arc::new(base.clone()), Arc::new(store.clone()), path("/kept"));
    let first = open().await?;
    first.edit_text("/a.txt", "one", "1").await?;
    first.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;

    let second = open().await?;
    assert_eq!(second.diff(&cx).await?, first.diff(&cx).await?);
    second.create_text("/more", "more\n").await?;
    let error = first.create_text("/other", "x").await.expect_err("the store was changed");
    assert_eq!(error.kind(), ErrorKind::Conflict);

    assert!(matches!(second.commit(&cx).await?, CommitResult::Applied(_)));
    assert_eq!(base.read_text("/more").await?, "more\n");
    assert!(open().await?.is_unchanged());
    assert!(store.glob_files("**/objects/**").await?.is_empty(), "nothing is left in the store");
    Ok(())
}

#[tokio::test]
async fn a_commit_does_not_pass_over_what_another_process_acknowledged() -> Result<()> {
    let (base, store, cx) = (project().await, MemoryBackend::new(), OpContext::new());
    let open = || OverlayBackend::open(Arc::new(base.clone()), Arc::new(store.clone()), path("/kept"));
    let first = open().await?;
    first.edit_text("/a.txt", "one", "1").await?;
    let second = open().await?;
    first.create_text("/later", "acknowledged\n").await?;
    assert_eq!(second.commit(&cx).await.expect_err("it is behind").kind(), ErrorKind::Conflict);
    assert_eq!(second.finish_commit(&cx).await.expect_err("it is behind").kind(), ErrorKind::Conflict);
    assert!(matches!(first.commit(&cx).await?, CommitResult::Applied(_)));
    assert_eq!(base.read_text("/later").await?, "acknowledged\n");
    Ok(())
}

#[tokio::test]
async fn a_journal_serves_one_commit_after_another() -> Result<()> {
    let (base, store, cx) = (project().await, MemoryBackend::new(), OpContext::new());
    for text in ["1\n", "2\n"] {
        let overlay = over(&base).with_journal(Arc::new(store.clone()), path("/journal"));
        for _ in 0..2 {
            overlay.write_text("/a.txt", text).await?;
            overlay.append_text("/d/b.txt", text).await?;
            assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
        }
    }
    assert_eq!(base.read_text("/d/b.txt").await?, "two\n1\n1\n2\n2\n");
    Ok(())
}

#[tokio::test]
async fn searches_see_the_outcome() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    base.create_text("/.gitignore", "e\n").await?;
    let overlay = over(&base);
    overlay.edit_text("/a.txt", "one", "two").await?;
    overlay.delete_file("/d/b.txt").await?;
    let found = |files: Vec<vfs_core::GrepMatch>| files.into_iter().map(|hit| hit.path.to_string()).collect::<Vec<_>>();
    assert_eq!(found(overlay.grep(&cx, GrepRequest::literal("two")).await?.matches), ["/a.txt"]);
    assert!(overlay.grep(&cx, GrepRequest::literal("four")).await?.matches.is_empty());
    // The rules that count are those that are there now.
    overlay.write_text("/.gitignore", "d\n").await?;
    assert_eq!(found(overlay.grep(&cx, GrepRequest::literal("four")).await?.matches), ["/e/f"]);
    let globbed = overlay.glob(&cx, GlobRequest::new("**/*.txt")).await?;
    assert_eq!(globbed.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["/a.txt"]);
    Ok(())
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(&'static str, &'static str),
    Append(&'static str),
    Delete(&'static str),
    Rename(&'static str, &'static str),
    Copy(&'static str, &'static str),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || prop::sample::select(vec!["/a", "/a/b", "/a/c", "/d", "/d/e/f", "/d/e", "/g"]);
    let text = prop::sample::select(vec!["x\n", "y\n", ""]);
    let step = prop_oneof![
        3 => (at(), text).prop_map(|(at, text)| Step::Write(at, text)),
        1 => at().prop_map(Step::Append),
        2 => at().prop_map(Step::Delete),
        2 => (at(), at()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (at(), at()).prop_map(|(from, to)| Step::Copy(from, to)),
    ];
    prop::collection::vec(step, 0..12)
}

pub(crate) async fn take(files: &dyn Backend, cx: &OpContext, step: &Step) -> Result<(), ErrorKind> {
    let write = |at, text: &str, mode| WriteRequest::new(path(at), text.to_owned()).mode(mode);
    let done = match step {
        Step::Write(at, text) => files.write(cx, write(at, text, WriteMode::Overwrite)).await.map(drop),
        Step::Append(at) => files.write(cx, write(at, "more\n", WriteMode::Append)).await.map(drop),
        Step::Delete(at) => files.delete(cx, DeleteRequest::new(path(at)).recursive()).await.map(drop),
        Step::Rename(from, to) => {
            files.rename(cx, RenameRequest::new(path(from), path(to)).overwrite()).await.map(drop)
        }
        Step::Copy(from, to) => files.copy(cx, CopyRequest::new(path(from), path(to)).overwrite()).await.map(drop),
    };
    done.map_err(|error| error.kind())
}

#[test]
fn random_changes_over_a_base_show_and_commit_what_they_would_do_to_it() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be built");
    let config = Config { cases: 128, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&(steps(), steps()), |(first, then)| {
        runtime.block_on(async {
            let (base, cx) = (MemoryBackend::new(), OpContext::new());
            for step in &first {
                // What cannot be done does nothing.
                let _ = take(&base, &cx, step).await;
            }
            let (plain, overlay) = (base.fork(), over(&base));
            for step in &then {
                assert_eq!(take(&overlay, &cx, step).await, take(&plain, &cx, step).await, "{step:?}");
            }
            let everything = || LsRequest::new(VfsPath::root()).recursive();
            let names = |listed: Result<vfs_core::LsResult>| -> Vec<_> {
                let entries = listed.expect("the root is there").entries;
                entries.into_iter().map(|entry| (entry.path, entry.version)).collect()
            };
            let shown = names(overlay.ls(&cx, everything()).await);
            assert_eq!(shown, names(plain.ls(&cx, everything()).await));
            assert!(matches!(overlay.commit(&cx).await, Ok(CommitResult::Applied(_))));
            assert_eq!(names(base.ls(&cx, everything()).await), shown);
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
