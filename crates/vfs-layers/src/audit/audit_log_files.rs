//! Files of an audit log: the active one, and those that it was rotated into.

use std::sync::Arc;

use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, ReadRequest, RenameRequest, Result, StatRequest,
    VfsPath, WriteMode, WriteRequest,
};

use super::audit_record::AuditRecord;

/// Maximum bytes of one record as a line: paths, the detail and names are bounded, and escaping makes at most six
/// bytes of one.
pub(super) const MAX_RECORD_SIZE: u64 = 128 << 10;

/// Bytes at the end of a file that are read first to find its last record.
const TAIL_SIZE: u64 = 64 << 10;

/// Bytes that are reserved for records of running operations if the storage becomes full.
const RESERVE_SIZE: usize = MAX_RECORD_SIZE as usize;

/// The files of one audit log, by the path of the active one.
#[derive(Debug, Clone)]
pub(super) struct AuditLogFiles {
    pub(super) files: Arc<dyn Backend>,
    pub(super) path: VfsPath,
}

impl AuditLogFiles {
    /// Returns the path of another file of the log: `/log/audit.jsonl` and `120` give `/log/audit.jsonl.120`.
    fn sibling(&self, suffix: impl std::fmt::Display) -> Result<VfsPath> {
        let name = self.path.name().ok_or_else(|| Error::at(ErrorKind::IsADirectory, &self.path))?;
        self.path.parent().unwrap_or_default().child(&format!("{name}.{suffix}"))
    }

    /// Returns the rotated files, oldest first, each with the sequence number of its last record.
    pub(super) async fn list_rotated(&self) -> Result<Vec<(u64, VfsPath)>> {
        let directory = self.path.parent().unwrap_or_default();
        let listed = match self.files.ls(&OpContext::new(), LsRequest::new(directory)).await {
            Ok(listed) => listed.entries,
            Err(error) if error.is_absence() => Vec::new(),
            Err(error) => return Err(error),
        };
        let prefix = format!("{}.", self.path.name().unwrap_or_default());
        let mut rotated = Vec::new();
        for entry in listed.into_iter().filter(|entry| !entry.is_dir) {
            let digits = entry.path.name().and_then(|name| name.strip_prefix(&prefix)).unwrap_or_default();
            // A number with leading zeros or a sign is no name of a rotated file.
            if let Some(last) = digits.parse::<u64>().ok().filter(|last| last.to_string() == digits) {
                rotated.push((last, entry.path));
            }
        }
        rotated.sort_unstable();
        Ok(rotated)
    }

    /// Renames the active file. Its last record has the sequence number `last`.
    pub(super) async fn rotate(&self, last: u64) -> Result<()> {
        let cx = OpContext::new();
        let to = self.sibling(last)?;
        let rename = RenameRequest::new(self.path.clone(), to.clone());
        match self.files.rename(&cx, rename.clone()).await {
            // If the backend renames by copy and delete, a crash between the two leaves both files.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.is_copy(&to).await? => {
                self.files.rename(&cx, rename.overwrite()).await.map(drop)
            }
            renamed => renamed.map(drop),
        }
    }

    async fn is_copy(&self, other: &VfsPath) -> Result<bool> {
        let (own, other) = ((self.size_of(&self.path).await?, &self.path), (self.size_of(other).await?, other));
        Ok(own.0 == other.0 && self.last_in(own.1).await? == self.last_in(other.1).await?)
    }

    /// Writes the reserve, unless it exists.
    pub(super) async fn ensure_reserve(&self) -> Result<()> {
        let path = self.sibling("reserve")?;
        if self.size_of(&path).await? == RESERVE_SIZE as u64 {
            return Ok(());
        }
        let mut content = vec![0; RESERVE_SIZE];
        // Random bytes, because a file system with compression would reserve nothing for zeros.
        fastrand::Rng::new().fill(&mut content);
        let request = WriteRequest::new(path, content).mode(WriteMode::Overwrite);
        self.files.write(&OpContext::new(), request).await.map(drop)
    }

    /// Deletes the reserve, and returns whether there was one.
    pub(super) async fn release_reserve(&self) -> bool {
        let Ok(path) = self.sibling("reserve") else { return false };
        self.files.delete(&OpContext::new(), DeleteRequest::new(path)).await.is_ok()
    }

    /// Returns the last record of the log; `None` if it has none.
    pub(super) async fn last(&self) -> Result<Option<AuditRecord>> {
        match self.last_in(&self.path).await? {
            Some(last) => Ok(Some(last)),
            // The active file was just rotated, or does not exist yet.
            None => match self.list_rotated().await?.pop() {
                Some((_, path)) => self.last_in(&path).await,
                None => Ok(None),
            },
        }
    }

    async fn last_in(&self, path: &VfsPath) -> Result<Option<AuditRecord>> {
        let size = self.size_of(path).await?;
        let mut tail = TAIL_SIZE;
        loop {
            let start = size.saturating_sub(tail);
            let text = self.read(path, start, size).await?;
            let body = text.strip_suffix(b"\n").unwrap_or(&text);
            match body.iter().rposition(|byte| *byte == b'\n') {
                Some(before) => return self.parse(path, &text[before + 1..], "the last line").map(Some),
                None if start > 0 => tail = tail.saturating_mul(2),
                None if text.is_empty() => return Ok(None),
                None => return self.parse(path, &text, "the last line").map(Some),
            }
        }
    }

    /// Returns the size of a file; 0 if it is missing.
    async fn size_of(&self, path: &VfsPath) -> Result<u64> {
        match self.files.stat(&OpContext::new(), StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.size),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, path: &VfsPath, start: u64, end: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut next = (start < end).then_some(start);
        while let Some(at) = next {
            let request = ReadRequest::new(path.clone()).bytes(at, Some(end));
            let part = self.files.read(&OpContext::new(), request).await?;
            bytes.extend_from_slice(part.content.as_bytes());
            next = part.next_byte.filter(|next| *next < end && *next > at);
        }
        Ok(bytes)
    }

    /// Returns all records of one file.
    pub(super) async fn part(&self, path: &VfsPath) -> Result<AuditLogPart> {
        let text = self.read(path, 0, self.size_of(path).await?).await?;
        let mut records = Vec::new();
        for (line, number) in text.split_inclusive(|byte| *byte == b'\n').zip(1_u64..) {
            match self.parse(path, line, &format!("line {number}")) {
                Ok(record) => records.push(record),
                Err(damage) => return Ok(AuditLogPart { records, damage: Some(damage) }),
            }
        }
        Ok(AuditLogPart { records, damage: None })
    }

    fn parse(&self, path: &VfsPath, line: &[u8], which: &str) -> Result<AuditRecord> {
        let file = if *path == self.path {
            String::new()
        } else {
            format!(" of the file '{}'", path.name().unwrap_or_default())
        };
        let bad = |message| Error::new(ErrorKind::Internal, format!("{which}{file} {message}")).with_path(path);
        let line = line.strip_suffix(b"\n").ok_or_else(|| bad("of the audit log is incomplete: it was truncated"))?;
        serde_json::from_slice(line).map_err(|error| bad("of the audit log is not a record").with_source(error))
    }
}

/// The records of one file of a log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditLogPart {
    /// The records, oldest first, up to the first line that is not a record.
    pub records: Vec<AuditRecord>,
    /// The error of that line.
    pub damage: Option<Error>,
}

/// A log, file by file; returned by [`BackendSink::parts`](super::BackendSink::parts).
#[derive(Debug)]
pub struct AuditLogReader {
    log: AuditLogFiles,
    rotated: std::vec::IntoIter<(u64, VfsPath)>,
    /// The active file, which is read first, as it may be rotated meanwhile.
    newest: Option<AuditLogPart>,
}

impl AuditLogReader {
    pub(super) async fn new(log: AuditLogFiles) -> Result<Self> {
        let newest = log.part(&log.path).await?;
        let first = newest.records.first().map_or(u64::MAX, |record| record.sequence);
        let mut rotated = log.list_rotated().await?;
        // A file that was rotated since then has the records of `newest`.
        rotated.retain(|(last, _)| *last < first);
        Ok(Self { log, rotated: rotated.into_iter(), newest: Some(newest) })
    }

    /// Returns the records of the next file, oldest first; `None` after the last one.
    ///
    /// # Errors
    ///
    /// Those of `stat` and `read`.
    pub async fn next_part(&mut self) -> Result<Option<AuditLogPart>> {
        match self.rotated.next() {
            Some((_, path)) => self.log.part(&path).await.map(Some),
            None => Ok(self.newest.take()),
        }
    }
}
