//! In-process kernels.

use criterion::{Criterion, criterion_group, criterion_main};
use futures::executor::block_on;
use vfs_core::{Backend, BackendExt, EditRequest, OpContext, ReadRequest, VfsPath};
use vfs_local::{Durability, LocalConfig};

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
    group.bench_function("edit_one_line", |bencher| {
        let mut flip = false;
        bencher.iter(|| {
            flip = !flip;
            let (old, new) = if flip { ("line 50", "LINE 50") } else { ("LINE 50", "line 50") };
            runtime.block_on(files.edit(&cx, EditRequest::new(path("/f"), old, new))).expect("it edits")
        });
    });
    group.finish();
}

criterion_group!(kernels, disk);
criterion_main!(kernels);
