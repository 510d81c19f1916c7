//! Tests of recursive deletes that are refused as a whole.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use futures::executor::block_on;
use vfs_core::{Backend, DeleteRequest, Error, ErrorKind, OpContext};
use vfs_local::Durability;

use crate::permissions::{as_ordinary_user, set_mode};
use crate::{Disk, path};

/// Creates a tree with entries beside and above the ones that stop its removal, so that a removal in any order would
/// remove some of them first.
fn tree(durability: Durability) -> Disk {
    let disk = Disk::with(|config| config.durability(durability));
    std::fs::set_permissions(disk.tree.path(), PermissionsExt::from_mode(0o755)).expect("modes are set");
    for name in ["a", "b/c/f", "m/a", "m/n/file", "m/z", "y/c/f", "z"] {
        disk.put(&format!("d/{name}"), "x");
    }
    for name in ["", "d", "d/b", "d/b/c", "d/m", "d/m/n", "d/y", "d/y/c"] {
        set_mode(&disk, name, 0o755);
    }
    disk
}

/// Returns the paths of all entries below `d`, sorted.
fn names(disk: &Disk) -> Vec<String> {
    let found = Command::new("find").arg("d").current_dir(disk.root()).output().expect("find starts");
    let mut names: Vec<_> = String::from_utf8(found.stdout).expect("UTF-8").lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[track_caller]
fn assert_refused_whole(disk: &Disk, error: &Error, before: &[String], at: &str) {
    assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some(at)), "{error:?}");
    assert_eq!(error.detail(), None);
    assert!(error.for_model().contains("nothing was deleted"), "{error}");
    assert_eq!(names(disk), before);
}

fn delete(disk: &Disk) -> Error {
    block_on(disk.files.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()))
        .expect_err("it is refused")
}

#[test]
fn a_tree_with_a_directory_that_may_not_be_changed_stays_whole() {
    for durability in [Durability::Atomic, Durability::Full] {
        let disk = tree(durability);
        set_mode(&disk, "d/m/n", 0o555);
        let before = names(&disk);
        as_ordinary_user(&disk, |disk| assert_refused_whole(disk, &delete(disk), &before, "/d/m/n"));
        // An empty directory is removed regardless of its mode.
        std::fs::remove_file(disk.root().join("d/m/n/file")).expect("it goes");
        as_ordinary_user(&disk, |disk| {
            let request = DeleteRequest::new(path("/d")).recursive();
            block_on(disk.files.delete(&OpContext::new(), request)).expect("it goes");
        });
        assert_eq!(names(&disk), [""; 0]);
    }
}

#[test]
fn a_tree_with_a_file_of_another_in_a_sticky_directory_stays_whole() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: only root gives files to others");
        return;
    }
    let disk = tree(Durability::Atomic);
    let (sticky, file) = (disk.root().join("d/m/n"), disk.root().join("d/m/n/file"));
    for path in [&sticky, &file] {
        chown(path, Some(0), None).expect("root may");
    }
    std::fs::set_permissions(&sticky, PermissionsExt::from_mode(0o1777)).expect("modes are set");
    let before = names(&disk);
    as_ordinary_user(&disk, |disk| assert_refused_whole(disk, &delete(disk), &before, "/d/m/n/file"));
    chown(&file, Some(65534), None).expect("root may");
    chown(&sticky, Some(65534), None).expect("root may");
    as_ordinary_user(&disk, |disk| {
        let request = DeleteRequest::new(path("/d")).recursive();
        block_on(disk.files.delete(&OpContext::new(), request)).expect("own files are removed");
    });
}

/// A path that has a mark of `chattr` until this value is dropped.
struct Marked(PathBuf, char);

impl Marked {
    fn new(path: PathBuf, mark: char) -> Option<Self> {
        change_mark('+', mark, &path).then_some(Self(path, mark))
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        let is_cleared = change_mark('-', self.1, &self.0);
        assert!(is_cleared || std::thread::panicking(), "the mark stays");
    }
}

fn change_mark(sign: char, mark: char, path: &Path) -> bool {
    let changed = Command::new("chattr").arg(format!("{sign}{mark}")).arg(path).output();
    changed.is_ok_and(|output| output.status.success())
}

#[test]
fn a_tree_with_something_immutable_stays_whole() {
    for (name, mark) in [("d/m/n/file", 'i'), ("d/m/n", 'i'), ("d/m/n", 'a'), ("d/m/n/file", 'a')] {
        let disk = tree(Durability::Full);
        let Some(_marked) = Marked::new(disk.root().join(name), mark) else {
            println!("not run: this process may not mark files here");
            return;
        };
        let before = names(&disk);
        assert_refused_whole(&disk, &delete(&disk), &before, &format!("/{name}"));
    }
}
