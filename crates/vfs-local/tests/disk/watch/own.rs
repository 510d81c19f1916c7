//! Events for changes by this backend, and their subscribers.

use std::sync::{Arc, Weak};

use futures::StreamExt;
use futures::executor::block_on;
use vfs_core::watch::{Change, WatchRequest};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, OpContext,
    RenameRequest,
};
use vfs_local::{Durability, LocalBackend};

use super::{created_without_version, next_item, removed};
use crate::{Disk, path};

#[test]
fn each_operation_is_one_event_and_no_temporary_name_is_seen() {
    for durability in [Durability::Atomic, Durability::Full] {
        let disk = Disk::with(|config| config.durability(durability));
        let (files, cx) = (&disk.files, OpContext::new());
        let mut watch = disk.watch_all();

        block_on(files.create_text("/f", "one")).expect("it writes");
        assert_eq!(watch.changes(), [disk.created("/f")]);
        block_on(files.write_text("/f", "two")).expect("it writes");
        assert_eq!(watch.changes(), [disk.changed("/f")]);
        block_on(files.append_text("/f", "!")).expect("it writes");
        assert_eq!(watch.changes(), [disk.changed("/f")]);
        block_on(files.edit_text("/f", "two", "three")).expect("it edits");
        assert_eq!(watch.changes(), [disk.changed("/f")]);
        block_on(files.edit(&cx, EditRequest::new(path("/f"), "three", "x").dry_run())).expect("it could be edited");
        assert_eq!(watch.changes(), []);
        block_on(files.create_text("/d/e/g", "g")).expect("it writes");
        assert_eq!(
            watch.changes(),
            [created_without_version("/d"), created_without_version("/d/e"), disk.created("/d/e/g")]
        );

        block_on(files.upload_files(&cx, vec![FileUploadRequest::new(path("/u"), "u")]));
        assert_eq!(watch.changes(), [disk.created("/u")]);
        block_on(files.copy(&cx, CopyRequest::new(path("/f"), path("/u")).overwrite())).expect("it copies");
        assert_eq!(watch.changes(), [disk.changed("/u")]);
        block_on(files.copy(&cx, CopyRequest::new(path("/d"), path("/c")))).expect("it copies");
        assert_eq!(
            watch.changes(),
            [created_without_version("/c"), created_without_version("/c/e"), disk.created("/c/e/g")]
        );

        block_on(files.rename(&cx, RenameRequest::new(path("/f"), path("/h")))).expect("it renames");
        assert_eq!(watch.changes(), [disk.renamed("/f", "/h")]);
        block_on(files.rename(&cx, RenameRequest::new(path("/h"), path("/u")).overwrite())).expect("it renames");
        assert_eq!(watch.changes(), [disk.renamed("/h", "/u")]);
        block_on(files.rename(&cx, RenameRequest::new(path("/d"), path("/c/d")))).expect("it renames");
        assert_eq!(watch.changes(), [disk.renamed("/d", "/c/d")]);
        block_on(files.write_text("/c/d/e/g", "moved")).expect("it writes");
        assert_eq!(watch.changes(), [disk.changed("/c/d/e/g")]);

        block_on(files.delete_file("/u")).expect("it goes");
        assert_eq!(watch.changes(), [removed("/u")]);
        block_on(files.delete(&cx, DeleteRequest::new(path("/c")).recursive())).expect("it goes");
        assert_eq!(watch.changes(), [removed("/c")], "{durability:?}");
    }
}

#[test]
fn changes_of_many_writers_are_reported_in_the_order_of_their_versions() {
    let disk = Disk::new();
    let (mut first, mut second) = (disk.watch_all(), disk.watch_all());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for round in 0..20 {
                    block_on(disk.files.append_text("/f", "+")).expect("it appends");
                    block_on(disk.files.write_text("/g", &round.to_string())).expect("it writes");
                }
            });
        }
    });
    let reported = first.changes();
    let mut also = second.changes();
    also.retain(|change| !format!("{change:?}").contains("mark-"));
    assert_eq!(reported, also);
    assert!(
        reported.iter().all(|change| !matches!(change, Change::Renamed { .. } | Change::Removed { .. })),
        "{reported:?}"
    );
    for name in ["/f", "/g"] {
        let versions = reported.iter().filter_map(|change| match change {
            Change::Created { path, version } | Change::Changed { path, version } if path.as_str() == name => {
                version.clone()
            }
            _ => None,
        });
        let versions: Vec<_> = versions.collect();
        let mut distinct = versions.clone();
        distinct.dedup();
        assert_eq!(distinct, versions, "nothing is reported twice");
        assert_eq!(versions.last(), disk.version(name).as_ref());
    }
}

#[test]
fn a_cursor_returns_exactly_the_missed_changes_while_a_watcher_runs() {
    let disk = Disk::new();
    let mut watch = disk.watch_all();
    let mut cursors = Vec::new();
    for name in ["/a", "/b", "/c"] {
        block_on(disk.files.create_text(name, name)).expect("it writes");
        cursors.push(watch.next());
    }
    for (at, event) in cursors.iter().enumerate() {
        let mut resumed = disk.watch(WatchRequest::default().since(event.cursor.clone()));
        let seen: Vec<_> = (at + 1..cursors.len()).map(|_| resumed.next()).collect();
        assert_eq!(seen, cursors[at + 1..]);
    }
    let mut narrower = disk.watch(WatchRequest::new(path("/b")).since(cursors[0].cursor.clone()));
    assert_eq!(narrower.next(), cursors[1]);

    let other = Disk::new();
    let mut elsewhere = other.watch(WatchRequest::default().since(cursors[0].cursor.clone()));
    assert_eq!(elsewhere.next().change, Change::Overflow);
}

#[test]
fn a_part_that_was_not_followed_before_has_no_older_cursors() {
    let disk = Disk::new();
    for name in ["a", "b"] {
        std::fs::create_dir(disk.root().join(name)).expect("directories are made");
    }
    let mut watch = disk.watch(WatchRequest::new(path("/a")));
    disk.put("a/f", "");
    let event = watch.next();
    assert!(matches!(&event.change, Change::Created { path, .. } if path.as_str() == "/a/f"), "{event:?}");
    disk.put("b/f", "");
    let mut late = disk.watch(WatchRequest::new(path("/b")).since(event.cursor));
    disk.put("b/g", "");
    assert_eq!(late.next().change, Change::Overflow);
    assert!(matches!(late.next().change, Change::Created { path, .. } if path.as_str() == "/b/g"));
}

#[test]
fn a_path_is_watched_before_it_exists_and_after_its_removal() {
    let disk = Disk::new();
    let mut file = disk.watch(WatchRequest::new(path("/d/e/f")));
    let mut directory = disk.watch(WatchRequest::new(path("/d/e")));
    for _ in 0..3 {
        block_on(disk.files.create_text("/d/e/f", "x")).expect("it writes");
        assert_eq!(file.next().change, disk.created("/d/e/f"));
        assert_eq!(directory.next().change, created_without_version("/d/e"));
        assert_eq!(directory.next().change, disk.created("/d/e/f"));
        block_on(disk.files.create_text("/d/e/g", "x")).expect("it writes");
        assert_eq!(directory.next().change, disk.created("/d/e/g"));
        let cx = OpContext::new();
        block_on(disk.files.delete(&cx, DeleteRequest::new(path("/d")).recursive())).expect("it goes");
        assert_eq!(file.next().change, removed("/d/e/f"));
        assert_eq!(directory.next().change, removed("/d/e"));
    }
}

#[test]
fn refusals_name_the_path_and_end_the_stream() {
    let disk = Disk::new();
    disk.put("d/f", "");
    disk.link("d", "link");
    disk.link("../outside", "out");
    for (at, expected) in [
        ("/link", ErrorKind::Unsupported),
        ("/link/f", ErrorKind::Unsupported),
        ("/out/secret", ErrorKind::PathEscape),
        ("/.vfs-tmp-x", ErrorKind::InvalidPath),
    ] {
        let mut watch = disk.watch(WatchRequest::new(path(at)));
        let error = watch.item().expect("an answer").expect_err("it is refused");
        assert_eq!((error.kind(), error.path()), (expected, Some(at)));
        assert!(!error.for_model().contains("/tmp/"), "{error:?}");
        assert!(watch.item().is_none());
    }
}

#[test]
fn the_whole_host_is_refused_and_a_part_of_it_is_watched() {
    let tree = tempfile::tempdir().expect("a temporary directory");
    let at = tree.path().canonicalize().expect("it is there");
    let host = LocalBackend::host("/").expect("the host opens");
    let watch = |at: &str| {
        let feed = host.as_watch().expect("it has a feed");
        feed.watch(OpContext::new(), WatchRequest::new(path(at)))
    };
    let error = next_item(&mut watch("/")).expect("an answer").expect_err("it is refused");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some("/")));

    let mut events = watch(at.to_str().expect("it is UTF-8"));
    std::fs::create_dir(at.join("d")).expect("directories are made");
    let event = next_item(&mut events).expect("it goes on").expect("no error");
    assert_eq!(event.change, created_without_version(at.join("d").to_str().expect("it is UTF-8")));
}

#[test]
fn a_stream_ends_when_it_is_cancelled_and_releases_its_context_when_it_is_dropped() {
    let disk = Disk::new();
    let extension = Arc::new(());
    let left: Weak<()> = Arc::downgrade(&extension);
    let cx = OpContext::new().with_extension(extension);
    let mut events = disk.files.as_watch().expect("it has a feed").watch(cx.clone(), WatchRequest::default());
    let waiting = std::thread::spawn(move || (block_on(events.next()), block_on(events.next()).is_none(), events));
    cx.cancel_token().cancel();
    let (error, is_over, events) = waiting.join().expect("it returns");
    assert_eq!(error.expect("an item").expect_err("it is over").kind(), ErrorKind::Cancelled);
    assert!(is_over);
    drop(cx);
    assert_eq!(left.strong_count(), 1);
    drop(events);
    assert_eq!(left.strong_count(), 0);
}
