//! Values of one namespace.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::{Error, Result, VfsPath};

use super::log::MemoryLog;
use super::operations::OperationRecords;
use super::staging::StagedContents;
use crate::store::{
    BatchOutcome, ChangeRecord, Condition, Entry, ListDepth, ListRequest, NewValue, OperationRecord, Page, PageToken,
    Precondition, PutOutcome, StagingToken, StoredMeta, StoredValue, ValueContent, Write, version_of,
};

/// How many digits of a second's fraction are kept.
const MICROSECONDS: u16 = 6;

/// A value as it is held.
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

/// The values of one namespace, and what became of them.
#[derive(Debug, Default)]
pub(super) struct NamespaceMap {
    values: BTreeMap<VfsPath, MemoryValue>,
    pub(super) log: MemoryLog,
    pub(super) operations: OperationRecords,
    /// Contents that are not put yet.
    pub(super) staged: StagedContents,
}

/// What a batch did so far.
#[derive(Default)]
struct BatchProgress {
    now: Vec<StoredMeta>,
    records: Vec<ChangeRecord>,
    /// What was at each path before it was changed, in the order of the changes.
    before: Vec<(VfsPath, Option<MemoryValue>)>,
    /// The staged contents that were put.
    staged: Vec<StagingToken>,
}

/// Why a batch ends early.
enum BatchFailure {
    /// Nothing is at this path, and something should be.
    Missing(VfsPath),
    Error(Error),
}

impl NamespaceMap {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn head(&self, path: &VfsPath) -> Option<&StoredMeta> {
        self.values.get(path).map(|held| &held.stored)
    }

    pub(super) fn get(&self, path: &VfsPath, range: Option<Range<u64>>) -> Option<StoredValue> {
        let held = self.values.get(path)?;
        let content = range.map_or_else(|| held.content.clone(), |range| part(&held.content, &range));
        Some(StoredValue::new(held.stored.clone(), content))
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
                Condition::NothingBelow(path) => (path, self.after(path, &inside(path)).next().is_none()),
            };
            if !holds {
                return Ok(BatchOutcome::PreconditionFailed(path.clone(), self.head(path).cloned()));
            }
        }
        let mut done = BatchProgress::default();
        for write in writes {
            if let Err(failure) = self.make(write, &mut done) {
                self.undo(done);
                return match failure {
                    BatchFailure::Missing(path) => Ok(BatchOutcome::PreconditionFailed(path, None)),
                    BatchFailure::Error(error) => Err(error),
                };
            }
        }
        self.log.tell(done.records);
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
                let held = self.take(&path, done).map_err(BatchFailure::Missing)?;
                done.now.push(held.stored);
                done.records.push(ChangeRecord::Removed(path));
            }
            Write::Move { from, to } => {
                let held = self.take(&from, done).map_err(BatchFailure::Missing)?;
                done.now.push(held.stored.clone());
                done.records.push(ChangeRecord::Moved { from, to: to.clone(), stored: held.stored.clone() });
                done.before.push((to.clone(), self.values.insert(to, held)));
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

    fn place(&mut self, path: VfsPath, held: MemoryValue, done: &mut BatchProgress) {
        let stored = held.stored.clone();
        let before = self.values.insert(path.clone(), held);
        let change = if before.is_some() { ChangeRecord::Changed } else { ChangeRecord::Created };
        done.records.push(change(path.clone(), stored.clone()));
        done.now.push(stored);
        done.before.push((path, before));
    }

    fn take(&mut self, path: &VfsPath, done: &mut BatchProgress) -> Result<MemoryValue, VfsPath> {
        let held = self.values.remove(path).ok_or_else(|| path.clone())?;
        done.before.push((path.clone(), Some(held.clone())));
        Ok(held)
    }

    fn undo(&mut self, done: BatchProgress) {
        for (path, before) in done.before.into_iter().rev() {
            match before {
                Some(held) => self.values.insert(path, held),
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
        let mut seen = request.from.as_ref().map_or_else(|| inside(&request.below), |token| token.as_str().to_owned());
        while let Some((path, held)) = self.after(&request.below, &seen).next() {
            if page.entries.len() + page.directories.len() >= request.limit.max(1) {
                page.next = Some(PageToken::new(seen));
                break;
            }
            match directory_of(path, request) {
                Some(directory) => {
                    seen = inside(&directory);
                    page.directories.push(directory);
                }
                None => {
                    seen = path.as_str().to_owned();
                    page.entries.push(Entry { path: path.clone(), stored: held.stored.clone() });
                }
            }
        }
        // Those in a directory `a` come after a directory `a-b`, whose own name is after it.
        page.directories.sort_unstable();
        page
    }

    /// The values at and below `prefix`.
    pub(super) fn below_or_at(&self, prefix: &VfsPath) -> Vec<(VfsPath, Bytes)> {
        let at = self.values.get_key_value(prefix.as_str());
        let all = at.into_iter().chain(self.after(prefix, &inside(prefix)));
        all.map(|(path, held)| (path.clone(), held.content.clone())).collect()
    }

    /// The values below `directory` that come after `seen`: after a value, or after all that begins with it where it ends
    /// in `/` and is longer than the directory's own beginning.
    fn after<'a>(
        &'a self,
        directory: &VfsPath,
        seen: &str,
    ) -> impl Iterator<Item = (&'a VfsPath, &'a MemoryValue)> + use<'a> {
        let beginning = inside(directory);
        let passed = seen.strip_suffix('/').filter(|_| seen.len() > beginning.len()).map(|name| format!("{name}0"));
        let start = match &passed {
            // '0' is what comes next after '/'.
            Some(next) => Bound::Included(next.as_str()),
            None => Bound::Excluded(seen.max(beginning.as_str())),
        };
        let rest = self.values.range::<str, _>((start, Bound::Unbounded));
        rest.take_while(move |(path, _)| path.as_str().starts_with(&beginning))
    }
}

/// What the paths below `directory` begin with.
fn inside(directory: &VfsPath) -> String {
    if directory.is_root() { "/".to_owned() } else { format!("{directory}/") }
}

/// The directory that stands for the value at `path` in a listing of one level.
fn directory_of(path: &VfsPath, request: &ListRequest) -> Option<VfsPath> {
    if request.depth == ListDepth::All {
        return None;
    }
    let (name, _) = path.strip_prefix(&request.below)?.split_once('/')?;
    request.below.child(name).ok()
}

/// The part of `content` that `range` asks for, cut at its end.
fn part(content: &Bytes, range: &Range<u64>) -> Bytes {
    let cut = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
    let (start, end) = (cut(range.start), cut(range.end));
    content.slice(start..end.max(start))
}
