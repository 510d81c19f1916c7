//! Values of one namespace.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::{Error, Result, VfsPath};

use super::change_log::MemoryChangeLog;
use super::operation_records::MemoryOperationRecords;
use super::staging::StagedContents;
use crate::store::{
    BatchOutcome, ChangeRecord, Condition, Entry, ListDepth, ListRequest, NewValue, OperationRecord, Page, PageToken,
    Precondition, PutOutcome, StagingToken, StoredMeta, StoredValue, ValueContent, Write, version_of,
};

/// Number of digits of the fraction of a second in stored times.
const MICROSECONDS: u16 = 6;

/// Content and metadata of a value.
#[derive(Debug, Clone)]
struct MemoryValue {
    content: Bytes,
    stored: StoredMeta,
}

impl MemoryValue {
    fn new(content: Bytes, created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> Self {
        let modified_at = modified_at.trunc_subsecs(MICROSECONDS);
        let stored = StoredMeta::new(content.len() as u64, version_of(&content), modified_at)
            .created_at(created_at.trunc_subsecs(MICROSECONDS));
        Self { content, stored }
    }
}

/// Values of one namespace with their change log, operation records and staged contents.
#[derive(Debug, Default)]
pub(super) struct MemoryNamespace {
    values: BTreeMap<VfsPath, MemoryValue>,
    pub(super) log: MemoryChangeLog,
    pub(super) operations: MemoryOperationRecords,
    /// Contents that are not put yet.
    pub(super) staged: StagedContents,
}

/// Writes of a batch that were applied so far, for its outcome and for a rollback.
#[derive(Default)]
struct BatchProgress {
    now: Vec<StoredMeta>,
    records: Vec<ChangeRecord>,
    /// Previous value of each path that was changed, in the order of the changes.
    before: Vec<(VfsPath, Option<MemoryValue>)>,
    /// The staged contents that were put.
    staged: Vec<StagingToken>,
}

/// Reason why a batch is rolled back.
enum BatchFailure {
    /// A write needs a value at this path, and there is none.
    Missing(VfsPath),
    Error(Error),
}

impl MemoryNamespace {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn head(&self, path: &VfsPath) -> Option<&StoredMeta> {
        self.values.get(path).map(|value| &value.stored)
    }

    pub(super) fn get(&self, path: &VfsPath, range: Option<Range<u64>>) -> Option<StoredValue> {
        let value = self.values.get(path)?;
        let content = range.map_or_else(|| value.content.clone(), |range| part(&value.content, &range));
        Some(StoredValue::new(value.stored.clone(), content))
    }

    pub(super) fn put(&mut self, path: &VfsPath, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        self.one(Write::Put(path.clone(), value), path, expected)
    }

    pub(super) fn delete(&mut self, path: &VfsPath, expected: &Precondition) -> Result<PutOutcome> {
        self.one(Write::Delete(path.clone()), path, expected)
    }

    /// A batch of one `write` at `path`.
    fn one(&mut self, write: Write, path: &VfsPath, expected: &Precondition) -> Result<PutOutcome> {
        self.batch(&[Condition::At(path.clone(), expected.clone())], vec![write])?.into_single()
    }

    pub(super) fn batch(&mut self, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        for condition in conditions {
            let (path, holds) = match condition {
                Condition::At(path, expected) => (path, expected.holds(self.head(path))),
                Condition::NothingBelow(path) => (path, self.after(path, &prefix_of(path)).next().is_none()),
            };
            if !holds {
                return Ok(BatchOutcome::PreconditionFailed(path.clone(), self.head(path).cloned()));
            }
        }
        let mut done = BatchProgress::default();
        for write in writes {
            if let Err(failure) = self.make(write, &mut done) {
                self.roll_back(done);
                return match failure {
                    BatchFailure::Missing(path) => Ok(BatchOutcome::PreconditionFailed(path, None)),
                    BatchFailure::Error(error) => Err(error),
                };
            }
        }
        self.log.append(done.records);
        for token in done.staged {
            self.staged.remove(&token);
        }
        Ok(BatchOutcome::Applied(done.now))
    }

    fn make(&mut self, write: Write, done: &mut BatchProgress) -> Result<(), BatchFailure> {
        match write {
            Write::Put(path, value) => {
                let content = self.content(value.content, done).map_err(BatchFailure::Error)?;
                self.place(path, MemoryValue::new(content, value.created_at, value.modified_at), done);
            }
            Write::Delete(path) => {
                let value = self.take(&path, done).map_err(BatchFailure::Missing)?;
                done.now.push(value.stored);
                done.records.push(ChangeRecord::Removed(path));
            }
            Write::Move { from, to } => {
                let value = self.take(&from, done).map_err(BatchFailure::Missing)?;
                done.now.push(value.stored.clone());
                done.records.push(ChangeRecord::Moved { from, to: to.clone(), stored: value.stored.clone() });
                done.before.push((to.clone(), self.values.insert(to, value)));
            }
            Write::Copy { from, to, at } => {
                let content = self.values.get(&from).ok_or(BatchFailure::Missing(from))?.content.clone();
                self.place(to, MemoryValue::new(content, at, at), done);
            }
        }
        Ok(())
    }

    /// Returns the bytes of a content; those of a staged one remain until the batch is applied.
    fn content(&self, content: ValueContent, done: &mut BatchProgress) -> Result<Bytes> {
        match content {
            ValueContent::Bytes(bytes) => Ok(bytes),
            ValueContent::Staged(staged) => {
                let bytes = self.staged.get(&staged)?;
                done.staged.push(staged.token);
                Ok(bytes)
            }
        }
    }

    fn place(&mut self, path: VfsPath, value: MemoryValue, done: &mut BatchProgress) {
        let stored = value.stored.clone();
        let before = self.values.insert(path.clone(), value);
        let change = if before.is_some() { ChangeRecord::Changed } else { ChangeRecord::Created };
        done.records.push(change(path.clone(), stored.clone()));
        done.now.push(stored);
        done.before.push((path, before));
    }

    fn take(&mut self, path: &VfsPath, done: &mut BatchProgress) -> Result<MemoryValue, VfsPath> {
        let value = self.values.remove(path).ok_or_else(|| path.clone())?;
        done.before.push((path.clone(), Some(value.clone())));
        Ok(value)
    }

    fn roll_back(&mut self, done: BatchProgress) {
        for (path, before) in done.before.into_iter().rev() {
            match before {
                Some(value) => self.values.insert(path, value),
                None => self.values.remove(&path),
            };
        }
    }

    pub(super) fn batch_once(
        &mut self,
        record: &OperationRecord,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<Option<BatchOutcome>> {
        if self.operations.get(&record.key).is_some() {
            return Ok(None);
        }
        let outcome = self.batch(conditions, writes)?;
        if matches!(outcome, BatchOutcome::Applied(_)) {
            self.operations.insert(record.clone());
        }
        Ok(Some(outcome))
    }

    pub(super) fn list(&self, request: &ListRequest) -> Page {
        let mut page = Page::default();
        let mut seen =
            request.from.as_ref().map_or_else(|| prefix_of(&request.below), |token| token.as_str().to_owned());
        while let Some((path, value)) = self.after(&request.below, &seen).next() {
            if page.entries.len() + page.directories.len() >= request.limit.max(1) {
                page.next = Some(PageToken::new(seen));
                break;
            }
            match directory_of(path, request) {
                Some(directory) => {
                    seen = prefix_of(&directory);
                    page.directories.push(directory);
                }
                None => {
                    seen = path.as_str().to_owned();
                    page.entries.push(Entry { path: path.clone(), stored: value.stored.clone() });
                }
            }
        }
        // In the order of keys `a-b/x` is before `a/x`, but in the order of names `a` is before `a-b`.
        page.directories.sort_unstable();
        page
    }

    /// Returns the values at and below `prefix`.
    pub(super) fn below_or_at(&self, prefix: &VfsPath) -> Vec<(VfsPath, Bytes)> {
        let at = self.values.get_key_value(prefix.as_str());
        let all = at.into_iter().chain(self.after(prefix, &prefix_of(prefix)));
        all.map(|(path, value)| (path.clone(), value.content.clone())).collect()
    }

    /// Returns the values below `directory` whose paths are greater than `seen`. A `seen` with a trailing `/` below `directory` skips all
    /// paths with that prefix.
    fn after<'a>(
        &'a self,
        directory: &VfsPath,
        seen: &str,
    ) -> impl Iterator<Item = (&'a VfsPath, &'a MemoryValue)> + use<'a> {
        let prefix = prefix_of(directory);
        let passed = seen.strip_suffix('/').filter(|_| seen.len() > prefix.len()).map(|name| format!("{name}0"));
        let start = match &passed {
            // '0' is the character after '/'.
            Some(next) => Bound::Included(next.as_str()),
            None => Bound::Excluded(seen.max(prefix.as_str())),
        };
        let rest = self.values.range::<str, _>((start, Bound::Unbounded));
        rest.take_while(move |(path, _)| path.as_str().starts_with(&prefix))
    }
}

/// Returns the common prefix of the paths below `directory`.
fn prefix_of(directory: &VfsPath) -> String {
    if directory.is_root() { "/".to_owned() } else { format!("{directory}/") }
}

/// Returns the directory that contains the value at `path` in a listing of one level, or `None` if the value itself is an entry.
fn directory_of(path: &VfsPath, request: &ListRequest) -> Option<VfsPath> {
    if request.depth == ListDepth::All {
        return None;
    }
    let (name, _) = path.strip_prefix(&request.below)?.split_once('/')?;
    request.below.child(name).ok()
}

/// Returns the part of `content` in `range`, up to the end of the content.
fn part(content: &Bytes, range: &Range<u64>) -> Bytes {
    let cut = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
    let (start, end) = (cut(range.start), cut(range.end));
    content.slice(start..end.max(start))
}
