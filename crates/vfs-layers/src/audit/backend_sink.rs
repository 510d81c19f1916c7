//! A log in a file of a backend.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::Serialize as _;
use vfs_core::{
    Backend, Error, ErrorKind, OpContext, ReadRequest, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest,
};

use super::chain::AuditHead;
use super::record::AuditRecord;
use super::sinks::AuditSink;

/// How much of the end of a log is looked at first for its last record.
const TAIL: u64 = 64 << 10;

/// Appends records to a file of any backend, one line of JSON each.
///
/// # Behaviour
///
/// * The file is made with the first record. It is ASCII: other characters are escaped.
/// * Nobody else should write to it. Its backend must not be one that the same [`Audit`](super::Audit) is around, as each
///   record would wait for the record of its own writing, for ever. The backend inside of the layer is a good place.
/// * Where it is not known whether a record was written, because the call failed or was dropped, it looks at the end of the
///   file before it writes the record again.
/// * Its calls have no actor and no deadline: put a [`Timeout`](crate::Timeout) around the backend to have one.
///
/// # Errors
///
/// Those of the backend's `write`, and of `stat` and `read` where it looks at what is there; `internal` at its path where a
/// line is not a record.
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
    files: Arc<dyn Backend>,
    path: VfsPath,
    is_unsure: Arc<AtomicBool>,
    /// The version of the file after the last record of this sink.
    seen: Arc<Mutex<Option<Version>>>,
}

impl BackendSink {
    /// Appends to the file at `path` of `files`.
    pub fn new(files: Arc<dyn Backend>, path: VfsPath) -> Self {
        Self { files, path, is_unsure: Arc::new(AtomicBool::new(false)), seen: Arc::default() }
    }

    /// The end of the log that is in the file, to go on from; [`AuditHead::start`] where the file is missing or empty.
    ///
    /// # Errors
    ///
    /// Those of `stat` and `read`; `internal` where the last line is not a record.
    pub async fn head(&self) -> Result<AuditHead> {
        Ok(self.last().await?.as_ref().map_or_else(AuditHead::start, AuditHead::of))
    }

    /// All records of the file, the oldest first; none where it is missing. They are all in memory at once.
    ///
    /// # Errors
    ///
    /// Those of `stat` and `read`; `internal` with the number of the line where one is not a record.
    pub async fn records(&self) -> Result<Vec<AuditRecord>> {
        match self.records_before_damage().await? {
            (records, None) => Ok(records),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// The records before the first line that is none, and what is wrong with that line; all of them where none is damaged.
    ///
    /// # Errors
    ///
    /// Those of `stat` and `read`.
    pub async fn records_before_damage(&self) -> Result<(Vec<AuditRecord>, Option<Error>)> {
        let text = self.read(0, self.size().await?).await?;
        let mut records = Vec::new();
        for (line, number) in text.split_inclusive(|byte| *byte == b'\n').zip(1_u64..) {
            match self.parse(line, &format!("line {number}")) {
                Ok(record) => records.push(record),
                Err(damage) => return Ok((records, Some(damage))),
            }
        }
        Ok((records, None))
    }

    /// Refuses a record that does not follow the last one in the file, which another process may have written: two that go
    /// on from one record would break the chain for ever.
    async fn check_end(&self, record: &AuditRecord) -> Result<()> {
        let there = match self.files.stat(&OpContext::new(), StatRequest::new(self.path.clone())).await {
            Ok(info) => info.version,
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if (seen.is_some() && seen == there) || self.head().await?.hash == record.previous {
            return Ok(());
        }
        let message = "another process wrote to this log; one at a time may, so end the other, or give each a log";
        Err(Error::new(ErrorKind::Conflict, message).with_path(&self.path))
    }

    async fn last(&self) -> Result<Option<AuditRecord>> {
        let size = self.size().await?;
        let mut tail = TAIL;
        loop {
            let start = size.saturating_sub(tail);
            let text = self.read(start, size).await?;
            let body = text.strip_suffix(b"\n").unwrap_or(&text);
            match body.iter().rposition(|byte| *byte == b'\n') {
                Some(before) => return self.parse(&text[before + 1..], "the last line").map(Some),
                None if start > 0 => tail = tail.saturating_mul(2),
                None if text.is_empty() => return Ok(None),
                None => return self.parse(&text, "the last line").map(Some),
            }
        }
    }

    async fn size(&self) -> Result<u64> {
        match self.files.stat(&OpContext::new(), StatRequest::new(self.path.clone())).await {
            Ok(info) => Ok(info.size),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut next = (start < end).then_some(start);
        while let Some(at) = next {
            let request = ReadRequest::new(self.path.clone()).bytes(at, Some(end));
            let part = self.files.read(&OpContext::new(), request).await?;
            bytes.extend_from_slice(part.content.as_bytes());
            next = part.next_byte.filter(|next| *next < end && *next > at);
        }
        Ok(bytes)
    }

    fn parse(&self, line: &[u8], which: &str) -> Result<AuditRecord> {
        let bad = |message| Error::new(ErrorKind::Internal, format!("{which} {message}")).with_path(&self.path);
        let line = line.strip_suffix(b"\n").ok_or_else(|| bad("of the audit log is not complete; it was cut"))?;
        serde_json::from_slice(line).map_err(|error| bad("of the audit log is not a record").with_source(error))
    }
}

#[async_trait]
impl AuditSink for BackendSink {
    async fn append(&self, record: &AuditRecord) -> Result<()> {
        let mut line = Vec::new();
        record
            .serialize(&mut serde_json::Serializer::with_formatter(&mut line, Ascii))
            .map_err(|error| Error::new(ErrorKind::Internal, "a record has no JSON").with_source(error))?;
        line.push(b'\n');
        let was_unsure = self.is_unsure.swap(true, Ordering::AcqRel);
        if !(was_unsure && self.last().await?.is_some_and(|last| last.hash == record.hash)) {
            self.check_end(record).await?;
            let request = WriteRequest::new(self.path.clone(), line).mode(WriteMode::Append);
            let written = self.files.write(&OpContext::new(), request).await?;
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(written.version);
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
