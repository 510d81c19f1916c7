//! A slice of a soak: all tasks at work until its end, and then a look at what is left.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::executor::block_on;
use futures::future::{join_all, poll_immediate};
use tokio::runtime::Builder;
use vfs_core::{Backend, CancelToken, LsRequest, OpContext, VfsPath};
use vfs_search::Pool;
use vfs_tests::process::Usage;

use super::HEAP;
use super::judge::{Ending, Interruption, Tally, assert_expected};
use super::operations;

const TASKS: u64 = 64;

/// When a slice ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// When each task has made so many calls.
    Calls(usize),
    /// At this moment.
    At(Instant),
}

impl End {
    fn is_reached(self, calls: usize) -> bool {
        match self {
            End::Calls(most) => calls >= most,
            End::At(moment) => Instant::now() >= moment,
        }
    }
}

/// Resource usage of a slice.
#[derive(Debug)]
pub(crate) struct Slice {
    /// Usage after the end of all tasks.
    pub(crate) idle: Usage,
    /// Bytes that were allocated then, without the contents of the files in memory.
    pub(crate) heap: u64,
    /// Maximum of each figure while tasks were running.
    busy: Usage,
    calls: u64,
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { resident, anonymous, threads, descriptors, .. } = self.idle;
        let (resident, anonymous, busy) = (resident >> 10, anonymous >> 10, self.busy.resident >> 10);
        write!(
            f,
            "{:>8} calls; idle {} KiB beside the files of {resident} KiB ({anonymous} anonymous), {threads} threads, \
             {descriptors} descriptors; at most {busy} KiB, {} threads, {} descriptors",
            self.calls,
            self.heap >> 10,
            self.busy.threads,
            self.busy.descriptors,
        )
    }
}

/// Runs all tasks until `end`. The runtime ends with them, so that none of its threads is taken for one of ours.
pub(crate) fn run(backends: &[Arc<dyn Backend>], end: End, seed: u64, tally: &mut Tally) -> Slice {
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_time().build().expect("a runtime starts");
    let tasks = (0..TASKS).map(|task| {
        let random = Rng::with_seed(seed.wrapping_mul(TASKS).wrapping_add(task));
        runtime.spawn(work(backends.to_vec(), random, end))
    });
    let mut tasks = join_all(tasks.collect::<Vec<_>>());
    let mut busy = Usage::default();
    let tallies = runtime.block_on(async {
        let mut looks = tokio::time::interval(Duration::from_millis(200));
        loop {
            tokio::select! {
                tallies = &mut tasks => break tallies,
                _ = looks.tick() => busy = most(busy, Usage::now()),
            }
        }
    });
    // Waits for the work of dropped calls on the blocking pool, which was requested to stop.
    drop(runtime);
    while !Pool::global().stats().is_idle() {
        std::thread::yield_now();
    }
    let mut all = Tally::default();
    for tally in tallies {
        all.merge(tally.expect("no task panics"));
    }
    let calls = all.calls();
    tally.merge(all);
    let heap = (HEAP.current_usage() as u64).saturating_sub(bytes_of(&*backends[0]));
    Slice { idle: Usage::now(), heap, busy, calls }
}

/// How many bytes the files of a backend hold.
fn bytes_of(files: &dyn Backend) -> u64 {
    let all = block_on(files.ls(&OpContext::new(), LsRequest::new(VfsPath::root()).recursive()));
    all.expect("the root can be listed").entries.iter().map(|entry| entry.size).sum()
}

fn most(a: Usage, b: Usage) -> Usage {
    Usage {
        resident: a.resident.max(b.resident),
        anonymous: a.anonymous.max(b.anonymous),
        peak: a.peak.max(b.peak),
        threads: a.threads.max(b.threads),
        descriptors: a.descriptors.max(b.descriptors),
    }
}

/// Calls random operations on a random backend, and interrupts some of them.
async fn work(backends: Vec<Arc<dyn Backend>>, mut random: Rng, end: End) -> Tally {
    let mut tally = Tally::default();
    let mut calls = 0;
    while !end.is_reached(calls) {
        calls += 1;
        let files = &*backends[random.usize(..backends.len())];
        let interruption = match random.u8(..20) {
            0 => Interruption::Token,
            1 => Interruption::Deadline,
            2 => Interruption::Drop,
            _ => Interruption::None,
        };
        let name = operations::NAMES[random.usize(..operations::NAMES.len())];
        let ending = call(files, name, &mut random, interruption).await;
        tally.add(name, ending);
    }
    tally
}

async fn call(files: &dyn Backend, name: &'static str, random: &mut Rng, interruption: Interruption) -> Ending {
    let patience = random.usize(..4);
    let token = CancelToken::new();
    let mut cx = OpContext::new().with_cancel_token(token.clone());
    if interruption == Interruption::Deadline {
        cx = cx.with_timeout(Duration::from_micros(random.u64(..2_000)));
    }
    let mut operation = pin!(operations::perform(files, name, random, &cx, interruption));
    if matches!(interruption, Interruption::Token | Interruption::Drop) {
        for _ in 0..patience {
            if let Some(result) = poll_immediate(&mut operation).await {
                return ending(name, result, interruption);
            }
            tokio::task::yield_now().await;
        }
        if interruption == Interruption::Drop {
            return Ending::Dropped;
        }
        token.cancel();
    }
    ending(name, operation.await, interruption)
}

fn ending(name: &'static str, result: vfs_core::Result<()>, interruption: Interruption) -> Ending {
    match result {
        Ok(()) => Ending::Done,
        Err(error) => {
            assert_expected(name, &error, interruption);
            Ending::Failed(error.kind())
        }
    }
}
