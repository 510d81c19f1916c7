//! Dispatch of requests to the operations of the backend.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use vfs_config::suggest::similar;
use vfs_core::{Backend, Error, GlobRequest, GrepRequest, LsRequest, OpContext, Result, Truncation, VfsPath};

use super::commands::{COMMAND_OPERATIONS, CommandRunner};
use super::json::encode;
use super::request::{Fields, Request, decode, name_path, parse_paths};
use super::transfer;
use crate::hints;
use crate::session::Session;

const OPERATIONS: [&str; 19] = [
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
    "resolve",
    "capabilities",
    "cancel",
    "execute",
    "jobs",
    "job_output",
    "stop_job",
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

/// The error of a grep with a field `regex`.
const REGEX_FIELD: &str = r#"unknown field `regex`; a regular expression is written "pattern":{"regex":"..."}"#;

/// How a request searches for a regular expression.
const INSTEAD: &str = r#"write {"regex": ...} as the pattern"#;

/// Upper bound on the entries of one answer.
const MAX_ENTRIES: u64 = 1_000_000;

/// Default of `limit`: most entries or matches of one answer.
const DEFAULT_ENTRIES: u64 = 10_000;

/// Default of `max_result_bytes`: most bytes of the lines and paths of one grep, 4 MiB.
const DEFAULT_RESULT_BYTES: u64 = 4 << 20;

/// Returns the limit of a request with this `limit`, within the bounds.
fn bounded(limit: Option<u64>) -> u64 {
    limit.unwrap_or(DEFAULT_ENTRIES).min(MAX_ENTRIES)
}

/// Returns advice for an answer that was truncated at a default bound.
fn truncation_hint(requested: Option<u64>, truncated: Option<Truncation>) -> Option<String> {
    let more = match truncated {
        Some(Truncation::Limit) => "`limit`",
        Some(Truncation::MaxBytes) => "`max_result_bytes`",
        _ => return None,
    };
    let advice = || format!("there are more results; raise {more}, or narrow the path or pattern");
    requested.is_none().then(advice)
}

/// The result of an operation as JSON, and advice beside it.
pub(super) struct Performed {
    pub(super) result: Vec<u8>,
    pub(super) hint: Option<String>,
}

/// Performs `request`. The result is that of the operation, with paths as the backend returned them.
pub(super) async fn perform(
    session: &Session,
    commands: &CommandRunner,
    cx: OpContext,
    request: Request,
) -> Result<Performed> {
    let Request { id: _, op, timeout_ms, mut fields } = request;
    let op = op.ok_or_else(|| missing_operation(&fields))?;
    if !COMMAND_OPERATIONS.contains(&op.as_str()) {
        name_path(&mut fields);
    }
    let path = fields.get("path").or_else(|| fields.get("from")).and_then(Value::as_str).map(str::to_owned);
    let timeout = timeout_ms.flatten().map(Duration::from_millis);
    let performed = if COMMAND_OPERATIONS.contains(&op.as_str()) {
        perform_command(session, commands, cx, &op, fields, timeout).await
    } else {
        let cx = timeout.map_or_else(|| cx.clone(), |timeout| cx.clone().with_timeout(timeout));
        perform_file_operation(session, &cx, &op, fields).await
    };
    performed.map_err(|error| match (error.path(), path) {
        // An error about the request itself names the path of the request, too.
        (None, Some(path)) => error.with_path_text(&path),
        _ => error,
    })
}

async fn perform_command(
    session: &Session,
    commands: &CommandRunner,
    cx: OpContext,
    op: &str,
    mut fields: Fields,
    timeout: Option<Duration>,
) -> Result<Performed> {
    parse_paths(&mut fields, |text| session.path(text))?;
    let result = commands.perform(session, cx, op, fields, timeout).await?;
    Ok(Performed { result, hint: None })
}

async fn perform_file_operation(session: &Session, cx: &OpContext, op: &str, mut fields: Fields) -> Result<Performed> {
    parse_paths(&mut fields, |text| session.path(text))?;
    let backend = &session.backend;
    let mut hint = None;
    let result = match op {
        "stat" => encode(&backend.stat(cx, decode(fields)?).await?),
        "ls" => {
            let mut request: LsRequest = decode(fields)?;
            let requested = request.limit.replace(bounded(request.limit));
            let listed = backend.ls(cx, request).await?;
            hint = truncation_hint(requested, listed.truncated);
            encode(&listed)
        }
        "read" => encode(&backend.read(cx, decode(fields)?).await?),
        "write" => encode(&backend.write(cx, decode(fields)?).await?),
        "edit" => encode(&backend.edit(cx, decode(fields)?).await?),
        "delete" | "rm" => encode(&backend.delete(cx, decode(fields)?).await?),
        "rename" | "mv" => encode(&backend.rename(cx, decode(fields)?).await?),
        "copy" | "cp" => encode(&backend.copy(cx, decode(fields)?).await?),
        "glob" => {
            let mut request: GlobRequest = decode(fields)?;
            let requested = request.limit.replace(bounded(request.limit));
            let found = backend.glob(cx, request).await?;
            hint = truncation_hint(requested, found.truncated);
            encode(&found)
        }
        "grep" if fields.contains_key("regex") => Err(Error::invalid_argument(REGEX_FIELD)),
        "grep" => return grep(session, cx, decode(fields)?).await,
        "upload_files" | "upload" => encode(&transfer::upload(session, cx, decode(fields)?).await?),
        "download_files" | "download" => encode(&transfer::download(session, cx, decode(fields)?).await),
        "resolve" => encode(&backend.resolve(cx, decode(fields)?).await?),
        "capabilities" => {
            encode(&backend.capabilities(&decode::<CapabilitiesRequest>(fields)?.path.unwrap_or_default()))
        }
        other => Err(unknown_operation(other)),
    }?;
    Ok(Performed { result, hint })
}

/// The fields of `capabilities`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilitiesRequest {
    path: Option<VfsPath>,
}

/// Searches; without a match, the hint says how else to ask.
async fn grep(session: &Session, cx: &OpContext, mut request: GrepRequest) -> Result<Performed> {
    let literal = if request.invert { None } else { hints::literal(&request.pattern, INSTEAD) };
    let (limit, max_bytes) = (request.limit, request.max_result_bytes);
    request.limit.get_or_insert(DEFAULT_ENTRIES);
    request.max_result_bytes.get_or_insert(DEFAULT_RESULT_BYTES);
    let found = session.backend.grep(cx, request).await?;
    let result = encode(&found)?;
    if !(found.matches.is_empty() && found.files.is_empty()) {
        let requested = if found.truncated == Some(Truncation::MaxBytes) { max_bytes } else { limit };
        return Ok(Performed { result, hint: truncation_hint(requested, found.truncated) });
    }
    let left_out = hints::left_out(&found.skipped, "`hidden`", "`no_ignore`", r#"`binary`: "text""#);
    let left_out = left_out.map(|counts| format!("no match in {} files; left out: {counts}", found.files_searched));
    let hints: Vec<_> = literal.into_iter().chain(left_out).collect();
    Ok(Performed { result, hint: (!hints.is_empty()).then(|| hints.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_bounded_entries_whatever_is_asked_for() {
        assert_eq!([None, Some(3), Some(u64::MAX)].map(bounded), [10_000, 3, 1_000_000]);
    }
}
