//! What is written down of one operation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{ErrorKind, FileInfo, OpContext, OperationClass, RequestRef, Version, VfsPath};

use super::operation::AuditOperation;
use crate::outcome::Outcome;

/// Upper bound on the bytes of a command, and of a name, that a record keeps.
const MAX_DETAIL: usize = 2000;

/// What is known of one operation, afterwards.
///
/// # Behaviour
///
/// * It holds no content of a file, no text of an edit and no pattern of a search. Of a command it holds the text.
/// * Texts are what the caller gave, control characters included. Whoever shows them escapes these.
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
    /// Who asked, cut after 2,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The session that the call belonged to, cut after 2,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Which operation; its code in JSON.
    pub operation: AuditOperation,
    /// The first path that was asked for; of a command, the directory it ran in; of what is done to a layer, where that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<VfsPath>,
    /// The second path: where a rename or copy went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<VfsPath>,
    /// The command, cut after 2,000 bytes, or the id of the snapshot that was gone back to or forgotten, or what was committed,
    /// discarded or undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it does.
    pub effect: OperationClass,
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
    /// Of a gap: how many records are missing before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// How it ended; its code in JSON. Of a gap, why the sink refused the records.
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
    pub(super) fn begin(cx: &OpContext, action: RequestRef<'_>) -> Self {
        let mut paths = action.paths().cloned();
        Self {
            path: paths.next(),
            to: paths.next(),
            detail: detail(action),
            ..Self::new(cx, action.operation().into(), action.class())
        }
    }

    /// The same of something that is done to a layer at `path`.
    pub(super) fn begin_other(cx: &OpContext, operation: AuditOperation, path: &VfsPath) -> Self {
        Self { path: Some(path.clone()), ..Self::new(cx, operation, OperationClass::Write) }
    }

    /// The record that stands for `lost` others, which the sink refused for the reason `refused`.
    pub(super) fn gap(lost: u64, refused: ErrorKind) -> Self {
        let outcome = Outcome::Failed(refused);
        Self { lost: Some(lost), outcome, ..Self::new(&OpContext::new(), AuditOperation::Gap, OperationClass::Write) }
    }

    fn new(cx: &OpContext, operation: AuditOperation, effect: OperationClass) -> Self {
        Self {
            sequence: 0,
            time: Utc::now(),
            actor: cx.actor().map(shortened),
            session: cx.session().map(shortened),
            operation,
            path: None,
            to: None,
            detail: None,
            effect,
            before: None,
            replaced: None,
            after: None,
            matches: None,
            lost: None,
            outcome: Outcome::Dropped,
            duration_us: 0,
            previous: String::new(),
            hash: String::new(),
        }
    }

    /// Says what was done.
    pub(super) fn describe(&mut self, detail: &str) {
        self.detail = Some(shortened(detail));
    }
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_DETAIL)].to_owned()
}

fn detail(action: RequestRef<'_>) -> Option<String> {
    let text = match action {
        RequestRef::Execute(request) => &request.command,
        RequestRef::ExecuteStream(request) => &request.0.command,
        RequestRef::JobOutput(request) => request.id.as_str(),
        RequestRef::StopJob(request) => request.id.as_str(),
        RequestRef::Restore(request) => request.id.as_str(),
        RequestRef::Forget(request) => request.id.as_str(),
        _ => return None,
    };
    Some(shortened(text))
}

#[cfg(test)]
mod tests {
    use vfs_core::{ExecuteRequest, Request as _};

    use super::*;

    #[test]
    fn a_command_is_kept_up_to_a_whole_character() {
        let of = |command: String| {
            AuditRecord::begin(&OpContext::new(), ExecuteRequest::new(command).as_request_ref()).detail
        };
        assert_eq!(of("make test".into()).as_deref(), Some("make test"));
        assert_eq!(of(format!("a{}", "é".repeat(2000))).map(|text| text.len()), Some(1999));
    }
}
