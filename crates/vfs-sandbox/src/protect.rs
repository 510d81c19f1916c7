//! Protection of paths and names below the mounts, from commands and file tools.

pub(crate) mod nested_covers;
pub(crate) mod open_mount;
pub(crate) mod placeholders;
pub(crate) mod tree_scan;
pub(crate) mod uncovered_entry_reporter;
