//! Discarding the changes of some paths of an overlay.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use vfs_core::{
    Backend, BackendExt, DeleteRequest, ErrorKind, Layer as _, LsRequest, OpContext, Operation, RenameRequest, Result,
    Version, VfsPath,
};
use vfs_layers::FaultInjection;
use vfs_memory::MemoryBackend;
use vfs_versions::{CommitResult, OverlayBackend};

use super::overlay::{steps, take};
use super::support::path;

async fn project() -> MemoryBackend {
    let files = MemoryBackend::new();
    for at in ["/a", "/d/b", "/d/c", "/d/sub/x", "/d/sub/y"] {
        files.create_text(at, at).await.expect("a new file");
    }
    files
}

fn over(base: &MemoryBackend) -> OverlayBackend {
    OverlayBackend::new(Arc::new(base.clone()))
}

/// Every path in `files`, with the version of the files.
async fn entries(files: &dyn Backend) -> BTreeMap<VfsPath, Option<Version>> {
    let listed =
        files.ls(&OpContext::new(), LsRequest::new(VfsPath::root()).recursive()).await.expect("the root is there");
    listed.entries.into_iter().map(|entry| (entry.path, entry.version)).collect()
}

async fn names(files: &dyn Backend) -> Vec<String> {
    entries(files).await.into_keys().map(|path| path.as_str().to_owned()).collect()
}

async fn discard(overlay: &OverlayBackend, paths: &[&str]) -> Result<Vec<VfsPath>> {
    let paths: Vec<_> = paths.iter().map(|at| path(at)).collect();
    overlay.discard_paths(&OpContext::new(), &paths).await
}

#[tokio::test]
async fn a_conflict_is_settled_by_discarding_its_path_and_the_rest_is_committed() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    for at in ["/a", "/d/b", "/d/c"] {
        overlay.write_text(at, "mine").await?;
    }
    overlay.create_text("/new/f", "mine").await?;
    for at in ["/a", "/d/b", "/new/f"] {
        base.write_text(at, "theirs").await?;
    }
    let CommitResult::Conflicts(conflicts) = overlay.commit(&cx).await? else {
        panic!("three files were changed beneath")
    };
    let conflicts: Vec<_> = conflicts.into_iter().map(|conflict| conflict.path).collect();
    assert_eq!(overlay.discard_paths(&cx, &conflicts[1..]).await?, ["/d/b", "/new/f"].map(path));
    // The version of the overlay, as the documentation has it.
    let mine = overlay.read_text("/a").await?;
    discard(&overlay, &["/a"]).await?;
    assert_eq!(overlay.read_text("/a").await?, "theirs");
    overlay.write_text("/a", &mine).await?;
    assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
    for (at, text) in [("/a", "mine"), ("/d/b", "theirs"), ("/d/c", "mine"), ("/new/f", "theirs")] {
        assert_eq!(base.read_text(at).await?, text, "{at}");
    }
    Ok(())
}

#[tokio::test]
async fn of_a_removed_directory_the_paths_come_back_alone() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
    assert_eq!(discard(&overlay, &["/d/sub/x"]).await?, [path("/d/sub/x")]);
    assert_eq!(names(&overlay).await, ["/a", "/d", "/d/sub", "/d/sub/x"]);
    assert!(discard(&overlay, &["/d/missing", "/elsewhere"]).await?.is_empty());
    assert_eq!(names(&overlay).await, ["/a", "/d", "/d/sub", "/d/sub/x"]);
    assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
    assert_eq!(names(&base).await, ["/a", "/d", "/d/sub", "/d/sub/x"]);
    Ok(())
}

#[tokio::test]
async fn each_end_of_a_move_is_discarded_by_itself() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    for (paths, expected) in [
        (&["/e"][..], &["/a"][..]),
        (
            &["/d"],
            &[
                "/a", "/d", "/d/b", "/d/c", "/d/sub", "/d/sub/x", "/d/sub/y", "/e", "/e/b", "/e/c", "/e/sub",
                "/e/sub/x", "/e/sub/y",
            ],
        ),
        (&["/e", "/d"], &["/a", "/d", "/d/b", "/d/c", "/d/sub", "/d/sub/x", "/d/sub/y"]),
    ] {
        let overlay = over(&base);
        overlay.rename(&cx, RenameRequest::new(path("/d"), path("/e"))).await?;
        discard(&overlay, paths).await?;
        assert_eq!(names(&overlay).await, expected, "{paths:?}");
        assert_eq!(overlay.is_unchanged(), paths.len() == 2);
    }
    Ok(())
}

#[tokio::test]
async fn below_a_file_of_the_overlay_nothing_comes_back_unless_that_is_discarded_too() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
    overlay.create_text("/d", "a file").await?;
    let error = discard(&overlay, &["/a", "/d/b"]).await.expect_err("a file stands above it");
    assert_eq!((error.kind(), error.path()), (ErrorKind::NotADirectory, Some("/d/b")));
    assert!(error.message().contains("'/d' is a file in the overlay"), "{error}");
    discard(&overlay, &["/d/b", "/d"]).await?;
    assert!(overlay.is_unchanged());
    assert_eq!(overlay.read_text("/d/b").await?, "/d/b");
    Ok(())
}

#[tokio::test]
async fn what_the_base_has_by_now_in_place_of_a_directory_comes_back() -> Result<()> {
    let (base, cx) = (project().await, OpContext::new());
    let overlay = over(&base);
    overlay.write_text("/d/b", "mine").await?;
    base.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
    base.create_text("/d", "a file").await?;
    discard(&overlay, &["/d/b"]).await?;
    assert_eq!(overlay.read_text("/d").await?, "a file");
    assert!(overlay.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn a_discard_that_cannot_be_saved_discards_nothing() -> Result<()> {
    let (base, store) = (project().await, MemoryBackend::new());
    let open = async |store: Arc<dyn Backend>| OverlayBackend::open(Arc::new(base.clone()), store, path("/kept")).await;
    let first = open(Arc::new(store.clone())).await?;
    first.write_text("/a", "mine").await?;
    first.write_text("/d/b", "mine").await?;
    let full = FaultInjection::new(ErrorKind::StorageFull).only(Operation::Write).layer(Arc::new(store.clone()));
    let failing = open(full).await?;
    let error = discard(&failing, &["/a"]).await.expect_err("the store is full");
    assert_eq!((error.kind(), error.path()), (ErrorKind::StorageFull, Some("/")));
    assert_eq!(failing.read_text("/a").await?, "mine");

    discard(&open(Arc::new(store.clone())).await?, &["/a"]).await?;
    let next = open(Arc::new(store)).await?;
    assert_eq!((next.read_text("/a").await?, next.read_text("/d/b").await?), ("/a".to_owned(), "mine".to_owned()));
    Ok(())
}

#[test]
fn after_random_changes_a_discard_shows_the_base_below_its_path_and_leaves_the_rest() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be built");
    let config = Config { cases: 256, failure_persistence: None, ..Config::default() };
    let discarded = prop::sample::select(vec!["/a", "/a/b", "/d", "/d/e", "/d/e/f", "/g"]);
    let outcome = TestRunner::new(config).run(&(steps(), steps(), discarded), |(first, then, discarded)| {
        runtime.block_on(async {
            let (base, cx) = (MemoryBackend::new(), OpContext::new());
            for step in &first {
                // What cannot be done does nothing.
                let _ = take(&base, &cx, step).await;
            }
            let (overlay, at) = (over(&base), path(discarded));
            for step in &then {
                let _ = take(&overlay, &cx, step).await;
            }
            let files = |entries: BTreeMap<VfsPath, Option<Version>>| {
                entries.into_iter().filter(|(_, version)| version.is_some()).collect::<BTreeMap<_, _>>()
            };
            let before = files(entries(&overlay).await);
            let mut expected = before.clone();
            match discard(&overlay, &[discarded]).await {
                Ok(_) => {
                    expected.retain(|path, _| !path.starts_with(&at));
                    expected.extend(files(entries(&base).await).into_iter().filter(|(path, _)| path.starts_with(&at)));
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotADirectory, "{error}");
                    assert!(before.keys().any(|file| at.starts_with(file) && *file != at), "{error}");
                }
            }
            assert_eq!(files(entries(&overlay).await), expected);
            assert!(matches!(overlay.commit(&cx).await, Ok(CommitResult::Applied(_))));
            assert_eq!(files(entries(&base).await), expected);
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
