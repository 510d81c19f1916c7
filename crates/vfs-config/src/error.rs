//! Errors of configuration files, with their positions.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use vfs_core::ErrorKind;

use crate::redaction::redact_urls;

/// The category of a [`ConfigError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The configuration file, or a file that it names, cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// A key is unknown or missing, or its value is invalid.
    Invalid,
    /// A setting contradicts another one.
    Conflict,
    /// A directory or store that the file names cannot be opened.
    Open,
}

/// A position in a text; line and column count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Position {
    /// The line number.
    pub line: usize,
    /// The number of the character in the line.
    pub column: usize,
}

/// An error or warning about a configuration file.
///
/// # Behaviour
///
/// `Display` is one line for operators, such as `vfs.toml:3:8: layers[0].max_bytes: ...`, with what to write instead. The line
/// can contain host paths, so do not show it to a model. User, password and parameters of all URLs are redacted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", SingleLineError(self))]
#[non_exhaustive]
pub struct ConfigError {
    /// The category.
    pub kind: ConfigErrorKind,
    /// The configuration file, or `None` if the text was parsed directly.
    pub file: Option<PathBuf>,
    /// The position in the file.
    pub position: Option<Position>,
    /// The full name of the key, such as `mounts[0].layers[1].max_bytes`; indices count from 0.
    pub key: Option<String>,
    /// The reason, and what to write instead.
    pub message: String,
    /// The error of the backend.
    #[source]
    pub cause: Option<vfs_core::Error>,
}

impl ConfigError {
    /// Creates an error of `kind` without a position.
    pub(crate) fn new(kind: ConfigErrorKind, message: impl Into<String>) -> Self {
        Self { kind, file: None, position: None, key: None, message: redact_urls(&message.into()), cause: None }
    }

    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Creates the error that the directory `path` cannot be opened; `label` names its purpose.
    pub(crate) fn open_directory(label: &str, path: &Path, cause: vfs_core::Error) -> Self {
        let mut error = Self::new(ConfigErrorKind::Open, describe_open_failure(label, path, &cause));
        error.cause = Some(cause);
        error
    }

    /// Sets the cause and appends its message.
    pub(crate) fn with_cause(mut self, cause: vfs_core::Error) -> Self {
        self.message = format!("{}: {}", self.message, redact_urls(cause.message()));
        self.cause = Some(cause);
        self
    }
}

/// Returns one line for an operator that says why the directory `path` cannot be opened and what to do; `label` names its purpose.
///
/// ```
/// use std::path::Path;
/// use vfs_core::{Error, ErrorKind};
///
/// let line = vfs_config::describe_open_failure("root", Path::new("/absent"), &Error::of(ErrorKind::NotFound));
/// assert!(line.starts_with("root '/absent' cannot be opened: the directory does not exist; create it"));
/// ```
pub fn describe_open_failure(label: &str, path: &Path, error: &vfs_core::Error) -> String {
    let reason = match error.kind() {
        ErrorKind::NotFound => "the directory does not exist; create it, or name another one",
        ErrorKind::NotADirectory => "it is not a directory; name a directory",
        ErrorKind::PermissionDenied => "permission denied; make it readable, or name another one",
        _ => error.message(),
    };
    format!("{label} '{}' cannot be opened: {reason}", path.display())
}

/// Formats an error as one line.
struct SingleLineError<'a>(&'a ConfigError);

impl fmt::Display for SingleLineError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigError { file, position, key, message, .. } = self.0;
        if let Some(file) = file {
            write!(f, "{}:", redact_urls(&file.display().to_string()))?;
        }
        if let Some(Position { line, column }) = position {
            write!(f, "{line}:{column}:")?;
        }
        if file.is_some() || position.is_some() {
            f.write_str(" ")?;
        }
        match key {
            Some(key) => write!(f, "{key}: {message}"),
            None => f.write_str(message),
        }
    }
}
