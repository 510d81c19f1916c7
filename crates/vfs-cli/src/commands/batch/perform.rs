//! A request handed to the backend operation that it names.

use serde_json::Value;
use vfs_core::{Backend, Error, GlobRequest, LsRequest, Result};

use super::json::encode;
use super::request::{Fields, Request, decode, parse_paths};
use super::transfer;
use crate::session::Session;

const OPERATIONS: &str =
    "stat, ls, read, write, edit, delete, rename, copy, glob, grep, upload_files or download_files";

/// The most entries of one answer.
const MAX_ENTRIES: u64 = 1_000_000;

/// The limit of a request that asks for `limit` entries.
fn bounded(limit: Option<u64>) -> u64 {
    limit.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES)
}

/// Carries out `request`; the result is the operation's own, as JSON.
pub(super) async fn perform(session: &Session, request: Request) -> Result<Vec<u8>> {
    let Request { id: _, op, fields } = request;
    let path = fields.get("path").or_else(|| fields.get("from")).and_then(Value::as_str).map(str::to_owned);
    carry_out(session, op, fields).await.map_err(|error| match (error.path(), path) {
        // A fault of the request itself is told at the path that it is about, too.
        (None, Some(path)) => error.with_path_text(&path),
        _ => error,
    })
}

async fn carry_out(session: &Session, op: Option<String>, mut fields: Fields) -> Result<Vec<u8>> {
    let op = op.ok_or_else(|| Error::invalid_argument(format!("missing field `op`: it is {OPERATIONS}")))?;
    parse_paths(&mut fields, |text| session.path(text))?;
    let (backend, cx) = (&session.backend, &session.cx);
    match op.as_str() {
        "stat" => encode(&backend.stat(cx, decode(fields)?).await?),
        "ls" => {
            let mut request: LsRequest = decode(fields)?;
            request.limit = Some(bounded(request.limit));
            encode(&backend.ls(cx, request).await?)
        }
        "read" => encode(&backend.read(cx, decode(fields)?).await?),
        "write" => encode(&backend.write(cx, decode(fields)?).await?),
        "edit" => encode(&backend.edit(cx, decode(fields)?).await?),
        "delete" | "rm" => encode(&backend.delete(cx, decode(fields)?).await?),
        "rename" | "mv" => encode(&backend.rename(cx, decode(fields)?).await?),
        "copy" | "cp" => encode(&backend.copy(cx, decode(fields)?).await?),
        "glob" => {
            let mut request: GlobRequest = decode(fields)?;
            request.limit = Some(bounded(request.limit));
            encode(&backend.glob(cx, request).await?)
        }
        "grep" => encode(&backend.grep(cx, decode(fields)?).await?),
        "upload_files" | "upload" => encode(&transfer::upload(session, decode(fields)?).await?),
        "download_files" | "download" => encode(&transfer::download(session, decode(fields)?).await),
        other => Err(Error::invalid_argument(format!("unknown op `{other}`: it is {OPERATIONS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_bounded_entries_whatever_is_asked_for() {
        assert_eq!([None, Some(3), Some(u64::MAX)].map(bounded), [1_000_000, 3, 1_000_000]);
    }
}
