//! What a call of a tool returns.

use vfs_core::multi_modal::FilePart;
use vfs_core::state::FilesUpdate;
use vfs_core::{Error, ErrorKind, Version, VfsPath};

/// Maximum number of characters of the text of a failure.
pub(crate) const MAX_ERROR_CHARACTERS: usize = 2_000;

/// The outcome of a call: what the model sees, and what the runtime needs to know.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// What the model sees, in this order.
    pub parts: Vec<Part>,
    /// The kind of the failure; `None` for a success. A failure is complete in its text.
    pub failure: Option<FailureKind>,
    /// Whether the text leaves out something that the call asked for. It then says how to go on.
    pub is_truncated: bool,
    /// The files that the call changed, with their new versions.
    pub changed: Vec<ChangedFile>,
    /// The file with the text, up to 16 MiB of it, of which the parts have only some.
    pub artifact: Option<VfsPath>,
    /// The changes of a backend that only returns them: merge them into the agent's state.
    pub files_update: Option<FilesUpdate>,
}

/// A part of an outcome.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// An image or a PDF document.
    File(FilePart),
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// There is no tool of this name.
    UnknownTool,
    /// An argument is missing or cannot be read.
    InvalidArguments,
    /// The backend refused or failed.
    Backend(ErrorKind),
    /// A command ended with an exit code other than 0, by a signal or by its timeout.
    Command,
    /// The call changes a file that the model has not read, and the tools are set to refuse that.
    NotRead,
}

/// A file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// The file.
    pub path: VfsPath,
    /// The new version; `None` if the file was removed.
    pub version: Option<Version>,
}

impl ChangedFile {
    /// Creates a changed file.
    pub fn new(path: VfsPath, version: Option<Version>) -> Self {
        Self { path, version }
    }
}

impl ToolOutcome {
    /// Creates a success with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], ..Self::default() }
    }

    /// Creates a failure with a text, which is cut after 2,000 characters, unless it is the output of a command.
    pub fn failed(kind: FailureKind, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if kind != FailureKind::Command
            && let Some((end, _)) = text.char_indices().nth(MAX_ERROR_CHARACTERS - 1)
            && text[end..].chars().nth(1).is_some()
        {
            text.truncate(end);
            text.push('…');
        }
        Self { failure: Some(kind), ..Self::text(text) }
    }

    pub(crate) fn of_error(error: &Error, text: String) -> Self {
        Self::failed(FailureKind::Backend(error.kind()), text)
    }

    /// Returns the texts of all parts, one below the other. An image or document is a line with its type and size.
    pub fn to_text(&self) -> String {
        let texts: Vec<_> = self.parts.iter().map(Part::to_text).collect();
        texts.join("\n")
    }

    /// Appends a note in a part of its own, unless a failure would exceed the length of an error. Returns whether it did.
    pub(crate) fn push_note(&mut self, note: &str) -> bool {
        let length = |text: &str| text.chars().count();
        let is_short = || length(&self.to_text()) + length(note) + 3 <= MAX_ERROR_CHARACTERS;
        let fits = matches!(self.failure, None | Some(FailureKind::Command)) || is_short();
        if fits {
            self.parts.push(Part::Text(format!("[{note}]")));
        }
        fits
    }
}

impl Part {
    /// Returns the text. An image or document is a line with its type and size.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::File(file) => format!("[{}, {} bytes]", file.mime_type, file.data.len()),
        }
    }
}
