//! Tests of concurrent changes, reads and locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use vfs_core::{
    Backend, BackendExt, EditRequest, ErrorKind, OpContext, ReadRequest, ResolveRequest, StatRequest, WriteMode,
    WriteRequest,
};
use vfs_local::{FileLockMode, LocalConfig};

use crate::{Disk, LOCK_TIMEOUT, path};

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_parallel_edits_of_one_file_every_one_is_in_the_file() {
    let disk = Arc::new(Disk::new());
    for round in 0..setting("VFS_EDIT_ROUNDS", 20) {
        let lines: String = (0..64).map(|line| format!("line {line:02} of round {round}\n")).collect();
        disk.put("f", lines);
        let edits = (0..64).map(|line| {
            let disk = Arc::clone(&disk);
            tokio::spawn(async move {
                let request = EditRequest::new(path("/f"), format!("line {line:02}"), format!("edit {line:02}"));
                disk.files.edit(&OpContext::new(), request).await
            })
        });
        for edit in futures::future::join_all(edits).await {
            edit.expect("no task panics").expect("within one process all succeed");
        }
        let text = String::from_utf8(disk.get("f")).expect("it is text");
        assert_eq!(text.matches("edit ").count(), 64, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_beside_overwrites_never_sees_a_torn_or_empty_file() {
    let disk = Arc::new(Disk::new());
    let whole = |letter: char| letter.to_string().repeat(60_000);
    disk.put("f", whole('a'));
    let done = Arc::new(AtomicBool::new(false));
    let reads: [_; 2] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    let readers = reads.each_ref().map(|reads| {
        let (disk, done, reads) = (Arc::clone(&disk), Arc::clone(&done), Arc::clone(reads));
        tokio::spawn(async move {
            while !done.load(Ordering::Acquire) {
                let text = disk.files.read_text("/f").await.expect("it reads");
                assert!(text.len() == 60_000 && text.bytes().all(|byte| byte == text.as_bytes()[0]));
                reads.fetch_add(1, Ordering::AcqRel);
            }
        })
    });
    let rounds = setting("VFS_OVERWRITES", 2_000);
    // Continue until each reader has read at least once beside the overwrites.
    let has_read = || {
        let mut each = readers.iter().zip(&reads);
        each.all(|(reader, reads)| reader.is_finished() || reads.load(Ordering::Acquire) > 0)
    };
    for round in (0..).take_while(|round| *round < rounds || !has_read()) {
        let content = whole(if round % 2 == 0 { 'b' } else { 'c' });
        disk.files.write_text("/f", &content).await.expect("it writes");
    }
    done.store(true, Ordering::Release);
    for reader in readers {
        reader.await.expect("no read was torn");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_through_two_backends_and_a_version_never_lose_an_acknowledged_change() {
    let disk = Arc::new(Disk::new());
    disk.put("f", "0\n");
    let other = LocalConfig::new(disk.root()).lock_timeout(LOCK_TIMEOUT).open().expect("the root opens twice");
    let tasks = (0..16).map(|task| {
        let files = if task % 2 == 0 { disk.files.clone() } else { other.clone() };
        tokio::spawn(async move {
            let cx = OpContext::new();
            let mut acknowledged = 0;
            for _ in 0..20 {
                let read = files.read(&cx, ReadRequest::new(path("/f"))).await.expect("it reads");
                let count: u64 = read.content.as_text().and_then(|text| text.trim().parse().ok()).expect("a number");
                let next =
                    WriteRequest::new(path("/f"), format!("{}\n", count + 1)).mode(WriteMode::IfVersion(read.version));
                match files.write(&cx, next).await {
                    Ok(_) => acknowledged += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                }
            }
            acknowledged
        })
    });
    let acknowledged: u64 =
        futures::future::join_all(tasks).await.into_iter().map(|task| task.expect("no task panics")).sum();
    assert!(acknowledged >= 20);
    assert_eq!(String::from_utf8(disk.get("f")).expect("it is text"), format!("{acknowledged}\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_tasks_that_create_one_file_exactly_one_wins() {
    let disk = Arc::new(Disk::new());
    for round in 0..20 {
        let name = format!("/p{round}/new");
        let tasks = (0..64).map(|task| {
            let (disk, name) = (Arc::clone(&disk), name.clone());
            tokio::spawn(async move { disk.files.create_text(&name, &task.to_string()).await })
        });
        let results: Vec<_> =
            futures::future::join_all(tasks).await.into_iter().map(|task| task.expect("no panic")).collect();
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        assert!(results.iter().flat_map(|result| result.as_ref().err()).all(|e| e.kind() == ErrorKind::AlreadyExists));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dropped_or_cancelled_change_happened_whole_or_not_at_all() {
    let disk = Disk::new();
    disk.put("f", "old");
    for round in 0..200 {
        let cx = OpContext::new();
        let content = format!("new {round} ").repeat(1_000);
        let request = WriteRequest::new(path("/f"), content.clone()).mode(WriteMode::Overwrite);
        let before = disk.get("f");
        let write = disk.files.write(&cx, request);
        tokio::select! {
            biased;
            () = async { for _ in 0..round % 5 { tokio::task::yield_now().await } } => {}
            _ = write => {}
        }
        // The next change of the same file waits for the dropped one, which has ended by then.
        disk.files.append_text("/f", "").await.expect("no lock is left behind");
        let found = disk.get("f");
        assert!(found == before || found == content.as_bytes());
    }
    let names: Vec<_> = std::fs::read_dir(disk.root()).expect("it lists").collect();
    assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
}

#[tokio::test]
async fn a_file_that_another_program_has_locked_is_busy_after_the_timeout() {
    let disk = Disk::with(|config| config.lock_timeout(std::time::Duration::from_millis(50)));
    disk.put("f", "x");
    let locked = std::fs::File::open(disk.root().join("f")).expect("it opens");
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).expect("it locks");
    let error = disk.files.edit_text("/f", "x", "y").await.expect_err("it is locked");
    assert_eq!(error.kind(), ErrorKind::Busy);
    drop(locked);
    disk.files.edit_text("/f", "x", "y").await.expect("it is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_into_a_directory_that_is_being_deleted_succeed_and_so_do_the_deletes() {
    let disk = Arc::new(Disk::new());
    let writers = (0..8).map(|task| {
        let disk = Arc::clone(&disk);
        tokio::spawn(async move {
            for round in 0..50 {
                disk.files.write_text(&format!("/d/sub/{task}"), &round.to_string()).await.expect("it writes");
            }
        })
    });
    let writers = futures::future::join_all(writers);
    let deleter = {
        let disk = Arc::clone(&disk);
        tokio::spawn(async move {
            for _ in 0..100 {
                let request = vfs_core::DeleteRequest::new(path("/d")).recursive();
                match disk.files.delete(&OpContext::new(), request).await {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}"),
                }
            }
        })
    };
    for writer in writers.await {
        writer.expect("no write fails");
    }
    deleter.await.expect("no delete fails");
    let rest = disk.files.delete(&OpContext::new(), vfs_core::DeleteRequest::new(path("/d")).recursive()).await;
    assert!(rest.is_ok() || rest.is_err_and(|error| error.kind() == vfs_core::ErrorKind::NotFound));
    let left: Vec<_> = std::fs::read_dir(disk.root()).expect("it lists").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_task_that_reads_in_a_loop_does_not_starve_others() {
    let disk = Disk::new();
    disk.put("f", "text");
    let read = async || disk.files.read(&OpContext::new(), ReadRequest::new(path("/f"))).await.expect("it reads");
    let is_done = Arc::new(AtomicBool::new(false));
    let other = {
        let is_done = Arc::clone(&is_done);
        tokio::spawn(async move { is_done.store(true, Ordering::Release) })
    };
    let mut reads = 0;
    while !is_done.load(Ordering::Acquire) {
        read().await;
        reads += 1;
        assert!(reads < 10_000, "the other task had no turn");
    }
    other.await.expect("it ends");
}

#[tokio::test]
async fn the_error_of_a_call_cancelled_before_it_begins_has_its_path() {
    let disk = Disk::new();
    disk.put("f", "text");
    let (cx, f) = (OpContext::new(), path("/f"));
    cx.cancel_token().cancel();
    let errors = [
        disk.files.read(&cx, ReadRequest::new(f.clone())).await.expect_err("it is cancelled"),
        disk.files.stat(&cx, StatRequest::new(f.clone())).await.expect_err("it is cancelled"),
        Backend::resolve(&disk.files, &cx, ResolveRequest::new(f.clone())).await.expect_err("it is cancelled"),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.path()), (ErrorKind::Cancelled, Some("/f")));
    }
}

#[tokio::test]
async fn locks_of_a_file_exclude_one_another_and_end_when_they_are_dropped() {
    let disk = Disk::with(|config| config.lock_timeout(std::time::Duration::from_millis(50)));
    let (cx, at) = (OpContext::new(), path("/d/lock"));
    let exclusive = disk.files.lock_file(&cx, &at, FileLockMode::Exclusive).await.expect("it is made and locked");
    for mode in [FileLockMode::Shared, FileLockMode::Exclusive] {
        assert!(disk.files.try_lock_file(&cx, &at, mode).await.expect("an outcome").is_none(), "{mode:?}");
        let error = disk.files.lock_file(&cx, &at, mode).await.expect_err("it is locked");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Busy, Some("/d/lock")));
    }
    drop(exclusive);
    let shared = disk.files.lock_file(&cx, &at, FileLockMode::Shared).await.expect("it is free");
    let another = disk.files.try_lock_file(&cx, &at, FileLockMode::Shared).await.expect("an outcome");
    assert!(another.is_some() && disk.files.read_text("/d/lock").await.expect("it can be read").is_empty());
    assert!(disk.files.try_lock_file(&cx, &at, FileLockMode::Exclusive).await.expect("an outcome").is_none());
    drop((shared, another));
    assert!(disk.files.try_lock_file(&cx, &at, FileLockMode::Exclusive).await.expect("an outcome").is_some());
    let error = disk.files.lock_file(&cx, &path("/d"), FileLockMode::Shared).await.expect_err("a directory");
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
}

#[tokio::test]
async fn a_directory_lets_files_be_created_by_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;

    let disk = Disk::with(|config| config);
    disk.files.create_text("/d/f", "").await.expect("it is created");
    let (cx, at) = (OpContext::new(), path("/d"));
    assert!(disk.files.can_create_in(&cx, &at).await.expect("an outcome"));
    let error = disk.files.can_create_in(&cx, &path("/absent")).await.expect_err("nothing is there");
    assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some("/absent")));
    let error = disk.files.can_create_in(&cx, &path("/d/f")).await.expect_err("a file");
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
    let real = disk.root().join("d");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o555)).expect("it is owned");
    // Permissions do not restrict the superuser.
    let is_created = std::fs::write(real.join("g"), "").is_ok();
    assert_eq!(disk.files.can_create_in(&cx, &at).await.expect("an outcome"), is_created);
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o755)).expect("it is owned");
}
