//! A server behind a pooler in transaction mode, whose URL is in `VFS_TEST_PGBOUNCER`; `.ci/pgbouncer` starts one.

use bytes::Bytes;
use futures::future::join_all;
use vfs_core::{CaseMode, ErrorKind};
use vfs_store::{
    BatchOutcome, BatchStore as _, ChangePage, Condition, Inspect as _, ListRequest, PostgresConfig, PostgresStore,
    Precondition, PutOutcome, Search as _, Store as _, StoreChangeLog as _, TextQuery, Write,
};

use crate::lab::{HANG_TIMEOUT, Lab, in_lab, key, namespace, path, patient, value};

#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn pooler() -> Option<String> {
    let url = std::env::var("VFS_TEST_PGBOUNCER").ok();
    if url.is_none() {
        eprintln!("skipped: VFS_TEST_PGBOUNCER names no pooler");
    }
    url
}

fn config(url: &str, lab: &Lab) -> PostgresConfig {
    patient(PostgresConfig::new(url).expect("a URL").schema(&lab.schema))
}

async fn open(config: PostgresConfig) -> PostgresStore {
    PostgresStore::open(config).await.expect("it opens")
}

/// More transactions at once than the pooler has connections, so that those of one store are on several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_change_one_file_and_none_is_lost() {
    let Some(url) = pooler() else { return };
    in_lab(async |lab| {
        let stores = join_all((0..4).map(|_| open(config(&url, lab)))).await;
        let direct = lab.store().await;
        let _ = direct.put(&key("/count"), value("0"), &Precondition::Absent).await.expect("it is put");
        let add = async |store: &PostgresStore| loop {
            let found = store.get(&key("/count"), None).await.expect("it is read").expect("it is there");
            let count: u32 = std::str::from_utf8(&found.content).expect("text").parse().expect("a number");
            let expected = Precondition::Version(found.stored.version);
            let outcome =
                store.put(&key("/count"), value((count + 1).to_string()), &expected).await.expect("an answer");
            if matches!(outcome, PutOutcome::Applied(_)) {
                return;
            }
        };
        let all = stores.iter().chain([&direct]);
        join_all(all.flat_map(|store| (0..10).map(move |_| add(store)))).await;
        let found = direct.get(&key("/count"), None).await.expect("it is read").expect("it is there");
        assert_eq!(found.content, "50");
        assert_eq!(direct.check().await.expect("a check").problems, []);
    })
    .await;
}

#[tokio::test]
async fn large_contents_batches_listings_and_searches_are_those_of_a_session() {
    let Some(url) = pooler() else { return };
    in_lab(async |lab| {
        let (pooled, direct) = (open(config(&url, lab)).await, lab.store().await);
        let large = Bytes::from((0..40 << 20).map(|at: u32| (at % 251) as u8).collect::<Vec<_>>());
        let put = pooled.put(&key("/large"), value(large.clone()), &Precondition::Absent).await.expect("it is put");
        assert!(matches!(put, PutOutcome::Applied(_)));
        let refused = pooled.put(&key("/large"), value(large.clone()), &Precondition::Absent).await.expect("an answer");
        assert!(matches!(refused, PutOutcome::PreconditionFailed(Some(_))), "{refused:?}");
        let writes = (0..100).map(|n| Write::Put(path(&format!("/d/{n}")), value(format!("text {n}\n")))).collect();
        let made = pooled.batch(&namespace(), &[Condition::NothingBelow(path("/d"))], writes).await.expect("an answer");
        assert!(matches!(made, BatchOutcome::Applied(_)), "{made:?}");

        for range in [None, Some((5 << 20) - 3..(7 << 20) + 2)] {
            let found = pooled.get(&key("/large"), range.clone()).await.expect("it is read").expect("it is there");
            let whole = 0..large.len() as u64;
            let range = range.unwrap_or(whole);
            assert!(found.content == large[range.start as usize..range.end as usize]);
        }
        for request in
            [ListRequest::all(path("/")), ListRequest::level(path("/")), ListRequest::level(path("/d")).limit(7)]
        {
            let (one, other) = (pooled.list(&namespace(), &request).await, direct.list(&namespace(), &request).await);
            let (one, other) = (one.expect("a page"), other.expect("a page"));
            assert_eq!((one.entries, one.directories, one.next), (other.entries, other.directories, other.next));
        }
        let needles = TextQuery::new(vec!["text 42".into()], CaseMode::Sensitive);
        let found = pooled.candidates(&namespace(), &path("/d"), &needles).await.expect("an answer");
        assert_eq!(found, direct.candidates(&namespace(), &path("/d"), &needles).await.expect("an answer"));
        assert!(found.is_some_and(|found| found.contains(&path("/d/42"))));
        let (check, stats) = (pooled.check().await.expect("a check"), pooled.stats().await.expect("numbers"));
        assert_eq!((check.files, check.problems, stats.files), (101, Vec::new(), 101));
    })
    .await;
}

#[tokio::test]
async fn changes_arrive_by_polling_and_by_a_connection_of_their_own() {
    let Some(url) = pooler() else { return };
    in_lab(async |lab| {
        let polling = config(&url, lab);
        let listening = polling.clone().listen_url(&lab.url).expect("a URL");
        for config in [polling, listening] {
            let (pooled, direct) = (open(config).await, lab.store().await);
            let seen = pooled.last_sequence(&namespace()).await.expect("a position");
            let name = key(&format!("/{}", seen.0));
            let place = namespace();
            let changed = pooled.changed(&place, seen);
            let change = async {
                let _ = direct.put(&name, value("1"), &Precondition::Absent).await.expect("it is put");
            };
            let both = futures::future::join(changed, change);
            let (changed, ()) = tokio::time::timeout(HANG_TIMEOUT, both).await.expect("the change arrives");
            changed.expect("the change arrives");
            let page = pooled.since(&namespace(), seen, 10).await.expect("the changes");
            assert!(matches!(page, ChangePage::Changes { changes, .. } if changes.len() == 1));
        }
    })
    .await;
}

#[tokio::test]
async fn a_store_that_does_not_know_of_its_pooler_says_what_to_write() {
    let Some(url) = pooler() else { return };
    let (url, _) = url.split_once('?').expect("it has a parameter");
    let error = PostgresStore::open(PostgresConfig::new(url).expect("a URL")).await.expect_err("it needs a session");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("pooled=true"), "{error}");
}
