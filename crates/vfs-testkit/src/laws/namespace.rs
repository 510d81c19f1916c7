//! The laws of a namespace: several backends mounted in one tree.

use std::fmt;

use futures::future::BoxFuture;

use super::LawResult;
use crate::law_runner::{count, flatten};
use crate::namespace_factory::NamespaceFactory;

/// One check of one numbered behaviour of a namespace.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct NamespaceLaw {
    /// The behaviour's number in `docs/contract.md`.
    pub number: &'static str,
    /// The name of the law, which states the behaviour.
    pub name: &'static str,
    /// Checks the behaviour; panics or fails if the namespace breaks it.
    pub run: for<'a> fn(&'a NamespaceFactory) -> BoxFuture<'a, LawResult>,
}

impl fmt::Debug for NamespaceLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLaw").field("number", &self.number).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Lists the laws of a file: the number and name of each.
macro_rules! namespace_laws {
    ($($number:literal $name:ident,)+) => {
        pub(super) const LAWS: &[$crate::laws::NamespaceLaw] = &[$($crate::laws::NamespaceLaw {
            number: $number,
            name: stringify!($name),
            run: |factory| Box::pin($name(factory)),
        }),+];
    };
}

mod called_mounts;
mod caller_paths;
mod concurrent_moves;
mod cross_mount_fixture;
mod failed_moves;
mod failing_mounts;
mod law_helpers;
mod limits;
mod mount_points;
mod moves;
mod routing;
mod state_updates;
mod visibility;
mod without_tree;

const TABLES: &[&[NamespaceLaw]] = &[
    routing::LAWS,
    mount_points::LAWS,
    caller_paths::LAWS,
    state_updates::LAWS,
    limits::LAWS,
    called_mounts::LAWS,
    visibility::LAWS,
    failing_mounts::LAWS,
    moves::LAWS,
    failed_moves::LAWS,
    concurrent_moves::LAWS,
    without_tree::LAWS,
];

/// Every law of a namespace.
pub static NAMESPACE: &[NamespaceLaw] = &flatten::<_, { count(TABLES) }>(TABLES);
