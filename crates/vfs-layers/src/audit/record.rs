//! What is written down of one operation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{Action, Effect, FileInfo, OpContext, Operation, Version, VfsPath};

use crate::outcome::Outcome;

/// Most bytes of a command that a record keeps.
const MAX_DETAIL: usize = 2000;

/// What is known of one operation, afterwards.
///
/// # Behaviour
///
/// * It holds no content of a file, no text of an edit and no pattern of a search. Of a command it holds the text.
/// * `hash` is that of the canonical form: its JSON without `hash`, in the order of these fields, without those that are
///   `None`. `previous` ties it to the record before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Its place in the log, from 1, in the order in which operations ended.
    pub sequence: u64,
    /// When the operation began, in UTC; RFC 3339 in JSON.
    pub time: DateTime<Utc>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The session that the call belonged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Which operation; its code in JSON.
    pub operation: Operation,
    /// The first path that was asked for; of a command, the directory it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<VfsPath>,
    /// The second path: where a rename or copy went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<VfsPath>,
    /// The command, cut after 2,000 bytes, or the id of the snapshot that was gone back to or forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// Of a change: what was at `path` before. `None` where nothing was, or it could not be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileState>,
    /// Of a rename or copy: what was at `to` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<FileState>,
    /// Of a change: what was at `to`, or else at `path`, afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileState>,
    /// Of a search as a stream that came to its end: how many matches it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
    /// How it ended; its code in JSON.
    pub outcome: Outcome,
    /// How long it took, in microseconds, without what the record itself took.
    pub duration_us: u64,
    /// The `hash` of the record before; 64 zeros in the first.
    pub previous: String,
    /// BLAKE3 over the canonical form, in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// What was at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FileState {
    /// The version; `None` for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The size in bytes; 0 for a directory.
    pub size: u64,
}

impl From<FileInfo> for FileState {
    fn from(info: FileInfo) -> Self {
        Self { version: info.version, size: info.size }
    }
}

impl AuditRecord {
    /// The record of an operation that begins now, and is dropped unless somebody says otherwise.
    pub(super) fn begin(cx: &OpContext, action: Action<'_>) -> Self {
        let mut paths = action.paths().cloned();
        Self {
            sequence: 0,
            time: Utc::now(),
            actor: cx.actor().map(str::to_owned),
            session: cx.session().map(str::to_owned),
            operation: action.operation(),
            path: paths.next(),
            to: paths.next(),
            detail: detail(action),
            effect: action.effect(),
            before: None,
            replaced: None,
            after: None,
            matches: None,
            outcome: Outcome::Dropped,
            duration_us: 0,
            previous: String::new(),
            hash: String::new(),
        }
    }
}

fn detail(action: Action<'_>) -> Option<String> {
    let text = match action {
        Action::Execute(request) => &request.command,
        Action::ExecuteStream(request) => &request.0.command,
        Action::JobOutput(request) => request.id.as_str(),
        Action::StopJob(request) => request.id.as_str(),
        Action::Restore(request) => request.id.as_str(),
        Action::Forget(request) => request.id.as_str(),
        _ => return None,
    };
    Some(text[..text.floor_char_boundary(MAX_DETAIL)].to_owned())
}

#[cfg(test)]
mod tests {
    use vfs_core::{ExecuteRequest, Request as _};

    use super::*;

    #[test]
    fn a_command_is_kept_up_to_a_whole_character() {
        let of = |command: String| AuditRecord::begin(&OpContext::new(), ExecuteRequest::new(command).action()).detail;
        assert_eq!(of("make test".into()).as_deref(), Some("make test"));
        assert_eq!(of(format!("a{}", "é".repeat(2000))).map(|text| text.len()), Some(1999));
    }
}
