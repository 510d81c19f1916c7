//! Tests of the backend beyond the laws.

mod cancellation;
mod candidates;
mod documents;
mod index;
mod interference;
mod listing;
mod lost_responses;
mod namespaces;
mod probe;
mod races;
mod read_ahead;
mod reads;
mod rollback;
mod watching;

use std::sync::Arc;

use vfs_core::{OpContext, VfsPath};

use self::probe::Probe;
use crate::{MemoryStore, Namespace, StoreBackend, StoreConfig};

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).expect("a valid namespace")
}

fn cx() -> OpContext {
    OpContext::new()
}

/// Returns a backend and its store, which counts the calls.
fn probed(store: MemoryStore) -> (StoreBackend<Arc<Probe>>, Arc<Probe>) {
    let probe = Arc::new(Probe::new(store));
    (StoreBackend::new(Arc::clone(&probe)), probe)
}

/// Returns a backend of the namespace `name`.
fn in_namespace(store: &MemoryStore, name: &str) -> StoreBackend<MemoryStore> {
    StoreBackend::with_config(store.clone(), StoreConfig::new().namespace(namespace(name)))
}
