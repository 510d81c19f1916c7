//! Many who change one value at the same time.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::join_all;
use tokio::sync::Barrier;
use vfs_store::{BucketStore, Precondition, PutOutcome, Store};

use crate::{content, key, put, value};

/// How many there are, and how often they meet.
const WRITERS: usize = 12;
const ROUNDS: usize = 5;

macro_rules! races {
    ($($test:ident),+ $(,)?) => {
        mod in_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                let store = crate::servers::memory();
                super::$test(vec![store; super::WRITERS]).await;
            })+
        }

        mod moto {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                if let Some(bucket) = crate::servers::moto().await {
                    let mut stores = Vec::new();
                    for _ in 0..super::WRITERS {
                        stores.push(bucket.store().await);
                    }
                    super::$test(stores).await;
                }
            })+
        }
    };
}

races!(
    of_those_who_expect_one_version_one_is_done,
    of_those_who_expect_nothing_one_is_done,
    of_those_who_remove_one_version_one_is_done,
    those_who_expect_anything_are_all_done,
    every_addition_is_in_the_file,
);

/// Lets each store do something at the same moment.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    stores: &[BucketStore],
    act: impl Fn(usize, BucketStore) -> F,
) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(stores.len()));
    let acts = stores.iter().enumerate().map(|(number, store)| {
        let (barrier, act) = (Arc::clone(&barrier), act(number, store.clone()));
        tokio::spawn(async move {
            barrier.wait().await;
            act.await
        })
    });
    join_all(acts.collect::<Vec<_>>()).await.into_iter().map(|done| done.expect("no panic")).collect()
}

fn count_done(outcomes: &[PutOutcome]) -> usize {
    outcomes.iter().filter(|outcome| matches!(outcome, PutOutcome::Applied(_))).count()
}

async fn of_those_who_expect_one_version_one_is_done(stores: Vec<BucketStore>) {
    let mut version = put(&stores[0], &key("/a"), "start").await.version;
    for round in 0..ROUNDS {
        let expected = Precondition::Version(version.clone());
        let outcomes =
            at_once(&stores, |number, store| {
                let expected = expected.clone();
                async move {
                    store.put(&key("/a"), value(&format!("{round} {number}")), &expected).await.expect("an answer")
                }
            })
            .await;
        assert_eq!(count_done(&outcomes), 1, "{outcomes:?}");
        let winner = outcomes.iter().position(|outcome| matches!(outcome, PutOutcome::Applied(_))).expect("a winner");
        assert_eq!(content(&stores[0], &key("/a")).await, Some(format!("{round} {winner}")));
        version = stores[0].head(&key("/a")).await.expect("an answer").expect("a value").version;
    }
}

async fn of_those_who_expect_nothing_one_is_done(stores: Vec<BucketStore>) {
    for round in 0..ROUNDS {
        let name = format!("/{round}");
        let outcomes = at_once(&stores, |number, store| {
            let name = name.clone();
            async move {
                store.put(&key(&name), value(&number.to_string()), &Precondition::Absent).await.expect("an answer")
            }
        })
        .await;
        assert_eq!(count_done(&outcomes), 1, "{outcomes:?}");
    }
}

async fn of_those_who_remove_one_version_one_is_done(stores: Vec<BucketStore>) {
    for round in 0..ROUNDS {
        let version = put(&stores[0], &key("/a"), &round.to_string()).await.version;
        let expected = Precondition::Version(version);
        let outcomes = at_once(&stores, |number, store| {
            let expected = expected.clone();
            async move {
                match number % 2 {
                    0 => store.delete(&key("/a"), &expected).await,
                    _ => store.put(&key("/a"), value(&format!("{round} {number}")), &expected).await,
                }
                .expect("an answer")
            }
        })
        .await;
        assert_eq!(count_done(&outcomes), 1, "{outcomes:?}");
    }
}

async fn those_who_expect_anything_are_all_done(stores: Vec<BucketStore>) {
    let outcomes = at_once(&stores, |number, store| async move {
        store.put(&key("/a"), value(&number.to_string()), &Precondition::Any).await.expect("an answer")
    })
    .await;
    assert_eq!(count_done(&outcomes), WRITERS, "{outcomes:?}");
}

async fn every_addition_is_in_the_file(stores: Vec<BucketStore>) {
    put(&stores[0], &key("/log"), "").await;
    at_once(&stores, |number, store| async move {
        for line in 0..ROUNDS {
            loop {
                let now = store.get(&key("/log"), None).await.expect("an answer").expect("a value");
                let text = String::from_utf8(now.content.to_vec()).expect("text") + &format!("{number}.{line}\n");
                let expected = Precondition::Version(now.stored.version);
                if let PutOutcome::Applied(_) =
                    store.put(&key("/log"), value(&text), &expected).await.expect("an answer")
                {
                    break;
                }
            }
        }
    })
    .await;
    let text = content(&stores[0], &key("/log")).await.expect("a value");
    let lines: HashSet<&str> = text.lines().collect();
    assert_eq!((lines.len(), text.lines().count()), (WRITERS * ROUNDS, WRITERS * ROUNDS));
}
