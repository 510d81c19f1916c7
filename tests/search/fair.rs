//! Searches share the workers of a pool: a long one starves nobody, a thousand at once all get on, and too many are turned
//! away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _};
use tokio::runtime::Builder;
use vfs_core::{
    Backend, BackendExt as _, EditRequest, ErrorKind, GrepEvent, GrepOutput, GrepRequest, OpContext, ReadRequest,
    Result, VfsPath,
};
use vfs_local::{Durability, LocalConfig};
use vfs_memory::{MemoryBackend, MemoryConfig};
use vfs_search::{Pool, grep_stream_on};
use vfs_tests::sketch::SketchTree;

use super::{Outcome, wait_until_idle};

/// Most turns that wait in a pool, as its documentation says.
const MOST_WAITING: usize = 4_096;

fn hit() -> GrepRequest {
    GrepRequest::literal("hit")
}

#[test]
fn a_search_that_matches_everything_does_not_starve_short_ones() {
    const LONG: usize = 20_000;
    let long = Arc::new(SketchTree::alike(LONG, &"hit\n".repeat(500)));
    let short = Arc::new(SketchTree::alike(60, "hit\n"));
    // One whose consumer cannot keep up, and one that gives it next to nothing to do.
    let outputs = [GrepOutput::Matches, GrepOutput::Counts];
    for (workers, output) in [1, 2, 4].into_iter().flat_map(|workers| outputs.map(|output| (workers, output))) {
        let pool = Pool::new(workers);
        let enough = AtomicBool::new(false);
        let before = long.opens();
        thread::scope(|scope| {
            let drain = scope.spawn(|| {
                let mut events = grep_stream_on(&pool, Arc::clone(&long) as _, OpContext::new(), hit().output(output));
                let mut more = true;
                while more && !enough.load(Ordering::Acquire) {
                    more = block_on(events.next()).is_some();
                }
            });
            while long.opens() < before + 100 {
                thread::yield_now();
            }
            for _ in 0..10 {
                let outcome = Outcome::of(grep_stream_on(&pool, Arc::clone(&short) as _, OpContext::new(), hit()));
                assert_eq!(outcome.events.len(), 60);
            }
            let opened = long.opens() - before;
            enough.store(true, Ordering::Release);
            drain.join().expect("it searches");
            assert!(
                opened < LONG / 4,
                "{opened} files came before ten short searches, {output:?} on {workers} workers"
            );
        });
        wait_until_idle(&pool);
    }
}

const CALLERS: usize = 1_000;
const FILES: usize = 50;

/// A thousand tasks read, search and edit, each a line of its own, in files that they share.
fn check_a_thousand_callers(files: &Arc<dyn Backend>) {
    for file in 0..FILES {
        let text: String = (file..CALLERS).step_by(FILES).map(|caller| format!("caller {caller:04} waits\n")).collect();
        block_on(files.create_text(&format!("/d{}/f{file:02}", file % 7), &text)).expect("it writes");
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime starts");
    let tasks: Vec<_> = (0..CALLERS).map(|caller| runtime.spawn(call(Arc::clone(files), caller))).collect();
    for (caller, task) in tasks.into_iter().enumerate() {
        let done = runtime.block_on(task).expect("no task panics");
        assert_eq!(done, Ok(()), "caller {caller}");
    }
    let ends = runtime.block_on(files.grep_text("is done")).expect("it searches");
    assert_eq!(ends.len(), CALLERS);
}

async fn call(files: Arc<dyn Backend>, caller: usize) -> Result<()> {
    let cx = OpContext::new();
    let file = caller % FILES;
    let path = VfsPath::parse(&format!("/d{}/f{file:02}", file % 7))?;
    let old = format!("caller {caller:04} waits");
    let found = files.grep(&cx, GrepRequest::literal(&old)).await?;
    assert_eq!(found.matches.len(), 1);
    assert_eq!((&found.matches[0].path, found.matches[0].line), (&path, (caller / FILES + 1) as u64));
    files.edit(&cx, EditRequest::new(path.clone(), old, format!("caller {caller:04} is done"))).await?;
    let line = files.read(&cx, ReadRequest::new(path).lines((caller / FILES) as u64, 1)).await?;
    assert_eq!(line.content.as_text(), Some(format!("caller {caller:04} is done\n").as_str()));
    let mut events = files.grep_stream(cx, GrepRequest::literal("caller"));
    assert!(matches!(events.next().await, Some(Ok(GrepEvent::Match(_)))));
    Ok(())
}

#[test]
fn a_thousand_callers_of_memory_get_on() {
    let pool = Pool::new(2);
    let files = MemoryBackend::with_config(MemoryConfig::new().search_pool(pool.clone()));
    check_a_thousand_callers(&(Arc::new(files) as _));
    wait_until_idle(&pool);
}

#[test]
fn a_thousand_callers_of_a_disk_get_on() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let pool = Pool::new(2);
    let config = LocalConfig::new(root.path()).durability(Durability::Atomic).search_pool(pool.clone());
    check_a_thousand_callers(&(Arc::new(config.open().expect("the root opens")) as _));
    wait_until_idle(&pool);
}

#[test]
fn searches_beyond_what_the_queue_holds_are_turned_away_and_the_others_end() {
    let pool = Pool::new(1);
    let (gate, opened) = mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let tree = Arc::new(SketchTree::alike(1, "hit\n").on_open(move |_| {
        let _ = opened.lock().expect("nobody panics here").recv();
    }));
    let begin = || grep_stream_on(&pool, Arc::clone(&tree) as _, OpContext::new(), hit());
    let (mut waiting, mut busy) = (Vec::new(), 0);
    for _ in 0..2 * MOST_WAITING {
        let mut events = begin();
        match events.next().now_or_never() {
            None => waiting.push(events),
            Some(Some(Err(error))) if error.kind() == ErrorKind::Busy => busy += 1,
            other => panic!("{other:?} while every worker waits"),
        }
        assert!(pool.stats().queued <= MOST_WAITING);
    }
    assert!(waiting.len() >= MOST_WAITING, "{} wait", waiting.len());
    assert!(busy >= MOST_WAITING / 2, "{busy} were turned away");
    drop(gate);
    for events in waiting {
        assert_eq!(Outcome::of(events).events.len(), 1);
    }
    assert_eq!(Outcome::of(begin()).events.len(), 1, "one that was turned away may try again");
    wait_until_idle(&pool);
    assert!(pool.stats().threads <= 1 + 64, "{:?}", pool.stats());
}
