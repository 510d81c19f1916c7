//! Dispatch of requests to operations of the backend.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use vfs_core::search::InvertMatch;
use vfs_core::suggest::similar;
use vfs_core::{Backend, Error, GlobRequest, GrepRequest, LsRequest, OpContext, Result, TruncationReason, VfsPath};

use super::batch_request::{BatchRequest, OperationFields, accept_file_path, decode, parse_paths};
use super::batch_shell::{BatchShell, COMMAND_OPERATIONS};
use super::bounded_json::encode;
use super::transfer;
use crate::backend_session::BackendSession;
use crate::search_hints;

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

/// Returns the names of all operations as a phrase.
fn operation_names() -> String {
    let [names @ .., last] = &OPERATIONS;
    format!("{} or {last}", names.join(", "))
}

/// Creates the error of a request without `op`, which may be in a misspelt field.
fn missing_operation(fields: &OperationFields) -> Error {
    let misspelt = fields.keys().find(|name| !similar(name, ["op"], 1).is_empty());
    Error::invalid_argument(match misspelt {
        Some(name) => format!("missing field `op`; is `{name}` a misspelling of it?"),
        None => format!("missing field `op`, which is one of: {}", operation_names()),
    })
}

/// Creates the error of a request with an unknown `op`.
fn unknown_operation(op: &str) -> Error {
    Error::invalid_argument(match similar(op, OPERATIONS, 1).first() {
        Some(near) => format!("unknown op `{op}`; did you mean `{near}`?"),
        None => format!("unknown op `{op}`; it is one of: {}", operation_names()),
    })
}

/// The message about a grep with a field `regex`.
const REGEX_FIELD_ERROR: &str = r#"unknown field `regex`; a regular expression is written "pattern":{"regex":"..."}"#;

/// Advice on how to search for a regular expression.
const REGEX_ADVICE: &str = r#"write {"regex": ...} as the pattern"#;

/// Maximum number of entries of one answer.
const MAX_ENTRIES: u64 = 1_000_000;

/// Default of `limit`, the maximum number of entries or matches of one answer.
const DEFAULT_LIMIT: u64 = 10_000;

/// Default of `max_result_bytes`, the maximum size of the lines and paths of one grep, 4 MiB.
const DEFAULT_MAX_RESULT_BYTES: u64 = 4 << 20;

/// Returns the effective limit of a request with this `limit`.
fn effective_limit(limit: Option<u64>) -> u64 {
    limit.unwrap_or(DEFAULT_LIMIT).min(MAX_ENTRIES)
}

/// Returns a hint for an answer that was truncated at a default limit.
fn truncation_hint(requested: Option<u64>, truncated: Option<TruncationReason>) -> Option<String> {
    let more = match truncated {
        Some(TruncationReason::Limit) => "`limit`",
        Some(TruncationReason::MaxBytes) => "`max_result_bytes`",
        _ => return None,
    };
    let advice = || format!("there are more results; raise {more}, or narrow the path or pattern");
    requested.is_none().then(advice)
}

/// The result of an operation as JSON, with an optional hint.
pub(super) struct EncodedResult {
    pub(super) result: Vec<u8>,
    pub(super) hint: Option<String>,
}

/// Performs `request`. The result is that of the operation, with paths as the backend returned them.
pub(super) async fn perform(
    session: &BackendSession,
    commands: &BatchShell,
    cx: OpContext,
    request: BatchRequest,
) -> Result<EncodedResult> {
    let BatchRequest { id: _, op, timeout_ms, mut fields } = request;
    let op = op.ok_or_else(|| missing_operation(&fields))?;
    if !COMMAND_OPERATIONS.contains(&op.as_str()) {
        accept_file_path(&mut fields);
    }
    let path = fields.get("path").or_else(|| fields.get("from")).and_then(Value::as_str).map(str::to_owned);
    let timeout = timeout_ms.flatten().map(Duration::from_millis);
    let result = if COMMAND_OPERATIONS.contains(&op.as_str()) {
        perform_command(session, commands, cx, &op, fields, timeout).await
    } else {
        let cx = timeout.map_or_else(|| cx.clone(), |timeout| cx.clone().with_timeout(timeout));
        perform_file_operation(session, &cx, &op, fields).await
    };
    result.map_err(|error| match (error.path(), path) {
        // Errors about the request as a whole also have its path.
        (None, Some(path)) => error.with_path_text(&path),
        _ => error,
    })
}

async fn perform_command(
    session: &BackendSession,
    commands: &BatchShell,
    cx: OpContext,
    op: &str,
    mut fields: OperationFields,
    timeout: Option<Duration>,
) -> Result<EncodedResult> {
    parse_paths(&mut fields, |text| session.path(text))?;
    let result = commands.perform(session, cx, op, fields, timeout).await?;
    Ok(EncodedResult { result, hint: None })
}

async fn perform_file_operation(
    session: &BackendSession,
    cx: &OpContext,
    op: &str,
    mut fields: OperationFields,
) -> Result<EncodedResult> {
    parse_paths(&mut fields, |text| session.path(text))?;
    let backend = &session.backend;
    let mut hint = None;
    let result = match op {
        "stat" => encode(&backend.stat(cx, decode(fields)?).await?),
        "ls" => {
            let mut request: LsRequest = decode(fields)?;
            let requested = request.limit.replace(effective_limit(request.limit));
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
            let requested = request.limit.replace(effective_limit(request.limit));
            let found = backend.glob(cx, request).await?;
            hint = truncation_hint(requested, found.truncated);
            encode(&found)
        }
        "grep" if fields.contains_key("regex") => Err(Error::invalid_argument(REGEX_FIELD_ERROR)),
        "grep" => return grep(session, cx, decode(fields)?).await,
        "upload_files" | "upload" => encode(&transfer::upload(session, cx, decode(fields)?).await?),
        "download_files" | "download" => encode(&transfer::download(session, cx, decode(fields)?).await),
        "resolve" => encode(&backend.resolve(cx, decode(fields)?).await?),
        "capabilities" => {
            encode(&backend.capabilities(&decode::<CapabilitiesFields>(fields)?.path.unwrap_or_default()))
        }
        other => Err(unknown_operation(other)),
    }?;
    Ok(EncodedResult { result, hint })
}

/// The fields of `capabilities`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilitiesFields {
    path: Option<VfsPath>,
}

/// Searches text; without a match, the result has a hint about other searches.
async fn grep(session: &BackendSession, cx: &OpContext, mut request: GrepRequest) -> Result<EncodedResult> {
    let literal_hint = match request.invert {
        InvertMatch::Yes => None,
        _ => search_hints::literal_pattern_hint(&request.pattern, REGEX_ADVICE),
    };
    let (limit, max_bytes) = (request.limit, request.max_result_bytes);
    request.limit.get_or_insert(DEFAULT_LIMIT);
    request.max_result_bytes.get_or_insert(DEFAULT_MAX_RESULT_BYTES);
    let found = session.backend.grep(cx, request).await?;
    let result = encode(&found)?;
    if !(found.matches.is_empty() && found.files.is_empty()) {
        let requested = if found.truncated == Some(TruncationReason::MaxBytes) { max_bytes } else { limit };
        return Ok(EncodedResult { result, hint: truncation_hint(requested, found.truncated) });
    }
    let skipped = search_hints::count_skipped(&found.skipped, "`hidden`", "`no_ignore`", r#"`binary`: "text""#);
    let skipped = skipped.map(|counts| format!("no match in {} files; left out: {counts}", found.files_searched));
    let hints: Vec<_> = literal_hint.into_iter().chain(skipped).collect();
    Ok(EncodedResult { result, hint: (!hints.is_empty()).then(|| hints.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_entries_is_bounded_for_every_limit() {
        assert_eq!([None, Some(3), Some(u64::MAX)].map(effective_limit), [10_000, 3, 1_000_000]);
    }
}
