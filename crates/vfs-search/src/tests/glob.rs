use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use futures::StreamExt as _;
use futures::executor::block_on;
use vfs_core::search::{EntryKinds, LinkMode};
use vfs_core::{ErrorKind, GlobRequest, GlobResult, GrepEvent, GrepRequest, OpContext, TruncationReason};

use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::engine::pool::Pool;
use crate::ops::grep_stream::GrepEventStream;
use crate::testing::{self, TestNode, TestTree, path};
use crate::{glob, glob_on};

/// Time after which a test counts as hung. It is no expectation of speed.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

fn find(tree: &TestTree, req: &GlobRequest) -> GlobResult {
    testing::find(tree, req).unwrap_or_else(|error| panic!("{req:?}: {error}"))
}

fn paths(result: &GlobResult) -> Vec<&str> {
    result.entries.iter().map(|info| info.path.as_str()).collect()
}

#[test]
fn names_match_at_any_depth_and_paths_relative_to_the_search() {
    let tree = TestTree::new([("/p/a.rs", ""), ("/p/src/b.rs", ""), ("/p/src/net/c.rs", ""), ("/q.rs", "")]);
    for (pattern, at, expected) in [
        ("*.rs", "/", &["/p/a.rs", "/p/src/b.rs", "/p/src/net/c.rs", "/q.rs"][..]),
        ("*.rs", "/p/src", &["/p/src/b.rs", "/p/src/net/c.rs"]),
        ("/*.rs", "/p", &["/p/a.rs"]),
        ("src/*.rs", "/p", &["/p/src/b.rs"]),
        ("src/**/*.rs", "/p", &["/p/src/b.rs", "/p/src/net/c.rs"]),
        ("nothing", "/", &[]),
    ] {
        assert_eq!(paths(&find(&tree, &GlobRequest::new(pattern).path(path(at)))), expected, "{pattern} {at}");
    }
}

#[test]
fn only_directories_that_the_pattern_can_reach_are_listed() {
    let tree =
        || TestTree::new([("/src/net/a.rs", ""), ("/src/fs/deep/b.rs", ""), ("/docs/x/c.rs", ""), ("/lib/d.rs", "")]);
    for (pattern, expected) in [
        ("src/net/*.rs", &["/", "/src/", "/src/net/"][..]),
        ("/*.rs", &["/"]),
        ("{src/net,lib}/*.rs", &["/", "/lib/", "/src/", "/src/net/"]),
        ("src/**", &["/", "/src/", "/src/fs/", "/src/fs/deep/", "/src/net/"]),
    ] {
        let (tree, request) = (Arc::new(tree()), GlobRequest::new(pattern));
        let found = glob(Arc::clone(&tree) as _, &OpContext::new(), &request).expect("it globs");
        assert_eq!(found, find(&tree, &request));
        let mut listed = tree.listed.lock().expect("not poisoned").clone();
        listed.sort_unstable();
        assert_eq!(listed, expected, "{pattern}");
    }
}

#[test]
fn kinds_choose_between_files_and_directories() {
    let tree = TestTree::new([("/a/a", ""), ("/b", "")]).with("/a-pipe", TestNode::Fifo);
    for (kinds, expected) in [
        (EntryKinds::Files, &["/a/a", "/b"][..]),
        (EntryKinds::Directories, &["/a"]),
        (EntryKinds::All, &["/a", "/a/a", "/b"]),
    ] {
        assert_eq!(paths(&find(&tree, &GlobRequest::new("*").kinds(kinds))), expected, "{kinds:?}");
    }
    assert_eq!(paths(&find(&tree, &GlobRequest::new("a/").kinds(EntryKinds::All))), ["/a"]);
    let error = testing::find(&tree, &GlobRequest::new("a/")).expect_err("it can match no file");
    assert_eq!(error.kind(), ErrorKind::InvalidPattern);
}

#[test]
fn a_limited_result_says_whether_there_is_more() {
    let tree = TestTree::new([("/a", ""), ("/b", ""), ("/c", "")]);
    for (limit, count, truncated) in
        [(0, 0, Some(TruncationReason::Limit)), (2, 2, Some(TruncationReason::Limit)), (3, 3, None), (9, 3, None)]
    {
        let result = find(&tree, &GlobRequest::new("*").limit(limit));
        assert_eq!((result.entries.len(), result.truncated), (count, truncated), "{limit}");
    }
}

fn linked() -> TestTree {
    TestTree::new([("/d/x.rs", ""), ("/real.rs", "")])
        .with("/file.rs", TestNode::Link("/real.rs"))
        .with("/dir.rs", TestNode::Link("/d"))
        .with("/out.rs", TestNode::Link("outside"))
        .with("/other", TestNode::Link("nowhere"))
        .with("/d/up.rs", TestNode::Link("/"))
}

#[test]
fn links_are_shown_under_their_own_names_and_not_followed() {
    let result = find(&linked(), &GlobRequest::new("*.rs"));
    assert_eq!(paths(&result), ["/d/x.rs", "/file.rs", "/real.rs"]);
    assert_eq!(result.problems.len(), 1);
    assert_eq!((result.problems[0].path.as_str(), result.problems[0].code), ("/out.rs", ErrorKind::PathEscape));
    let result = find(&linked(), &GlobRequest::new("*.rs").kinds(EntryKinds::Directories));
    assert_eq!(paths(&result), ["/d/up.rs", "/dir.rs"]);
}

#[test]
fn a_followed_link_into_the_searched_tree_is_not_entered() {
    let result = find(&linked(), &GlobRequest::new("*.rs").links(LinkMode::Follow));
    assert_eq!(paths(&result), ["/d/x.rs", "/file.rs", "/real.rs"]);
    let problems: Vec<_> = result.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    assert_eq!(problems, [("/other", ErrorKind::PathEscape), ("/out.rs", ErrorKind::PathEscape)]);
}

/// Returns nine directories that link to one another, and one that links to all of them.
fn linked_to_one_another() -> TestTree {
    const NAMES: [&str; 9] = ["/n/0", "/n/1", "/n/2", "/n/3", "/n/4", "/n/5", "/n/6", "/n/7", "/n/8"];
    let mut tree = TestTree::new([]);
    for (at, from) in NAMES.iter().enumerate() {
        tree = tree.with(&format!("{from}/file"), TestNode::File("hit".into()));
        tree = tree.with(&format!("/start/{at}"), TestNode::Link(from));
        for (number, to) in NAMES.iter().enumerate() {
            tree = tree.with(&format!("{from}/link{number}"), TestNode::Link(to));
        }
    }
    tree
}

#[test]
fn each_directory_is_listed_once_however_many_links_lead_to_one_another() {
    for (start, directories, times) in [("/", 12, 1), ("/n", 10, 1), ("/start", 10, 2)] {
        let request = GlobRequest::new("file").path(path(start)).links(LinkMode::Follow);
        let tree = Arc::new(linked_to_one_another());
        let found = glob(Arc::clone(&tree) as _, &OpContext::new(), &request).expect("it globs");
        assert_eq!(found.entries.len(), 9, "below {start}");
        assert_eq!(tree.listed.lock().expect("not poisoned").len(), directories, "below {start}");
        for workers in [1, 2, 8] {
            let (pool, tree) = (Pool::new(workers), Arc::new(linked_to_one_another()));
            let searched = glob_on(&pool, Arc::clone(&tree) as _, OpContext::new(), request.clone());
            assert_eq!(block_on(searched).expect("it globs"), found, "below {start}");
            // If links lead outside, a sequential walk determines under which path each directory is entered.
            let listed = tree.listed.lock().expect("not poisoned").len();
            assert_eq!(listed, directories * times, "below {start} with {workers} workers");
        }
    }
}

/// Returns a tree with this number of `directories` below `/s`, and a `link` that leads outside of `/s`.
fn linked_beside_many(directories: usize, link: &'static str) -> TestTree {
    let many: Vec<_> = (0..directories).map(|at| format!("/s/m{at:05}/file")).collect();
    let tree =
        TestTree::new(many.iter().map(|at| (at.as_str(), "")).chain([("/far/hit1", "hit"), ("/far/hit2", "hit")]));
    tree.with(link, TestNode::Link("/far"))
}

#[test]
fn a_link_outside_is_followed_before_the_rest_of_the_tree_is_listed() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let tree = linked_beside_many(100, "/s/a").on_list(move |dir| {
        if dir.starts_with("/s/m") {
            let waited = released.lock().expect("not poisoned").recv_timeout(HANG_TIMEOUT);
            assert_eq!(waited, Err(mpsc::RecvTimeoutError::Disconnected), "{dir} is listed first");
        }
    });
    let request = GlobRequest::new("hit*").path(path("/s")).links(LinkMode::Follow).limit(1);
    let found = block_on(glob_on(&Pool::new(1), Arc::new(tree), OpContext::new(), request)).expect("it globs");
    assert_eq!((paths(&found), found.truncated), (vec!["/s/a/hit1"], Some(TruncationReason::Limit)));
    drop(release);
}

#[test]
fn other_searches_run_while_one_resolves_links() {
    const DIRECTORIES: usize = 20_000;
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let (released, seen, planned) = (Mutex::new(released), Mutex::new(HashSet::new()), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&planned);
    let tree = linked_beside_many(DIRECTORIES, "/s/z").on_list(move |dir| {
        // A directory that is listed for the second time is listed to put the paths in order.
        if !seen.lock().expect("not poisoned").insert(dir.to_owned()) {
            counted.fetch_add(1, Ordering::Relaxed);
            let _nobody_waits = begin.send(());
            let _waited = released.lock().expect("not poisoned").recv_timeout(Duration::from_millis(5));
        }
    });
    let pool = Pool::new(1);
    let (slow_pool, request) = (pool.clone(), GlobRequest::new("hit*").path(path("/s")).links(LinkMode::Follow));
    let slow = thread::spawn(move || block_on(glob_on(&slow_pool, Arc::new(tree), OpContext::new(), request)));
    begun.recv_timeout(HANG_TIMEOUT).expect("it comes to the link");
    let other = Arc::new(TestTree::new([("/file", "")]));
    let found = block_on(glob_on(&pool, other, OpContext::new(), GlobRequest::new("*"))).expect("it globs");
    assert_eq!(found.entries.len(), 1);
    assert!(planned.load(Ordering::Relaxed) < DIRECTORIES, "the other search waited for all of it");
    drop(release);
    assert_eq!(slow.join().expect("it does not panic").expect("it globs").entries.len(), 2);
}

#[test]
fn a_search_that_follows_links_says_that_too_many_entries_lie_before_one() {
    let tree = Arc::new(linked_beside_many(10, "/s/z"));
    let request = || GrepRequest::literal("hit").path(path("/s")).links(LinkMode::Follow);
    for (max_entries, is_cut) in [(22, false), (21, true), (11, true)] {
        let limits = RunAheadLimits { max_entries, ..RunAheadLimits::for_workers(1) };
        let events = GrepEventStream::new(Arc::clone(&tree) as _, OpContext::new(), request(), Pool::new(1), limits);
        let events: Vec<_> = block_on(events.collect());
        let Some(Ok(GrepEvent::End(summary))) = events.last() else { panic!("it ends: {events:?}") };
        let expected = (u64::from(!is_cut) * 2, is_cut.then_some(TruncationReason::MaxEntries));
        assert_eq!((summary.matches, summary.truncated), expected, "{max_entries}");
    }
}

#[test]
fn a_link_that_is_not_entered_is_not_left_out_for_too_many_entries() {
    let tree = Arc::new(TestTree::new([("/a/file", "hit")]).with("/b", TestNode::Link("/a")));
    let limits = RunAheadLimits { max_entries: 3, ..RunAheadLimits::for_workers(1) };
    let request = GrepRequest::literal("hit").links(LinkMode::Follow);
    let events = GrepEventStream::new(tree, OpContext::new(), request, Pool::new(1), limits);
    let events: Vec<_> = block_on(events.collect());
    let Some(Ok(GrepEvent::End(summary))) = events.last() else { panic!("it ends: {events:?}") };
    assert_eq!((summary.matches, summary.truncated), (1, None));
}

#[test]
fn a_search_that_has_listed_too_many_entries_enters_no_further_directory_and_is_truncated() {
    let tree = Arc::new(TestTree::new([("/a", "hit"), ("/b/c", "hit"), ("/d/e/f", "hit"), ("/g/h", "hit")]));
    for (max_entries, is_cut) in [(0, true), (4, true), (5, true), (u64::MAX, false)] {
        let limits = RunAheadLimits { max_entries, ..RunAheadLimits::for_workers(1) };
        let events = |req| GrepEventStream::new(Arc::clone(&tree) as _, OpContext::new(), req, Pool::new(1), limits);
        let events: Vec<_> = block_on(events(GrepRequest::literal("hit")).collect());
        let Some(Ok(GrepEvent::End(summary))) = events.last() else { panic!("it ends: {events:?}") };
        assert_eq!(summary.truncated, is_cut.then_some(TruncationReason::MaxEntries), "{max_entries}");
        let found = match max_entries {
            0 | 4 => 1,
            5 => 2,
            _ => 4,
        };
        assert_eq!(summary.matches, found, "{max_entries}");
    }
}

#[test]
fn an_unreadable_directory_is_a_problem_and_the_rest_is_found() {
    let tree = TestTree::new([("/a", ""), ("/z", "")]).with("/locked", TestNode::LockedDirectory);
    let result = find(&tree, &GlobRequest::new("*"));
    assert_eq!(paths(&result), ["/a", "/z"]);
    assert_eq!((result.problems[0].path.as_str(), result.problems[0].code), ("/locked", ErrorKind::PermissionDenied));
}

#[test]
fn missing_paths_files_and_bad_patterns_are_errors() {
    let tree = TestTree::new([("/f", "")]);
    for (req, kind) in [
        (GlobRequest::new("*").path(path("/nothing")), ErrorKind::NotFound),
        (GlobRequest::new("*").path(path("/f")), ErrorKind::NotADirectory),
        (GlobRequest::new("["), ErrorKind::InvalidPattern),
        (GlobRequest::new("../*"), ErrorKind::InvalidPattern),
    ] {
        assert_eq!(testing::find(&tree, &req).expect_err("refused").kind(), kind, "{req:?}");
    }
}
