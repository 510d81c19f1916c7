//! Tests of permissions, as an ordinary user.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use futures::executor::block_on;
use rustix::process::geteuid;
use vfs_core::{Backend, BackendExt, DeleteRequest, ErrorKind, LsRequest, OpContext};

use vfs_local::Durability;

use crate::{Disk, assert_fails, path};

/// Runs `check` on a thread of an ordinary user that does all its file operations itself.
pub(crate) fn as_ordinary_user(disk: &Disk, check: impl FnOnce(&Disk) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if geteuid().is_root() {
                // The system call changes only the calling thread.
                let (root, nobody) = (rustix::fs::Uid::ROOT, rustix::fs::Uid::from_raw(65534));
                rustix::thread::set_thread_res_uid(root, nobody, root).expect("root may become anyone");
            }
            check(disk);
        });
    });
}

pub(crate) fn set_mode(disk: &Disk, name: &str, mode: u32) {
    let path = disk.root().join(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("modes are set");
    if geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65534), None).expect("root may give files away");
    }
}

#[test]
fn accesses_without_permission_are_refused_and_listings_report_the_gap() {
    let disk = Disk::new();
    disk.put("open", "x");
    disk.put("unreadable", "x");
    disk.put("read-only", "x");
    disk.put("closed/x", "x");
    disk.put("read-only-directory/x", "x");
    std::fs::set_permissions(disk.tree.path(), std::fs::Permissions::from_mode(0o755)).expect("modes are set");
    set_mode(&disk, "", 0o755);
    for (name, mode) in
        [("open", 0o644), ("unreadable", 0), ("read-only", 0o444), ("closed", 0), ("read-only-directory", 0o555)]
    {
        set_mode(&disk, name, mode);
    }
    as_ordinary_user(&disk, |disk| {
        let refused = &[ErrorKind::PermissionDenied];
        let cx = OpContext::new();
        assert_fails(block_on(disk.files.read_text("/unreadable")), refused);
        assert_fails(block_on(disk.files.edit_text("/read-only", "x", "y")), refused);
        assert_fails(block_on(disk.files.write_text("/read-only", "y")), refused);
        assert_fails(block_on(disk.files.append_text("/read-only", "y")), refused);
        assert_fails(block_on(disk.files.read_text("/closed/x")), refused);
        assert_fails(block_on(disk.files.list_dir("/closed")), refused);
        assert_fails(block_on(disk.files.create_text("/read-only-directory/new", "y")), refused);
        assert_fails(block_on(disk.files.delete_file("/read-only-directory/x")), refused);
        assert_fails(
            block_on(disk.files.delete(&cx, DeleteRequest::new(path("/read-only-directory")).recursive())),
            refused,
        );
        let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/")).recursive())).expect("it lists");
        assert!(listing.problems.iter().any(|problem| problem.path == "/closed"), "{:?}", listing.problems);
        assert!(listing.entries.iter().any(|entry| entry.path.as_str() == "/open"));
        assert_eq!(block_on(disk.files.read_text("/open")).expect("it reads"), "x");
    });
    assert_eq!(disk.get("read-only-directory/x"), b"x");
    set_mode(&disk, "closed", 0o755);
}

#[test]
fn a_read_only_file_can_be_removed_from_a_writable_directory() {
    for durability in [Durability::Atomic, Durability::Full] {
        let disk = Disk::with(|config| config.durability(durability));
        disk.put("read-only", "x");
        std::fs::set_permissions(disk.tree.path(), std::fs::Permissions::from_mode(0o755)).expect("modes are set");
        set_mode(&disk, "", 0o755);
        set_mode(&disk, "read-only", 0o444);
        as_ordinary_user(&disk, |disk| block_on(disk.files.delete_file("/read-only")).expect("it goes"));
        assert!(!disk.root().join("read-only").exists());
    }
}

#[test]
fn changing_a_file_of_another_group_grants_access_to_nobody_else() {
    let disk = Disk::new();
    std::fs::set_permissions(disk.tree.path(), std::fs::Permissions::from_mode(0o755)).expect("modes are set");
    set_mode(&disk, "", 0o755);
    for (mode, expected) in [(0o674, 0o644), (0o604, 0o600), (0o640, 0o600), (0o666, 0o666)] {
        disk.put("f", "one");
        let file = disk.root().join("f");
        if std::os::unix::fs::chown(&file, Some(65534), Some(4321)).is_err() {
            println!("not run: this process may not give files to groups of others");
            return;
        }
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("modes are set");
        as_ordinary_user(&disk, |disk| {
            drop(block_on(disk.files.edit_text("/f", "one", "two")).expect("it is one's own"));
        });
        assert_eq!(disk.get("f"), b"two");
        let metadata = std::fs::metadata(&file).expect("it is there");
        assert_eq!((metadata.uid(), metadata.mode() & 0o777), (65534, expected), "{mode:o}");
        assert_ne!(metadata.gid(), 4321);
        std::fs::remove_file(&file).expect("it goes");
    }
}
