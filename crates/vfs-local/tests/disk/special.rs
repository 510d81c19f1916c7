//! Tests of FIFOs, sockets, devices and files of `/proc`.

use std::os::unix::net::UnixListener;

use futures::executor::block_on;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest,
    GrepRequest, LsRequest, OpContext, ReadRequest, RenameRequest, StatRequest, WriteMode, WriteRequest,
};
use vfs_local::LocalBackend;

use crate::{Disk, assert_fails, path};

#[test]
fn fifos_sockets_and_devices_are_refused_at_once_by_every_operation_and_siblings_work() {
    let disk = Disk::new();
    disk.put("d/file", "needle");
    let at = |name: &str| disk.root().join("d").join(name);
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("FIFOs are made");
    let _listening = UnixListener::bind(at("socket")).expect("sockets are made");
    let mut special = vec!["fifo", "socket"];
    // Only the superuser may create a device.
    if mknodat(CWD, at("zero"), FileType::CharacterDevice, Mode::RWXU, makedev(1, 5)).is_ok() {
        special.push("zero");
    }
    let cx = OpContext::new();
    for name in &special {
        let target = path("/d").child(name).expect("it is a name");
        let refused = &[ErrorKind::Unsupported];
        assert_fails(block_on(disk.files.stat(&cx, StatRequest::new(target.clone()))), refused);
        assert_fails(block_on(disk.files.read(&cx, ReadRequest::new(target.clone()))), refused);
        let overwrite = WriteRequest::new(target.clone(), "x").mode(WriteMode::Overwrite);
        assert_fails(block_on(disk.files.write(&cx, overwrite)), refused);
        let append = WriteRequest::new(target.clone(), "x").mode(WriteMode::Append);
        assert_fails(block_on(disk.files.write(&cx, append)), refused);
        assert_fails(block_on(disk.files.edit(&cx, EditRequest::new(target.clone(), "a", "b"))), refused);
        assert_fails(block_on(disk.files.delete(&cx, DeleteRequest::new(target.clone()))), refused);
        assert_fails(block_on(disk.files.copy(&cx, CopyRequest::new(target.clone(), path("/c")))), refused);
        assert_fails(block_on(disk.files.rename(&cx, RenameRequest::new(target.clone(), path("/c")))), refused);
        assert_fails(block_on(disk.files.grep(&cx, GrepRequest::literal("a").path(target.clone()))), refused);
        assert!(
            block_on(disk.files.upload_files(&cx, vec![FileUploadRequest::new(target.clone(), "x")]))[0]
                .error
                .is_some()
        );
        assert!(block_on(disk.files.download_files(&cx, vec![target.clone()]))[0].error.is_some());
    }
    let listing = block_on(disk.files.ls(&cx, LsRequest::new(path("/d")))).expect("it lists");
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.problems.len(), special.len());
    let found = block_on(disk.files.grep(&cx, GrepRequest::literal("needle"))).expect("it greps");
    assert_eq!((found.matches.len(), found.problems.len()), (1, special.len()));
    assert_eq!(block_on(disk.files.glob_files("*")).expect("it globs").len(), 1);
    block_on(disk.files.delete(&cx, DeleteRequest::new(path("/d")).recursive())).expect("the tree goes with all in it");
}

#[test]
fn files_of_proc_are_read_whole_despite_their_reported_size() {
    let proc = LocalBackend::open("/proc/self").expect("proc is mounted");
    let text = block_on(proc.read_text("/status")).expect("it reports 0 bytes and has more");
    assert!(text.starts_with("Name:"));
    let window = block_on(proc.read_lines("/status", 1, 1)).expect("it reads");
    assert_eq!(window.start_line, 2);
    let cx = OpContext::new();
    let downloaded = block_on(proc.download_files(&cx, vec![path("/status")]));
    assert!(downloaded[0].content.as_ref().is_some_and(|content| content.len() > 100));
    let found = block_on(proc.grep(&cx, GrepRequest::literal("Name:").path(path("/status")))).expect("it greps");
    assert_eq!(found.matches.len(), 1);
    // The magic links of proc are never followed.
    for link in ["/root/etc/passwd", "/cwd", "/exe", "/fd/0"] {
        assert_fails(
            block_on(proc.read(&cx, ReadRequest::new(path(link)))),
            &[ErrorKind::PathEscape, ErrorKind::InvalidPath, ErrorKind::Unsupported],
        );
    }
    let listed = block_on(proc.glob(&cx, GlobRequest::new("/stat*"))).expect("it globs");
    assert!(listed.entries.len() >= 3);
}
