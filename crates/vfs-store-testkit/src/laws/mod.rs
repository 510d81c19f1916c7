//! Laws of stores, by subject.
//!
//! Each file has private functions and the table that lists them: a law that is not listed is dead code, which does not
//! compile under `-D warnings`.

use std::fmt;

use futures::future::BoxFuture;
use vfs_testkit::LawResult;
use vfs_testkit::harness::{count, flatten};

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
    pub run: for<'a> fn(&'a StoreTarget) -> BoxFuture<'a, LawResult>,
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
mod changes;
mod conditions;
#[cfg(test)]
mod doubles;
mod expected;
mod following;
mod handles;
mod history;
mod listing;
mod moves;
mod names;
mod namespaces;
mod pages;
mod races;
mod search;
mod search_fold;
mod staging;
mod steps;
mod times;
mod transfers;
mod values;
mod versions;
mod waking;

const TABLES: &[&[StoreLaw]] = &[
    values::LAWS,
    times::LAWS,
    versions::LAWS,
    expected::LAWS,
    listing::LAWS,
    pages::LAWS,
    names::LAWS,
    namespaces::LAWS,
    batch::LAWS,
    conditions::LAWS,
    moves::LAWS,
    changes::LAWS,
    following::LAWS,
    waking::LAWS,
    search::LAWS,
    search_fold::LAWS,
    races::LAWS,
    transfers::LAWS,
    handles::LAWS,
    staging::LAWS,
    history::LAWS,
];

/// Every law of a store.
pub static STORE: &[StoreLaw] = &flatten::<_, { count(TABLES) }>(TABLES);
