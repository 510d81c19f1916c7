//! Every law on every backend, and every law of a namespace, as one named trial each.

use std::sync::Arc;

use libtest_mimic::Arguments;
use vfs_composite::CompositeBackend;
use vfs_memory::MemoryBackend;
use vfs_testkit::{NamespaceFactory, namespace_trials};

fn main() {
    let mut trials: Vec<_> = vfs_tests::targets().into_iter().flat_map(vfs_testkit::trials).collect();
    trials.extend(namespace_trials(namespace()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Namespaces of backends in memory.
fn namespace() -> NamespaceFactory {
    NamespaceFactory::new(
        "composite",
        || Arc::new(MemoryBackend::new()),
        |default, mounts| {
            let files = CompositeBackend::new(default);
            for (at, backend) in mounts {
                files.mount(at, backend).expect("different places");
            }
            Arc::new(files)
        },
    )
}
