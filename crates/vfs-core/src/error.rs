//! One error type for every room: a kind to act on, the caller's path, and words for two readers.

mod detail;
mod path_fault;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::detail::{ErrorDetail, NoMatchHint, SimilarLine};
pub use self::path_fault::PathFault;
use crate::path::VfsPath;
use crate::types::Version;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident => $code:literal,)+) => {
        /// What went wrong, as one word that a program or an agent can act on.
        ///
        /// The [`code`](ErrorKind::code) of a kind is stable and is its form in JSON.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorKind {
            /// Every kind, in the order of declaration.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant),+];

            /// The stable snake_case word for this kind.
            pub const fn code(self) -> &'static str {
                match self { $(ErrorKind::$variant => $code,)+ }
            }
        }
    };
}

error_kinds! {
    /// Nothing is at the path.
    NotFound => "not_found",
    /// Something is at the path already, and the mode forbids replacing it.
    AlreadyExists => "already_exists",
    /// A file was needed; the path is a directory.
    IsADirectory => "is_a_directory",
    /// A directory was needed; the path, or a part of it, is a file.
    NotADirectory => "not_a_directory",
    /// The directory has entries, and the operation was not recursive.
    NotEmpty => "not_empty",
    /// The operating system or the store refused.
    PermissionDenied => "permission_denied",
    /// A policy refused.
    PolicyDenied => "policy_denied",
    /// A policy wants a person's approval first.
    ApprovalRequired => "approval_required",
    /// A link leads out of the root.
    PathEscape => "path_escape",
    /// The path cannot name anything here.
    InvalidPath => "invalid_path",
    /// A glob or regex does not parse, or is over a limit.
    InvalidPattern => "invalid_pattern",
    /// Another argument is out of its range.
    InvalidArgument => "invalid_argument",
    /// The text to replace is not in the file.
    NoMatch => "no_match",
    /// The text to replace is in the file more than once.
    NotUnique => "not_unique",
    /// The file is not the version that the caller expected.
    Conflict => "conflict",
    /// The operation would have to cross from one backend into another.
    CrossBackend => "cross_backend",
    /// A file, an argument or a result is over a size limit.
    TooLarge => "too_large",
    /// A quota is used up.
    QuotaExceeded => "quota_exceeded",
    /// The disk or the store is full.
    StorageFull => "storage_full",
    /// Something else holds what is needed; try again.
    Busy => "busy",
    /// The deadline passed.
    Timeout => "timeout",
    /// The caller cancelled.
    Cancelled => "cancelled",
    /// The backend, or the kind of file, cannot do this.
    Unsupported => "unsupported",
    /// Text was needed; the content is not text, or is in an encoding that cannot hold it.
    NotText => "not_text",
    /// The backend cannot be reached or answers with faults.
    Unavailable => "unavailable",
    /// A fault of this library or of the machine.
    Internal => "internal",
}

impl ErrorKind {
    /// Whether the same call may succeed later without anyone changing its arguments.
    pub const fn is_temporary(self) -> bool {
        matches!(self, ErrorKind::Busy | ErrorKind::Timeout | ErrorKind::Unavailable)
    }

    /// Whether it says that nothing is at a path: neither there, nor a directory above where it would have to be.
    pub const fn is_absence(self) -> bool {
        matches!(self, ErrorKind::NotFound | ErrorKind::NotADirectory)
    }

    /// The words an agent reads where a failure says nothing better.
    const fn advice(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "it does not exist; list the directory to see what does",
            ErrorKind::AlreadyExists => "it already exists; read and then make an edit, or write to a new path",
            ErrorKind::IsADirectory => "it is a directory, not a file; list it or name a file below it",
            ErrorKind::NotADirectory => "it, or a part of its path, is a file and not a directory",
            ErrorKind::NotEmpty => "the directory is not empty; ask for a recursive operation if all of it is meant",
            ErrorKind::PermissionDenied => "permission denied",
            ErrorKind::PolicyDenied => "a policy forbids this; do not try again",
            ErrorKind::ApprovalRequired => "this needs a person's approval first",
            ErrorKind::PathEscape => {
                "it leads outside the root, or through a link to an absolute path; use a path inside the root, or make the link relative"
            }
            ErrorKind::InvalidPath => "the path is not valid here",
            ErrorKind::InvalidPattern => "the pattern is not valid",
            ErrorKind::InvalidArgument => "an argument is not valid",
            ErrorKind::NoMatch => "the text was not found",
            ErrorKind::NotUnique => "the text appears more than once; add surrounding lines to make it unique",
            ErrorKind::Conflict => {
                "it changed since it was read; read it again and repeat the change on what it holds now"
            }
            ErrorKind::CrossBackend => "source and target live in different backends; copy and delete instead",
            ErrorKind::TooLarge => "it is over the size limit; read a smaller window",
            ErrorKind::QuotaExceeded => "the quota is used up; delete something first",
            ErrorKind::StorageFull => "no space is left; delete something first",
            ErrorKind::Busy => "it is in use; try again",
            ErrorKind::Timeout => "it took too long; narrow the request and try again",
            ErrorKind::Cancelled => "it was cancelled",
            ErrorKind::Unsupported => "this is not supported here",
            ErrorKind::NotText => "it is not text; download it as bytes instead",
            ErrorKind::Unavailable => "the storage is not available now; try again later",
            ErrorKind::Internal => "an internal fault; try again, and report it if it stays",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A failure of one operation.
///
/// # Behaviour
///
/// * `Display` is one line for operators: the code, the caller's path, the message. The cause is in `source()` only.
/// * [`for_model`](Error::for_model) is short and says what to do; it speaks in virtual paths and never of the host.
/// * In JSON it is `{"code", "path", "message", "detail"}`, `message` being the model's; the cause never leaves the process.
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
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    path: Option<Box<str>>,
    message: Cow<'static, str>,
    model: Option<Box<str>>,
    detail: Option<ErrorDetail>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Bounds every message, whatever the arguments were: an error about a huge argument stays small.
const MAX_MESSAGE: usize = 1500;
const MAX_PATH_IN_MESSAGE: usize = 300;

impl Error {
    /// A failure of `kind`; `message` must not speak of host paths.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { kind, path: None, message: message.into(), model: None, detail: None, source: None }))
    }

    /// A failure of `kind` at `path` with the advice that belongs to the kind.
    pub fn at(kind: ErrorKind, path: &VfsPath) -> Self {
        Self::of(kind).with_path(path)
    }

    /// A failure of `kind` with the advice that belongs to the kind, not yet at a path.
    pub fn of(kind: ErrorKind) -> Self {
        Self::new(kind, kind.advice())
    }

    /// Nothing is at `path`.
    pub fn not_found(path: &VfsPath) -> Self {
        Self::at(ErrorKind::NotFound, path)
    }

    /// Something is at `path` already.
    pub fn already_exists(path: &VfsPath) -> Self {
        Self::at(ErrorKind::AlreadyExists, path)
    }

    /// An argument is out of its range; `message` says which and what it may be.
    pub fn invalid_argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// The file at `path` is not what the caller expected but `actual` (`None`: it is gone).
    pub fn conflict(path: &VfsPath, actual: Option<Version>) -> Self {
        let error = match actual {
            Some(_) => Self::of(ErrorKind::Conflict),
            None => Self::new(
                ErrorKind::Conflict,
                "there is no such file now; create it if it is to be there, or look where it has gone",
            ),
        };
        error.with_path(path).with_detail(ErrorDetail::Conflict { actual })
    }

    /// The same failure, at `path`.
    #[must_use]
    pub fn with_path(self, path: &VfsPath) -> Self {
        self.with_path_text(path.as_str())
    }

    /// The same failure, at `path` unless it names one already.
    #[must_use]
    pub fn or_path(self, path: &VfsPath) -> Self {
        if self.0.path.is_some() { self } else { self.with_path(path) }
    }

    /// The same failure, at a path that did not parse; only its first 4096 bytes are kept.
    #[must_use]
    pub fn with_path_text(mut self, path: &str) -> Self {
        self.0.path = Some(shorten(path, VfsPath::MAX_LEN).into());
        self
    }

    /// The same failure, with its path spelled `to` in place of `from` in every word.
    pub(crate) fn respell_path(mut self, from: &str, to: &str) -> Self {
        if let Some(model) = &self.0.model {
            self.0.model = Some(model.replace(&format!("'{from}'"), &format!("'{to}'")).into());
        }
        self.with_path_text(to)
    }

    /// The same failure with its own words for the model, instead of the code, path and message.
    #[must_use]
    pub fn with_model_message(mut self, message: impl Into<String>) -> Self {
        self.0.model = Some(shorten(&message.into(), MAX_MESSAGE).into());
        self
    }

    /// The same failure with the advice that belongs to its kind as the words for the model.
    ///
    /// Its own message is for operators alone: it may name a server, which the model can do nothing about.
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

    /// The same failure with what follows from it, after its message and after its words for the model.
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

    /// The same failure with what a program may want to know.
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail) -> Self {
        self.0.detail = Some(detail);
        self
    }

    /// The same failure, of a recursive delete that removed `files` files and links before it. Its path is the entry that
    /// could not be removed.
    ///
    /// ```
    /// use vfs_core::{Error, ErrorDetail, ErrorKind, VfsPath};
    ///
    /// let error = Error::at(ErrorKind::PermissionDenied, &VfsPath::parse("/d/kept")?).after_partial_delete(12);
    /// assert_eq!(error.detail(), Some(&ErrorDetail::PartialDelete { files: 12 }));
    /// assert!(error.for_model().contains("the delete is partial: 12 files are gone"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn after_partial_delete(self, files: u64) -> Self {
        let gone = if files == 1 { "1 file is gone".to_owned() } else { format!("{files} files are gone") };
        self.with_consequence(format_args!("the delete is partial: {gone}, and the rest is still there"))
            .with_detail(ErrorDetail::PartialDelete { files })
    }

    /// The same failure with its cause, for operators only.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The caller's path, in the caller's namespace, where the failure has one.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The message alone, without code and path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the kind knows beyond its message.
    pub fn detail(&self) -> Option<&ErrorDetail> {
        self.0.detail.as_ref()
    }

    /// Whether the same call may succeed later; see [`ErrorKind::is_temporary`].
    pub fn is_temporary(&self) -> bool {
        self.0.kind.is_temporary()
    }

    /// Whether it says that nothing is at a path; see [`ErrorKind::is_absence`].
    pub fn is_absence(&self) -> bool {
        self.0.kind.is_absence()
    }

    /// The failure in words for an agent: short, actionable, under 2 kB, in virtual paths only.
    pub fn for_model(&self) -> String {
        if let Some(model) = &self.0.model {
            return model.to_string();
        }
        let message = shorten(&self.0.message, MAX_MESSAGE);
        let Some(path) = self.path().map(|path| shorten(path, MAX_PATH_IN_MESSAGE)) else {
            return format!("Error: {message}");
        };
        match self.0.kind {
            // Two sentences that agents have been taught, unless somebody had something better to say.
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
        let Inner { kind, path, message, model: _, detail, source } = &*self.0;
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

/// Equal in all that crosses the wire; causes are not compared.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind == other.0.kind
            && self.0.path == other.0.path
            && self.for_model() == other.for_model()
            && self.0.detail == other.0.detail
    }
}

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

/// `text`, or its beginning and end where it is over `max` bytes.
pub(crate) fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(max * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - max / 4);
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
}

/// `text` with its line breaks and other control characters escaped.
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
    fn every_kind_has_its_own_code_and_json_agrees() {
        let mut codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_string(kind).expect("serialises"), format!("\"{}\"", kind.code()));
        }
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn display_is_one_line_and_leaves_the_cause_to_source() {
        let path = VfsPath::parse("/a\nb").expect("valid");
        let error = Error::at(ErrorKind::PermissionDenied, &path).with_source(std::io::Error::other("/host/secret"));
        assert_eq!(error.to_string(), "permission_denied: /a\\nb: permission denied");
        assert!(std::error::Error::source(&error).is_some());
        assert!(!error.for_model().contains("host"));
        assert!(!serde_json::to_string(&error).expect("serialises").contains("host"));
    }

    #[test]
    fn a_round_trip_through_json_keeps_what_matters() {
        let path = VfsPath::parse("/a").expect("valid");
        for error in [Error::already_exists(&path), Error::not_found(&path).after_partial_delete(1)] {
            let json = serde_json::to_string(&error).expect("serialises");
            let back: Error = serde_json::from_str(&json).expect("deserialises");
            assert_eq!(back, error);
        }
    }

    #[test]
    fn a_partial_delete_is_told_in_every_form() {
        let path = VfsPath::parse("/d/kept").expect("valid");
        let plain = Error::at(ErrorKind::PermissionDenied, &path);
        let consequence = "the delete is partial: 1 file is gone, and the rest is still there";
        for error in [plain.clone(), plain.with_model_message("Error: '/d/kept' stays")] {
            let error = error.after_partial_delete(1);
            assert!(
                error.to_string().starts_with("permission_denied: /d/kept: ")
                    && error.to_string().ends_with(consequence)
            );
            assert!(error.for_model().ends_with(consequence), "{error:?}");
            let json = serde_json::to_value(&error).expect("serialises");
            assert_eq!(json["detail"], serde_json::json!({ "partial_delete": { "files": 1 } }));
        }
    }
}
