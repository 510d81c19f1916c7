//! Undo record: the files that one operation touches, before and after it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{OpContext, Operation, Result, Version, VfsPath};

use crate::snapshots::caller_files::{CallerFiles, CurrentFiles};
use crate::versioned_entry::StoredFile;

/// Undo record of one operation: `undo/<number>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UndoRecord {
    pub(crate) number: u64,
    pub(crate) time: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    pub(crate) operation: Operation,
    /// Paths of the request.
    pub(crate) paths: Vec<VfsPath>,
    /// Real paths at and below which the operation changes files.
    pub(crate) roots: Vec<VfsPath>,
    pub(crate) files: BTreeMap<VfsPath, TouchedFile>,
    /// Links below the roots that led to no file before the operation.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) broken_links: BTreeSet<VfsPath>,
    /// Whether the result of the operation is known.
    pub(crate) is_done: bool,
}

/// State of one file before and after an operation; `None` stands for no file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TouchedFile {
    pub(crate) before: Option<StoredFile>,
    pub(crate) after: Option<Version>,
}

/// Outcome of an operation whose record is completed by the present files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationOutcome {
    /// It succeeded, or is a delete that removed some of its files.
    Success,
    /// It is a rename that failed, and may have moved some of its files.
    Failure,
    Unknown,
}

impl UndoRecord {
    /// Returns the record of an operation that is about to begin, with the files that it may replace.
    pub(crate) fn begin(
        cx: &OpContext,
        operation: Operation,
        paths: Vec<VfsPath>,
        roots: Vec<VfsPath>,
        files: impl IntoIterator<Item = (VfsPath, Option<StoredFile>)>,
    ) -> Self {
        let files = files.into_iter().map(|(path, before)| (path, TouchedFile { before, after: None })).collect();
        let actor = cx.actor().map(str::to_owned);
        let broken_links = BTreeSet::new();
        Self { number: 0, time: Utc::now(), actor, operation, paths, roots, files, broken_links, is_done: false }
    }

    /// Returns the present state of the files that the operation may have touched.
    pub(crate) async fn present_files(&self, files: &CallerFiles<'_>) -> Result<CurrentFiles> {
        let mut present = CurrentFiles::new();
        for root in &self.roots {
            present.extend(files.below(root).await?);
        }
        for path in self.files.keys().filter(|path| !self.roots.iter().any(|root| path.starts_with(root))) {
            if let Some(current) = files.file(path).await? {
                present.insert(path.clone(), current);
            }
        }
        Ok(present)
    }

    /// Completes the record by the present files.
    ///
    /// A file that the operation cannot have left was written by another process. If the operation had an effect and the record has
    /// the state before of such a file, the undo is a conflict, as it would lose one of the contents; otherwise the record leaves the
    /// file out. The record of a failed rename without effect is left with no files.
    pub(crate) async fn complete_by_files(&mut self, files: &CallerFiles<'_>, outcome: OperationOutcome) -> Result<()> {
        let mut present = self.present_files(files).await?;
        let mut foreign = BTreeSet::new();
        for path in present.keys() {
            if !self.can_have_left(files, path, &present, outcome).await? {
                foreign.insert(path.clone());
            }
        }
        let had_effect = match outcome {
            OperationOutcome::Success => true,
            OperationOutcome::Failure => self.has_moved_files(files, &present, &foreign),
            OperationOutcome::Unknown => self.had_effect(&present, &foreign),
        };
        if outcome == OperationOutcome::Failure && !had_effect {
            self.files.clear();
            return Ok(());
        }
        self.files.retain(|path, touched| !foreign.contains(path) || (had_effect && touched.before.is_some()));
        present.retain(|path, _| !foreign.contains(path));
        self.complete(versions(present));
        Ok(())
    }

    /// Returns whether the operation can have left the file at `path` of `present`: a copy any file below its target, a rename those at
    /// the places of its sources, a delete only what it did not remove, and others the files of their requests. Unless a rename
    /// succeeded, the file has to have the content of its source.
    async fn can_have_left(
        &self,
        files: &CallerFiles<'_>,
        path: &VfsPath,
        present: &CurrentFiles,
        outcome: OperationOutcome,
    ) -> Result<bool> {
        match self.operation {
            Operation::Copy => return Ok(true),
            _ if self.is_unchanged(path, present) => return Ok(true),
            Operation::Delete => return Ok(false),
            Operation::Rename => {}
            _ => return Ok(self.roots.contains(path) || self.files.contains_key(path)),
        }
        let Some(moved) = self.source(path).and_then(|source| self.before(&source)) else { return Ok(false) };
        Ok(outcome == OperationOutcome::Success || files.has_content(path, present.get(path), Some(moved)).await?)
    }

    /// Returns whether a delete or rename had an effect, as far as the `present` files show: a file is gone, the target of a rename has
    /// changed, or no file is as it was. Otherwise it is taken for one that was never made.
    fn had_effect(&self, present: &CurrentFiles, foreign: &BTreeSet<VfsPath>) -> bool {
        self.paths_before().any(|path| !present.contains_key(path))
            || self.has_changed_target(present, foreign)
            || !self.paths_before().any(|path| self.is_unchanged(path, present))
    }

    /// Returns whether a rename has left a file at a target.
    fn has_changed_target(&self, present: &CurrentFiles, foreign: &BTreeSet<VfsPath>) -> bool {
        let mut targets = present.keys().filter(|path| self.source(path).is_some() && !foreign.contains(*path));
        targets.any(|path| !self.is_unchanged(path, present))
    }

    /// Returns whether a rename that failed has moved or replaced a file, as far as the `present` files show: it is at its target, or
    /// gone from its source while the target has another file, or a file that it was to replace is not as it was.
    fn has_moved_files(&self, files: &CallerFiles<'_>, present: &CurrentFiles, foreign: &BTreeSet<VfsPath>) -> bool {
        let is_changed = |path: &VfsPath| !self.is_unchanged(path, present);
        let is_taken =
            |target: VfsPath| files.is_excluded(&target) || (present.contains_key(&target) && is_changed(&target));
        self.has_changed_target(present, foreign)
            || self.paths_before().any(|path| {
                let is_lost = !present.contains_key(path) && self.target(path).is_some_and(is_taken);
                is_lost || (self.source(path).is_some() && is_changed(path))
            })
    }

    fn is_unchanged(&self, path: &VfsPath, present: &CurrentFiles) -> bool {
        self.before(path).zip(present.get(path)).is_some_and(|(before, present)| before.version == present.version)
    }

    /// Returns the file at `path` before the operation, or `None`.
    pub(crate) fn before(&self, path: &VfsPath) -> Option<&StoredFile> {
        self.files.get(path)?.before.as_ref()
    }

    /// Returns the paths of the files that existed before the operation.
    pub(crate) fn paths_before(&self) -> impl Iterator<Item = &VfsPath> {
        self.files.iter().filter(|(_, touched)| touched.before.is_some()).map(|(path, _)| path)
    }

    /// Returns the path from which a rename moves the entry at `path`, or `None`.
    pub(crate) fn source(&self, path: &VfsPath) -> Option<VfsPath> {
        let (Operation::Rename, [from, to]) = (self.operation, &self.roots[..]) else { return None };
        from.join(path.strip_prefix(to)?).ok()
    }

    /// Returns the path to which a rename moves the entry at `path`, or `None`.
    pub(crate) fn target(&self, path: &VfsPath) -> Option<VfsPath> {
        let (Operation::Rename, [from, to]) = (self.operation, &self.roots[..]) else { return None };
        to.join(path.strip_prefix(from)?).ok()
    }

    /// Returns whether the versions `after` differ from those before the operation.
    pub(crate) fn is_changed_by(&self, after: &BTreeMap<VfsPath, Version>) -> bool {
        let before = self.files.iter().filter_map(|(path, touched)| Some((path, &touched.before.as_ref()?.version)));
        !before.eq(after)
    }

    /// Sets the versions `after` as the result of the operation.
    pub(crate) fn complete(&mut self, after: BTreeMap<VfsPath, Version>) {
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

    pub(crate) fn has_effect(&self) -> bool {
        self.files.values().any(|touched| touched.before.as_ref().map(|file| &file.version) != touched.after.as_ref())
    }
}

/// Returns the versions of `files`.
pub(crate) fn versions(files: CurrentFiles) -> BTreeMap<VfsPath, Version> {
    files.into_iter().map(|(path, current)| (path, current.version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undo_record_is_written_with_the_names_with_which_it_is_read() {
        let golden = include_str!("../../tests/golden/undo_record.json");
        let without_links = golden.replace("  \"broken_links\": [\n    \"/a/link\"\n  ],\n", "");
        assert_ne!(golden, without_links);
        for json in [golden.to_owned(), golden.replace("  \"actor\": \"ann\",\n", ""), without_links] {
            let record: UndoRecord = serde_json::from_str(&json).expect("an undo record");
            assert_eq!(serde_json::to_string_pretty(&record).expect("JSON") + "\n", json);
        }
    }
}
