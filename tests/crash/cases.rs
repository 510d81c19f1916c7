//! Operations that are interrupted, and the states that must be found afterwards.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use vfs_composite::{CompositeBackend, RecoveryOutcome};
use vfs_core::{
    Backend as _, BackendExt as _, CopyRequest, ErrorKind, Layer as _, OpContext, RenameRequest, Result, VfsPath,
};
use vfs_policy::{Policy, Rule, RuleEffect, RuleSet};
use vfs_versions::{CommitResult, OverlayBackend};

use crate::{Disk, State};

/// One operation of many steps.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Lays out the directories.
    pub(crate) prepare: fn(&Disk<'_>),
    /// Operation of the process that may be aborted.
    pub(crate) perform: for<'a> fn(&'a Disk<'a>) -> BoxFuture<'a, Result<()>>,
    /// Recovers in another process, and compares; the argument is whether the first one came to its end.
    pub(crate) check: for<'a> fn(&'a Disk<'a>, bool) -> BoxFuture<'a, std::result::Result<(), String>>,
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "commit_with_a_journal",
        prepare: base,
        perform: |disk| commit_with_a_journal(disk).boxed(),
        check: |disk, is_done| check_journal(disk, is_done).boxed(),
    },
    Case {
        name: "commit_of_a_persistent_overlay",
        prepare: base,
        perform: |disk| commit_of_a_persistent_overlay(disk).boxed(),
        check: |disk, is_done| check_persistent_overlay(disk, is_done).boxed(),
    },
    Case {
        name: "move_of_a_directory_across_mounts",
        prepare: lay_out_tree,
        perform: |disk| move_directory(disk).boxed(),
        check: |disk, is_done| check_move(disk, is_done).boxed(),
    },
    Case {
        name: "move_of_links_and_empty_directories_across_mounts",
        prepare: lay_out_links,
        perform: |disk| move_directory(disk).boxed(),
        check: |disk, is_done| check_move_of_links(disk, is_done).boxed(),
    },
    Case {
        name: "move_over_a_file_across_mounts",
        prepare: |disk| {
            disk.lay_out("one", &[("f", "new\n")]);
            disk.lay_out("two", &[("f", "old\n")]);
        },
        perform: |disk| move_over_file(disk).boxed(),
        check: |disk, is_done| check_move_over(disk, is_done).boxed(),
    },
    Case {
        name: "failed_move_of_a_directory_across_mounts",
        prepare: lay_out_tree,
        perform: |disk| fail_to_move_directory(disk).boxed(),
        check: |disk, is_done| check_failed_move(disk, is_done).boxed(),
    },
    Case {
        name: "failed_move_over_a_file_across_mounts",
        prepare: |disk| {
            disk.lay_out("one", &[("f", "new\n")]);
            disk.lay_out("two", &[("f", "old\n")]);
        },
        perform: |disk| fail_to_move(disk, RenameRequest::new(path("/f"), path("/two/f")).overwrite()).boxed(),
        check: |disk, is_done| check_failed_move_over(disk, is_done).boxed(),
    },
    Case {
        name: "recovery_of_a_move_that_was_copying",
        prepare: |disk| disk.interrupt((1, 2), lay_out_tree, |disk| move_directory(disk).boxed()),
        perform: |disk| recover_once(disk).boxed(),
        check: |disk, _| check_move(disk, true).boxed(),
    },
    Case {
        name: "recovery_of_a_move_that_was_deleting",
        prepare: |disk| disk.interrupt((4, 5), lay_out_tree, |disk| move_directory(disk).boxed()),
        perform: |disk| recover_once(disk).boxed(),
        check: |disk, _| check_move(disk, true).boxed(),
    },
    Case {
        name: "recovery_of_a_move_of_links_that_was_copying",
        prepare: |disk| disk.interrupt((1, 2), lay_out_links, |disk| move_directory(disk).boxed()),
        perform: |disk| recover_once(disk).boxed(),
        check: |disk, _| check_move_of_links(disk, true).boxed(),
    },
    Case {
        name: "recovery_of_a_move_of_links_that_was_deleting",
        prepare: |disk| disk.interrupt((4, 5), lay_out_links, |disk| move_directory(disk).boxed()),
        perform: |disk| recover_once(disk).boxed(),
        check: |disk, _| check_move_of_links(disk, true).boxed(),
    },
    Case {
        name: "recovery_of_a_move_that_was_rolled_back",
        prepare: |disk| disk.interrupt((4, 5), lay_out_tree, |disk| fail_to_move_directory(disk).boxed()),
        perform: |disk| recover_once(disk).boxed(),
        // The recovery may finish the move or roll it back.
        check: |disk, _| check_failed_move(disk, false).boxed(),
    },
];

const BEFORE: &[(&str, &str)] = &[("a", "a\n"), ("b", "b\n"), ("d/e", "e\n"), ("d/g", "g\n"), ("same", "same\n")];
const AFTER: &[(&str, &str)] =
    &[("a", "A\n"), ("d/g", "g\nmore\n"), ("f", "e\n"), ("n/new", "new\n"), ("same", "same\n")];
const TREE: &[(&str, &str)] = &[("dir/a", "a\n"), ("dir/b/c", "c\n"), ("dir/d", "d\n"), ("other", "other\n")];

fn state(files: &[(&str, &str)]) -> State {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn base(disk: &Disk<'_>) {
    disk.lay_out("base", BEFORE);
}

fn lay_out_tree(disk: &Disk<'_>) {
    disk.lay_out("one", TREE);
}

fn lay_out_links(disk: &Disk<'_>) {
    disk.lay_out("one", &[("dir/a", "a\n"), ("dir/z", "z\n")]);
    disk.lay_out_others("one", &[("dir/0", "z"), ("dir/b", "a")], &["dir/empty", "dir/other/empty"]);
}

fn same(what: &str, found: &State, expected: &State) -> std::result::Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}")) }
}

async fn change(overlay: &OverlayBackend) -> Result<()> {
    overlay.edit_text("/a", "a", "A").await?;
    overlay.delete_file("/b").await?;
    overlay.rename(&OpContext::new(), RenameRequest::new(path("/d/e"), path("/f"))).await?;
    overlay.append_text("/d/g", "more\n").await?;
    overlay.create_text("/n/new", "new\n").await.map(drop)
}

fn journalled(disk: &Disk<'_>) -> OverlayBackend {
    OverlayBackend::new(disk.open("base")).with_journal(disk.open("journal"), path("/"))
}

async fn commit_with_a_journal(disk: &Disk<'_>) -> Result<()> {
    let overlay = journalled(disk);
    change(&overlay).await?;
    assert!(matches!(overlay.commit(&OpContext::new()).await?, CommitResult::Applied(_)));
    Ok(())
}

async fn check_journal(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    let finished = journalled(disk).finish_commit(&OpContext::new()).await.map_err(|error| error.to_string())?;
    let (found, before, after) = (disk.state("base"), state(BEFORE), state(AFTER));
    if is_done || finished {
        return same("the base", &found, &after);
    }
    if found == after { Ok(()) } else { same("the base", &found, &before) }
}

async fn open_overlay(disk: &Disk<'_>) -> Result<OverlayBackend> {
    OverlayBackend::open(disk.open("base"), disk.open("store"), path("/overlay")).await
}

async fn commit_of_a_persistent_overlay(disk: &Disk<'_>) -> Result<()> {
    let overlay = open_overlay(disk).await?;
    change(&overlay).await?;
    assert!(matches!(overlay.commit(&OpContext::new()).await?, CommitResult::Applied(_)));
    Ok(())
}

async fn check_persistent_overlay(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    let message = |error: vfs_core::Error| error.to_string();
    let overlay = open_overlay(disk).await.map_err(message)?;
    let found = disk.state("base");
    if is_done || found == state(AFTER) {
        return same("the base", &found, &state(AFTER));
    }
    same("the base", &found, &state(BEFORE))?;
    // Each acknowledged change is still there: those that were made are a beginning of the list.
    let made = [
        overlay.read_text("/a").await.map_err(message)? == "A\n",
        !overlay.exists("/b").await.map_err(message)?,
        overlay.exists("/f").await.map_err(message)?,
        overlay.read_text("/d/g").await.map_err(message)? == "g\nmore\n",
        overlay.exists("/n/new").await.map_err(message)?,
    ];
    if !made.is_sorted_by(|earlier, later| earlier >= later) {
        return Err(format!("the changes that are there are {made:?}"));
    }
    if made.iter().all(|made| *made) {
        overlay.commit(&OpContext::new()).await.map_err(message)?;
        same("the base after another commit", &disk.state("base"), &state(AFTER))?;
    }
    Ok(())
}

fn mounted(disk: &Disk<'_>) -> Result<CompositeBackend> {
    let composite = CompositeBackend::new(disk.open("one")).with_mount("/two", disk.open("two"))?;
    Ok(composite.with_journal(disk.open("journal"), path("/")))
}

async fn move_directory(disk: &Disk<'_>) -> Result<()> {
    let files = mounted(disk)?;
    files.rename(&OpContext::new(), RenameRequest::new(path("/dir"), path("/two/moved"))).await.map(drop)
}

async fn recover_once(disk: &Disk<'_>) -> Result<()> {
    mounted(disk)?.recover(&OpContext::new()).await.map(drop)
}

async fn recover(disk: &Disk<'_>) -> std::result::Result<(), String> {
    let message = |error: vfs_core::Error| error.to_string();
    for moved in mounted(disk).map_err(message)?.recover(&OpContext::new()).await.map_err(message)?.moves {
        if !matches!(moved.outcome, RecoveryOutcome::Finished | RecoveryOutcome::RolledBack) {
            return Err(format!("it could not be recovered: {moved:?}"));
        }
    }
    same("the journal", &disk.state("journal"), &State::new())
}

async fn check_move(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    recover(disk).await?;
    let (one, two) = (disk.state("one"), disk.state("two"));
    let moved = state(&[("moved/a", "a\n"), ("moved/b/c", "c\n"), ("moved/d", "d\n")]);
    if is_done || !two.is_empty() {
        same("the source", &one, &state(&[("other", "other\n")]))?;
        return same("the target", &two, &moved);
    }
    same("the source", &one, &state(TREE))
}

async fn check_move_of_links(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    recover(disk).await?;
    let (one, two) = (disk.state("one"), disk.state("two"));
    let files = |at: &str| {
        let texts = [("0", "z\n"), ("a", "a\n"), ("b", "a\n"), ("z", "z\n")];
        texts.iter().map(|(name, text)| (format!("{at}/{name}"), (*text).to_owned())).collect::<State>()
    };
    let is_moved = is_done || !two.is_empty();
    for directory in ["empty", "other/empty"] {
        let [is_at_source, is_at_target] =
            [("one", "dir"), ("two", "moved")].map(|(end, at)| disk.has_directory(end, &format!("{at}/{directory}")));
        if (is_at_source, is_at_target) != (!is_moved, is_moved) {
            return Err(format!("{directory} is at the source: {is_at_source}, at the target: {is_at_target}"));
        }
    }
    if is_moved {
        same("the source", &one, &State::new())?;
        return same("the target", &two, &files("moved"));
    }
    same("the source", &one, &files("dir"))
}

async fn move_over_file(disk: &Disk<'_>) -> Result<()> {
    let files = mounted(disk)?;
    let request = RenameRequest::new(path("/f"), path("/two/f")).overwrite();
    files.rename(&OpContext::new(), request).await?;
    // A copy leaves nothing to recover from: it is there or not.
    files.copy(&OpContext::new(), CopyRequest::new(path("/two/f"), path("/g"))).await.map(drop)
}

async fn check_move_over(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    recover(disk).await?;
    let (one, two) = (disk.state("one"), disk.state("two"));
    let (old, new) = (state(&[("f", "old\n")]), state(&[("f", "new\n")]));
    if is_done {
        same("the source", &one, &state(&[("g", "new\n")]))?;
        return same("the target", &two, &new);
    }
    if two == old {
        return same("the source", &one, &new);
    }
    same("the target", &two, &new)?;
    if one.is_empty() { Ok(()) } else { same("the source", &one, &state(&[("g", "new\n")])) }
}

/// A move that is rolled back, as the last of its sources cannot be deleted.
async fn fail_to_move(disk: &Disk<'_>, request: RenameRequest) -> Result<()> {
    let rule = Rule::new(RuleEffect::Deny).path("/dir/d").path("/f").operation("delete");
    let policy = Policy::new(Arc::new(RuleSet::new(vec![rule])?));
    let files = CompositeBackend::new(policy.layer(disk.open("one"))).with_mount("/two", disk.open("two"))?;
    let files = files.with_journal(disk.open("journal"), path("/"));
    let error = files.rename(&OpContext::new(), request).await.expect_err("a source cannot be deleted");
    if error.kind() == ErrorKind::PolicyDenied { Ok(()) } else { Err(error) }
}

async fn fail_to_move_directory(disk: &Disk<'_>) -> Result<()> {
    fail_to_move(disk, RenameRequest::new(path("/dir"), path("/two/moved"))).await
}

async fn check_failed_move(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    recover(disk).await?;
    let (one, two) = (disk.state("one"), disk.state("two"));
    if is_done || two.is_empty() {
        same("the target", &two, &State::new())?;
        return same("the source", &one, &state(TREE));
    }
    same("the source", &one, &state(&[("other", "other\n")]))?;
    same("the target", &two, &state(&[("moved/a", "a\n"), ("moved/b/c", "c\n"), ("moved/d", "d\n")]))
}

async fn check_failed_move_over(disk: &Disk<'_>, is_done: bool) -> std::result::Result<(), String> {
    recover(disk).await?;
    let (one, two) = (disk.state("one"), disk.state("two"));
    let (old, new) = (state(&[("f", "old\n")]), state(&[("f", "new\n")]));
    if is_done || two == old {
        same("the target", &two, &old)?;
        return same("the source", &one, &new);
    }
    same("the source", &one, &State::new())?;
    same("the target", &two, &new)
}
