//! Edits of a file by compare-and-swap.

use vfs_core::edit::ApplyMode;
use vfs_core::{EditRequest, EditResult, Error, Result, edit};

use super::coordination::backoff::{backoff, contended};
use super::view::namespace_view::NamespaceView;
use super::write::NewContent;
use crate::store::{Precondition, PutOutcome, Store, StoredValue};

/// Applies the replacements to the current content by compare-and-swap, and to the new content again if another writer
/// was faster.
///
/// With an expected version, only this version is edited.
pub(super) async fn edit<S: Store>(view: &NamespaceView<S>, req: &EditRequest) -> Result<EditResult> {
    let path = &req.path;
    edit::check(req).map_err(|error| error.or_path(path))?;
    let max = view.shared.max_file_size();
    let lock = match req.mode {
        ApplyMode::DryRun => None,
        _ => Some(view.lock_key(path).await?),
    };
    for attempt in 0..view.shared.config.edit_attempts {
        let StoredValue { stored, content, .. } = view.whole_file(path, max).await?;
        if req.expected_version.as_ref().is_some_and(|expected| *expected != stored.version) {
            return Err(Error::conflict(path, Some(stored.version)));
        }
        let edited = edit::apply(&content, &req.replacements, max).map_err(|error| error.or_path(path))?;
        let size = edited.content.len() as u64;
        let diff = req.wants_diff().then(|| edit::diff(path, &content, &edited.content));
        let result = |version| EditResult::new(path.clone(), edited.occurrences, version, size).with_diff(diff.clone());
        if req.mode == ApplyMode::DryRun {
            return Ok(result(stored.version));
        }
        let value = NewContent::new(edited.content.into(), None).value(Some(&stored));
        let content = value.content.clone();
        let recorded = || result(content.version());
        match view.commit_put(path, value, &Precondition::Version(stored.version), recorded).await? {
            PutOutcome::Applied(stored) => return Ok(result(stored.version)),
            PutOutcome::PreconditionFailed(found) if req.expected_version.is_some() => {
                return Err(Error::conflict(path, found.map(|stored| stored.version)));
            }
            PutOutcome::PreconditionFailed(_) => {}
        }
        backoff(&view.cx, path, attempt).await?;
    }
    drop(lock);
    Err(contended(path))
}
