//! Several handles, stores and futures on one file.

use std::time::Duration;

use futures::future::join_all;

use super::*;
use crate::store::ChangeRecord;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_file_can_be_made_by_many_at_once() {
    let directory = directory();
    let opening = (0..24).map(|_| tokio::spawn(SqliteStore::open(config(&directory))));
    for store in join_all(opening).await {
        let store = store.expect("it ends").expect("it opens");
        put(&store, "/a", "x").await;
    }
    assert_clean(&open(&directory).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_expect_one_version_one_wins() {
    let directory = directory();
    let stores = [open(&directory).await, open(&directory).await, open(&directory).await];
    let first = put(&stores[0], "/a", "first").await;
    let racing = (0..60).map(|number| {
        let (store, expected) = (stores[number % 3].clone(), Precondition::Version(first.version.clone()));
        tokio::spawn(async move { store.put(&key("/a"), value(format!("racer {number}")), &expected).await })
    });
    let outcomes = join_all(racing).await.into_iter().map(|outcome| outcome.expect("it ends").expect("it answers"));
    assert_eq!(outcomes.filter(|outcome| matches!(outcome, PutOutcome::Applied(_))).count(), 1);
    assert_eq!(stores[1].last_sequence(&space("org/user")).await.expect("it reads"), Sequence(2));
}

#[tokio::test]
async fn a_change_of_another_store_wakes_a_waiting_caller() {
    let directory = directory();
    let (one, other) = (open(&directory).await, open(&directory).await);
    let namespace = space("org/user");
    for number in 0..3 {
        let seen = one.last_sequence(&namespace).await.expect("it reads");
        let (changed, _) = tokio::join!(one.changed(&namespace, seen), put(&other, "/a", format!("{number}")));
        changed.expect("it wakes");
        let ChangePage::Changes { changes, .. } = one.since(&namespace, seen, 10).await.expect("it reads") else {
            panic!("expired")
        };
        assert!(matches!(&changes[..], [(_, ChangeRecord::Created(..) | ChangeRecord::Changed(..))]), "{changes:?}");
    }
}

#[tokio::test]
async fn a_change_of_the_same_store_wakes_a_waiting_caller() {
    let store = memory().await;
    let namespace = space("org/user");
    let waiting = store.changed(&namespace, Sequence(0));
    tokio::pin!(waiting);
    assert!(futures::poll!(&mut waiting).is_pending());
    put(&store, "/a", "x").await;
    waiting.await.expect("it wakes");
    store.changed(&namespace, Sequence(0)).await.expect("it returns at once");
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_no_connection_and_leaves_all_or_nothing() {
    let directory = directory();
    let store = SqliteStore::open(config(&directory).readers(1)).await.expect("it opens");
    let namespace = space("org/user");
    for number in 0..100 {
        let at = key(&format!("/{number}"));
        let writes =
            vec![Write::Put(at.path.clone(), value("x")), Write::Put(path("/last"), value(format!("{number}")))];
        let mut writing = store.batch(&namespace, &[], writes);
        if number == 0 {
            // Later batches need not be applied: a batch that has not started when its future is dropped never runs.
            assert!(matches!(writing.await.expect("it writes"), BatchOutcome::Applied(_)));
            continue;
        }
        // Each future is dropped a little later than the previous one.
        for _ in 0..number % 5 {
            if futures::poll!(&mut writing).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(writing);
        let mut reading = store.get(&at, None);
        let _ = futures::poll!(&mut reading);
        drop(reading);
        let mut checking = Box::pin(store.check());
        let _ = futures::poll!(&mut checking);
        drop(checking);
    }
    tokio::time::timeout(Duration::from_secs(60), put(&store, "/end", "x")).await.expect("the writer is there");
    let files = store.stats().await.expect("it counts").files;
    let position = store.last_sequence(&namespace).await.expect("it reads").0;
    // Each applied batch created one file, and changed a file that the first batch created.
    assert_eq!(position, 2 * (files - 2) + 1, "{files} files");
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_future_that_is_not_polled_does_not_block_other_callers() {
    // A store in memory has only one connection.
    let store = memory().await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let pool = Arc::clone(&store.inner.writer);
    let mut blocking = Box::pin(pool.run(move |_| {
        released.recv().expect("it is released");
        Ok(())
    }));
    assert!(futures::poll!(&mut blocking).is_pending());
    let at = key("/a");
    let mut reads: Vec<_> = (0..3).map(|_| store.get(&at, None)).collect();
    let mut writes: Vec<_> = (0..3).map(|_| store.put(&at, value("x"), &Precondition::Any)).collect();
    for read in &mut reads {
        assert!(futures::poll!(read).is_pending());
    }
    for write in &mut writes {
        assert!(futures::poll!(write).is_pending());
    }
    release.send(()).expect("the connection is in use");
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, put(&store, "/b", "x")).await.expect("it has its turn");
    tokio::time::timeout(limit, store.head(&key("/b"))).await.expect("it has its turn").expect("it reads");
    blocking.await.expect("it ends");
    for write in writes {
        assert!(matches!(write.await.expect("it writes"), PutOutcome::Applied(_)));
    }
}

#[tokio::test]
async fn an_acknowledged_change_is_there_when_the_file_is_opened_again() {
    let directory = directory();
    let stored = put(&open(&directory).await, "/a", "text").await;
    let store = open(&directory).await;
    assert_eq!(store.head(&key("/a")).await.expect("it reads"), Some(stored));
    assert_eq!(store.namespaces().await.expect("it lists"), [space("org/user")]);
}
