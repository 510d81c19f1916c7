//! Why a file is no namespace, and where in it that stands.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use vfs_core::ErrorKind;

use crate::mask::masked;

/// What is wrong with a file, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The file, or one that it names, cannot be read.
    Unreadable,
    /// It is not TOML.
    Syntax,
    /// A key is unknown or missing, or a value is not one that its key can have.
    Invalid,
    /// What stands there does not go together with something else.
    Conflict,
    /// A directory or store that it names cannot be opened.
    Open,
}

/// A place in a text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A file that says nothing that can be built.
///
/// # Behaviour
///
/// `Display` is one line for operators: `vfs.toml:3:8: layers[0].max_bytes: ...`, with what to write instead. It speaks of
/// paths of the host, so it is not for a model. User, password and parameters of URLs are masked, wherever they stand.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", Line(self))]
#[non_exhaustive]
pub struct ConfigError {
    /// What is wrong.
    pub kind: ConfigErrorKind,
    /// The file, where the text is that of one.
    pub file: Option<PathBuf>,
    /// Where in the file.
    pub position: Option<Position>,
    /// The key that is meant, from the top: `mounts[0].layers[1].max_bytes`, with numbers from 0.
    pub key: Option<String>,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// What the backend said.
    #[source]
    pub cause: Option<vfs_core::Error>,
}

impl ConfigError {
    /// An error of `kind` that is not in a file.
    pub(crate) fn new(kind: ConfigErrorKind, message: impl Into<String>) -> Self {
        Self { kind, file: None, position: None, key: None, message: masked(&message.into()), cause: None }
    }

    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// The same, because of `cause`, which is told too.
    pub(crate) fn because(mut self, cause: vfs_core::Error) -> Self {
        self.message = format!("{}: {}", self.message, masked(cause.message()));
        self.cause = Some(cause);
        self
    }
}

/// Returns one line for an operator: that the directory `path`, which is `what`, cannot be opened because of `error`, and what to do.
///
/// ```
/// use std::path::Path;
/// use vfs_core::{Error, ErrorKind};
///
/// let line = vfs_config::unopened_directory("root", Path::new("/absent"), &Error::of(ErrorKind::NotFound));
/// assert!(line.starts_with("root '/absent' cannot be opened: the directory does not exist; create it"));
/// ```
pub fn unopened_directory(what: &str, path: &Path, error: &vfs_core::Error) -> String {
    let reason = match error.kind() {
        ErrorKind::NotFound => "the directory does not exist; create it, or name another one",
        ErrorKind::NotADirectory => "it is not a directory; name a directory",
        ErrorKind::PermissionDenied => "permission denied; make it readable, or name another one",
        _ => error.message(),
    };
    format!("{what} '{}' cannot be opened: {reason}", path.display())
}

/// An error as a line.
struct Line<'a>(&'a ConfigError);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigError { file, position, key, message, .. } = self.0;
        if let Some(file) = file {
            write!(f, "{}:", masked(&file.display().to_string()))?;
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
