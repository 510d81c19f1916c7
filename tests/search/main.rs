//! Guarantees of every search, with any number of workers and beside other searches.

mod dropped;
mod fair;
mod order;
mod real_tree;

use std::thread;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use vfs_core::search::GrepSummary;
use vfs_core::{GrepEvent, Result};
use vfs_search::Pool;

type Events = BoxStream<'static, Result<GrepEvent>>;

/// Result of a search: its events before the end, and the end.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<GrepEvent>,
    summary: GrepSummary,
}

impl Outcome {
    fn of(events: Events) -> Self {
        let mut events: Vec<_> = block_on(events.try_collect()).expect("it searches");
        let Some(GrepEvent::End(summary)) = events.pop() else { panic!("a stream ends with its end") };
        Self { events, summary }
    }

    /// Panics where `self` is not `expected`, and names the first event that differs.
    fn assert_is(&self, expected: &Self, what: &str) {
        let differs = self.events.iter().zip(&expected.events).position(|(ours, theirs)| ours != theirs);
        if let Some(at) = differs {
            panic!("{what}: event {at} is {:?}, not {:?}", self.events[at], expected.events[at]);
        }
        assert_eq!(self.events.len(), expected.events.len(), "{what}: events");
        assert_eq!(self.summary, expected.summary, "{what}");
    }
}

/// The next event of a search that goes on.
fn next(events: &mut Events) -> GrepEvent {
    block_on(events.next()).expect("it goes on").expect("it searches")
}

/// Waits until nothing is done on `pool` any more.
#[track_caller]
fn wait_until_idle(pool: &Pool) {
    // No measure of anything: it makes a failure of what would wait for ever.
    let end = Instant::now() + Duration::from_secs(60);
    while !pool.stats().is_idle() {
        assert!(Instant::now() < end, "the pool is still at work: {:?}", pool.stats());
        thread::yield_now();
    }
}
