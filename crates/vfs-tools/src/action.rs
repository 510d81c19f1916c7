//! What a call does.

use async_trait::async_trait;
use vfs_core::operation::OperationClass;
use vfs_core::{Backend, OpContext, VfsPath};

use crate::outcome::ToolOutcome;
use crate::session::Session;

/// What a call does, as its arguments say.
#[async_trait]
pub(crate) trait Action: Send + Sync {
    /// Returns what [`perform`](Self::perform) will do.
    fn effect(&self) -> Effect;

    /// Does it. Every failure is an outcome.
    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome;
}

/// What a call has at its disposal.
#[derive(Clone, Copy)]
pub(crate) struct CallScope<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) cx: &'a OpContext,
    pub(crate) session: &'a Session,
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
