//! What others do to the tables is found.

use vfs_core::ErrorKind;
use vfs_store::{Inspect, Precondition, Store};

use crate::lab::{in_lab, key, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_check_finds_what_is_wrong() {
    in_lab(async |lab| {
        let store = lab.store().await;
        for (harm, found) in [
            ("UPDATE chunks SET data = 'hallo'", "not that of its version"),
            ("UPDATE chunks SET data = 'hell'", "not as long"),
            ("DELETE FROM chunks", "not as long"),
            ("UPDATE chunks SET part = 1", "not in the chunks"),
            ("UPDATE chunks SET is_text = false", "a search"),
            ("UPDATE files SET namespace = 999", "cannot be named"),
            ("UPDATE files SET name = '.'", "cannot be named"),
            ("DELETE FROM files", "belong to no file"),
            ("DELETE FROM changes", "changes"),
            ("UPDATE namespaces SET sequence = 7", "changes"),
        ] {
            lab.client.batch_execute("TRUNCATE files, chunks, changes, namespaces").await.expect("an empty store");
            let _ = store.put(&key("/a"), value("hello"), &Precondition::Absent).await.expect("it is put");
            assert_eq!(store.check().await.expect("it can be checked").problems, [], "{harm}");
            lab.client.batch_execute(harm).await.expect("it is done");
            let problems = store.check().await.expect("it can be checked").problems;
            assert!(problems.iter().any(|problem| problem.message.contains(found)), "{harm}: {problems:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_content_is_an_error() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let _ = store.put(&key("/a"), value(vec![1; 3 << 20]), &Precondition::Absent).await.expect("it is put");
        lab.client.batch_execute("DELETE FROM chunks WHERE part = 1").await.expect("it is done");
        let error = store.get(&key("/a"), None).await.expect_err("half of it");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/a")));
        let beginning = store.get(&key("/a"), Some(0..10)).await.expect("it is got").expect("it is there");
        assert_eq!(beginning.content.as_ref(), [1; 10]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_gone_is_an_error_that_says_so() {
    in_lab(async |lab| {
        let store = lab.store().await;
        lab.client.batch_execute(&format!("DROP SCHEMA {} CASCADE", lab.schema)).await.expect("it is dropped");
        let error = store.head(&key("/a")).await.expect_err("no table");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let error = store.put(&key("/a"), value("x"), &Precondition::Any).await.expect_err("no table");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    })
    .await;
}
