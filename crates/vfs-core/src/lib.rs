//! The words of an agent's filesystem.
//!
//! This crate holds what every backend, wrapper and front end shares, and nothing that does IO or needs a runtime:
//!
//! * [`Backend`], the one trait that every place for files implements, and [`BackendExt`], its short calls;
//! * [`VfsPath`], [`Error`] and [`OpContext`], which every operation speaks in;
//! * the requests and results, which with serde are the wire format too;
//! * the pure text logic that makes all backends behave alike: [`window`] (reading lines), [`edit`] (replacing text),
//!   [`text`] (encodings) and [`mod@format`] (what a model sees).
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
    FilePart, MultiModalContent, MultiModalReadRequest, MultiModalReader, PartKind, Snapshots, TreeProvider, Watch,
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
    BaseEnvironment, CommandExit, ExecuteEvent, ExecuteRequest, ExecuteResponse, FullOutput, Job, JobId, JobOutput,
    JobOutputRequest, JobsRequest, RunMode, Shell, StopJobRequest, StreamingShell, TerminalSize,
};
pub use types::*;
