//! Tests of behaviour specific to SQLite; the laws of stores test behaviour that all stores share.

mod beside_memory;
mod faults;
mod maintenance;
mod search;
mod sharing;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tempfile::TempDir;
use vfs_core::VfsPath;

use super::*;

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of these tests are valid")
}

fn space(text: &str) -> Namespace {
    Namespace::parse(text).expect("the namespaces of these tests are valid")
}

fn key(at: &str) -> Key {
    Key::new(space("org/user"), path(at))
}

fn time(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 123_456_789).expect("a time")
}

fn value(content: impl Into<Bytes>) -> NewValue {
    NewValue::new(content.into(), time(1_700_000_000))
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn config(directory: &TempDir) -> SqliteConfig {
    // No test here simulates a power cut.
    SqliteConfig::new(directory.path().join("store.db")).durability(SqliteDurability::Normal)
}

async fn open(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(config(directory)).await.expect("it opens")
}

async fn memory() -> SqliteStore {
    SqliteStore::open(SqliteConfig::in_memory()).await.expect("it opens")
}

async fn put(store: &SqliteStore, at: &str, content: impl Into<Bytes>) -> StoredMeta {
    match store.put(&key(at), value(content), &Precondition::Any).await.expect("it writes") {
        PutOutcome::Applied(stored) => stored,
        PutOutcome::PreconditionFailed(found) => panic!("refused: {found:?}"),
    }
}

async fn assert_clean(store: &SqliteStore) {
    assert_eq!(store.check().await.expect("it checks").problems, []);
}

/// Writes and removes enough files for all earlier ones to be indexed.
async fn settle(store: &SqliteStore) {
    let namespace = space("somebody/else");
    let names = || (0..64).map(|number| path(&format!("/{number}")));
    for name in names() {
        let key = Key::new(namespace.clone(), name);
        let outcome = store.put(&key, value("padding"), &Precondition::Any).await.expect("it writes");
        assert!(matches!(outcome, PutOutcome::Applied(_)));
    }
    let writes = names().map(Write::Delete).collect();
    assert!(matches!(store.batch(&namespace, &[], writes).await.expect("it deletes"), BatchOutcome::Applied(_)));
}
