//! Every law on every backend, and every law of a namespace, as one named trial each.

use std::sync::Arc;

use libtest_mimic::Trial;
use vfs_composite::CompositeBackend;
use vfs_core::{OpContext, VfsPath};
use vfs_memory::MemoryBackend;
use vfs_store::{
    DocumentStore, Key, MemoryStore, Namespace, NamespaceSource, NewValue, Precondition, Store, StoreBackend,
    StoreConfig,
};
use vfs_testkit::{LawTier, NamespaceFactory, Target, TargetFactory, namespace_trials};
use vfs_tests::places::Place;

use crate::durable::{self, ignored};
use crate::servers::Schema;

/// All of them. What was made on servers for all laws together goes with the schema.
pub(crate) fn trials() -> (Vec<Trial>, Option<Schema>) {
    let targets = vfs_tests::targets().into_iter().chain(stores());
    let mut trials: Vec<_> = targets.flat_map(vfs_testkit::trials).collect();
    trials.extend(namespace_trials(namespace()));
    trials.extend(Place::ALL.into_iter().flat_map(in_place));
    let (durable, schema) = durable::trials();
    trials.extend(durable);
    (trials, schema)
}

/// Files of a place that can only run commands, and that may be missing here.
fn in_place(place: Place) -> Vec<Trial> {
    let trials = vfs_testkit::trials(place.files());
    match place.absent() {
        None => trials,
        Some(reason) => ignored(trials, |_| Some(reason.clone())),
    }
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

/// Files over stores in memory that can do all or little, as values and as documents, in one namespace and in many.
fn stores() -> Vec<TargetFactory> {
    let over = |name, make: fn() -> StoreBackend<Arc<dyn Store>>| {
        TargetFactory::new(name, move || Target::new(Arc::new(make()))).tier(LawTier::Storage)
    };
    vec![
        over("store-memory", || StoreBackend::new(Arc::new(MemoryStore::new()))),
        over("store-single-valued", || StoreBackend::new(Arc::new(MemoryStore::single_valued()))),
        over("store-documents", || StoreBackend::new(Arc::new(DocumentStore::new(MemoryStore::new())))),
        over("store-documents-single-valued", || {
            StoreBackend::new(Arc::new(DocumentStore::new(MemoryStore::single_valued())))
        }),
        over("store-namespace-per-call", namespace_per_call),
    ]
}

/// A namespace between others that are above it, below it, beside it and called alike, all with files that nobody may see.
fn namespace_per_call() -> StoreBackend<Arc<dyn Store>> {
    let store = MemoryStore::new();
    for namespace in ["", "acme", "acme/ann/deeper", "acme/ann2", "acme/an", "acme/bob", "Acme/ann"] {
        let namespace = Namespace::parse(namespace).expect("a namespace");
        for path in ["/hidden-from-ann", "/d/a", "/a.txt/below", "/src/lib.rs"] {
            let key = Key::new(namespace.clone(), VfsPath::parse(path).expect("a path"));
            let value = NewValue::new("needle text one\n".into(), chrono::Utc::now());
            let put = store.put(&key, value, &Precondition::Absent);
            let _new = futures::executor::block_on(put).expect("memory is there");
        }
    }
    let of_call = |cx: &OpContext| Namespace::parse(&format!("acme/{}", cx.actor().unwrap_or("ann")));
    let config = StoreConfig::new().namespace(NamespaceSource::per_call(of_call));
    StoreBackend::with_config(Arc::new(store), config)
}
