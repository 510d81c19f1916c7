//! Error details for programs.

use serde::{Deserialize, Serialize};

use super::path_fault::PathFault;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::types::Version;

/// Details of some kinds of errors, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorDetail {
    /// With [`ErrorKind::NoMatch`]: which replacement of the list failed (0-based), and the lines most like it.
    NoMatch {
        /// Index into the request's replacements.
        replacement: usize,
        /// The most similar places, best first; empty where nothing is similar.
        nearest: Vec<SimilarLine>,
        /// Why the text was not found, if the file has a similar one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<NoMatchHint>,
    },
    /// With [`ErrorKind::NotUnique`]: where the text stands.
    NotUnique {
        /// Index into the request's replacements.
        replacement: usize,
        /// How many places there are, overlapping ones included.
        count: u64,
        /// 1-based numbers of the first lines in which a place starts, each once, at most 20.
        lines: Vec<u64>,
    },
    /// With [`ErrorKind::InvalidArgument`], of an edit: the text to replace is empty.
    EmptyOld {
        /// Index into the request's replacements.
        replacement: usize,
    },
    /// With [`ErrorKind::InvalidPath`]: why the path is invalid, if the error is about the path itself.
    InvalidPath {
        /// The fault.
        fault: PathFault,
    },
    /// With [`ErrorKind::InvalidArgument`]: the offset lies past the end.
    #[serde(rename = "past_end")]
    OffsetOutOfRange {
        /// How many lines the file has.
        total_lines: u64,
    },
    /// With [`ErrorKind::Conflict`]: the version that is there now, where there is one.
    Conflict {
        /// The version the file has now.
        actual: Option<Version>,
    },
    /// With any kind, of a recursive delete: the delete removed a part of the directory, then failed at the entry that the error
    /// names.
    PartialDelete {
        /// How many files and links were removed, directories not counted.
        files: u64,
    },
}

/// A line of a file that is like a text which was not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SimilarLine {
    /// 1-based line number.
    pub line: u64,
    /// The line, shortened to at most 200 bytes.
    pub text: String,
}

impl SimilarLine {
    /// The line `line` with the text `text`.
    pub fn new(line: u64, text: impl Into<String>) -> Self {
        Self { line, text: text.into() }
    }
}

/// Why a text was not found in a file that has a similar one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoMatchHint {
    /// The file ends with the text, but without the line break at its end.
    FinalLineBreak,
    /// The file has the text with other line endings, and the replacement differs from it in nothing else.
    LineEndings,
}
