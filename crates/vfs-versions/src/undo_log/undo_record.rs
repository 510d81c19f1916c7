//! Undo record: the files that one operation touches, before and after it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{OpContext, Operation, Result, Version, VfsPath};

use super::file_comparison::FileComparison;
use crate::snapshots::caller_files::{CallerFiles, CurrentFiles};
use crate::versioned_entry::StoredFile;

/// Old and new version of each file that has its old content again.
pub(crate) type RenewedVersions = BTreeMap<VfsPath, (Version, Version)>;

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

    /// Completes the record by the present files, and returns the versions of files that were written again with their old contents by
    /// an operation without effect.
    ///
    /// If the operation had an effect and the record has the state before of a file that the operation cannot have left, the undo is a
    /// conflict unless the file has its old content again, as one of the contents would be lost; otherwise the record leaves the file
    /// out. The record of a delete or rename without effect is left with no files.
    pub(crate) async fn complete_by_files(
        &mut self,
        files: &CallerFiles<'_>,
        outcome: OperationOutcome,
    ) -> Result<RenewedVersions> {
        let mut present = self.present_files(files).await?;
        let comparison = FileComparison::new(self, files, &present, outcome).await?;
        let had_effect = comparison.shows_effect(self, files, &present, outcome);
        if !had_effect && matches!(self.operation, Operation::Delete | Operation::Rename) {
            let renewed = comparison.renewed(self, &present);
            self.files.clear();
            self.is_done = true;
            return Ok(renewed);
        }
        let is_not_left = |path: &VfsPath| comparison.not_left.contains(path);
        self.files.retain(|path, touched| !is_not_left(path) || (had_effect && touched.before.is_some()));
        present.retain(|path, _| !is_not_left(path));
        self.complete(versions(present));
        Ok(RenewedVersions::new())
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
