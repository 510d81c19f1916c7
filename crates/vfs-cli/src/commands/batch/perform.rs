//! A request handed to the backend operation that it names.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use vfs_core::{Backend, Error, ErrorKind, Result};

use super::request::{Fields, Request, decode, parse_paths};
use super::transfer;
use crate::session::Session;

const OPERATIONS: &str =
    "stat, ls, read, write, edit, delete, rename, copy, glob, grep, upload_files or download_files";

/// Carries out `request`; the result is the operation's own, as JSON.
pub(super) async fn perform(session: &Session, request: Request) -> Result<Box<RawValue>> {
    let Request { id: _, op, fields } = request;
    let path = fields.get("path").or_else(|| fields.get("from")).and_then(Value::as_str).map(str::to_owned);
    carry_out(session, op, fields).await.map_err(|error| match (error.path(), path) {
        // A fault of the request itself is told at the path that it is about, too.
        (None, Some(path)) => error.with_path_text(&path),
        _ => error,
    })
}

async fn carry_out(session: &Session, op: Option<String>, mut fields: Fields) -> Result<Box<RawValue>> {
    let op = op.ok_or_else(|| Error::invalid_argument(format!("missing field `op`: it is {OPERATIONS}")))?;
    parse_paths(&mut fields, |text| session.path(text))?;
    let (backend, cx) = (&session.backend, &session.cx);
    match op.as_str() {
        "stat" => json(&backend.stat(cx, decode(fields)?).await?),
        "ls" => json(&backend.ls(cx, decode(fields)?).await?),
        "read" => json(&backend.read(cx, decode(fields)?).await?),
        "write" => json(&backend.write(cx, decode(fields)?).await?),
        "edit" => json(&backend.edit(cx, decode(fields)?).await?),
        "delete" | "rm" => json(&backend.delete(cx, decode(fields)?).await?),
        "rename" | "mv" => json(&backend.rename(cx, decode(fields)?).await?),
        "copy" | "cp" => json(&backend.copy(cx, decode(fields)?).await?),
        "glob" => json(&backend.glob(cx, decode(fields)?).await?),
        "grep" => json(&backend.grep(cx, decode(fields)?).await?),
        "upload_files" | "upload" => json(&transfer::upload(session, decode(fields)?).await?),
        "download_files" | "download" => json(&transfer::download(session, decode(fields)?).await),
        other => Err(Error::invalid_argument(format!("unknown op `{other}`: it is {OPERATIONS}"))),
    }
}

fn json(result: &impl Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(result)
        .map_err(|error| Error::new(ErrorKind::Internal, "the result cannot be written as JSON").with_source(error))
}
