//! Undo log: a record of the files that each change is about to touch, written before it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{
    DeleteRequest, Error, ErrorKind, OpContext, Operation, OutputRef, RequestRef, Result, TransferMode, Version,
    VfsPath,
};

use super::Keeper;
use super::apply::{Versions, there};
use super::files::{Files, Image, Images, Last, Tree, for_cleanup};
use super::store::RecordKind;

/// Undo record of one operation: `undo/<number>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UndoRecord {
    pub(super) number: u64,
    pub(super) time: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) actor: Option<String>,
    pub(super) operation: Operation,
    /// Paths of the request.
    pub(super) paths: Vec<VfsPath>,
    /// Real paths at and below which the operation changes files.
    pub(super) roots: Vec<VfsPath>,
    pub(super) files: BTreeMap<VfsPath, TouchedFile>,
    /// Whether the result of the operation is known.
    pub(super) is_done: bool,
}

/// State of one file before and after an operation; `None` stands for no file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TouchedFile {
    pub(super) before: Option<Image>,
    pub(super) after: Option<Version>,
}

/// Position in the undo log, for the holder of the lock of changes.
#[derive(Debug, Default)]
pub(super) struct UndoCursor {
    /// Number of the next record; `None` if it has to be read from the store.
    next: Option<u64>,
    /// Number of a record whose operation has no known end.
    open: Option<u64>,
}

impl UndoCursor {
    /// Discards the position, so that it is read from the store again.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl UndoRecord {
    fn begin(cx: &OpContext, operation: Operation, paths: Vec<VfsPath>, roots: Vec<VfsPath>) -> Self {
        let actor = cx.actor().map(str::to_owned);
        Self { number: 0, time: Utc::now(), actor, operation, paths, roots, files: BTreeMap::new(), is_done: false }
    }

    pub(super) fn with_before(mut self, before: Images) -> Self {
        for (path, image) in before {
            self.files.entry(path).or_default().before = Some(image);
        }
        self
    }

    /// Returns the present state of the files that the operation may have touched.
    pub(super) async fn look(&self, files: &Files<'_>) -> Result<Tree> {
        let mut now = Tree::new();
        for root in &self.roots {
            now.extend(files.below(root).await?);
        }
        for path in self.files.keys().filter(|path| !self.roots.iter().any(|root| path.starts_with(root))) {
            if let Some(seen) = files.file(path).await? {
                now.insert(path.clone(), seen);
            }
        }
        Ok(now)
    }

    /// Sets `after` as the result of the operation.
    pub(super) fn end(&mut self, after: BTreeMap<VfsPath, Version>) {
        for touched in self.files.values_mut() {
            touched.after = None;
        }
        for (path, version) in after {
            self.files.entry(path).or_default().after = Some(version);
        }
        // Paths without a file before and after do not belong to the operation.
        self.files.retain(|_, touched| touched.before.is_some() || touched.after.is_some());
        self.is_done = true;
    }

    fn has_happened(&self) -> bool {
        self.files.values().any(|touched| touched.before.as_ref().map(|image| &image.version) != touched.after.as_ref())
    }
}

impl Keeper {
    /// Writes the undo record of `action` before it starts. Returns `None` if the backend will refuse the operation.
    pub(super) async fn begin(
        &self,
        files: &Files<'_>,
        turn: &mut UndoCursor,
        action: RequestRef<'_>,
    ) -> Result<Option<UndoRecord>> {
        if self.max_records == 0 {
            return Ok(None);
        }
        self.settle(files, turn).await?;
        let Some(roots) = roots(files, action).await? else { return Ok(None) };
        let mut seen = Tree::new();
        for root in &roots {
            seen.extend(files.below(root).await?);
        }
        let known = if seen.len() > 1 { self.newest(files.cx).await? } else { Images::new() };
        let before = self.store.keep(files, seen, &known).await?;
        let record = UndoRecord::begin(files.cx, action.operation(), action.paths().cloned().collect(), roots);
        self.record(files.cx, turn, record.with_before(before)).await.map(Some)
    }

    /// Writes the undo record of a restore that replaces the files of `before` and creates those at `made`.
    pub(super) async fn begin_restore(
        &self,
        cx: &OpContext,
        turn: &mut UndoCursor,
        before: Images,
        made: BTreeSet<VfsPath>,
    ) -> Result<Option<UndoRecord>> {
        if self.max_records == 0 {
            return Ok(None);
        }
        let mut record =
            UndoRecord::begin(cx, Operation::Restore, vec![VfsPath::root()], Vec::new()).with_before(before);
        record.files.extend(made.into_iter().map(|path| (path, TouchedFile::default())));
        self.record(cx, turn, record).await.map(Some)
    }

    async fn record(&self, cx: &OpContext, turn: &mut UndoCursor, mut record: UndoRecord) -> Result<UndoRecord> {
        let next = turn.next.unwrap_or(1);
        record.number =
            self.store.add(cx, RecordKind::Undo, next, |number| UndoRecord { number, ..record.clone() }).await?;
        (turn.next, turn.open) = (Some(record.number + 1), Some(record.number));
        Ok(record)
    }

    /// Saves `record` with the known result of its operation.
    async fn finish(&self, cx: &OpContext, turn: &mut UndoCursor, record: &UndoRecord) {
        if let Err(error) = self.complete(cx, turn, record).await {
            tracing::warn!(%error, "a note could not be completed, and is settled before the next change");
        }
    }

    /// Saves `record` of a restore that left the versions `left`, also after a failure and rollback.
    pub(super) async fn end_restore(
        &self,
        cx: &OpContext,
        turn: &mut UndoCursor,
        mut record: UndoRecord,
        left: Versions,
    ) {
        record.files.retain(|path, _| left.contains_key(path));
        record.end(there(left));
        if record.has_happened() {
            self.finish(cx, turn, &record).await;
        } else {
            self.drop_record(cx, turn, &record).await;
        }
    }

    async fn complete(&self, cx: &OpContext, turn: &mut UndoCursor, record: &UndoRecord) -> Result<()> {
        self.store.save(cx, RecordKind::Undo, record.number, record).await?;
        turn.open = None;
        let Some(old) = record.number.checked_sub(self.max_records) else { return Ok(()) };
        self.store.remove(cx, RecordKind::Undo, old).await?;
        // Without this, contents of old records would stay for ever if no snapshot is ever forgotten.
        if record.number.is_multiple_of(self.max_records.max(100)) {
            self.collect(cx).await;
        }
        Ok(())
    }

    /// Removes the record of an operation that did not happen.
    pub(super) async fn drop_record(&self, cx: &OpContext, turn: &mut UndoCursor, record: &UndoRecord) {
        match self.store.remove(cx, RecordKind::Undo, record.number).await {
            Ok(()) => (turn.next, turn.open) = (Some(record.number), None),
            Err(error) => tracing::warn!(%error, "the note of a change that failed could not be removed yet"),
        }
    }

    /// Completes or removes the record of an operation without a known end, according to the present files.
    pub(super) async fn settle(&self, files: &Files<'_>, turn: &mut UndoCursor) -> Result<()> {
        if turn.next.is_none() {
            self.count(files.cx, turn).await?;
        }
        let Some(number) = turn.open else { return Ok(()) };
        let mut record = match self.store.load::<UndoRecord>(files.cx, RecordKind::Undo, number).await {
            Ok(Some(record)) if !record.is_done => record,
            Ok(_) => {
                turn.open = None;
                return Ok(());
            }
            // Skip a damaged record: otherwise no file could be changed any more.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::warn!(%error, "a note cannot be read, and its operation cannot be undone");
                turn.open = None;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        record.end(versions(record.look(files).await?));
        if record.has_happened() {
            self.complete(files.cx, turn, &record).await?;
        } else {
            self.drop_record(files.cx, turn, &record).await;
        }
        Ok(())
    }

    /// Reads the number of the next record, and of an operation whose process ended before it did.
    async fn count(&self, cx: &OpContext, turn: &mut UndoCursor) -> Result<()> {
        let numbers = self.store.numbers(cx, RecordKind::Undo).await?;
        let last = numbers.last().map_or(0, |(number, _)| *number);
        let oldest = (last + 1).saturating_sub(self.max_records);
        for (number, _) in numbers.iter().filter(|(number, _)| *number < oldest) {
            self.store.remove(cx, RecordKind::Undo, *number).await?;
        }
        (turn.next, turn.open) = (Some(last + 1), (last > 0).then_some(last));
        Ok(())
    }

    /// Completes or removes `record` after its operation.
    pub(super) async fn conclude(
        &self,
        files: &Files<'_>,
        turn: &mut UndoCursor,
        mut record: UndoRecord,
        ending: Ending,
    ) {
        let cx = for_cleanup(files.cx);
        let files = Files { cx: &cx, ..*files };
        let concluded = match ending {
            Ending::Left(after) => {
                record.end(after);
                self.finish(&cx, turn, &record).await;
                Ok(())
            }
            Ending::Done => match record.look(&files).await {
                Ok(now) => {
                    record.end(versions(now));
                    self.finish(&cx, turn, &record).await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Ending::Nothing => {
                self.drop_record(&cx, turn, &record).await;
                Ok(())
            }
            Ending::Unknown => self.settle(&files, turn).await,
        };
        if let Err(error) = concluded {
            tracing::warn!(%error, "what a change left is looked at before the next one");
        }
    }
}

/// End of an operation.
#[derive(Debug)]
pub(super) enum Ending {
    /// Success, with these versions.
    Left(BTreeMap<VfsPath, Version>),
    /// Success; the versions have to be read.
    Done,
    /// Failure without effect.
    Nothing,
    /// Failure with an unknown effect.
    Unknown,
}

impl Ending {
    pub(super) fn of(record: &UndoRecord, answer: Result<OutputRef<'_>, &Error>) -> Self {
        match answer {
            Ok(output) => reported_version(record, output).map_or(Self::Done, Self::Left),
            Err(error) if may_have_happened(error.kind()) => Self::Unknown,
            Err(_) => Self::Nothing,
        }
    }
}

pub(super) fn versions(tree: Tree) -> BTreeMap<VfsPath, Version> {
    tree.into_iter().map(|(path, seen)| (path, seen.version)).collect()
}

/// Returns the version in the result of an operation on one file.
fn reported_version(record: &UndoRecord, output: OutputRef<'_>) -> Option<BTreeMap<VfsPath, Version>> {
    let [root] = &record.roots[..] else { return None };
    let version = match output {
        OutputRef::Write(write) | OutputRef::CommitWriter(write) => Some(&write.version),
        OutputRef::Edit(edit) => Some(&edit.version),
        OutputRef::Upload(upload) => upload.version.as_ref(),
        _ => None,
    };
    version.map(|version| BTreeMap::from([(root.clone(), version.clone())]))
}

/// Returns whether an error of `kind` leaves the effect unknown. A tree that is removed or moved in many steps may be left at a
/// part that is in use.
fn may_have_happened(kind: ErrorKind) -> bool {
    use ErrorKind::{Busy, Cancelled, Internal, NotEmpty, PermissionDenied, StorageFull, Timeout, Unavailable};
    matches!(kind, Busy | Cancelled | Internal | NotEmpty | PermissionDenied | StorageFull | Timeout | Unavailable)
}

/// Returns the paths at and below which `action` changes files, or `None` if the backend will refuse it, so that no tree is
/// stored in vain.
async fn roots(files: &Files<'_>, action: RequestRef<'_>) -> Result<Option<Vec<VfsPath>>> {
    match action {
        RequestRef::Write(write) => one_file(files, &write.path).await,
        RequestRef::CommitWriter(commit) => one_file(files, &commit.path).await,
        RequestRef::Upload(upload) => one_file(files, &upload.path).await,
        RequestRef::Edit(edit) => match files.file(&edit.path).await? {
            Some(_) => one_file(files, &edit.path).await,
            None => Ok(None),
        },
        RequestRef::Delete(delete) => deleted(files, delete).await,
        RequestRef::Rename(rename) => {
            let Some(to) = moved(files, &rename.from, &rename.to, rename.mode).await? else { return Ok(None) };
            Ok(Some(vec![files.real(&rename.from, Last::Kept).await, to]))
        }
        RequestRef::Copy(copy) => {
            let to = moved(files, &copy.from, &copy.to, copy.mode).await?;
            Ok(to.map(|to| vec![to]))
        }
        _ => Ok(None),
    }
}

async fn one_file(files: &Files<'_>, path: &VfsPath) -> Result<Option<Vec<VfsPath>>> {
    if path.is_root() || files.is_excluded(path) || files.at(path).await?.is_some_and(|info| info.is_dir) {
        return Ok(None);
    }
    Ok(Some(vec![files.real(path, Last::Followed).await]))
}

async fn deleted(files: &Files<'_>, delete: &DeleteRequest) -> Result<Option<Vec<VfsPath>>> {
    let path = &delete.path;
    if path.is_root() || files.is_excluded(path) {
        return Ok(None);
    }
    match files.at(path).await? {
        Some(info) if !info.is_dir || delete.recursive => Ok(Some(vec![files.real(path, Last::Kept).await])),
        _ => Ok(None),
    }
}

/// Returns the target of a move or copy from `from` to `to`.
async fn moved(files: &Files<'_>, from: &VfsPath, to: &VfsPath, mode: TransferMode) -> Result<Option<VfsPath>> {
    if from.is_root() || to.starts_with(from) || from.starts_with(to) || files.at(from).await?.is_none() {
        return Ok(None);
    }
    match files.at(to).await? {
        Some(_) if mode == TransferMode::CreateNew => Ok(None),
        Some(info) if info.is_dir && !files.below(to).await?.is_empty() => Ok(None),
        _ => Ok(Some(files.real(to, Last::Kept).await)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_written_with_the_names_with_which_it_is_read() {
        let golden = include_str!("../../tests/golden/undo_record.json");
        for json in [golden.to_owned(), golden.replace("  \"actor\": \"ann\",\n", "")] {
            let record: UndoRecord = serde_json::from_str(&json).expect("a note");
            assert_eq!(serde_json::to_string_pretty(&record).expect("JSON") + "\n", json);
        }
    }
}
