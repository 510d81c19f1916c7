//! Undo of the last operations, and the renewal of versions in their records.

use std::collections::{BTreeMap, BTreeSet};

use vfs_core::is_link::is_link;
use vfs_core::{Error, ErrorKind, Operation, RenameRequest, Result, Version, VfsPath};

use super::undo_record::{OperationOutcome, RenewedVersions, UndoRecord};
use super::undo_report::{UndoEntry, UndoReport};
use super::{UndoCursor, UndoLog};
use crate::content_store::ObjectId;
use crate::snapshots::apply_transitions::{
    FileTransition, FileVersions, TransitionFailure, apply, changed_meanwhile, existing,
};
use crate::snapshots::caller_files::{CallerFiles, CurrentFiles};
use crate::versioned_entry::{StoredFile, StoredFiles, fetch};

impl UndoLog<'_> {
    /// Returns the operations that can be undone, the newest first.
    pub(crate) async fn history(&mut self, files: &CallerFiles<'_>) -> Result<Vec<UndoEntry>> {
        self.settle(files).await?;
        let records = self.store.undo_records.load_all(files.cx).await?;
        Ok(records.iter().rev().map(UndoEntry::from).collect())
    }

    /// Returns those of the files at `paths` that still have the state in which the newest operation left them, with their
    /// contents by hash.
    pub(crate) async fn unchanged_files(&self, files: &CallerFiles<'_>, paths: &[VfsPath]) -> Result<StoredFiles> {
        let records = self.store.undo_records.load_all(files.cx).await?;
        let mut unchanged = StoredFiles::new();
        for path in paths {
            let newest = records.iter().rev().find_map(|record| record.files.get(path));
            let Some(after) = newest.and_then(|touched| touched.after.as_ref()) else { continue };
            let Ok(file) = fetch(files.inner, files.cx, path).await else { continue };
            if file.version == *after {
                let (object, size) = (ObjectId::of(&file.content), file.content.len() as u64);
                unchanged.insert(path.clone(), StoredFile { object, size, version: file.version });
            }
        }
        Ok(unchanged)
    }

    /// Records the present versions of the files that have the content that they had as `before`.
    pub(crate) async fn renew_versions(&self, files: &CallerFiles<'_>, before: StoredFiles) -> Result<()> {
        let mut renewed = RenewedVersions::new();
        for (path, file) in before {
            let Some(present) = files.file(&path).await? else { continue };
            if present.version != file.version && files.has_content(&path, Some(&present), Some(&file)).await? {
                renewed.insert(path, (file.version, present.version));
            }
        }
        self.save_in_records(files, &renewed, None).await
    }

    /// Renews versions in the records that left the old ones behind, apart from the record with the number `except`.
    pub(crate) async fn save_in_records(
        &self,
        files: &CallerFiles<'_>,
        renewed: &RenewedVersions,
        except: Option<u64>,
    ) -> Result<()> {
        if renewed.is_empty() {
            return Ok(());
        }
        let mut records = self.store.undo_records.load_all(files.cx).await?;
        records.retain(|record| Some(record.number) != except);
        self.save_renewed(files, &mut records, renewed).await
    }

    async fn save_renewed(
        &self,
        files: &CallerFiles<'_>,
        records: &mut [UndoRecord],
        renewed: &RenewedVersions,
    ) -> Result<()> {
        for record in renew(records, renewed) {
            self.store.undo_records.save(files.cx, record.number, record).await?;
        }
        Ok(())
    }

    pub(crate) async fn undo(&mut self, files: &CallerFiles<'_>, operations: usize) -> Result<UndoReport> {
        self.settle(files).await?;
        *self.cursor = UndoCursor::default();
        let mut records = self.store.undo_records.load_all(files.cx).await?;
        let mut report = UndoReport::default();
        for _ in 0..operations {
            let Some(record) = records.pop() else { break };
            let (renewed, count) = match self.undo_one(files, record.clone()).await {
                Ok(undone) => undone,
                Err(TransitionFailure { error, versions }) => {
                    self.save_rolled_back(files, record, versions).await;
                    return Err(with_progress(error, &report));
                }
            };
            self.save_renewed(files, &mut records, &renewed).await?;
            self.store.undo_records.remove(files.cx, record.number).await?;
            report.entries.push(UndoEntry::from(&record));
            report.files += count;
        }
        Ok(report)
    }

    /// Records the versions of files that were changed and rolled back, so that the operation can be undone later.
    async fn save_rolled_back(&self, files: &CallerFiles<'_>, mut record: UndoRecord, versions: FileVersions) {
        let mut is_changed = false;
        for (path, version) in versions {
            if let Some(touched) = record.files.get_mut(&path)
                && touched.after != version
            {
                (touched.after, is_changed) = (version, true);
            }
        }
        if is_changed
            && let Err(error) = self.store.undo_records.save(&files.cx.for_cleanup(), record.number, &record).await
        {
            tracing::warn!(%error, "failed to update an undo record, whose operation cannot be undone any more");
        }
    }

    /// Undoes the operation of `record`, as a whole or not at all, and returns the number of changed files.
    async fn undo_one(
        &self,
        files: &CallerFiles<'_>,
        mut record: UndoRecord,
    ) -> Result<(RenewedVersions, u64), TransitionFailure> {
        if !record.is_done {
            let renewed = record.complete_by_files(files, OperationOutcome::Unknown).await?;
            if record.files.is_empty() {
                return Ok((renewed, 0));
            }
        }
        let mut present = record.present_files(files).await?;
        let mut plan = UndoPlan::new(files, &record, &present).await?;
        if plan.is_whole && record.operation == Operation::Rename {
            if let Some(versions) = undo_rename(files, &record, &present).await? {
                let moved = record.paths_before().count() as u64;
                return Ok((renewed_versions(&record, versions), moved));
            }
            // The files may be back in their old places, apart from those that another process has removed meanwhile.
            present = record.present_files(files).await?;
            plan = UndoPlan::new(files, &record, &present).await?;
        }
        let to_capture = present.into_iter().filter(|(path, _)| plan.to_change.contains(path)).collect();
        let captured = self.store.capture(files, to_capture, &StoredFiles::new()).await?;
        let steps = plan.to_change.iter().map(|path| {
            let touched = record.files.get(path).cloned().unwrap_or_default();
            let present = captured.get(path).cloned();
            // Another process may have changed the file since the plan was made.
            if present.as_ref().map(|file| &file.version) != touched.after.as_ref() {
                return Err(changed_meanwhile(path, present.map(|file| file.version)));
            }
            Ok(FileTransition { path: path.clone(), before: present, after: touched.before })
        });
        let steps: Vec<_> = steps.collect::<Result<_>>()?;
        let count = steps.len() as u64;
        let mut versions = plan.restored;
        versions.extend(existing(apply(self.store, files, steps).await?));
        Ok((renewed_versions(&record, versions), count))
    }
}

/// Changes that undo one operation.
struct UndoPlan {
    /// The files that have to change.
    to_change: Vec<VfsPath>,
    /// Files that have their old state already, as after an interrupted undo, with their versions.
    restored: BTreeMap<VfsPath, Version>,
    /// Whether all files are as the operation left them.
    is_whole: bool,
}

impl UndoPlan {
    /// Compares the files `present` with those that the operation left. A file that has neither that state nor the one before
    /// the operation is a conflict.
    async fn new(files: &CallerFiles<'_>, record: &UndoRecord, present: &CurrentFiles) -> Result<Self> {
        let mut plan = Self { to_change: Vec::new(), restored: BTreeMap::new(), is_whole: true };
        for (path, touched) in &record.files {
            let current = present.get(path);
            let version = current.map(|current| &current.version);
            let is_unchanged = version == touched.after.as_ref();
            if is_unchanged && version != touched.before.as_ref().map(|file| &file.version) {
                plan.to_change.push(path.clone());
            } else if is_unchanged || files.has_content(path, current, touched.before.as_ref()).await? {
                plan.is_whole &= is_unchanged;
                plan.restored.extend(version.map(|version| (path.clone(), version.clone())));
            } else {
                return Err(changed_meanwhile(path, version.cloned()));
            }
        }
        Ok(plan)
    }
}

/// Undoes a rename by a rename, which preserves permissions, times, links and directories without files. Returns `None` if that
/// is not possible, or does not restore every file: one was replaced, was added or removed, is excluded, or has given its place
/// to a link.
async fn undo_rename(
    files: &CallerFiles<'_>,
    record: &UndoRecord,
    present: &CurrentFiles,
) -> Result<Option<BTreeMap<VfsPath, Version>>> {
    let (Operation::Rename, [from, to]) = (record.operation, &record.roots[..]) else { return Ok(None) };
    // The record has no files of excluded directories, so it cannot show whether another process added files there.
    let overlaps_excluded = files.excluded.iter().any(|excluded| excluded.starts_with(to) || to.starts_with(excluded));
    if overlaps_excluded || present.keys().any(|path| path.starts_with(from)) || files.entry(to).await?.is_none() {
        return Ok(None);
    }
    let is_new = |path: &VfsPath| record.files.get(path).is_none_or(|touched| touched.before.is_some());
    for path in present.keys().filter(|path| is_new(path)) {
        // A link that led to no file before the rename may lead to one now.
        let was_link = record.source(path).is_some_and(|source| record.broken_links.contains(&source));
        if !was_link || !is_link(files.inner, files.cx, path).await? {
            return Ok(None);
        }
    }
    let mut links = BTreeSet::new();
    for path in record.paths_before() {
        let Some(target) = record.target(path) else { return Ok(None) };
        // A link that led to a file may lead nowhere, or to a directory, at its new path.
        if !present.contains_key(&target) {
            if !is_link(files.inner, files.cx, &target).await? {
                return Ok(None);
            }
            links.insert(path);
        }
    }
    match files.inner.rename(files.cx, RenameRequest::new(to.clone(), from.clone())).await {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    }
    let (mut restored, moved_back) = (BTreeMap::new(), files.below(from).await?);
    let has_every_file = record.paths_before().all(|path| moved_back.contains_key(path));
    for (path, current) in moved_back {
        // Another process may have written the file meanwhile.
        if files.has_content(&path, Some(&current), record.before(&path)).await? {
            restored.insert(path, current.version);
        }
    }
    if links.into_iter().all(|path| restored.contains_key(path)) {
        return Ok(has_every_file.then_some(restored));
    }
    // Another process has put a link in the place of a file.
    let back = RenameRequest::new(from.clone(), to.clone());
    match files.inner.rename(&files.cx.for_cleanup(), back).await {
        Ok(_) => Ok(None),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error.with_consequence(format_args!("the files are at '{from}'"))),
    }
}

/// Returns those of `versions` that differ from the versions before the operation.
fn renewed_versions(record: &UndoRecord, versions: BTreeMap<VfsPath, Version>) -> RenewedVersions {
    let renewed = |(path, new): (VfsPath, Version)| {
        let old = record.files.get(&path)?.before.as_ref()?.version.clone();
        (old != new).then_some((path, (old, new)))
    };
    versions.into_iter().filter_map(renewed).collect()
}

/// Replaces the old version of each path by the new one in the newest record that names the path, if that record left the old version
/// behind. Returns the changed records.
fn renew<'a>(records: &'a mut [UndoRecord], renewed: &RenewedVersions) -> Vec<&'a UndoRecord> {
    let mut is_changed = vec![false; records.len()];
    for (path, (old, new)) in renewed {
        let newest = records.iter_mut().enumerate().rev();
        let mut newest = newest.filter_map(|(index, record)| record.files.get_mut(path).map(|file| (index, file)));
        if let Some((index, touched)) = newest.next()
            && touched.after.as_ref() == Some(old)
        {
            touched.after = Some(new.clone());
            is_changed[index] = true;
        }
    }
    records.iter().zip(is_changed).filter_map(|(record, is_changed)| is_changed.then_some(record)).collect()
}

/// Returns `error` with the number of operations that were undone before it.
fn with_progress(error: Error, report: &UndoReport) -> Error {
    if report.entries.is_empty() {
        return error;
    }
    error.with_consequence(format_args!("{} newer operations were undone before", report.entries.len()))
}
