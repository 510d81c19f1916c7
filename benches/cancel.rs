//! How soon a search gives its first match, and how soon its workers are free once nobody wants it any more.

use std::thread;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use futures::StreamExt as _;
use futures::executor::block_on;
use futures::stream::BoxStream;
use vfs_core::{Backend, BackendExt as _, GrepEvent, GrepRequest, OpContext, Result};
use vfs_local::{Durability, LocalConfig};
use vfs_memory::{MemoryBackend, MemoryConfig};
use vfs_search::Pool;

/// What follows the first match: large files in which every line matches, or none does.
const SHAPES: [(&str, &str); 2] = [("among_matches", "a hit in every line\n"), ("among_hay", "hay in every line\n")];

const FILES: usize = 32;
const LINES: usize = 200_000;

fn cancel(criterion: &mut Criterion) {
    for (shape, line) in SHAPES {
        let pool = Pool::new(Pool::global().workers());
        let memory = MemoryBackend::with_config(MemoryConfig::new().search_pool(pool.clone()));
        fill(&memory, line);
        measure(criterion, "memory", shape, &memory, &pool);

        let root = tempfile::tempdir().expect("a temporary directory");
        let config = LocalConfig::new(root.path()).durability(Durability::Atomic).search_pool(pool.clone());
        let local = config.open().expect("the root opens");
        fill(&local, line);
        measure(criterion, "local", shape, &local, &pool);
    }
}

/// A small file with a match, and behind it large ones.
fn fill(files: &dyn Backend, line: &str) {
    block_on(files.create_text("/first", "a hit\n")).expect("it writes");
    let text = line.repeat(LINES);
    for n in 0..FILES {
        block_on(files.create_text(&format!("/large/{n:02}"), &text)).expect("it writes");
    }
}

fn measure(criterion: &mut Criterion, place: &str, shape: &str, files: &dyn Backend, pool: &Pool) {
    let mut group = criterion.benchmark_group("cancel");
    group.bench_function(BenchmarkId::new(format!("first_match_{shape}"), place), |bencher| {
        bencher.iter_custom(|times| {
            let once = || {
                let start = Instant::now();
                let events = begin(files);
                let time = start.elapsed();
                drop(events);
                wait_until_idle(pool);
                time
            };
            (0..times).map(|_| once()).sum::<Duration>()
        });
    });
    group.bench_function(BenchmarkId::new(format!("drop_to_idle_{shape}"), place), |bencher| {
        bencher.iter_custom(|times| {
            let once = || {
                let events = begin(files);
                let start = Instant::now();
                drop(events);
                wait_until_idle(pool);
                start.elapsed()
            };
            (0..times).map(|_| once()).sum::<Duration>()
        });
    });
    group.finish();
}

/// A search of `files` that has given its first match.
fn begin(files: &dyn Backend) -> BoxStream<'static, Result<GrepEvent>> {
    let mut events = files.grep_stream(OpContext::new(), GrepRequest::literal("hit"));
    assert!(matches!(block_on(events.next()), Some(Ok(GrepEvent::Match(_)))));
    events
}

fn wait_until_idle(pool: &Pool) {
    while !pool.stats().is_idle() {
        thread::yield_now();
    }
}

criterion_group!(cancels, cancel);
criterion_main!(cancels);
