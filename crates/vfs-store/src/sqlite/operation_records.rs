//! Records of mutations with an operation id.

use async_trait::async_trait;
use chrono::{TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension as _};
use vfs_core::Result;

use super::SqliteStore;
use super::error::SqliteResult;
use crate::store::{BatchOutcome, Condition, IdempotentOperations, Namespace, OperationRecord, Write};

/// Time after which a record is removed.
const RECORD_LIFETIME: TimeDelta = TimeDelta::days(1);

#[async_trait]
impl IdempotentOperations for SqliteStore {
    async fn find(&self, namespace: &Namespace, key: &str) -> Result<Option<OperationRecord>> {
        let (namespace, key) = (namespace.clone(), key.to_owned());
        self.inner.readers.read(move |connection| find(connection, &namespace, &key)).await
    }

    async fn batch_once(
        &self,
        namespace: &Namespace,
        record: &OperationRecord,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<Option<BatchOutcome>> {
        self.change(namespace, conditions.to_vec(), writes, Some(record.clone())).await
    }
}

pub(super) fn find(connection: &Connection, namespace: &Namespace, key: &str) -> SqliteResult<Option<OperationRecord>> {
    let sql = "SELECT request, result FROM operations WHERE namespace = ?1 AND key = ?2";
    let record = connection.prepare_cached(sql)?.query_row((namespace.as_str(), key), |row| {
        Ok(OperationRecord { key: key.to_owned(), request: row.get(0)?, result: row.get(1)? })
    });
    Ok(record.optional()?)
}

/// Inserts a new record, and removes some of the expired ones.
pub(super) fn insert(connection: &Connection, namespace: &Namespace, record: &OperationRecord) -> SqliteResult<()> {
    let now = Utc::now();
    let sql = "DELETE FROM operations WHERE (namespace, key) IN
               (SELECT namespace, key FROM operations WHERE made < ?1 ORDER BY made LIMIT 8)";
    connection.prepare_cached(sql)?.execute([(now - RECORD_LIFETIME).timestamp_micros()])?;
    let sql = "INSERT INTO operations (namespace, key, request, result, made) VALUES (?1, ?2, ?3, ?4, ?5)";
    let OperationRecord { key, request, result } = record;
    let made = now.timestamp_micros();
    connection.prepare_cached(sql)?.execute((namespace.as_str(), key, request, result, made))?;
    Ok(())
}
