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
//! The root has what most callers and every backend need: the traits, the requests and results of [`Backend`], and the types in all
//! of them. The rest is in modules by theme, such as [`search`] for the options of searches, [`shell`] for commands and [`operation`]
//! for code that treats all operations alike. Implementers of backends find helpers in [`tree`], [`change_log`], [`output`],
//! [`timer`], [`fallible_alloc`] and [`part_buffer`].
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
//!   one value ([`GrepStreamRequest`], ids), and enums that divide a whole, which callers match in full ([`Content`], [`FileDataContent`],
//!   [`LineKind`], [`FileOperationError`]).
//!
//! [`ByteRange`]: window::ByteRange
//! [`FileOperationError`]: transfer::FileOperationError
//! [`FileDataContent`]: state::FileDataContent
//! [`GrepStreamRequest`]: operation::GrepStreamRequest
//! [`JobInfo`]: shell::JobInfo
//! [`LineKind`]: search::LineKind
//! [`SnapshotInfo`]: snapshots::SnapshotInfo
//! [`Submatch`]: search::Submatch
//! [`TerminalSize`]: shell::TerminalSize
//!
//! ```
//! use vfs_core::{Backend, BackendExt, Result};
//!
//! async fn first_line(files: &dyn Backend) -> Result<Option<String>> {
//!     let text = files.read_text("/README.md").await?;
//!     Ok(text.lines().next().map(str::to_owned))
//! }
//! ```

mod backend_ext;
mod cancel;
mod facets;
mod operation_id;
mod path_mapping;
mod remove_empty_dirs;
mod requests;

pub mod backend;
pub mod change_log;
pub mod chunks;
pub mod context;
pub mod edit;
pub mod error;
pub mod fallible_alloc;
pub mod format;
pub mod is_link;
pub mod operation;
pub mod output;
pub mod part_buffer;
pub mod path;
pub mod shell;
pub mod suggest;
pub mod text;
pub mod timer;
pub mod tree;
pub mod window;

/// Reads of images and documents as parts for a model.
pub mod multi_modal {
    pub use crate::facets::{
        FilePart, MultiModalReadRequest, MultiModalReadResult, MultiModalReader, PartKind, read_multi_modal,
    };
}

/// Options and results of globs and content searches.
pub mod search {
    pub use crate::requests::{
        BinaryMode, CaseMode, EntryKinds, GrepMatch, GrepOutput, GrepSummary, HiddenNames, IgnoreMode, InvertMatch,
        LineKind, LineText, LinkMode, MatchBoundary, MatchedFile, MultilineMode, Pattern, Skipped, Submatch,
        Submatches,
    };
}

/// Snapshots of all files, and differences between them.
pub mod snapshots {
    pub use crate::facets::Snapshots;
    pub use crate::operation::ListSnapshotsRequest;
    pub use crate::requests::{
        ForgetRequest, RestoreRequest, SnapshotDiffEntry, SnapshotDiffKind, SnapshotDiffRequest, SnapshotDiffResult,
        SnapshotId, SnapshotInfo, SnapshotRequest,
    };
}

/// Files in the state of an agent.
pub mod state {
    pub use crate::requests::{FileData, FileDataContent, FilesUpdate};
}

/// Copies, renames, deletes, uploads and downloads.
pub mod transfer {
    pub use crate::remove_empty_dirs::remove_empty_dirs;
    pub use crate::requests::{
        DeleteScope, FileDownloadRequest, FileOperationError, FileUploadRequest, TransferTargetMode,
        check_source_and_target,
    };
}

/// Streams of changes of files.
pub mod watch {
    pub use crate::facets::Watch;
    pub use crate::requests::{Change, WatchCursor, WatchEvent, WatchRequest};
}

#[doc(inline)]
pub use self::{
    backend::{Backend, Capabilities},
    context::{CancelToken, OpContext},
    error::{Error, ErrorKind, Result},
    operation::{Interceptor, Layer, Operation},
    path::VfsPath,
    shell::{ExecuteEvent, ExecuteRequest, ExecuteResponse, Shell, StreamingShell},
};
pub use backend_ext::BackendExt;
pub use facets::{MultiModalReader, Snapshots, TreeProvider, Watch};
pub use operation_id::OperationId;
pub use requests::{
    CaseMode, Content, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepMatch, GrepOutput, GrepRequest, GrepResult, LsRequest, LsResult, OpenWriterRequest, Pattern,
    Problem, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, StatRequest,
    TruncationReason, Version, WriteMode, WriteRequest, WriteResult,
};
