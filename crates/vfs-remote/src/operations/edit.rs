//! Text replacement in a file: read, edit, conditional write.

use std::sync::Arc;

use bytes::Bytes;
use vfs_core::edit::ApplyMode;
use vfs_core::error::ErrorDetail;
use vfs_core::{EditRequest, EditResult, Error, ErrorKind, OpContext, Result, WriteMode, edit};

use crate::exec::RemoteExec;
use crate::operations::stat::refuse_reserved;
use crate::operations::write::{NewContent, put};
use crate::remote_place_client::{ATTEMPTS, RemotePlaceClient, backoff};

/// Edits the current content of a file, and starts again with the new content if a concurrent change overtakes it. If
/// the request expects a version, only that version is edited.
pub(crate) async fn edit<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: &EditRequest,
) -> Result<EditResult> {
    let path = &request.path;
    edit::check(request)?;
    refuse_reserved(path)?;
    let max = place.config.max_file_size;
    let _lock = match request.mode {
        ApplyMode::DryRun => None,
        _ => Some(place.locks.lock(cx, path).await?),
    };
    let mut cached = match request.mode {
        ApplyMode::DryRun => None,
        // The cached content is usually current, and the place compares versions. If it is stale, the content is
        // fetched.
        _ => place.recent.get(path).and_then(|file| Some((file.version, file.content?))).filter(|(version, old)| {
            request.expected_version.as_ref().is_none_or(|expected| expected == version)
                && edit::apply(old, &request.replacements, max).is_ok()
        }),
    };
    for attempt in 1..=ATTEMPTS {
        let (version, old) = match cached.take() {
            Some(cached) => cached,
            None => {
                let (facts, content) = place.whole(cx, path, max).await?;
                (facts.version(), content)
            }
        };
        if request.expected_version.as_ref().is_some_and(|expected| *expected != version) {
            return Err(Error::conflict(path, Some(version)));
        }
        let edited = edit::apply(&old, &request.replacements, max).map_err(|error| error.or_path(path))?;
        let diff = request.wants_diff().then(|| edit::diff(path, &old, &edited.content));
        let size = edited.content.len() as u64;
        if request.mode == ApplyMode::DryRun {
            return Ok(EditResult::new(path.clone(), edited.occurrences, version, size).with_diff(diff));
        }
        match put(place, cx, path, NewContent::Memory(&Bytes::from(edited.content)), &WriteMode::IfVersion(version))
            .await
        {
            Ok((_, facts)) => {
                return Ok(EditResult::new(path.clone(), edited.occurrences, facts.version(), size).with_diff(diff));
            }
            Err(error) => match error.detail() {
                Some(ErrorDetail::Conflict { actual: None }) => return Err(Error::not_found(path)),
                Some(ErrorDetail::Conflict { .. }) if request.expected_version.is_none() => {
                    backoff(cx, path, attempt).await?;
                }
                // A conflict without detail ends the edit: the edit was made, and then overtaken by another change.
                _ => return Err(error),
            },
        }
    }
    Err(Error::at(ErrorKind::Busy, path))
}
