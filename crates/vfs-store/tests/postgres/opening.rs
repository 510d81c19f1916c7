//! Opening: tables that are missing, of others, or newer, and those that another process makes.

use std::time::Duration;

use futures::future::join_all;
use vfs_core::ErrorKind;
use vfs_store::{Inspect, PostgresConfig, PostgresStore, PostgresTls, Precondition, Store};

use crate::lab::{connect, in_lab, key, patient, value};

#[tokio::test(flavor = "multi_thread")]
async fn eight_open_at_once() {
    in_lab(async |lab| {
        let tasks = (0..8).map(|_| tokio::spawn(PostgresStore::open(lab.config())));
        let stores: Vec<_> =
            join_all(tasks).await.into_iter().map(|open| open.expect("no panic").expect("it opens")).collect();
        for (number, store) in stores.iter().enumerate() {
            assert!(store.as_search().is_some());
            let _ = store.put(&key(&format!("/{number}")), value("x"), &Precondition::Absent).await.expect("it is put");
        }
        let versions = "SELECT version FROM schema_version ORDER BY version";
        let versions = lab.client.query(versions, &[]).await.expect("an answer");
        assert_eq!(versions.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(lab.store().await.stats().await.expect("it is counted").files, 8);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused() {
    in_lab(async |lab| {
        lab.store().await;
        lab.client.batch_execute("INSERT INTO schema_version (version) VALUES (99)").await.expect("it is made");
        let error = PostgresStore::open(lab.config()).await.expect_err("too new");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("newer program"), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_others_are_left_alone() {
    in_lab(async |lab| {
        let theirs = format!("CREATE SCHEMA {0}; CREATE TABLE {0}.files (id integer)", lab.schema);
        lab.client.batch_execute(&theirs).await.expect("it is made");
        let error = PostgresStore::open(lab.config()).await.expect_err("not ours");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("a schema of its own"), "{error}");
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
        let tables: i64 = lab.client.query_one(tables, &[&lab.schema]).await.expect("an answer").get(0);
        assert_eq!(tables, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_as_asked() {
    in_lab(async |lab| {
        let authority =
            lab.client.query_one("SELECT pg_read_file('authority.pem')", &[]).await.expect("as the script has it");
        let authority: String = authority.get(0);
        let encrypted =
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1 AND ssl";
        for (mode, expected) in [(PostgresTls::Disable, 0), (PostgresTls::Prefer, 1), (PostgresTls::Require, 1)] {
            let name = format!("{}_{mode:?}", lab.schema);
            let url = format!("{}?application_name={name}", lab.url);
            let config = patient(PostgresConfig::new(&url).expect("a URL").schema(&lab.schema)).tls(mode);
            let _store = PostgresStore::open(config).await.expect("it opens");
            let found: i64 = lab.client.query_one(encrypted, &[&name]).await.expect("an answer").get(0);
            assert_eq!(found, expected, "{mode:?}");
        }
        let verified = lab.config().tls(PostgresTls::VerifyFull);
        let error = PostgresStore::open(verified.clone()).await.expect_err("nobody knows this authority");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("sslmode"), "{error}");
        PostgresStore::open(verified.clone().root_certificates(authority)).await.expect("it opens");
        let error = PostgresStore::open(verified.root_certificates("no PEM")).await.expect_err("no certificates");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_another_process_never_finishes_are_not_waited_for_without_end() {
    in_lab(async |lab| {
        let maker = connect(&lab.url).await;
        // What every process does first that makes tables.
        maker.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(x'76667373'::bigint)").await.expect("its turn");
        let hasty = lab.config().prepare_timeout(Duration::from_millis(300));
        let error = PostgresStore::open(hasty).await.expect_err("it is not its turn");
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.message().contains("another process") && error.message().contains("within 300ms"), "{error}");

        let patient = tokio::spawn(PostgresStore::open(lab.config()));
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        while lab.client.query_one(waits, &[]).await.expect("an answer").get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        maker.batch_execute("ROLLBACK").await.expect("its turn is over");
        patient.await.expect("no panic").expect("it opens");
    })
    .await;
}
