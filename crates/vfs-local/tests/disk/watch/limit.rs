//! The kernel's limit of watches, lowered for one process in a user namespace of its own.

use std::process::Command;

use super::*;

/// Tells a test that it runs where the limit is low.
const FEW: &str = "VFS_TEST_FEW_WATCHES";

/// How many directories can be watched there.
const LIMIT: usize = 8;

/// Sets the limit of a new user namespace, and goes on as the program that is named.
const LOWER: &str = "echo 8 > /proc/sys/user/max_inotify_watches && exec \"$@\"";

fn lowered() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", LOWER, "sh"]);
    command
}

/// Runs `test`, the test of this name, where the limit is low.
fn with_few_watches(name: &str, test: impl FnOnce()) {
    if std::env::var_os(FEW).is_some() {
        return test();
    }
    if !lowered().arg("true").status().is_ok_and(|status| status.success()) {
        println!("left out: the limit of watches cannot be lowered here, which needs unshare(1) and user namespaces");
        return;
    }
    let program = std::env::current_exe().expect("the test runs");
    let mut again = lowered();
    again.arg(program).args(["--exact", name, "--nocapture"]).env(FEW, "1");
    let output = again.output().expect("it runs again");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

fn make(disk: &Disk, names: std::ops::Range<usize>) {
    for name in names {
        std::fs::create_dir(disk.root().join(name.to_string())).expect("directories are made");
    }
}

/// The error that a stream ends with, and the last change before it.
fn end(mut watch: Watch<'_>) -> (vfs_core::Error, Option<Change>) {
    let mut last = None;
    loop {
        match block_on(watch.events.next()).expect("it ends with an error") {
            Ok(event) => last = Some(event.change),
            Err(error) => {
                assert!(block_on(watch.events.next()).is_none(), "it goes on after {error:?}");
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

#[test]
fn a_feed_that_can_no_longer_see_all_says_so_and_ends() {
    with_few_watches("watch::limit::a_feed_that_can_no_longer_see_all_says_so_and_ends", || {
        let disk = Disk::new();
        disk.put("d/f", "x");
        let (watch, other) = (disk.watch_all(), disk.watch(WatchRequest::new(path("/d"))));
        make(&disk, 0..LIMIT);
        let (error, last) = end(watch);
        assert_is_the_limit(&error, "/");
        assert_eq!(last, Some(Change::Overflow), "whoever lists again misses nothing until then");
        let (error, last) = end(other);
        assert_is_the_limit(&error, "/d");
        assert_eq!(last, Some(Change::Overflow));

        // Nothing of it is held any more: what has room is watched, from now on.
        (0..LIMIT).for_each(|name| std::fs::remove_dir(disk.root().join(name.to_string())).expect("removed"));
        let mut again = disk.watch_all();
        disk.put("d/g", "x");
        assert_eq!(again.merged(), [disk.created("/d/g")]);
    });
}

#[test]
fn a_feed_that_cannot_begin_says_why_and_takes_nothing_from_the_others() {
    with_few_watches("watch::limit::a_feed_that_cannot_begin_says_why_and_takes_nothing_from_the_others", || {
        let disk = Disk::new();
        disk.put("d/f", "x");
        make(&disk, 0..LIMIT);
        let mut watch = disk.watch(WatchRequest::new(path("/d")));
        let (error, last) = end(disk.watch_all());
        assert_is_the_limit(&error, "/");
        assert_eq!(last, None);

        std::fs::create_dir(disk.root().join("d/e")).expect("directories are made");
        disk.put("d/e/g", "x");
        assert_eq!(watch.next().change, made_or_gone("/d/e"));
        // Whether it is seen before or after its content was written is a matter of chance.
        assert!(matches!(watch.next().change, Change::Created { path, .. } if path.as_str() == "/d/e/g"));
    });
}
