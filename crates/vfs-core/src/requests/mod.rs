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
mod line_text;
mod ls;
mod read;
mod resolve;
mod snapshot_requests;
mod submatches;
mod upload_download;
mod watch;
pub(crate) mod wire;
mod write;

pub use agent_state::{FileData, FileDataContent, FilesUpdate};
pub use delete_rename_copy::{
    CopyRequest, CopyResult, DeleteRequest, DeleteResult, DeleteScope, RenameRequest, RenameResult, TransferMode,
    check_source_and_target,
};
pub use edit::{DiffOutput, EditMode, EditRequest, EditResult, NewLineEndings, Occurrences, Replacement};
pub use file_info::{FileInfo, Problem, Skipped, StatRequest, Truncation, Version};
pub use file_writer::{BufferedWriter, CommitWriterRequest, FileWriter, OpenWriterRequest};
pub use glob::{EntryKinds, GlobRequest, GlobResult, HiddenNames, IgnoreMode, LinkMode};
pub use grep::{
    BinaryMode, CaseMode, GrepEvent, GrepMatch, GrepOutput, GrepRequest, GrepResult, GrepSummary, LineKind,
    LineSelection, MatchBoundary, MatchSpan, MatchedFile, Pattern,
};
pub use line_text::LineText;
pub use ls::{LsRequest, LsResult};
pub use read::{ByteRange, Content, ContentForm, Encoding, LineEnding, ReadRequest, ReadResult};
pub use resolve::{OpenTreeRequest, ResolveRequest, ResolveResult, TreeUse};
pub use snapshot_requests::{
    ChangeKind, DiffRequest, DiffResult, FileChange, ForgetRequest, RestoreRequest, SnapshotId, SnapshotInfo,
    SnapshotRequest,
};
pub use submatches::{Submatch, Submatches};
pub use upload_download::{
    DownloadRequest, FileDownloadResponse, FileOperationError, FileUploadResponse, UploadRequest,
};
pub use watch::{Change, Cursor, WatchEvent, WatchRequest};
pub use write::{WriteMode, WriteRequest, WriteResult};
