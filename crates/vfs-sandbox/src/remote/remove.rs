//! Deleting.

use std::sync::Arc;

use vfs_core::{DeleteRequest, DeleteResult, DeleteScope, Error, ErrorKind, OpContext, Result};

use super::execute::Execute;
use super::facts::spelled;
use super::functions;
use super::look::refuse_reserved;
use super::place::Place;
use super::script::{Walk, quoted};
use super::write::actual;

pub(super) async fn delete<E: Execute>(
    place: &Arc<Place<E>>,
    cx: &OpContext,
    request: DeleteRequest,
) -> Result<DeleteResult> {
    let path = &request.path;
    if path.is_root() {
        return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
    }
    refuse_reserved(path)?;
    let abilities = place.abilities().await?;
    let how = match (request.scope, request.recursive) {
        (DeleteScope::EmptyDirectory, _) => "empty",
        (_, true) => "tree",
        (_, false) => "file",
    };
    let expected = request.expected_version.as_ref().map(|version| quoted(&spelled(version, abilities.flavour)));
    let _turn = place.turns.of(cx, path).await?;
    let answer = place
        .settle(cx, path, || async {
            let mut script = place.changing(cx, path, functions::REMOVE).await?;
            script.walk(Walk::Entry, path);
            script.push(&format!("remove {how} {}", expected.as_deref().unwrap_or_default()));
            Ok(script)
        })
        .await?;
    match answer.reply.failure() {
        Some(b"conflict") => return Err(Error::conflict(path, Some(actual(&answer.reply, path)?))),
        Some(b"isdir") => {
            let message = "it is a directory; ask for a recursive delete if all of it is meant";
            return Err(Error::new(ErrorKind::IsADirectory, message).with_path(path));
        }
        _ => {}
    }
    let reply = answer.done(path)?;
    // It is removed, whatever the place says of the number: what is no number counts nothing.
    let counts = reply.get(b'k').map(|field| String::from_utf8_lossy(field).into_owned()).unwrap_or_default();
    let files = counts.split_whitespace().filter_map(|count| count.parse::<u64>().ok()).fold(0, u64::saturating_add);
    Ok(DeleteResult::new(path.clone(), files))
}
