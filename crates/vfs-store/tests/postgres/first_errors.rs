//! The errors that a new user meets first.

use std::time::Duration;

use vfs_core::{Error, ErrorKind};
use vfs_store::{PostgresConfig, PostgresStore, Precondition, Store};

use crate::lab::{Lab, at, connect, in_lab, key, patient, until_ok, value};

async fn refused(config: PostgresConfig, kind: ErrorKind, words: &[&str]) -> Error {
    let error = PostgresStore::open(config).await.expect_err("it cannot be opened");
    has(&error, kind, words);
    error
}

fn has(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error:?}");
    for word in words {
        assert!(error.message().contains(word), "'{word}' is not in: {error}");
    }
    let shown = format!("{error} {error:?} {}", error.for_model());
    assert!(!shown.contains("secret") && !shown.contains("wrong-password"), "{shown}");
}

fn url(lab: &Lab, change: impl FnOnce(&mut url::Url)) -> PostgresConfig {
    let mut url = url::Url::parse(&lab.url).expect("a URL");
    change(&mut url);
    patient(PostgresConfig::new(url.as_str()).expect("a URL").schema(&lab.schema))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_url_is_said() {
    in_lab(async |lab| {
        let unused =
            tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
        let nobody = PostgresConfig::new(&at(&lab.url, unused)).expect("a URL");
        refused(nobody, ErrorKind::Unavailable, &["no Postgres server answers at 127.0.0.1", "start it"]).await;

        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = silent.local_addr().expect("an address");
        let waits =
            PostgresConfig::new(&at(&lab.url, address)).expect("a URL").connect_timeout(Duration::from_millis(200));
        refused(waits, ErrorKind::Unavailable, &["did not answer for 200ms", "firewall"]).await;

        let socket = PostgresConfig::new("postgres:///db?host=/nowhere&user=ann").expect("a URL");
        refused(socket, ErrorKind::Unavailable, &["no Postgres server answers at /nowhere"]).await;

        let password = url(lab, |url| url.set_password(Some("wrong-password")).expect("a password"));
        refused(password, ErrorKind::PermissionDenied, &["does not accept the user 'vfs'"]).await;
        let without = url(lab, |url| url.set_password(None).expect("no password"));
        refused(without, ErrorKind::PermissionDenied, &["asks for a password", "postgres://user:password@host"]).await;
        let user = url(lab, |url| url.set_username("nobody").expect("a user"));
        refused(user, ErrorKind::PermissionDenied, &["does not accept the user 'nobody'"]).await;

        let database = url(lab, |url| url.set_path("/nothing"));
        refused(database, ErrorKind::InvalidArgument, &["no database 'nothing'", "createdb nothing"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_are_named() {
    in_lab(async |lab| {
        let user = format!("user_{}", lab.schema);
        lab.client.batch_execute(&format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'")).await.expect("a user");
        let theirs = || url(lab, |url| url.set_username(&user).expect("a user"));
        refused(theirs(), ErrorKind::PermissionDenied, &["GRANT CREATE ON DATABASE vfs TO user_"]).await;

        lab.client
            .batch_execute(&format!("CREATE SCHEMA {} AUTHORIZATION {user}", lab.schema))
            .await
            .expect("a schema");
        let store = PostgresStore::open(theirs()).await.expect("a schema that is there is enough");
        let _ = store.put(&key("/a"), value("x"), &Precondition::Absent).await.expect("it is put");
        lab.client
            .batch_execute(&format!(
                "REVOKE ALL ON SCHEMA {0} FROM {user}; ALTER SCHEMA {0} OWNER TO CURRENT_USER",
                lab.schema
            ))
            .await
            .expect("they are taken");
        drop(store);
        refused(theirs(), ErrorKind::PermissionDenied, &["may not make or use the schema"]).await;

        lab.client
            .batch_execute(&format!("DROP SCHEMA {} CASCADE; DROP OWNED BY {user}; DROP ROLE {user}", lab.schema))
            .await
            .expect("all is gone");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_hold_all_text_is_refused() {
    in_lab(async |lab| {
        let name = format!("latin_{}", lab.schema);
        let make = format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
        lab.client.batch_execute(&make).await.expect("a database");
        let config = url(lab, |url| url.set_path(&name));
        refused(config, ErrorKind::InvalidArgument, &["encoded in LATIN1", "createdb --encoding=UTF8"]).await;
        lab.client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.expect("it is dropped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_and_a_held_lock_are_busy() {
    in_lab(async |lab| {
        let short = Duration::from_millis(100);
        let named = PostgresConfig::new(&format!("{}?application_name={}", lab.url, lab.schema)).expect("a URL");
        let config = patient(named.schema(&lab.schema)).pool_size(2).pool_timeout(short);
        let store = PostgresStore::open(config).await.expect("it opens");
        let impatient = PostgresStore::open(lab.config().lock_timeout(short).retry_for(short)).await.expect("it opens");
        let _ = store.put(&key("/a"), value("x"), &Precondition::Absent).await.expect("it is put");

        let holder = connect(&lab.url).await;
        let lock = format!("BEGIN; SELECT FROM {}.namespaces FOR UPDATE", lab.schema);
        holder.batch_execute(&lock).await.expect("it is locked");
        let error = impatient.put(&key("/a"), value("y"), &Precondition::Any).await.expect_err("it is locked");
        has(&error, ErrorKind::Busy, &["others changed the same namespace"]);

        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.put(&key("/a"), value("y"), &Precondition::Any).await }
        });
        // Tests beside this one have statements that wait, too.
        let is_waiting = "SELECT count(*) FROM pg_stat_activity \
             WHERE application_name = $1 AND wait_event_type = 'Lock' AND query LIKE '%change(%'";
        while lab.client.query_one(is_waiting, &[&lab.schema]).await.expect("an answer").get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        // Whoever reads finds a connection, and waits for nobody.
        assert!(store.head(&key("/a")).await.expect("an answer").is_some());
        let error = store.put(&key("/b"), value("y"), &Precondition::Any).await.expect_err("no connection");
        has(&error, ErrorKind::Busy, &["connections of the Postgres store were in use for 100ms", "pool_size"]);
        holder.batch_execute("ROLLBACK").await.expect("it is free");
        let _ = waiting.await.expect("no panic").expect("it is put");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_is_a_timeout() {
    in_lab(async |lab| {
        let short = Duration::from_millis(100);
        lab.store().await;
        let config = lab.config().statement_timeout(short);
        // A busy server may need longer than this short time at first.
        let store = until_ok(async || PostgresStore::open(config.clone()).await).await;
        let holder = connect(&lab.url).await;
        holder.batch_execute(&format!("BEGIN; LOCK TABLE {}.files", lab.schema)).await.expect("it is locked");
        let error = store.head(&key("/a")).await.expect_err("it takes long");
        has(&error, ErrorKind::Timeout, &["did not finish within 100ms", "statement_timeout"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_shown_without_secrets() {
    in_lab(async |lab| {
        let store = lab.store().await;
        assert!(store.to_string().contains(&lab.schema), "{store}");
        assert!(!format!("{store} {store:?}").contains("secret"), "{store:?}");
    })
    .await;
}
