//! Audit log in files of a backend.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize as _;
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest};

use super::audit_log_files::{AuditLogFiles, AuditLogReader, MAX_RECORD_SIZE};
use super::audit_record::AuditRecord;
use super::audit_sinks::AuditSink;
use super::hash_chain::AuditHead;

/// Appends records to a file of any backend, one line of JSON each.
///
/// # Behaviour
///
/// * The file is created with the first record, and is ASCII: other characters are escaped.
/// * If a record would make the file longer than [`max_size`](Self::max_size), or than the process may write files,
///   the file is rotated: `audit.jsonl` is renamed to `audit.jsonl.120` if its last record has number 120. No file is
///   ever removed, and the chain continues from file to file.
/// * [`AuditSink::prepare`] writes to the file, so that a failure is noticed before an operation, and reserves 128
///   KiB in a file of the same name with the suffix `.reserve`. If the storage is full, that file is deleted to make
///   room for the records of running operations. Records that do not fit, such as those of 64 operations on paths of
///   4,000 bytes, wait in memory, and are lost if the process ends before there is room.
/// * No other process may write to the file. The backend must not be wrapped by the same [`Audit`](super::Audit),
///   because each record would wait for the record of its own write. The backend inside the layer is suitable.
/// * If the outcome of a write is unknown, because the call failed or was dropped, the end of the file is read before
///   the record is written again.
/// * The calls of the sink have no actor and no deadline; to set one, wrap the backend in a
///   [`Timeout`](crate::Timeout).
///
/// # Errors
///
/// Those of the backend's `write` and `rename`, and of `stat`, `ls` and `read` of existing files; `internal` at its
/// path if a line is not a record; `conflict` if another process wrote to the log.
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
    log: AuditLogFiles,
    max_size: u64,
    is_last_write_unknown: Arc<AtomicBool>,
    /// Whether the reserve exists.
    has_reserve: Arc<AtomicBool>,
    /// The version of the file after the last record of this sink.
    last_version: Arc<Mutex<Option<Version>>>,
}

impl BackendSink {
    /// Default of [`max_size`](Self::max_size): 4 MiB, because some backends copy a file to append to it.
    pub const DEFAULT_MAX_SIZE: u64 = 4 << 20;

    /// Returns a sink that appends to the file at `path` of `files`.
    pub fn new(files: Arc<dyn Backend>, path: VfsPath) -> Self {
        let log = AuditLogFiles { files, path };
        Self {
            log,
            max_size: Self::DEFAULT_MAX_SIZE,
            is_last_write_unknown: Arc::default(),
            has_reserve: Arc::default(),
            last_version: Arc::default(),
        }
    }

    /// Sets the size in bytes at which the file is rotated; at most the limit of the backend. A single record is
    /// written even if it is larger. Default [`BackendSink::DEFAULT_MAX_SIZE`].
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// Returns the end of the log in the files, to continue from; [`AuditHead::start`] if there are no records.
    ///
    /// # Errors
    ///
    /// Those of `stat`, `ls` and `read`; `internal` if the last line is not a record.
    pub async fn head(&self) -> Result<AuditHead> {
        Ok(self.log.last().await?.as_ref().map_or_else(AuditHead::start, AuditHead::of))
    }

    /// Returns the log file by file, oldest first, so that at most one file is in memory.
    ///
    /// # Errors
    ///
    /// Those of `stat`, `ls` and `read`.
    pub async fn parts(&self) -> Result<AuditLogReader> {
        AuditLogReader::new(self.log.clone()).await
    }

    /// Returns all records of all files, oldest first, all in memory; none if there are no files.
    ///
    /// # Errors
    ///
    /// Those of `stat`, `ls` and `read`; `internal` with the number of the first line that is not a record.
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

    /// Returns the size of the file, or an error if the last record does not have the hash `previous`: another
    /// process may have written it, and two records that follow the same one would break the chain for ever.
    async fn check_end(&self, previous: &str) -> Result<u64> {
        let stat = StatRequest::new(self.log.path.clone());
        let (version, size) = match self.log.files.stat(&OpContext::new(), stat).await {
            Ok(info) => (info.version, info.size),
            Err(error) if error.kind() == ErrorKind::NotFound => (None, 0),
            Err(error) => return Err(error),
        };
        let last_version = self.last_version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if (last_version.is_some() && last_version == version) || self.head().await?.hash == previous {
            return Ok(size);
        }
        let message = "another process wrote to this audit log, which has one writer at a time; stop the other process, or give each its own log";
        Err(Error::new(ErrorKind::Conflict, message).with_path(&self.log.path))
    }

    /// Returns the maximum size of a file.
    fn limit(&self) -> u64 {
        self.max_size.min(self.log.files.capabilities(&self.log.path).max_file_size)
    }

    async fn write(&self, line: Bytes) -> Result<()> {
        let request = WriteRequest::new(self.log.path.clone(), line).mode(WriteMode::Append);
        let written = self.log.files.write(&OpContext::new(), request).await?;
        *self.last_version.lock().unwrap_or_else(PoisonError::into_inner) = Some(written.version);
        Ok(())
    }

    /// Writes `line`, the record after number `last`, to the end of the file with `size` bytes, or to a new one.
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
            // An append may need as much room as the whole file; a new file needs room for this record only.
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
        let max = self.log.files.capabilities(&self.log.path).max_file_size;
        if max < MAX_RECORD_SIZE {
            let message = format!(
                "a file of the audit log may have {max} bytes here, but a record up to {MAX_RECORD_SIZE}; allow larger files"
            );
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&self.log.path));
        }
        if size > 0 && size >= self.limit() {
            self.log.rotate(head.sequence).await?;
        }
        self.log.ensure_reserve().await?;
        self.has_reserve.store(true, Ordering::Release);
        match self.write(Bytes::new()).await {
            // The file has reached the size limit of this process.
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
        record.serialize(&mut serde_json::Serializer::with_formatter(&mut line, AsciiFormatter)).map_err(|error| {
            Error::new(ErrorKind::Internal, "internal: the audit record cannot be encoded as JSON").with_source(error)
        })?;
        line.push(b'\n');
        let was_last_write_unknown = self.is_last_write_unknown.swap(true, Ordering::AcqRel);
        if !(was_last_write_unknown && self.log.last().await?.is_some_and(|last| last.hash == record.hash)) {
            let size = self.check_end(&record.previous).await?;
            self.write_or_rotate(line.into(), size, record.sequence.saturating_sub(1)).await?;
        }
        self.is_last_write_unknown.store(false, Ordering::Release);
        Ok(())
    }
}

/// JSON in ASCII only, so that every range of bytes is text in every encoding.
struct AsciiFormatter;

impl serde_json::ser::Formatter for AsciiFormatter {
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
