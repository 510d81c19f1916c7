//! Tests of modes, owners, extended attributes and access times.

use std::fs::{File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use futures::executor::block_on;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use vfs_core::{Backend, BackendExt, FileUploadRequest, GrepRequest, OpContext, ReadRequest};

use crate::{Disk, path};

fn mode(disk: &Disk, name: &str) -> u32 {
    std::fs::metadata(disk.root().join(name)).expect("it is there").permissions().mode() & 0o7777
}

#[test]
fn mode_owner_and_extended_attributes_of_a_replaced_file_are_preserved() {
    let disk = Disk::new();
    disk.put("f", "one");
    let file = disk.root().join("f");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).expect("modes are set");
    // The file system may lack user attributes, and the user may not be allowed to change the owner.
    let has_attributes = setxattr(&file, "user.note", b"value", XattrFlags::empty()).is_ok();
    let has_owner = std::os::unix::fs::chown(&file, Some(1234), Some(4321)).is_ok();
    type Change = fn(&Disk);
    let changes: [Change; 4] = [
        |disk| drop(block_on(disk.files.edit_text("/f", "one", "two")).expect("it edits")),
        |disk| drop(block_on(disk.files.append_text("/f", "three")).expect("it appends")),
        |disk| drop(block_on(disk.files.write_text("/f", "four")).expect("it writes")),
        |disk| {
            let responses =
                block_on(disk.files.upload_files(&OpContext::new(), vec![FileUploadRequest::new(path("/f"), "five")]));
            assert_eq!(responses[0].error, None);
        },
    ];
    for change in changes {
        change(&disk);
        assert_eq!(mode(&disk, "f"), 0o751);
        if has_attributes {
            let mut value = [0; 16];
            let length = getxattr(&file, "user.note", &mut value).expect("it is preserved");
            assert_eq!(&value[..length], b"value");
        }
        if has_owner {
            let metadata = std::fs::metadata(&file).expect("it is there");
            assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
        }
    }
}

#[test]
fn reading_and_searching_do_not_change_access_times() {
    let disk = Disk::new();
    disk.put("d/f", "text");
    let (cx, host) = (OpContext::new(), disk.root().join("d/f"));
    let long_ago = UNIX_EPOCH + Duration::from_secs(1);
    let file = File::options().write(true).open(&host).expect("it opens");
    file.set_times(FileTimes::new().set_accessed(long_ago)).expect("times are set");
    assert_eq!(block_on(disk.files.read_text("/d/f")).expect("it reads"), "text");
    let window = block_on(disk.files.read(&cx, ReadRequest::new(path("/d/f")).bytes(1, Some(3))));
    assert_eq!(window.expect("it reads").content.as_text(), Some("ex"));
    assert!(block_on(disk.files.download_files(&cx, vec![path("/d/f")]))[0].error.is_none());
    let found = block_on(disk.files.grep(&cx, GrepRequest::literal("tex"))).expect("it searches");
    assert_eq!(found.matches.len(), 1);
    let accessed = std::fs::metadata(&host).and_then(|found| found.accessed()).expect("it has times");
    assert_eq!(accessed, long_ago);
}

#[test]
fn access_control_lists_are_preserved_if_the_file_system_has_them() {
    let disk = Disk::new();
    disk.put("f", "one");
    let file = disk.root().join("f");
    // The format of `acl(5)` in an attribute: version 2, then tag, permissions and id of each entry.
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in
        [(0x01_u16, 6_u16, u32::MAX), (0x02, 4, 1234), (0x04, 4, u32::MAX), (0x10, 6, u32::MAX), (0x20, 0, u32::MAX)]
    {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    if let Err(errno) = setxattr(&file, "system.posix_acl_access", &list, XattrFlags::empty()) {
        println!("no access control lists here: {errno}");
        return;
    }
    block_on(disk.files.edit_text("/f", "one", "two")).expect("it edits");
    let mut value = [0; 256];
    let length = getxattr(&file, "system.posix_acl_access", &mut value).expect("it is preserved");
    assert_eq!(&value[..length], list);
}

#[test]
fn a_new_file_has_the_mode_of_the_process_mask_and_a_copy_that_of_its_source() {
    let disk = Disk::new();
    disk.put("plain", "x");
    block_on(disk.files.create_text("/new", "x")).expect("it writes");
    assert_eq!(mode(&disk, "new"), mode(&disk, "plain"));
    std::fs::set_permissions(disk.root().join("plain"), std::fs::Permissions::from_mode(0o755)).expect("modes are set");
    let request = vfs_core::CopyRequest::new(path("/plain"), path("/copy"));
    block_on(disk.files.copy(&OpContext::new(), request)).expect("it copies");
    assert_eq!(mode(&disk, "copy"), 0o755);
}
