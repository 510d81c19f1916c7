//! Concurrent changes on threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::executor::block_on;
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, RenameRequest, WriteMode, WriteRequest};
use vfs_memory::{FilesState, MemoryBackend, StateBackend};

use super::path;

const WRITERS: usize = 64;

/// Runs `work` on as many threads as there are writers, all from the same moment on, and collects what each gives.
fn all_at_once<R: Send>(work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(writer)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no writer panics")).collect()
    })
}

fn live_backends() -> Vec<Box<dyn Backend>> {
    vec![Box::new(MemoryBackend::new()), Box::new(StateBackend::session(FilesState::new()))]
}

#[test]
fn edits_of_different_lines_of_one_file_all_succeed() {
    let before: String = (0..WRITERS).map(|line| format!("line {line:02} is old\n")).collect();
    for files in live_backends() {
        block_on(files.create_text("/f", &before)).expect("a new file");
        let outcomes = all_at_once(|line| {
            block_on(files.edit_text("/f", &format!("line {line:02} is old"), &format!("line {line:02} is new")))
        });
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(block_on(files.read_text("/f")), Ok(before.replace("old", "new")), "{files}");
    }
}

#[test]
fn appends_to_one_file_are_all_in_it() {
    for files in live_backends() {
        all_at_once(|writer| block_on(files.append_text("/f", &format!("{writer:02}\n"))).expect("an append"));
        let text = block_on(files.read_text("/f")).expect("a file");
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, (0..WRITERS).map(|writer| format!("{writer:02}")).collect::<Vec<_>>(), "{files}");
    }
}

#[test]
fn one_of_many_concurrent_creates_wins() {
    for files in live_backends() {
        let outcomes = all_at_once(|writer| block_on(files.create_text("/f", &writer.to_string())));
        let winners: Vec<_> = (0..WRITERS).filter(|writer| outcomes[*writer].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{files}");
        assert_eq!(block_on(files.read_text("/f")), Ok(winners[0].to_string()), "{files}");
        let refusals = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        assert!(refusals.into_iter().all(|error| error.kind() == ErrorKind::AlreadyExists), "{files}");
    }
}

#[test]
fn one_of_many_concurrent_replacements_of_a_version_wins() {
    for files in live_backends() {
        let version = block_on(files.create_text("/f", "old")).expect("a new file").version;
        let outcomes = all_at_once(|writer| {
            let request = WriteRequest::new(path("/f"), writer.to_string()).mode(WriteMode::IfVersion(version.clone()));
            block_on(files.write(&OpContext::new(), request)).map_err(|error| error.kind())
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{files}");
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(ErrorKind::Conflict))), "{files}");
    }
}

#[test]
fn a_file_and_a_directory_never_come_to_share_a_path() {
    for files in live_backends() {
        let outcomes = all_at_once(|writer| {
            let to = if writer % 2 == 0 { "/p" } else { "/p/below" };
            block_on(files.create_text(to, "")).map_err(|error| error.kind())
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{files}");
        assert_eq!(block_on(files.list_dir("/")).map(|entries| entries.len()), Ok(1), "{files}");
    }
}

#[test]
fn a_reader_sees_a_moved_directory_in_one_place_whole() {
    let files = MemoryBackend::from_files((0..50).map(|name| (path(&format!("/a/{name}")), "x".into())))
        .expect("the files fit one another");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !done.load(Ordering::Acquire) || looks == 0 {
                assert_eq!(files.snapshot().len(), 50);
                let top = block_on(files.list_dir("/")).expect("a listing");
                assert_eq!(top.len(), 1, "{top:?}");
                looks += 1;
            }
        });
        for _ in 0..200 {
            for (from, to) in [("/a", "/b"), ("/b", "/a")] {
                block_on(files.rename(&OpContext::new(), RenameRequest::new(path(from), path(to)))).expect("a rename");
            }
        }
        done.store(true, Ordering::Release);
        reader.join().expect("the reader sees no half");
    });
}

#[test]
fn updates_taken_while_others_write_add_up_to_the_state() {
    let files = StateBackend::session(FilesState::new());
    let done = AtomicBool::new(false);
    let mut checkpoint = FilesState::new();
    std::thread::scope(|scope| {
        let runtime = scope.spawn(|| {
            let mut checkpoint = FilesState::new();
            while !done.load(Ordering::Acquire) {
                checkpoint.merge(files.take_update()).expect("an update of a backend");
            }
            checkpoint
        });
        all_at_once(|writer| {
            for round in 0..20 {
                block_on(files.write_text(&format!("/{}/{round}", writer % 8), &format!("{writer}"))).expect("a write");
            }
        });
        done.store(true, Ordering::Release);
        checkpoint = runtime.join().expect("the runtime does not panic");
    });
    checkpoint.merge(files.take_update()).expect("an update of a backend");
    assert_eq!(checkpoint.len(), 160);
    assert_eq!(checkpoint, files.state());
}
