//! The backend trait and its capabilities.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::context::OpContext;
use crate::error::Result;
use crate::facets::{MultiModalReader, Snapshots, TreeProvider, Watch};
use crate::path::VfsPath;
use crate::requests::{
    CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, FileDownloadResponse, FileInfo,
    FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult,
    LsRequest, LsResult, OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest,
    ResolveResult, StatRequest, WriteRequest, WriteResult,
};
use crate::shell::{Shell, StreamingShell};

/// The properties in which backends differ, at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether files can be changed.
    pub access: AccessMode,
    /// Where mutations take effect.
    pub mutations: MutationMode,
    /// Whether empty directories can exist.
    pub empty_directories: bool,
    /// Whether symbolic links can exist.
    pub links: bool,
    /// Whether a write or an upload can set the modification time.
    #[serde(default)]
    pub set_times: bool,
    /// The maximum size, in bytes, of a file that is written, edited or downloaded in one call.
    pub max_file_size: u64,
    /// How a repeated mutation with an [`OperationId`](crate::OperationId) is treated.
    #[serde(default)]
    pub operation_ids: OperationIdSupport,
    /// The maximum size, in bytes, of a file that a [`FileWriter`] writes.
    #[serde(default)]
    pub max_streamed_size: u64,
}

impl Capabilities {
    /// Creates capabilities for in-place reads and writes of files of up to `max_file_size` bytes, also in chunks, without empty
    /// directories, links, modification times and operation ids. A backend sets the fields in which it differs.
    pub fn new(max_file_size: u64) -> Self {
        Self {
            access: AccessMode::ReadWrite,
            mutations: MutationMode::InPlace,
            empty_directories: false,
            links: false,
            set_times: false,
            operation_ids: OperationIdSupport::Ignored,
            max_file_size,
            max_streamed_size: max_file_size,
        }
    }
}

/// Whether files can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AccessMode {
    /// Files can be read and changed.
    ReadWrite,
    /// Files can only be read.
    ReadOnly,
}

/// Where a mutation takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MutationMode {
    /// In the backend: the next call observes the change.
    InPlace,
    /// In the result's `files_update` only: the caller merges the update into its state and opens a backend over that state.
    Returned,
}

/// How a backend treats the [`OperationId`](crate::OperationId) of a mutation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperationIdSupport {
    /// The id is ignored: a mutation that is sent again is made again.
    #[default]
    Ignored,
    /// The id is remembered by this process: a mutation that is sent again returns the first result, or is a `conflict` if the
    /// outcome of the first is unknown.
    Process,
    /// The id is stored for at least a day with the change, in one transaction: a mutation that is sent again, to any process, is
    /// made once and returns the first result. A rename or copy between two mounts is not covered.
    Stored,
}

/// A storage for files, such as memory, a local directory or a database.
///
/// Callers also have the short methods of [`BackendExt`](crate::BackendExt).
///
/// # Behaviour
///
/// * Every operation behaves as `docs/contract.md` specifies, on every backend; the laws of `vfs-testkit` check it.
/// * Paths in results and errors are in the caller's namespace.
/// * Dropping a future or stream, cancelling its context or passing its deadline stops the operation soon. A mutation is atomic:
///   before its commit point it has changed nothing.
/// * A clone of an `Arc<dyn Backend>` is a handle on the same files.
/// * No operation has a default implementation, so that an incomplete wrapper does not compile. Compile wrappers with
///   `#[deny(clippy::missing_trait_methods)]`, which covers the facets too.
///
/// # Errors
///
/// Every failure is an [`Error`](crate::Error); no input panics.
#[async_trait]
pub trait Backend: Debug + Display + Send + Sync + 'static {
    /// Returns the capabilities of this backend at the path `at`.
    fn capabilities(&self, at: &VfsPath) -> Capabilities;

    /// Returns the metadata of a file or directory. Links are followed.
    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo>;

    /// Resolves all links in a path, which need not exist. Rules about paths compare the resolved path.
    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult>;

    /// Lists a directory, sorted by path, with hidden and ignored entries. Unreadable entries are in `problems`.
    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult>;

    /// Reads a window of a file, at a cost proportional to the window.
    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult>;

    /// Writes or appends to a file atomically, and creates missing parent directories.
    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult>;

    /// Opens a writer for a file of any size, which is written in chunks and becomes visible with one commit.
    ///
    /// A backend that stores files in memory may return a [`BufferedWriter`](crate::chunks::BufferedWriter).
    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>>;

    /// Replaces text in a file; either all replacements of the request are made, or none.
    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult>;

    /// Deletes a file, a link itself, or a directory with all entries below it if the request is recursive. The root cannot be
    /// deleted.
    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult>;

    /// Renames a file, link or directory.
    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult>;

    /// Copies a file or directory.
    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult>;

    /// Returns the entries whose paths match a glob, sorted by path. Directories that the pattern cannot reach are not read.
    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult>;

    /// Searches file contents and returns all matches.
    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult>;

    /// Searches file contents and streams the matches, in the order of [`grep`](Self::grep). Dropping the stream ends the search.
    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>>;

    /// Writes whole files, replacing existing ones. Each path succeeds or fails alone; of several files of one path, the later ones
    /// can fail because an earlier one did. Results are in the order of the request.
    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse>;

    /// Reads whole files. Each file succeeds or fails alone; results are in the order of the request.
    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse>;

    /// Returns the shell of this backend, or `None` if it cannot run commands.
    fn as_shell(&self) -> Option<&dyn Shell> {
        None
    }

    /// Returns the streaming shell of this backend, or `None` if it cannot stream the output of commands.
    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        None
    }

    /// Returns the reader of images and documents, or `None` if this backend has none.
    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        None
    }

    /// Returns the tree provider, or `None` if the files cannot be searched as a part of another namespace.
    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        None
    }

    /// Returns the snapshots of this backend, or `None` if it has none.
    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    /// Returns the change feed of this backend, or `None` if it has none.
    fn as_watch(&self) -> Option<&dyn Watch> {
        None
    }
}

macro_rules! forward {
    ($pointer:ident) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<B: Backend + ?Sized> Backend for $pointer<B> {
            fn capabilities(&self, at: &VfsPath) -> Capabilities {
                (**self).capabilities(at)
            }
            async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
                (**self).stat(cx, req).await
            }
            async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
                (**self).resolve(cx, req).await
            }
            async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
                (**self).ls(cx, req).await
            }
            async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
                (**self).read(cx, req).await
            }
            async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
                (**self).write(cx, req).await
            }
            async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
                (**self).open_writer(cx, req).await
            }
            async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
                (**self).edit(cx, req).await
            }
            async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
                (**self).delete(cx, req).await
            }
            async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
                (**self).rename(cx, req).await
            }
            async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
                (**self).copy(cx, req).await
            }
            async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
                (**self).glob(cx, req).await
            }
            async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
                (**self).grep(cx, req).await
            }
            fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
                (**self).grep_stream(cx, req)
            }
            async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
                (**self).upload_files(cx, files).await
            }
            async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
                (**self).download_files(cx, paths).await
            }
            fn as_shell(&self) -> Option<&dyn Shell> {
                (**self).as_shell()
            }
            fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
                (**self).as_streaming_shell()
            }
            fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
                (**self).as_multi_modal()
            }
            fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
                (**self).as_tree_provider()
            }
            fn as_snapshots(&self) -> Option<&dyn Snapshots> {
                (**self).as_snapshots()
            }
            fn as_watch(&self) -> Option<&dyn Watch> {
                (**self).as_watch()
            }
        }
    };
}

forward!(Arc);
forward!(Box);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arcs_and_boxes_of_dyn_backend_are_backends() {
        fn assert_backend<B: Backend>() {}
        assert_backend::<Arc<dyn Backend>>();
        assert_backend::<Box<dyn Backend>>();
    }
}
