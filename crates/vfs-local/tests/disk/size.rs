//! Tests of large files, deep trees, wide directories and full disks.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use futures::executor::block_on;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use vfs_core::{
    Backend, BackendExt, DeleteRequest, EditRequest, ErrorKind, GlobRequest, GrepRequest, LsRequest, OpContext,
    ReadRequest, TruncationReason, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalConfig};

use crate::{Disk, assert_fails, path};

#[test]
fn a_sparse_file_of_10_gb_is_read_by_windows_and_refused_where_all_of_it_is_needed() {
    let disk = Disk::new();
    File::create(disk.root().join("big")).and_then(|file| file.set_len(10 << 30)).expect("sparse files are made");
    let cx = OpContext::new();
    let window = block_on(disk.files.read(&cx, ReadRequest::new(path("/big")).bytes(9 << 30, Some((9 << 30) + 10))));
    assert_eq!(window.expect("it reads").content.as_bytes(), [0; 10]);
    let head = block_on(disk.files.read(&cx, ReadRequest::new(path("/big")))).expect("it reads");
    assert_eq!(head.truncated, Some(TruncationReason::MaxBytes));
    let too_large = &[ErrorKind::TooLarge];
    assert_fails(block_on(disk.files.edit(&cx, EditRequest::new(path("/big"), "a", "b"))), too_large);
    assert_fails(block_on(disk.files.append_text("/big", "x")), too_large);
    let downloaded = block_on(disk.files.download_files(&cx, vec![path("/big")]));
    assert_eq!(downloaded[0].cause.as_ref().map(vfs_core::Error::kind), Some(ErrorKind::TooLarge));
    let found = block_on(disk.files.grep(&cx, GrepRequest::literal("a"))).expect("it greps");
    assert_eq!(found.skipped.binary, 1);
}

#[test]
fn a_read_returns_at_most_the_maximum_file_size() {
    const MAX: u64 = 17 << 20;
    let disk = Disk::with(|config| config.max_file_size(MAX));
    File::create(disk.root().join("big")).and_then(|file| file.set_len(1 << 40)).expect("sparse files are made");
    let cx = OpContext::new();
    let everything = ReadRequest::new(path("/big")).max_bytes(u64::MAX);
    for request in [everything.clone(), everything.clone().lines(0, u64::MAX), everything.bytes(5, None)] {
        let start = request.bytes.map_or(0, |bytes| bytes.start);
        let read = block_on(disk.files.read(&cx, request)).expect("it reads");
        assert_eq!((read.content.as_bytes().len() as u64, read.truncated), (MAX, Some(TruncationReason::MaxBytes)));
        assert_eq!(read.next_byte, Some(start + MAX));
    }
}

#[test]
fn a_tree_3000_levels_deep_is_written_listed_searched_as_far_as_it_has_names_and_deleted() {
    let disk = Disk::new();
    let mut directory: OwnedFd = File::open(disk.root()).expect("it opens").into();
    for _ in 0..3_000 {
        mkdirat(&directory, "dd", Mode::RWXU).expect("directories are made");
        mkdirat(&directory, "z", Mode::RWXU).expect("directories are made");
        directory = openat(&directory, "dd", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).expect("it opens");
    }
    let cx = OpContext::new();
    let deep = "/dd".repeat(1_000);
    block_on(disk.files.create_text(&format!("{deep}/new/file"), "needle")).expect("it writes");
    assert_eq!(block_on(disk.files.read_text(&format!("{deep}/new/file"))).expect("it reads"), "needle");
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/")).recursive())).expect("it lists");
    assert!(listing.entries.len() > 2_500);
    assert_eq!(listing.truncated, Some(TruncationReason::Depth));
    let found = block_on(disk.files.grep(&cx, GrepRequest::literal("needle"))).expect("it greps");
    assert_eq!(found.matches.len(), 1);
    assert_eq!(block_on(disk.files.glob(&cx, GlobRequest::new("file"))).expect("it globs").entries.len(), 1);
    block_on(disk.files.delete(&cx, DeleteRequest::new(path("/dd")).recursive())).expect("it deletes");
    assert_eq!(std::fs::read_dir(disk.root()).expect("it lists").count(), 1, "only the sibling is left");
}

#[test]
fn a_directory_of_100_000_entries_is_listed_whole_or_to_a_limit() {
    let disk = Disk::new();
    let directory: OwnedFd = File::open(disk.root()).expect("it opens").into();
    for entry in 0..100_000 {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&directory, format!("f{entry:06}"), flags, Mode::RWXU).expect("files are made");
    }
    let cx = OpContext::new();
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/")))).expect("it lists");
    assert_eq!(listing.entries.len(), 100_000);
    assert_eq!(listing.entries[99_999].path.as_str(), "/f099999");
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/")).limit(10))).expect("it lists");
    assert_eq!((listing.entries.len(), listing.truncated), (10, Some(TruncationReason::Limit)));
    let found = block_on(disk.files.glob(&cx, GlobRequest::new("f09999?").limit(5))).expect("it globs");
    assert_eq!((found.entries.len(), found.truncated), (5, Some(TruncationReason::Limit)));
}

/// A file system in memory, unmounted when this value is dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Mounts a file system; `None` if this process may not mount.
    fn new(options: &str) -> Option<Self> {
        let at = tempfile::tempdir().expect("a temporary directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at.path()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("-l").arg(self.0.path()).status().expect("umount starts");
        assert!(status.success());
    }
}

#[test]
fn a_full_disk_leaves_the_old_content_whole_and_nothing_else() {
    let Some(mounted) = Mounted::new("size=1m") else {
        println!("not run: this process may not mount");
        return;
    };
    // With this timeout, an operation that retried a full disk until the deadline would never end.
    let config =
        LocalConfig::new(mounted.0.path()).durability(Durability::Full).lock_timeout(Duration::from_secs(86_400));
    let files = config.open().expect("the root opens");
    let old = "line\n".repeat(100_000);
    block_on(files.create_text("/f", &old)).expect("it fits");
    let cx = OpContext::new();
    let full = &[ErrorKind::StorageFull];
    let big = "x".repeat(900_000);
    assert_fails(block_on(files.create_text("/p/new", &big)), full);
    assert_fails(block_on(files.write_text("/f", &big)), full);
    assert_fails(block_on(files.append_text("/f", &big)), full);
    let edit = EditRequest::new(path("/f"), "line", "longer line").replace_all();
    assert_fails(block_on(files.edit(&cx, edit)), full);
    let upload = vfs_core::FileUploadRequest::new(path("/f"), big);
    assert!(block_on(files.upload_files(&cx, vec![upload]))[0].cause.is_some());
    assert_eq!(block_on(files.read_text("/f")).expect("it reads"), old);
    let names: Vec<_> =
        std::fs::read_dir(mounted.0.path()).expect("it lists").map(|e| e.expect("it lists").file_name()).collect();
    assert_eq!(names, ["f"]);
}

#[test]
fn a_read_only_file_system_and_one_mounted_below_the_root_behave_as_set() {
    let Some(mounted) = Mounted::new("size=1m") else {
        println!("not run: this process may not mount");
        return;
    };
    std::fs::write(mounted.0.path().join("f"), "x").expect("files are written");
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(mounted.0.path()).status();
    assert!(remounted.is_ok_and(|status| status.success()));
    let files = LocalConfig::new(mounted.0.path()).open().expect("the root opens");
    let refused = &[ErrorKind::PermissionDenied];
    assert_fails(block_on(files.create_text("/new", "x")), refused);
    assert_fails(block_on(files.write_text("/f", "y")), refused);
    assert_fails(block_on(files.edit_text("/f", "x", "y")), refused);
    let dry_run = block_on(files.edit(&OpContext::new(), EditRequest::new(path("/f"), "x", "y").dry_run()));
    assert!(dry_run.expect("a dry run changes nothing").diff.is_some_and(|diff| diff.contains("+y")));
    assert_fails(block_on(files.delete_file("/f")), refused);
    assert_eq!(block_on(files.read_text("/f")).expect("it reads"), "x");

    let above = mounted.0.path().parent().expect("it has one").to_owned();
    let name = format!("/{}/f", mounted.0.path().file_name().expect("it has one").to_string_lossy());
    let crossing = LocalConfig::new(&above).open().expect("the root opens");
    assert_eq!(block_on(crossing.read_text(&name)).expect("mounts are followed"), "x");
    let staying = LocalConfig::new(&above).mounts(vfs_local::MountPolicy::Stay).open().expect("the root opens");
    assert_fails(block_on(staying.read_text(&name)), &[ErrorKind::PathEscape]);
    let create = WriteRequest::new(path(&name), "y").mode(WriteMode::Overwrite);
    assert_fails(block_on(staying.write(&OpContext::new(), create)), &[ErrorKind::PathEscape]);
}
