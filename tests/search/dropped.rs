//! Dropped searches stop: their workers are free, and their memory and descriptors are released.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures::FutureExt as _;
use futures::executor::block_on;
use vfs_core::{Backend, BackendExt as _, CancelToken, ErrorKind, GrepEvent, GrepRequest, OpContext};
use vfs_local::{Durability, LocalConfig};
use vfs_memory::{MemoryBackend, MemoryConfig};
use vfs_search::{Pool, grep_stream_on};
use vfs_tests::sketch::SketchTree;

use super::{next, wait_until_idle};

fn hit() -> GrepRequest {
    GrepRequest::literal("hit")
}

#[test]
fn a_stream_dropped_after_its_first_match_opens_no_more_files() {
    for workers in 1..=8 {
        let pool = Pool::new(workers);
        let (gate, opened) = mpsc::channel::<()>();
        let opened = Mutex::new(opened);
        // The first file opens at once; opening another one waits until the stream is dropped.
        let tree = Arc::new(SketchTree::alike(1_000, "hit\n").on_open(move |path| {
            if !path.ends_with("/f0000000") {
                let _ = opened.lock().expect("nobody panics here").recv();
            }
        }));
        let mut events = grep_stream_on(&pool, Arc::clone(&tree) as _, OpContext::new(), hit());
        assert!(matches!(next(&mut events), GrepEvent::Match(_)));
        drop(events);
        drop(gate);
        wait_until_idle(&pool);
        let opens = tree.opens();
        assert!(opens <= 4 * workers, "{opens} files were opened by {workers} workers");
        assert_eq!(Arc::strong_count(&tree), 1, "the search is gone");
    }
}

/// A backend with many large files in which every line matches.
fn fill(files: &dyn Backend) {
    let text = "a hit in every line\n".repeat(5_000);
    for n in 0..40 {
        block_on(files.create_text(&format!("/d{}/f{n:02}", n % 5), &text)).expect("it writes");
    }
}

/// Ends a search in every way in which one can be ended, again and again.
fn check_that_ended_searches_leave_the_pool(files: &dyn Backend, pool: &Pool) {
    for _ in 0..10 {
        let mut events = files.grep_stream(OpContext::new(), hit());
        assert!(matches!(next(&mut events), GrepEvent::Match(_)));
        drop(events);
        wait_until_idle(pool);

        let token = CancelToken::new();
        let mut events = files.grep_stream(OpContext::new().with_cancel_token(token.clone()), hit());
        assert!(matches!(next(&mut events), GrepEvent::Match(_)));
        token.cancel();
        // Whoever still holds the stream holds up nobody.
        wait_until_idle(pool);
        let error = block_on(futures::StreamExt::next(&mut events)).expect("it ends").expect_err("it was cancelled");
        assert_eq!(error.kind(), ErrorKind::Cancelled);

        let cx = OpContext::new().with_timeout(Duration::from_millis(1));
        let error = block_on(files.grep(&cx, hit().max_result_bytes(1 << 40))).expect_err("it takes longer");
        assert_eq!(error.kind(), ErrorKind::Timeout);
        wait_until_idle(pool);

        let cx = OpContext::new();
        // Where the workers find more than is collected in one go, it may even be over by then.
        let pending = (0..100).find_map(|_| {
            let mut collected = files.grep(&cx, hit().max_result_bytes(1 << 40));
            (&mut collected).now_or_never().is_none().then_some(collected)
        });
        drop(pending.expect("a search of megabytes is not over at once"));
        wait_until_idle(pool);
    }
    let found = block_on(files.grep(&OpContext::new(), hit().limit(3))).expect("the pool lives on");
    assert_eq!(found.matches.len(), 3);
    wait_until_idle(pool);
}

#[test]
fn searches_of_memory_that_are_ended_leave_the_pool() {
    let pool = Pool::new(2);
    let files = MemoryBackend::with_config(MemoryConfig::new().search_pool(pool.clone()));
    fill(&files);
    check_that_ended_searches_leave_the_pool(&files, &pool);
}

#[test]
fn searches_of_a_disk_that_are_ended_leave_the_pool_and_close_what_they_opened() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let pool = Pool::new(2);
    let config = LocalConfig::new(root.path()).durability(Durability::Atomic).search_pool(pool.clone());
    let files = config.open().expect("the root opens");
    fill(&files);
    let before = descriptors_below(root.path());
    check_that_ended_searches_leave_the_pool(&files, &pool);
    assert_eq!(descriptors_below(root.path()), before);
}

/// How many descriptors of this process lead below `root`; tests beside this one have other roots.
fn descriptors_below(root: &Path) -> usize {
    let root = root.canonicalize().expect("it is there");
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("the kernel lists the descriptors");
    // Tests beside this one close theirs meanwhile.
    let targets = descriptors.filter_map(|entry| entry.ok()?.path().read_link().ok());
    targets.filter(|target| target.starts_with(&root)).count()
}
