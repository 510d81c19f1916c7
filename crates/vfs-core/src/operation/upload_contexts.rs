//! Contexts of the files of one upload.

use std::collections::HashMap;

use crate::context::OpContext;
use crate::path::VfsPath;

/// Contexts of the files of one upload, for backends that upload one file after the other.
///
/// # Behaviour
///
/// An operation id identifies a mutation together with its path. A file whose path occurred before in the upload therefore gets an
/// id of its own, which depends on the id of the caller and on the number of the occurrence: both changes are made, and neither is
/// repeated if the upload is sent again.
///
/// ```
/// use vfs_core::operation::UploadContexts;
/// use vfs_core::{OpContext, OperationId, VfsPath};
///
/// let cx = OpContext::new().with_operation_id(OperationId::parse("run-7/step-3")?);
/// let mut contexts = UploadContexts::new(&cx);
/// let path = VfsPath::parse("/a.txt")?;
/// assert_eq!(contexts.context(&path).operation_id(), cx.operation_id());
/// assert_ne!(contexts.context(&path).operation_id(), cx.operation_id());
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug)]
pub struct UploadContexts<'a> {
    cx: &'a OpContext,
    occurrences: HashMap<VfsPath, usize>,
}

impl<'a> UploadContexts<'a> {
    /// Returns the contexts of an upload with the context `cx`.
    pub fn new(cx: &'a OpContext) -> Self {
        Self { cx, occurrences: HashMap::new() }
    }

    /// Returns the context of the next file of the upload, whose path is `path`.
    pub fn context(&mut self, path: &VfsPath) -> OpContext {
        let Some(id) = self.cx.operation_id() else { return self.cx.clone() };
        let occurrence = self.occurrences.entry(path.clone()).or_default();
        let id = id.of_occurrence(*occurrence);
        *occurrence += 1;
        self.cx.clone().with_operation_id(id)
    }
}
