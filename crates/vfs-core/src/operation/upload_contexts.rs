//! Contexts of the files of one upload.

use std::collections::HashMap;

use crate::backend::OperationIdSupport;
use crate::context::OpContext;
use crate::error::{Error, Result};
use crate::path::VfsPath;
use crate::requests::FileUploadResponse;

/// Contexts of the files of one upload, for backends that upload one file after the other.
///
/// # Behaviour
///
/// An operation id identifies a mutation together with its path. A file whose path occurred before in the upload therefore gets an
/// id of its own, which depends on the id of the caller and on the number of the occurrence: both changes are made, and neither is
/// repeated if the upload is sent again.
///
/// With an operation id that the backend remembers, a file fails if an earlier one with its path failed. Otherwise the earlier file
/// would replace it when the upload is sent again. Paths that lead to one file by a link are not recognised as one.
///
/// ```
/// use vfs_core::backend::OperationIdSupport;
/// use vfs_core::operation::UploadContexts;
/// use vfs_core::{Error, ErrorKind, FileUploadResponse, OpContext, OperationId, VfsPath};
///
/// let cx = OpContext::new().with_operation_id(OperationId::parse("run-7/step-3")?);
/// let (mut contexts, stored) = (UploadContexts::new(&cx), OperationIdSupport::Stored);
/// let path = VfsPath::parse("/a.txt")?;
/// assert_eq!(contexts.next(&path, stored)?.operation_id(), cx.operation_id());
/// assert_ne!(contexts.next(&path, stored)?.operation_id(), cx.operation_id());
/// contexts.record(&FileUploadResponse::failed(path.clone(), Error::at(ErrorKind::Unavailable, &path)));
/// assert!(contexts.next(&path, stored).is_err_and(|error| error.kind() == ErrorKind::Unavailable));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug)]
pub struct UploadContexts<'a> {
    cx: &'a OpContext,
    paths: HashMap<VfsPath, UploadPathState>,
}

/// The files of an upload that have one path.
#[derive(Debug, Default)]
struct UploadPathState {
    /// Number of files so far.
    count: usize,
    failure: Option<Error>,
}

impl<'a> UploadContexts<'a> {
    /// Returns the contexts of an upload with the context `cx`.
    pub fn new(cx: &'a OpContext) -> Self {
        Self { cx, paths: HashMap::new() }
    }

    /// Returns the context of the next file of the upload, whose path is `path`, for a backend with the `support` for operation ids.
    ///
    /// # Errors
    ///
    /// The kind of error with which an earlier file with this path failed.
    pub fn next(&mut self, path: &VfsPath, support: OperationIdSupport) -> Result<OpContext> {
        let id = self.cx.operation_id().filter(|_| support != OperationIdSupport::Ignored);
        let Some(id) = id else { return Ok(self.cx.clone()) };
        let occurrences = self.paths.entry(path.clone()).or_default();
        if let Some(failure) = &occurrences.failure {
            let message = format!(
                "an earlier file of this upload has the same path and failed, so this one was not written: {}",
                failure.message()
            );
            return Err(Error::new(failure.kind(), message).with_path(path));
        }
        let id = id.of_occurrence(occurrences.count);
        occurrences.count += 1;
        Ok(self.cx.clone().with_operation_id(id))
    }

    /// Records the response to a file of the upload, so that later files with its path fail if it failed.
    pub fn record(&mut self, response: &FileUploadResponse) {
        if let Some(cause) = &response.cause
            && let Some(occurrences) = self.paths.get_mut(&response.path)
        {
            occurrences.failure.get_or_insert_with(|| cause.clone());
        }
    }
}
