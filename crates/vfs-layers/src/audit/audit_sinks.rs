//! Sinks of audit records.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use vfs_core::{Error, ErrorKind, Result};

use super::audit_record::AuditRecord;
use super::hash_chain::AuditHead;

/// Stores records.
///
/// # Behaviour
///
/// * Records come one at a time, in order. The next one comes after this one is stored.
/// * A record that was refused, or whose call was dropped, comes again. A sink that may have stored it nevertheless
///   checks that, and does not store it twice.
///
/// # Errors
///
/// Any error that prevents the record from being stored; [`OnSinkFailure`](super::OnSinkFailure) is the policy for it.
#[async_trait]
pub trait AuditSink: Debug + Send + Sync + 'static {
    /// Ensures that records can be stored after `head`. Under [`OnSinkFailure::Refuse`](super::OnSinkFailure::Refuse)
    /// it is called before the first operation, and before the next one after a record was refused; an operation
    /// whose record could not be stored does not begin. By default, succeeds.
    async fn prepare(&self, _head: &AuditHead) -> Result<()> {
        Ok(())
    }

    /// Returns whether the guarantee of [`prepare`](Self::prepare) still holds. By default, it does until a record is
    /// refused.
    fn is_prepared(&self) -> bool {
        true
    }

    /// Stores `record` after all previous ones.
    async fn append(&self, record: &AuditRecord) -> Result<()>;
}

#[async_trait]
impl<S: AuditSink + ?Sized> AuditSink for Arc<S> {
    async fn prepare(&self, head: &AuditHead) -> Result<()> {
        (**self).prepare(head).await
    }

    fn is_prepared(&self) -> bool {
        (**self).is_prepared()
    }

    async fn append(&self, record: &AuditRecord) -> Result<()> {
        (**self).append(record).await
    }
}

/// Stores all records in memory, for its lifetime. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemorySink {
    records: Arc<Mutex<Vec<AuditRecord>>>,
}

impl MemorySink {
    /// Returns a sink without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the records, oldest first.
    pub fn records(&self) -> Vec<AuditRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl AuditSink for MemorySink {
    async fn append(&self, record: &AuditRecord) -> Result<()> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
        Ok(())
    }
}

/// Emits records to `tracing` as events of level `INFO` and target `vfs_audit`.
///
/// # Behaviour
///
/// The fields are `sequence`, `operation`, `outcome` and `record`, which is the whole record in JSON. The subscriber
/// decides whether they are stored: this sink never fails for lack of one.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingSink;

#[async_trait]
impl AuditSink for TracingSink {
    async fn append(&self, record: &AuditRecord) -> Result<()> {
        let json = serde_json::to_string(record).map_err(|error| {
            Error::new(ErrorKind::Internal, "internal: the audit record cannot be encoded as JSON").with_source(error)
        })?;
        tracing::info!(
            target: "vfs_audit",
            sequence = record.sequence,
            operation = record.operation.code(),
            outcome = record.outcome.code(),
            record = json,
        );
        Ok(())
    }
}
