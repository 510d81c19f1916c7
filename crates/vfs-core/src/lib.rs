//! Traits and types of a virtual filesystem for AI agents.
//!
//! All backends, layers and front ends share this crate. It does no IO and needs no runtime:
//!
//! * [`Backend`] is the trait of every storage for files; [`BackendExt`] adds short methods for callers.
//! * [`VfsPath`], [`Error`] and [`OpContext`] are the path, error and context of every operation.
//! * Requests and results, such as [`ReadRequest`] and [`ReadResult`], are plain values with a JSON form.
//! * [`Interceptor`] and [`Layer`] wrap a backend, for example with a policy, an audit log or a quota.
//! * [`window`] (line windows), [`edit`] (text replacement), [`text`] (encodings) and [`mod@format`] (numbered output) are pure
//!   functions on which all backends rely, so that they behave alike.
//!
//! Implementers of backends find helpers in [`tree`], [`change_log`], [`output`], [`timer`] and [`buffer`].
//!
//! # Requests and results
//!
//! One rule names and shapes them:
//!
//! * The operation `x` takes an `XRequest`. It returns an `XResult`, its stream has items of `XEvent`, and its handle is named for
//!   what it does, such as [`FileWriter`].
//! * A description of one thing is an `Info`, also in lists: [`FileInfo`], [`JobInfo`], [`SnapshotInfo`]. The results of agent tools
//!   that have a name elsewhere keep it: [`ExecuteResponse`], [`FileUploadResponse`], [`FileDownloadResponse`].
//! * A request is built by `new` with its required fields, and by setters. A mode is an enum, also if its JSON is a truth value.
//! * Requests, results and events, and the enums of modes and reasons, are `#[non_exhaustive]`: a new field or variant breaks no
//!   caller. Not so values that are complete by definition: coordinates ([`ByteRange`], [`TerminalSize`], [`Submatch`]), wrappers of
//!   one value ([`GrepStreamRequest`], ids), and enums that divide a whole, which callers match in full ([`Content`], [`FileText`],
//!   [`LineKind`], [`FileOperationError`]).
//!
//! ```
//! use vfs_core::{Backend, BackendExt, Result};
//!
//! async fn first_line(files: &dyn Backend) -> Result<Option<String>> {
//!     let text = files.read_text("/README.md").await?;
//!     Ok(text.lines().next().map(str::to_owned))
//! }
//! ```

mod backend;
mod cancel;
mod chunks;
mod context;
mod error;
mod ext;
mod facets;
mod operation;
mod path;
mod path_mapping;
mod remove_empty_dirs;
mod shell;
mod types;

pub mod buffer;
pub mod change_log;
pub mod edit;
pub mod format;
pub mod links;
pub mod output;
pub mod text;
pub mod timer;
pub mod tree;
pub mod window;

pub use backend::{Access, Backend, Capabilities, Mutations};
pub use cancel::{CancelToken, DropGuard};
pub use chunks::read_chunks;
pub use context::OpContext;
pub use error::{Error, ErrorDetail, ErrorKind, NoMatchHint, PathFault, Result, SimilarLine};
pub use ext::BackendExt;
pub use facets::{
    FilePart, MultiModalReadRequest, MultiModalReadResult, MultiModalReader, PartKind, Snapshots, TreeProvider, Watch,
    read_multi_modal,
};
pub use operation::{
    AnyOutput, AnyRequest, ExecuteStreamRequest, GrepStreamRequest, Intercepted, Interceptor, Layer, Operation,
    OperationClass, OutputRef, Request, RequestRef, ResultStream, SnapshotsRequest, StreamCall, StreamRequest,
    UnaryRequest, deferred_stream, layered,
};
pub use path::VfsPath;
pub use path_mapping::{MapPaths, PathMapping};
pub use remove_empty_dirs::remove_empty_dirs;
pub use shell::{
    BaseEnvironment, CommandExit, ExecuteEvent, ExecuteRequest, ExecuteResponse, FullOutput, JobId, JobInfo,
    JobOutputRequest, JobOutputResult, JobsRequest, RunMode, Shell, StopJobRequest, StreamingShell, TerminalSize,
};
pub use types::*;
