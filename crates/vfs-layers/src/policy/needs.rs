//! What each operation does to each path that it names.

use std::sync::LazyLock;

use vfs_core::{Action, EditMode, VfsPath, WriteMode};

use super::Permission::{self, Delete, Execute, Read, Write};

/// One permission that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need<'a> {
    pub(super) permission: Permission,
    pub(super) path: &'a VfsPath,
    pub(super) reach: Reach,
}

/// How much of what lies below the path is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing, or what may be read of it.
    Itself,
    /// All of it, where the path is a directory.
    Subtree,
}

fn need(permission: Permission, path: &VfsPath, reach: Reach) -> Option<Need<'_>> {
    Some(Need { permission, path, reach })
}

/// What states of all files are about.
fn root() -> &'static VfsPath {
    static ROOT: LazyLock<VfsPath> = LazyLock::new(VfsPath::root);
    &ROOT
}

/// What `action` needs; at most three things.
pub(super) fn needs<'a>(action: &Action<'a>) -> impl Iterator<Item = Need<'a>> + use<'a> {
    use Reach::{Itself, Subtree};
    let needs: [Option<Need<'a>>; 3] = match *action {
        // What is added to a file becomes a file with all that was in it, under rules of its own.
        Action::Write(request) if request.mode == WriteMode::Append => {
            [need(Read, &request.path, Itself), need(Write, &request.path, Itself), None]
        }
        Action::Write(request) => [need(Write, &request.path, Itself), None, None],
        Action::Upload(request) => [need(Write, &request.path, Itself), None, None],
        // What an edit finds, and where, tells of the content.
        Action::Edit(request) if request.mode == EditMode::DryRun => [need(Read, &request.path, Itself), None, None],
        Action::Edit(request) => [need(Read, &request.path, Itself), need(Write, &request.path, Itself), None],
        Action::Delete(request) => [need(Delete, &request.path, Subtree), None, None],
        Action::Rename(request) => [
            need(Read, &request.from, Subtree),
            need(Delete, &request.from, Subtree),
            need(Write, &request.to, Subtree),
        ],
        Action::Copy(request) => [need(Read, &request.from, Subtree), need(Write, &request.to, Subtree), None],
        Action::Execute(request) => [need(Execute, &request.cwd, Itself), None, None],
        Action::ExecuteStream(request) => [need(Execute, &request.0.cwd, Itself), None, None],
        // What commands print may be of any file.
        Action::Jobs(_) | Action::JobOutput(_) | Action::StopJob(_) => [need(Execute, root(), Itself), None, None],
        Action::Restore(_) => [need(Write, root(), Itself), need(Delete, root(), Itself), None],
        Action::Forget(_) => [need(Delete, root(), Itself), None, None],
        Action::Snapshot(_) | Action::Snapshots(_) | Action::Diff(_) => [need(Read, root(), Itself), None, None],
        ref action => {
            let mut paths = action.paths();
            let first = paths.next().and_then(|path| need(Read, path, Itself));
            [first, paths.next().and_then(|path| need(Read, path, Itself)), None]
        }
    };
    needs.into_iter().flatten()
}

/// Whether `action` shows the entries of the directory that it names, and so may be let in where that only leads on.
pub(super) fn lists(action: &Action<'_>) -> bool {
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
