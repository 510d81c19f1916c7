//! Events for changes by other programs.

use std::fs;
use std::io::Write;

use futures::executor::block_on;
use vfs_core::BackendExt;
use vfs_core::watch::{Change, WatchRequest};
use vfs_local::{MountPolicy, PathResolutionMode};

use super::{created_without_version, removed};
use crate::permissions::{as_ordinary_user, set_mode};
use crate::{Disk, path};

#[test]
fn files_are_made_written_renamed_and_removed() {
    for resolution in [PathResolutionMode::Automatic, PathResolutionMode::Portable] {
        let disk = Disk::with(|config| config.resolution(resolution));
        let at = |name: &str| disk.root().join(name);
        disk.put("old", "old");
        let mut watch = disk.watch_all();

        disk.put("f", "one");
        assert_eq!(watch.merged(), [disk.created("/f")]);
        disk.put("f", "two");
        assert_eq!(watch.merged(), [disk.changed("/f")]);
        disk.put("old", "new");
        assert_eq!(watch.merged(), [disk.changed("/old")]);

        // A program may keep a log open and write to it.
        let mut log = fs::OpenOptions::new().append(true).open(at("f")).expect("it opens");
        log.write_all(b"line").expect("it writes");
        assert_eq!(watch.merged(), [disk.changed("/f")]);
        drop(log);
        assert_eq!(watch.changes(), []);

        fs::rename(at("f"), at("g")).expect("it renames");
        assert_eq!(watch.changes(), [disk.renamed("/f", "/g")]);
        fs::rename(at("g"), at("old")).expect("it renames");
        assert_eq!(watch.changes(), [disk.renamed("/g", "/old")]);
        fs::remove_file(at("old")).expect("it goes");
        assert_eq!(watch.changes(), [removed("/old")]);
        disk.put(".vfs-tmp-theirs", "hidden");
        fs::create_dir(at(".vfs-tmp-directory")).expect("directories are made");
        disk.put(".vfs-tmp-directory/f", "hidden");
        assert_eq!(watch.changes(), []);
    }
}

#[test]
fn new_directories_are_reported_with_all_their_entries() {
    let disk = Disk::with(|config| config.mounts(MountPolicy::Stay));
    let mut watch = disk.watch_all();
    for round in 0..50 {
        // These are created faster than they can be watched.
        disk.put(&format!("{round}/a/b/c/f"), "x");
        disk.put(&format!("{round}/a/g"), "x");
    }
    let reported = watch.merged();
    for round in 0..50 {
        for name in ["", "/a", "/a/b", "/a/b/c"] {
            let expected = created_without_version(&format!("{round}{name}"));
            assert_eq!(
                reported.iter().filter(|change| **change == expected).count(),
                1,
                "{expected:?} in {reported:?}"
            );
        }
        for name in ["/a/b/c/f", "/a/g"] {
            let name = format!("/{round}{name}");
            assert!(reported.iter().any(|change| *change == disk.created(&name)), "{name} in {reported:?}");
        }
    }
    assert_eq!(reported.len(), 300, "nothing is reported twice");
    disk.put("7/a/b/c/f", "changed");
    assert_eq!(watch.merged(), [disk.changed("/7/a/b/c/f")]);
}

#[test]
fn renames_across_the_root_are_reported_as_creations_and_removals() {
    let disk = Disk::new();
    let inside = |name: &str| disk.root().join(name);
    let outside = |name: &str| disk.tree.path().join("outside").join(name);
    fs::create_dir_all(outside("d/e")).expect("directories are made");
    fs::write(outside("d/e/f"), "x").expect("it writes");
    let mut watch = disk.watch_all();

    fs::rename(outside("d"), inside("d")).expect("it renames");
    assert_eq!(
        watch.changes(),
        [created_without_version("/d"), created_without_version("/d/e"), disk.created("/d/e/f")]
    );
    fs::rename(inside("d/e/f"), outside("f")).expect("it renames");
    assert_eq!(watch.changes(), [removed("/d/e/f")]);
    fs::rename(outside("f"), inside("g")).expect("it renames");
    assert_eq!(watch.changes(), [disk.created("/g")]);

    fs::rename(inside("d"), inside("n")).expect("it renames");
    disk.put("n/e/h", "");
    assert_eq!(watch.merged(), [disk.renamed("/d", "/n"), disk.created("/n/e/h")]);
    fs::rename(inside("n/e"), inside("e")).expect("it renames");
    fs::remove_file(inside("e/h")).expect("it goes");
    assert_eq!(watch.changes(), [disk.renamed("/n/e", "/e"), removed("/e/h")]);

    fs::rename(inside("n"), outside("n")).expect("it renames");
    fs::write(outside("n/unseen"), "").expect("it writes");
    assert_eq!(watch.changes(), [removed("/n")]);
    fs::remove_dir_all(outside("n")).expect("it goes");
    disk.assert_outside_untouched();
}

#[test]
fn files_and_directories_that_are_swapped_are_both_there_afterwards() {
    let disk = Disk::new();
    disk.put("d/one", "");
    disk.put("e/two", "");
    disk.put("f", "f");
    disk.put("g", "g");
    let mut watch = disk.watch_all();
    for (a, b) in [("f", "g"), ("d", "e")] {
        let root = fs::File::open(disk.root()).expect("it opens");
        rustix::fs::renameat_with(&root, a, &root, b, rustix::fs::RenameFlags::EXCHANGE).expect("they are swapped");
    }
    let reported = watch.changes();
    // The kernel reports two renames. The first is reported as a rename, with the current version.
    assert!(reported.contains(&disk.renamed("/f", "/g")) && reported.contains(&disk.changed("/f")), "{reported:?}");
    assert!(reported.contains(&disk.created("/d/two")) && reported.contains(&disk.created("/e/one")), "{reported:?}");
    disk.put("d/two", "x");
    disk.put("e/one", "x");
    assert_eq!(watch.merged(), [disk.changed("/d/two"), disk.changed("/e/one")]);
}

#[test]
fn a_removed_tree_is_reported_and_may_be_created_again() {
    let disk = Disk::new();
    let mut watch = disk.watch_all();
    for _ in 0..3 {
        disk.put("d/e/f", "x");
        disk.put("d/g", "x");
        assert_eq!(watch.merged().len(), 4);
        fs::remove_dir_all(disk.root().join("d")).expect("it goes");
        let mut reported = watch.changes();
        assert_eq!(reported.pop(), Some(removed("/d")));
        reported.sort_by_key(|change| format!("{change:?}"));
        assert_eq!(reported, [removed("/d/e"), removed("/d/e/f"), removed("/d/g")]);
    }
}

#[test]
fn the_root_itself_may_be_moved_and_removed() {
    let disk = Disk::new();
    let mut watch = disk.watch_all();
    let moved = disk.tree.path().join("moved");
    fs::rename(disk.root(), &moved).expect("it renames");
    fs::create_dir(moved.join("d")).expect("directories are made");
    assert_eq!(watch.next().change, created_without_version("/d"));
    fs::create_dir(disk.root()).expect("directories are made");
    disk.put("not-ours", "");
    fs::remove_dir_all(&moved).expect("it goes");
    assert_eq!([watch.next().change, watch.next().change], [removed("/d"), removed("/")]);
    let late = disk.watch_all().events;
    drop(late);
    assert!(futures::FutureExt::now_or_never(futures::StreamExt::next(&mut watch.events)).is_none());
}

#[test]
fn no_link_is_watched_through() {
    let disk = Disk::new();
    disk.put("real/f", "x");
    disk.link("../outside", "out");
    disk.link("real", "in");
    let mut watch = disk.watch_all();
    disk.link("../outside", "out-too");
    disk.link("nowhere", "dangling");
    let reported = watch.changes();
    assert_eq!(reported, [created_without_version("/out-too"), created_without_version("/dangling")]);

    let outside = disk.tree.path().join("outside");
    fs::write(outside.join("new"), "").expect("it writes");
    fs::remove_file(outside.join("new")).expect("it goes");
    disk.put("in/f", "y");
    assert_eq!(watch.merged(), [disk.changed("/real/f")]);
    // A link replaces a directory.
    fs::remove_dir_all(disk.root().join("real")).expect("it goes");
    disk.link("../outside", "real");
    assert_eq!(watch.changes(), [removed("/real/f"), removed("/real"), created_without_version("/real")]);
    fs::write(outside.join("new"), "").expect("it writes");
    fs::remove_file(outside.join("new")).expect("it goes");
    assert_eq!(watch.changes(), []);
    disk.assert_outside_untouched();
}

#[test]
fn directories_swapped_for_links_while_they_are_made_are_never_watched_outside() {
    let disk = Disk::new();
    let outside = disk.tree.path().join("outside");
    let mut watch = disk.watch_all();
    for round in 0..200 {
        let name = disk.root().join(round.to_string());
        fs::create_dir(&name).expect("directories are made");
        fs::remove_dir(&name).expect("it goes");
        std::os::unix::fs::symlink(&outside, &name).expect("links are made");
        fs::write(outside.join("unseen"), "").expect("it writes");
        fs::remove_file(outside.join("unseen")).expect("it goes");
    }
    let reported = watch.changes();
    assert!(reported.iter().all(|change| !format!("{change:?}").contains("unseen")), "{reported:?}");
    assert!(reported.iter().all(|change| !format!("{change:?}").contains("secret")), "{reported:?}");
}

#[test]
fn names_that_are_not_utf8_are_skipped() {
    use std::os::unix::ffi::OsStrExt;
    let disk = Disk::new();
    let bad = disk.root().join(std::ffi::OsStr::from_bytes(b"bad-\xff"));
    let mut watch = disk.watch_all();
    fs::create_dir(&bad).expect("directories are made");
    fs::write(bad.join("f"), "").expect("it writes");
    assert_eq!(watch.changes(), []);
    fs::rename(&bad, disk.root().join("good")).expect("it renames");
    assert_eq!(watch.changes(), [created_without_version("/good"), disk.created("/good/f")]);
    fs::rename(disk.root().join("good"), &bad).expect("it renames");
    fs::write(bad.join("f"), "x").expect("it writes");
    assert_eq!(watch.changes(), [removed("/good")]);
}

#[test]
fn a_subscriber_of_a_part_sees_renames_across_its_border_as_creations_and_removals() {
    let disk = Disk::new();
    disk.put("in/a", "");
    disk.put("out/d/f", "");
    let mut whole = disk.watch_all();
    let mut part = disk.watch(WatchRequest::new(path("/in")));
    fs::rename(disk.root().join("out/d"), disk.root().join("in/d")).expect("it renames");
    assert_eq!(part.next().change, created_without_version("/in/d"));
    assert_eq!(whole.next().change, Change::Renamed { from: path("/out/d"), to: path("/in/d"), version: None });
    fs::rename(disk.root().join("in/a"), disk.root().join("a")).expect("it renames");
    assert_eq!(part.next().change, removed("/in/a"));
    assert_eq!(whole.next().change, disk.renamed("/in/a", "/a"));
    assert!(block_on(disk.files.exists("/in/d/f")).expect("it looks"));
}

#[test]
fn unreadable_directories_are_skipped() {
    let disk = Disk::new();
    disk.put("closed/f", "x");
    disk.put("open/f", "x");
    fs::set_permissions(disk.tree.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("modes are set");
    for (name, mode) in [("", 0o755), ("closed", 0), ("open", 0o755)] {
        set_mode(&disk, name, mode);
    }
    as_ordinary_user(&disk, |disk| {
        let mut watch = disk.watch_all();
        disk.put("open/g", "x");
        fs::create_dir(disk.root().join("new")).expect("directories are made");
        assert_eq!(watch.merged(), [disk.created("/open/g"), created_without_version("/new")]);
    });
}
