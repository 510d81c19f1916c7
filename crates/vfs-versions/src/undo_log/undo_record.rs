//! Undo record: the files that one operation touches, before and after it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{OpContext, Operation, Result, Version, VfsPath};

use crate::snapshots::caller_files::{CallerFiles, CurrentFile, CurrentFiles};
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
    /// Whether the result of the operation is known.
    pub(crate) is_done: bool,
}

/// State of one file before and after an operation; `None` stands for no file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TouchedFile {
    pub(crate) before: Option<StoredFile>,
    pub(crate) after: Option<Version>,
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
        Self { number: 0, time: Utc::now(), actor, operation, paths, roots, files, is_done: false }
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

    /// Returns the present state of the files, as far as the operation can have left it: a file that is new after a delete, or that
    /// a rename has not moved, was written by another process.
    pub(crate) async fn left_files(&self, files: &CallerFiles<'_>) -> Result<CurrentFiles> {
        let mut present = self.present_files(files).await?;
        let before = |path: &VfsPath| self.files.get(path).and_then(|touched| touched.before.as_ref());
        let is_unchanged =
            |path: &VfsPath, file: &CurrentFile| before(path).is_some_and(|before| before.version == file.version);
        match (self.operation, &self.roots[..]) {
            (Operation::Delete, _) => present.retain(|path, file| is_unchanged(path, file)),
            (Operation::Rename, [from, to]) => present.retain(|path, file| {
                let source = path.strip_prefix(to).and_then(|rest| from.join(rest).ok());
                is_unchanged(path, file) || source.is_some_and(|source| before(&source).is_some())
            }),
            _ => {}
        }
        Ok(present)
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
        for json in [golden.to_owned(), golden.replace("  \"actor\": \"ann\",\n", "")] {
            let record: UndoRecord = serde_json::from_str(&json).expect("an undo record");
            assert_eq!(serde_json::to_string_pretty(&record).expect("JSON") + "\n", json);
        }
    }
}
