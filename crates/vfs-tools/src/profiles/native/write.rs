//! Tool `write`: a whole file, or text at the end of one.

use async_trait::async_trait;
use vfs_core::operation::OperationClass;
use vfs_core::text::{Encoding, LineEnding};
use vfs_core::{
    Error, ErrorKind, FileInfo, ReadRequest, StatRequest, Version, VfsPath, WriteMode, WriteRequest, WriteResult,
};

use super::errors;
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::ResultText;
use crate::result_metadata::outcome_of;
use crate::session::short_version;
use crate::text_file_edit::{self, InsertError};
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

pub(super) const WRITE: ToolDefinition = ToolDefinition {
    name: "write",
    parameters: &[
        Parameter::required("path", ParameterKind::Path, "The file. Directories above it are created.")
            .aliases(&["file_path", "file"]),
        Parameter::required("content", ParameterKind::Text, "").aliases(&["text", "contents", "file_text"]),
        Parameter::optional("mode", ParameterKind::Choice(&["create", "overwrite", "append"]), "Default 'create'."),
    ],
    annotations: Annotations::destructive("Write a file"),
    needs: Needs::WritableFiles,
    anthropic_type: None,
    description: |_| "Writes a file, or text at its end. For a part of a file, prefer edit.".to_owned(),
    action: |arguments| {
        let mode = match arguments.text("mode") {
            Some("overwrite") => WriteToolMode::Overwrite,
            Some("append") => WriteToolMode::Append,
            _ => WriteToolMode::Create,
        };
        let (path, content) = (arguments.required_path("path")?, arguments.required_text("content")?);
        Ok(Box::new(WriteAction { path, content, mode }))
    },
};

struct WriteAction {
    path: VfsPath,
    content: String,
    mode: WriteToolMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteToolMode {
    Create,
    Overwrite,
    Append,
}

#[async_trait]
impl Action for WriteAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Write, vec![self.path.clone()])
    }

    fn changes(&self) -> Vec<VfsPath> {
        if self.mode == WriteToolMode::Create { Vec::new() } else { vec![self.path.clone()] }
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let shown = scope.session.version(&self.path);
        let before = match self.mode {
            WriteToolMode::Append => self.info(scope).await,
            WriteToolMode::Create | WriteToolMode::Overwrite => None,
        };
        let joined = match &before {
            Some(before) if !self.content.is_empty() && self.ends_within_line(scope, before.size).await => {
                "; the file had no final line break, so that its last line goes on with the text"
            }
            _ => "",
        };
        match self.write_over_shown_text(scope, shown.clone()).await {
            Ok(written) => {
                let lines = with_count(self.content.lines().count() as u64, "line");
                let version = short_version(&written.version);
                let text = match self.mode {
                    _ if written.created => format!("created {} ({lines}) {version}", written.path),
                    WriteToolMode::Append => format!("appended {lines} to {} {version}{joined}", written.path),
                    WriteToolMode::Create | WriteToolMode::Overwrite => {
                        format!("replaced {} ({lines}) {version}", written.path)
                    }
                };
                let whole = (self.mode != WriteToolMode::Append || written.created).then(|| self.content.clone());
                // What others have written since is not known to the model after an append either.
                let is_known = self.mode != WriteToolMode::Append
                    || written.created
                    || shown.is_none()
                    || before.is_some_and(|before| {
                        shown == before.version && before.size + self.content.len() as u64 == written.size
                    });
                if is_known {
                    scope.session.show(&self.path, &written.version, whole);
                }
                outcome_of(ResultText::whole(text), written)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.mode != WriteToolMode::Create => {
                match scope.refuse_unread(vec![self.path.clone()]).await {
                    Some(refused) => refused,
                    // The model has read the file meanwhile, or it is gone again.
                    None => errors::failure_outcome(scope, &self.path, error).await,
                }
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let error = error.or_path(&self.path);
                let path = &self.path;
                let text = format!(
                    "Error: {path} is there already; read it, and use edit, or mode=\"overwrite\" to replace it"
                );
                ToolOutcome::of_error(&error, text)
            }
            Err(error) => errors::failure_outcome(scope, &self.path, error).await,
        }
    }
}

impl WriteAction {
    /// Writes, and once more if the file has only a new version of the text that was shown.
    async fn write_over_shown_text(&self, scope: &CallScope<'_>, shown: Option<Version>) -> Result<WriteResult, Error> {
        match self.write(scope, shown).await {
            Err(error)
                if self.mode == WriteToolMode::Overwrite
                    && errors::is_text_unchanged(scope, &self.path, &error).await =>
            {
                self.write(scope, scope.session.version(&self.path)).await
            }
            written => written,
        }
    }

    async fn write(&self, scope: &CallScope<'_>, shown: Option<Version>) -> Result<WriteResult, Error> {
        let mode = match (self.mode, shown) {
            (WriteToolMode::Create, _) => WriteMode::CreateNew,
            // The call would have been refused if there had been a file that the model has not read.
            (_, None) if scope.setup.reads_before_edits => WriteMode::CreateNew,
            (WriteToolMode::Append, _) => match self.append_in_its_encoding(scope).await {
                Some(written) => return written,
                None => WriteMode::Append,
            },
            // What the model has seen is what it means to replace.
            (WriteToolMode::Overwrite, Some(shown)) => WriteMode::IfVersion(shown),
            (WriteToolMode::Overwrite, None) => WriteMode::Overwrite,
        };
        let request = WriteRequest::new(self.path.clone(), self.content.clone()).mode(mode);
        scope.backend.write(scope.cx, request).await
    }

    /// Appends to a text that is not in UTF-8, or whose lines end with `\r\n`; returns `None` for any other file.
    async fn append_in_its_encoding(&self, scope: &CallScope<'_>) -> Option<Result<WriteResult, Error>> {
        let first_lines = ReadRequest::new(self.path.clone()).limit(2).max_bytes(4096);
        let first_lines = scope.backend.read(scope.cx, first_lines).await.ok()?;
        let is_utf8 = matches!(first_lines.encoding, None | Some(Encoding::Utf8 | Encoding::Utf8Bom));
        if is_utf8 && first_lines.line_ending != LineEnding::Crlf {
            return None;
        }
        let append = |text: &str, line_break: &str| {
            let content = self.content.replace("\r\n", "\n").replace('\n', line_break);
            Ok(format!("{text}{content}"))
        };
        Some(match text_file_edit::insert(scope, &self.path, append).await {
            Ok((written, _)) => Ok(written),
            Err(InsertError::Backend(error)) => Err(error),
            Err(InsertError::NoSuchLine { .. }) => Err(Error::of(ErrorKind::Internal)),
        })
    }

    /// Returns whether the file, of `size` bytes, has a last line without a line break.
    async fn ends_within_line(&self, scope: &CallScope<'_>, size: u64) -> bool {
        let end = ReadRequest::new(self.path.clone()).raw().bytes(size.saturating_sub(2), None);
        let Ok(end) = scope.backend.read(scope.cx, end).await else { return false };
        let end = end.content.as_bytes();
        // In UTF-16, a zero may follow the line break.
        !end.is_empty() && !end.ends_with(b"\n") && !end.ends_with(b"\n\0")
    }

    async fn info(&self, scope: &CallScope<'_>) -> Option<FileInfo> {
        scope.backend.stat(scope.cx, StatRequest::new(self.path.clone())).await.ok()
    }
}
