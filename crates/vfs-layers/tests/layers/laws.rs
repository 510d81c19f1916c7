//! Laws of backends through every layer.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::{ProptestConfig, proptest};
use vfs_core::Layer;
use vfs_core::operation::layered;
use vfs_layers::{Audit, Cache, ConcurrencyLimit, Delay, MemorySink, Quota, QuotaLimits, Retry, Timeout, Trace};
use vfs_memory::MemoryBackend;
use vfs_testkit::{ALL, StrictBackend, Target, model};

const LONG: Duration = Duration::from_secs(600);

/// An empty store inside of `layers`, strictly observed on either side of them.
fn target(layers: &[&dyn Layer]) -> Target {
    let files = Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new())));
    Target::new(Arc::new(StrictBackend::new(layered(files, layers.iter().copied()))))
}

async fn every_law_holds(layers: &[&dyn Layer]) {
    let mut checked = 0;
    for law in ALL {
        let target = target(layers);
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
    every_law_holds(&[&Delay::new(Duration::ZERO), &Retry::new(), &limit, &Timeout::new(LONG), &trace]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_holds_through_an_audit() {
    every_law_holds(&[&Audit::new(MemorySink::new())]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_holds_through_a_quota() {
    let large = QuotaLimits::new().max_bytes(1 << 50).max_files(1 << 50).max_file_size(256 << 20);
    every_law_holds(&[&Quota::new(large).per_actor(large)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_holds_through_a_cache_of_any_size() {
    for cache in [Cache::new(64 << 20).max_file_size(32 << 20), Cache::new(3000).max_file_size(2000)] {
        every_law_holds(&[&cache]).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_operations_through_all_layers_do_what_they_do_without(steps in model::steps()) {
        let large = QuotaLimits::new().max_bytes(1 << 50);
        let (quota, audit, cache) = (Quota::new(large), Audit::new(MemorySink::new()), Cache::new(2000));
        model::check(&target(&[&cache, &quota, &Retry::new(), &Timeout::new(LONG), &audit, &Trace::new()]), &steps);
    }
}
