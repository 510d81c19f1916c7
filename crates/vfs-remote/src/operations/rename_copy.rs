//! Rename and copy.

use std::sync::Arc;

use vfs_core::transfer::{TransferTargetMode, check_source_and_target};
use vfs_core::tree::ChildKind;
use vfs_core::{CopyRequest, CopyResult, Error, ErrorKind, OpContext, RenameRequest, RenameResult, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::stat::{refuse_reserved, unreadable};
use crate::remote_place_client::{RemotePlaceClient, ScriptResponse};
use crate::script::entry_metadata::EntryMetadata;
use crate::script::functions;
use crate::script::reply::Reply;
use crate::script::{PathResolutionMode, Script};

pub(crate) async fn rename<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: RenameRequest,
) -> Result<RenameResult> {
    let RenameRequest { from, to, mode, .. } = request;
    check(&from, &to)?;
    let _lock = place.locks.lock_both(cx, &from, &to).await?;
    let answer = place
        .settle(cx, &from, || async {
            let mut script = begin(place, cx, &from).await?;
            script.walk(PathResolutionMode::Entry, &from).push("origin");
            script.walk(PathResolutionMode::MakingEntry, &to).push(&format!("move {}", word(mode)));
            Ok(script)
        })
        .await?;
    let reply = done(answer, &from, &to)?;
    Ok(RenameResult::new(from, to, has_replaced(&reply)))
}

pub(crate) async fn copy<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: CopyRequest,
) -> Result<CopyResult> {
    let CopyRequest { from, to, mode, .. } = request;
    check(&from, &to)?;
    let _lock = place.locks.lock(cx, &to).await?;
    let answer = place
        .settle(cx, &from, || async {
            let mut script = begin(place, cx, &from).await?;
            script.walk(PathResolutionMode::Followed, &from).push("origin");
            // As in a write, a link at the target is written through. A directory never replaces a link.
            let through = if mode == TransferTargetMode::Overwrite { "if [ \"$sk\" = d ]; then" } else { "if :; then" };
            script.push(through).walk(PathResolutionMode::MakingEntry, &to);
            script.push("else").walk(PathResolutionMode::MakingFollowed, &to).push("fi");
            script.push(&format!("copy {}", word(mode)));
            Ok(script)
        })
        .await?;
    let reply = done(answer, &from, &to)?;
    let (files, bytes) = copied(&reply).ok_or_else(|| unreadable(&to))?;
    let replaced = has_replaced(&reply);
    Ok(CopyResult::new(from, to, replaced, files, bytes))
}

fn check(from: &VfsPath, to: &VfsPath) -> Result<()> {
    check_source_and_target(from, to)?;
    refuse_reserved(from)?;
    refuse_reserved(to)
}

async fn begin<E: RemoteExec>(place: &RemotePlaceClient<E>, cx: &OpContext, from: &VfsPath) -> Result<Script> {
    place.changing(cx, from, functions::TRANSFER).await
}

fn word(mode: TransferTargetMode) -> &'static str {
    match mode {
        TransferTargetMode::Overwrite => "over",
        _ => "new",
    }
}

fn has_replaced(reply: &Reply) -> bool {
    reply.get(b'k').is_some_and(|field| field[..] == *b"1")
}

/// Returns the number of copied files, and their total size in bytes.
fn copied(reply: &Reply) -> Option<(u64, u64)> {
    if let Some(field) = reply.get(b'e') {
        return Some((1, EntryMetadata::parse(field, false)?.0.size));
    }
    let (mut files, mut bytes) = (0, 0_u64);
    for field in reply.all(b'r') {
        let (facts, _) = EntryMetadata::parse(field, true)?;
        match facts.kind {
            ChildKind::Directory => continue,
            // Sizes that the place reports are untrusted, so their sum may overflow.
            ChildKind::File => bytes = bytes.checked_add(facts.size)?,
            _ => {}
        }
        files += 1;
    }
    Some((files, bytes))
}

/// Returns the reply, or the failure at the path that it is about: the target if an entry there prevents the transfer,
/// else the source.
fn done(answer: ScriptResponse, from: &VfsPath, to: &VfsPath) -> Result<Reply> {
    let label = answer.reply.failure().map(<[u8]>::to_vec).unwrap_or_default();
    let is_walking_target = answer.reply.get(b't').is_some();
    let error = match answer.done(from) {
        Ok(reply) => return Ok(reply),
        Err(error) => error,
    };
    let is_target = match label.as_slice() {
        b"notdirto" | b"isdirto" | b"existsto" | b"exists" | b"notempty" | b"same" | b"inside" => true,
        b"missing" => false,
        _ => is_walking_target,
    };
    match (is_target, error.kind()) {
        (true, ErrorKind::AlreadyExists) => Err(Error::already_exists(to)),
        (true, _) => Err(error.with_path(to)),
        (false, _) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::script::ReplyMarker;

    #[test]
    fn impossible_sizes_are_refused() {
        let marker = ReplyMarker::random();
        let text = |size: u64| {
            let field = format!("Mr-f 644 0 0 1|1 2 {size} 1.0|1.0|name");
            let text = format!("Mr-f 644 0 0 1|1 3 7 1.0|1.0|other{field}M.M");
            Bytes::from(text.replace('M', std::str::from_utf8(marker.as_bytes()).expect("it is ASCII")))
        };
        let counts = |size| copied(&Reply::parse(&marker, &text(size)).expect("it is whole"));
        assert_eq!(counts(3), Some((2, 10)));
        assert_eq!(counts(u64::MAX), None);
    }
}
