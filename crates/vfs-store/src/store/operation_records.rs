//! Records of mutations with an operation id.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::Result;

use super::key::Namespace;
use super::values::{BatchOutcome, Condition, Write};

/// Record of an applied mutation, which provides the result if the mutation is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Hash of the operation, its paths and its [`OperationId`](vfs_core::OperationId): at most 64 hexadecimal digits.
    pub key: String,
    /// Hash of the request: at most 64 hexadecimal digits.
    pub request: String,
    /// The result in JSON.
    pub result: String,
}

/// Batches that are recorded in their transaction, and applied once.
///
/// # Behaviour
///
/// * Versions of values are those of [`ValueContent::version`](super::ValueContent::version), so that the result of a mutation can be
///   computed before it is applied.
/// * The store retains a record for at least a day.
#[async_trait]
pub trait IdempotentOperations: Send + Sync {
    /// Returns the record with this key, or `None` if there is none.
    async fn find(&self, namespace: &Namespace, key: &str) -> Result<Option<OperationRecord>>;

    /// Applies a batch as [`BatchStore::batch`](super::BatchStore::batch) does, and stores `record` in the same transaction if it is
    /// applied.
    ///
    /// Returns `None` without a change if there is a record with this key.
    async fn batch_once(
        &self,
        namespace: &Namespace,
        record: &OperationRecord,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<Option<BatchOutcome>>;
}
