use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt as _;
use futures::executor::block_on;
use vfs_core::search::LinkMode;
use vfs_core::{CancelToken, ErrorKind, GrepEvent, GrepRequest, OpContext, TruncationReason};

use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::ops::grep_stream::GrepEventStream;
use crate::testing::{TestContentSource, TestNode, TestTree, run, run_on};
use crate::{Pool, grep, grep_stream, grep_stream_on};

fn many(files: usize, text: &str) -> TestTree {
    let paths: Vec<_> = (0..files).map(|n| format!("/d{}/f{n:05}", n % 7)).collect();
    TestTree::new(paths.iter().map(|path| (path.as_str(), text)))
}

fn hit() -> GrepRequest {
    GrepRequest::literal("hit")
}

#[test]
fn a_search_is_the_same_at_every_number_of_workers() {
    let tree = Arc::new(many(500, "x\nhit 1\nhit 2\n"));
    let expected = run_on(Arc::clone(&tree), hit(), 1, 1).expect("it searches");
    assert_eq!(expected.events.len(), 1000);
    for workers in 1..=8 {
        for window in [1, 2, 64] {
            assert_eq!(run_on(Arc::clone(&tree), hit(), workers, window).expect("it searches"), expected);
        }
    }
}

#[test]
fn nothing_is_done_before_the_first_poll() {
    let tree = Arc::new(many(10, "hit"));
    drop(grep_stream(Arc::clone(&tree) as _, OpContext::new(), hit()));
    assert!(tree.listed.lock().expect("not poisoned").is_empty());
}

#[test]
fn a_panic_is_an_error_and_the_pool_lives_on() {
    let pool = Pool::new(1);
    let tree = Arc::new(many(20, "hit").on_open(|path| assert!(!path.ends_with("f00003"), "a panic in a backend")));
    let events: Vec<_> = block_on(grep_stream_on(&pool, Arc::clone(&tree) as _, OpContext::new(), hit()).collect());
    let (last, found) = events.split_last().expect("it ends");
    assert_eq!(last.as_ref().expect_err("an error").kind(), ErrorKind::Internal);
    assert!(found.iter().all(|event| matches!(event, Ok(GrepEvent::Match(_)))));
    let fine = Arc::new(many(20, "hit"));
    let events: Vec<_> = block_on(grep_stream_on(&pool, fine, OpContext::new(), hit()).collect());
    assert_eq!(events.len(), 21);
}

#[test]
fn a_full_batch_arrives_while_the_next_file_is_being_opened() {
    const LINES: usize = 16;
    // The lines of a file fill a batch.
    let text = format!("hit {}\n", "x".repeat(4 << 10)).repeat(LINES);
    let pool = Pool::new(1);
    for _ in 0..20 {
        let (arrive, arrived) = mpsc::channel::<()>();
        let arrived = Mutex::new(arrived);
        let has_hung = Arc::new(AtomicBool::new(false));
        let hung = Arc::clone(&has_hung);
        // With the other directories the queue has so much work that the task of the first one is not split.
        let others: Vec<_> = (0..100).map(|n| format!("/e{n}/f")).collect();
        let files = [("/d/a", text.as_str()), ("/d/b", &text), ("/d/c", "")];
        let files = files.into_iter().chain(others.iter().map(|path| (path.as_str(), "")));
        let tree = TestTree::new(files).on_open(move |path| {
            let waits = matches!(path, "/d/b" | "/d/c");
            if waits && arrived.lock().expect("not poisoned").recv_timeout(Duration::from_secs(20)).is_err() {
                hung.store(true, Ordering::Relaxed);
            }
        });
        let mut events = grep_stream_on(&pool, Arc::new(tree), OpContext::new(), hit());
        let mut lines = 0;
        // The next file is opened once the lines of the last one are here and the consumer waits for more.
        let last = block_on(poll_fn(|task| {
            loop {
                match events.poll_next_unpin(task) {
                    Poll::Ready(Some(Ok(GrepEvent::Match(_)))) => lines += 1,
                    Poll::Ready(event) => return Poll::Ready(event),
                    Poll::Pending => break,
                }
            }
            if lines > 0 && lines % LINES == 0 {
                let _ = arrive.send(());
            }
            Poll::Pending
        }));
        assert!(matches!(last, Some(Ok(GrepEvent::End(_)))), "{last:?}");
        assert_eq!(lines, 2 * LINES);
        assert!(!has_hung.load(Ordering::Relaxed), "the lines of one file waited for the next file");
    }
}

#[test]
fn a_dropped_stream_stops_its_workers() {
    let pool = Pool::new(2);
    let (opened, opens) = mpsc::channel();
    let (allow, allowed) = mpsc::channel::<()>();
    let (opened, allowed) = (Mutex::new(opened), Mutex::new(allowed));
    let tree = Arc::new(many(1000, "hit\n").on_open(move |path| {
        let _ = opened.lock().expect("not poisoned").send(());
        // Only the first file is released; the order of the other workers is arbitrary.
        if path != "/d0/f00000" {
            let _ = allowed.lock().expect("not poisoned").recv();
        }
    }));
    let mut events = grep_stream_on(&pool, Arc::clone(&tree) as _, OpContext::new(), hit());
    assert!(matches!(block_on(events.next()), Some(Ok(GrepEvent::Match(_)))));
    drop(events);
    // A worker that is in `open` now returns from it. No worker calls it again, except for a file that was started.
    drop(allow);
    drop(pool);
    let tree = wait_for_last(tree);
    let done = opens.iter().count();
    assert!(done <= 8, "{done} files were opened");
    drop(tree);
}

/// Waits until the workers have released `tree`; the channel of its hook then ends.
fn wait_for_last(mut tree: Arc<TestTree>) -> Arc<TestTree> {
    loop {
        if let Some(last) = Arc::get_mut(&mut tree) {
            last.on_open = None;
            return tree;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_stream_that_is_not_polled_does_not_delay_another() {
    let pool = Pool::new(1);
    let limits = RunAheadLimits { window: 4, budget: 1 << 12, head_budget: 1 << 10, max_entries: u64::MAX };
    let noisy = Arc::new(many(100, &"hit\n".repeat(10_000)));
    let mut idle: Vec<_> = (0..3)
        .map(|_| GrepEventStream::new(Arc::clone(&noisy) as _, OpContext::new(), hit(), pool.clone(), limits))
        .collect();
    for events in &mut idle {
        assert!(matches!(block_on(events.next()), Some(Ok(GrepEvent::Match(_)))));
    }
    let quiet = Arc::new(many(50, "hit\n"));
    let events: Vec<_> = block_on(GrepEventStream::new(quiet, OpContext::new(), hit(), pool, limits).collect());
    assert_eq!(events.len(), 51);
}

#[test]
fn many_searches_at_once_all_end() {
    let pool = Pool::new(2);
    let tree = Arc::new(many(40, "hit\n"));
    let searches = (0..200).map(|_| grep_stream_on(&pool, Arc::clone(&tree) as _, OpContext::new(), hit()).count());
    assert_eq!(block_on(futures::future::join_all(searches)), vec![41; 200]);
}

#[test]
fn a_cancelled_search_ends_even_while_its_workers_are_busy() {
    let pool = Pool::new(1);
    let (entered, in_open) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (entered, released) = (Mutex::new(entered), Mutex::new(released));
    let tree = Arc::new(many(5, "hit").on_open(move |_| {
        let _ = entered.lock().expect("not poisoned").send(());
        let _ = released.lock().expect("not poisoned").recv();
    }));
    let token = CancelToken::new();
    let cx = OpContext::new().with_cancel_token(token.clone());
    let mut events = grep_stream_on(&pool, tree, cx, hit());
    let canceller = std::thread::spawn(move || {
        in_open.recv().expect("a worker opens a file");
        token.cancel();
    });
    let error = block_on(events.next()).expect("an item").expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(block_on(events.next()).is_none());
    canceller.join().expect("it cancels");
    drop(release);
}

#[test]
fn a_deadline_ends_a_search_even_while_its_workers_are_busy() {
    let pool = Pool::new(1);
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let tree = Arc::new(many(5, "hit").on_open(move |_| {
        let _ = released.lock().expect("not poisoned").recv();
    }));
    let cx = OpContext::new().with_timeout(Duration::from_millis(20));
    let error = block_on(grep_stream_on(&pool, tree, cx, hit()).next()).expect("an item").expect_err("too late");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    drop(release);
}

#[test]
fn a_context_that_is_over_already_is_an_error_at_once() {
    let cx = OpContext::new();
    cx.cancel_token().cancel();
    let error = block_on(grep(Arc::new(many(1, "hit")), cx, hit())).expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn a_collected_search_keeps_its_size_limit() {
    let tree = Arc::new(many(10, &"hit\n".repeat(100)));
    let result =
        block_on(grep(Arc::clone(&tree) as _, OpContext::new(), hit().max_result_bytes(1000))).expect("it searches");
    assert_eq!(result.truncated, Some(TruncationReason::MaxBytes));
    assert!(!result.matches.is_empty() && result.matches.len() < 1000 / 32);
    let result = block_on(grep(tree, OpContext::new(), hit())).expect("it searches");
    assert_eq!((result.matches.len(), result.truncated, result.files_searched), (1000, None, 10));
}

#[test]
fn unpolled_streams_beyond_the_number_of_threads_delay_no_search_and_lose_no_items() {
    let pool = Pool::with_compensation_threads(2, 2);
    let limits = RunAheadLimits { window: 8, budget: 1 << 12, head_budget: 1 << 10, max_entries: u64::MAX };
    let text: String = (0..3000).map(|n| format!("hit {n}\nbetween\n")).collect();
    let noisy = Arc::new(many(12, &text));
    let req = hit().context(1, 1);
    let expected: Vec<_> = block_on(
        GrepEventStream::new(Arc::clone(&noisy) as _, OpContext::new(), req.clone(), Pool::new(2), limits).collect(),
    );
    let expected: Vec<_> = expected.into_iter().map(|event| event.expect("it searches")).collect();
    let mut idle: Vec<_> = (0..10)
        .map(|_| GrepEventStream::new(Arc::clone(&noisy) as _, OpContext::new(), req.clone(), pool.clone(), limits))
        .collect();
    let firsts: Vec<_> = idle.iter_mut().map(|events| block_on(events.next()).expect("an item")).collect();
    let quiet = Arc::new(many(50, "hit\n"));
    let events: Vec<_> = block_on(GrepEventStream::new(quiet, OpContext::new(), hit(), pool, limits).collect());
    assert_eq!(events.len(), 51);
    for (first, rest) in firsts.into_iter().zip(idle) {
        let all: Vec<_> = std::iter::once(first).chain(block_on(rest.collect::<Vec<_>>())).collect();
        let all: Vec<_> = all.into_iter().map(|event| event.expect("it searches")).collect();
        assert!(all == expected, "{} events, not {}", all.len(), expected.len());
    }
}

#[test]
fn a_search_whose_workers_are_all_stuck_claims_no_more_threads() {
    let pool = Pool::with_compensation_threads(2, 4);
    let (opened, opens) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (opened, released) = (Mutex::new(opened), Mutex::new(released));
    let tree = Arc::new(many(200, "hit\n").on_open(move |_| {
        let _ = opened.lock().expect("not poisoned").send(());
        let _ = released.lock().expect("not poisoned").recv();
    }));
    let mut stuck = grep_stream_on(&pool, tree, OpContext::new(), hit());
    assert!(futures::FutureExt::now_or_never(stuck.next()).is_none());
    let quiet = Arc::new(many(50, "hit\n"));
    for _ in 0..20 {
        let events = grep_stream_on(&pool, Arc::clone(&quiet) as _, OpContext::new(), hit());
        assert_eq!(block_on(events.count()), 51);
    }
    assert!(opens.try_iter().count() <= 2);
    drop(stuck);
    drop(release);
}

#[test]
fn finished_searches_with_stuck_workers_delay_no_other_search() {
    let pool = Pool::with_compensation_threads(1, 4);
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let tree = Arc::new(many(50, "hit\n").on_open(move |_| {
        let _ = released.lock().expect("not poisoned").recv();
    }));
    for _ in 0..4 {
        let cx = OpContext::new().with_timeout(Duration::from_millis(20));
        let events: Vec<_> = block_on(grep_stream_on(&pool, Arc::clone(&tree) as _, cx, hit()).collect());
        assert!(events.iter().all(Result::is_err));
    }
    let quiet = Arc::new(many(50, "hit\n"));
    assert_eq!(block_on(grep_stream_on(&pool, quiet, OpContext::new(), hit()).count()), 51);
    drop(release);
}

#[test]
fn a_long_run_of_irrelevant_entries_is_interrupted() {
    let paths: Vec<_> = (0..5000).map(|n| format!("/f{n:04}.txt")).collect();
    let token = CancelToken::new();
    let cancel = token.clone();
    let tree = TestTree::new(paths.iter().map(|path| (path.as_str(), ""))).on_list(move |_| cancel.cancel());
    let cx = OpContext::new().with_cancel_token(token);
    let error = block_on(grep(Arc::new(tree), cx, hit().glob("*.rs"))).expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn a_broken_link_is_a_problem_only_if_its_name_matches() {
    for links in [LinkMode::Skip, LinkMode::Follow] {
        let tree = TestTree::new([("/a.rs", "")]).with("/foo.txt", TestNode::Link("/nothing"));
        let mut req = GrepRequest::literal("x");
        req.links = links;
        assert_eq!(run(&tree, &req).lines(), ["/foo.txt! not_found"], "{links:?}");
        assert!(run(&tree, &req.clone().glob("*.rs")).lines().is_empty(), "{links:?}");
    }
}

#[test]
fn a_followed_link_that_leads_outside_is_a_problem_even_if_its_name_does_not_match() {
    let tree = TestTree::new([("/a.rs", "hit")]).with("/vendor", TestNode::Link("../elsewhere"));
    let mut req = hit().glob("*.rs");
    assert_eq!(run(&tree, &req).lines(), ["/a.rs:1:hit"]);
    req.links = LinkMode::Follow;
    assert_eq!(run(&tree, &req).lines(), ["/a.rs:1:hit", "/vendor! path_escape"]);
}

#[test]
fn a_link_is_not_followed_before_its_turn() {
    let links: Vec<String> = (0..1000).map(|n| format!("/l{n:03}")).collect();
    let tree = links.iter().fold(TestTree::new([("/a", "hit")]), |tree, link| tree.with(link, TestNode::Link("/a")));
    let (follows, before) = (Arc::clone(&tree.follows), Arc::new(AtomicUsize::new(usize::MAX)));
    let seen = Arc::clone(&before);
    let tree = tree.on_open(move |_| seen.store(follows.load(Ordering::SeqCst), Ordering::SeqCst));
    let events = grep_stream_on(&Pool::new(1), Arc::new(tree), OpContext::new(), hit());
    assert_eq!(block_on(events.count()), 2);
    assert_eq!(before.load(Ordering::SeqCst), 0, "links were followed before the first file was opened");
}

#[test]
fn a_name_that_is_listed_twice_is_searched_once_at_every_number_of_workers() {
    let tree = Arc::new(many(60, "hit\n").listing_twice());
    for workers in [1, 2, 8] {
        let outcome = run_on(Arc::clone(&tree), hit(), workers, 64).expect("it searches");
        assert_eq!(outcome.events.len(), 60, "{workers} workers");
    }
}

#[test]
fn a_slow_file_does_not_delay_another_search() {
    let pool = Pool::new(1);
    let text = "x\n".repeat(16 << 20);
    let (begin, begun) = mpsc::channel::<()>();
    let begun = Mutex::new(begun);
    let long = TestTree::new([("/long", text.as_str())]).lend(TestContentSource::Reader(16)).on_open(move |_| {
        let _ = begun.lock().expect("not poisoned").recv();
    });
    let exhausted = Arc::clone(&long.exhausted);
    let mut long = grep_stream_on(&pool, Arc::new(long), OpContext::new(), hit());
    assert!(futures::FutureExt::now_or_never(long.next()).is_none());
    while pool.stats().busy == 0 {
        std::thread::yield_now();
    }
    let last = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&last);
    let short = many(50, "hit\n").on_open(move |_| seen.store(exhausted.load(Ordering::SeqCst), Ordering::SeqCst));
    let mut events = Box::pin(grep_stream_on(&pool, Arc::new(short), OpContext::new(), hit()).count());
    let early = futures::FutureExt::now_or_never(&mut events);
    // The long file is read only now that the other search is queued.
    drop(begin);
    assert_eq!(early.unwrap_or_else(|| block_on(events)), 51);
    assert_eq!(last.load(Ordering::SeqCst), 0, "the long one was over first");
}

#[test]
fn one_large_directory_is_searched_by_all_workers() {
    // Each open blocks until another file is opened at the same time, which needs a second worker.
    let barrier = Arc::new(std::sync::Barrier::new(2));
    let meeting = Arc::clone(&barrier);
    let tree = Arc::new(many(1, "hit\n").with("/d0/f00001", TestNode::File("hit\n".into())).on_open(move |_| {
        meeting.wait();
    }));
    let outcome = run_on(tree, hit(), 2, 8).expect("it searches");
    assert_eq!(outcome.events.len(), 2);
}
