//! In-process kernels.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use futures::executor::block_on;
use vfs_benches::long_text;
use vfs_core::{Backend, BackendExt, EditRequest, OpContext, ReadRequest, VfsPath, WriteMode, WriteRequest};
use vfs_local::{Durability, LocalBackend, LocalConfig};

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of the benchmarks are valid")
}

fn disk(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = LocalConfig::new(root.path()).durability(Durability::Atomic).open().expect("the root opens");
    let cx = OpContext::new();
    let lines: String =
        (0..100).map(|line| format!("line {line:02} of a file that is edited over and over\n")).collect();
    block_on(files.create_text("/f", &lines)).expect("it writes");
    let mut group = criterion.benchmark_group("disk");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime starts");
    group.bench_function("read_4_kib_confined", |bencher| {
        bencher.iter(|| runtime.block_on(files.read(&cx, ReadRequest::new(path("/f")))).expect("it reads"));
    });
    group.bench_function("read_4_kib_by_std_in_spawn_blocking", |bencher| {
        let host = root.path().join("f");
        bencher.iter(|| {
            let host = host.clone();
            runtime
                .block_on(async { tokio::task::spawn_blocking(|| std::fs::read(host)).await })
                .expect("no panic")
                .expect("it reads")
        });
    });
    // The routine is started many times, and each edit undoes the one before.
    let mut flip = false;
    group.bench_function("edit_one_line", |bencher| {
        bencher.iter(|| {
            flip = !flip;
            let (old, new) = if flip { ("line 50", "LINE 50") } else { ("LINE 50", "line 50") };
            runtime.block_on(files.edit(&cx, EditRequest::new(path("/f"), old, new))).expect("it edits")
        });
    });
    group.bench_function("overwrite_4_kib", |bencher| {
        bencher.iter(|| {
            let request = WriteRequest::new(path("/g"), lines.clone()).mode(WriteMode::Overwrite);
            runtime.block_on(files.write(&cx, request)).expect("it writes")
        });
    });
    group.bench_function("write_4_kib_new", |bencher| {
        bencher.iter_batched(
            || drop(std::fs::remove_file(root.path().join("h"))),
            |()| runtime.block_on(files.write(&cx, WriteRequest::new(path("/h"), lines.clone()))).expect("it writes"),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// 100 lines of a file of 93 MB. A backend that has just been opened knows nothing of the file yet.
fn windows(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(root.path().join("huge"), long_text(1_000_000)).expect("it writes");
    let open = || LocalConfig::new(root.path()).open().expect("the root opens");
    let cx = OpContext::new();
    let mut group = criterion.benchmark_group("window_of_93_mb");
    let window = |files: &LocalBackend, offset| {
        block_on(files.read(&cx, ReadRequest::new(path("/huge")).lines(offset, 100))).expect("it reads")
    };
    for offset in [0, 900_000] {
        group.bench_function(BenchmarkId::new("first_read", offset), |bencher| {
            bencher.iter_batched(open, |files| window(&files, offset), BatchSize::PerIteration);
        });
    }
    let files = open();
    group.bench_function(BenchmarkId::new("read_again", 900_000), |bencher| {
        bencher.iter(|| window(&files, 900_000));
    });
    group.finish();
}

criterion_group!(kernels, disk, windows);
criterion_main!(kernels);
