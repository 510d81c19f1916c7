//! Contents in parts, and records of operations, that nobody came back for.

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use vfs_core::ErrorKind;
use vfs_store::{Condition, IdempotentOperations, Inspect, OperationRecord, PostgresStore, Staging, Store, Write};

use crate::lab::{in_lab, key, value};

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_content_is_removed_when_another_is_begun() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let now = Utc::now();
        let abandoned = store.begin(&key("/a"), now, now).await.expect("it begins");
        store.append(&abandoned, 0, Bytes::from(vec![7; 3 << 20])).await.expect("it is stored");
        lab.client.batch_execute("UPDATE staged SET touched_at = now() - interval '2 days'").await.expect("it is old");
        assert!(store.check().await.expect("it checks").problems.is_empty());
        store.begin(&key("/b"), now, now).await.expect("it begins");
        let chunks: i64 = lab.client.query_one("SELECT count(*) FROM chunks", &[]).await.expect("an answer").get(0);
        assert_eq!(chunks, 0);
        let error = store.append(&abandoned, 3 << 20, Bytes::from_static(b"x")).await.expect_err("it is gone");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_abandoned_content_is_removed_over_several_beginnings_and_parts() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let now = Utc::now();
        let abandoned = store.begin(&key("/a"), now, now).await.expect("it begins");
        lab.client
            .batch_execute(
                "INSERT INTO chunks (namespace, content, part, is_text, data) \
                 SELECT namespace, content, generate_series(0, 299), false, '' FROM staged; \
                 UPDATE staged SET touched_at = now() - interval '2 days'",
            )
            .await
            .expect("it is old");
        let count = async |table: &str| -> i64 {
            let counted = lab.client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await;
            counted.expect("an answer").get(0)
        };
        let second = store.begin(&key("/b"), now, now).await.expect("it begins");
        assert_eq!((count("chunks").await, count("staged").await), (44, 2));
        let error = store.append(&abandoned, 0, Bytes::from_static(b"x")).await.expect_err("a part of it is removed");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        store.append(&second, 0, Bytes::from_static(b"x")).await.expect("it is stored");
        assert_eq!((count("chunks").await, count("staged").await), (44 - 16 + 1, 2));
        store.begin(&key("/c"), now, now).await.expect("it begins");
        assert_eq!((count("chunks").await, count("staged").await), (1, 2));
        let error = store.append(&abandoned, 0, Bytes::from_static(b"x")).await.expect_err("it was removed");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removals_of_one_abandoned_content_at_once_leave_no_chunk_of_it() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let now = Utc::now();
        store.begin(&key("/a"), now, now).await.expect("it begins");
        lab.client
            .batch_execute(
                "INSERT INTO chunks (namespace, content, part, is_text, data) \
                 SELECT namespace, content, generate_series(0, 19999), false, '' FROM staged; \
                 UPDATE staged SET touched_at = now() - interval '2 days'",
            )
            .await
            .expect("it is old");
        let begin = async |name: usize| store.begin(&key(&format!("/{name}")), now, now).await.map(drop);
        let count = async |sql: &str| -> i64 { lab.client.query_one(sql, &[]).await.expect("an answer").get(0) };
        let abandoned = "SELECT count(*) FROM staged WHERE touched_at < now() - interval '1 day'";
        // At least one of the concurrent removals of a round locks the row and removes 256 chunks.
        let mut rounds = 0;
        while count(abandoned).await > 0 {
            assert!(rounds < 200, "the abandoned content is not removed after {rounds} rounds");
            let begun = futures::future::join_all((0..4).map(|name| begin(4 * rounds + name))).await;
            begun.into_iter().collect::<Result<(), _>>().expect("all begin");
            rounds += 1;
        }
        assert_eq!(count("SELECT count(*) FROM chunks").await, 0);
        let problems = store.check().await.expect("it checks").problems;
        assert!(problems.is_empty(), "{problems:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_stored_although_an_abandoned_content_cannot_be_removed() {
    in_lab(async |lab| {
        // The tables are created without the short timeout, which a busy server could exceed.
        lab.store().await;
        let config = lab.config().lock_timeout(Duration::from_millis(100));
        let store = PostgresStore::open(config).await.expect("it opens");
        let now = Utc::now();
        let abandoned = store.begin(&key("/a"), now, now).await.expect("it begins");
        store.append(&abandoned, 0, Bytes::from_static(b"a")).await.expect("it is stored");
        lab.client.batch_execute("UPDATE staged SET touched_at = now() - interval '2 days'").await.expect("it is old");
        lab.client.batch_execute("BEGIN; SELECT part FROM chunks FOR UPDATE").await.expect("its chunk is locked");
        let chunks = async || -> i64 {
            lab.client.query_one("SELECT count(*) FROM chunks", &[]).await.expect("an answer").get(0)
        };
        let other = store.begin(&key("/b"), now, now).await.expect("it begins");
        store.append(&other, 0, Bytes::from_static(b"b")).await.expect("it is stored");
        assert_eq!(chunks().await, 2);
        lab.client.batch_execute("ROLLBACK").await.expect("the lock is released");
        // The server sends the error of a removal before it releases the locks of its transaction, which the next one would skip.
        lab.client.batch_execute("SELECT token FROM staged FOR UPDATE").await.expect("all locks are released");
        store.begin(&key("/c"), now, now).await.expect("it begins");
        assert_eq!(chunks().await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_record_is_removed_with_a_new_one_and_a_refused_batch_leaves_none() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let namespace = key("/a").namespace;
        let record = |key: &str| OperationRecord { key: key.into(), request: "r".into(), result: "{}".into() };
        let put = |text: &str| -> Vec<Write> { vec![Write::Put(key("/a").path, value(text.to_owned()))] };
        let made = store.batch_once(&namespace, &record("old"), &[], put("1")).await.expect("it is made");
        assert!(made.is_some());
        let again = store.batch_once(&namespace, &record("old"), &[], put("2")).await.expect("it is known");
        assert!(again.is_none());
        lab.client.batch_execute("UPDATE operations SET made_at = now() - interval '2 days'").await.expect("it is old");
        let missing = [Condition::At(key("/a").path, vfs_store::Precondition::Absent)];
        store.batch_once(&namespace, &record("refused"), &missing, put("3")).await.expect("it is refused");
        assert!(store.find(&namespace, "refused").await.expect("it looks").is_none());
        store.batch_once(&namespace, &record("new"), &[], put("4")).await.expect("it is made");
        assert!(store.find(&namespace, "old").await.expect("it looks").is_none());
        assert!(store.find(&namespace, "new").await.expect("it looks").is_some());
        let read = store.get(&key("/a"), None).await.expect("it reads").expect("it is there");
        assert_eq!(read.content, "4");
    })
    .await;
}
