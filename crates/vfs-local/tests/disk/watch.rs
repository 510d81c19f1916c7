//! The change feed of a real disk: what this backend does and what others do beside it.

mod limit;
mod outside;
mod own;
mod storm;

use futures::executor::block_on;
use futures::stream::{BoxStream, StreamExt};
use tokio::runtime::Builder;
use tokio::time::timeout;
use vfs_core::{Backend, BackendExt, Change, OpContext, Result, Version, WatchEvent, WatchRequest};

use crate::{Disk, HANG_TIMEOUT, path};

/// The next item of a feed. A test whose item does not come fails.
#[track_caller]
fn next_item(events: &mut BoxStream<'static, Result<WatchEvent>>) -> Option<Result<WatchEvent>> {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
    let item = runtime.block_on(async { timeout(HANG_TIMEOUT, events.next()).await });
    item.expect("an item comes before the bound for a hang")
}

/// A subscriber of a disk.
struct Watch<'a> {
    disk: &'a Disk,
    events: BoxStream<'static, Result<WatchEvent>>,
    marks: usize,
}

impl Disk {
    fn watch(&self, request: WatchRequest) -> Watch<'_> {
        let events = self.files.as_watch().expect("a disk has a feed").watch(OpContext::new(), request);
        Watch { disk: self, events, marks: 0 }
    }

    fn watch_all(&self) -> Watch<'_> {
        self.watch(WatchRequest::default())
    }

    /// The version of a file as it is now.
    fn version(&self, name: &str) -> Option<Version> {
        block_on(self.files.info(name)).expect("it is there").version
    }

    fn created(&self, name: &str) -> Change {
        Change::Created { path: path(name), version: self.version(name) }
    }

    fn changed(&self, name: &str) -> Change {
        Change::Changed { path: path(name), version: self.version(name) }
    }

    fn renamed(&self, from: &str, to: &str) -> Change {
        Change::Renamed { from: path(from), to: path(to), version: self.version(to) }
    }
}

fn removed(name: &str) -> Change {
    Change::Removed { path: path(name) }
}

fn made_or_gone(name: &str) -> Change {
    Change::Created { path: path(name), version: None }
}

impl Watch<'_> {
    #[track_caller]
    fn item(&mut self) -> Option<Result<WatchEvent>> {
        next_item(&mut self.events)
    }

    #[track_caller]
    fn next(&mut self) -> WatchEvent {
        self.item().expect("it does not end by itself").expect("it does not fail")
    }

    /// All events until now: the kernel tells of everything in its order, so that they end with those of a mark.
    #[track_caller]
    fn events(&mut self) -> Vec<WatchEvent> {
        self.marks += 1;
        let name = format!("mark-{}-{:p}", self.marks, &raw const self.events);
        let mark = self.disk.root().join(&name);
        std::fs::create_dir(&mark).expect("directories are made");
        let mut events = Vec::new();
        self.until(&made_or_gone(&name), &mut events);
        // What could not be looked at in its turn is told after the rest of what was read in one go.
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
    fn changes(&mut self) -> Vec<Change> {
        self.events().into_iter().map(|event| event.change).collect()
    }

    /// As [`Watch::changes`], but of what another program wrote in several steps, which may be seen apart, as one.
    #[track_caller]
    fn merged(&mut self) -> Vec<Change> {
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
