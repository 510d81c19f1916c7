//! Tests of copies: holes, size limits and files of the kernel.

use std::fs::{File, metadata};
use std::os::unix::fs::{FileExt, MetadataExt};

use futures::executor::block_on;
use vfs_core::{Backend, BackendExt, CopyRequest, ErrorKind, OpContext};
use vfs_local::{Durability, LocalBackend};

use crate::{Disk, assert_fails, path};

const MIB: u64 = 1 << 20;

/// Creates a file of 100 MiB with three ranges of data, one at its start and none at its end.
fn make_sparse(disk: &Disk, name: &str) {
    disk.put(name, "beginning");
    let file = File::options().write(true).open(disk.root().join(name)).expect("it opens");
    file.write_all_at(b"middle", 40 * MIB + 17).expect("it writes");
    file.write_all_at(b"late", 80 * MIB).expect("it writes");
    file.set_len(100 * MIB).expect("it grows");
}

/// Returns the number of bytes that a file takes on the disk.
fn disk_usage(disk: &Disk, name: &str) -> u64 {
    metadata(disk.root().join(name)).expect("it is there").blocks() * 512
}

#[test]
fn a_copy_keeps_the_holes_of_a_file() {
    for durability in [Durability::Atomic, Durability::Full] {
        let disk = Disk::with(|config| config.durability(durability));
        make_sparse(&disk, "d/sparse");
        if disk_usage(&disk, "d/sparse") > MIB {
            println!("not run: this file system has no holes");
            return;
        }
        let copy = |from, to| block_on(disk.files.copy(&OpContext::new(), CopyRequest::new(path(from), path(to))));
        assert_eq!(copy("/d/sparse", "/copy").expect("it copies").bytes, 100 * MIB);
        assert_eq!(copy("/d", "/e").expect("it copies").bytes, 100 * MIB);
        block_on(disk.files.append_text("/d/sparse", "end")).expect("it appends");
        let original = disk.get("copy");
        assert_eq!((original.len() as u64, &original[..9]), (100 * MIB, &b"beginning"[..]));
        for (name, end) in [("copy", ""), ("e/sparse", ""), ("d/sparse", "end")] {
            let content = disk.get(name);
            assert!(content[..original.len()] == original && &content[original.len()..] == end.as_bytes(), "{name}");
            assert_eq!(&content[(40 * MIB + 17) as usize..][..6], b"middle");
            assert_eq!(&content[80 * MIB as usize..][..4], b"late");
            assert!(disk_usage(&disk, name) <= MIB, "{name} takes {} bytes", disk_usage(&disk, name));
        }
    }
}

#[test]
fn a_file_over_the_size_limit_is_not_copied() {
    let disk = Disk::with(|config| config.max_file_size(1000));
    disk.put("d/e/large", [b'x'; 1001]);
    disk.put("d/small", [b'x'; 1000]);
    File::create(disk.root().join("sparse")).and_then(|file| file.set_len(1001)).expect("it is made");
    let copy = |from, to| block_on(disk.files.copy(&OpContext::new(), CopyRequest::new(path(from), path(to))));
    for from in ["/d/e/large", "/sparse", "/d"] {
        let refused = copy(from, "/new/copy");
        assert!(refused.as_ref().is_err_and(|error| error.message().contains("1000 bytes")), "{refused:?}");
        assert_fails(refused, &[ErrorKind::TooLarge]);
    }
    assert_eq!(copy("/d/small", "/copy").expect("it copies").bytes, 1000);
    let mut left: Vec<_> =
        std::fs::read_dir(disk.root()).expect("it lists").map(|e| e.expect("it lists").file_name()).collect();
    left.sort();
    assert_eq!(left, ["copy", "d", "sparse"]);
}

#[test]
fn files_of_the_kernel_that_report_size_zero_are_copied_whole() {
    let files = LocalBackend::host("/").expect("the host opens");
    let at = tempfile::tempdir().expect("a temporary directory");
    let target = at.path().join("copy");
    let target_path = path(target.to_str().expect("UTF-8"));
    block_on(files.copy(&OpContext::new(), CopyRequest::new(path("/proc/version"), target_path))).expect("it copies");
    assert_eq!(std::fs::read(target).expect("it reads"), std::fs::read("/proc/version").expect("it reads"));
}
