//! Hash chain of audit records.

use std::fmt;

use serde::{Deserialize, Serialize};
use vfs_core::{Error, ErrorKind, Result};

use super::audit_record::AuditRecord;

/// The end of a log, which the next record is chained to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditHead {
    /// The sequence number of the last record; 0 if there is none.
    pub sequence: u64,
    /// The `hash` of the last record; 64 zeros if there is none.
    pub hash: String,
}

/// The first position at which a log differs from the written records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainBreak {
    /// The sequence number of the first record that was changed or is missing.
    pub sequence: u64,
    /// The difference.
    pub fault: ChainFault,
}

/// The difference between a log and the written records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainFault {
    /// Another sequence number is in this place: records were removed, added or reordered.
    OutOfSequence,
    /// The record does not follow the one before it.
    Unchained,
    /// The content does not match the hash.
    Changed,
    /// The log ends before this record.
    Missing,
    /// The log continues, or ends differently, after the expected head.
    OtherEnd,
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequence = self.sequence;
        match self.fault {
            ChainFault::OutOfSequence => write!(f, "another record is in the place of record {sequence}"),
            ChainFault::Unchained => write!(f, "record {sequence} does not follow the one before it"),
            ChainFault::Changed => write!(f, "record {sequence} was changed after it was written"),
            ChainFault::Missing => write!(f, "the log ends before record {sequence}"),
            ChainFault::OtherEnd => write!(f, "the log has another end than was expected, from record {sequence} on"),
        }
    }
}

impl std::error::Error for ChainBreak {}

/// Verifies a whole log from its first record on, and returns its end.
///
/// # Behaviour
///
/// * A record that was changed, removed, added or moved is reported at the first sequence number that is affected.
/// * Records that were cut off at the end cannot be detected here: store a head elsewhere, and use [`verify_until`].
///   It also detects a log that was rewritten as a whole, including its hashes.
///
/// # Errors
///
/// The first break of the chain.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, Layer};
/// use vfs_layers::{Audit, MemorySink, verify, verify_until};
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let sink = MemorySink::new();
/// let audit = Audit::new(sink.clone());
/// let files = audit.layer(Arc::new(MemoryBackend::new()));
/// files.create_text("/a", "text").await?;
/// files.delete_file("/a").await?;
///
/// let mut records = sink.records();
/// assert_eq!(verify(&records), Ok(audit.head()));
/// records.pop();
/// assert!(verify(&records).is_ok());
/// assert_eq!(verify_until(&records, &audit.head()).expect_err("one is missing").sequence, 2);
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
pub fn verify<'a>(records: impl IntoIterator<Item = &'a AuditRecord>) -> Result<AuditHead, ChainBreak> {
    AuditHead::start().follow(records)
}

/// Verifies a whole log that must end at `expected`.
///
/// # Errors
///
/// The first break of the chain, also if the log ends before `expected`, has another record there, or continues after
/// it.
pub fn verify_until<'a>(
    records: impl IntoIterator<Item = &'a AuditRecord>,
    expected: &AuditHead,
) -> Result<(), ChainBreak> {
    let head = verify(records)?;
    if head == *expected {
        return Ok(());
    }
    Err(if head.sequence < expected.sequence {
        ChainBreak { sequence: head.sequence + 1, fault: ChainFault::Missing }
    } else {
        ChainBreak { sequence: expected.sequence, fault: ChainFault::OtherEnd }
    })
}

impl AuditHead {
    /// Returns the end of a log without records.
    pub fn start() -> Self {
        Self { sequence: 0, hash: "0".repeat(2 * blake3::OUT_LEN) }
    }

    /// Returns the end of a log whose last record is `record`.
    pub fn of(record: &AuditRecord) -> Self {
        Self { sequence: record.sequence, hash: record.hash.clone() }
    }

    /// Verifies records that follow this end, such as those of the next file of a log, and returns the new end.
    ///
    /// # Errors
    ///
    /// Those of [`verify`].
    pub fn follow<'a>(self, records: impl IntoIterator<Item = &'a AuditRecord>) -> Result<Self, ChainBreak> {
        let mut head = self;
        for record in records {
            let sequence = head.sequence.saturating_add(1);
            let broken = |fault| Err(ChainBreak { sequence, fault });
            if record.sequence != sequence {
                return broken(ChainFault::OutOfSequence);
            }
            if record.previous != head.hash {
                return broken(ChainFault::Unchained);
            }
            if !hash(record).is_ok_and(|hash| hash == record.hash) {
                return broken(ChainFault::Changed);
            }
            head = Self::of(record);
        }
        Ok(head)
    }

    /// Returns `record` with its sequence number and hashes as the next one after this end.
    pub(super) fn seal(&self, mut record: AuditRecord) -> Result<AuditRecord> {
        record.sequence = self.sequence.saturating_add(1);
        record.previous.clone_from(&self.hash);
        record.hash = hash(&record)?;
        Ok(record)
    }
}

fn hash(record: &AuditRecord) -> Result<String> {
    let unsealed = AuditRecord { hash: String::new(), ..record.clone() };
    let canonical = serde_json::to_vec(&unsealed).map_err(|error| {
        Error::new(ErrorKind::Internal, "internal: the audit record cannot be encoded as JSON").with_source(error)
    })?;
    Ok(blake3::hash(&canonical).to_hex().to_string())
}
