//! Usage after changes that the backend answers by the result of an earlier call with the same operation id.

use std::sync::Arc;

use futures::executor::block_on;
use proptest::prelude::{ProptestConfig, any, proptest};
use vfs_core::{Backend, BackendExt, ErrorKind, Layer, OpContext, OperationId};
use vfs_layers::{Idempotency, Quota, QuotaLimits, QuotaUsageReader};
use vfs_memory::MemoryBackend;
use vfs_testkit::model::{ExistingTargetMode, ModelStep, steps};

use super::{stored, take, tracked};

/// Returns a store, and a quota over it that answers calls with known operation ids by their first results.
fn replaying(limits: QuotaLimits) -> (Arc<dyn Backend>, QuotaUsageReader, MemoryBackend) {
    let store = MemoryBackend::new();
    let (files, meter) = Quota::new(limits).metered(Idempotency::new().layer(Arc::new(store.clone())));
    (files, meter, store)
}

fn with_id(number: usize) -> OpContext {
    OpContext::new().with_operation_id(OperationId::parse(&format!("step-{number}")).expect("a valid id"))
}

/// Returns the files and bytes that callers without a name have added.
fn added(meter: &QuotaUsageReader) -> (u64, u64) {
    let usage = meter.of_actor(None);
    (usage.files as u64, usage.bytes as u64)
}

/// Returns each kind of change of `/a`, `/b` or the directory `/d`.
fn changes() -> Vec<ModelStep> {
    let (a, b, d, mode) = ("/a".to_owned(), "/b".to_owned(), "/d".to_owned(), ExistingTargetMode::Overwrite);
    let write = |mode| ModelStep::Write { path: "/a".to_owned(), content: "1".to_owned(), mode };
    vec![
        write(ExistingTargetMode::Overwrite),
        write(ExistingTargetMode::Append),
        ModelStep::Edit { path: a.clone(), old: "old".to_owned(), new: "newer".to_owned(), all: false },
        ModelStep::Delete { path: a.clone(), recursive: false },
        ModelStep::Delete { path: d.clone(), recursive: true },
        ModelStep::Rename { from: a.clone(), to: b.clone(), mode },
        ModelStep::Copy { from: a.clone(), to: b, mode },
        ModelStep::Copy { from: d, to: "/e".to_owned(), mode },
        // An upload: see `take`.
        ModelStep::Read { path: a, offset: 0, limit: 1 },
    ]
}

#[tokio::test]
async fn a_change_that_is_sent_again_is_counted_by_what_is_stored() {
    for change in changes() {
        let (files, meter, store) = replaying(QuotaLimits::new().max_bytes(1000));
        let write_all = async |texts: [&str; 3]| {
            for (path, text) in ["/a", "/b", "/d/f"].into_iter().zip(texts) {
                files.write_text(path, text).await.expect("written");
            }
        };
        write_all(["old", "b", "in d"]).await;
        take(&*files, &with_id(0), &change).await.expect("it is made");
        assert_eq!(tracked(&meter).await, stored(&store).await, "{change:?}");
        let text = "x".repeat(100);
        write_all([text.as_str(); 3]).await;
        let before = store.snapshot();
        take(&*files, &with_id(0), &change).await.expect("it has been made");
        assert!(before.diff(&store.snapshot()).is_empty(), "nothing is changed by {change:?}");
        let now = stored(&store).await;
        assert_eq!((tracked(&meter).await, added(&meter)), (now, now), "{change:?}");
    }
}

#[tokio::test]
async fn an_old_change_that_is_sent_again_makes_no_room() {
    let (files, meter, store) = replaying(QuotaLimits::new().max_bytes(100));
    let small = &changes()[0];
    files.create_text("/a", "").await.expect("room");
    take(&*files, &with_id(0), small).await.expect("room");
    for _ in 0..3 {
        files.write_text("/a", &"x".repeat(90)).await.expect("room");
        take(&*files, &with_id(0), small).await.expect("it has been made");
        let error = files.create_text("/b", &"x".repeat(20)).await.expect_err("110 bytes in all");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    }
    assert_eq!((tracked(&meter).await, stored(&store).await), ((1, 90), (1, 90)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_count_is_exact_where_earlier_steps_are_sent_again(steps in steps(), seed in any::<u64>()) {
        block_on(async {
            let (files, meter, store) = replaying(QuotaLimits::new().max_bytes(u64::MAX));
            let mut random = fastrand::Rng::with_seed(seed);
            for last in 0..steps.len() {
                for index in [last, random.usize(..=last)] {
                    // Many steps are refused, and those with another request for the id are a conflict.
                    let _ = take(&*files, &with_id(index), &steps[index]).await;
                    let now = stored(&store).await;
                    assert_eq!((tracked(&meter).await, added(&meter)), (now, now), "{:?}", steps[index]);
                }
            }
        });
    }
}
