//! Typed and type-erased requests and outputs of all operations.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request_json::from_json;
use crate::backend::{Backend, OperationIdSupport};
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::facets::{MultiModalReadRequest, MultiModalReadResult};
use crate::path::VfsPath;
use crate::requests::{
    ApplyMode, CommitWriterRequest, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadRequest, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter,
    ForgetRequest, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, OpenTreeRequest,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult,
    RestoreRequest, SnapshotDiffRequest, SnapshotDiffResult, SnapshotInfo, SnapshotRequest, StatRequest,
    TransferTargetMode, WatchEvent, WatchRequest, WriteMode, WriteRequest, WriteResult,
};
use crate::shell::{
    ExecuteEvent, ExecuteRequest, ExecuteResponse, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest,
    StopJobRequest,
};
use crate::tree::Tree;

/// A request for [`Backend::grep_stream`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrepStreamRequest(pub GrepRequest);

/// A request for [`StreamingShell::execute_stream`](crate::StreamingShell::execute_stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExecuteStreamRequest(pub ExecuteRequest);

/// A request for [`Snapshots::snapshots`](crate::Snapshots::snapshots).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListSnapshotsRequest;

impl ListSnapshotsRequest {
    /// Creates a request for all snapshots.
    pub fn new() -> Self {
        Self
    }
}

/// The class of an operation by its effect on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OperationClass {
    /// The operation changes no file. In JSON `looks`.
    #[serde(rename = "looks")]
    Read,
    /// The operation changes files. In JSON `changes`.
    #[serde(rename = "changes")]
    Write,
    /// The operation runs or stops a command, which may change any file. In JSON `runs`.
    #[serde(rename = "runs")]
    Execute,
}

/// A request for one operation of a [`Backend`] or facet.
///
/// Code that treats all operations alike, such as an interceptor or a policy, is generic over this trait and its two kinds: a
/// [`UnaryRequest`] has one result, a [`StreamRequest`] a stream of items.
pub trait Request: Clone + fmt::Debug + Send + Sync + 'static {
    /// The result of the operation, or the item of its stream.
    type Output: Send + 'static;

    /// The operation.
    const OPERATION: Operation;

    /// Borrows the request as the enum of all operations.
    fn as_request_ref(&self) -> RequestRef<'_>;

    /// Converts the request into the enum of all operations.
    fn into_any(self) -> AnyRequest;

    /// Returns the request in `any`, or `None` if it is of another operation.
    fn from_any(any: AnyRequest) -> Option<Self>;

    /// Borrows an output as the enum of all operations.
    fn output_ref(output: &Self::Output) -> OutputRef<'_>;

    /// Converts an output into the enum of all operations.
    fn into_any_output(output: Self::Output) -> AnyOutput;

    /// Returns the output in `any`, or `None` if it is of another operation.
    fn from_any_output(any: AnyOutput) -> Option<Self::Output>;

    /// Returns the request with each path replaced by the result of `map`.
    ///
    /// # Errors
    ///
    /// The errors of `map`.
    fn map_paths(self, map: &mut dyn FnMut(&VfsPath) -> Result<VfsPath>) -> Result<Self>;
}

/// A request for an operation with one result.
pub trait UnaryRequest: Request {
    /// Performs the operation on `backend`.
    ///
    /// # Errors
    ///
    /// The errors of the operation, and `unsupported` if the backend lacks the facet.
    fn send<'a>(self, backend: &'a dyn Backend, cx: &'a OpContext) -> BoxFuture<'a, Result<Self::Output>>;
}

/// A request for an operation whose results come as a stream.
pub trait StreamRequest: Request {
    /// Starts the operation on `backend`.
    ///
    /// # Errors
    ///
    /// In the stream: those of the operation, and `unsupported` if the backend lacks the facet.
    fn start(self, backend: &dyn Backend, cx: OpContext) -> BoxStream<'static, Result<Self::Output>>;
}

fn unknown_operation(operation: &str) -> Error {
    let codes: Vec<_> = Operation::ALL.iter().map(|operation| operation.code()).collect();
    Error::invalid_argument(format!("unknown operation `{operation}`; the operations are {}", codes.join(", ")))
}

macro_rules! requests {
    ($($(#[doc = $doc:literal])+ $name:ident $code:literal $request:ty => $kind:ident $output:ty,
        [$($path:tt $(. $inner:tt)*),*], |$self_:ident, $backend:ident, $cx:ident| $perform:expr;)+) => {
        /// The operations of a backend and its facets.
        ///
        /// The [`code`](Operation::code) of an operation is stable, and is its form in JSON.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $name,)+
        }

        impl Operation {
            /// Every operation, in the order of declaration.
            pub const ALL: &'static [Operation] = &[$(Operation::$name),+];

            /// Returns the stable snake_case code of this operation.
            pub const fn code(self) -> &'static str {
                match self { $(Operation::$name => $code,)+ }
            }
        }

        /// A borrowed request of any operation.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum RequestRef<'a> {
            $($(#[doc = $doc])+ $name(&'a $request),)+
        }

        impl<'a> RequestRef<'a> {
            /// Returns the operation.
            pub fn operation(self) -> Operation {
                match self { $(RequestRef::$name(_) => Operation::$name,)+ }
            }

            /// Returns an owned copy of the request.
            pub fn to_any(self) -> AnyRequest {
                match self { $(RequestRef::$name(request) => AnyRequest::$name(request.clone()),)+ }
            }

            /// Returns whether `backend` may answer the request by the result of an earlier call with the operation id of the
            /// context, and change nothing.
            pub fn may_be_replayed(self, backend: &dyn Backend, cx: &OpContext) -> bool {
                let remembers = |path| backend.capabilities(path).operation_ids != OperationIdSupport::Ignored;
                cx.operation_id().is_some() && self.paths().any(remembers)
            }

            /// Returns the paths of the request: none, one, or a source and a target in this order.
            pub fn paths(self) -> impl Iterator<Item = &'a VfsPath> {
                let paths: [Option<&'a VfsPath>; 2] = match self {
                    $(RequestRef::$name(_request) => pair([$(&_request.$path $(. $inner)*),*]),)+
                };
                paths.into_iter().flatten()
            }
        }

        /// An owned request of any operation, for example to show it to a person for approval. In JSON an object such as
        /// `{"operation": "delete", "request": {"path": "/a"}}`, with the code of the operation.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "operation", content = "request")]
        #[non_exhaustive]
        pub enum AnyRequest {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $name($request),)+
        }

        impl AnyRequest {
            /// Parses the request for the operation with the code `operation`, such as `"read"`, from the JSON form of the
            /// request alone.
            ///
            /// # Errors
            ///
            /// Those of [`from_json`], and `invalid_argument` for an unknown operation.
            pub fn from_json(operation: &str, request: &Value) -> Result<Self> {
                match operation {
                    $($code => from_json(request).map(AnyRequest::$name),)+
                    _ => Err(unknown_operation(operation)),
                }
            }

            /// Borrows the request.
            pub fn as_request_ref(&self) -> RequestRef<'_> {
                match self { $(AnyRequest::$name(request) => RequestRef::$name(request),)+ }
            }
        }

        /// A borrowed [`Request::Output`] of any operation.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum OutputRef<'a> {
            $($(#[doc = $doc])+ $name(&'a $output),)+
        }

        /// An owned [`Request::Output`] of any operation.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum AnyOutput {
            $($(#[doc = $doc])+ $name($output),)+
        }

        $(impl Request for $request {
            type Output = $output;

            const OPERATION: Operation = Operation::$name;

            fn as_request_ref(&self) -> RequestRef<'_> {
                RequestRef::$name(self)
            }

            fn into_any(self) -> AnyRequest {
                AnyRequest::$name(self)
            }

            fn from_any(any: AnyRequest) -> Option<Self> {
                if let AnyRequest::$name(request) = any { Some(request) } else { None }
            }

            fn output_ref(output: &$output) -> OutputRef<'_> {
                OutputRef::$name(output)
            }

            fn into_any_output(output: $output) -> AnyOutput {
                AnyOutput::$name(output)
            }

            fn from_any_output(any: AnyOutput) -> Option<$output> {
                if let AnyOutput::$name(output) = any { Some(output) } else { None }
            }

            fn map_paths(mut self, _map: &mut dyn FnMut(&VfsPath) -> Result<VfsPath>) -> Result<Self> {
                let _request = &mut self;
                $(_request.$path $(. $inner)* = _map(&_request.$path $(. $inner)*)?;)*
                Ok(self)
            }
        }

        requests!(@$kind $request, $output, |$self_, $backend, $cx| $perform);)+
    };
    (@unary $request:ty, $output:ty, |$self_:ident, $backend:ident, $cx:ident| $perform:expr) => {
        impl UnaryRequest for $request {
            fn send<'a>($self_, $backend: &'a dyn Backend, $cx: &'a OpContext) -> BoxFuture<'a, Result<$output>> {
                $perform
            }
        }
    };
    (@stream $request:ty, $output:ty, |$self_:ident, $backend:ident, $cx:ident| $perform:expr) => {
        impl StreamRequest for $request {
            fn start($self_, $backend: &dyn Backend, $cx: OpContext) -> BoxStream<'static, Result<$output>> {
                $perform
            }
        }
    };
}

requests! {
    /// [`Backend::stat`].
    Stat "stat" StatRequest => unary FileInfo, [path], |self, backend, cx| backend.stat(cx, self);
    /// [`Backend::resolve`].
    Resolve "resolve" ResolveRequest => unary ResolveResult, [path], |self, backend, cx| backend.resolve(cx, self);
    /// [`Backend::ls`].
    Ls "ls" LsRequest => unary LsResult, [path], |self, backend, cx| backend.ls(cx, self);
    /// [`Backend::read`].
    Read "read" ReadRequest => unary ReadResult, [path], |self, backend, cx| backend.read(cx, self);
    /// [`Backend::write`].
    Write "write" WriteRequest => unary WriteResult, [path], |self, backend, cx| backend.write(cx, self);
    /// [`Backend::open_writer`].
    OpenWriter "open_writer" OpenWriterRequest => unary Box<dyn FileWriter>, [path],
        |self, backend, cx| backend.open_writer(cx, self);
    /// [`FileWriter::commit`].
    CommitWriter "commit_writer" CommitWriterRequest => unary WriteResult, [path],
        |self, _backend, _cx| CommitWriterRequest::send(self).boxed();
    /// [`Backend::edit`].
    Edit "edit" EditRequest => unary EditResult, [path], |self, backend, cx| backend.edit(cx, self);
    /// [`Backend::delete`].
    Delete "delete" DeleteRequest => unary DeleteResult, [path], |self, backend, cx| backend.delete(cx, self);
    /// [`Backend::rename`].
    Rename "rename" RenameRequest => unary RenameResult, [from, to], |self, backend, cx| backend.rename(cx, self);
    /// [`Backend::copy`].
    Copy "copy" CopyRequest => unary CopyResult, [from, to], |self, backend, cx| backend.copy(cx, self);
    /// [`Backend::glob`].
    Glob "glob" GlobRequest => unary GlobResult, [path], |self, backend, cx| backend.glob(cx, self);
    /// [`Backend::grep`].
    Grep "grep" GrepRequest => unary GrepResult, [path], |self, backend, cx| backend.grep(cx, self);
    /// [`Backend::grep_stream`].
    GrepStream "grep_stream" GrepStreamRequest => stream GrepEvent, [0.path],
        |self, backend, cx| backend.grep_stream(cx, self.0);
    /// One file of [`Backend::upload_files`].
    Upload "upload" FileUploadRequest => unary FileUploadResponse, [path], |self, backend, cx| upload(self, backend, cx).boxed();
    /// One file of [`Backend::download_files`].
    Download "download" FileDownloadRequest => unary FileDownloadResponse, [path],
        |self, backend, cx| download(self, backend, cx).boxed();
    /// [`MultiModalReader::multi_modal_read`](crate::MultiModalReader::multi_modal_read).
    MultiModalRead "multi_modal_read" MultiModalReadRequest => unary MultiModalReadResult, [read.path],
        |self, backend, cx| unary(backend.as_multi_modal(), "reader of images and documents", |it| it.multi_modal_read(cx, self));
    /// [`TreeProvider::open_tree`](crate::TreeProvider::open_tree).
    OpenTree "lend" OpenTreeRequest => unary Arc<dyn Tree>, [path],
        |self, backend, cx| unary(backend.as_tree_provider(), "tree to search", |it| it.open_tree(cx, self));
    /// [`Shell::execute`](crate::Shell::execute).
    Execute "execute" ExecuteRequest => unary ExecuteResponse, [cwd],
        |self, backend, cx| unary(backend.as_shell(), SHELL, |it| it.execute(cx, self));
    /// [`StreamingShell::execute_stream`](crate::StreamingShell::execute_stream).
    ExecuteStream "execute_stream" ExecuteStreamRequest => stream ExecuteEvent, [0.cwd],
        |self, backend, cx| streaming(backend.as_streaming_shell(), SHELL, |it| it.execute_stream(cx, self.0));
    /// [`Shell::jobs`](crate::Shell::jobs).
    Jobs "jobs" JobsRequest => unary Vec<JobInfo>, [],
        |self, backend, cx| unary(backend.as_shell(), SHELL, |it| it.jobs(cx, self));
    /// [`Shell::job_output`](crate::Shell::job_output).
    JobOutput "job_output" JobOutputRequest => unary JobOutputResult, [],
        |self, backend, cx| unary(backend.as_shell(), SHELL, |it| it.job_output(cx, self));
    /// [`Shell::stop_job`](crate::Shell::stop_job).
    StopJob "stop_job" StopJobRequest => unary JobInfo, [],
        |self, backend, cx| unary(backend.as_shell(), SHELL, |it| it.stop_job(cx, self));
    /// [`Snapshots::snapshot`](crate::Snapshots::snapshot).
    Snapshot "snapshot" SnapshotRequest => unary SnapshotInfo, [],
        |self, backend, cx| unary(backend.as_snapshots(), SNAPSHOTS, |it| it.snapshot(cx, self));
    /// [`Snapshots::snapshots`](crate::Snapshots::snapshots).
    Snapshots "snapshots" ListSnapshotsRequest => unary Vec<SnapshotInfo>, [],
        |self, backend, cx| unary(backend.as_snapshots(), SNAPSHOTS, |it| it.snapshots(cx, self));
    /// [`Snapshots::restore`](crate::Snapshots::restore).
    Restore "restore" RestoreRequest => unary (), [],
        |self, backend, cx| unary(backend.as_snapshots(), SNAPSHOTS, |it| it.restore(cx, self));
    /// [`Snapshots::forget`](crate::Snapshots::forget).
    Forget "forget" ForgetRequest => unary (), [],
        |self, backend, cx| unary(backend.as_snapshots(), SNAPSHOTS, |it| it.forget(cx, self));
    /// [`Snapshots::diff`](crate::Snapshots::diff).
    Diff "diff" SnapshotDiffRequest => unary SnapshotDiffResult, [],
        |self, backend, cx| unary(backend.as_snapshots(), SNAPSHOTS, |it| it.diff(cx, self));
    /// [`Watch::watch`](crate::Watch::watch).
    Watch "watch" WatchRequest => stream WatchEvent, [path],
        |self, backend, cx| streaming(backend.as_watch(), "change feed", |it| it.watch(cx, self));
}

impl Operation {
    /// Returns the operation whose settings this one shares: `grep` for `grep_stream`, `execute` for `execute_stream`, `write` for
    /// `open_writer` and `commit_writer`, else the operation itself.
    ///
    /// Settings for an operation, such as a rule or a timeout, also apply to its chunked and streaming forms.
    ///
    /// ```
    /// use vfs_core::Operation;
    ///
    /// assert_eq!(Operation::GrepStream.collecting(), Operation::Grep);
    /// assert_eq!(Operation::Read.collecting(), Operation::Read);
    /// ```
    pub const fn collecting(self) -> Self {
        match self {
            Operation::GrepStream => Operation::Grep,
            Operation::ExecuteStream => Operation::Execute,
            Operation::OpenWriter | Operation::CommitWriter => Operation::Write,
            other => other,
        }
    }
}

const SHELL: &str = "shell to run commands";
const SNAPSHOTS: &str = "snapshots";

/// Performs a unary operation on a facet. `name` describes the facet in errors.
fn unary<'a, F: ?Sized, T: Send + 'a>(
    facet: Option<&'a F>,
    name: &str,
    perform: impl FnOnce(&'a F) -> BoxFuture<'a, Result<T>>,
) -> BoxFuture<'a, Result<T>> {
    facet.map_or_else(|| ready(Err(missing_facet(name))).boxed(), perform)
}

/// Starts a streaming operation on a facet. `name` describes the facet in errors.
fn streaming<F: ?Sized, T: Send + 'static>(
    facet: Option<&F>,
    name: &str,
    start: impl FnOnce(&F) -> BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    facet.map_or_else(|| missing_facet(name).into_stream(), start)
}

fn missing_facet(facet: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this backend has no {facet}")).with_path(&VfsPath::root())
}

fn pair<const N: usize>(paths: [&VfsPath; N]) -> [Option<&VfsPath>; 2] {
    let mut pair = [None, None];
    for (slot, path) in pair.iter_mut().zip(paths) {
        *slot = Some(path);
    }
    pair
}

async fn upload(file: FileUploadRequest, backend: &dyn Backend, cx: &OpContext) -> Result<FileUploadResponse> {
    let path = file.path.clone();
    let mut response = backend.upload_files(cx, vec![file]).await.pop().ok_or_else(|| no_response(&path))?;
    response.cause.take().map_or(Ok(response), Err)
}

async fn download(request: FileDownloadRequest, backend: &dyn Backend, cx: &OpContext) -> Result<FileDownloadResponse> {
    let path = request.path;
    let answers = backend.download_files(cx, vec![path.clone()]).await;
    let mut response = answers.into_iter().next().ok_or_else(|| no_response(&path))?;
    response.cause.take().map_or(Ok(response), Err)
}

fn no_response(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Internal, "internal: the backend returned no result for the file").with_path(path)
}

impl OutputRef<'_> {
    /// Returns whether this is the item that ends a stream: the summary of a search or the exit of a command.
    pub fn ends_stream(self) -> bool {
        matches!(self, OutputRef::GrepStream(GrepEvent::End(_)) | OutputRef::ExecuteStream(ExecuteEvent::Exit(_)))
    }
}

impl RequestRef<'_> {
    /// Returns the path that errors of this operation name, unless another one of its paths is at fault: its first path, or the root
    /// if it has none.
    pub fn primary_path(self) -> VfsPath {
        self.paths().next().cloned().unwrap_or_else(VfsPath::root)
    }

    /// Returns the class of the operation. An edit that is a dry run is a [`Read`](OperationClass::Read).
    pub fn class(self) -> OperationClass {
        match self {
            RequestRef::Write(_)
            | RequestRef::OpenWriter(_)
            | RequestRef::CommitWriter(_)
            | RequestRef::Delete(_)
            | RequestRef::Rename(_)
            | RequestRef::Copy(_)
            | RequestRef::Upload(_)
            | RequestRef::Restore(_) => OperationClass::Write,
            RequestRef::Edit(edit) if edit.mode == ApplyMode::Apply => OperationClass::Write,
            RequestRef::Execute(_) | RequestRef::ExecuteStream(_) | RequestRef::StopJob(_) => OperationClass::Execute,
            _ => OperationClass::Read,
        }
    }

    /// Returns whether performing the operation twice has the same effect as once, so that it may be retried if the outcome of
    /// the first attempt is unknown.
    pub fn is_idempotent(self) -> bool {
        match self {
            RequestRef::Write(write) => write.mode == WriteMode::Overwrite,
            RequestRef::Copy(copy) => copy.mode == TransferTargetMode::Overwrite,
            RequestRef::OpenWriter(_) | RequestRef::Upload(_) | RequestRef::Restore(_) => true,
            RequestRef::Snapshot(_) | RequestRef::Forget(_) => false,
            request => request.class() == OperationClass::Read,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl std::str::FromStr for Operation {
    type Err = Error;

    fn from_str(code: &str) -> Result<Self> {
        let named = Operation::ALL.iter().find(|operation| operation.code() == code);
        named.copied().ok_or_else(|| {
            let codes = Operation::ALL.iter().map(|operation| operation.code()).collect::<Vec<_>>().join(", ");
            Error::invalid_argument(format!("unknown operation '{code}'; use one of {codes}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    #[test]
    fn a_request_ref_has_the_paths_and_class_of_its_request() {
        let rename = RenameRequest::new(path("/a"), path("/b"));
        let request = rename.as_request_ref();
        assert_eq!(request.paths().map(VfsPath::as_str).collect::<Vec<_>>(), ["/a", "/b"]);
        assert_eq!((request.operation().code(), request.class()), ("rename", OperationClass::Write));
        assert_eq!(request.primary_path(), path("/a"));
        let stream = GrepStreamRequest(GrepRequest::literal("x").path(path("/d")));
        assert_eq!(stream.as_request_ref().paths().map(VfsPath::as_str).collect::<Vec<_>>(), ["/d"]);
        assert_eq!(SnapshotRequest::new().as_request_ref().paths().count(), 0);
        assert_eq!(SnapshotRequest::new().as_request_ref().primary_path(), VfsPath::root());
        assert_eq!(EditRequest::new(path("/a"), "x", "y").dry_run().as_request_ref().class(), OperationClass::Read);
    }

    #[test]
    fn requests_survive_the_round_trip_through_json() {
        let write = WriteRequest::new(path("/a"), "text").mode(WriteMode::Overwrite);
        let json = serde_json::to_string(&write.clone().into_any()).expect("serialises");
        assert!(json.starts_with(r#"{"operation":"write","request":{"#), "{json}");
        let call: AnyRequest = serde_json::from_str(&json).expect("deserialises");
        assert_eq!(WriteRequest::from_any(call.clone()), Some(write));
        assert_eq!(ReadRequest::from_any(call), None);
    }

    #[test]
    fn only_repeatable_operations_are_idempotent() {
        let write = |mode| WriteRequest::new(path("/a"), "x").mode(mode);
        for (call, expected) in [
            (write(WriteMode::Overwrite).into_any(), true),
            (write(WriteMode::CreateNew).into_any(), false),
            (write(WriteMode::Append).into_any(), false),
            (EditRequest::new(path("/a"), "x", "y").into_any(), false),
            (EditRequest::new(path("/a"), "x", "y").dry_run().into_any(), true),
            (ReadRequest::new(path("/a")).into_any(), true),
            (ExecuteRequest::new("true").into_any(), false),
        ] {
            assert_eq!(call.as_request_ref().is_idempotent(), expected, "{call:?}");
        }
    }
}
