//! Options of a walk, and the callbacks that control it.

use vfs_core::Result;
use vfs_core::search::LinkMode;

use crate::glob::HiddenEntryVisibility;
use crate::walk::visibility::VisibilitySettings;

/// Approximate maximum number of entries that one search lists.
pub(crate) const MAX_ENTRIES: u64 = 1 << 24;

/// Number of entries between two checks of the context.
pub(crate) const CHECK_EVERY: usize = 256;

/// Options of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkOptions {
    pub(crate) visibility: VisibilitySettings,
    pub(crate) links: LinkMode,
    /// Maximum number of levels; `None` for all.
    pub(crate) max_depth: Option<u32>,
    /// Whether directories are entries themselves.
    pub(crate) directories: DirectoryYieldMode,
}

/// Whether a walk yields directories in addition to entering them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectoryYieldMode {
    Yielded,
    OnlyEntered,
}

/// Decides which directories a walk enters.
pub(crate) trait WalkFilter {
    /// Returns whether to enter the directory `name` of the directory `relative`, a path relative to the start of the
    /// walk.
    fn should_enter(&self, relative: &str, name: &str) -> bool;

    /// Returns the only relevant names in the directory `relative`, if the filter determines them without a listing.
    fn names_in(&self, _relative: &str) -> Option<Vec<String>> {
        None
    }

    /// Returns how much of the entry `name` of the directory `relative`, a name with a leading dot, the request
    /// includes.
    fn hidden_override(&self, _relative: &str, _name: &str) -> HiddenEntryVisibility {
        HiddenEntryVisibility::Hidden
    }
}

/// Decides which directories a walk enters, and whether the walk continues.
#[derive(Clone, Copy)]
pub(crate) struct WalkControl<'a> {
    pub(crate) filter: &'a dyn WalkFilter,
    /// Returns an error if the walk has to stop.
    pub(crate) check: &'a dyn Fn() -> Result<()>,
}

impl WalkControl<'_> {
    pub(crate) fn check(&self) -> Result<()> {
        (self.check)()
    }
}
