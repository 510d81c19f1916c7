//! Verification, backups and statistics; pieces of contents; the change log.

use super::*;
use crate::store::ChangeRecord;

async fn sql(store: &SqliteStore, text: &'static str) {
    store.inner.writer.run(move |connection| Ok(connection.execute_batch(text)?)).await.expect(text);
}

#[tokio::test]
async fn a_part_of_a_value_is_cut_where_it_ends() {
    let store = memory().await;
    let content: Vec<u8> = (0..(2 << 20) + 100_u32).map(|at| (at % 251) as u8).collect();
    put(&store, "/big", content.clone()).await;
    let length = content.len() as u64;
    for range in [
        0..0,
        0..1,
        5..5,
        (1 << 20) - 1..(1 << 20) + 1,
        1 << 20..2 << 20,
        (2 << 20) - 7..length,
        length - 1..u64::MAX,
        length..length + 5,
        u64::MAX - 1..u64::MAX,
    ] {
        let value = store.get(&key("/big"), Some(range.clone())).await.expect("it reads").expect("it is there");
        let cut = |at: u64| usize::try_from(at.min(length)).expect("it fits");
        assert_eq!(value.content, content[cut(range.start)..cut(range.end)], "{range:?}");
        assert_eq!(value.stored.size, length);
    }
}

#[tokio::test]
async fn every_kind_of_damage_is_found_by_a_check() {
    for (damage, word) in [
        ("UPDATE chunks SET content = zeroblob(length(content)) WHERE place >> 20 = 1", "not what was written"),
        ("UPDATE chunks SET content = x'00' WHERE place >> 20 = 1", "should have"),
        ("DELETE FROM chunks WHERE place >> 20 = 1", "should have"),
        ("DELETE FROM chunks WHERE place = (3 << 20) + 1", "should have"),
        ("UPDATE chunks SET place = place + 5 WHERE place >> 20 = 1", "piece 5"),
        ("INSERT INTO chunks VALUES (99 << 20, x'00')", "a file 99 that does not exist"),
        ("DELETE FROM texts WHERE rowid = 1", "search index"),
        ("INSERT OR REPLACE INTO texts (rowid, body) VALUES (1, 'something else')", "search index"),
        ("INSERT INTO texts (rowid, body) VALUES (99, 'something else')", "a file 99"),
        ("INSERT INTO removed VALUES (1)", "the file 1 is recorded as removed"),
        ("INSERT INTO removed VALUES (98)", "the removed file 98 has no entry in the search index"),
        ("UPDATE namespaces SET files = files + 1", "counts"),
        ("UPDATE namespaces SET bytes = bytes + 1", "counts"),
        ("UPDATE namespaces SET sequence = sequence + 1", "log of changes"),
        ("DELETE FROM changes WHERE sequence = 2", "log of changes"),
        ("DELETE FROM namespaces", "a namespace 1 that does not exist"),
        ("UPDATE namespaces SET name = 'a//b'", "cannot be named"),
        ("UPDATE files SET path = '/a/../b' WHERE id = 1", "cannot name a file"),
        ("UPDATE files SET version = x'00' WHERE id = 1", "cannot be read"),
    ] {
        let store = memory().await;
        put(&store, "/a", "some text").await;
        put(&store, "/b", "another text").await;
        // This file is large enough for all waiting files to be indexed.
        put(&store, "/c", vec![b'c'; (1 << 20) + 1]).await;
        assert_clean(&store).await;
        sql(&store, damage).await;
        let report = store.check().await.expect("it checks");
        assert!(
            report.problems.iter().any(|problem| problem.message.contains(word)),
            "{damage}: {:?}",
            report.problems
        );
    }
}

#[tokio::test]
async fn a_page_that_is_damaged_is_found_by_a_check() {
    let store = memory().await;
    put(&store, "/a", "some text").await;
    settle(&store).await;
    // Change the definition of an index so that a row that matches it is missing.
    sql(
        &store,
        "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'indexed <> 1', 'indexed <> 2')
                 WHERE name = 'files_not_indexed'; PRAGMA writable_schema = reset",
    )
    .await;
    let report = store.check().await.expect("it checks");
    assert!(report.problems.iter().any(|problem| problem.message.contains("file is damaged")), "{report:?}");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_a_problem_of_a_listing_and_no_end_of_it() {
    let store = memory().await;
    for at in ["/a", "/b", "/c", "/d/e"] {
        put(&store, at, at.to_owned()).await;
    }
    sql(&store, "UPDATE files SET version = x'00' WHERE path = '/b'").await;
    sql(&store, "UPDATE files SET path = '/d/../e' WHERE path = '/d/e'").await;
    let page = store.list(&space("org/user"), &ListRequest::all(VfsPath::root())).await.expect("it lists");
    let paths: Vec<_> = page.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["/a", "/c"]);
    let problems: Vec<_> = page.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(problems, ["/b", "/d/../e"]);
}

#[tokio::test]
async fn a_copy_is_whole_while_others_write() {
    let directory = directory();
    let store = open(&directory).await;
    for number in 0..40 {
        put(&store, &format!("/{number}"), vec![b'x'; 200_000]).await;
    }
    let other = open(&directory).await;
    let to = directory.path().join("copy.db");
    let writing = async {
        for number in 0..40 {
            put(&other, &format!("/{number}"), vec![b'y'; 200_000]).await;
            put(&store, &format!("/new-{number}"), "new").await;
        }
    };
    let (bytes, ()) = tokio::join!(store.backup(&to), writing);
    assert!(bytes.expect("it copies") > 40 * 200_000);
    let copy = SqliteStore::open(SqliteConfig::new(&to)).await.expect("it opens");
    assert_clean(&copy).await;
    assert!(copy.stats().await.expect("it counts").files >= 40);
    assert_clean(&store).await;
    let again = store.backup(&to).await.expect_err("it is there");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let missing = store.backup(directory.path().join("missing/copy.db")).await.expect_err("there is no directory");
    assert!(missing.message().contains("does not exist"), "{missing}");
}

#[tokio::test]
async fn a_store_in_memory_can_be_saved_by_a_backup() {
    let directory = directory();
    let store = memory().await;
    put(&store, "/a", "text").await;
    store.backup(directory.path().join("store.db")).await.expect("it copies");
    let copy = open(&directory).await;
    assert_eq!(copy.get(&key("/a"), None).await.expect("it reads").expect("it is there").content, "text");
    assert_eq!(copy.last_sequence(&space("org/user")).await.expect("it reads"), Sequence(1));
    put(&copy, "/b", "more").await;
    assert_clean(&copy).await;
}

#[tokio::test]
async fn stats_count_what_is_there() {
    let store = memory().await;
    put(&store, "/a", "text").await;
    put(&store, "/b", vec![0_u8; 3000]).await;
    put(&store, "/c", "deleted").await;
    assert!(matches!(store.delete(&key("/c"), &Precondition::Any).await.expect("it deletes"), PutOutcome::Applied(_)));
    let stats = store.stats().await.expect("it counts");
    assert_eq!((stats.namespaces, stats.files, stats.bytes), (1, 2, 3004));
    let stats = store.file_stats().await.expect("it counts");
    assert_eq!((stats.not_indexed, stats.changes, stats.schema_version, stats.page_size), (2, 4, 4, 4096));
    assert!(stats.pages > 5);
}

#[tokio::test]
async fn the_log_retains_the_newest_changes_and_trims_the_others() {
    let store = memory().await;
    let namespace = space("org/user");
    let writes = |count: u64| (0..count).map(|_| Write::Put(path("/a"), value("x"))).collect::<Vec<_>>();
    for count in [4000, 1, 300, 63, 1] {
        assert!(matches!(
            store.batch(&namespace, &[], writes(count)).await.expect("it writes"),
            BatchOutcome::Applied(_)
        ));
    }
    let last = 4365;
    assert_eq!(store.last_sequence(&namespace).await.expect("it reads"), Sequence(last));
    let since = async |seen: u64, limit| store.since(&namespace, Sequence(seen), limit).await.expect("it reads");
    assert_eq!(since(0, 10).await, ChangePage::Expired(Sequence(last)));
    assert_eq!(since(last + 1, 10).await, ChangePage::Expired(Sequence(last)));
    let ChangePage::Changes { changes, next, has_more } = since(last - 4096, 5000).await else { panic!("expired") };
    assert_eq!((changes.len(), next, has_more), (4096, Sequence(last), false));
    assert!(store.file_stats().await.expect("it counts").changes < 4096 + 64 + 1);
    let ChangePage::Changes { changes, next, has_more } = since(last - 5, 2).await else { panic!("expired") };
    assert!(matches!(
        &changes[..],
        [(Sequence(4361), ChangeRecord::Changed(..)), (Sequence(4362), ChangeRecord::Changed(..))]
    ));
    assert_eq!((next, has_more), (Sequence(4362), true));
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_token_of_another_store_is_refused() {
    let store = memory().await;
    put(&store, "/a", "x").await;
    for token in ["", "x", "é", "/a"] {
        let request = ListRequest::all(VfsPath::root()).from(crate::store::PageToken::new(token));
        let error = store.list(&space("org/user"), &request).await.expect_err(token);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[tokio::test]
async fn a_listing_skips_the_files_below_its_directories() {
    let store = memory().await;
    let mut writes = Vec::new();
    for number in 0..20_000 {
        writes.push(Write::Put(path(&format!("/dir/{}/{number}", number % 5)), value("")));
    }
    writes.push(Write::Put(path("/dir/file"), value("x")));
    assert!(matches!(store.batch(&space("org/user"), &[], writes).await.expect("it writes"), BatchOutcome::Applied(_)));
    // SQLite counts the steps of its virtual machine; with one for each value below, there would be over 20,000.
    let steps = store.inner.readers.run(|connection| {
        let namespace = file_rows::namespace_id(connection, &space("org/user"))?.expect("it is there");
        let page = list::list(connection, namespace, &ListRequest::level(path("/dir")))?;
        assert_eq!((page.entries.len(), page.directories.len()), (1, 5));
        let statement = connection.prepare_cached(
            "SELECT path, size, version, created, modified, id, indexed FROM files WHERE namespace = ?1 AND path >= ?2 \
             AND path < ?3 ORDER BY path",
        )?;
        Ok(statement.get_status(rusqlite::StatementStatus::VmStep))
    });
    let steps = steps.await.expect("it lists");
    assert!((1..1000).contains(&steps), "{steps}");
}
