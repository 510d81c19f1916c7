//! What ties each record to the one before.

use std::fmt;

use serde::{Deserialize, Serialize};
use vfs_core::{Error, ErrorKind, Result};

use super::record::AuditRecord;

/// The end of a log: what the next record follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditHead {
    /// The sequence number of the last record; 0 where there is none.
    pub sequence: u64,
    /// The `hash` of the last record; 64 zeros where there is none.
    pub hash: String,
}

/// Where a log is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainBreak {
    /// The sequence number of the first record that is not as it was written, or is missing.
    pub sequence: u64,
    /// What is wrong with it.
    pub fault: ChainFault,
}

/// What is wrong with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainFault {
    /// A record with another sequence number is in its place: some were removed, added or put in another order.
    OutOfSequence,
    /// It does not follow the record before it.
    Unchained,
    /// Its content is not what its hash was made of.
    Changed,
    /// The log ends before it.
    Missing,
    /// The log goes on, or ends otherwise, after the head that was expected.
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

/// Checks a whole log, from its first record on, and gives its end.
///
/// # Behaviour
///
/// * A record that was changed, removed, added or moved is found, at the first sequence number that is affected.
/// * Records that were cut off at the end cannot be missed here: keep a head elsewhere, and use [`verify_until`]. The same
///   finds a log that somebody wrote anew as a whole, hashes and all.
///
/// # Errors
///
/// Where the chain is broken.
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

/// Checks a whole log that must end at `expected`.
///
/// # Errors
///
/// Where the chain is broken, ends before `expected`, or is another one there. A log that goes on after it is one, too.
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
    /// The end of a log that has no records.
    pub fn start() -> Self {
        Self { sequence: 0, hash: "0".repeat(2 * blake3::OUT_LEN) }
    }

    /// The end of a log whose last record is `record`.
    pub fn of(record: &AuditRecord) -> Self {
        Self { sequence: record.sequence, hash: record.hash.clone() }
    }

    /// Checks records that follow this end of a log, as where a log is kept in several files, and gives the new end.
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

    /// `record` as the next one after this end.
    pub(super) fn seal(&self, mut record: AuditRecord) -> Result<AuditRecord> {
        record.sequence = self.sequence.saturating_add(1);
        record.previous.clone_from(&self.hash);
        record.hash = hash(&record)?;
        Ok(record)
    }
}

fn hash(record: &AuditRecord) -> Result<String> {
    let unsealed = AuditRecord { hash: String::new(), ..record.clone() };
    let canonical = serde_json::to_vec(&unsealed)
        .map_err(|error| Error::new(ErrorKind::Internal, "a record has no JSON").with_source(error))?;
    Ok(blake3::hash(&canonical).to_hex().to_string())
}
