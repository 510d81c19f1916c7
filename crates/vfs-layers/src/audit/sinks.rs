//! Where records go.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use vfs_core::{Error, ErrorKind, Result};

use super::chain::AuditHead;
use super::record::AuditRecord;

/// Keeps records.
///
/// # Behaviour
///
/// * Records come one at a time, in order. The next one comes when this one is kept.
/// * A record that was refused, or whose call was dropped, comes again. A sink that may have kept it nevertheless looks,
///   and does not keep it twice.
///
/// # Errors
///
/// Whatever keeps it from keeping the record; what then happens says [`OnSinkFailure`](super::OnSinkFailure).
#[async_trait]
pub trait AuditSink: Debug + Send + Sync + 'static {
    /// Makes sure that records can be kept after `head`. Under [`OnSinkFailure::Refuse`](super::OnSinkFailure::Refuse) it is
    /// called before the first operation, and after a record was refused before the next one; an operation whose record
    /// could not be kept does not begin. By default, nothing can be said before.
    async fn prepare(&self, _head: &AuditHead) -> Result<()> {
        Ok(())
    }

    /// Whether what [`prepare`](Self::prepare) made sure of still holds. By default, it does until a record is refused.
    fn is_prepared(&self) -> bool {
        true
    }

    /// Keeps `record` after all that it has.
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

/// Keeps records in memory, all of them, for as long as it lives. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemorySink {
    records: Arc<Mutex<Vec<AuditRecord>>>,
}

impl MemorySink {
    /// One without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// The records of now, the oldest first.
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

/// Hands records to `tracing` as events of level `INFO` and target `vfs_audit`.
///
/// # Behaviour
///
/// The fields `sequence`, `operation`, `outcome` and `record`, which is the whole record in JSON. Whether anybody keeps
/// them is for the subscriber to say: this sink never fails for want of one.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingSink;

#[async_trait]
impl AuditSink for TracingSink {
    async fn append(&self, record: &AuditRecord) -> Result<()> {
        let json = serde_json::to_string(record)
            .map_err(|error| Error::new(ErrorKind::Internal, "a record has no JSON").with_source(error))?;
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
