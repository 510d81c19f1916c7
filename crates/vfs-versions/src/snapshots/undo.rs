//! Undo of the last operations.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{Error, ErrorKind, Operation, RenameRequest, Result, Version, VfsPath};

use super::Keeper;
use super::apply::{Failure, FileStep, Versions, apply, changed, there};
use super::files::{Files, Image, Images, Tree, for_cleanup};
use super::store::RecordKind;
use super::undo_log::{UndoCursor, UndoRecord, versions};
use crate::content_store::ObjectId;

/// An operation that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UndoEntry {
    /// Number of the operation: later operations have higher numbers.
    pub number: u64,
    /// Start of the operation, in UTC; RFC 3339 in JSON.
    pub time: DateTime<Utc>,
    /// Actor of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The operation; its code in JSON.
    pub operation: Operation,
    /// Paths of the request; the root for the restore of a snapshot.
    pub paths: Vec<VfsPath>,
}

/// The operation in words: `rename /a to /b`.
impl fmt::Display for UndoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.paths.iter().map(|path| path.as_str()).collect();
        write!(f, "{} {}", self.operation, paths.join(" to "))
    }
}

/// Outcome of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undone {
    /// The undone operations, the newest first.
    pub entries: Vec<UndoEntry>,
    /// Number of changed files; a file that was changed twice counts twice.
    pub files: u64,
}

impl From<&UndoRecord> for UndoEntry {
    fn from(record: &UndoRecord) -> Self {
        let UndoRecord { number, time, actor, operation, paths, .. } = record.clone();
        Self { number, time, actor, operation, paths }
    }
}

/// Old and new version of each file that has its old content again.
type Renewed = BTreeMap<VfsPath, (Version, Version)>;

impl Keeper {
    /// Returns all undo records, the oldest first.
    pub(super) async fn records(&self, files: &Files<'_>) -> Result<Vec<UndoRecord>> {
        let numbers = self.store.numbers(files.cx, RecordKind::Undo).await?;
        let numbers: Vec<_> = numbers.into_iter().map(|(number, _)| number).collect();
        self.store.load_many(files.cx, RecordKind::Undo, &numbers).await
    }

    /// Returns those of the files at `paths` that still have the state in which the newest operation left them, with their
    /// contents by hash.
    pub(super) async fn current(&self, files: &Files<'_>, paths: &[VfsPath]) -> Result<Images> {
        let records = self.records(files).await?;
        let mut current = Images::new();
        for path in paths {
            let newest = records.iter().rev().find_map(|record| record.files.get(path));
            let Some(left) = newest.and_then(|touched| touched.after.as_ref()) else { continue };
            let Some(Ok((content, Some(version)))) = files.download(vec![path.clone()]).await.pop() else { continue };
            if version == *left {
                let (object, size) = (ObjectId::of(&content), content.len() as u64);
                current.insert(path.clone(), Image { object, size, version });
            }
        }
        Ok(current)
    }

    /// Records the versions that files have now which hold what they held as `before`.
    pub(super) async fn renew_versions(&self, files: &Files<'_>, before: Images) -> Result<()> {
        let mut renewed = Renewed::new();
        for (path, image) in before {
            let Some(now) = files.file(&path).await? else { continue };
            if now.version != image.version && files.holds(&path, Some(&now), Some(&image)).await? {
                renewed.insert(path, (image.version, now.version));
            }
        }
        if renewed.is_empty() {
            return Ok(());
        }
        let mut records = self.records(files).await?;
        for record in renew(&mut records, &renewed) {
            self.store.save(files.cx, RecordKind::Undo, record.number, record).await?;
        }
        Ok(())
    }

    pub(super) async fn undo(&self, files: &Files<'_>, turn: &mut UndoCursor, operations: usize) -> Result<Undone> {
        self.settle(files, turn).await?;
        turn.forget();
        let mut records = self.records(files).await?;
        let mut undone = Undone::default();
        for _ in 0..operations {
            let Some(record) = records.pop() else { break };
            let number = record.number;
            let (renewed, count) = match self.undo_one(files, record.clone()).await {
                Ok(done) => done,
                Err(Failure { error, left }) => {
                    self.keep_left(files, record, left).await;
                    return Err(stopped(error, &undone));
                }
            };
            for earlier in renew(&mut records, &renewed) {
                self.store.save(files.cx, RecordKind::Undo, earlier.number, earlier).await?;
            }
            self.store.remove(files.cx, RecordKind::Undo, number).await?;
            undone.entries.push(UndoEntry::from(&record));
            undone.files += count;
        }
        Ok(undone)
    }

    /// Records the versions of files that were changed and changed back, so that the operation can be undone later.
    async fn keep_left(&self, files: &Files<'_>, mut record: UndoRecord, left: Versions) {
        let mut is_changed = false;
        for (path, version) in left {
            if let Some(touched) = record.files.get_mut(&path)
                && touched.after != version
            {
                (touched.after, is_changed) = (version, true);
            }
        }
        if is_changed
            && let Err(error) = self.store.save(&for_cleanup(files.cx), RecordKind::Undo, record.number, &record).await
        {
            tracing::warn!(%error, "an operation cannot be undone any more, as its note could not be renewed");
        }
    }

    /// Undoes the operation of `record`, as a whole or not at all, and returns the number of changed files.
    async fn undo_one(&self, files: &Files<'_>, mut record: UndoRecord) -> Result<(Renewed, u64), Failure> {
        let now = record.look(files).await?;
        if !record.is_done {
            record.end(versions(now.clone()));
        }
        let plan = UndoPlan::of(files, &record, &now).await?;
        if plan.is_whole
            && let Some(versions) = moved_back(files, &record, &now).await?
        {
            return Ok((renewed(&record, versions), record.files.len() as u64 / 2));
        }
        let seen = now.into_iter().filter(|(path, _)| plan.open.contains(path)).collect();
        let images = self.store.keep(files, seen, &Images::new()).await?;
        let steps = plan.open.iter().map(|path| {
            let touched = record.files.get(path).cloned().unwrap_or_default();
            let now = images.get(path).cloned();
            // What has changed since it was looked at a moment ago was changed by somebody else.
            if now.as_ref().map(|image| &image.version) != touched.after.as_ref() {
                return Err(changed(path, now.map(|image| image.version)));
            }
            Ok(FileStep { path: path.clone(), now, then: touched.before })
        });
        let steps: Vec<_> = steps.collect::<Result<_>>()?;
        let count = steps.len() as u64;
        let mut versions = plan.back;
        versions.extend(there(apply(&self.store, files, steps).await?));
        Ok((renewed(&record, versions), count))
    }
}

/// Changes that undo one operation.
struct UndoPlan {
    /// The files that have to change.
    open: Vec<VfsPath>,
    /// Files that are back already, as after an undo that was cut short, with their versions.
    back: BTreeMap<VfsPath, Version>,
    /// Whether all files are as the operation left them.
    is_whole: bool,
}

impl UndoPlan {
    /// Compares the present files with those that the operation left. A file that has neither that state nor the one before the
    /// operation is a conflict.
    async fn of(files: &Files<'_>, record: &UndoRecord, now: &Tree) -> Result<Self> {
        let mut plan = Self { open: Vec::new(), back: BTreeMap::new(), is_whole: true };
        for (path, touched) in &record.files {
            let seen = now.get(path);
            let version = seen.map(|seen| &seen.version);
            let is_left = version == touched.after.as_ref();
            if is_left && version != touched.before.as_ref().map(|image| &image.version) {
                plan.open.push(path.clone());
            } else if is_left || files.holds(path, seen, touched.before.as_ref()).await? {
                plan.is_whole &= is_left;
                plan.back.extend(version.map(|version| (path.clone(), version.clone())));
            } else {
                return Err(changed(path, version.cloned()));
            }
        }
        Ok(plan)
    }
}

/// Undoes a rename by a rename, which preserves permissions, times, links and directories without files. Returns `None` if that
/// is not possible, because a file was replaced, or added since.
async fn moved_back(files: &Files<'_>, record: &UndoRecord, now: &Tree) -> Result<Option<BTreeMap<VfsPath, Version>>> {
    let (Operation::Rename, [from, to]) = (record.operation, &record.roots[..]) else { return Ok(None) };
    let is_new = |path: &VfsPath| record.files.get(path).is_none_or(|touched| touched.before.is_some());
    if now.keys().any(|path| is_new(path) || path.starts_with(from)) || files.at(to).await?.is_none() {
        return Ok(None);
    }
    if record.files.iter().any(|(path, touched)| path.starts_with(to) && touched.before.is_some()) {
        return Ok(None);
    }
    let moved = files.inner.rename(files.cx, RenameRequest::new(to.clone(), from.clone())).await;
    match moved {
        Ok(_) => Ok(Some(versions(files.below(from).await?))),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns those of `versions` that differ from the versions before the operation.
fn renewed(record: &UndoRecord, versions: BTreeMap<VfsPath, Version>) -> Renewed {
    let of = |(path, new): (VfsPath, Version)| {
        let old = record.files.get(&path)?.before.as_ref()?.version.clone();
        (old != new).then_some((path, (old, new)))
    };
    versions.into_iter().filter_map(of).collect()
}

/// Replaces the old version of each path by the new one in the newest record that names the path, if that record left the old version
/// behind. Returns the changed records.
fn renew<'a>(records: &'a mut [UndoRecord], renewed: &Renewed) -> Vec<&'a UndoRecord> {
    let mut changed = vec![false; records.len()];
    for (path, (old, new)) in renewed {
        let found = records.iter_mut().enumerate().rev();
        let mut found = found.filter_map(|(place, record)| record.files.get_mut(path).map(|touched| (place, touched)));
        if let Some((place, touched)) = found.next()
            && touched.after.as_ref() == Some(old)
        {
            touched.after = Some(new.clone());
            changed[place] = true;
        }
    }
    records.iter().zip(changed).filter_map(|(record, changed)| changed.then_some(record)).collect()
}

/// Returns `error` with the number of operations that were undone before it.
fn stopped(error: Error, undone: &Undone) -> Error {
    if undone.entries.is_empty() {
        return error;
    }
    error.with_consequence(format_args!("of those asked for, {} were taken back before", undone.entries.len()))
}
