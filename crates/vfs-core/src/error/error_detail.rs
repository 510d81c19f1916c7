//! Error details for programs.

use serde::{Deserialize, Serialize};

use super::path_fault::PathFault;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::requests::Version;

/// Details of some errors, for programs. In JSON the name of the variant in snake case, with an object of its fields if it has any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorDetail {
    /// With [`ErrorKind::NoMatch`]: the replacement that failed, and the lines most similar to its text.
    NoMatch {
        /// The index into the request's replacements.
        replacement: usize,
        /// The most similar lines, best first; empty if none is similar.
        nearest: Vec<SimilarLine>,
        /// Why the text was not found, if the file has a similar one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<NoMatchHint>,
    },
    /// With [`ErrorKind::NotUnique`]: the positions of the text.
    NotUnique {
        /// The index into the request's replacements.
        replacement: usize,
        /// The number of occurrences, overlapping ones included.
        count: u64,
        /// The 1-based numbers of the first lines in which an occurrence starts, each once, at most 20.
        lines: Vec<u64>,
    },
    /// With [`ErrorKind::InvalidArgument`], for an edit: the text to replace is empty.
    EmptyOld {
        /// The index into the request's replacements.
        replacement: usize,
    },
    /// With [`ErrorKind::InvalidPath`]: the fault, if the error is about the path itself.
    InvalidPath {
        /// The fault.
        fault: PathFault,
    },
    /// With [`ErrorKind::InvalidArgument`]: the offset is past the end of the file. In JSON `past_end`.
    #[serde(rename = "past_end")]
    OffsetOutOfRange {
        /// The number of lines of the file.
        total_lines: u64,
    },
    /// With [`ErrorKind::Conflict`]: the version that the file has now.
    Conflict {
        /// The version, or `None` if the file does not exist.
        actual: Option<Version>,
    },
    /// With [`ErrorKind::Conflict`]: the operation id was used for another request on the same path, and the file may have the
    /// expected version. A retry needs a new id.
    OperationIdReused,
    /// With [`ErrorKind::QuotaExceeded`]: a rate is exhausted, and not the space. The call may be retried.
    RateLimited {
        /// The time in milliseconds after which the rate admits the next operation, rounded up.
        retry_after_ms: u64,
    },
    /// With [`ErrorKind::Unsupported`]: the program was built without a feature of a crate.
    MissingFeature {
        /// The name of the feature in `Cargo.toml`.
        feature: String,
    },
    /// With any kind, for a recursive delete that failed after it had removed a part of the directory.
    PartialDelete {
        /// The number of files and links that were removed, without directories.
        files: u64,
    },
}

/// A line of a file that is similar to a text which was not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SimilarLine {
    /// The 1-based line number.
    pub line: u64,
    /// The text of the line, cut after 200 bytes.
    pub text: String,
}

impl SimilarLine {
    /// Creates the line with the number `line` and the text `text`.
    pub fn new(line: u64, text: impl Into<String>) -> Self {
        Self { line, text: text.into() }
    }
}

/// The reason for which a text was not found in a file that contains a similar one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoMatchHint {
    /// The file ends with the text, but without the line break at its end.
    FinalLineBreak,
    /// The file has the text with other line endings, and the replacement differs from it in nothing else.
    LineEndings,
}
