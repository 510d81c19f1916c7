//! Audit record of one operation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::operation::{OperationClass, RequestRef};
use vfs_core::{ErrorKind, FileInfo, OpContext, Version, VfsPath};

use super::audit_operation::AuditOperation;
use crate::outcome::Outcome;

/// Maximum bytes of a command or a name in a record.
const MAX_TEXT_SIZE: usize = 2000;

/// The record of one operation, created at its end.
///
/// # Behaviour
///
/// * A record has no content of a file, no text of an edit and no pattern of a search, but the text of a command.
/// * Texts are those of the caller, including control characters. A program that displays them must escape these.
/// * `hash` is the hash of the canonical form: the JSON without `hash`, in the order of these fields, without those
///   that are `None`. `previous` chains it to the record before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Sequence number in the log, from 1, in the order in which operations ended.
    pub sequence: u64,
    /// Start of the operation, in UTC; RFC 3339 in JSON.
    pub time: DateTime<Utc>,
    /// The caller, cut after 2,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The session of the call, cut after 2,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The operation; its code in JSON.
    pub operation: AuditOperation,
    /// The first path of the request; of a command, its working directory; of an operation on a layer, the path of
    /// the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<VfsPath>,
    /// The second path: the target of a rename or copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<VfsPath>,
    /// The command, cut after 2,000 bytes; the id of the snapshot that was restored or forgotten; or the description of
    /// a commit, discard or undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The class of the operation.
    pub effect: OperationClass,
    /// The state at `path` before a change. `None` if nothing existed there, or the `stat` failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<AuditFileState>,
    /// The state at `to` before a rename or copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<AuditFileState>,
    /// The state at `to`, or else at `path`, after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<AuditFileState>,
    /// The number of matches of a streamed search that completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
    /// The number of records that are missing before this record of a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// The outcome; its code in JSON. In the record of a gap, the error of the sink.
    pub outcome: Outcome,
    /// Duration in microseconds, without that of the record itself.
    pub duration_us: u64,
    /// The `hash` of the record before; 64 zeros in the first one.
    pub previous: String,
    /// BLAKE3 of the canonical form, in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// The state at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditFileState {
    /// The version; `None` for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The size in bytes; 0 for a directory.
    pub size: u64,
}

impl From<FileInfo> for AuditFileState {
    fn from(info: FileInfo) -> Self {
        Self { version: info.version, size: info.size }
    }
}

impl AuditRecord {
    /// Returns the record of an operation that begins now. Its outcome is `dropped` until another one is set.
    pub(super) fn begin(cx: &OpContext, request: RequestRef<'_>) -> Self {
        let mut paths = request.paths().cloned();
        Self {
            path: paths.next(),
            to: paths.next(),
            detail: detail(request),
            ..Self::new(cx, request.operation().into(), request.class())
        }
    }

    /// Returns the record of an operation on a layer at `path` that begins now.
    pub(super) fn begin_layer_operation(cx: &OpContext, operation: AuditOperation, path: &VfsPath) -> Self {
        Self { path: Some(path.clone()), ..Self::new(cx, operation, OperationClass::Write) }
    }

    /// Returns the record that stands for `lost` others, which the sink refused with `refused`.
    pub(super) fn gap(lost: u64, refused: ErrorKind) -> Self {
        let outcome = Outcome::Failed(refused);
        Self { lost: Some(lost), outcome, ..Self::new(&OpContext::new(), AuditOperation::Gap, OperationClass::Write) }
    }

    fn new(cx: &OpContext, operation: AuditOperation, effect: OperationClass) -> Self {
        Self {
            sequence: 0,
            time: Utc::now(),
            actor: cx.actor().map(truncate),
            session: cx.session().map(truncate),
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

    /// Sets the detail.
    pub(super) fn describe(&mut self, detail: &str) {
        self.detail = Some(truncate(detail));
    }
}

fn truncate(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_SIZE)].to_owned()
}

fn detail(request: RequestRef<'_>) -> Option<String> {
    let text = match request {
        RequestRef::Execute(request) => &request.command,
        RequestRef::ExecuteStream(request) => &request.0.command,
        RequestRef::JobOutput(request) => request.id.as_str(),
        RequestRef::StopJob(request) => request.id.as_str(),
        RequestRef::Restore(request) => request.id.as_str(),
        RequestRef::Forget(request) => request.id.as_str(),
        _ => return None,
    };
    Some(truncate(text))
}

#[cfg(test)]
mod tests {
    use vfs_core::ExecuteRequest;
    use vfs_core::operation::Request as _;

    use super::*;

    #[test]
    fn a_command_is_truncated_at_a_character_boundary() {
        let of = |command: String| {
            AuditRecord::begin(&OpContext::new(), ExecuteRequest::new(command).as_request_ref()).detail
        };
        assert_eq!(of("make test".into()).as_deref(), Some("make test"));
        assert_eq!(of(format!("a{}", "é".repeat(2000))).map(|text| text.len()), Some(1999));
    }
}
