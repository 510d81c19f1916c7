//! Metadata and path resolution, and the check for reserved names.

use vfs_core::{Error, ErrorKind, FileInfo, OpContext, ResolveResult, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::remote_place_client::RemotePlaceClient;
use crate::script::PathResolutionMode;
use crate::script::entry_metadata::EntryMetadata;
use crate::script::reply::Reply;

pub(crate) async fn stat<E: RemoteExec>(
    place: &RemotePlaceClient<E>,
    cx: &OpContext,
    path: VfsPath,
) -> Result<FileInfo> {
    refuse_reserved(&path)?;
    let mut script = place.script(cx, &path).await?;
    script.walk(PathResolutionMode::Followed, &path).push("facts");
    let reply = place.query_reply(cx, &path, script).await?;
    facts(&reply, &path)?.info(path)
}

pub(crate) async fn resolve<E: RemoteExec>(
    place: &RemotePlaceClient<E>,
    cx: &OpContext,
    path: VfsPath,
) -> Result<ResolveResult> {
    refuse_reserved(&path)?;
    let mut script = place.script(cx, &path).await?;
    script.walk(PathResolutionMode::Wherever, &path);
    script.push(r#"[ "$n" = . ] || p=$p/$n"#);
    script.push(r#"say p; printf '%s' "$p""#);
    script.push(r#"[ -z "$u" ] || say u"#);
    script.push(r#"if [ -z "$q" ] && [ -f "./$n" ]; then facts; fi"#);
    let reply = place.query_reply(cx, &path, script).await?;
    let real = reply.get(b'p').ok_or_else(|| unreadable(&path))?;
    let real = std::str::from_utf8(real).map_err(|_| {
        Error::new(ErrorKind::InvalidPath, "the path leads to a name that is not UTF-8").with_path(&path)
    })?;
    let real = if real.is_empty() { VfsPath::root() } else { VfsPath::parse(real)? };
    let names = if reply.get(b'e').is_some() { facts(&reply, &path)?.links.max(1) } else { 1 };
    Ok(ResolveResult::at(real).names(names).leads_nowhere(reply.get(b'u').is_some()))
}

/// Returns the metadata of the entry at `path` from a reply.
pub(crate) fn facts(reply: &Reply, path: &VfsPath) -> Result<EntryMetadata> {
    let facts = reply.get(b'e').and_then(|field| EntryMetadata::parse(field, false));
    facts.map(|(facts, _)| facts).ok_or_else(|| unreadable(path))
}

/// Returns the error for a complete reply with malformed fields.
pub(crate) fn unreadable(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Unavailable, "a tool of the sandbox printed malformed output").with_path(path)
}

/// The prefix of names that belong to changes in progress. No listing shows such a name, and no path may contain one.
pub(crate) const RESERVED: &str = ".vfs-tmp-";

pub(crate) fn refuse_reserved(path: &VfsPath) -> Result<()> {
    if path.components().any(|name| name.starts_with(RESERVED)) {
        let message = "names that start with '.vfs-tmp-' are reserved; use another name";
        return Err(Error::new(ErrorKind::InvalidPath, message).with_path(path));
    }
    Ok(())
}
