//! A log in files of a backend.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize as _;
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest};

use super::chain::AuditHead;
use super::log_files::{AuditParts, LogFiles, MAX_RECORD};
use super::record::AuditRecord;
use super::sinks::AuditSink;

/// Appends records to a file of any backend, one line of JSON each.
///
/// # Behaviour
///
/// * The file is made with the first record. It is ASCII: other characters are escaped.
/// * Where a record would make the file longer than [`max_size`](Self::max_size), or than the process may write files, the
///   file is renamed and a new one begun: `audit.jsonl` becomes `audit.jsonl.120` where its last record is number 120. No
///   file is ever removed, and the chain goes on from file to file.
/// * [`AuditSink::prepare`] writes to the file, so that one that cannot be written is noticed before an operation, and sets
///   128 KiB aside in a file of the same name with `.reserve` behind it. Where the storage is full these make room for the
///   records of the operations that are under way. Records that do not fit, as those of 64 operations on paths of 4,000
///   bytes, wait in memory, and are lost if the process ends before there is room.
/// * Nobody else should write to it. Its backend must not be one that the same [`Audit`](super::Audit) is around, as each
///   record would wait for the record of its own writing, for ever. The backend inside of the layer is a good place.
/// * Where it is not known whether a record was written, because the call failed or was dropped, it looks at the end of the
///   file before it writes the record again.
/// * Its calls have no actor and no deadline: put a [`Timeout`](crate::Timeout) around the backend to have one.
///
/// # Errors
///
/// Those of the backend's `write` and `rename`, and of `stat`, `ls` and `read` where it looks at what is there; `internal` at
/// its path where a line is not a record; `conflict` where another process wrote to the log.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, Layer, VfsPath};
/// use vfs_layers::{Audit, BackendSink, verify};
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let sink = BackendSink::new(Arc::new(MemoryBackend::new()), VfsPath::parse("/audit.jsonl")?);
/// let audit = Audit::resuming(sink.clone(), sink.head().await?);
/// let files = audit.layer(Arc::new(MemoryBackend::new()));
/// files.create_text("/a", "text").await?;
/// assert_eq!(verify(&sink.records().await?), Ok(audit.head()));
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct BackendSink {
    log: LogFiles,
    max_size: u64,
    is_unsure: Arc<AtomicBool>,
    /// Whether room is set aside.
    has_reserve: Arc<AtomicBool>,
    /// The version of the file after the last record of this sink.
    seen: Arc<Mutex<Option<Version>>>,
}

impl BackendSink {
    /// 4 MiB, the default of [`max_size`](Self::max_size). Some backends copy a file to append to it.
    pub const DEFAULT_MAX_SIZE: u64 = 4 << 20;

    /// Appends to the file at `path` of `files`.
    pub fn new(files: Arc<dyn Backend>, path: VfsPath) -> Self {
        let log = LogFiles { files, path };
        Self {
            log,
            max_size: Self::DEFAULT_MAX_SIZE,
            is_unsure: Arc::default(),
            has_reserve: Arc::default(),
            seen: Arc::default(),
        }
    }

    /// Sets the size in bytes at which the log goes on in a new file; at most what a file of the backend may have.
    /// Default [`BackendSink::DEFAULT_MAX_SIZE`]. One record is written however small it is.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// The end of the log that is in the files, to go on from; [`AuditHead::start`] where there are no records.
    ///
    /// # Errors
    ///
    /// Those of `stat`, `ls` and `read`; `internal` where the last line is not a record.
    pub async fn head(&self) -> Result<AuditHead> {
        Ok(self.log.last().await?.as_ref().map_or_else(AuditHead::start, AuditHead::of))
    }

    /// The log file by file, the oldest first, so that no more than one file is in memory at once.
    ///
    /// # Errors
    ///
    /// Those of `stat`, `ls` and `read`.
    pub async fn parts(&self) -> Result<AuditParts> {
        AuditParts::new(self.log.clone()).await
    }

    /// All records of all files, the oldest first; none where there are no files. They are all in memory at once.
    ///
    /// # Errors
    ///
    /// Those of `stat`, `ls` and `read`; `internal` with the number of the line where one is not a record.
    pub async fn records(&self) -> Result<Vec<AuditRecord>> {
        let mut records = Vec::new();
        let mut parts = self.parts().await?;
        while let Some(mut part) = parts.next_part().await? {
            records.append(&mut part.records);
            if let Some(damage) = part.damage {
                return Err(damage);
            }
        }
        Ok(records)
    }

    /// Refuses to go on where the last record of the log is not the one with the hash `previous`: another process may have
    /// written it, and two records that go on from one would break the chain for ever. Returns the size of the file.
    async fn check_end(&self, previous: &str) -> Result<u64> {
        let stat = StatRequest::new(self.log.path.clone());
        let (version, size) = match self.log.files.stat(&OpContext::new(), stat).await {
            Ok(info) => (info.version, info.size),
            Err(error) if error.kind() == ErrorKind::NotFound => (None, 0),
            Err(error) => return Err(error),
        };
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if (seen.is_some() && seen == version) || self.head().await?.hash == previous {
            return Ok(size);
        }
        let message = "another process wrote to this log; one at a time may, so end the other, or give each a log";
        Err(Error::new(ErrorKind::Conflict, message).with_path(&self.log.path))
    }

    /// The most bytes of a file.
    fn limit(&self) -> u64 {
        self.max_size.min(self.log.files.capabilities(&self.log.path).max_file_size)
    }

    async fn write(&self, line: Bytes) -> Result<()> {
        let request = WriteRequest::new(self.log.path.clone(), line).mode(WriteMode::Append);
        let written = self.log.files.write(&OpContext::new(), request).await?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(written.version);
        Ok(())
    }

    /// Writes `line`, the record after number `last`, behind the `size` bytes of the file, or into a new one.
    async fn write_or_rotate(&self, line: Bytes, size: u64, last: u64) -> Result<()> {
        let is_rotated = size > 0 && size.saturating_add(line.len() as u64) > self.limit();
        if is_rotated {
            self.log.rotate(last).await?;
        }
        let mut can_rotate = size > 0 && !is_rotated;
        let mut has_reserve = true;
        loop {
            match self.write(line.clone()).await {
                Err(error) if error.kind() == ErrorKind::TooLarge && can_rotate => {}
                Err(error) if is_full(&error) && has_reserve && self.log.release_reserve().await => {
                    has_reserve = false;
                    self.has_reserve.store(false, Ordering::Release);
                }
                written => return written,
            }
            // To append may take as much room as the file has; a new one takes room for this record alone.
            if can_rotate {
                self.log.rotate(last).await?;
                can_rotate = false;
            }
        }
    }
}

/// Returns whether a write failed because the storage has no room left.
fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[async_trait]
impl AuditSink for BackendSink {
    async fn prepare(&self, head: &AuditHead) -> Result<()> {
        let size = self.check_end(&head.hash).await?;
        let most = self.log.files.capabilities(&self.log.path).max_file_size;
        if most < MAX_RECORD {
            let message =
                format!("a file may have {most} bytes here, and a record up to {MAX_RECORD}; allow larger files");
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&self.log.path));
        }
        if size > 0 && size >= self.limit() {
            self.log.rotate(head.sequence).await?;
        }
        self.log.keep_reserve().await?;
        self.has_reserve.store(true, Ordering::Release);
        match self.write(Bytes::new()).await {
            // The process may not write files as long as this one is already.
            Err(error) if error.kind() == ErrorKind::TooLarge && size > 0 => {
                self.log.rotate(head.sequence).await?;
                self.write(Bytes::new()).await
            }
            written => written,
        }
    }

    fn is_prepared(&self) -> bool {
        self.has_reserve.load(Ordering::Acquire)
    }

    async fn append(&self, record: &AuditRecord) -> Result<()> {
        let mut line = Vec::new();
        record
            .serialize(&mut serde_json::Serializer::with_formatter(&mut line, Ascii))
            .map_err(|error| Error::new(ErrorKind::Internal, "a record has no JSON").with_source(error))?;
        line.push(b'\n');
        let was_unsure = self.is_unsure.swap(true, Ordering::AcqRel);
        if !(was_unsure && self.log.last().await?.is_some_and(|last| last.hash == record.hash)) {
            let size = self.check_end(&record.previous).await?;
            self.write_or_rotate(line.into(), size, record.sequence.saturating_sub(1)).await?;
        }
        self.is_unsure.store(false, Ordering::Release);
        Ok(())
    }
}

/// JSON in which every character is ASCII, so that each range of its bytes is text, the same in every encoding.
struct Ascii;

impl serde_json::ser::Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for character in fragment.chars() {
            if character.is_ascii() {
                write!(writer, "{character}")?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}
