//! What layers and mounts cost: a small read through more and more of them, and a search over slow mounts beside one.

use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tokio::runtime::{Builder, Runtime};
use vfs_composite::CompositeBackend;
use vfs_core::{Backend, BackendExt as _, GrepRequest, Layer, OpContext, ReadRequest, VfsPath};
use vfs_layers::{ConcurrencyLimit, Delay, ReadOnly, Retry, Timeout, Trace};
use vfs_memory::MemoryBackend;
use vfs_policy::{Policy, Rule, RuleEffect, RuleSet};

/// How long each operation of a slow mount takes.
const SLOW: Duration = Duration::from_millis(50);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime can be built")
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// The layers that an agent's files would have around them, the innermost first.
fn layers() -> Vec<(&'static str, Box<dyn Layer>)> {
    let rules = RuleSet::new([Rule::new(RuleEffect::Deny).path("/secrets/**").path(".env")]).expect("valid rules");
    vec![
        ("read_only", Box::new(ReadOnly)),
        ("retry", Box::new(Retry::new())),
        ("concurrency", Box::new(ConcurrencyLimit::new(64))),
        ("policy", Box::new(Policy::new(Arc::new(rules)))),
        ("trace", Box::new(Trace::new())),
    ]
}

fn reads(criterion: &mut Criterion) {
    let runtime = runtime();
    let memory = MemoryBackend::new();
    runtime.block_on(memory.create_text("/dir/file", "a hundred bytes, or about as many\n")).expect("a new file");
    let (cx, at) = (OpContext::new(), path("/dir/file"));
    let mut group = criterion.benchmark_group("small read");
    let mut files: Arc<dyn Backend> = Arc::new(memory);
    let mut measure = |name: &str, files: &Arc<dyn Backend>| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(files.read(&cx, ReadRequest::new(at.clone()))).expect("it is there"));
        });
    };
    measure("memory", &files);
    let mount = || -> Arc<dyn Backend> { Arc::new(MemoryBackend::new()) };
    let composite = CompositeBackend::new(files).with_mount("/memories", mount());
    files = Arc::new(composite.and_then(|files| files.with_mount("/dir/nested", mount())).expect("free places"));
    measure("memory + composite", &files);
    for (name, layer) in layers() {
        files = layer.layer(files);
        measure(&format!("... + {name}"), &files);
    }
    files = Timeout::new(Duration::from_secs(60)).layer(files);
    measure("... + timeout (a sixth)", &files);
    group.finish();
}

fn fan_out(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("search over slow mounts");
    group.sample_size(10);
    for mounts in [1_usize, 8] {
        let files = (0..mounts).fold(CompositeBackend::new(Arc::new(MemoryBackend::new())), |files, number| {
            let memory = MemoryBackend::new();
            runtime.block_on(memory.create_text("/notes.md", "a word\n")).expect("a new file");
            files.with_mount(&format!("/m{number}"), Delay::new(SLOW).layer(Arc::new(memory))).expect("a free place")
        });
        let cx = OpContext::new();
        group.bench_function(BenchmarkId::new("grep", mounts), |bencher| {
            bencher.iter(|| {
                let found = runtime.block_on(files.grep(&cx, GrepRequest::literal("word"))).expect("it is searched");
                assert_eq!(found.matches.len(), mounts);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, reads, fan_out);
criterion_main!(benches);
