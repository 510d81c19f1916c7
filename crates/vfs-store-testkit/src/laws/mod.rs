//! Laws of stores, by subject.
//!
//! Each file has private functions and the table that lists them: a law that is not listed is dead code, which does not
//! compile under `-D warnings`.

use std::fmt;

use futures::future::BoxFuture;
use vfs_testkit::LawResult;
use vfs_testkit::law_runner::{count, flatten};

use crate::target::{StoreNeed, StoreTarget};

/// One check of one numbered behaviour of a store.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct StoreLaw {
    /// Number of the law: `S`, the letter of its subject, and its position there.
    pub number: &'static str,
    /// Subject of the law.
    pub subject: &'static str,
    /// Name of the law, which states the behaviour.
    pub name: &'static str,
    /// The features that a store must have for the law to apply.
    pub need: StoreNeed,
    /// Checks the behaviour; panics or fails if the store breaks it.
    pub run: for<'a> fn(&'a mut StoreTarget) -> BoxFuture<'a, LawResult>,
}

impl fmt::Debug for StoreLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLaw")
            .field("number", &self.number)
            .field("subject", &self.subject)
            .field("name", &self.name)
            .field("need", &self.need)
            .finish_non_exhaustive()
    }
}

/// Lists the laws of a file: for a subject the number, need and name of each.
macro_rules! store_laws {
    ($subject:literal: $($number:literal $need:ident $name:ident,)+) => {
        pub(super) const LAWS: &[$crate::laws::StoreLaw] = &[$($crate::laws::StoreLaw {
            number: $number,
            subject: $subject,
            name: stringify!($name),
            need: $crate::target::StoreNeed::$need,
            run: |target| Box::pin($name(target)),
        }),+];
    };
}

mod batch;
mod batch_conditions;
#[cfg(test)]
mod broken_stores;
mod change_log;
mod change_replicas;
mod change_wakeups;
mod concurrent_batches;
mod concurrent_puts;
mod law_helpers;
mod listing;
mod moves_and_copies;
mod namespaces;
mod paged_listing;
mod preconditions;
mod random_histories;
mod search;
mod search_fold;
mod special_names;
mod staging;
mod times;
mod two_handles;
mod values;
mod versions;

const TABLES: &[&[StoreLaw]] = &[
    values::LAWS,
    times::LAWS,
    versions::LAWS,
    preconditions::LAWS,
    listing::LAWS,
    paged_listing::LAWS,
    special_names::LAWS,
    namespaces::LAWS,
    batch::LAWS,
    batch_conditions::LAWS,
    moves_and_copies::LAWS,
    change_log::LAWS,
    change_replicas::LAWS,
    change_wakeups::LAWS,
    search::LAWS,
    search_fold::LAWS,
    concurrent_puts::LAWS,
    concurrent_batches::LAWS,
    two_handles::LAWS,
    staging::LAWS,
    random_histories::LAWS,
];

/// Every law of a store.
pub static STORE: &[StoreLaw] = &flatten::<_, { count(TABLES) }>(TABLES);
