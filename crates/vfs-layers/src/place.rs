//! The paths of an operation that its errors name.

use vfs_core::{Action, VfsPath};

/// The path that an error about `action` names: its first, or the root where it has none.
pub(crate) fn place(action: Action<'_>) -> VfsPath {
    action.paths().next().cloned().unwrap_or_else(VfsPath::root)
}

/// The path at which `action` puts something: its last, or the root where it has none.
pub(crate) fn target(action: Action<'_>) -> VfsPath {
    action.paths().last().cloned().unwrap_or_else(VfsPath::root)
}
