//! What it costs to run a command that does nothing, and to reach a file through a shell.

#![expect(clippy::print_stdout, reason = "what cannot be run is told to whoever runs it")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group};
use tokio::runtime::Runtime;
use vfs_core::{Backend, BackendExt as _, ExecuteRequest, OpContext};
use vfs_memory::MemoryBackend;
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
use vfs_sandbox::{HelperLocation, OsSandbox, SandboxConfig, sandbox_helper_main};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

fn commands(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut group = criterion.benchmark_group("commands");
    group.bench_function(BenchmarkId::new("true", "spawned by std"), |bencher| {
        bencher.iter(|| Command::new("/bin/sh").args(["-c", "true"]).output().expect("it runs"));
    });
    let host = LocalShellBackend::open(root.path(), ShellConfig::new()).expect("the root opens");
    let mut shells: Vec<(&str, Arc<dyn Backend>)> = vec![("host", Arc::new(host))];
    match runtime.block_on(sandbox(root.path())) {
        Ok(sandbox) => shells.push(("sandbox", sandbox)),
        Err(error) => println!("not run in a sandbox: {}", error.message()),
    }
    let memory = Arc::new(MemoryBackend::new());
    shells.push(("virtual", Arc::new(VirtualShell::new(memory, VirtualShellConfig::new()))));
    for (name, files) in &shells {
        group.bench_function(BenchmarkId::new("true", name), |bencher| bencher.iter(|| run_true(&runtime, files)));
    }
    // Whoever starts a process by a copy of itself copies the tables of its own memory.
    let held = vec![1_u8; 1 << 30];
    for (name, files) in &shells {
        let name = format!("{name}, of a process that holds 1 GiB");
        group.bench_function(BenchmarkId::new("true", name), |bencher| bencher.iter(|| run_true(&runtime, files)));
    }
    drop(held);
    group.finish();
}

fn run_true(runtime: &Runtime, files: &Arc<dyn Backend>) {
    let shell = files.as_shell().expect("it has one");
    let ended = runtime.block_on(shell.execute(&OpContext::new(), ExecuteRequest::new("true")));
    assert_eq!(ended.expect("it runs").exit_code, Some(0));
}

async fn sandbox(root: &Path) -> vfs_core::Result<Arc<dyn Backend>> {
    // This program is its own helper, as the command is.
    let helper = HelperLocation::At(std::env::current_exe().expect("it runs"));
    Ok(Arc::new(OsSandbox::open(SandboxConfig::new(root).helper(helper)).await?.into_backend()?))
}

fn remote(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("remote");
    let places = [("sh", LocalProcess::new()), ("busybox", LocalProcess::command(["busybox", "sh", "-c"]))];
    for (name, place) in places {
        let root = tempfile::tempdir().expect("a temporary directory");
        let files = SandboxBackend::new(place, RemoteConfig::new(root.path().to_str().expect("it is UTF-8")));
        if let Err(error) = runtime.block_on(files.create_text("/a", "some text\n")) {
            println!("not run over {name}: {}", error.message());
            continue;
        }
        group.bench_function(BenchmarkId::new("stat", name), |bencher| {
            bencher.iter(|| runtime.block_on(files.stat_path("/a")).expect("it is there"));
        });
        group.bench_function(BenchmarkId::new("read", name), |bencher| {
            bencher.iter(|| runtime.block_on(files.read_text("/a")).expect("it is there"));
        });
        let mut texts = ["some", "other"];
        group.bench_function(BenchmarkId::new("edit", name), |bencher| {
            bencher.iter(|| {
                runtime.block_on(files.edit_text("/a", texts[0], texts[1])).expect("it is there");
                texts.swap(0, 1);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, commands, remote);

fn main() {
    sandbox_helper_main();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
