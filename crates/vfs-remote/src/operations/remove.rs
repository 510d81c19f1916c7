//! Deletion of files and directory trees.

use std::sync::Arc;

use vfs_core::transfer::DeleteScope;
use vfs_core::{DeleteRequest, DeleteResult, Error, OpContext, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::stat::refuse_reserved;
use crate::operations::write::actual;
use crate::remote_place_client::RemotePlaceClient;
use crate::script::entry_metadata::stat_format;
use crate::script::functions;
use crate::script::reply::Reply;
use crate::script::{PathResolutionMode, quoted};

pub(crate) async fn delete<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: DeleteRequest,
) -> Result<DeleteResult> {
    let path = &request.path;
    if path.is_root() {
        return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
    }
    refuse_reserved(path)?;
    let features = place.features().await?;
    let how = match (request.scope, request.recursive) {
        (DeleteScope::EmptyDirectory, _) => "empty",
        (_, true) => "tree",
        (_, false) => "file",
    };
    let expected = request.expected_version.as_ref().map(|version| quoted(&stat_format(version, features.flavour)));
    let _lock = place.locks.lock(cx, path).await?;
    let answer = place
        .settle(cx, path, || async {
            let mut script = place.changing(cx, path, functions::REMOVE).await?;
            script.walk(PathResolutionMode::Entry, path);
            script.push(&format!("remove {how} {}", expected.as_deref().unwrap_or_default()));
            Ok(script)
        })
        .await?;
    match answer.reply.failure() {
        Some(b"conflict") => return Err(Error::conflict(path, Some(actual(&answer.reply, path)?))),
        Some(b"isdir") => request.check_directory()?,
        _ => {}
    }
    let (files, left) = (sum_of(&answer.reply, b'k', ""), sum_of(&answer.reply, b'l', ""));
    let (directories, directories_left) = (sum_of(&answer.reply, b'k', "d"), sum_of(&answer.reply, b'l', "d"));
    let obstacle = answer.reply.get(b'b').map(|field| obstacle(field, path));
    match (answer.done(path), obstacle) {
        (Err(failure), Some(obstacle)) => {
            let failure = failure.with_path_text(&obstacle);
            let removed = files.saturating_sub(left);
            let is_unchanged = removed == 0 && directories <= directories_left;
            Err(if is_unchanged { failure } else { failure.after_partial_delete(removed) })
        }
        (ended, _) => ended.map(|_| DeleteResult::new(path.clone(), files)),
    }
}

/// Returns the sum of the numbers in a field that follow the prefix `letter`, which may be empty. The delete has been
/// made by then, so a count that is not a number is ignored.
fn sum_of(reply: &Reply, tag: u8, letter: &str) -> u64 {
    let counts = reply.get(tag).map(|field| String::from_utf8_lossy(field).into_owned()).unwrap_or_default();
    let numbers = counts.split_whitespace().filter_map(|count| count.strip_prefix(letter)?.parse::<u64>().ok());
    numbers.fold(0, u64::saturating_add)
}

/// Returns the caller's path of the entry that `field` names. The path in `field` starts with the name of the tree,
/// which may be a reserved one.
fn obstacle(field: &[u8], path: &VfsPath) -> String {
    let named = String::from_utf8_lossy(field);
    let below = named.trim_start_matches("./").split_once('/').map(|(_, below)| below);
    below.map_or_else(|| path.to_string(), |below| format!("{path}/{below}"))
}
