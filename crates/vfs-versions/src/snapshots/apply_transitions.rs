//! All-or-nothing transition of files from one state to another.

use std::collections::BTreeMap;

use vfs_core::error::ErrorDetail;
use vfs_core::{Error, ErrorKind, Result, Version, VfsPath};

use super::caller_files::CallerFiles;
use super::checkpoint_store::CheckpointStore;
use crate::versioned_entry::{StoredFile, VersionedEntry};

/// Change of one file from a state to another; `None` stands for no file.
#[derive(Debug, Clone)]
pub(crate) struct FileTransition {
    pub(crate) path: VfsPath,
    pub(crate) before: Option<StoredFile>,
    pub(crate) after: Option<StoredFile>,
}

/// Versions of files; `None` stands for no file.
pub(crate) type FileVersions = BTreeMap<VfsPath, Option<Version>>;

/// Returns those files of `versions` that exist.
pub(crate) fn existing(versions: FileVersions) -> BTreeMap<VfsPath, Version> {
    versions.into_iter().filter_map(|(path, version)| Some((path, version?))).collect()
}

/// Failure of a transition, with the versions of the files that were changed and rolled back.
#[derive(Debug)]
pub(crate) struct TransitionFailure {
    pub(crate) error: Error,
    pub(crate) versions: FileVersions,
}

impl From<Error> for TransitionFailure {
    /// Returns a failure before any change.
    fn from(error: Error) -> Self {
        Self { error, versions: FileVersions::new() }
    }
}

/// Applies `steps`, and returns the resulting version of each file.
///
/// Each file is changed only if it has the version before the step; otherwise the step is a `conflict`. After a failure the
/// earlier steps are rolled back, under the same condition.
pub(crate) async fn apply(
    store: &CheckpointStore,
    files: &CallerFiles<'_>,
    mut steps: Vec<FileTransition>,
) -> Result<FileVersions, TransitionFailure> {
    // Remove files before others are written, since a directory may take the place of a file.
    steps.sort_by_key(|step| step.after.is_some());
    let mut versions = FileVersions::new();
    for (index, step) in steps.iter().enumerate() {
        let before = step.before.as_ref().map(|file| &file.version);
        let changed = match files.cx.check() {
            Ok(()) => change_file(store, files, &step.path, before, step.after.as_ref()).await,
            Err(error) => Err(error),
        };
        match changed {
            Ok(version) => versions.insert(step.path.clone(), version),
            Err(error) => {
                return Err(roll_back(store, files, &steps[..index], versions, error.or_path(&step.path)).await);
            }
        };
    }
    Ok(versions)
}

/// Changes the file at `path` from the version `before` to `after`. A file that has the target state already, for example because
/// a response was lost, is a success.
async fn change_file(
    store: &CheckpointStore,
    files: &CallerFiles<'_>,
    path: &VfsPath,
    before: Option<&Version>,
    after: Option<&StoredFile>,
) -> Result<Option<Version>> {
    let content = match after {
        Some(file) => Some(store.content(files.cx, path, &file.object).await?),
        None => None,
    };
    let error = match files.replace(path, &VersionedEntry::from(before.cloned()), content).await {
        Ok(version) => return Ok(version),
        Err(error) => error,
    };
    let cx = files.cx.for_cleanup();
    let files = CallerFiles { cx: &cx, ..*files };
    let Ok(present) = files.file(path).await else { return Err(error) };
    match files.has_content(path, present.as_ref(), after).await {
        Ok(true) => Ok(present.map(|current| current.version)),
        _ => Err(as_conflict(error, path, present.map(|current| current.version))),
    }
}

/// Rolls back `steps`, the last first, after `error`.
async fn roll_back(
    store: &CheckpointStore,
    files: &CallerFiles<'_>,
    steps: &[FileTransition],
    mut versions: FileVersions,
    error: Error,
) -> TransitionFailure {
    let cx = files.cx.for_cleanup();
    let files = CallerFiles { cx: &cx, ..*files };
    let mut unrestored = Vec::new();
    for step in steps.iter().rev() {
        let before = versions.get(&step.path).cloned().flatten();
        match change_file(store, &files, &step.path, before.as_ref(), step.before.as_ref()).await {
            Ok(version) => {
                versions.insert(step.path.clone(), version);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to roll back a file after a failure");
                unrestored.push(step.path.clone());
            }
        }
    }
    TransitionFailure { error: with_unrestored(error, &unrestored), versions }
}

/// Returns `error` with the files that could not be rolled back after it.
fn with_unrestored(error: Error, unrestored: &[VfsPath]) -> Error {
    const MAX_NAMES: usize = 10;
    if unrestored.is_empty() {
        return error;
    }
    let mut names = unrestored.iter().take(MAX_NAMES).map(VfsPath::as_str).collect::<Vec<_>>().join(", ");
    if unrestored.len() > MAX_NAMES {
        names = format!("{names} and {} more", unrestored.len() - MAX_NAMES);
    }
    error.with_consequence(format_args!("earlier changes could not be rolled back at: {names}"))
}

/// Returns `error` as a conflict if its kind shows that the file has changed meanwhile.
fn as_conflict(error: Error, path: &VfsPath, actual: Option<Version>) -> Error {
    use ErrorKind::{AlreadyExists, Conflict, IsADirectory, NotADirectory, NotEmpty, NotFound};
    match error.kind() {
        AlreadyExists | Conflict | IsADirectory | NotADirectory | NotEmpty | NotFound => {
            changed_meanwhile(path, actual)
        }
        _ => error.or_path(path),
    }
}

/// Returns the `conflict` of a file at `path` that another process changed.
pub(crate) fn changed_meanwhile(path: &VfsPath, actual: Option<Version>) -> Error {
    let message = "the file was changed by another process; nothing was done, since its content would be lost";
    let detail = ErrorDetail::Conflict { actual };
    Error::new(ErrorKind::Conflict, message).with_path(path).with_detail(detail)
}
