//! The laws, by operation.
//!
//! Each file holds private functions and the table that lists them: a law that is not listed is dead code, which does not
//! compile under `-D warnings`.

use std::fmt;

use futures::future::BoxFuture;
use vfs_core::Error;

use crate::law_runner::{count, flatten};
use crate::law_tier::LawTier;
use crate::target::{Need, Target};

/// The result of a law that does not panic. An unexpected error breaks the law too.
pub type LawResult = Result<(), Error>;

/// One check of one numbered behaviour.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Law {
    /// The behaviour's number in `docs/contract.md`.
    pub number: &'static str,
    /// The operation under test.
    pub operation: &'static str,
    /// The name of the law, which states the behaviour.
    pub name: &'static str,
    /// The feature that a target must have for the law to apply.
    pub need: Need,
    /// The tier of targets that run the law by default.
    pub tier: LawTier,
    /// Checks the behaviour; panics or fails if the target breaks it.
    pub run: for<'a> fn(&'a Target) -> BoxFuture<'a, LawResult>,
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Law")
            .field("number", &self.number)
            .field("operation", &self.operation)
            .field("name", &self.name)
            .field("need", &self.need)
            .field("tier", &self.tier)
            .finish_non_exhaustive()
    }
}

/// Lists the laws of a file: for an operation and a tier the number, need and name of each, and its tier where it is another.
macro_rules! laws {
    ($operation:literal in $most:ident: $($number:literal $need:ident $name:ident $(in $tier:ident)?,)+) => {
        pub(super) const LAWS: &[$crate::laws::Law] = &[$($crate::laws::Law {
            number: $number,
            operation: $operation,
            name: stringify!($name),
            need: $crate::target::Need::$need,
            tier: $crate::law_tier::tier!($most $($tier)?),
            run: |target| Box::pin($name(target)),
        }),+];
    };
}

mod cancellation;
mod chunked_io;
mod copy;
mod delete;
mod download;
mod edit;
mod edit_text;
mod errors;
mod glob;
mod glob_visibility;
mod grep;
mod grep_limits;
mod grep_matches;
mod grep_scope;
mod grep_stream;
mod idempotency;
mod law_helpers;
mod links;
mod ls;
mod namespace;
mod open_tree;
mod paths;
mod read;
mod read_window;
mod rename;
mod resolve;
mod special_names;
mod stat;
mod upload;
mod watch;
mod write;
mod write_race;

pub use namespace::{NAMESPACE, NamespaceLaw};

const TABLES: &[&[Law]] = &[
    paths::LAWS,
    special_names::LAWS,
    stat::LAWS,
    ls::LAWS,
    read::LAWS,
    read_window::LAWS,
    write::LAWS,
    write_race::LAWS,
    chunked_io::LAWS,
    idempotency::LAWS,
    edit::LAWS,
    edit_text::LAWS,
    delete::LAWS,
    rename::LAWS,
    copy::LAWS,
    glob::LAWS,
    glob_visibility::LAWS,
    grep::LAWS,
    grep_matches::LAWS,
    grep_scope::LAWS,
    grep_limits::LAWS,
    grep_stream::LAWS,
    upload::LAWS,
    download::LAWS,
    links::LAWS,
    resolve::LAWS,
    open_tree::LAWS,
    watch::LAWS,
    cancellation::LAWS,
    errors::LAWS,
];

/// Every law.
pub static ALL: &[Law] = &flatten::<_, { count(TABLES) }>(TABLES);
