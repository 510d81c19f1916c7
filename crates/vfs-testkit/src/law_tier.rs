//! Tiers of laws: which backends a law runs on by default.

use std::env;

/// The deepest part that can break a law, which determines the backends and shells on which the law runs by default.
///
/// The tiers are ordered: a target of one tier runs the laws of that tier and of all tiers before it. A law of glob syntax
/// cannot hold on one store and break on the next, since one implementation serves both; a law of atomic writes can.
///
/// With `VFS_LAWS=all` in the environment, every target runs every law of any tier.
///
/// ```
/// use vfs_testkit::LawTier;
///
/// assert!(LawTier::Smoke < LawTier::Wrapper && LawTier::Wrapper < LawTier::Storage && LawTier::Storage < LawTier::Semantics);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LawTier {
    /// One law of each operation: everything is reachable. For combinations of parts that have a target of their own.
    Smoke,
    /// Laws that a layer between caller and files can break: paths in results and errors, preconditions, cancellation, streams,
    /// facets. For every interceptor.
    Wrapper,
    /// Laws that depend on the place of the files: names, versions, atomicity, races, listings, links, change feeds, byte ranges.
    /// For every store, server and host.
    Storage,
    /// Laws of implementations that all places share: glob and grep, text and its edits, path syntax. For one
    /// backend of each kind; the default of every factory.
    Semantics,
}

impl LawTier {
    /// All of them, each after those whose laws its targets run too.
    pub const ALL: [LawTier; 4] = [LawTier::Smoke, LawTier::Wrapper, LawTier::Storage, LawTier::Semantics];

    /// Returns whether a target of this tier runs the laws of `law`.
    pub(crate) fn runs(self, law: LawTier) -> bool {
        law <= self || runs_every_law()
    }
}

/// Returns whether every target runs every law, as `VFS_LAWS=all` in the environment requires.
///
/// # Panics
///
/// If `VFS_LAWS` has another value than `all`, so that a misspelt request does not pass for a full run.
pub fn runs_every_law() -> bool {
    match env::var_os("VFS_LAWS") {
        None => false,
        Some(value) if value.is_empty() => false,
        Some(value) if value == "all" => true,
        Some(value) => panic!("VFS_LAWS is {value:?}; set it to `all` to run every law, or leave it unset"),
    }
}

/// The tier of a law in a table: its own, else that of the table.
macro_rules! tier {
    ($most:ident) => {
        $crate::law_tier::LawTier::$most
    };
    ($most:ident $own:ident) => {
        $crate::law_tier::LawTier::$own
    };
}

pub(crate) use tier;
