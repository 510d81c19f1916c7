//! Errors of a faulty file, which say what to do.

#![expect(clippy::disallowed_methods, reason = "these tests damage files")]

use std::fs;
use std::time::Duration;

use super::*;

async fn refused(config: SqliteConfig, kind: ErrorKind, word: &str) {
    let error = SqliteStore::open(config).await.expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(word), "{error}");
}

fn edit(config: &SqliteConfig, sql: &str) {
    let DatabaseLocation::File(file) = &config.location else { panic!("it is a file") };
    Connection::open(file).expect("it opens").execute_batch(sql).expect(sql);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused_unchanged() {
    let directory = directory();
    let file = directory.path().join("notes.txt");
    fs::write(&file, "some notes\n".repeat(1000)).expect("it writes");
    refused(SqliteConfig::new(&file), ErrorKind::InvalidArgument, "not a SQLite database").await;
    assert_eq!(fs::read_to_string(&file).expect("it reads"), "some notes\n".repeat(1000));
    fs::write(&file, "short").expect("it writes");
    refused(SqliteConfig::new(&file), ErrorKind::InvalidArgument, "not a SQLite database").await;
}

#[tokio::test]
async fn a_database_of_another_program_or_a_newer_version_is_refused() {
    let directory = directory();
    let config = config(&directory);
    drop(SqliteStore::open(config.clone()).await.expect("it opens"));
    edit(&config, &format!("PRAGMA user_version = {}", schema::VERSION + 1));
    refused(config.clone(), ErrorKind::InvalidArgument, "newer program").await;
    edit(&config, &format!("PRAGMA user_version = {}; PRAGMA application_id = 5", schema::VERSION));
    refused(config, ErrorKind::InvalidArgument, "another program's").await;
}

#[tokio::test]
async fn a_file_that_has_another_version_than_when_it_was_opened_is_not_changed() {
    let directory = directory();
    let (config, store) = (config(&directory), open(&directory).await);
    let before = put(&store, "/a", "text").await;
    for (version, word) in [(schema::VERSION + 1, "newer program"), (schema::VERSION - 1, "open the store again")] {
        edit(&config, &format!("PRAGMA user_version = {version}"));
        let error = store.put(&key("/a"), value("other"), &Precondition::Any).await.expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains(word), "{error}");
    }
    assert_eq!(store.head(&key("/a")).await.expect("it reads"), Some(before));
}

#[tokio::test]
async fn a_file_that_cannot_be_created_is_an_error_with_its_reason() {
    let directory = directory();
    let below = |name: &str| SqliteConfig::new(directory.path().join(name));
    fs::write(directory.path().join("file"), "x").expect("it writes");
    refused(below("missing/store.db"), ErrorKind::InvalidArgument, "does not exist").await;
    refused(below("file/store.db"), ErrorKind::InvalidArgument, "below a file").await;
    refused(SqliteConfig::new(directory.path()), ErrorKind::InvalidArgument, "is a directory").await;
    refused(SqliteConfig::new(""), ErrorKind::InvalidArgument, "no path").await;
    refused(below("a\0b"), ErrorKind::InvalidArgument, "NUL").await;
    assert!(!directory.path().join("missing").exists());
}

#[tokio::test]
async fn names_that_mean_something_to_sqlite_are_files() {
    let directory = directory();
    for name in [":memory:", "file:a?mode=memory", "a b#?%20.db"] {
        let config = SqliteConfig::new(directory.path().join(name));
        put(&SqliteStore::open(config).await.expect("it opens"), "/a", "x").await;
        assert!(directory.path().join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn a_truncated_file_is_an_error_and_never_empty() {
    let directory = directory();
    let config = config(&directory);
    let DatabaseLocation::File(file) = config.location.clone() else { panic!("it is a file") };
    let store = open(&directory).await;
    for number in 0..50 {
        put(&store, &format!("/{number}"), vec![b'x'; 5000]).await;
    }
    drop(store);
    let whole = fs::read(&file).expect("it reads");
    for length in [50, 100, 4096, 5000, 20_000, whole.len() / 2, whole.len() - 4096] {
        fs::write(&file, &whole[..length]).expect("it writes");
        let error = match SqliteStore::open(config.clone()).await {
            Err(error) => error,
            Ok(store) => match store.check().await {
                Err(error) => error,
                Ok(report) => {
                    assert!(!report.problems.is_empty(), "{length} bytes");
                    continue;
                }
            },
        };
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{length} bytes: {error}");
    }
}

#[tokio::test]
async fn a_locked_file_is_busy_after_the_timeout() {
    let directory = directory();
    let config = config(&directory).busy_timeout(Duration::from_millis(1));
    let store = SqliteStore::open(config.clone()).await.expect("it opens");
    let DatabaseLocation::File(file) = &config.location else { panic!("it is a file") };
    let other = Connection::open(file).expect("it opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("it begins");
    let error = store.put(&key("/a"), value("x"), &Precondition::Any).await.expect_err("it is locked");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.is_temporary() && error.message().contains("busy_timeout"), "{error}");
    // Readers are not blocked.
    assert_eq!(store.head(&key("/a")).await.expect("it reads"), None);
    other.execute_batch("ROLLBACK").expect("it ends");
    put(&store, "/a", "x").await;
}

#[tokio::test]
async fn a_locked_new_file_is_busy_too() {
    let directory = directory();
    let config = config(&directory).busy_timeout(Duration::from_millis(1));
    let DatabaseLocation::File(file) = &config.location else { panic!("it is a file") };
    let other = Connection::open(file).expect("it opens");
    other.execute_batch("BEGIN EXCLUSIVE").expect("it begins");
    refused(config, ErrorKind::Busy, "busy_timeout").await;
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_loses_no_data() {
    let directory = directory();
    let store = open(&directory).await;
    put(&store, "/before", "x").await;
    let limit = |pages: i64| {
        let writer = Arc::clone(&store.inner.writer);
        async move {
            let limit = move |connection: &mut Connection| {
                let set = connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, i64>(0));
                Ok(set?)
            };
            writer.run(limit).await.expect("it is set")
        }
    };
    limit(40).await;
    let error = store.put(&key("/a"), value(vec![b'x'; 1 << 20]), &Precondition::Any).await.expect_err("it is full");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.message().contains("free some space"), "{error}");
    assert_eq!(store.head(&key("/a")).await.expect("it reads"), None);
    assert!(store.head(&key("/before")).await.expect("it reads").is_some());
    assert_clean(&store).await;
    limit(100_000).await;
    put(&store, "/a", vec![b'x'; 1 << 20]).await;
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_panic_is_an_error_and_loses_no_connection() {
    let store = memory().await;
    put(&store, "/a", "x").await;
    let result: Result<()> = store.inner.writer.run(|_| panic!("on purpose")).await;
    assert_eq!(result.expect_err("it panicked").kind(), ErrorKind::Internal);
    assert!(store.head(&key("/a")).await.expect("it reads").is_some());
}

#[tokio::test]
async fn missing_tables_are_an_error() {
    let directory = directory();
    let config = config(&directory);
    let store = open(&directory).await;
    put(&store, "/a", "x").await;
    edit(&config, "DROP TABLE chunks");
    let error = store.get(&key("/a"), None).await.expect_err("a table is missing");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_value_that_is_too_large_is_refused() {
    let store = memory().await;
    let large = vec![0_u8; usize::try_from(content::MAX_VALUE).expect("it fits") + 1];
    let error = store.put(&key("/a"), value(large), &Precondition::Any).await.expect_err("it is too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}
