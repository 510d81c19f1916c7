//! Candidates of searches, and maintenance of the search index.

use vfs_core::CaseMode::{self, Insensitive, Sensitive, Smart};

use super::*;

async fn found(store: &SqliteStore, below: &str, needle: &str, case: CaseMode) -> Option<Vec<String>> {
    let query = TextQuery::new(vec![needle.to_owned()], case);
    let found = store.candidates(&space("org/user"), &path(below), &query).await.expect("it answers")?;
    let mut names: Vec<_> = found.iter().map(|path| path.as_str().to_owned()).collect();
    names.sort_unstable();
    Some(names)
}

#[tokio::test]
async fn only_what_may_hold_a_needle_is_a_candidate() {
    let store = memory().await;
    put(&store, "/a", "the quick brown fox").await;
    put(&store, "/b", "THE QUICK BROWN DOG").await;
    put(&store, "/d/c", "a \u{212a}elvin and a long \u{17f}").await;
    put(&store, "/d/e", "Grüße aus KÖLN").await;
    put(&store, "/dd", "quick").await;
    settle(&store).await;
    let all = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(found(&store, "/", "quick", Insensitive).await, all(&["/a", "/b", "/dd"]));
    assert_eq!(found(&store, "/", "fox", Sensitive).await, all(&["/a"]));
    assert_eq!(found(&store, "/", "kelvin", Insensitive).await, all(&["/d/c"]));
    assert_eq!(found(&store, "/", "\u{212a}elvin", Sensitive).await, all(&["/d/c"]));
    assert_eq!(found(&store, "/", "long s", Smart).await, all(&["/d/c"]));
    assert_eq!(found(&store, "/", "köln", Insensitive).await, None);
    assert_eq!(found(&store, "/", "Grüße", Sensitive).await, all(&["/d/e"]));
    assert_eq!(found(&store, "/", " aus k", Insensitive).await, all(&["/d/e"]));
    assert_eq!(found(&store, "/d", "quick", Sensitive).await, all(&[]));
    assert_eq!(found(&store, "/dd", "quick", Sensitive).await, all(&["/dd"]));
    assert_eq!(found(&store, "/", "ab", Sensitive).await, None);
    assert_eq!(found(&store, "/", "\"AND", Sensitive).await, all(&[]));
    assert_eq!(found(&store, "/", "no*such\"'()NEAR", Sensitive).await, all(&[]));
    let query = TextQuery::new(vec!["fox".to_owned(), "dog".to_owned()], Insensitive);
    let found = store.candidates(&space("org/user"), &VfsPath::root(), &query).await.expect("it answers");
    assert_eq!(found, Some([path("/a"), path("/b")].into()));
}

#[tokio::test]
async fn more_candidates_than_the_limit_are_not_returned() {
    let store = memory().await;
    for number in 0..5 {
        put(&store, &format!("/d/{number}"), "needle").await;
    }
    let count = async |below: &str, limit| {
        let query = TextQuery::new(vec!["needle".to_owned()], Sensitive).max_candidates(limit);
        let found = store.candidates(&space("org/user"), &path(below), &query).await.expect("it answers");
        found.map(|found| found.len())
    };
    for is_settled in [false, true] {
        if is_settled {
            settle(&store).await;
        }
        assert_eq!((count("/", 5).await, count("/", 4).await), (Some(5), None), "{is_settled}");
        assert_eq!((count("/d/3", 1).await, count("/d/3", 0).await), (Some(1), None), "{is_settled}");
        assert_eq!(count("/none", 0).await, Some(0), "{is_settled}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_indexed_is_always_a_candidate() {
    let store = memory().await;
    put(&store, "/binary", "nee\0dle").await;
    put(&store, "/latin", &b"\xe4\xf6\xfc"[..]).await;
    put(&store, "/utf-16", &b"\xff\xfen\0e\0"[..]).await;
    put(&store, "/large", vec![b' '; trigram_index::MAX_INDEXED + 1]).await;
    put(&store, "/text", "needle").await;
    put(&store, "/other", "nothing").await;
    settle(&store).await;
    let all: Vec<_> = ["/binary", "/large", "/latin", "/text", "/utf-16"].map(str::to_owned).into();
    assert_eq!(found(&store, "/", "needle", Sensitive).await, Some(all));
    assert_eq!(found(&store, "/latin", "needle", Sensitive).await, Some(vec!["/latin".to_owned()]));
    assert_clean(&store).await;
}

#[tokio::test]
async fn few_files_wait_for_being_indexed() {
    let store = memory().await;
    for number in 0..1000 {
        put(&store, &format!("/{}", number % 300), format!("text {number}")).await;
        assert!(store.file_stats().await.expect("it counts").not_indexed < 64);
    }
    put(&store, "/large", "large text ".repeat(100_000)).await;
    assert_eq!(store.file_stats().await.expect("it counts").not_indexed, 0);
    assert_clean(&store).await;
}

#[tokio::test]
async fn the_index_follows_every_change() {
    let store = memory().await;
    put(&store, "/a", "first needle").await;
    settle(&store).await;
    put(&store, "/a", "second thing").await;
    assert_eq!(found(&store, "/", "nowhere", Sensitive).await, Some(vec!["/a".to_owned()]));
    assert_clean(&store).await;
    settle(&store).await;
    assert_eq!(found(&store, "/", "needle", Sensitive).await, Some(vec![]));
    put(&store, "/a", "third\0thing").await;
    assert_clean(&store).await;
    put(&store, "/a", "fourth needle").await;
    settle(&store).await;
    let to = |name: &str| path(name);
    let writes = vec![
        Write::Copy { from: to("/a"), to: to("/b"), at: time(1_800_000_000) },
        Write::Move { from: to("/a"), to: to("/c") },
        Write::Put(to("/d"), value("nothing")),
        Write::Copy { from: to("/c"), to: to("/d"), at: time(1_800_000_000) },
    ];
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await.expect("it writes"), BatchOutcome::Applied(_)));
    settle(&store).await;
    put(&store, "/e", "nothing").await;
    settle(&store).await;
    let all = ["/b", "/c", "/d"].map(str::to_owned);
    assert_eq!(found(&store, "/", "fourth needle", Sensitive).await, Some(all.into()));
    assert!(matches!(store.delete(&key("/b"), &Precondition::Any).await.expect("it deletes"), PutOutcome::Applied(_)));
    assert_eq!(found(&store, "/", "fourth needle", Sensitive).await, Some(vec!["/c".to_owned(), "/d".to_owned()]));
    assert_clean(&store).await;
}

#[tokio::test]
async fn namespaces_do_not_see_each_other() {
    let store = memory().await;
    put(&store, "/a", "needle").await;
    let other = Key::new(space("org"), path("/a"));
    assert!(matches!(
        store.put(&other, value("nothing"), &Precondition::Absent).await.expect("it writes"),
        PutOutcome::Applied(_)
    ));
    settle(&store).await;
    let query = TextQuery::new(vec!["needle".to_owned()], Sensitive);
    let search = async |name: &str| store.candidates(&space(name), &VfsPath::root(), &query).await.expect("it answers");
    assert_eq!(search("org").await, Some(CandidateKeys::new()));
    assert_eq!(search("org/user").await, Some([path("/a")].into()));
    assert_eq!(search("org/user/never").await, Some(CandidateKeys::new()));
}

#[tokio::test]
async fn the_index_can_be_switched_off_and_on() {
    let directory = directory();
    let without = SqliteStore::open(config(&directory).search_index(SqliteSearchIndex::Off)).await.expect("it opens");
    let with = open(&directory).await;
    put(&with, "/a", "needle").await;
    put(&without, "/b", "nothing").await;
    settle(&with).await;
    let both = ["/a", "/b"].map(str::to_owned);
    for store in [&with, &without] {
        assert_eq!(found(store, "/", "needle", Sensitive).await, Some(both.clone().into()));
    }
    put(&without, "/a", "other").await;
    put(&with, "/b", "nothing at all").await;
    settle(&with).await;
    assert_eq!(found(&without, "/", "needle", Sensitive).await, Some(vec!["/a".to_owned()]));
    assert_clean(&with).await;
}

#[tokio::test]
async fn the_removal_of_many_files_does_not_rewrite_the_index() {
    let directory = directory();
    let store = open(&directory).await;
    let names = |numbers: std::ops::Range<u32>| numbers.map(|number| path(&format!("/d/{number}")));
    let text = |at: &VfsPath| value(format!("the text of {at} and no other: {}", at.as_str().repeat(20)));
    for first in (0..2048).step_by(128) {
        let writes = names(first..first + 128).map(|at| Write::Put(at.clone(), text(&at))).collect();
        assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
    }
    let size = || {
        let connection = rusqlite::Connection::open(directory.path().join("store.db")).expect("it opens");
        let sql = "SELECT sum(length(block)) FROM texts_data";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("it counts")
    };
    let before = size();
    let writes = names(0..1024).map(Write::Delete).collect();
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
    assert!(size() >= before, "{} bytes of {before}", size());
    assert_eq!(found(&store, "/", "/d/7/d/7", Sensitive).await, Some(vec![]));
    assert_eq!(found(&store, "/", "/d/1777/d", Sensitive).await, Some(vec!["/d/1777".to_owned()]));
    // Files that are written again later are in the index, too.
    for first in (0..1024).step_by(64) {
        let writes = names(first..first + 64).map(|at| Write::Put(at.clone(), text(&at))).collect();
        assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
    }
    assert_eq!(found(&store, "/", "/d/7/d/7", Sensitive).await, Some(vec!["/d/7".to_owned()]));
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_refused_change_of_many_files_leaves_the_index_and_the_log_as_they_were() {
    let directory = directory();
    let (store, other) = (open(&directory).await, open(&directory).await);
    let names = |numbers: std::ops::Range<u32>| numbers.map(|number| path(&format!("/d/{number}")));
    let writes = names(0..5000).map(|at| Write::Put(at.clone(), value(format!("the text of {at}")))).collect();
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
    assert_clean(&store).await;
    let writes = names(0..200).chain([path("/missing")]).map(Write::Delete).collect();
    let refused = store.batch(&space("org/user"), &[], writes).await;
    assert!(matches!(refused, Ok(BatchOutcome::PreconditionFailed(at, None)) if at == path("/missing")));
    assert_clean(&store).await;
    for (store, numbers) in [(&other, 0..200), (&store, 200..4800)] {
        let writes = names(numbers).map(Write::Delete).collect();
        assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
        assert_clean(store).await;
    }
    assert_eq!(found(&other, "/", "of /d/4801", Sensitive).await, Some(vec!["/d/4801".to_owned()]));
}

#[tokio::test]
async fn files_that_are_removed_with_many_others_are_removed_from_the_index_by_later_changes() {
    let directory = directory();
    let store = open(&directory).await;
    let names = |numbers: std::ops::Range<u32>| numbers.map(|number| path(&format!("/d/{number}")));
    let writes = names(0..4000).map(|at| Write::Put(at.clone(), value(format!("the text of {at}")))).collect();
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));

    // Simulate a process that crashes right after the removal.
    let mut connection = rusqlite::Connection::open(directory.path().join("store.db")).expect("it opens");
    let transaction = connection.transaction().expect("it begins");
    let writes: Vec<_> = names(500..4000).map(Write::Delete).collect();
    let outcome = change::batch(&transaction, &space("org/user"), SqliteSearchIndex::On, &[], &writes);
    assert!(matches!(outcome, Ok(BatchOutcome::Applied(_))));
    transaction.commit().expect("it commits");
    let left = || {
        let sql = "SELECT count(*) FROM removed";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("it counts")
    };
    assert_eq!(left(), 3500);
    assert_clean(&store).await;
    assert_eq!(found(&store, "/", "the text of /d/2999", Sensitive).await, Some(vec![]));

    for at in names(5000..5064) {
        put(&store, at.as_str(), format!("the text of {at}")).await;
    }
    assert_eq!(left(), 2500);
    assert_clean(&store).await;
    assert_eq!(found(&store, "/", "the text of /d/5063", Sensitive).await, Some(vec!["/d/5063".to_owned()]));
    // Each removal runs two passes of 1,000 files.
    for (numbers, expected) in [(0..100, 600), (100..200, 0)] {
        let writes = names(numbers).map(Write::Delete).collect();
        assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
        assert_eq!(left(), expected);
        assert_clean(&store).await;
    }
}

#[tokio::test]
async fn files_that_are_written_with_many_others_do_not_wait_for_being_indexed() {
    let store = memory().await;
    put(&store, "/0", "one that waits").await;
    let write = |number: u32| Write::Put(path(&format!("/{number}")), value(format!("text {number}")));
    let binary = Write::Put(path("/binary"), value("a\0b"));
    let writes = (0..64).map(write).chain([binary]).collect();
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
    assert_eq!(store.file_stats().await.expect("it counts").not_indexed, 1);
    let both = ["/7", "/binary"].map(str::to_owned);
    assert_eq!(found(&store, "/", "text 7", Sensitive).await, Some(both.into()));
    assert_clean(&store).await;
    let writes = (0..64).map(write).chain([Write::Put(path("/binary"), value("text"))]).collect();
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await, Ok(BatchOutcome::Applied(_))));
    assert_eq!(store.file_stats().await.expect("it counts").not_indexed, 0);
    assert_clean(&store).await;
}
