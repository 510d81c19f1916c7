//! Table of the permissions that each operation requires at each path that it names.

use std::sync::LazyLock;

use vfs_core::{Action, EditMode, VfsPath, WriteMode};

use crate::policy::Permission::{self, Delete, Execute, Read, Write};

/// A permission that an operation requires at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequiredPermission<'a> {
    pub(crate) permission: Permission,
    pub(crate) path: &'a VfsPath,
    pub(crate) reach: Reach,
}

/// Extent of a required permission below its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The path alone. What a read shows of entries below it is filtered entry by entry.
    Itself,
    /// Every entry below, if the path is a directory.
    Subtree,
}

fn require(permission: Permission, path: &VfsPath, reach: Reach) -> Option<RequiredPermission<'_>> {
    Some(RequiredPermission { permission, path, reach })
}

/// Returns the root, the path of operations on the state of all files.
fn root() -> &'static VfsPath {
    static ROOT: LazyLock<VfsPath> = LazyLock::new(VfsPath::root);
    &ROOT
}

/// Returns the permissions that `action` requires, at most three.
pub(crate) fn required_permissions<'a>(action: &Action<'a>) -> impl Iterator<Item = RequiredPermission<'a>> + use<'a> {
    use Reach::{Itself, Subtree};
    let required: [Option<RequiredPermission<'a>>; 3] = match *action {
        // After an append the file has its old content too, which the rules may judge otherwise.
        Action::Write(request) if request.mode == WriteMode::Append => {
            [require(Read, &request.path, Itself), require(Write, &request.path, Itself), None]
        }
        Action::Write(request) => [require(Write, &request.path, Itself), None, None],
        Action::Upload(request) => [require(Write, &request.path, Itself), None, None],
        // The result of an edit reveals parts of the content.
        Action::Edit(request) if request.mode == EditMode::DryRun => [require(Read, &request.path, Itself), None, None],
        Action::Edit(request) => [require(Read, &request.path, Itself), require(Write, &request.path, Itself), None],
        Action::Delete(request) => [require(Delete, &request.path, Subtree), None, None],
        Action::Rename(request) => [
            require(Read, &request.from, Subtree),
            require(Delete, &request.from, Subtree),
            require(Write, &request.to, Subtree),
        ],
        Action::Copy(request) => [require(Read, &request.from, Subtree), require(Write, &request.to, Subtree), None],
        Action::Execute(request) => [require(Execute, &request.cwd, Itself), None, None],
        Action::ExecuteStream(request) => [require(Execute, &request.0.cwd, Itself), None, None],
        // The output of a command may have the content of any file.
        Action::Jobs(_) | Action::JobOutput(_) | Action::StopJob(_) => [require(Execute, root(), Itself), None, None],
        Action::Restore(_) => [require(Write, root(), Itself), require(Delete, root(), Itself), None],
        Action::Forget(_) => [require(Delete, root(), Itself), None, None],
        Action::Snapshot(_) | Action::Snapshots(_) | Action::Diff(_) => [require(Read, root(), Itself), None, None],
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
pub(crate) fn lists_entries(action: &Action<'_>) -> bool {
    matches!(
        action,
        Action::Stat(_)
            | Action::Resolve(_)
            | Action::Ls(_)
            | Action::Glob(_)
            | Action::Grep(_)
            | Action::GrepStream(_)
            | Action::Lend(_)
            | Action::Watch(_)
    )
}
