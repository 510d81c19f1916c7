//! Table of the permissions that each operation requires at each path that it names.

use std::sync::LazyLock;

use vfs_core::edit::ApplyMode;
use vfs_core::operation::RequestRef;
use vfs_core::{VfsPath, WriteMode};

use crate::policy::Permission::{self, Delete, Execute, Read, Write};

/// A permission that an operation requires at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequiredPermission<'a> {
    pub(crate) permission: Permission,
    pub(crate) path: &'a VfsPath,
    pub(crate) scope: PermissionScope,
}

/// Extent of a required permission below its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionScope {
    /// Only the path itself. The results of a read below the path are filtered entry by entry.
    Itself,
    /// Every entry below, if the path is a directory.
    Subtree,
}

fn require(permission: Permission, path: &VfsPath, scope: PermissionScope) -> Option<RequiredPermission<'_>> {
    Some(RequiredPermission { permission, path, scope })
}

/// Returns the root, the path of operations on the state of all files.
fn root() -> &'static VfsPath {
    static ROOT: LazyLock<VfsPath> = LazyLock::new(VfsPath::root);
    &ROOT
}

/// Returns the permissions that `action` requires, at most three.
pub(crate) fn required_permissions<'a>(
    action: &RequestRef<'a>,
) -> impl Iterator<Item = RequiredPermission<'a>> + use<'a> {
    use PermissionScope::{Itself, Subtree};
    let required: [Option<RequiredPermission<'a>>; 3] = match *action {
        // After an append the file has its old content too, for which the rules may have another decision.
        RequestRef::Write(request) if request.mode == WriteMode::Append => {
            [require(Read, &request.path, Itself), require(Write, &request.path, Itself), None]
        }
        RequestRef::Write(request) => [require(Write, &request.path, Itself), None, None],
        RequestRef::OpenWriter(request) => [require(Write, &request.path, Itself), None, None],
        RequestRef::CommitWriter(request) => [require(Write, &request.path, Itself), None, None],
        RequestRef::Upload(request) => [require(Write, &request.path, Itself), None, None],
        // The result of an edit reveals parts of the content.
        RequestRef::Edit(request) if request.mode == ApplyMode::DryRun => {
            [require(Read, &request.path, Itself), None, None]
        }
        RequestRef::Edit(request) => {
            [require(Read, &request.path, Itself), require(Write, &request.path, Itself), None]
        }
        RequestRef::Delete(request) => [require(Delete, &request.path, Subtree), None, None],
        RequestRef::Rename(request) => [
            require(Read, &request.from, Subtree),
            require(Delete, &request.from, Subtree),
            require(Write, &request.to, Subtree),
        ],
        RequestRef::Copy(request) => {
            [require(Read, &request.from, Subtree), require(Write, &request.to, Subtree), None]
        }
        RequestRef::Execute(request) => [require(Execute, &request.cwd, Itself), None, None],
        RequestRef::ExecuteStream(request) => [require(Execute, &request.0.cwd, Itself), None, None],
        // The output of a command may have the content of any file.
        RequestRef::Jobs(_) | RequestRef::JobOutput(_) | RequestRef::StopJob(_) => {
            [require(Execute, root(), Itself), None, None]
        }
        RequestRef::Restore(_) => [require(Write, root(), Itself), require(Delete, root(), Itself), None],
        RequestRef::Forget(_) => [require(Delete, root(), Itself), None, None],
        RequestRef::Snapshot(_) | RequestRef::Snapshots(_) | RequestRef::Diff(_) => {
            [require(Read, root(), Itself), None, None]
        }
        ref action => {
            let mut paths = action.paths();
            let first = paths.next().and_then(|path| require(Read, path, Itself));
            [first, paths.next().and_then(|path| require(Read, path, Itself)), None]
        }
    };
    required.into_iter().flatten()
}

/// Returns whether `action` may name an unreadable directory that leads to readable entries: it shows those entries, or the
/// directory itself.
pub(crate) fn lists_entries(action: &RequestRef<'_>) -> bool {
    matches!(
        action,
        RequestRef::Stat(_)
            | RequestRef::Resolve(_)
            | RequestRef::Ls(_)
            | RequestRef::Glob(_)
            | RequestRef::Grep(_)
            | RequestRef::GrepStream(_)
            | RequestRef::OpenTree(_)
            | RequestRef::Watch(_)
    )
}
