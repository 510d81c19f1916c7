//! Tests of names that are not UTF-8 or are reserved.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use futures::executor::block_on;
use vfs_core::{Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, GrepRequest, LsRequest, OpContext};

use crate::{Disk, assert_fails, path};

#[test]
fn a_name_that_is_not_utf8_is_reported_and_its_siblings_work() {
    let disk = Disk::new();
    disk.put("d/good", "needle");
    std::fs::write(disk.root().join("d").join(OsStr::from_bytes(b"bad-\xff")), "needle").expect("files are written");
    let cx = OpContext::new();
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/d")))).expect("it lists");
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.problems.len(), 1);
    assert_eq!(listing.problems[0].path, "/d/bad-\u{fffd}");
    let found = block_on(disk.files.grep(&cx, GrepRequest::literal("needle"))).expect("it greps");
    assert_eq!((found.matches.len(), found.problems.len()), (1, 1));
    block_on(disk.files.copy(&cx, CopyRequest::new(path("/d"), path("/e")))).expect("trees are copied by bytes");
    assert!(disk.root().join("e").join(OsStr::from_bytes(b"bad-\xff")).exists());
    block_on(disk.files.delete(&cx, DeleteRequest::new(path("/d")).recursive())).expect("it deletes");
}

#[test]
fn names_of_unfinished_writes_are_neither_listed_nor_accessible() {
    let disk = Disk::new();
    disk.put(".vfs-tmp-0123", "litter");
    disk.put("d/.vfs-tmp-4567/x", "litter");
    disk.put("d/file", "litter");
    let cx = OpContext::new();
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/")).recursive())).expect("it lists");
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/d", "/d/file"]);
    let request = GrepRequest::literal("litter").hidden().no_ignore();
    assert_eq!(block_on(disk.files.grep(&cx, request)).expect("it greps").matches.len(), 1);
    assert_fails(block_on(disk.files.read_text("/.vfs-tmp-0123")), &[ErrorKind::InvalidPath]);
    assert_fails(block_on(disk.files.create_text("/d/.vfs-tmp-x", "x")), &[ErrorKind::InvalidPath]);
}

#[test]
fn leftovers_under_a_reserved_name_do_not_prevent_changes() {
    let disk = Disk::new();
    let cx = OpContext::new();
    disk.put("build/x", "x");
    block_on(disk.files.delete(&cx, DeleteRequest::new(path("/build")).recursive())).expect("it deletes");
    // Changes of `build` use this name. Leave a directory there as a removal does, then a file as a write does.
    let name = ".vfs-tmp-802517e298c70b03";
    for left in [".vfs-tmp-802517e298c70b03/half/removed", name] {
        disk.put(left, "left");
        block_on(disk.files.write_text("/build", "one")).expect("it writes");
        block_on(disk.files.edit_text("/build", "one", "two")).expect("it edits");
        assert_eq!(disk.get("build"), b"two");
        block_on(disk.files.delete_file("/build")).expect("it deletes");
        let left = disk.root().join(name);
        if left.is_dir() {
            std::fs::remove_dir_all(left).expect("the leftover goes");
        } else if left.exists() {
            std::fs::remove_file(left).expect("the leftover goes");
        }
    }
}

#[test]
fn all_operations_fail_at_once_after_the_root_was_removed() {
    let disk = Disk::new();
    std::fs::remove_dir(disk.root()).expect("it is empty");
    assert_fails(block_on(disk.files.create_text("/a/b", "x")), &[ErrorKind::NotFound]);
    assert_fails(block_on(disk.files.write_text("/a", "x")), &[ErrorKind::NotFound, ErrorKind::PermissionDenied]);
    assert_fails(block_on(disk.files.read_text("/a")), &[ErrorKind::NotFound]);
}
