//! Tests of the kernel's limit on watches, lowered for one process in a user namespace of its own.

use vfs_core::watch::{Change, WatchRequest};

use crate::support::feed::{Watch, created_without_version};
use crate::support::{Disk, path};

/// Maximum number of directories that can be watched there.
const LIMIT: usize = 8;

/// Command that sets the limit of a new user namespace.
pub(crate) const LOWER: &str = "echo 8 > /proc/sys/user/max_inotify_watches";

fn make(disk: &Disk, names: std::ops::Range<usize>) {
    for name in names {
        std::fs::create_dir(disk.root().join(name.to_string())).expect("directories are made");
    }
}

/// Returns the error with which a stream ends, and the last change before it.
fn end(mut watch: Watch<'_>) -> (vfs_core::Error, Option<Change>) {
    let mut last = None;
    loop {
        match watch.item().expect("it ends with an error") {
            Ok(event) => last = Some(event.change),
            Err(error) => {
                assert!(watch.item().is_none(), "it goes on after {error:?}");
                return (error, last);
            }
        }
    }
}

#[track_caller]
fn assert_is_the_limit(error: &vfs_core::Error, at: &str) {
    assert_eq!((error.kind(), error.path()), (vfs_core::ErrorKind::QuotaExceeded, Some(at)), "{error:?}");
    assert!(error.for_model().contains("max_user_watches"), "{error}");
}

pub(crate) fn a_feed_that_cannot_watch_all_directories_reports_it_and_ends() {
    let disk = Disk::new();
    disk.put("d/f", "x");
    let (watch, other) = (disk.watch_all(), disk.watch(WatchRequest::new(path("/d"))));
    make(&disk, 0..LIMIT);
    let (error, last) = end(watch);
    assert_is_the_limit(&error, "/");
    assert_eq!(last, Some(Change::Overflow), "a subscriber that lists again misses nothing");
    let (error, last) = end(other);
    assert_is_the_limit(&error, "/d");
    assert_eq!(last, Some(Change::Overflow));

    // The failed feed has released its watches, so a smaller tree can be watched.
    (0..LIMIT).for_each(|name| std::fs::remove_dir(disk.root().join(name.to_string())).expect("removed"));
    let mut again = disk.watch_all();
    disk.put("d/g", "x");
    assert_eq!(again.merged(), [disk.created("/d/g")]);
}

pub(crate) fn a_feed_that_cannot_begin_reports_why_and_does_not_affect_others() {
    let disk = Disk::new();
    disk.put("d/f", "x");
    make(&disk, 0..LIMIT);
    let mut watch = disk.watch(WatchRequest::new(path("/d")));
    let (error, last) = end(disk.watch_all());
    assert_is_the_limit(&error, "/");
    assert_eq!(last, None);

    std::fs::create_dir(disk.root().join("d/e")).expect("directories are made");
    disk.put("d/e/g", "x");
    assert_eq!(watch.next().change, created_without_version("/d/e"));
    // The event may come before or after the content was written, so the version is not checked.
    assert!(matches!(watch.next().change, Change::Created { path, .. } if path.as_str() == "/d/e/g"));
}
