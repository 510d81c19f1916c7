//! A SQLite file on a disk that is full, which this program mounts for a process of its own.

#![cfg(all(feature = "sqlite", target_os = "linux"))]
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use chrono::Utc;
use vfs_core::{ErrorKind, VfsPath};
use vfs_store::{Inspect, Key, Namespace, NewValue, Precondition, PutOutcome, SqliteConfig, SqliteStore, Store};

/// Where the process finds its disk.
const DISK: &str = "VFS_SQLITE_DISK";
/// About the bytes of each file.
const SIZE: usize = 100 << 10;

fn key(number: usize) -> Key {
    Key::new(Namespace::default(), VfsPath::parse(&format!("/{number}")).expect("a path"))
}

async fn put(store: &SqliteStore, number: usize) -> vfs_core::Result<PutOutcome> {
    let text = format!("a line of the file {number}, as it could be in a log\n").repeat(SIZE / 50);
    store.put(&key(number), NewValue::new(Bytes::from(text), Utc::now()), &Precondition::Absent).await
}

/// Puts files until the disk is full; the number after the last.
async fn fill(store: &SqliteStore, first: usize) -> usize {
    for number in first.. {
        match put(store, number).await {
            Ok(outcome) => assert!(matches!(outcome, PutOutcome::Applied(_)), "{outcome:?}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                return number;
            }
        }
    }
    first
}

#[test]
fn a_process_with_a_small_disk() {
    let Some(disk) = std::env::var_os(DISK) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let config = SqliteConfig::new(Path::new(&disk).join("store.db"));
        let (mut first, mut end) = (0, 0);
        for _ in 0..10 {
            // Each round is by a store that is opened while the disk is full.
            let store = SqliteStore::open(config.clone()).await.expect("it opens");
            end = fill(&store, end).await;
            for number in first..first + 5 {
                let removed = store.delete(&key(number), &Precondition::Any).await;
                assert!(matches!(removed, Ok(PutOutcome::Applied(_))), "{number} of {first} to {end}: {removed:?}");
            }
            first += 5;
            let made = put(&store, end).await;
            assert!(matches!(made, Ok(PutOutcome::Applied(_))), "what was freed is used again: {made:?}");
            end += 1;
        }
        let store = SqliteStore::open(config).await.expect("it opens");
        let report = store.check().await.expect("it checks");
        assert_eq!((report.files as usize, report.problems), (end - first, Vec::new()));
    });
}

#[test]
fn files_can_be_removed_from_a_full_disk() {
    let disk = tempfile::tempdir().expect("a directory");
    let mount = "mount -t tmpfs -o size=24m tmpfs \"$VFS_SQLITE_DISK\"";
    let unshare = |script: String| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]).arg(script).env(DISK, disk.path());
        command
    };
    if !unshare(mount.to_owned()).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: this user may mount nothing, not even in a namespace of its own");
        return;
    }
    let mut command = unshare(format!("{mount} && exec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().expect("this program has a path"));
    let output = command.args(["--exact", "a_process_with_a_small_disk", "--nocapture"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
