//! Every operation as a value: what layers, policies and records are written against.

use std::fmt;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::facets::{MultiModalContent, MultiModalReadRequest};
use crate::path::VfsPath;
use crate::shell::{
    ExecuteEvent, ExecuteRequest, ExecuteResponse, Job, JobOutput, JobOutputRequest, JobsRequest, StopJobRequest,
};
use crate::tree::SharedTree;
use crate::types::{
    ChangeSet, CopyRequest, CopyResult, DeleteRequest, DeleteResult, DiffRequest, DownloadRequest, EditMode,
    EditRequest, EditResult, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, ForgetRequest,
    GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LendRequest, LsRequest, LsResult, ReadRequest,
    ReadResult, RenameRequest, RenameResult, ResolveRequest, Resolved, RestoreRequest, SnapshotInfo, SnapshotRequest,
    StatRequest, TransferMode, WatchEvent, WatchRequest, WriteMode, WriteRequest, WriteResult,
};

/// A search whose matches come as they are found: a [`GrepRequest`] for [`Backend::grep_stream`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrepStreamRequest(pub GrepRequest);

/// A command whose output comes as it is printed: an [`ExecuteRequest`] for a
/// [`StreamingShell`](crate::StreamingShell).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExecuteStreamRequest(pub ExecuteRequest);

/// Asks which states are remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotsRequest;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// It only looks.
    Looks,
    /// It changes files.
    Changes,
    /// It runs a command, which may do anything.
    Runs,
}

/// One operation on any backend, as the value that asks for it.
///
/// # Behaviour
///
/// A layer that does the same around every operation is written once against this trait, and sends the request on where it
/// is to go on.
///
/// # Errors
///
/// [`send`](Self::send) gives those of the operation, and `unsupported` where the backend lacks the facet.
pub trait Request: Clone + fmt::Debug + Send + Sync + 'static {
    /// What the operation gives.
    type Output: Send + 'static;

    /// Which operation it is.
    const OPERATION: Operation;

    /// The request as any operation, borrowed.
    fn action(&self) -> Action<'_>;

    /// The request as any operation, owned.
    fn into_call(self) -> Call;

    /// The request in `call`, if it is one for this operation.
    fn from_call(call: Call) -> Option<Self>;

    /// Performs the operation on `backend`.
    fn send<'a>(self, backend: &'a dyn Backend, cx: &'a OpContext) -> BoxFuture<'a, Result<Self::Output>>;

    /// The same request with each path replaced.
    ///
    /// # Errors
    ///
    /// Those of `map`.
    fn map_paths(self, map: &mut dyn FnMut(&VfsPath) -> Result<VfsPath>) -> Result<Self>;
}

macro_rules! requests {
    ($($(#[doc = $doc:literal])+ $name:ident $code:literal $request:ty => $output:ty,
        [$($path:tt $(. $inner:tt)*),*], |$self_:ident, $backend:ident, $cx:ident| $send:expr;)+) => {
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

            /// The stable snake_case word for this operation.
            pub const fn code(self) -> &'static str {
                match self { $(Operation::$name => $code,)+ }
            }
        }

        /// A request of any operation, borrowed: what a hook looks at.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum Action<'a> {
            $($(#[doc = $doc])+ $name(&'a $request),)+
        }

        impl<'a> Action<'a> {
            /// Which operation it is.
            pub fn operation(self) -> Operation {
                match self { $(Action::$name(_) => Operation::$name,)+ }
            }

            /// The same, owned.
            pub fn to_call(self) -> Call {
                match self { $(Action::$name(request) => Call::$name(request.clone()),)+ }
            }

            /// The paths that it names: none, one, or where something comes from and where it goes.
            pub fn paths(self) -> impl Iterator<Item = &'a VfsPath> {
                let paths: [Option<&'a VfsPath>; 2] = match self {
                    $(Action::$name(_request) => pair([$(&_request.$path $(. $inner)*),*]),)+
                };
                paths.into_iter().flatten()
            }
        }

        /// A request of any operation, owned: what can be shown to a person, changed, and sent on.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "operation", content = "request")]
        #[non_exhaustive]
        pub enum Call {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $name($request),)+
        }

        impl Call {
            /// The same, borrowed.
            pub fn as_action(&self) -> Action<'_> {
                match self { $(Call::$name(request) => Action::$name(request),)+ }
            }
        }

        $(impl Request for $request {
            type Output = $output;

            const OPERATION: Operation = Operation::$name;

            fn action(&self) -> Action<'_> {
                Action::$name(self)
            }

            fn into_call(self) -> Call {
                Call::$name(self)
            }

            fn from_call(call: Call) -> Option<Self> {
                if let Call::$name(request) = call { Some(request) } else { None }
            }

            fn send<'a>($self_, $backend: &'a dyn Backend, $cx: &'a OpContext) -> BoxFuture<'a, Result<$output>> {
                $send
            }

            fn map_paths(mut self, _map: &mut dyn FnMut(&VfsPath) -> Result<VfsPath>) -> Result<Self> {
                let _request = &mut self;
                $(_request.$path $(. $inner)* = _map(&_request.$path $(. $inner)*)?;)*
                Ok(self)
            }
        })+
    };
}

requests! {
    /// [`Backend::stat`].
    Stat "stat" StatRequest => FileInfo, [path], |self, backend, cx| backend.stat(cx, self);
    /// [`Backend::resolve`].
    Resolve "resolve" ResolveRequest => Resolved, [path], |self, backend, cx| backend.resolve(cx, self);
    /// [`Backend::ls`].
    Ls "ls" LsRequest => LsResult, [path], |self, backend, cx| backend.ls(cx, self);
    /// [`Backend::read`].
    Read "read" ReadRequest => ReadResult, [path], |self, backend, cx| backend.read(cx, self);
    /// [`Backend::write`].
    Write "write" WriteRequest => WriteResult, [path], |self, backend, cx| backend.write(cx, self);
    /// [`Backend::edit`].
    Edit "edit" EditRequest => EditResult, [path], |self, backend, cx| backend.edit(cx, self);
    /// [`Backend::delete`].
    Delete "delete" DeleteRequest => DeleteResult, [path], |self, backend, cx| backend.delete(cx, self);
    /// [`Backend::rename`].
    Rename "rename" RenameRequest => RenameResult, [from, to], |self, backend, cx| backend.rename(cx, self);
    /// [`Backend::copy`].
    Copy "copy" CopyRequest => CopyResult, [from, to], |self, backend, cx| backend.copy(cx, self);
    /// [`Backend::glob`].
    Glob "glob" GlobRequest => GlobResult, [path], |self, backend, cx| backend.glob(cx, self);
    /// [`Backend::grep`].
    Grep "grep" GrepRequest => GrepResult, [path], |self, backend, cx| backend.grep(cx, self);
    /// [`Backend::grep_stream`].
    GrepStream "grep_stream" GrepStreamRequest => BoxStream<'static, Result<GrepEvent>>, [0.path],
        |self, backend, cx| ready(Ok(backend.grep_stream(cx.clone(), self.0))).boxed();
    /// One file of [`Backend::upload_files`].
    Upload "upload" FileUpload => FileUploadResponse, [path], |self, backend, cx| upload(self, backend, cx).boxed();
    /// One file of [`Backend::download_files`].
    Download "download" DownloadRequest => FileDownloadResponse, [path],
        |self, backend, cx| download(self, backend, cx).boxed();
    /// [`MultiModalReader::multi_modal_read`](crate::MultiModalReader::multi_modal_read).
    MultiModalRead "multi_modal_read" MultiModalReadRequest => MultiModalContent, [read.path],
        |self, backend, cx| match backend.as_multimodal() {
            Some(reader) => reader.multi_modal_read(cx, self),
            None => unsupported("it does not read pictures and documents"),
        };
    /// [`Searchable::lend`](crate::Searchable::lend).
    Lend "lend" LendRequest => SharedTree, [path], |self, backend, cx| match backend.as_searchable() {
        Some(searchable) => searchable.lend(cx, self),
        None => unsupported("it does not lend its tree"),
    };
    /// [`Shell::execute`](crate::Shell::execute).
    Execute "execute" ExecuteRequest => ExecuteResponse, [cwd], |self, backend, cx| match backend.as_shell() {
        Some(shell) => shell.execute(cx, self),
        None => unsupported(NO_SHELL),
    };
    /// [`StreamingShell::execute_stream`](crate::StreamingShell::execute_stream).
    ExecuteStream "execute_stream" ExecuteStreamRequest => BoxStream<'static, Result<ExecuteEvent>>, [0.cwd],
        |self, backend, cx| match backend.as_streaming_shell() {
            Some(shell) => ready(Ok(shell.execute_stream(cx.clone(), self.0))).boxed(),
            None => unsupported(NO_SHELL),
        };
    /// [`Shell::jobs`](crate::Shell::jobs).
    Jobs "jobs" JobsRequest => Vec<Job>, [], |self, backend, cx| match backend.as_shell() {
        Some(shell) => shell.jobs(cx, self),
        None => unsupported(NO_SHELL),
    };
    /// [`Shell::job_output`](crate::Shell::job_output).
    JobOutput "job_output" JobOutputRequest => JobOutput, [], |self, backend, cx| match backend.as_shell() {
        Some(shell) => shell.job_output(cx, self),
        None => unsupported(NO_SHELL),
    };
    /// [`Shell::stop_job`](crate::Shell::stop_job).
    StopJob "stop_job" StopJobRequest => Job, [], |self, backend, cx| match backend.as_shell() {
        Some(shell) => shell.stop_job(cx, self),
        None => unsupported(NO_SHELL),
    };
    /// [`Snapshots::snapshot`](crate::Snapshots::snapshot).
    Snapshot "snapshot" SnapshotRequest => SnapshotInfo, [], |self, backend, cx| match backend.as_snapshots() {
        Some(snapshots) => snapshots.snapshot(cx, self),
        None => unsupported(NO_SNAPSHOTS),
    };
    /// [`Snapshots::snapshots`](crate::Snapshots::snapshots).
    Snapshots "snapshots" SnapshotsRequest => Vec<SnapshotInfo>, [], |self, backend, cx| match backend.as_snapshots() {
        Some(snapshots) => snapshots.snapshots(cx),
        None => unsupported(NO_SNAPSHOTS),
    };
    /// [`Snapshots::restore`](crate::Snapshots::restore).
    Restore "restore" RestoreRequest => (), [], |self, backend, cx| match backend.as_snapshots() {
        Some(snapshots) => snapshots.restore(cx, self),
        None => unsupported(NO_SNAPSHOTS),
    };
    /// [`Snapshots::forget`](crate::Snapshots::forget).
    Forget "forget" ForgetRequest => (), [], |self, backend, cx| match backend.as_snapshots() {
        Some(snapshots) => snapshots.forget(cx, self),
        None => unsupported(NO_SNAPSHOTS),
    };
    /// [`Snapshots::diff`](crate::Snapshots::diff).
    Diff "diff" DiffRequest => ChangeSet, [], |self, backend, cx| match backend.as_snapshots() {
        Some(snapshots) => snapshots.diff(cx, self),
        None => unsupported(NO_SNAPSHOTS),
    };
    /// [`Watch::watch`](crate::Watch::watch).
    Watch "watch" WatchRequest => BoxStream<'static, Result<WatchEvent>>, [path],
        |self, backend, cx| match backend.as_watch() {
            Some(watch) => ready(Ok(watch.watch(cx.clone(), self))).boxed(),
            None => unsupported("it does not tell of changes"),
        };
}

impl Operation {
    /// Returns the operation that collects the results of a streaming one: `grep` for `grep_stream`, `execute` for
    /// `execute_stream`, else the operation itself.
    ///
    /// What is configured for an operation by its name holds for its streaming form, too.
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
            other => other,
        }
    }
}

const NO_SHELL: &str = "commands cannot be run here";
const NO_SNAPSHOTS: &str = "it does not remember states";

fn unsupported<'a, T: Send + 'a>(message: &'static str) -> BoxFuture<'a, Result<T>> {
    ready(Err(Error::new(ErrorKind::Unsupported, message).with_path(&VfsPath::root()))).boxed()
}

fn pair<const N: usize>(paths: [&VfsPath; N]) -> [Option<&VfsPath>; 2] {
    let mut pair = [None, None];
    for (slot, path) in pair.iter_mut().zip(paths) {
        *slot = Some(path);
    }
    pair
}

async fn upload(file: FileUpload, backend: &dyn Backend, cx: &OpContext) -> Result<FileUploadResponse> {
    let path = file.path.clone();
    let mut response = backend.upload_files(cx, vec![file]).await.pop().ok_or_else(|| unanswered(&path))?;
    response.cause.take().map_or(Ok(response), Err)
}

async fn download(request: DownloadRequest, backend: &dyn Backend, cx: &OpContext) -> Result<FileDownloadResponse> {
    let path = request.path;
    let answers = backend.download_files(cx, vec![path.clone()]).await;
    let mut response = answers.into_iter().next().ok_or_else(|| unanswered(&path))?;
    response.cause.take().map_or(Ok(response), Err)
}

fn unanswered(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Internal, "the backend gave no answer for this file").with_path(path)
}

impl Action<'_> {
    /// Returns the path that errors about this operation name: its first path, or the root if it has none.
    pub fn primary_path(self) -> VfsPath {
        self.paths().next().cloned().unwrap_or_else(VfsPath::root)
    }

    /// Whether it only looks, changes files, or runs a command. A dry run of an edit only looks.
    pub fn effect(self) -> Effect {
        match self {
            Action::Write(_)
            | Action::Delete(_)
            | Action::Rename(_)
            | Action::Copy(_)
            | Action::Upload(_)
            | Action::Restore(_) => Effect::Changes,
            Action::Edit(edit) if edit.mode == EditMode::Apply => Effect::Changes,
            Action::Execute(_) | Action::ExecuteStream(_) | Action::StopJob(_) => Effect::Runs,
            _ => Effect::Looks,
        }
    }

    /// Whether doing it twice is the same as doing it once, so that it may be tried again where nobody knows whether the
    /// first attempt was done.
    pub fn is_repeatable(self) -> bool {
        match self {
            Action::Write(write) => write.mode == WriteMode::Overwrite,
            Action::Copy(copy) => copy.mode == TransferMode::Overwrite,
            Action::Upload(_) | Action::Restore(_) => true,
            Action::Snapshot(_) | Action::Forget(_) => false,
            action => action.effect() == Effect::Looks,
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
            let known = Operation::ALL.iter().map(|operation| operation.code()).collect::<Vec<_>>().join(", ");
            Error::invalid_argument(format!("there is no operation '{code}'; there are {known}"))
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
    fn an_action_names_its_paths_and_what_it_does() {
        let rename = RenameRequest::new(path("/a"), path("/b"));
        let action = rename.action();
        assert_eq!(action.paths().map(VfsPath::as_str).collect::<Vec<_>>(), ["/a", "/b"]);
        assert_eq!((action.operation().code(), action.effect()), ("rename", Effect::Changes));
        assert_eq!(action.primary_path(), path("/a"));
        let stream = GrepStreamRequest(GrepRequest::literal("x").path(path("/d")));
        assert_eq!(stream.action().paths().map(VfsPath::as_str).collect::<Vec<_>>(), ["/d"]);
        assert_eq!(SnapshotRequest::new().action().paths().count(), 0);
        assert_eq!(SnapshotRequest::new().action().primary_path(), VfsPath::root());
        assert_eq!(EditRequest::new(path("/a"), "x", "y").dry_run().action().effect(), Effect::Looks);
    }

    #[test]
    fn a_call_goes_through_json_and_back_to_its_request() {
        let write = WriteRequest::new(path("/a"), "text").mode(WriteMode::Overwrite);
        let json = serde_json::to_string(&write.clone().into_call()).expect("serialises");
        assert!(json.starts_with(r#"{"operation":"write","request":{"#), "{json}");
        let call: Call = serde_json::from_str(&json).expect("deserialises");
        assert_eq!(WriteRequest::from_call(call.clone()), Some(write));
        assert_eq!(ReadRequest::from_call(call), None);
    }

    #[test]
    fn only_what_can_be_done_twice_is_repeatable() {
        let write = |mode| WriteRequest::new(path("/a"), "x").mode(mode);
        for (call, expected) in [
            (write(WriteMode::Overwrite).into_call(), true),
            (write(WriteMode::CreateNew).into_call(), false),
            (write(WriteMode::Append).into_call(), false),
            (EditRequest::new(path("/a"), "x", "y").into_call(), false),
            (EditRequest::new(path("/a"), "x", "y").dry_run().into_call(), true),
            (ReadRequest::new(path("/a")).into_call(), true),
            (ExecuteRequest::new("true").into_call(), false),
        ] {
            assert_eq!(call.as_action().is_repeatable(), expected, "{call:?}");
        }
    }
}
