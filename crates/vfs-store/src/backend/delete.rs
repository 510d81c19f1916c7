//! Deletion of files and directories.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::stream::{self, StreamExt as _};
use vfs_core::transfer::DeleteScope;
use vfs_core::{DeleteRequest, DeleteResult, Error, ErrorKind, Result, VfsPath};

use super::coordination::backoff::{backoff, contended};
use super::nontransactional::of_partial_change;
use super::view::namespace_view::NamespaceView;
use super::view::path_entry::PathEntry;
use crate::store::{BatchOutcome, Precondition, PutOutcome, Store, Write};

pub(super) async fn delete<S: Store>(view: &NamespaceView<S>, req: &DeleteRequest) -> Result<DeleteResult> {
    let path = &req.path;
    if path.is_root() {
        return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
    }
    for attempt in 0..view.shared.config.edit_attempts {
        if req.scope == DeleteScope::EmptyDirectory {
            return Err(not_an_empty_directory(&view.find(path).await?, path));
        }
        let expected = req.expected_version.clone().map_or(Precondition::Any, Precondition::Version);
        let result = || DeleteResult::new(path.clone(), 1);
        match view.commit_delete(path, &expected, result).await? {
            PutOutcome::Applied(_) => return Ok(result()),
            PutOutcome::PreconditionFailed(Some(found)) => return Err(Error::conflict(path, Some(found.version))),
            PutOutcome::PreconditionFailed(None) => {}
        }
        if view.find(path).await? == PathEntry::Directory
            && let Some(files) = delete_directory(view, req).await?
        {
            return Ok(DeleteResult::new(path.clone(), files));
        }
        backoff(&view.cx, path, attempt).await?;
    }
    Err(contended(path))
}

/// Returns the error for the deletion of an empty directory: a directory exists only while it has files, so none is
/// empty.
fn not_an_empty_directory(found: &PathEntry, path: &VfsPath) -> Error {
    match found {
        PathEntry::File(_) => Error::at(ErrorKind::NotADirectory, path),
        PathEntry::Directory => Error::at(ErrorKind::NotEmpty, path),
    }
}

/// Removes all files below the path and returns their number, or `None` if another writer removed some of them
/// meanwhile.
async fn delete_directory<S: Store>(view: &NamespaceView<S>, req: &DeleteRequest) -> Result<Option<u64>> {
    let path = &req.path;
    req.check_directory()?;
    let paths = view.subtree(path).await?.into_paths();
    if paths.is_empty() {
        return Ok(None);
    }
    let files = paths.len() as u64;
    if view.batches().is_some() {
        let writes = paths.into_iter().map(Write::Delete).collect();
        let result = || DeleteResult::new(path.clone(), files);
        return Ok(match view.commit(path, &[], writes, result).await? {
            BatchOutcome::Applied(_) => Some(files),
            BatchOutcome::PreconditionFailed(..) => None,
        });
    }
    delete_each(view, &paths).await.map(Some)
}

/// Removes each file by its own request, several concurrently. After a failure no request is started, and running ones
/// complete.
async fn delete_each<S: Store>(view: &NamespaceView<S>, paths: &[VfsPath]) -> Result<u64> {
    let has_failed = &AtomicBool::new(false);
    let deletions: Vec<_> = paths
        .iter()
        .map(|path| async move {
            if has_failed.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let outcome = view.delete(path, &Precondition::Any).await.map_err(|failure| {
                has_failed.store(true, Ordering::Relaxed);
                (failure.or_path(path), path)
            })?;
            Ok::<_, (Error, &VfsPath)>(u64::from(matches!(outcome, PutOutcome::Applied(_))))
        })
        .collect();
    let mut deletions = stream::iter(deletions).buffer_unordered(view.fetches());
    let is_busy = |(failure, _): &(Error, &VfsPath)| failure.kind() == ErrorKind::Busy;
    let (mut deleted, mut first_failure) = (0, None);
    while let Some(outcome) = deletions.next().await {
        match outcome {
            Ok(files) => deleted += files,
            // Another failure says more than `busy`, after which nothing has changed.
            Err(failure) if first_failure.as_ref().is_none_or(is_busy) => first_failure = Some(failure),
            Err(_) => {}
        }
    }
    match first_failure {
        None => Ok(deleted),
        Some((failure, _)) if deleted == 0 => Err(failure),
        Some((failure, path)) => Err(of_partial_change(failure, path).after_partial_delete(deleted)),
    }
}
