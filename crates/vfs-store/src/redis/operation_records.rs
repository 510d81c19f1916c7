//! Records of mutations with an operation id.

use ::redis::Value;
use async_trait::async_trait;
use vfs_core::Result;

use super::RedisStore;
use super::connection::RedisRequest;
use super::reply;
use crate::store::{BatchOutcome, Condition, IdempotentOperations, Namespace, OperationRecord, Write};

#[async_trait]
impl IdempotentOperations for RedisStore {
    async fn find(&self, namespace: &Namespace, key: &str) -> Result<Option<OperationRecord>> {
        let name = self.names().operation(namespace, key);
        let request = |_| {
            let mut cmd = ::redis::cmd("GET");
            cmd.arg(&name);
            RedisRequest::Command(cmd)
        };
        match self.link().ask(request).await? {
            Value::Nil => Ok(None),
            value => {
                let text = reply::bytes(value)?;
                let text = std::str::from_utf8(&text).ok().and_then(|text| text.split_once('\n'));
                let (request, result) = text.ok_or_else(|| reply::damaged(&name))?;
                Ok(Some(OperationRecord {
                    key: key.to_owned(),
                    request: request.to_owned(),
                    result: result.to_owned(),
                }))
            }
        }
    }

    async fn batch_once(
        &self,
        namespace: &Namespace,
        record: &OperationRecord,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<Option<BatchOutcome>> {
        self.make(namespace, conditions, &writes, Some(record)).await
    }
}

/// Returns the value of a record: the hash of the request, a line break, and the result.
pub(super) fn encode(record: &OperationRecord) -> String {
    format!("{}\n{}", record.request, record.result)
}
