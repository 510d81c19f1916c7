//! Subscribers of a change feed.

use futures::executor::block_on;
use futures::stream::{BoxStream, StreamExt};
use tokio::runtime::Builder;
use tokio::time::timeout;
use vfs_core::watch::{Change, WatchEvent, WatchRequest};
use vfs_core::{Backend, BackendExt, OpContext, Result, Version};

use super::{Disk, HANG_TIMEOUT, path};

/// Returns the next item of a feed. Fails the test if there is none before the timeout.
#[track_caller]
pub(crate) fn next_item(events: &mut BoxStream<'static, Result<WatchEvent>>) -> Option<Result<WatchEvent>> {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
    let item = runtime.block_on(async { timeout(HANG_TIMEOUT, events.next()).await });
    item.expect("an item comes before the bound for a hang")
}

/// A subscriber of a disk.
pub(crate) struct Watch<'a> {
    disk: &'a Disk,
    pub(crate) events: BoxStream<'static, Result<WatchEvent>>,
    marks: usize,
}

impl Disk {
    pub(crate) fn watch(&self, request: WatchRequest) -> Watch<'_> {
        let events = self.files.as_watch().expect("a disk has a feed").watch(OpContext::new(), request);
        Watch { disk: self, events, marks: 0 }
    }

    pub(crate) fn watch_all(&self) -> Watch<'_> {
        self.watch(WatchRequest::default())
    }

    /// Returns the current version of a file.
    pub(crate) fn version(&self, name: &str) -> Option<Version> {
        block_on(self.files.stat_path(name)).expect("it is there").version
    }

    pub(crate) fn created(&self, name: &str) -> Change {
        Change::Created { path: path(name), version: self.version(name) }
    }
}

pub(crate) fn removed(name: &str) -> Change {
    Change::Removed { path: path(name) }
}

pub(crate) fn created_without_version(name: &str) -> Change {
    Change::Created { path: path(name), version: None }
}

impl Watch<'_> {
    #[track_caller]
    pub(crate) fn item(&mut self) -> Option<Result<WatchEvent>> {
        next_item(&mut self.events)
    }

    #[track_caller]
    pub(crate) fn next(&mut self) -> WatchEvent {
        self.item().expect("it does not end by itself").expect("it does not fail")
    }

    /// Returns all events until now. The kernel reports events in order, so those of the mark, a directory that is
    /// created here, come last.
    #[track_caller]
    pub(crate) fn events(&mut self) -> Vec<WatchEvent> {
        self.marks += 1;
        let name = format!("mark-{}-{:p}", self.marks, &raw const self.events);
        let mark = self.disk.root().join(&name);
        std::fs::create_dir(&mark).expect("directories are made");
        let mut events = Vec::new();
        self.until(&created_without_version(&name), &mut events);
        // An event whose file could not be examined at once is reported after the rest of its batch.
        std::fs::remove_dir(&mark).expect("it goes");
        self.until(&removed(&name), &mut events);
        events
    }

    #[track_caller]
    fn until(&mut self, last: &Change, events: &mut Vec<WatchEvent>) {
        loop {
            let event = self.next();
            if event.change == *last {
                return;
            }
            events.push(event);
        }
    }

    #[track_caller]
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        self.events().into_iter().map(|event| event.change).collect()
    }

    /// Returns the changes until now, with several writes of one file by another program merged into one change.
    #[track_caller]
    pub(crate) fn merged(&mut self) -> Vec<Change> {
        let mut merged: Vec<Change> = Vec::new();
        for change in self.changes() {
            let before = merged.iter_mut().rev().find_map(|before| match (before, &change) {
                (
                    Change::Created { path: before, version } | Change::Changed { path: before, version },
                    Change::Changed { path, .. },
                ) => (before == path).then_some(version),
                _ => None,
            });
            match (before, change) {
                (Some(before), Change::Changed { version, .. }) => *before = version,
                (_, change) => merged.push(change),
            }
        }
        merged
    }
}
