//! What a call does.

use async_trait::async_trait;
use vfs_core::operation::{OperationClass, UnaryRequest as _};
use vfs_core::{Backend, OpContext, StatRequest, VfsPath};

use crate::outcome::{FailureKind, ToolOutcome};
use crate::session::Session;
use crate::tool_set_state::ToolSetState;

/// Maximum number of characters of a path in a refusal.
const MAX_PATH_CHARACTERS: usize = 300;

/// What a call does, as its arguments say.
#[async_trait]
pub(crate) trait Action: Send + Sync {
    /// Returns what [`perform`](Self::perform) will do.
    fn effect(&self) -> Effect;

    /// Returns the files that the call changes, replaces or deletes, which the model may have to read before.
    fn changes(&self) -> Vec<VfsPath> {
        Vec::new()
    }

    /// Does it. Every failure is an outcome.
    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome;
}

/// What a call has at its disposal.
#[derive(Clone, Copy)]
pub(crate) struct CallScope<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) cx: &'a OpContext,
    pub(crate) session: &'a Session,
    pub(crate) setup: &'a ToolSetState,
    /// The id that the model gave the call.
    pub(crate) id: Option<&'a str>,
    /// Maximum number of characters of the result.
    pub(crate) max_characters: usize,
}

impl CallScope<'_> {
    /// Returns a refusal if the tools are set to refuse changes of files that the model has not read, and one of `paths` is such a file.
    pub(crate) async fn refuse_unread(&self, paths: Vec<VfsPath>) -> Option<ToolOutcome> {
        if !self.setup.reads_before_edits {
            return None;
        }
        for path in paths {
            if self.session.version(&path).is_some() {
                continue;
            }
            match StatRequest::new(path.clone()).send(self.backend, self.cx).await {
                Ok(info) if info.is_dir => {}
                Err(error) if error.is_absence() => {}
                Err(error) => return Some(ToolOutcome::of_error(&error, error.for_model())),
                Ok(_) => {
                    let shown: String = path.as_str().chars().take(MAX_PATH_CHARACTERS).collect();
                    let text = format!("Error: you have not read {shown}; read it before you change it");
                    return Some(ToolOutcome::failed(FailureKind::NotRead, text));
                }
            }
        }
        None
    }
}

/// What a call will do, known before it does anything: for an approval, or for ordering parallel calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// Whether the call only reads, changes files, or runs a command, which may change any file.
    pub class: OperationClass,
    /// The paths of its requests.
    pub paths: Vec<VfsPath>,
}

impl Effect {
    pub(crate) fn new(class: OperationClass, paths: Vec<VfsPath>) -> Self {
        Self { class, paths }
    }
}
