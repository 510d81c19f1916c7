//! A request handed to the backend operation that it names.

use serde_json::Value;
use vfs_config::suggest::similar;
use vfs_core::{Backend, Error, GlobRequest, GrepRequest, LsRequest, Result};

use super::json::encode;
use super::request::{Fields, Request, decode, parse_paths};
use super::transfer;
use crate::hints;
use crate::session::Session;

const OPERATIONS: [&str; 12] = [
    "stat",
    "ls",
    "read",
    "write",
    "edit",
    "delete",
    "rename",
    "copy",
    "glob",
    "grep",
    "upload_files",
    "download_files",
];

/// The operations in words.
fn operations() -> String {
    let [names @ .., last] = &OPERATIONS;
    format!("{} or {last}", names.join(", "))
}

/// The error of a request without an operation, which may have it in a misspelt field.
fn missing_operation(fields: &Fields) -> Error {
    let misspelt = fields.keys().find(|name| !similar(name, ["op"], 1).is_empty());
    Error::invalid_argument(match misspelt {
        Some(name) => format!("missing field `op`; did you mean it by `{name}`?"),
        None => format!("missing field `op`: it is {}", operations()),
    })
}

/// The error of a request for `op`, which is no operation.
fn unknown_operation(op: &str) -> Error {
    Error::invalid_argument(match similar(op, OPERATIONS, 1).first() {
        Some(near) => format!("unknown op `{op}`; did you mean `{near}`?"),
        None => format!("unknown op `{op}`: it is {}", operations()),
    })
}

/// How a request searches for a regular expression.
const INSTEAD: &str = r#"write {"regex": ...} as the pattern"#;

/// The most entries of one answer.
const MAX_ENTRIES: u64 = 1_000_000;

/// The limit of a request that asks for `limit` entries.
fn bounded(limit: Option<u64>) -> u64 {
    limit.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES)
}

/// The result of an operation as JSON, and advice beside it.
pub(super) struct Performed {
    pub(super) result: Vec<u8>,
    pub(super) hint: Option<String>,
}

/// Carries out `request`; the result is the operation's own.
pub(super) async fn perform(session: &Session, request: Request) -> Result<Performed> {
    let Request { id: _, op, fields } = request;
    let path = fields.get("path").or_else(|| fields.get("from")).and_then(Value::as_str).map(str::to_owned);
    carry_out(session, op, fields).await.map_err(|error| match (error.path(), path) {
        // A fault of the request itself is told at the path that it is about, too.
        (None, Some(path)) => error.with_path_text(&path),
        _ => error,
    })
}

async fn carry_out(session: &Session, op: Option<String>, mut fields: Fields) -> Result<Performed> {
    let op = op.ok_or_else(|| missing_operation(&fields))?;
    parse_paths(&mut fields, |text| session.path(text))?;
    let (backend, cx) = (&session.backend, &session.cx);
    let result = match op.as_str() {
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
        "grep" => return grep(session, decode(fields)?).await,
        "upload_files" | "upload" => encode(&transfer::upload(session, decode(fields)?).await?),
        "download_files" | "download" => encode(&transfer::download(session, decode(fields)?).await),
        other => Err(unknown_operation(other)),
    }?;
    Ok(Performed { result, hint: None })
}

/// Searches; without a match, the hint says how else to ask.
async fn grep(session: &Session, request: GrepRequest) -> Result<Performed> {
    let literal = if request.invert { None } else { hints::literal(&request.pattern, INSTEAD) };
    let found = session.backend.grep(&session.cx, request).await?;
    let result = encode(&found)?;
    if !(found.matches.is_empty() && found.files.is_empty()) {
        return Ok(Performed { result, hint: None });
    }
    let left_out = hints::left_out(&found.skipped, "`hidden`", "`no_ignore`");
    let left_out = left_out.map(|counts| format!("no match in {} files; left out: {counts}", found.files_searched));
    let hints: Vec<_> = literal.into_iter().chain(left_out).collect();
    Ok(Performed { result, hint: (!hints.is_empty()).then(|| hints.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_bounded_entries_whatever_is_asked_for() {
        assert_eq!([None, Some(3), Some(u64::MAX)].map(bounded), [1_000_000, 3, 1_000_000]);
    }
}
