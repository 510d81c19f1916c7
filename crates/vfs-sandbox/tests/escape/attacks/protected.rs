//! Attacks on protected paths and names below the mount.

use std::os::unix::fs::MetadataExt as _;

use super::Confinement::{All, Namespaces};
use super::Setting::Usual;
use super::{ExpectedErrors, Row};
use crate::system::{HERE, call, open, outcome, read, text, write};

const READ_ONLY: ExpectedErrors = &[(All, "EROFS"), (Namespaces, "EROFS")];
const IN_PLACE: ExpectedErrors = &[(All, "EBUSY"), (Namespaces, "EBUSY")];
const MISSING: ExpectedErrors = &[(All, "EACCES|EROFS|EPERM"), (Namespaces, "EACCES|EROFS|EPERM")];
const HIDDEN: ExpectedErrors = &[(All, "EACCES|EROFS"), (Namespaces, "EACCES|EROFS")];

pub(super) const ATTACKS: &[Row] = &[
    ("write_a_hook", |_| outcome(write(".git/hooks/pre-commit", "#!/bin/sh\n")), READ_ONLY, Usual),
    ("change_a_hook", |_| outcome(open(".git/hooks/post-commit", libc::O_WRONLY, 0)), READ_ONLY, Usual),
    (
        "change_the_configuration",
        |_| outcome(open(".git/config", libc::O_WRONLY | libc::O_APPEND, 0)),
        READ_ONLY,
        Usual,
    ),
    ("point_the_repository_elsewhere", |_| outcome(write(".git/commondir", "../evil\n")), READ_ONLY, Usual),
    ("make_a_hook_run", make_runnable, READ_ONLY, Usual),
    ("move_the_repository_away", |_| renamed(".git", "moved"), IN_PLACE, Usual),
    ("move_something_over_the_repository", over_repository, IN_PLACE, Usual),
    ("remove_the_repository", |_| removed(".git", libc::AT_REMOVEDIR), IN_PLACE, Usual),
    ("remove_a_hook", |_| removed(".git/hooks/post-commit", 0), READ_ONLY, Usual),
    ("link_to_the_configuration", link_out, &[(All, "EXDEV"), (Namespaces, "EXDEV")], Usual),
    ("uncover_the_repository", uncover, &[(All, "EPERM"), (Namespaces, "EPERM")], Usual),
    ("read_what_is_hidden", |_| outcome(read(".env").map(|_| 0)), &[(All, "EACCES"), (Namespaces, "EACCES")], Usual),
    ("write_what_is_hidden", |_| outcome(open(".env", libc::O_WRONLY, 0)), HIDDEN, Usual),
    ("open_what_is_hidden_to_all", open_to_all, &[(All, "EROFS|EPERM"), (Namespaces, "EROFS|EPERM")], Usual),
    ("move_what_is_hidden", |_| renamed(".env", "shown"), IN_PLACE, Usual),
    (
        "make_what_is_protected_and_missing",
        |_| outcome(write("absent", "x")),
        &[(All, "EISDIR"), (Namespaces, "EISDIR")],
        Usual,
    ),
    ("make_a_repository_where_there_is_none", |_| outcome(write("none/.git/config", "x")), MISSING, Usual),
    ("make_a_link_where_nothing_is", link_in, &[(All, "EEXIST"), (Namespaces, "EEXIST")], Usual),
    ("exchange_what_is_missing_for_a_link", exchange, IN_PLACE, Usual),
    ("move_the_directory_of_what_is_missing", |_| renamed("none", "moved"), IN_PLACE, Usual),
    ("lock_what_stands_for_what_is_missing", locked, &[(All, "COVER"), (Namespaces, "COVER")], Usual),
    ("remove_what_is_hidden", |_| removed(".env", 0), IN_PLACE, Usual),
    ("write_a_hook_deep_down", |_| outcome(write("deep/repository/.git/hooks/pre-commit", "#!/bin/sh\n")), DEEP, Usual),
    (
        "change_a_configuration_deep_down",
        |_| outcome(open("deep/repository/.git/config", libc::O_WRONLY | libc::O_APPEND, 0)),
        DEEP,
        Usual,
    ),
    ("point_a_work_tree_elsewhere", |_| outcome(open("deep/worktree/.git", libc::O_WRONLY, 0)), DEEP, Usual),
    ("change_a_bare_repository", |_| outcome(open("deep/bare/config", libc::O_WRONLY, 0)), DEEP, Usual),
    ("move_a_repository_deep_down", |_| renamed("deep/repository/.git", "moved"), &[(All, "EBUSY")], Usual),
    ("remove_what_is_hidden_deep_down", |_| removed("deep/app/.env", 0), &[(All, "EBUSY")], Usual),
    ("read_what_is_hidden_deep_down", |_| outcome(read("deep/app/.env").map(|_| 0)), &[(All, "EACCES")], Usual),
    ("read_it_where_its_directory_was_moved", moved_above, &[(All, "EACCES")], Usual),
    ("uncover_what_is_deep_down", |_| unmounted("deep/repository/.git"), &[(All, "EPERM")], Usual),
    (
        "write_a_hook_as_the_first_process_sees_it",
        |target| {
            outcome(write(
                &format!("/proc/1/root{}/deep/repository/.git/hooks/pre-commit", target.inside),
                "#!/bin/sh\n",
            ))
        },
        &[(All, "EACCES|EPERM")],
        Usual,
    ),
    (
        "read_what_is_hidden_as_the_first_process_sees_it",
        |target| outcome(read(&format!("/proc/1/root{}/deep/app/.env", target.inside)).map(|_| 0)),
        &[(All, "EACCES|EPERM")],
        Usual,
    ),
    (
        "open_the_memory_of_the_first_process",
        |_| outcome(open("/proc/1/mem", libc::O_RDWR, 0)),
        &[(All, "EACCES|EPERM")],
        Usual,
    ),
    (
        "enter_the_mounts_of_the_first_process",
        |_| {
            outcome(open("/proc/1/ns/mnt", libc::O_RDONLY, 0).and_then(|namespace| {
                call(libc::SYS_setns, [namespace as usize, libc::CLONE_NEWNS as usize, 0, 0, 0, 0])
            }))
        },
        &[(All, "EACCES|EPERM")],
        Usual,
    ),
];

/// Expected errors for entries that the helper covers.
const DEEP: ExpectedErrors = &[(All, "EROFS")];

fn renamed(from: &str, to: &str) -> String {
    let (from, to) = (text(from), text(to));
    outcome(call(libc::SYS_renameat2, [HERE, from.as_ptr() as usize, HERE, to.as_ptr() as usize, 0, 0]))
}

fn removed(path: &str, flags: i32) -> String {
    let path = text(path);
    outcome(call(libc::SYS_unlinkat, [HERE, path.as_ptr() as usize, flags as usize, 0, 0, 0]))
}

fn make_runnable(_: &super::Target) -> String {
    let path = text(".git/hooks/post-commit");
    outcome(call(libc::SYS_fchmodat, [HERE, path.as_ptr() as usize, 0o777, 0, 0, 0]))
}

fn over_repository(_: &super::Target) -> String {
    let path = text("evil");
    if let Err(error) = call(libc::SYS_mkdirat, [HERE, path.as_ptr() as usize, 0o755, 0, 0, 0]) {
        return format!("no directory: {error}");
    }
    renamed("evil", ".git")
}

fn link_out(_: &super::Target) -> String {
    let (from, to) = (text(".git/config"), text("config"));
    outcome(call(libc::SYS_linkat, [HERE, from.as_ptr() as usize, HERE, to.as_ptr() as usize, 0, 0]))
}

fn link_in(target: &super::Target) -> String {
    let (to, name) = (text(&format!("/oldroot{}/planted", target.outside)), text("absent"));
    outcome(call(libc::SYS_symlinkat, [to.as_ptr() as usize, HERE, name.as_ptr() as usize, 0, 0, 0]))
}

fn exchange(target: &super::Target) -> String {
    let (to, name) = (text(&format!("/oldroot{}/planted", target.outside)), text("link"));
    if let Err(error) = call(libc::SYS_symlinkat, [to.as_ptr() as usize, HERE, name.as_ptr() as usize, 0, 0, 0]) {
        return format!("no link: {error}");
    }
    let exchanged = libc::RENAME_EXCHANGE as usize;
    let other = text("absent");
    outcome(call(libc::SYS_renameat2, [HERE, name.as_ptr() as usize, HERE, other.as_ptr() as usize, exchanged, 0]))
}

/// Locks a placeholder. With that lock, a command could prevent its use by other sandboxes, or cause its removal. A
/// cover may be locked: it is on another device than the placeholder, which sandboxes lock.
fn locked(_: &super::Target) -> String {
    let device = |path| std::fs::symlink_metadata(path).map(|metadata| metadata.dev()).ok();
    let lock = open("absent", libc::O_RDONLY, 0)
        .and_then(|file| call(libc::SYS_flock, [file as usize, (libc::LOCK_EX | libc::LOCK_NB) as usize, 0, 0, 0, 0]));
    if lock.is_ok() && device("absent") != device(".") { "COVER".to_owned() } else { outcome(lock) }
}

fn uncover(_: &super::Target) -> String {
    unmounted(".git")
}

/// If a command moves a directory, covers of the entries in it move with it.
fn moved_above(_: &super::Target) -> String {
    let moved = renamed("deep", "moved");
    let read = outcome(read("moved/app/.env").map(|_| 0));
    let back = renamed("moved", "deep");
    if (moved.as_str(), back.as_str()) == ("done", "done") { read } else { format!("not moved: {moved}, {back}") }
}

fn unmounted(path: &str) -> String {
    let path = text(path);
    outcome(call(libc::SYS_umount2, [path.as_ptr() as usize, libc::MNT_DETACH as usize, 0, 0, 0, 0]))
}

fn open_to_all(_: &super::Target) -> String {
    let path = text(".env");
    outcome(call(libc::SYS_fchmodat, [HERE, path.as_ptr() as usize, 0o777, 0, 0, 0]))
}
