//! Results come in the order of paths and lines, and are the same on every run with every number of workers.
//!
//! `VFS_ORDER_RUNS` sets the runs at each number of workers.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::executor::block_on;
use vfs_core::search::{LineKind, LinkMode};
use vfs_core::{
    Backend, CaseMode, GrepEvent, GrepMatch, GrepOutput, GrepRequest, OpContext, TruncationReason, VfsPath,
};
use vfs_local::LocalConfig;
use vfs_memory::{MemoryBackend, MemoryConfig};
use vfs_search::{Pool, grep_stream_on};
use vfs_tests::eager_memory;
use vfs_tests::nasty::{NEEDLE, NastyTree};
use vfs_tests::settings::setting;
use vfs_tests::sketch::{Node, SketchTree};

use super::{Events, Outcome};

/// Starts a search of one tree on a pool.
type Search<'a> = dyn Fn(&Pool, GrepRequest) -> Events + 'a;

fn needle() -> GrepRequest {
    GrepRequest::literal(NEEDLE)
}

/// Searches that end by themselves.
fn whole_searches() -> Vec<GrepRequest> {
    vec![
        needle().context(2, 1),
        needle().output(GrepOutput::Files),
        needle().output(GrepOutput::Counts),
        needle().case(CaseMode::Insensitive).hidden().no_ignore(),
        GrepRequest::regex(r"^line \d*7 is (needle|hay)").glob("*a*"),
        needle().invert().glob("/order/**"),
        needle().links(LinkMode::Follow),
        needle().multiline().output(GrepOutput::Counts),
        GrepRequest::literal("nothing has this"),
    ]
}

/// Asks every question of one tree on one worker, checks the answers against one another and against `tree`, and then
/// again on every number of workers.
fn check(tree: &NastyTree, search: &Search<'_>) {
    let runs: usize = setting("VFS_ORDER_RUNS", 1);
    let one = Pool::new(1);
    let whole = Outcome::of(search(&one, needle()));
    let found: Vec<_> = matches(&whole).map(|found| (found.path.as_str().to_owned(), found.line)).collect();
    let differs = found.iter().zip(&tree.lines).find(|(found, expected)| found != expected);
    assert_eq!((differs, found.len()), (None, tree.lines.len()));
    let mut questions = vec![(needle(), whole)];
    for request in whole_searches() {
        let outcome = Outcome::of(search(&one, request.clone()));
        questions.push((request, outcome));
    }
    for (request, outcome) in &questions {
        assert_in_order(tree, request, outcome);
    }
    let limited = limited_searches(&questions, &|request| Outcome::of(search(&one, request)));
    questions.extend(limited);
    for workers in 1..=8 {
        let pool = Pool::new(workers);
        for run in 0..runs {
            for (request, expected) in &questions {
                let what = || format!("run {run} on {workers} workers: {request:?}");
                Outcome::of(search(&pool, request.clone())).assert_is(expected, &what());
            }
        }
    }
}

fn matches(outcome: &Outcome) -> impl Iterator<Item = &GrepMatch> {
    outcome.events.iter().filter_map(|event| match event {
        GrepEvent::Match(found) if found.kind == LineKind::Match => Some(found),
        _ => None,
    })
}

/// Lines by path and number, files by path, and what could not be searched where it would have come.
fn assert_in_order(tree: &NastyTree, request: &GrepRequest, outcome: &Outcome) {
    let mut last = (String::new(), 0);
    for event in &outcome.events {
        let place = match event {
            GrepEvent::Match(line) => (line.path.as_str().to_owned(), line.line),
            GrepEvent::File(file) => (file.path.as_str().to_owned(), 1),
            // Reported when its directory is listed.
            GrepEvent::Problem(problem) if problem.path.contains('\u{fffd}') => continue,
            GrepEvent::Problem(problem) => match tree.nodes.get(&problem.path) {
                Some(Node::LockedDirectory) => (format!("{}/", problem.path), 1),
                _ => (problem.path.clone(), 1),
            },
            other => panic!("{other:?} is not the end"),
        };
        assert!(last < place, "{place:?} follows {last:?}: {request:?}");
        last = place;
    }
}

/// Asserts that the results with a limit are the beginning of those without.
fn limited_searches(
    questions: &[(GrepRequest, Outcome)],
    ask: &dyn Fn(GrepRequest) -> Outcome,
) -> Vec<(GrepRequest, Outcome)> {
    let mut limited = Vec::new();
    for (request, whole) in &questions[..4] {
        let all = counted(whole);
        assert!(all > 20, "{request:?} has too few results to be limited");
        for limit in [0, 1, 20, all - 1, all, all + 1] {
            let request = request.clone().limit(limit as u64);
            let outcome = ask(request.clone());
            assert_eq!(counted(&outcome), limit.min(all), "{request:?}");
            assert_eq!(outcome.summary.truncated, (limit < all).then_some(TruncationReason::Limit), "{request:?}");
            let differs = results(&outcome).zip(results(whole)).find(|(ours, theirs)| ours != theirs);
            assert_eq!(differs, None, "{request:?}");
            limited.push((request, outcome));
        }
    }
    let (request, whole) = &questions[0];
    for limit in [1, 3] {
        let request = request.clone().limit_per_file(limit);
        let outcome = ask(request.clone());
        let mut left = (None, 0);
        let expected: Vec<_> = matches(whole)
            .filter(|found| {
                left = if left.0 == Some(&found.path) { (left.0, left.1 + 1) } else { (Some(&found.path), 1) };
                left.1 <= limit
            })
            .collect();
        assert_eq!(matches(&outcome).collect::<Vec<_>>(), expected, "{request:?}");
        limited.push((request.clone(), outcome));
        let request = request.limit(20);
        let outcome = ask(request.clone());
        assert_eq!(matches(&outcome).collect::<Vec<_>>(), expected[..20], "{request:?}");
        limited.push((request, outcome));
    }
    limited
}

/// How much counts towards the limit.
fn counted(outcome: &Outcome) -> usize {
    let files = outcome.events.iter().filter(|event| matches!(event, GrepEvent::File(_))).count();
    matches(outcome).count() + files
}

/// The lines and files that were found. A line behind the last match of a limited search is context, even where it matches.
fn results(outcome: &Outcome) -> impl Iterator<Item = (&VfsPath, u64, &str)> {
    outcome.events.iter().filter_map(|event| match event {
        GrepEvent::Match(line) => Some((&line.path, line.line, line.text.as_str())),
        GrepEvent::File(file) => Some((&file.path, file.count.unwrap_or_default(), "")),
        _ => None,
    })
}

#[test]
fn a_tree_with_locked_files_is_searched_in_order() {
    let nasty = NastyTree::new(1);
    let tree = Arc::new(SketchTree::new(nasty.nodes.clone()));
    check(&nasty, &|pool, request| grep_stream_on(pool, Arc::clone(&tree) as _, OpContext::new(), request));
    let problems = Outcome::of(grep_stream_on(&Pool::new(1), tree, OpContext::new(), needle())).events;
    let problems = problems.iter().filter(|event| matches!(event, GrepEvent::Problem(_)));
    assert_eq!(problems.count(), 5);
}

#[test]
fn memory_is_searched_in_order() {
    let nasty = NastyTree::new(2);
    let files = MemoryBackend::from_files(nasty.files()).expect("the files fit one another").snapshot();
    check(&nasty, &|pool, request| {
        let backend = MemoryBackend::with_config(MemoryConfig::new().search_pool(pool.clone()));
        backend.restore(&files);
        backend.grep_stream(OpContext::new(), request)
    });
}

#[test]
fn a_disk_is_searched_in_order() {
    let nasty = NastyTree::new(3);
    let root = nasty.on_disk().expect("the tree is made");
    let memory = eager_memory();
    let on = |pool: &Pool| {
        let config = LocalConfig::new(root.path()).search_pool(pool.clone()).search_cache(memory.clone());
        config.open().expect("the root opens")
    };
    check(&nasty, &|pool, request| on(pool).grep_stream(OpContext::new(), request));
    let collected = block_on(on(&Pool::new(2)).grep(&OpContext::new(), needle())).expect("it searches");
    let problems: BTreeSet<_> = collected.problems.iter().map(|problem| problem.path.as_str()).collect();
    for path in ["/order/a/a.nowhere", "/order/aa.outside", "/many/itself", "/order/a/not utf-8 \u{fffd}"] {
        assert!(problems.contains(path), "{path} is not in {problems:?}");
    }
}
