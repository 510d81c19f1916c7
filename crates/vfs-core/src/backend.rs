//! The one trait: what every place that files can live in must do.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::context::OpContext;
use crate::error::Result;
use crate::facets::{MultiModalReader, Snapshots, TreeProvider, Watch};
use crate::path::VfsPath;
use crate::shell::{Shell, StreamingShell};
use crate::types::{
    CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, FileDownloadResponse, FileInfo,
    FileUpload, FileUploadResponse, FileWriter, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest,
    LsResult, OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, Resolved,
    StatRequest, WriteRequest, WriteResult,
};

/// What may differ between backends, at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether anything may be changed.
    pub access: Access,
    /// Where a mutation shows.
    pub mutations: Mutations,
    /// Whether a directory can exist without files.
    pub empty_directories: bool,
    /// Whether symbolic links can exist.
    pub links: bool,
    /// Whether a write or an upload can set the time of the last change.
    #[serde(default)]
    pub set_times: bool,
    /// The largest file that can be written, edited or downloaded whole, in bytes.
    pub max_file_size: u64,
    /// The largest file that a [`FileWriter`](crate::FileWriter) can write, in bytes.
    #[serde(default)]
    pub max_streamed_size: u64,
}

impl Capabilities {
    /// Read and write, in place, no empty directories, no links, no times to be set, files up to `max_file_size` bytes, also in
    /// chunks.
    pub fn new(max_file_size: u64) -> Self {
        Self {
            access: Access::ReadWrite,
            mutations: Mutations::InPlace,
            empty_directories: false,
            links: false,
            set_times: false,
            max_file_size,
            max_streamed_size: max_file_size,
        }
    }
}

/// Whether files may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Access {
    /// They may.
    ReadWrite,
    /// They may not.
    ReadOnly,
}

/// Where a mutation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mutations {
    /// In the backend itself: the next call sees it.
    InPlace,
    /// In the result's `files_update` only: the caller merges it, and asks a backend over the merged state.
    Returned,
}

/// A place that files live in.
///
/// This trait is for those who build such places and wrappers around them. Callers have the short forms of
/// [`BackendExt`](crate::BackendExt) as well.
///
/// # Behaviour
///
/// * Every operation behaves as the contract says, whatever the files are stored in; the laws of `vfs-testkit` check it.
/// * Paths in every result and every error are in the caller's namespace.
/// * Dropping a future or stream, cancelling its context or passing its deadline stops the work soon. A mutation has one
///   commit point, before which nothing happened and after which it all did.
/// * A clone of an `Arc` is a handle on the same files.
/// * No operation has a default body, so that a wrapper which forgets one does not compile. Compile wrappers under
///   `#[deny(clippy::missing_trait_methods)]`, which covers the facets too.
///
/// # Errors
///
/// Every failure is a typed [`Error`](crate::Error); nothing panics on input.
#[async_trait]
pub trait Backend: Debug + Display + Send + Sync + 'static {
    /// What this backend can do at `at`.
    fn capabilities(&self, at: &VfsPath) -> Capabilities;

    /// Says what is at a path. A link is followed.
    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo>;

    /// Says where a path really is, all links in it followed; nothing need be there. This is what a rule about paths goes by.
    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved>;

    /// Lists a directory, sorted by path. Nothing is hidden here; what cannot be looked at is in `problems`.
    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult>;

    /// Reads a window of a file. The cost follows the window.
    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult>;

    /// Writes a whole file, or to its end, atomically; directories above it are made.
    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult>;

    /// Opens a writer for a file of any size, which is written in chunks and appears with one commit. A backend that keeps files
    /// in memory may return a [`BufferedWriter`](crate::BufferedWriter).
    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>>;

    /// Replaces text in a file, all of the request or nothing.
    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult>;

    /// Removes a file, a link as a link, or by request a directory with all below it. The root is refused.
    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult>;

    /// Moves a file, link or directory.
    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult>;

    /// Copies a file or directory.
    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult>;

    /// Finds entries by name. Visits only what the pattern can reach.
    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult>;

    /// Finds text, collected.
    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult>;

    /// Finds text, as it is found, in the same order. Dropping the stream ends the search.
    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>>;

    /// Writes files over what is there, each for itself; the answers are in the order of the request.
    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse>;

    /// Reads whole files, each for itself; the answers are in the order of the request.
    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse>;

    /// Its shell, where it has one.
    fn as_shell(&self) -> Option<&dyn Shell> {
        None
    }

    /// Its streaming shell, where it has one.
    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        None
    }

    /// Its reader of pictures and documents, where it has one.
    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        None
    }

    /// Its tree, where it lends it to be searched as a part of a larger one.
    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        None
    }

    /// Its snapshots, where it has them.
    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    /// Its change feed, where it has one.
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
            async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
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
            async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
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
    fn the_trait_is_usable_as_an_object_behind_both_pointers() {
        fn assert_backend<B: Backend>() {}
        assert_backend::<Arc<dyn Backend>>();
        assert_backend::<Box<dyn Backend>>();
    }
}
