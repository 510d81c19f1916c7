//! Namespaces under test.

use std::fmt;
use std::sync::Arc;

use libtest_mimic::Trial;
use vfs_core::{Backend, VfsPath};

use crate::law_runner::run_law;
use crate::laws::NAMESPACE;

/// Makes namespaces of one kind, over backends of one kind.
#[derive(Clone)]
#[non_exhaustive]
pub struct NamespaceFactory {
    /// The first part of its trials' names.
    pub name: &'static str,
    /// Makes an empty backend that nothing else uses, in which changes show at once.
    pub memory: Arc<MakeBackend>,
    /// Makes a namespace of a default backend and mounts.
    pub mounted: Arc<MakeNamespace>,
}

/// Makes an empty backend.
pub type MakeBackend = dyn Fn() -> Arc<dyn Backend> + Send + Sync;

/// Makes a namespace of a default backend and the backends that are mounted over it, each at a path of its own.
pub type MakeNamespace = dyn Fn(Arc<dyn Backend>, Vec<(VfsPath, Arc<dyn Backend>)>) -> Arc<dyn Backend> + Send + Sync;

impl NamespaceFactory {
    /// Calls `memory` for each backend and `mounted` for each namespace over them.
    pub fn new(
        name: &'static str,
        memory: impl Fn() -> Arc<dyn Backend> + Send + Sync + 'static,
        mounted: impl Fn(Arc<dyn Backend>, Vec<(VfsPath, Arc<dyn Backend>)>) -> Arc<dyn Backend> + Send + Sync + 'static,
    ) -> Self {
        Self { name, memory: Arc::new(memory), mounted: Arc::new(mounted) }
    }
}

impl fmt::Debug for NamespaceFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceFactory").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns every law of a namespace as a trial `name::namespace::law`, each on namespaces and a runtime of its own.
///
/// One that has not ended after ten minutes fails.
pub fn namespace_trials(factory: NamespaceFactory) -> Vec<Trial> {
    NAMESPACE
        .iter()
        .map(|law| {
            let factory = factory.clone();
            Trial::test(format!("{}::namespace::{}", factory.name, law.name), move || {
                let run = law.run;
                run_law(law.number, async move { run(&factory).await })
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_have_names_of_their_own() {
        let mut names: Vec<_> = NAMESPACE.iter().map(|law| law.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMESPACE.len());
    }
}
