//! A server that stops and starts again while it is in use.

use std::path::Path;

use tokio::process::Command;
use vfs_store::{Inspect, ListRequest, PostgresConfig, PostgresStore, Precondition, PutOutcome, Store};

use crate::lab::{key, namespace, path, patient, server, value};

/// What the script that runs servers prints.
async fn run(arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/postgres");
    let output = Command::new(script).args(arguments).output().await.expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_loses_nothing() {
    if server().is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("server");
    let place = place.to_str().expect("text");
    let url = run(&["start", place, &vfs_testkit::server_port().to_string()]).await;
    let config = patient(PostgresConfig::new(&url).expect("a URL")).pool_size(4);
    let store = PostgresStore::open(config).await.expect("it opens");
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let mut made = 0;
            while !*stopped.borrow_and_update() {
                let put = store.put(&key(&format!("/{made}")), value("x"), &Precondition::Absent).await;
                assert!(matches!(put, Ok(PutOutcome::Applied(_))), "{put:?}");
                made += 1;
            }
            made
        }
    });
    // In the second, nobody has time to say good-bye.
    for mode in ["fast", "immediate"] {
        run(&["restart", place, mode]).await;
        let _ = store.put(&key(&format!("/{mode}")), value("x"), &Precondition::Absent).await.expect("it is back");
    }
    stop.send(true).expect("it writes");
    let made: usize = writer.await.expect("no panic");
    let listed = store.list(&namespace(), &ListRequest::all(path("/")).limit(10_000)).await.expect("a page");
    assert_eq!(listed.entries.len().min(9_999), (made + 2).min(9_999));
    assert_eq!(store.check().await.expect("it can be checked").problems, []);
    run(&["stop", place]).await;
}
