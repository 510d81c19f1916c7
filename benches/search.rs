//! Listings, globs and searches at three sizes, in memory and on a disk, so that it is seen what grows with the store and
//! what does not.
//!
//! The largest tree has 100,000 files and 410 MB. It is made on the disk only where `VFS_BENCH_LARGE_DISK` is set.

use std::fs;
use std::path::Path;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt as _;
use futures::executor::block_on;
use vfs_benches::{RARE, source_tree};
use vfs_core::{Backend, CaseMode, GlobRequest, GrepRequest, LsRequest, OpContext, VfsPath};
use vfs_local::LocalBackend;
use vfs_memory::MemoryBackend;

const SIZES: [u64; 3] = [1_000, 10_000, 100_000];

/// Most files that are made on the disk without being asked for.
const MOST_ON_DISK: u64 = 10_000;

/// In a quarter of all lines.
const COMMON: &str = "return";

fn memory(criterion: &mut Criterion) {
    for size in SIZES {
        let tree = source_tree(size).expect("the tree is valid");
        let bytes = tree.iter().map(|(_, content)| content.len() as u64).sum();
        let files = MemoryBackend::from_files(tree).expect("the tree is valid");
        let mut group = criterion.benchmark_group("memory");
        group.bench_function(BenchmarkId::new("snapshot", size), |bencher| bencher.iter(|| files.snapshot()));
        all(&mut group, &files, size, bytes);
        group.finish();
    }
}

fn local(criterion: &mut Criterion) {
    let is_large_wanted = std::env::var_os("VFS_BENCH_LARGE_DISK").is_some();
    for size in SIZES.into_iter().filter(|size| *size <= MOST_ON_DISK || is_large_wanted) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let bytes = make_tree(root.path(), size);
        let files = LocalBackend::open(root.path()).expect("the root opens");
        let mut group = criterion.benchmark_group("local");
        all(&mut group, &files, size, bytes);
        group.finish();
    }
}

/// Writes the tree of `size` files below `root`; how many bytes it has.
fn make_tree(root: &Path, size: u64) -> u64 {
    let tree = source_tree(size).expect("the tree is valid");
    for (path, content) in &tree {
        let host = root.join(path.relative());
        fs::create_dir_all(host.parent().expect("it is below the root")).expect("directories are made");
        fs::write(host, content).expect("files are written");
    }
    tree.iter().map(|(_, content)| content.len() as u64).sum()
}

/// Every row, on `files` with `size` files and `bytes` bytes.
fn all(group: &mut BenchmarkGroup<'_, WallTime>, files: &dyn Backend, size: u64, bytes: u64) {
    names(group, files, size);
    searches(group, files, size, bytes);
}

fn names(group: &mut BenchmarkGroup<'_, WallTime>, files: &dyn Backend, size: u64) {
    let cx = OpContext::new();
    let directory = VfsPath::parse("/src/d0003").expect("it is a path");
    group.bench_function(BenchmarkId::new("ls_of_one_directory", size), |bencher| {
        bencher.iter(|| block_on(files.ls(&cx, LsRequest::new(directory.clone()))).expect("it lists"));
    });
    group.bench_function(BenchmarkId::new("glob_of_one_directory", size), |bencher| {
        bencher.iter(|| block_on(files.glob(&cx, GlobRequest::new("src/d0003/*.go"))).expect("it globs"));
    });
    group.throughput(Throughput::Elements(size)).sample_size(10);
    group.bench_function(BenchmarkId::new("glob_of_everything", size), |bencher| {
        bencher.iter(|| {
            let found = block_on(files.glob(&cx, GlobRequest::new("*"))).expect("it globs");
            assert_eq!(found.entries.len() as u64, size);
        });
    });
}

fn searches(group: &mut BenchmarkGroup<'_, WallTime>, files: &dyn Backend, size: u64, bytes: u64) {
    group.throughput(Throughput::Bytes(bytes));
    for (name, request) in [
        ("grep_rare_literal", GrepRequest::literal(RARE)),
        ("grep_insensitive", GrepRequest::literal(RARE.to_uppercase()).case(CaseMode::Insensitive)),
        ("grep_alternation", GrepRequest::regex(format!("{RARE}|marimba_topaz|celesta_onyx"))),
        ("grep_common", GrepRequest::literal(COMMON)),
    ] {
        group.bench_function(BenchmarkId::new(name, size), |bencher| {
            bencher.iter(|| block_on(files.grep_stream(OpContext::new(), request.clone()).count()));
        });
    }
    // Stops early: its cost follows the limit, not the bytes.
    group.throughput(Throughput::Elements(1_000));
    group.bench_function(BenchmarkId::new("grep_collected_with_a_limit", size), |bencher| {
        let request = GrepRequest::literal(COMMON).limit(1_000);
        bencher.iter(|| block_on(files.grep(&OpContext::new(), request.clone())).expect("it greps"));
    });
}

criterion_group!(search, memory, local);
criterion_main!(search);
