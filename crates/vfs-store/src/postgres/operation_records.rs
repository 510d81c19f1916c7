//! Records of mutations with an operation id.

use async_trait::async_trait;
use vfs_core::Result;

use super::PostgresStore;
use super::change::change;
use super::error::PostgresError;
use crate::store::{BatchOutcome, Condition, IdempotentOperations, Namespace, OperationRecord, Write};

const FIND: &str = "SELECT request, result FROM operations WHERE namespace = $1 AND key = $2";

#[async_trait]
impl IdempotentOperations for PostgresStore {
    async fn find(&self, namespace: &Namespace, key: &str) -> Result<Option<OperationRecord>> {
        let server = &self.0.server;
        let Some(row) = server.row(FIND, &[&namespace.as_str(), &key]).await? else { return Ok(None) };
        let describe = |error| PostgresError::from(error).describe(&server.config);
        let (request, result) = (row.try_get(0).map_err(describe)?, row.try_get(1).map_err(describe)?);
        Ok(Some(OperationRecord { key: key.to_owned(), request, result }))
    }

    async fn batch_once(
        &self,
        namespace: &Namespace,
        record: &OperationRecord,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<Option<BatchOutcome>> {
        change(&self.0.server, &self.0.channel, namespace, conditions, &writes, Some(record)).await
    }
}
