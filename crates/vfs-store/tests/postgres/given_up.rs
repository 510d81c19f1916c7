//! Operations whose callers give them up keep no connection busy, and nothing locked.

use tokio::task::JoinHandle;
use tokio::time::timeout;
use vfs_store::{Inspect, PostgresConfig, PostgresStore, Precondition, Store};

use crate::lab::{HANG_TIMEOUT, Lab, connect, in_lab, key, namespace, patient, value};

/// Waits until so many statements of the store wait for a lock.
async fn waiting(lab: &Lab, number: i64) {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let is_so = async {
        while lab.client.query_one(count, &[&lab.schema]).await.expect("an answer").get::<_, i64>(0) != number {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG_TIMEOUT, is_so).await.expect("the server stops what nobody waits for");
}

async fn give_up<T: Send + 'static>(lab: &Lab, store: &PostgresStore, operation: JoinHandle<T>) {
    waiting(lab, 1).await;
    operation.abort();
    assert!(operation.await.is_err_and(|ended| ended.is_cancelled()));
    // There is one connection only.
    let namespace = namespace();
    let position = store.as_changes().expect("it tells").last_sequence(&namespace);
    let position = timeout(HANG_TIMEOUT, position).await.expect("a connection that is free").expect("a position");
    assert_eq!(position.0, 1);
    waiting(lab, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_is_stopped_and_its_connection_is_free() {
    in_lab(async |lab| {
        let config = PostgresConfig::new(&format!("{}?application_name={}", lab.url, lab.schema)).expect("a URL");
        let store = PostgresStore::open(patient(config.schema(&lab.schema)).pool_size(1)).await.expect("it opens");
        let _ = store.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put");
        let holder = connect(&lab.url).await;
        holder.batch_execute(&format!("BEGIN; LOCK TABLE {}.files", lab.schema)).await.expect("it is locked");

        let same = || store.clone();
        let reading = same();
        give_up(lab, &store, tokio::spawn(async move { reading.head(&key("/a")).await })).await;
        let checking = same();
        give_up(lab, &store, tokio::spawn(async move { checking.check().await })).await;
        for content in ["2".to_owned(), "2".repeat(3 << 20)] {
            let changing = same();
            let change = async move { changing.put(&key("/a"), value(content), &Precondition::Any).await };
            give_up(lab, &store, tokio::spawn(change)).await;
        }

        holder.batch_execute("ROLLBACK").await.expect("it is free");
        let found = store.get(&key("/a"), None).await.expect("it is got").expect("it is there");
        assert_eq!(found.content, "1");
        let _ = store.put(&key("/a"), value("3"), &Precondition::Any).await.expect("it is put");
        assert_eq!(store.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_soon_keeps_its_connection() {
    in_lab(async |lab| {
        let store = PostgresStore::open(lab.config().pool_size(1)).await.expect("it opens");
        let _ = store.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put");
        for round in 0..50 {
            let reading = store.clone();
            let read = tokio::spawn(async move { reading.head(&key("/a")).await });
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            read.abort();
            drop(read.await);
            assert!(
                timeout(HANG_TIMEOUT, store.head(&key("/a"))).await.expect("in time").expect("an answer").is_some()
            );
        }
    })
    .await;
}
