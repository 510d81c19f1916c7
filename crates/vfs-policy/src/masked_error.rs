//! Errors that do not reveal files which may not be read.

use std::iter;

use vfs_core::error::ErrorDetail;
use vfs_core::{Error, ErrorKind, OpContext, ReadRequest, Result, StatRequest, VfsPath, WriteMode};

use crate::enforcer::{Enforcer, denied};
use crate::policy::{Decision, Permission};

impl Enforcer {
    /// Removes from `error`, at `path` unless it names another one, what it reveals of files that may not be read: the version of a
    /// `conflict`, and `not_a_directory`, which becomes `not_found` unless the file in the way is a component of the path itself. A
    /// file that a link leads through is never revealed.
    pub(crate) async fn without_hidden_files(&self, cx: &OpContext, error: Error, path: &VfsPath) -> Error {
        let path = &path_of(&error).unwrap_or_else(|| path.clone());
        if matches!(error.detail(), Some(ErrorDetail::Conflict { actual: Some(_) })) {
            // An approver is not asked again, so a file whose reads need an approval does not show its version either.
            let read = self.check(cx, &ReadRequest::new(path.clone())).await;
            return if matches!(read, Ok(None)) { error } else { Error::at(ErrorKind::Conflict, path) };
        }
        if error.kind() != ErrorKind::NotADirectory {
            return error;
        }
        match self.inner.stat(cx, StatRequest::new(path.clone())).await {
            Err(stat) if stat.kind() == ErrorKind::NotADirectory => {}
            // The error is about the last component.
            _ => return error,
        }
        for at in iter::successors(path.parent(), VfsPath::parent) {
            if !self.is_file(cx, &at).await {
                continue;
            }
            let is_readable = match self.real_or_none(cx, &at).await {
                Ok(Some(real)) => !self.denies(cx, &at).await && !self.denies(cx, &real).await,
                _ => false,
            };
            return if is_readable { error } else { Error::not_found(path) };
        }
        Error::not_found(path)
    }

    /// Returns the error that replaces `answer` if `path` is unreadable, the same whether it exists or not. Returns `None` if
    /// `path` is readable, or if `answer` failed for an unrelated reason.
    pub(crate) async fn refusal<T>(&self, cx: &OpContext, path: &VfsPath, answer: &Result<T>) -> Option<Error> {
        use ErrorKind::{ApprovalRequired, Cancelled, PolicyDenied};
        let is_unrelated =
            |error: &Error| error.is_temporary() || matches!(error.kind(), ApprovalRequired | Cancelled | PolicyDenied);
        if answer.as_ref().err().is_some_and(is_unrelated) {
            return None;
        }
        match self.hook().check_path(cx, Permission::Read, path).await {
            Decision::Deny { reason } => Some(denied(&reason, path)),
            _ => None,
        }
    }

    async fn is_file(&self, cx: &OpContext, path: &VfsPath) -> bool {
        self.inner.stat(cx, StatRequest::new(path.clone())).await.is_ok_and(|info| !info.is_dir)
    }

    async fn denies(&self, cx: &OpContext, path: &VfsPath) -> bool {
        matches!(self.hook().check_path(cx, Permission::Read, path).await, Decision::Deny { .. })
    }
}

/// Replaces `not_found` of a write to `path` that expects a version by the error of a missing file, also if a rule hides it.
pub(crate) fn missing_as_conflict(error: Error, mode: &WriteMode, path: &VfsPath) -> Error {
    match mode {
        WriteMode::IfVersion(_) if error.kind() == ErrorKind::NotFound => {
            Error::conflict(&path_of(&error).unwrap_or_else(|| path.clone()), None)
        }
        _ => error,
    }
}

/// Returns the path that `error` names, such as that of a request that an approver has edited.
fn path_of(error: &Error) -> Option<VfsPath> {
    VfsPath::parse(error.path()?).ok()
}
