//! Change feed: events of each operation, their order, and late subscribers.

use std::sync::{Arc, Barrier, Weak};

use futures::executor::block_on;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use vfs_core::snapshots::{RestoreRequest, SnapshotRequest};
use vfs_core::watch::{Change, WatchCursor, WatchEvent, WatchRequest};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, OpContext,
    RenameRequest, Result, Version,
};
use vfs_memory::{FilesState, MemoryBackend, StateBackend};

use super::{path, run};

type Events = BoxStream<'static, Result<WatchEvent>>;

fn watch(files: &dyn Backend, request: WatchRequest) -> Events {
    files.as_watch().expect("it has a feed").watch(OpContext::new(), request)
}

fn all(files: &dyn Backend) -> Events {
    watch(files, WatchRequest::default())
}

/// Returns all events so far: an operation sends its events before it returns.
fn drain(events: &mut Events) -> Vec<WatchEvent> {
    std::iter::from_fn(|| events.next().now_or_never())
        .map(|event| event.expect("it does not end").expect("it does not fail"))
        .collect()
}

fn changes(events: &mut Events) -> Vec<Change> {
    drain(events).into_iter().map(|event| event.change).collect()
}

fn version_of(content: &str) -> Option<Version> {
    let files = MemoryBackend::new();
    let written = files.create_text("/f", content).now_or_never().expect("memory waits for nobody");
    Some(written.expect("a new file").version)
}

fn created(at: &str, content: &str) -> Change {
    Change::Created { path: path(at), version: version_of(content) }
}

fn changed(at: &str, content: &str) -> Change {
    Change::Changed { path: path(at), version: version_of(content) }
}

fn removed(at: &str) -> Change {
    Change::Removed { path: path(at) }
}

fn live_backends() -> Vec<Box<dyn Backend>> {
    vec![Box::new(MemoryBackend::new()), Box::new(StateBackend::session(FilesState::new()))]
}

#[test]
fn every_operation_emits_its_events() {
    run(async {
        for files in live_backends() {
            let cx = OpContext::new();
            let mut events = all(&*files);
            files.create_text("/d/a", "one").await?;
            files.write_text("/d/a", "two").await?;
            files.append_text("/d/a", "!").await?;
            files.edit_text("/d/a", "two", "three").await?;
            let expected =
                [created("/d/a", "one"), changed("/d/a", "two"), changed("/d/a", "two!"), changed("/d/a", "three!")];
            assert_eq!(changes(&mut events), expected, "{files}");

            files
                .upload_files(
                    &cx,
                    vec![FileUploadRequest::new(path("/d/b"), "b"), FileUploadRequest::new(path("/d/a"), "a")],
                )
                .await;
            assert_eq!(changes(&mut events), [created("/d/b", "b"), changed("/d/a", "a")], "{files}");

            files.copy(&cx, CopyRequest::new(path("/d"), path("/e"))).await?;
            files.copy(&cx, CopyRequest::new(path("/d/a"), path("/d/b")).overwrite()).await?;
            let expected = [created("/e/a", "a"), created("/e/b", "b"), changed("/d/b", "a")];
            assert_eq!(changes(&mut events), expected, "{files}");

            files.rename(&cx, RenameRequest::new(path("/d/a"), path("/f"))).await?;
            files.rename(&cx, RenameRequest::new(path("/e"), path("/g/h"))).await?;
            let expected = [
                Change::Renamed { from: path("/d/a"), to: path("/f"), version: version_of("a") },
                Change::Renamed { from: path("/e"), to: path("/g/h"), version: None },
            ];
            assert_eq!(changes(&mut events), expected, "{files}");

            files.delete_file("/f").await?;
            files.delete(&cx, DeleteRequest::new(path("/g")).recursive()).await?;
            assert_eq!(changes(&mut events), [removed("/f"), removed("/g")], "{files}");
        }
        Ok(())
    });
}

#[test]
fn operations_without_a_change_emit_no_event() {
    run(async {
        for files in live_backends() {
            let cx = OpContext::new();
            files.create_text("/a", "same").await?;
            let mut events = all(&*files);
            files.write_text("/a", "same").await?;
            files.append_text("/a", "").await?;
            files.edit(&cx, EditRequest::new(path("/a"), "same", "other").dry_run()).await?;
            files.create_text("/a", "x").await.expect_err("it is there");
            files.delete_file("/missing").await.expect_err("it is not there");
            assert!(changes(&mut events).is_empty(), "{files}");
            files.write_text("/a", "other").await?;
            assert_eq!(changes(&mut events), [changed("/a", "other")], "{files}");
        }
        assert!(StateBackend::pure(FilesState::new()).as_watch().is_none());
        Ok(())
    });
}

#[test]
fn a_restore_emits_an_event_for_each_file_that_differs() {
    run(async {
        let files = MemoryBackend::new();
        for (name, text) in [("/changed", "old"), ("/gone", "gone"), ("/same", "same")] {
            files.create_text(name, text).await?;
        }
        let snapshots = files.as_snapshots().expect("memory has snapshots");
        let before = snapshots.snapshot(&OpContext::new(), SnapshotRequest::new()).await?;
        files.write_text("/changed", "new").await?;
        files.write_text("/same", "same").await?;
        files.delete_file("/gone").await?;
        files.create_text("/new", "new").await?;

        let mut events = all(&files);
        snapshots.restore(&OpContext::new(), RestoreRequest::new(before.id)).await?;
        assert_eq!(changes(&mut events), [changed("/changed", "old"), created("/gone", "gone"), removed("/new")]);

        let many = (0..5000).map(|name| (path(&format!("/{name}")), "x".into()));
        let many = MemoryBackend::from_files(many)?.snapshot();
        files.restore(&many);
        assert_eq!(changes(&mut events), [Change::Overflow]);
        files.restore(&many);
        assert!(changes(&mut events).is_empty());
        Ok(())
    });
}

#[test]
fn a_subscriber_sees_its_subtree_and_renames_into_and_out_of_it() {
    run(async {
        let files = MemoryBackend::new();
        files.create_text("/out/a", "a").await?;
        files.create_text("/in/b", "b").await?;
        let mut events = watch(&files, WatchRequest::new(path("/in")));
        let mut file = watch(&files, WatchRequest::new(path("/in/b")));
        let cx = OpContext::new();
        files.create_text("/in-x", "").await?;
        files.rename(&cx, RenameRequest::new(path("/out/a"), path("/in/a"))).await?;
        files.rename(&cx, RenameRequest::new(path("/in/a"), path("/out/c"))).await?;
        files.delete(&cx, DeleteRequest::new(path("/in")).recursive()).await?;
        assert_eq!(changes(&mut events), [created("/in/a", "a"), removed("/in/a"), removed("/in")]);
        assert_eq!(changes(&mut file), [removed("/in/b")]);
        Ok(())
    });
}

#[test]
fn a_fork_has_a_feed_of_its_own_and_a_clone_the_same() {
    run(async {
        let files = MemoryBackend::new();
        let (clone, fork) = (files.clone(), files.fork());
        let (mut here, mut there) = (all(&files), all(&fork));
        clone.create_text("/a", "a").await?;
        fork.create_text("/b", "b").await?;
        let cursor = drain(&mut here).pop().expect("an event").cursor;
        assert_eq!(changes(&mut there), [created("/b", "b")]);
        let mut elsewhere = watch(&fork, WatchRequest::default().since(cursor));
        assert_eq!(changes(&mut elsewhere), [Change::Overflow]);
        Ok(())
    });
}

#[test]
fn events_come_in_the_order_of_the_changes_to_all_under_many_writers() {
    const WRITERS: usize = 64;
    const ROUNDS: usize = 20;
    for files in live_backends() {
        let start = Barrier::new(WRITERS + 2);
        let written = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let append = || block_on(files.append_text("/f", "+")).expect("an append");
                        (0..ROUNDS).map(|_| append()).map(|done| (done.size, done.version)).collect::<Vec<_>>()
                    })
                })
                .collect();
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let events = all(&*files);
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        block_on(
                            events.take(WRITERS * ROUNDS).map(|event| event.expect("no error")).collect::<Vec<_>>(),
                        )
                    })
                })
                .collect();
            let mut written: Vec<_> =
                writers.into_iter().flat_map(|writer| writer.join().expect("no writer panics")).collect();
            written.sort_by_key(|(size, _)| *size);
            let seen: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("no reader panics")).collect();
            assert_eq!(seen[0], seen[1], "{files}");
            let versions = seen[0].iter().map(|event| match &event.change {
                Change::Created { version: Some(version), .. } | Change::Changed { version: Some(version), .. } => {
                    version.clone()
                }
                other => panic!("{other:?}"),
            });
            assert_eq!(
                versions.collect::<Vec<_>>(),
                written.iter().map(|(_, version)| version.clone()).collect::<Vec<_>>()
            );
            written
        });
        assert_eq!(written.len(), WRITERS * ROUNDS);
    }
}

#[test]
fn a_cursor_resumes_exactly_after_the_last_event() {
    run(async {
        let files = MemoryBackend::new();
        let mut events = all(&files);
        for name in ["/a", "/b", "/c"] {
            files.create_text(name, name).await?;
        }
        let cursors: Vec<_> = drain(&mut events).into_iter().map(|event| event.cursor).collect();
        drop(events);
        files.delete_file("/a").await?;
        let expected = [created("/b", "/b"), created("/c", "/c"), removed("/a")];
        for (at, cursor) in cursors.into_iter().enumerate() {
            let mut resumed = watch(&files, WatchRequest::default().since(cursor));
            assert_eq!(changes(&mut resumed), expected[at..], "from event {at}");
        }
        Ok(())
    });
}

#[test]
fn lost_events_are_reported_as_overflow() {
    run(async {
        let files = MemoryBackend::new();
        let mut slow = all(&files);
        files.create_text("/a", "").await?;
        let old = drain(&mut slow).pop().expect("an event").cursor;
        for round in 0..5000 {
            files.write_text("/a", &round.to_string()).await?;
        }
        assert_eq!(changes(&mut slow), [Change::Overflow]);
        files.write_text("/a", "next").await?;
        assert_eq!(changes(&mut slow), [changed("/a", "next")]);
        let mut late = watch(&files, WatchRequest::default().since(old));
        assert_eq!(changes(&mut late), [Change::Overflow]);

        let mut malformed = watch(&files, WatchRequest::new(path("/d")).since(WatchCursor::new("yesterday")));
        let error = malformed.next().await.expect("an answer").expect_err("it is no cursor");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/d")));
        assert!(malformed.next().await.is_none());
        Ok(())
    });
}

#[test]
fn a_stream_ends_on_cancellation_and_frees_its_memory_when_dropped() {
    let files = MemoryBackend::new();
    let extension = Arc::new(());
    let left: Weak<()> = Arc::downgrade(&extension);
    let cx = OpContext::new().with_extension(extension);
    let mut events = files.as_watch().expect("it has a feed").watch(cx.clone(), WatchRequest::default());
    assert!(events.next().now_or_never().is_none());
    let waiting = std::thread::spawn(move || {
        let error = block_on(events.next()).expect("there is a last item").expect_err("it is an error");
        assert!(block_on(events.next()).is_none());
        (error, events)
    });
    cx.cancel_token().cancel();
    let (error, events) = waiting.join().expect("it returns");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    drop(cx);
    assert_eq!(left.strong_count(), 1);
    drop(events);
    assert_eq!(left.strong_count(), 0);
}
