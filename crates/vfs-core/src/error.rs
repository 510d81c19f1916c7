//! The error type of all operations: kind, path, and messages for operators and for models.

mod error_detail;
mod path_fault;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::error_detail::{ErrorDetail, NoMatchHint, SimilarLine};
pub use self::path_fault::PathFault;
use crate::path::VfsPath;
use crate::requests::Version;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident => $code:literal,)+) => {
        /// The kind of a failure, on which programs and agents act.
        ///
        /// The [`code`](ErrorKind::code) of a kind is stable, and is its form in JSON.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorKind {
            /// Every kind, in the order of declaration.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant),+];

            /// Returns the stable snake_case code of this kind.
            pub const fn code(self) -> &'static str {
                match self { $(ErrorKind::$variant => $code,)+ }
            }
        }
    };
}

error_kinds! {
    /// No file or directory exists at the path.
    NotFound => "not_found",
    /// The path exists, and the mode of the request forbids replacing it.
    AlreadyExists => "already_exists",
    /// The operation requires a file, but the path is a directory.
    IsADirectory => "is_a_directory",
    /// The operation requires a directory, but the path, or a part of it, is a file.
    NotADirectory => "not_a_directory",
    /// The directory is not empty, and the operation is not recursive.
    NotEmpty => "not_empty",
    /// The operating system or the store denied access.
    PermissionDenied => "permission_denied",
    /// A policy denied the operation.
    PolicyDenied => "policy_denied",
    /// A policy requires a person's approval first.
    ApprovalRequired => "approval_required",
    /// A symbolic link leads outside the root.
    PathEscape => "path_escape",
    /// The path is invalid, or not in this namespace.
    InvalidPath => "invalid_path",
    /// A glob or regular expression does not parse, or exceeds a limit.
    InvalidPattern => "invalid_pattern",
    /// Another argument is invalid.
    InvalidArgument => "invalid_argument",
    /// The text to replace does not occur in the file.
    NoMatch => "no_match",
    /// The text to replace occurs in the file more than once.
    NotUnique => "not_unique",
    /// The file has another version than the caller expected.
    Conflict => "conflict",
    /// The operation would cross from one backend into another.
    CrossBackend => "cross_backend",
    /// A file, an argument or a result exceeds a size limit.
    TooLarge => "too_large",
    /// A quota is exhausted.
    QuotaExceeded => "quota_exceeded",
    /// The disk or the store is full.
    StorageFull => "storage_full",
    /// Another operation holds the resource. The call may be retried.
    Busy => "busy",
    /// The deadline passed before the operation completed.
    Timeout => "timeout",
    /// The caller cancelled the operation.
    Cancelled => "cancelled",
    /// The backend, or the type of the file, does not support the operation.
    Unsupported => "unsupported",
    /// The content is not text, or its encoding cannot represent the new text.
    NotText => "not_text",
    /// The backend is unreachable or fails.
    Unavailable => "unavailable",
    /// A bug of this library, or a fault of the machine.
    Internal => "internal",
}

impl ErrorKind {
    /// Returns whether the same call may succeed when retried later.
    pub const fn is_temporary(self) -> bool {
        matches!(self, ErrorKind::Busy | ErrorKind::Timeout | ErrorKind::Unavailable)
    }

    /// Returns whether this kind means that the path does not exist: `not_found`, or `not_a_directory` for a path below a file.
    pub const fn is_absence(self) -> bool {
        matches!(self, ErrorKind::NotFound | ErrorKind::NotADirectory)
    }

    /// Returns the default message of this kind.
    const fn advice(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "no such file or directory; list the parent directory",
            ErrorKind::AlreadyExists => "the path already exists; read and then make an edit, or write to a new path",
            ErrorKind::IsADirectory => {
                "the path is a directory, not a file; list the directory or name a file below it"
            }
            ErrorKind::NotADirectory => "the path, or a part of it, is a file and not a directory",
            ErrorKind::NotEmpty => "the directory is not empty; use a recursive operation to include its entries",
            ErrorKind::PermissionDenied => "permission denied; choose another path",
            ErrorKind::PolicyDenied => "a policy forbids this operation; do not try again",
            ErrorKind::ApprovalRequired => "this operation needs a person's approval first",
            ErrorKind::PathEscape => {
                "the path leads outside the root, or through a link to an absolute path; use a path inside the root, or make the link relative"
            }
            ErrorKind::InvalidPath => "the path is not valid here",
            ErrorKind::InvalidPattern => "the pattern is not valid",
            ErrorKind::InvalidArgument => "an argument is not valid",
            ErrorKind::NoMatch => "the text was not found",
            ErrorKind::NotUnique => "the text appears more than once; add surrounding lines to make it unique",
            ErrorKind::Conflict => {
                "the file changed since it was read; read it again and repeat the change on its current content"
            }
            ErrorKind::CrossBackend => "source and target are in different backends; copy and delete instead",
            ErrorKind::TooLarge => "the content is over the size limit; read a smaller window",
            ErrorKind::QuotaExceeded => "the quota is used up; delete something first",
            ErrorKind::StorageFull => "no space is left; delete something first",
            ErrorKind::Busy => "the file is in use; try again",
            ErrorKind::Timeout => "the operation timed out; narrow the request and try again",
            ErrorKind::Cancelled => "the operation was cancelled",
            ErrorKind::Unsupported => "this backend does not support the operation",
            ErrorKind::NotText => "the content is not text; download it as bytes instead",
            ErrorKind::Unavailable => "the storage is unavailable; try again later",
            ErrorKind::Internal => "internal error; try again, and report the error if it persists",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// The error of a failed operation.
///
/// # Behaviour
///
/// * `Display` is one line for operators: code, caller's path, message. The cause is available from `source()` only.
/// * [`for_model`](Error::for_model) is a short message for a model, which says what to do and contains no host paths.
/// * The JSON form is `{"code", "path", "message", "detail"}` with the model's message; the cause is not serialised.
///
/// ```
/// use vfs_core::{Error, ErrorKind, VfsPath};
///
/// let error = Error::not_found(&VfsPath::parse("/a.txt")?);
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert_eq!(error.for_model(), "Error: File '/a.txt' not found");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "WireError", from = "WireError")]
pub struct Error(Box<ErrorInner>);

/// The fields of an error, boxed so that a result stays small.
#[derive(Clone)]
struct ErrorInner {
    kind: ErrorKind,
    path: Option<Box<str>>,
    message: Cow<'static, str>,
    model: Option<Box<str>>,
    detail: Option<ErrorDetail>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Bounds in bytes, so that an error about a huge argument stays small.
const MAX_MESSAGE: usize = 1500;
const MAX_PATH_IN_MESSAGE: usize = 300;

impl Error {
    /// Creates an error of `kind`. The message must not contain host paths.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(ErrorInner {
            kind,
            path: None,
            message: message.into(),
            model: None,
            detail: None,
            source: None,
        }))
    }

    /// Creates an error of `kind` at `path` with the default message of the kind.
    pub fn at(kind: ErrorKind, path: &VfsPath) -> Self {
        Self::of(kind).with_path(path)
    }

    /// Creates an error of `kind` with the default message of the kind and no path.
    pub fn of(kind: ErrorKind) -> Self {
        Self::new(kind, kind.advice())
    }

    /// Creates a `not_found` error at `path`.
    pub fn not_found(path: &VfsPath) -> Self {
        Self::at(ErrorKind::NotFound, path)
    }

    /// Creates an `already_exists` error at `path`.
    pub fn already_exists(path: &VfsPath) -> Self {
        Self::at(ErrorKind::AlreadyExists, path)
    }

    /// Creates an `invalid_argument` error. The message names the argument and its valid values.
    pub fn invalid_argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Creates a `conflict` error: the file at `path` now has version `actual`, or no longer exists if `actual` is `None`.
    pub fn conflict(path: &VfsPath, actual: Option<Version>) -> Self {
        let error = match actual {
            Some(_) => Self::of(ErrorKind::Conflict),
            None => Self::new(ErrorKind::Conflict, "the file no longer exists; create it, or find where it was moved"),
        };
        error.with_path(path).with_detail(ErrorDetail::Conflict { actual })
    }

    /// Sets the path.
    #[must_use]
    pub fn with_path(self, path: &VfsPath) -> Self {
        self.with_path_text(path.as_str())
    }

    /// Sets the path, unless the error has one.
    #[must_use]
    pub fn or_path(self, path: &VfsPath) -> Self {
        if self.0.path.is_some() { self } else { self.with_path(path) }
    }

    /// Sets the path to text that need not be a valid path, shortened to 4,096 bytes.
    #[must_use]
    pub fn with_path_text(mut self, path: &str) -> Self {
        self.0.path = Some(shorten(path, VfsPath::MAX_LEN).into());
        self
    }

    /// Replaces the path `from` by `to`, also in the message for the model.
    pub(crate) fn replace_path(mut self, from: &str, to: &str) -> Self {
        if let Some(model) = &self.0.model {
            self.0.model = Some(model.replace(&format!("'{from}'"), &format!("'{to}'")).into());
        }
        self.with_path_text(to)
    }

    /// Sets the message for the model, which is otherwise made of path and message.
    #[must_use]
    pub fn with_model_message(mut self, message: impl Into<String>) -> Self {
        self.0.model = Some(shorten(&message.into(), MAX_MESSAGE).into());
        self
    }

    /// Sets the message for the model to the default message of the kind.
    ///
    /// Use this if the message is for operators alone, such as one that names a server.
    ///
    /// ```
    /// use vfs_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::StorageFull, "the disk of db.internal:5432 is full").with_generic_model_message();
    /// assert_eq!(error.for_model(), "Error: no space is left; delete something first");
    /// assert_eq!(error.message(), "the disk of db.internal:5432 is full");
    /// ```
    #[must_use]
    pub fn with_generic_model_message(self) -> Self {
        let message = format!("Error: {}", self.kind().advice());
        self.with_model_message(message)
    }

    /// Appends a consequence to the message and to the message for the model.
    ///
    /// ```
    /// use vfs_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Unavailable, "db.internal:5432 does not answer").with_generic_model_message();
    /// let error = error.with_consequence("the file is at both ends");
    /// assert_eq!(error.message(), "db.internal:5432 does not answer; the file is at both ends");
    /// assert!(error.for_model().ends_with("; the file is at both ends"));
    /// ```
    #[must_use]
    pub fn with_consequence(mut self, consequence: impl fmt::Display) -> Self {
        self.0.message = format!("{}; {consequence}", self.0.message).into();
        if let Some(model) = &self.0.model {
            self.0.model = Some(format!("{model}; {consequence}").into());
        }
        self
    }

    /// Sets the detail for programs.
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail) -> Self {
        self.0.detail = Some(detail);
        self
    }

    /// Marks the error as that of a recursive delete that had already removed `files` files and links.
    ///
    /// The path of the error is the entry that could not be removed.
    ///
    /// ```
    /// use vfs_core::error::ErrorDetail;
    /// use vfs_core::{Error, ErrorKind, VfsPath};
    ///
    /// let error = Error::at(ErrorKind::PermissionDenied, &VfsPath::parse("/d/rest")?).after_partial_delete(12);
    /// assert_eq!(error.detail(), Some(&ErrorDetail::PartialDelete { files: 12 }));
    /// assert!(error.for_model().contains("the delete is partial: 12 files are gone"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn after_partial_delete(self, files: u64) -> Self {
        let removed = if files == 1 { "1 file is gone".to_owned() } else { format!("{files} files are gone") };
        self.with_consequence(format_args!("the delete is partial: {removed}, and the rest is still there"))
            .with_detail(ErrorDetail::PartialDelete { files })
    }

    /// Sets the cause, which only operators see.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the path in the caller's namespace, if the error has one.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Returns the message without code and path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the detail for programs, if the error has one.
    pub fn detail(&self) -> Option<&ErrorDetail> {
        self.0.detail.as_ref()
    }

    /// Returns whether the same call may succeed later; see [`ErrorKind::is_temporary`].
    pub fn is_temporary(&self) -> bool {
        self.0.kind.is_temporary()
    }

    /// Returns whether the path does not exist; see [`ErrorKind::is_absence`].
    pub fn is_absence(&self) -> bool {
        self.0.kind.is_absence()
    }

    /// Returns the message for a model: actionable, under 2 kB, without host paths.
    pub fn for_model(&self) -> String {
        if let Some(model) = &self.0.model {
            return model.to_string();
        }
        let message = shorten(&self.0.message, MAX_MESSAGE);
        let Some(path) = self.path().map(|path| shorten(path, MAX_PATH_IN_MESSAGE)) else {
            return format!("Error: {message}");
        };
        match self.0.kind {
            // Agents know these two sentences; a message of the backend's own takes precedence.
            ErrorKind::NotFound if message == self.0.kind.advice() => format!("Error: File '{path}' not found"),
            ErrorKind::AlreadyExists if message == self.0.kind.advice() => format!(
                "Cannot write to {path} because it already exists. Read and then make an edit, or write to a new path."
            ),
            _ => format!("Error: '{path}': {message}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind.code())?;
        if let Some(path) = self.path() {
            write!(f, ": {}", one_line(&shorten(path, MAX_PATH_IN_MESSAGE)))?;
        }
        write!(f, ": {}", one_line(&shorten(&self.0.message, MAX_MESSAGE)))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorInner { kind, path, message, model: _, detail, source } = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("kind", kind).field("path", path).field("message", message);
        if let Some(detail) = detail {
            out.field("detail", detail);
        }
        if let Some(source) = source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl Eq for Error {}

/// Compares the serialised fields; causes are not compared.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind == other.0.kind
            && self.0.path == other.0.path
            && self.for_model() == other.for_model()
            && self.0.detail == other.0.detail
    }
}

/// The JSON form of an error.
#[derive(Serialize, Deserialize)]
struct WireError {
    code: ErrorKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<ErrorDetail>,
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        Self {
            code: error.kind(),
            message: error.for_model(),
            path: error.0.path.map(String::from),
            detail: error.0.detail,
        }
    }
}

impl From<WireError> for Error {
    fn from(wire: WireError) -> Self {
        let mut error = Error::new(wire.code, wire.message.clone()).with_model_message(wire.message);
        error.0.path = wire.path.map(Into::into);
        error.0.detail = wire.detail;
        error
    }
}

/// Returns `text`, or its beginning and end if it is longer than `max` bytes.
pub(crate) fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(max * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - max / 4);
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
}

/// Returns `text` with control characters escaped.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        Cow::Owned(
            text.chars()
                .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_unique_code_that_is_its_json_form() {
        let mut codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_string(kind).expect("serialises"), format!("\"{}\"", kind.code()));
        }
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn display_is_one_line_without_the_cause() {
        let path = VfsPath::parse("/a\nb").expect("valid");
        let error = Error::at(ErrorKind::PermissionDenied, &path).with_source(std::io::Error::other("/host/secret"));
        assert_eq!(error.to_string(), "permission_denied: /a\\nb: permission denied; choose another path");
        assert!(std::error::Error::source(&error).is_some());
        assert!(!error.for_model().contains("host"));
        assert!(!serde_json::to_string(&error).expect("serialises").contains("host"));
    }

    #[test]
    fn errors_survive_the_round_trip_through_json() {
        let path = VfsPath::parse("/a").expect("valid");
        for error in [Error::already_exists(&path), Error::not_found(&path).after_partial_delete(1)] {
            let json = serde_json::to_string(&error).expect("serialises");
            let back: Error = serde_json::from_str(&json).expect("deserialises");
            assert_eq!(back, error);
        }
    }

    #[test]
    fn a_partial_delete_is_in_every_form_of_the_error() {
        let path = VfsPath::parse("/d/rest").expect("valid");
        let plain = Error::at(ErrorKind::PermissionDenied, &path);
        let consequence = "the delete is partial: 1 file is gone, and the rest is still there";
        for error in [plain.clone(), plain.with_model_message("Error: '/d/rest' stays")] {
            let error = error.after_partial_delete(1);
            assert!(
                error.to_string().starts_with("permission_denied: /d/rest: ")
                    && error.to_string().ends_with(consequence)
            );
            assert!(error.for_model().ends_with(consequence), "{error:?}");
            let json = serde_json::to_value(&error).expect("serialises");
            assert_eq!(json["detail"], serde_json::json!({ "partial_delete": { "files": 1 } }));
        }
    }
}
