//! What a backend over a store does beside the laws.

mod cancelled;
mod candidates;
mod documents;
mod index;
mod listing;
mod lost_answers;
mod met;
mod namespaces;
mod probe;
mod races;
mod read_ahead;
mod reads;
mod taken_back;
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

/// A backend whose calls to the store are counted, and the store.
fn probed(store: MemoryStore) -> (StoreBackend<Arc<Probe>>, Arc<Probe>) {
    let probe = Arc::new(Probe::new(store));
    (StoreBackend::new(Arc::clone(&probe)), probe)
}

/// Files of the namespace `name`.
fn in_namespace(store: &MemoryStore, name: &str) -> StoreBackend<MemoryStore> {
    StoreBackend::with_config(store.clone(), StoreConfig::new().namespace(namespace(name)))
}
