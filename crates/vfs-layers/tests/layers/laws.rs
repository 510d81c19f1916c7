//! Layers change nothing but what they are for: every law holds through them.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::{Layer, layered};
use vfs_layers::{ConcurrencyLimit, Latency, Retry, Timeout, Trace};
use vfs_memory::MemoryBackend;
use vfs_testkit::{ALL, StrictBackend, Target};

const LONG: Duration = Duration::from_secs(600);

async fn every_law_holds(layers: &[&dyn Layer]) {
    let mut checked = 0;
    for law in ALL {
        let files = Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new())));
        let target = Target::new(layered(files, layers.iter().copied()));
        if law.need.missing_in(&target).is_none() {
            let answer = (law.run)(&target).await;
            assert!(answer.is_ok(), "{} {} through {}: {answer:?}", law.number, law.name, target.backend);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} laws");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_holds_through_the_layers_of_time_and_tracing() {
    let (trace, limit) = (Trace::new(), ConcurrencyLimit::new(100));
    every_law_holds(&[&Latency::new(Duration::ZERO), &Retry::new(), &limit, &Timeout::new(LONG), &trace]).await;
}
