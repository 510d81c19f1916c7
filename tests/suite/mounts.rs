//! Random mount tables: a namespace of several backends does what one flat map does.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::poll_immediate;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Builder;
use vfs_composite::CompositeBackend;
use vfs_core::search::EntryKinds;
use vfs_core::watch::{Change, WatchRequest};
use vfs_core::{
    Backend, BackendExt, ErrorKind, GlobRequest, GrepOutput, GrepRequest, LsRequest, OpContext, Result, VfsPath,
    WriteMode, WriteRequest,
};
use vfs_local::LocalBackend;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_testkit::{Target, model};

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn composite(mounts: &[&str]) -> CompositeBackend {
    let memory = || -> Arc<dyn Backend> { Arc::new(MemoryBackend::new()) };
    let mounted = mounts.iter().try_fold(CompositeBackend::new(memory()), |files, at| files.with_mount(at, memory()));
    mounted.expect("different places")
}

/// Some of a few places, which nest, begin alike, and meet the names that the steps use.
fn mounts() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(
        vec!["/a", "/a/b", "/a-b", "/b", "/b/.git", "/b/.git/info", "/c/d", "/c/d/e", "/x/y"],
        0..6,
    )
}

fn run(cases: u32, check: impl Fn(&mut TestRunner) -> Result<(), String>) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    if let Err(failure) = check(&mut runner) {
        panic!("{failure}");
    }
}

#[test]
fn random_operations_on_random_mounts_do_what_the_reference_does() {
    run(192, |runner| {
        let outcome = runner.run(&(mounts(), model::steps()), |(mounts, steps)| {
            let target = Target::new(Arc::new(composite(&mounts)));
            let mount_points = mounts.iter().map(|at| path(at)).collect();
            model::check(&target.with_mounts(mount_points), &steps);
            Ok(())
        });
        outcome.map_err(|failure| failure.to_string())
    });
}

const FILES: &[&str] = &[
    "/.gitignore",
    "/.hidden",
    "/a/.gitignore",
    "/a/.ignore",
    "/a/b/.gitignore",
    "/a/b/c.rs",
    "/a/b/target/x.rs",
    "/a/target/x.txt",
    "/a-b/x.rs",
    "/a.rs",
    "/b/.git/info/exclude",
    "/b/.git/config",
    "/b/x.rs",
    "/b/y.txt",
    "/c/d/.hidden/x.rs",
    "/c/d/e/f.rs",
    "/c/d/x.rs",
    "/x/y/z.rs",
];

fn files() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let rules =
        prop::sample::select(vec!["target\n", "*.txt\n", "/b\n", "b/\n!x.rs\n", "*.rs\n!x.rs\n", "c/d\n", ".*\n"]);
    let text = prop::sample::select(vec!["one\ntwo\n", "two\nthree\ntwo\n", "", "one\0two\n"]);
    let file = (prop::sample::select(FILES.to_vec()), rules, text).prop_map(|(path, rules, text)| {
        let is_rules = path.ends_with("ignore") || path.ends_with("exclude");
        (path, if is_rules { rules } else { text })
    });
    prop::collection::vec(file, 1..20)
}

fn globs() -> Vec<GlobRequest> {
    let start = |at: &str| GlobRequest::new("**/*.rs").path(path(at));
    let mut globs: Vec<_> = ["**", "*.rs", "a/**/*.rs", "a/b/*", "{a,c}/**", "c/d/e/*.rs", "[a-c]/*.rs", "/x.rs"]
        .map(GlobRequest::new)
        .into();
    globs.extend([start("/a"), start("/a/b"), start("/c"), start("/c/d/e"), start("/x")]);
    globs.push(GlobRequest::new("**").hidden());
    globs.push(GlobRequest::new("**").no_ignore());
    globs.push(GlobRequest::new("**").hidden().no_ignore().kinds(EntryKinds::Files));
    globs.extend((0..6).map(|limit| GlobRequest::new("*.rs").limit(limit)));
    globs
}

fn greps() -> Vec<GrepRequest> {
    let two = || GrepRequest::literal("two");
    let mut greps = vec![
        two(),
        two().context(1, 1),
        two().glob("a/**"),
        two().glob("*.rs").glob("!c"),
        two().hidden(),
        two().no_ignore(),
        two().path(path("/a")),
        two().path(path("/c/d")),
        two().path(path("/a/b/c.rs")),
        two().output(GrepOutput::Counts),
        GrepRequest::regex("^t").output(GrepOutput::Files),
        two().file_type("rust"),
    ];
    greps.extend((0..5).map(|limit| two().limit(limit)));
    greps
}

/// Asserts that both have the same entries, apart from times of files and from directories that exist because of a
/// mount.
async fn compare(flat: &MemoryBackend, mounted: &CompositeBackend, cx: &OpContext) {
    for req in globs() {
        let strip = |result: Result<vfs_core::GlobResult>| {
            result.map(|mut result| {
                for entry in &mut result.entries {
                    (entry.modified_at, entry.created_at) = (None, None);
                }
                result
            })
        };
        let (one, many) = (flat.glob(cx, req.clone()).await, mounted.glob(cx, req.clone()).await);
        if one.is_ok() {
            assert_eq!(strip(many), strip(one), "{req:?}");
        }
    }
    for req in greps() {
        let (one, many) = (flat.grep(cx, req.clone()).await, mounted.grep(cx, req.clone()).await);
        if one.is_ok() {
            assert_eq!(many, one, "{req:?}");
        }
    }
    let files = |listed: Result<vfs_core::LsResult>| -> Vec<_> {
        let entries = listed.expect("the root is there").entries;
        entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| (entry.path, entry.version)).collect()
    };
    let everything = || LsRequest::new(VfsPath::root()).recursive();
    assert_eq!(files(mounted.ls(cx, everything()).await), files(flat.ls(cx, everything()).await));
    for levels in 0..5 {
        let some = || everything().max_depth(levels);
        let (one, many) = (flat.ls(cx, some()).await.expect("it is listed"), mounted.ls(cx, some()).await);
        let many = many.expect("it is listed");
        assert_eq!((many.truncated, &many.problems), (one.truncated, &one.problems), "{levels} levels");
        assert_eq!(files(Ok(many)), files(Ok(one)), "{levels} levels");
    }
}

#[test]
fn searches_of_random_mounts_give_what_they_give_of_one_flat_map() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime can be built");
    run(48, |runner| {
        let outcome = runner.run(&(mounts(), files()), |(mounts, files)| {
            runtime.block_on(async {
                let (flat, mounted, cx) = (MemoryBackend::new(), composite(&mounts), OpContext::new());
                // A mount point is a directory even where it is empty, which the flat map has not.
                for at in &mounts {
                    for files in [&flat as &dyn Backend, &mounted] {
                        files.create_text(&format!("{at}/keep"), "keep\n").await.expect("a new file");
                    }
                }
                for (at, text) in files {
                    let write = || WriteRequest::new(path(at), text).mode(WriteMode::Overwrite);
                    // A file may stand where a directory is; then neither has it.
                    let (one, many) = (flat.write(&cx, write()).await, mounted.write(&cx, write()).await);
                    assert_eq!(many.map(|result| result.version), one.map(|result| result.version));
                }
                compare(&flat, &mounted, &cx).await;
            });
            Ok(())
        });
        outcome.map_err(|failure| failure.to_string())
    });
}

#[test]
fn one_backend_mounted_twice_shows_each_path_once() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime can be built");
    runtime.block_on(async {
        let shared: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = CompositeBackend::new(Arc::clone(&shared))
            .with_mount("/one", Arc::clone(&shared))
            .and_then(|files| files.with_mount("/two", Arc::clone(&shared)))
            .expect("different places");
        files.create_text("/one/x", "word\n").await.expect("it can be written");
        let found = files.grep_text("word").await.expect("it can be searched");
        let paths: Vec<_> = found.iter().map(|hit| hit.path.as_str()).collect();
        assert_eq!(paths, ["/one/x", "/two/x", "/x"]);
    });
}

#[tokio::test]
async fn a_namespace_refuses_to_watch_a_mount_without_a_feed_and_leaves_those_below_out() {
    let unseen = || Arc::new(StateBackend::pure(FilesState::new()));
    let files = CompositeBackend::new(unseen()).with_mount("/m", Arc::new(MemoryBackend::new())).expect("a free place");
    let files = files.with_mount("/m/unseen", unseen()).expect("a free place");
    assert_eq!(files.mounts().iter().map(|mount| mount.has_feed).collect::<Vec<_>>(), [false, true, false]);
    let cx = OpContext::new();
    let watch = |at| files.as_watch().expect("a namespace has one").watch(cx.clone(), WatchRequest::new(path(at)));
    for (at, mount) in [("/src", "'/'"), ("/m/unseen", "'/m/unseen'")] {
        let refused: Vec<_> = watch(at).collect().await;
        let [Err(error)] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some(at)));
        assert!(error.message().contains(mount), "{error}");
    }
    let mut events = watch("/m");
    let event = events.next().await.expect("there is an event").expect("no error");
    assert_eq!(event.change, Change::Overflow);
    assert!(poll_immediate(events.next()).await.is_none(), "it waits");
    files.create_text("/m/x", "x").await.expect("a new file");
    let event = events.next().await.expect("it goes on").expect("no error");
    assert!(matches!(&event.change, Change::Created { path, .. } if path.as_str() == "/m/x"), "{event:?}");
    cx.cancel_token().cancel();
    let error = events.next().await.expect("it says why it ends").expect_err("it was cancelled");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Cancelled, Some("/m")));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn the_feed_of_a_namespace_ends_once_for_all_its_mounts() {
    let files = composite(&["/a", "/b", "/b/c"]);
    let cx = OpContext::new();
    let mut events = files.as_watch().expect("a namespace has one").watch(cx.clone(), WatchRequest::default());
    for at in ["/a/x", "/b/c/x", "/x"] {
        files.create_text(at, "x").await.expect("a new file");
        let event = events.next().await.expect("it goes on").expect("no error");
        assert!(matches!(&event.change, Change::Created { path, .. } if path.as_str() == at), "{event:?}");
    }
    cx.cancel_token().cancel();
    let error = events.next().await.expect("it says why it ends").expect_err("it was cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(events.next().await.is_none(), "the mounts end together");
}

#[tokio::test]
async fn the_feed_of_a_namespace_ends_with_that_of_one_mount_though_the_others_are_silent() {
    let host = LocalBackend::host("/").expect("there is a root");
    let files = CompositeBackend::new(Arc::new(MemoryBackend::new())).with_mount("/host", Arc::new(host));
    let files = files.expect("a free place");
    let mut events = files.as_watch().expect("a namespace has one").watch(OpContext::new(), WatchRequest::default());
    let error = events.next().await.expect("it says why it ends").expect_err("the whole host cannot be watched");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(events.next().await.is_none(), "nothing else has to happen");
}
