//! The same over a tree of this machine, where one is named.
//!
//! `VFS_ORDER_TREE` is its directory, `VFS_ORDER_PATTERN` the text to find (default `return`), and `VFS_ORDER_RUNS` how often
//! at each number of workers (default 100).

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;

use futures::StreamExt as _;
use futures::executor::block_on;
use vfs_core::search::GrepSummary;
use vfs_core::{Backend, GrepEvent, GrepRequest, OpContext};
use vfs_local::{LocalConfig, SearchCache};
use vfs_search::Pool;
use vfs_tests::eager_memory;
use vfs_tests::settings::{directory, setting};

/// Digest by which answers of any length are compared.
#[derive(Debug, PartialEq, Eq)]
struct Digest {
    matches: u64,
    hash: u64,
    summary: GrepSummary,
}

fn search(root: &Path, pool: &Pool, memory: &SearchCache, pattern: &str) -> Digest {
    let config = LocalConfig::new(root).search_pool(pool.clone()).search_cache(memory.clone());
    let files = config.open().expect("the root opens");
    let mut events = files.grep_stream(OpContext::new(), GrepRequest::literal(pattern));
    let mut last = None;
    let mut matches = 0;
    let mut hash = DefaultHasher::new();
    block_on(async {
        while let Some(event) = events.next().await {
            match event.expect("it searches") {
                GrepEvent::Match(found) => {
                    (&found.path, found.line, found.column, &found.text).hash(&mut hash);
                    let place = Some((found.path, found.line));
                    assert!(last < place, "{place:?} follows {last:?}");
                    last = place;
                    matches += 1;
                }
                GrepEvent::Problem(problem) => (problem.path, problem.message).hash(&mut hash),
                GrepEvent::End(summary) => return Digest { matches, hash: hash.finish(), summary },
                other => panic!("{other:?} was not requested"),
            }
        }
        panic!("a stream ends with its end")
    })
}

#[test]
#[ignore = "needs VFS_ORDER_TREE, a directory to search"]
#[expect(clippy::print_stdout, reason = "the searches and their number are part of the report of this test")]
fn a_tree_of_this_machine_is_searched_in_order() {
    let root = directory("VFS_ORDER_TREE").expect("VFS_ORDER_TREE names a directory");
    let pattern: String = setting("VFS_ORDER_PATTERN", "return".to_owned());
    let runs: usize = setting("VFS_ORDER_RUNS", 100);
    let expected = search(&root, &Pool::new(1), &SearchCache::new(0), &pattern);
    let memory = eager_memory();
    assert!(expected.matches > 0, "nothing matches {pattern}");
    for workers in 1..=8 {
        let pool = Pool::new(workers);
        for run in 0..runs {
            assert_eq!(search(&root, &pool, &memory, &pattern), expected, "run {run} on {workers} workers");
        }
        println!("{workers} workers: {runs} runs gave the same {} lines", expected.matches);
    }
}
