//! Tests of the deletion of empty directories.

use futures::executor::block_on;
use vfs_core::{Backend, DeleteRequest, ErrorKind, OpContext};
use vfs_local::Durability;

use crate::{Disk, assert_fails, path};

fn remove(disk: &Disk, at: &str) -> vfs_core::Result<u64> {
    let request = DeleteRequest::new(path(at)).only_empty();
    block_on(disk.files.delete(&OpContext::new(), request)).map(|deleted| deleted.files)
}

#[test]
fn leftovers_of_a_dead_process_do_not_prevent_the_deletion_and_locked_files_do() {
    let disk = Disk::with(|config| config.durability(Durability::Full));
    let reserved = "d/.vfs-tmp-0123456789abcdef";
    disk.put(reserved, "half of a file");
    let living = std::fs::File::open(disk.root().join(reserved)).expect("it opens");
    living.lock().expect("nobody else has it");
    assert_fails(remove(&disk, "/d"), &[ErrorKind::NotEmpty]);
    assert_eq!(disk.get(reserved), b"half of a file");

    // A process that another test is starting may briefly inherit the descriptor, so closing it is not enough.
    living.unlock().expect("it is locked");
    assert_eq!(remove(&disk, "/d"), Ok(0));
    assert!(!disk.root().join("d").exists());
}

#[test]
fn a_link_of_a_dead_process_does_not_prevent_the_deletion() {
    let disk = Disk::new();
    disk.put("d/e/f", "a file");
    std::os::unix::fs::symlink("e", disk.root().join("d/e/.vfs-tmp-0123456789abcdef-00")).expect("a link");
    std::fs::remove_file(disk.root().join("d/e/f")).expect("it is removed");
    assert_eq!(remove(&disk, "/d/e"), Ok(0));
    assert!(!disk.root().join("d/e").exists());
}

#[test]
fn leftovers_stay_in_a_directory_with_other_entries() {
    let disk = Disk::new();
    disk.put("d/.vfs-tmp-0123456789abcdef", "half of a file");
    disk.put("d/e/f", "a file");
    assert_fails(remove(&disk, "/d"), &[ErrorKind::NotEmpty]);
    assert_fails(remove(&disk, "/d/e/f"), &[ErrorKind::NotADirectory]);
    assert_fails(remove(&disk, "/"), &[ErrorKind::InvalidArgument]);
    assert_eq!(
        (disk.get("d/.vfs-tmp-0123456789abcdef"), disk.get("d/e/f")),
        (b"half of a file".into(), b"a file".into())
    );
}
