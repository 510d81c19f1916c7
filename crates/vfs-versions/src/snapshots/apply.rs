//! All-or-nothing transition of files from one state to another.

use std::collections::BTreeMap;

use vfs_core::{Error, ErrorDetail, ErrorKind, Result, Version, VfsPath};

use super::files::{Files, Image, for_cleanup};
use super::store::CheckpointStore;

/// Transition of one file from its present to an earlier state; `None` stands for no file.
#[derive(Debug, Clone)]
pub(super) struct FileStep {
    pub(super) path: VfsPath,
    pub(super) now: Option<Image>,
    pub(super) then: Option<Image>,
}

/// Versions of files; `None` stands for no file.
pub(super) type Versions = BTreeMap<VfsPath, Option<Version>>;

/// Returns those files of `versions` that exist.
pub(super) fn there(versions: Versions) -> BTreeMap<VfsPath, Version> {
    versions.into_iter().filter_map(|(path, version)| Some((path, version?))).collect()
}

/// Failure of a transition, with the versions of the files that were changed and changed back.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    pub(super) left: Versions,
}

impl From<Error> for Failure {
    /// Returns a failure before any change.
    fn from(error: Error) -> Self {
        Self { error, left: Versions::new() }
    }
}

/// Applies `steps`, and returns the resulting version of each file.
///
/// Each file is changed only if it has the present state that the step names; otherwise the step is a `conflict`. After a failure
/// the earlier steps are undone, under the same condition.
pub(super) async fn apply(
    store: &CheckpointStore,
    files: &Files<'_>,
    mut steps: Vec<FileStep>,
) -> Result<Versions, Failure> {
    // Remove files before others are written, since a directory may take the place of a file.
    steps.sort_by_key(|step| step.then.is_some());
    let mut versions = Versions::new();
    for (place, step) in steps.iter().enumerate() {
        let expected = step.now.as_ref().map(|image| &image.version);
        let reached = match files.cx.check() {
            Ok(()) => reach(store, files, &step.path, expected, step.then.as_ref()).await,
            Err(error) => Err(error),
        };
        match reached {
            Ok(version) => versions.insert(step.path.clone(), version),
            Err(error) => {
                return Err(take_back(store, files, &steps[..place], versions, error.or_path(&step.path)).await);
            }
        };
    }
    Ok(versions)
}

/// Changes the file at `path` from `expected` to `then`. A file that has the target state already, for example because an answer
/// was lost, is a success.
async fn reach(
    store: &CheckpointStore,
    files: &Files<'_>,
    path: &VfsPath,
    expected: Option<&Version>,
    then: Option<&Image>,
) -> Result<Option<Version>> {
    let done = match (expected, then) {
        (None, None) => Ok(None),
        (Some(version), None) => files.remove(path, version).await.map(|()| None),
        (_, Some(image)) => {
            let content = store.get(files.cx, &image.object).await.map_err(|error| error.with_path(path))?;
            files.put(path, content, expected).await.map(Some)
        }
    };
    let error = match done {
        Ok(version) => return Ok(version),
        Err(error) => error,
    };
    let cx = for_cleanup(files.cx);
    let files = Files { cx: &cx, ..*files };
    let Ok(now) = files.file(path).await else { return Err(error) };
    match files.holds(path, now.as_ref(), then).await {
        Ok(true) => Ok(now.map(|now| now.version)),
        _ => Err(as_conflict(error, path, now.map(|now| now.version))),
    }
}

/// Rolls back `steps`, the last first, after `error`.
async fn take_back(
    store: &CheckpointStore,
    files: &Files<'_>,
    steps: &[FileStep],
    mut versions: Versions,
    error: Error,
) -> Failure {
    let cx = for_cleanup(files.cx);
    let files = Files { cx: &cx, ..*files };
    let mut lost = Vec::new();
    for step in steps.iter().rev() {
        let expected = versions.get(&step.path).cloned().flatten();
        match reach(store, &files, &step.path, expected.as_ref(), step.now.as_ref()).await {
            Ok(version) => {
                versions.insert(step.path.clone(), version);
            }
            Err(error) => {
                tracing::warn!(%error, "a file could not be brought back after a failure");
                lost.push(step.path.clone());
            }
        }
    }
    Failure { error: with_lost(error, &lost), left: versions }
}

/// Returns `error` with the files that could not be restored after it.
fn with_lost(error: Error, lost: &[VfsPath]) -> Error {
    const SHOWN: usize = 10;
    if lost.is_empty() {
        return error;
    }
    let mut names = lost.iter().take(SHOWN).map(VfsPath::as_str).collect::<Vec<_>>().join(", ");
    if lost.len() > SHOWN {
        names = format!("{names} and {} more", lost.len() - SHOWN);
    }
    error.with_consequence(format_args!("what was done before could not be undone at: {names}"))
}

/// Returns `error` as a conflict if its kind shows that the file has changed meanwhile.
fn as_conflict(error: Error, path: &VfsPath, actual: Option<Version>) -> Error {
    use ErrorKind::{AlreadyExists, Conflict, IsADirectory, NotADirectory, NotEmpty, NotFound};
    match error.kind() {
        AlreadyExists | Conflict | IsADirectory | NotADirectory | NotEmpty | NotFound => changed(path, actual),
        _ => error.or_path(path),
    }
}

/// Returns the `conflict` of a file at `path` that another process changed.
pub(super) fn changed(path: &VfsPath, actual: Option<Version>) -> Error {
    let message = "somebody else has changed it meanwhile; what it holds now would be lost, so that nothing was done";
    let detail = ErrorDetail::Conflict { actual };
    Error::new(ErrorKind::Conflict, message).with_path(path).with_detail(detail)
}
