//! Requests and results of all operations, with their JSON forms.
//!
//! A request is built with `new(required)` and chainable setters, or deserialised from JSON, which rejects unknown fields. A field
//! that the JSON omits has the default that its documentation names.

mod agent_state;
mod delete_rename_copy;
mod edit;
mod file_info;
mod file_writer;
mod glob;
mod grep;
mod incomplete_results;
mod line_text;
mod ls;
mod open_tree;
mod read;
mod resolve;
mod snapshot_requests;
mod submatches;
mod upload_download;
mod version;
mod watch;
pub(crate) mod wire;
mod write;

pub use agent_state::{FileData, FileDataContent, FilesUpdate};
pub use delete_rename_copy::{
    CopyRequest, CopyResult, DeleteRequest, DeleteResult, DeleteScope, RenameRequest, RenameResult, TransferTargetMode,
    check_source_and_target,
};
pub use edit::{ApplyMode, DiffInclusion, EditRequest, EditResult, NewLineEndings, Replacement, ReplacementScope};
pub use file_info::{FileInfo, StatRequest};
pub use file_writer::{BufferedWriter, CommitWriterRequest, FileWriter, OpenWriterRequest};
pub use glob::{EntryKinds, GlobRequest, GlobResult, HiddenNames, IgnoreMode, LinkMode};
pub use grep::{
    BinaryMode, CaseMode, GrepEvent, GrepMatch, GrepOutput, GrepRequest, GrepResult, GrepSummary, InvertMatch,
    LineKind, MatchBoundary, MatchedFile, MultilineMode, Pattern,
};
pub use incomplete_results::{Problem, Skipped, TruncationReason};
pub use line_text::LineText;
pub use ls::{LsRequest, LsResult};
pub use open_tree::{OpenTreeRequest, TreeUse};
pub use read::{ByteRange, Content, ContentForm, Encoding, LineEnding, ReadRequest, ReadResult};
pub use resolve::{ResolveRequest, ResolveResult};
pub use snapshot_requests::{
    ForgetRequest, RestoreRequest, SnapshotDiffEntry, SnapshotDiffKind, SnapshotDiffRequest, SnapshotDiffResult,
    SnapshotId, SnapshotInfo, SnapshotRequest,
};
pub use submatches::{Submatch, Submatches};
pub use upload_download::{
    FileDownloadRequest, FileDownloadResponse, FileOperationError, FileUploadRequest, FileUploadResponse,
};
pub use version::Version;
pub use watch::{Change, WatchCursor, WatchEvent, WatchRequest};
pub use write::{WriteMode, WriteRequest, WriteResult};
