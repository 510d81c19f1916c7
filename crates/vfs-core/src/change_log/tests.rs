//! Tests of the change log.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::executor::block_on;
use futures::{FutureExt, StreamExt};

use super::*;
use crate::error::ErrorKind;
use crate::path::VfsPath;

type Events = BoxStream<'static, Result<WatchEvent>>;

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn created(text: &str) -> Change {
    Change::Created { path: path(text), version: None }
}

fn removed(text: &str) -> Change {
    Change::Removed { path: path(text) }
}

fn renamed(from: &str, to: &str) -> Change {
    Change::Renamed { from: path(from), to: path(to), version: None }
}

fn watch(feed: &ChangeLog, at: &str) -> Events {
    feed.subscribe(OpContext::new(), WatchRequest::new(path(at)))
}

fn resume(feed: &ChangeLog, cursor: &WatchCursor) -> Events {
    feed.subscribe(OpContext::new(), WatchRequest::default().since(cursor.clone()))
}

/// The next event, which has to be there by now.
#[track_caller]
fn next(events: &mut Events) -> WatchEvent {
    events.next().now_or_never().expect("something happened").expect("it goes on").expect("no error")
}

/// All changes that are there by now.
fn drain(events: &mut Events) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Some(event) = events.next().now_or_never() {
        changes.push(event.expect("it goes on").expect("no error").change);
    }
    changes
}

#[test]
fn every_subscriber_receives_later_changes_in_order() {
    let feed = ChangeLog::new();
    feed.publish(created("/before"));
    let mut first = watch(&feed, "/");
    feed.publish(created("/a"));
    let mut second = watch(&feed, "/");
    feed.publish(removed("/a"));
    feed.publish(created("/b"));
    assert_eq!(drain(&mut first), [created("/a"), removed("/a"), created("/b")]);
    assert_eq!(drain(&mut second), [removed("/a"), created("/b")]);
}

#[test]
fn a_subscriber_receives_the_changes_that_affect_its_path() {
    let file = |version: &str| Some(version.into());
    let moved_file = Change::Renamed { from: path("/x"), to: path("/w"), version: file("v") };
    for (change, expected) in [
        (created("/w/d"), Some(created("/w/d"))),
        (created("/w/d/e/f"), Some(created("/w/d/e/f"))),
        (created("/w/d-x"), None),
        (created("/w"), None),
        (removed("/w/d/e"), Some(removed("/w/d/e"))),
        (removed("/w"), Some(removed("/w/d"))),
        (removed("/w/e"), None),
        (renamed("/w/d/a", "/w/d/b"), Some(renamed("/w/d/a", "/w/d/b"))),
        (renamed("/w/d/a", "/b"), Some(removed("/w/d/a"))),
        (renamed("/w/d", "/b"), Some(removed("/w/d"))),
        (renamed("/a", "/w/d/b"), Some(created("/w/d/b"))),
        (renamed("/w", "/v"), Some(removed("/w/d"))),
        (renamed("/v", "/w"), Some(Change::Overflow)),
        (moved_file, None),
        (renamed("/a", "/b"), None),
        (Change::Overflow, Some(Change::Overflow)),
    ] {
        let feed = ChangeLog::new();
        let mut events = watch(&feed, "/w/d");
        feed.publish(change.clone());
        assert_eq!(drain(&mut events), Vec::from_iter(expected), "{change:?}");
    }
}

#[test]
fn a_cursor_resumes_after_its_event() {
    let feed = ChangeLog::new();
    let mut events = watch(&feed, "/");
    for name in ["/a", "/b", "/c"] {
        feed.publish(created(name));
    }
    let (a, b) = (next(&mut events), next(&mut events));
    drop(events);
    feed.publish(created("/d"));
    assert_eq!(drain(&mut resume(&feed, &a.cursor)), [created("/b"), created("/c"), created("/d")]);
    assert_eq!(drain(&mut resume(&feed, &b.cursor)), [created("/c"), created("/d")]);
    let last = resume(&feed, &b.cursor).skip(1).boxed();
    let newest = { last }.next().now_or_never().flatten().expect("an event").expect("no error");
    let mut caught_up = resume(&feed, &newest.cursor);
    assert!(drain(&mut caught_up).is_empty());
    feed.publish(created("/e"));
    assert_eq!(drain(&mut caught_up), [created("/e")]);
}

#[test]
fn missed_changes_are_one_overflow_before_later_changes() {
    let feed = ChangeLog::with_capacity(3);
    let mut slow = watch(&feed, "/");
    feed.publish(created("/0"));
    let old = next(&mut slow).cursor;
    for name in 1..=3 {
        feed.publish(created(&format!("/{name}")));
    }
    assert_eq!(drain(&mut resume(&feed, &old)), [created("/1"), created("/2"), created("/3")], "a full ring is enough");
    feed.publish(created("/4"));
    let overflow = next(&mut slow);
    assert_eq!(overflow.change, Change::Overflow);
    feed.publish(created("/5"));
    assert_eq!(drain(&mut slow), [created("/5")]);
    assert_eq!(drain(&mut resume(&feed, &overflow.cursor)), [created("/5")]);
    assert_eq!(drain(&mut resume(&feed, &old)), [Change::Overflow]);
}

#[test]
fn a_cursor_of_another_log_is_an_overflow_and_an_invalid_one_an_error() {
    let (feed, other) = (ChangeLog::new(), ChangeLog::new());
    let mut elsewhere = watch(&other, "/");
    other.publish(created("/a"));
    let foreign = next(&mut elsewhere).cursor;
    feed.publish(created("/b"));
    let mut events = resume(&feed, &foreign);
    feed.publish(created("/c"));
    assert_eq!(drain(&mut events), [Change::Overflow, created("/c")]);

    let (name, _) = foreign.as_str().split_once('.').expect("two parts");
    let own = feed.0.event(feed.mark().0 + 1, Change::Overflow).cursor;
    assert_eq!(drain(&mut resume(&feed, &own)), [Change::Overflow], "a number that was never given");
    let texts = ["", ".", "1", "x.1", "0.1", &format!("{name}.01"), &format!("{name}.+1"), &format!("{name}.1 ")];
    for text in texts {
        let mut events = resume(&feed, &WatchCursor::new(text));
        let error = events.next().now_or_never().flatten().expect("an answer").expect_err("it is none");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/")), "{text:?}");
        assert!(events.next().now_or_never().expect("it is over").is_none());
    }
}

#[test]
fn a_cursor_older_than_the_start_of_a_path_is_an_overflow() {
    let feed = ChangeLog::new();
    let mut events = watch(&feed, "/");
    feed.publish(created("/a"));
    let before = next(&mut events).cursor;
    let (start, request) = (feed.mark(), |cursor: &WatchCursor| WatchRequest::default().since(cursor.clone()));
    let mut late = feed.subscribe_since(start, OpContext::new(), request(&before));
    let overflow = next(&mut late);
    assert_eq!(overflow.change, Change::Overflow, "although nothing was published since");
    feed.publish(created("/b"));
    let after = next(&mut events).cursor;
    feed.publish(created("/c"));
    for (cursor, expected) in [(overflow.cursor, &["/b", "/c"][..]), (after, &["/c"])] {
        let mut in_time = feed.subscribe_since(start, OpContext::new(), request(&cursor));
        assert_eq!(drain(&mut in_time), expected.iter().map(|name| created(name)).collect::<Vec<_>>());
    }
}

#[test]
fn nothing_is_stored_before_the_first_subscriber_and_a_large_batch_is_an_overflow() {
    let feed = ChangeLog::with_capacity(2);
    feed.push(|| -> [Change; 0] { panic!("there is no subscriber") });
    let mut events = watch(&feed, "/");
    feed.push(|| [created("/a"), created("/b")]);
    assert_eq!(drain(&mut events), [created("/a"), created("/b")]);
    feed.push(|| [created("/a"), created("/b"), created("/c")]);
    assert_eq!(drain(&mut events), [Change::Overflow]);
    drop(events);
    assert!(feed.is_used());
}

#[test]
fn a_change_from_another_thread_wakes_a_subscriber() {
    let feed = ChangeLog::new();
    let mut events = watch(&feed, "/");
    let publisher = feed.clone();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || block_on(async { (events.next().await, events.next().await) }));
        publisher.publish(created("/a"));
        publisher.publish(created("/b"));
        let (first, second) = waiting.join().expect("it returns");
        let change = |event: Option<Result<WatchEvent>>| event.expect("it goes on").expect("no error").change;
        assert_eq!((change(first), change(second)), (created("/a"), created("/b")));
    });
}

#[test]
fn cancelling_and_the_deadline_end_the_stream_while_it_waits() {
    let feed = ChangeLog::new();
    let cancelled = OpContext::new();
    let late = OpContext::new().with_timeout(Duration::from_millis(20));
    for (cx, expected) in [(cancelled.clone(), ErrorKind::Cancelled), (late, ErrorKind::Timeout)] {
        let mut events = feed.subscribe(cx, WatchRequest::new(path("/d")));
        if expected == ErrorKind::Cancelled {
            assert!(events.next().now_or_never().is_none(), "nothing has happened");
        }
        let waiting = std::thread::spawn(move || block_on(async { (events.next().await, events.next().await) }));
        if expected == ErrorKind::Cancelled {
            cancelled.cancel_token().cancel();
        }
        let (error, end) = waiting.join().expect("it returns");
        let error = error.expect("an error ends the stream").expect_err("it is over");
        assert_eq!((error.kind(), error.path()), (expected, Some("/d")));
        assert!(end.is_none());
    }
}

#[test]
fn a_dropped_stream_frees_its_memory() {
    let feed = ChangeLog::new();
    let extension = Arc::new(());
    let left: Weak<()> = Arc::downgrade(&extension);
    let cx = OpContext::new().with_extension(extension).with_timeout(Duration::from_secs(3600));
    let mut events = feed.subscribe(cx, WatchRequest::default());
    assert!(events.next().now_or_never().is_none());
    assert_eq!((left.strong_count(), Arc::strong_count(&feed.0)), (1, 2));
    drop(events);
    assert_eq!((left.strong_count(), Arc::strong_count(&feed.0)), (0, 1));
    assert_eq!(feed.0.published.total_listeners(), 0);
}

#[test]
fn subscribers_of_an_ended_log_receive_the_stored_changes_and_the_error() {
    let feed = ChangeLog::new();
    let (mut first, second) = (watch(&feed, "/"), watch(&feed, "/d"));
    let waiting = std::thread::spawn(move || block_on(second.collect::<Vec<_>>()));
    feed.publish(created("/a"));
    let why = || Error::new(ErrorKind::QuotaExceeded, "too many").with_path(&path("/elsewhere"));
    assert!(!feed.has_ended());
    feed.end(why());
    feed.publish(created("/late"));
    feed.end(Error::new(ErrorKind::Internal, "it is over by now"));
    feed.wake();
    assert!(feed.has_ended());
    assert_eq!(next(&mut first).change, created("/a"));
    let ends = |end: Option<Option<Result<WatchEvent>>>, at: &str| {
        let error = end.expect("at once").expect("an error ends the stream").expect_err("it is over");
        assert_eq!((error.kind(), error.message(), error.path()), (ErrorKind::QuotaExceeded, "too many", Some(at)));
    };
    ends(first.next().now_or_never(), "/");
    assert!(matches!(first.next().now_or_never(), Some(None)));
    let mut second = waiting.join().expect("it ends");
    ends(Some(second.pop()), "/d");
    assert!(second.is_empty());
    ends(watch(&feed, "/x").next().now_or_never(), "/x");
}
