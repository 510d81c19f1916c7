//! Change feeds, on backends that have them.
//!
//! A disk reports a change some milliseconds later and reads the file only then. Each law therefore waits for the events of
//! its changes before the next one, or checks only what holds for every backend.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::future::poll_immediate;
use futures::stream::BoxStream;
use vfs_core::watch::{Change, WatchCursor, WatchEvent, WatchRequest};
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, OpContext, RenameRequest, Result, Version,
};

use super::LawResult;
use super::law_helpers::ends;
use crate::target::Target;

laws! { "watch" in Storage:
    "H1" Watching every_change_of_a_file_is_reported_with_its_version in Smoke,
    "H2" Watching changes_are_reported_in_order_to_every_subscriber,
    "H3" Watching a_feed_begins_when_watch_is_called,
    "H4" Watching a_feed_continues_after_a_cursor,
    "H5" Watching missed_changes_are_an_overflow,
    "H6" Watching a_feed_reports_changes_at_and_below_its_path in Wrapper,
    "H6" Watching a_rename_across_the_border_of_a_feed_is_reported_from_its_side,
    "H7" Watching a_feed_ends_when_it_is_cancelled in Wrapper,
    "H7" Watching a_feed_ends_at_its_deadline,
    "H8" Watching an_invalid_cursor_is_refused,
}

/// More changes than feeds commonly remember.
const CHANGE_COUNT: usize = 5_000;

/// Number of changes that one copy makes.
const FILES: usize = 250;

/// A subscriber to the changes of a target.
struct WatchSubscriber<'a> {
    target: &'a Target,
    events: BoxStream<'static, Result<WatchEvent>>,
    marks: usize,
}

impl Target {
    fn watch(&self, request: WatchRequest) -> WatchSubscriber<'_> {
        self.watch_in(OpContext::new(), request)
    }

    fn watch_in(&self, cx: OpContext, request: WatchRequest) -> WatchSubscriber<'_> {
        let events = self.backend.as_watch().expect("the law needs a feed").watch(cx, request);
        WatchSubscriber { target: self, events, marks: 0 }
    }

    fn watch_path(&self, path: &str) -> WatchSubscriber<'_> {
        self.watch(WatchRequest::new(self.path(path)))
    }

    fn created(&self, path: &str, version: &Version) -> Change {
        Change::Created { path: self.path(path), version: Some(version.clone()) }
    }

    fn changed(&self, path: &str, version: &Version) -> Change {
        Change::Changed { path: self.path(path), version: Some(version.clone()) }
    }

    fn removed(&self, path: &str) -> Change {
        Change::Removed { path: self.path(path) }
    }
}

/// Returns whether a change is of a directory, whose name in these laws has a prefix of its own.
fn is_of_a_directory(change: &Change) -> bool {
    match change {
        Change::Created { path, .. } | Change::Removed { path } => {
            path.name().is_some_and(|name| name.starts_with("dir"))
        }
        _ => false,
    }
}

impl WatchSubscriber<'_> {
    async fn event(&mut self) -> Result<WatchEvent> {
        ends("waiting for an event", self.events.next()).await.expect("a feed does not end by itself")
    }

    /// Returns the next event of a file. Whether and when a backend reports directories is its own choice.
    async fn next(&mut self) -> Result<WatchEvent> {
        loop {
            let event = self.event().await?;
            if !is_of_a_directory(&event.change) {
                return Ok(event);
            }
        }
    }

    async fn expect(&mut self, expected: Change) -> Result<WatchCursor> {
        let event = self.next().await?;
        assert_eq!(event.change, expected);
        Ok(event.cursor)
    }

    /// Returns all changes of files until now: those before the change of a marker file. If events are lost, the one of
    /// the marker file may be among them, so another marker file is created.
    async fn until_now(&mut self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        let mut mark = self.mark().await?;
        loop {
            let change = self.next().await?.change;
            match change {
                Change::Created { path, .. } if path == mark => return Ok(changes),
                Change::Overflow => {
                    changes.push(Change::Overflow);
                    mark = self.mark().await?;
                }
                change => changes.push(change),
            }
        }
    }

    async fn mark(&mut self) -> Result<vfs_core::VfsPath> {
        self.marks += 1;
        let name = format!("/mark-{}-{:p}", self.marks, &raw const self.events);
        self.target.put(&name, "").await?;
        Ok(self.target.path(&name))
    }

    /// Asserts that the stream fails with `kind` at `path` after the pending events, and then ends.
    async fn assert_ends(mut self, kind: ErrorKind, path: &str) {
        let error = loop {
            let next = ends("waiting for the end of a feed", self.events.next()).await;
            if let Err(error) = next.expect("the last item has the reason for the end") {
                break error;
            }
        };
        self.target.refused(Err::<(), _>(error.clone()), kind);
        assert_eq!(error.path(), Some(self.target.path(path).as_str()));
        assert!(self.events.next().await.is_none(), "nothing comes after an error");
    }
}

async fn every_change_of_a_file_is_reported_with_its_version(t: &Target) -> LawResult {
    let mut feed = t.watch_path("/");
    let first = t.put("/a", "one\n").await?;
    feed.expect(t.created("/a", &first)).await?;
    let second = t.edit(EditRequest::new(t.path("/a"), "one", "two")).await?.version;
    feed.expect(t.changed("/a", &second)).await?;
    let third = t.put("/a", "three\n").await?;
    feed.expect(t.changed("/a", &third)).await?;
    t.rename(RenameRequest::new(t.path("/a"), t.path("/b"))).await?;
    let version = t.stat("/b").await?.version;
    feed.expect(Change::Renamed { from: t.path("/a"), to: t.path("/b"), version }).await?;
    t.copy(CopyRequest::new(t.path("/b"), t.path("/dir/c"))).await?;
    let copied = t.stat("/dir/c").await?.version.expect("a file has one");
    feed.expect(t.created("/dir/c", &copied)).await?;
    let uploads = vec![FileUploadRequest::new(t.path("/u"), "uploaded")];
    let answers = t.backend.upload_files(&OpContext::new(), uploads).await;
    feed.expect(t.created("/u", answers[0].version.as_ref().expect("it was written"))).await?;
    t.delete(DeleteRequest::new(t.path("/b"))).await?;
    feed.expect(t.removed("/b")).await?;
    Ok(())
}

async fn changes_are_reported_in_order_to_every_subscriber(t: &Target) -> LawResult {
    let (mut first, mut second) = (t.watch_path("/"), t.watch_path("/"));
    let mut expected = Vec::new();
    for number in (0..30).rev() {
        let name = format!("/f{number}");
        expected.push(t.created(&name, &t.put(&name, name.clone()).await?));
    }
    assert_eq!(first.until_now().await?, expected);
    // The other one sees the mark of the first, too.
    let seen = second.until_now().await?;
    assert_eq!(seen[..expected.len()], expected);
    Ok(())
}

async fn a_feed_begins_when_watch_is_called(t: &Target) -> LawResult {
    t.put("/before", "x").await?;
    let mut feed = t.watch_path("/");
    let version = t.put("/after", "x").await?;
    feed.expect(t.created("/after", &version)).await?;
    Ok(())
}

async fn a_feed_continues_after_a_cursor(t: &Target) -> LawResult {
    let mut feed = t.watch_path("/");
    let (mut cursors, mut expected) = (Vec::new(), Vec::new());
    for name in ["/a", "/b", "/c", "/e"] {
        let created = t.created(name, &t.put(name, name).await?);
        cursors.push(feed.expect(created.clone()).await?);
        expected.push(created);
    }
    for (seen, cursor) in cursors.into_iter().enumerate() {
        let mut again = t.watch(WatchRequest::new(t.path("/")).since(cursor));
        let reported = again.until_now().await?;
        // The feed also reports the marks of earlier feeds.
        let is_mark =
            |change: &Change| matches!(change, Change::Created { path, .. } if t.name(path).starts_with("/mark-"));
        let reported: Vec<_> = reported.into_iter().filter(|change| !is_mark(change)).collect();
        // A feed that lost events begins with an overflow, and then has all events that it did not lose.
        let rest = reported.strip_prefix(&[Change::Overflow]).unwrap_or(&reported);
        if rest.len() == reported.len() {
            assert_eq!(rest, &expected[seen + 1..], "after {seen}");
        } else {
            assert!(expected[seen + 1..].ends_with(rest), "after {seen}: {reported:?}");
        }
    }
    Ok(())
}

async fn missed_changes_are_an_overflow(t: &Target) -> LawResult {
    let mut feed = t.watch_path("/");
    let directory = |number: usize| t.path(&format!("/dir-{number}"));
    let names: Vec<_> = (0..CHANGE_COUNT / FILES)
        .flat_map(|number| (0..FILES).map(move |file| (number, file)))
        .map(|(number, file)| t.path(&format!("/dir-{number}/f{file}")))
        .collect();
    let uploads = names[..FILES].iter().map(|name| FileUploadRequest::new(name.clone(), "x")).collect();
    let answers = t.backend.upload_files(&OpContext::new(), uploads).await;
    assert!(answers.iter().all(|answer| answer.error.is_none()), "they are written");
    // A copy of a directory is many changes for the cost of a few if a store makes them in one batch.
    for number in 1..CHANGE_COUNT / FILES {
        t.copy(CopyRequest::new(directory(0), directory(number))).await?;
    }
    let reported = feed.until_now().await?;
    if !reported.contains(&Change::Overflow) {
        // Files of one upload or copy may be written in any order.
        let created: BTreeSet<_> = reported
            .iter()
            .filter_map(|change| match change {
                Change::Created { path, .. } => Some(path),
                _ => None,
            })
            .collect();
        let is_all = reported.len() == names.len() && created == names.iter().collect();
        assert!(is_all, "no event is lost without an overflow: {} of {CHANGE_COUNT}", reported.len());
    }
    let version = t.put("/after", "x").await?;
    feed.expect(t.created("/after", &version)).await?;
    Ok(())
}

async fn a_feed_reports_changes_at_and_below_its_path(t: &Target) -> LawResult {
    t.put_each(&["/dir/a", "/dir-x/a", "/f"]).await?;
    let (mut directory, mut file) = (t.watch_path("/dir"), t.watch_path("/f"));
    for path in ["/dir-x/a", "/dir/a", "/other", "/f", "/dir/dir/b", "/fx", "/dir/b"] {
        t.put(path, "changed\n").await?;
    }
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "/dir/b") {
        match directory.next().await?.change {
            Change::Created { path, .. } | Change::Changed { path, .. } => seen.push(t.name(&path)),
            other => panic!("nothing else happened: {other:?}"),
        }
    }
    assert_eq!(seen, ["/dir/a", "/dir/dir/b", "/dir/b"]);
    file.expect(t.changed("/f", &t.stat("/f").await?.version.expect("a file has one"))).await?;
    t.delete(DeleteRequest::new(t.path("/f"))).await?;
    file.expect(t.removed("/f")).await?;
    Ok(())
}

async fn a_rename_across_the_border_of_a_feed_is_reported_from_its_side(t: &Target) -> LawResult {
    t.put_each(&["/dir/keep", "/out"]).await?;
    let mut feed = t.watch_path("/dir");
    t.rename(RenameRequest::new(t.path("/out"), t.path("/dir/in"))).await?;
    feed.expect(t.created("/dir/in", &t.stat("/dir/in").await?.version.expect("a file has one"))).await?;
    t.rename(RenameRequest::new(t.path("/dir/in"), t.path("/out"))).await?;
    feed.expect(t.removed("/dir/in")).await?;
    Ok(())
}

async fn a_feed_ends_when_it_is_cancelled(t: &Target) -> LawResult {
    let request = || WatchRequest::new(t.path("/dir"));
    let cx = OpContext::new();
    let mut waiting = t.watch_in(cx.clone(), request());
    assert!(poll_immediate(waiting.events.next()).await.is_none(), "nothing has happened");
    cx.cancel_token().cancel();
    waiting.assert_ends(ErrorKind::Cancelled, "/dir").await;
    t.watch_in(cx, request()).assert_ends(ErrorKind::Cancelled, "/dir").await;
    Ok(())
}

async fn a_feed_ends_at_its_deadline(t: &Target) -> LawResult {
    for after in [Duration::from_millis(20), Duration::ZERO] {
        let feed = t.watch_in(OpContext::new().with_timeout(after), WatchRequest::new(t.path("/dir")));
        feed.assert_ends(ErrorKind::Timeout, "/dir").await;
    }
    Ok(())
}

async fn an_invalid_cursor_is_refused(t: &Target) -> LawResult {
    for text in ["", "never given", "\u{0}"] {
        let request = WatchRequest::new(t.path("/dir")).since(WatchCursor::new(text));
        t.watch(request).assert_ends(ErrorKind::InvalidArgument, "/dir").await;
    }
    Ok(())
}
