//! The options of a walk, and the callbacks that steer and stop it.

use vfs_core::{LinkMode, Result};

use crate::glob::DotVisibility;
use crate::walk::visibility::Visibility;

/// About how many entries one search lists at most.
pub(crate) const MAX_ENTRIES: u64 = 1 << 24;

/// Entries that are looked at between two looks at the context.
pub(crate) const CHECK_EVERY: usize = 256;

/// How a walk goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkOptions {
    pub(crate) visibility: Visibility,
    pub(crate) links: LinkMode,
    /// How many levels; `None` for all.
    pub(crate) max_depth: Option<u32>,
    /// Whether directories are entries of their own.
    pub(crate) directories: Directories,
}

/// Whether a walk yields directories beside going down them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directories {
    Yielded,
    OnlyEntered,
}

/// What steers a walk, and stops it.
pub(crate) trait WalkControl {
    /// Whether to go down the directory `name` of the directory `relative` (to where the walk started).
    fn should_enter(&self, relative: &str, name: &str) -> bool;

    /// The only names in the directory `relative` that are of interest, where these can be told beforehand.
    fn names_in(&self, _relative: &str) -> Option<Vec<String>> {
        None
    }

    /// How much of the entry `name` of the directory `relative` is asked for, which starts with a dot.
    fn hidden_override(&self, _relative: &str, _name: &str) -> DotVisibility {
        DotVisibility::Hidden
    }

    /// Whether to go on.
    fn check(&self) -> Result<()>;

    /// As [`check`](Self::check), between steps of work that holds up the walk: whoever watches is not told that it gets on.
    fn check_without_heartbeat(&self) -> Result<()> {
        self.check()
    }
}
