//! Connections that are cut anywhere lose no acknowledged change, and make none twice.

use std::time::Duration;

use vfs_core::ErrorKind;
use vfs_store::{Inspect, ListRequest, PostgresConfig, PostgresStore, Precondition, PutOutcome, Store};

use crate::lab::{Lab, at, in_lab, key, namespace, path, patient, until_ok, value};
use crate::proxy::Proxy;

const CUTS: usize = 200;

async fn through_proxy(lab: &Lab) -> (Proxy, PostgresConfig) {
    let server: tokio_postgres::Config = lab.url.parse().expect("a URL");
    let [tokio_postgres::config::Host::Tcp(host)] = server.get_hosts() else { panic!("the server is not on TCP") };
    let address = tokio::net::lookup_host((host.as_str(), server.get_ports()[0])).await.expect("an address").next();
    let proxy = Proxy::new(address.expect("an address")).await;
    let config = PostgresConfig::new(&at(&lab.url, proxy.address)).expect("a URL").schema(&lab.schema);
    (proxy, patient(config))
}

/// Adds one to the number in a file: made once for each time that it comes back.
async fn count(store: &PostgresStore, text: &str) -> u64 {
    let key = key(text);
    loop {
        let found = store.get(&key, None).await.expect("it is got");
        let number = found
            .as_ref()
            .map_or(0, |found| std::str::from_utf8(&found.content).expect("text").parse::<u64>().expect("a number"));
        let expected = found.map_or(Precondition::Absent, |found| Precondition::Version(found.stored.version));
        let next = number + 1;
        if let PutOutcome::Applied(_) = store.put(&key, value(next.to_string()), &expected).await.expect("it is put") {
            return next;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_cuts_lose_nothing_and_repeat_nothing() {
    in_lab(async |lab| {
        let (proxy, config) = through_proxy(lab).await;
        let store =
            PostgresStore::open(config.pool_size(3).tls(vfs_store::PostgresTls::Disable)).await.expect("it opens");
        let mut rng = fastrand::Rng::new();
        let (mut created, mut counted) = (0, 0);
        for cut in 0..CUTS {
            // A change takes some 1,500 bytes once its connection is there, and a new connection some 5,000 more.
            proxy.cut_after(rng.i64(1..8_000));
            while proxy.is_armed() {
                let (create, number) = (key(&format!("/created/{created}")), count(&store, "/number"));
                let content = value(format!("{cut}"));
                let (made, number) = futures::join!(store.put(&create, content, &Precondition::Absent), number);
                // Nobody else makes it: were it refused, it would have been made twice.
                assert!(matches!(made, Ok(PutOutcome::Applied(_))), "{made:?}");
                created += 1;
                counted += 1;
                assert_eq!(number, counted);
            }
        }
        let request = ListRequest::all(path("/created")).limit(10_000);
        assert_eq!(store.list(&namespace(), &request).await.expect("a page").entries.len(), created);
        let changes = store.as_changes().expect("it tells").last_sequence(&namespace()).await.expect("a position");
        assert_eq!(changes.0, created as u64 + counted, "each was made once");
        assert_eq!(store.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_contents_survive_cuts() {
    in_lab(async |lab| {
        let (proxy, config) = through_proxy(lab).await;
        let store =
            PostgresStore::open(config.pool_size(2).tls(vfs_store::PostgresTls::Disable)).await.expect("it opens");
        for round in 0..12_u8 {
            proxy.cut_after(fastrand::i64(1..3 << 20));
            let content = vec![round; (2 << 20) + 5];
            let put = store.put(&key(&format!("/{round}")), value(content.clone()), &Precondition::Absent).await;
            assert!(matches!(put, Ok(PutOutcome::Applied(_))), "{put:?}");
            let found = store.get(&key(&format!("/{round}")), None).await.expect("it is got").expect("it is there");
            assert!(found.content == content);
        }
        assert_eq!(store.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_left() {
    in_lab(async |lab| {
        let (proxy, config) = through_proxy(lab).await;
        let _ = lab.store().await.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put");
        let short = Duration::from_millis(200);
        let config = config.statement_timeout(short).connect_timeout(short).retry_for(Duration::ZERO).pool_size(1);
        // A busy server may need longer than these short times at first.
        let store = until_ok(async || PostgresStore::open(config.clone()).await).await;
        let is_there = || until_ok(async || store.head(&key("/a")).await);
        assert!(is_there().await.is_some());
        proxy.silence(true);
        let error = store.head(&key("/a")).await.expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        let error = store.head(&key("/a")).await.expect_err("no greeting");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        proxy.silence(false);
        assert!(is_there().await.is_some(), "by a new connection");
    })
    .await;
}

/// After a crash the server gives the numbers of transactions again that it lost. Here a transaction whose commit it never got
/// has the number of another one, which was committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_not_taken_for_another_with_its_number() {
    in_lab(async |lab| {
        let _ = lab.store().await.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put");
        let used = "SELECT xmin::text FROM files";
        let used: String = lab.client.query_one(used, &[]).await.expect("an answer").get(0);
        let renumber = format!(
            "ALTER FUNCTION change RENAME TO honest_change; \
             CREATE FUNCTION change(text, smallint[], text[], text[], smallint[], text[], text[], text[], bigint[], bytea[], \
                 boolean[], bigint[], text[], timestamptz[], timestamptz[], text, bytea) \
             RETURNS TABLE (is_done boolean, at_path text, at_size bigint, at_version text, at_created timestamptz, \
                 at_modified timestamptz, transaction text) \
             LANGUAGE sql AS $$ SELECT is_done, at_path, at_size, at_version, at_created, at_modified, \
                 CASE WHEN transaction IS NOT NULL THEN '{used}' END \
                 FROM honest_change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) $$"
        );
        lab.client.batch_execute(&renumber).await.expect("it is renumbered");

        let (proxy, config) = through_proxy(lab).await;
        let store = PostgresStore::open(config.tls(vfs_store::PostgresTls::Disable)).await.expect("it opens");
        proxy.lose_commit();
        let put = store.put(&key("/b"), value("2"), &Precondition::Absent).await;
        assert!(matches!(put, Ok(PutOutcome::Applied(_))), "{put:?}");
        assert!(store.head(&key("/b")).await.expect("an answer").is_some(), "it was acknowledged");
        // Nor where the other one changed the same file.
        proxy.lose_commit();
        let put = store.put(&key("/a"), value("3"), &Precondition::Any).await;
        assert!(matches!(put, Ok(PutOutcome::Applied(_))), "{put:?}");
        let found = store.get(&key("/a"), None).await.expect("an answer").expect("it is there");
        assert_eq!(found.content, "3", "it was acknowledged");
        let changes = store.as_changes().expect("it tells").last_sequence(&namespace()).await.expect("a position");
        assert_eq!(changes.0, 3);
    })
    .await;
}
