//! Validated absolute paths.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrayvec::ArrayString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::path_mapping::{MapResultPaths, PathMapping};

use crate::error::{Error, ErrorDetail, ErrorKind, PathFault, Result};

/// A valid absolute path in the namespace of a backend.
///
/// Invariants of every value:
///
/// * The path starts with `/`, and ends with `/` only if it is the root.
/// * The path is UTF-8 with the separator `/`, and has no empty component, no `.` and no `..`.
/// * The path contains no NUL.
/// * A component has at most [`VfsPath::MAX_COMPONENT`] bytes, and the path at most [`VfsPath::MAX_LEN`].
/// * The path is not normalised further: neither Unicode nor case is folded.
/// * [`VfsPath::parse`] of [`VfsPath::as_str`] returns the same path, so that a path can be stored as its text.
///
/// Cloning is cheap: the text is shared.
///
/// ```
/// use vfs_core::VfsPath;
///
/// let path = VfsPath::parse("src//./main.rs/")?;
/// assert_eq!(path.as_str(), "/src/main.rs");
/// assert_eq!(VfsPath::parse(path.as_str())?, path);
/// assert_eq!(path.name(), Some("main.rs"));
/// assert!(VfsPath::parse("/src/../etc/passwd").is_err());
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VfsPath(Arc<str>);

impl VfsPath {
    /// The maximum size of a component in bytes.
    pub const MAX_COMPONENT: usize = 255;

    /// The maximum size of a path in bytes, with its leading `/`.
    pub const MAX_LEN: usize = 4096;

    /// Returns the root, `/`.
    pub fn root() -> Self {
        static ROOT: LazyLock<VfsPath> = LazyLock::new(|| VfsPath(Arc::from("/")));
        ROOT.clone()
    }

    /// Parses and normalises a path.
    ///
    /// # Behaviour
    ///
    /// * A missing leading `/` is added; `//`, `.` and a trailing `/` are removed.
    /// * All other characters have no special meaning: spaces, newlines, `\`, `:`, `*`, emoji.
    ///
    /// # Errors
    ///
    /// `invalid_path`, with a [`PathFault`] and a message that says what to write instead, for a `..` component, a NUL, a leading
    /// `~`, a Windows drive or UNC prefix, a component over 255 bytes, or a path over 4096 bytes.
    pub fn parse(text: &str) -> Result<Self> {
        let normalised = normalise(text).map_err(|fault| {
            let shown = crate::error::shorten(text, 200);
            fault.error().with_path_text(text).with_model_message(format!("Error: Invalid path '{shown}': {fault}"))
        })?;
        Ok(Self(Arc::from(normalised)))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path without its leading `/`, which is empty for the root.
    pub fn relative(&self) -> &str {
        &self.0[1..]
    }

    /// Returns whether the path is the root.
    pub fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns the last component, or `None` for the root.
    pub fn name(&self) -> Option<&str> {
        if self.is_root() { None } else { self.0.rsplit('/').next() }
    }

    /// Returns the parent directory, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        match self.0.rfind('/') {
            Some(0) | None => Some(Self::root()),
            Some(at) => Some(Self(Arc::from(&self.0[..at]))),
        }
    }

    /// Returns the components, from the root down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.relative().split('/').filter(|component| !component.is_empty())
    }

    /// Returns this path joined with the relative path `relative`.
    ///
    /// # Errors
    ///
    /// Those of [`VfsPath::parse`] for the joined path.
    pub fn join(&self, relative: &str) -> Result<Self> {
        if relative.is_empty() {
            return Ok(self.clone());
        }
        Self::parse(&format!("{}/{relative}", self.0)).map_err(|error| error.with_path_text(relative))
    }

    /// Returns the path of the entry `name` in this directory, for names from a listing.
    ///
    /// # Errors
    ///
    /// `invalid_path` if `name` is not one component, or the joined path exceeds a limit.
    pub fn child(&self, name: &str) -> Result<Self> {
        let fault = if let Some(fault) = fault_of_component(name) {
            Some(fault)
        } else if name.is_empty() || name == "." || name.contains(['/', '\0']) {
            Some(PathFault::NotOneName)
        } else if self.0.len() + 1 + name.len() > Self::MAX_LEN {
            Some(PathFault::LongPath)
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(fault.error().with_path_text(&format!("{}/{name}", self.0)));
        }
        // Join on the stack: every entry of every listing needs a path.
        let mut joined = ArrayString::<{ Self::MAX_LEN }>::new();
        if !self.is_root() {
            joined.push_str(&self.0);
        }
        joined.push('/');
        joined.push_str(name);
        Ok(Self(Arc::from(joined.as_str())))
    }

    /// Returns whether this path is `ancestor` or lies below it.
    pub fn starts_with(&self, ancestor: &VfsPath) -> bool {
        self.strip_prefix(ancestor).is_some()
    }

    /// Returns the part below `ancestor` without a leading `/`, or `None` if this path is not below it.
    ///
    /// The part is empty if both paths are equal.
    pub fn strip_prefix(&self, ancestor: &VfsPath) -> Option<&str> {
        if ancestor.is_root() {
            return Some(self.relative());
        }
        let rest = self.0.strip_prefix(&*ancestor.0)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }
}

/// Validates and normalises `text`.
fn normalise(text: &str) -> Result<String, PathFault> {
    if memchr::memchr(0, text.as_bytes()).is_some() {
        return Err(PathFault::Nul);
    }
    if text.starts_with('~') {
        return Err(PathFault::HomeDirectory);
    }
    let bytes = text.as_bytes();
    if bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'/' | b'\\'))
    {
        return Err(PathFault::DriveLetter);
    }
    if text.starts_with("\\\\") {
        return Err(PathFault::Unc);
    }
    let mut folded = String::with_capacity(text.len().min(VfsPath::MAX_LEN) + 1);
    for component in text.split('/') {
        if component.is_empty() || component == "." {
            continue;
        }
        if let Some(fault) = fault_of_component(component) {
            return Err(fault);
        }
        if folded.len() + 1 + component.len() > VfsPath::MAX_LEN {
            return Err(PathFault::LongPath);
        }
        folded.push('/');
        folded.push_str(component);
    }
    if folded.is_empty() {
        folded.push('/');
    }
    Ok(folded)
}

impl fmt::Display for VfsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for VfsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Default for VfsPath {
    fn default() -> Self {
        Self::root()
    }
}

impl AsRef<str> for VfsPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

// `Eq`, `Ord` and `Hash` are those of the text, so that a map with `VfsPath` keys can be queried by `&str`.
impl Borrow<str> for VfsPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for VfsPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for VfsPath {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl TryFrom<String> for VfsPath {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl Serialize for VfsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VfsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| serde::de::Error::custom(format_args!("{error}")))
    }
}

/// Returns the fault of one component that is not empty.
fn fault_of_component(component: &str) -> Option<PathFault> {
    if component == ".." {
        Some(PathFault::ParentComponent)
    } else if component.len() > VfsPath::MAX_COMPONENT {
        Some(PathFault::LongName)
    } else {
        None
    }
}

impl PathFault {
    /// Returns the error for this fault, `invalid_path`, without a path.
    ///
    /// ```
    /// use vfs_core::error::{ErrorDetail, PathFault};
    /// use vfs_core::ErrorKind;
    ///
    /// let error = PathFault::LinkLoop.error();
    /// assert_eq!(error.kind(), ErrorKind::InvalidPath);
    /// assert_eq!(error.detail(), Some(&ErrorDetail::InvalidPath { fault: PathFault::LinkLoop }));
    /// ```
    pub fn error(self) -> Error {
        Error::new(ErrorKind::InvalidPath, self.advice()).with_detail(ErrorDetail::InvalidPath { fault: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorDetail, ErrorKind};

    #[test]
    fn paths_are_normalised() {
        for (input, expected) in [
            ("", "/"),
            (".", "/"),
            ("/", "/"),
            ("////", "/"),
            ("a", "/a"),
            ("/a/", "/a"),
            ("//a/./b//", "/a/b"),
            ("a..b", "/a..b"),
            ("/...", "/..."),
            ("/..hidden", "/..hidden"),
            ("foo..", "/foo.."),
            ("app/[...slug]/page.tsx", "/app/[...slug]/page.tsx"),
            ("/d/~x", "/d/~x"),
            ("/-rf", "/-rf"),
            ("/a\\b", "/a\\b"),
            ("..\\x", "/..\\x"),
            ("/a\\..\\b", "/a\\..\\b"),
            ("/new\nline", "/new\nline"),
            ("a:b", "/a:b"),
            ("/C:/x", "/C:/x"),
            ("%2e%2e/x", "/%2e%2e/x"),
        ] {
            assert_eq!(VfsPath::parse(input).map(|p| p.to_string()).as_deref().ok(), Some(expected), "{input:?}");
        }
    }

    #[test]
    fn hostile_paths_are_refused_with_advice() {
        let long_name = "x".repeat(256);
        let long_path = "/abc".repeat(1025);
        let huge = "a/".repeat(500_000);
        for (input, fault) in [
            ("..", PathFault::ParentComponent),
            ("/..", PathFault::ParentComponent),
            ("/a/../b", PathFault::ParentComponent),
            ("../x", PathFault::ParentComponent),
            ("a/..", PathFault::ParentComponent),
            ("~", PathFault::HomeDirectory),
            ("~root/x", PathFault::HomeDirectory),
            ("C:\\x", PathFault::DriveLetter),
            ("c:/x", PathFault::DriveLetter),
            ("C:", PathFault::DriveLetter),
            ("\\\\server\\share", PathFault::Unc),
            ("/a\0b", PathFault::Nul),
            (&long_name, PathFault::LongName),
            (&long_path, PathFault::LongPath),
            (&huge, PathFault::LongPath),
        ] {
            let error = VfsPath::parse(input).expect_err(input);
            assert_eq!(error.kind(), ErrorKind::InvalidPath);
            assert_eq!(error.detail(), Some(&ErrorDetail::InvalidPath { fault }), "{input:.100}");
            assert!(error.to_string().len() < 2048 && error.for_model().len() < 2048);
        }
    }

    #[test]
    fn limits_are_inclusive() {
        assert!(VfsPath::parse(&"x".repeat(255)).is_ok());
        let longest = format!("/{}", vec!["a".repeat(255); 16].join("/"));
        assert_eq!(longest.len(), 4096);
        let longest = VfsPath::parse(&longest).expect("4096 bytes are allowed");
        assert!(longest.child("b").is_err());
    }

    #[test]
    fn prefixes_are_whole_segments() {
        let mount = VfsPath::parse("/memories").expect("valid");
        for (path, expected) in [
            ("/memories", Some("")),
            ("/memories/a/b", Some("a/b")),
            ("/memoriesx", None),
            ("/", None),
            ("/a/memories", None),
        ] {
            assert_eq!(VfsPath::parse(path).expect("valid").strip_prefix(&mount), expected, "{path}");
        }
    }

    #[test]
    fn parents_and_names() {
        let path = VfsPath::parse("/a/b").expect("valid");
        assert_eq!(path.name(), Some("b"));
        assert_eq!(path.parent().map(|p| p.to_string()).as_deref(), Some("/a"));
        assert_eq!(path.components().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(VfsPath::root().parent(), None);
        assert_eq!(VfsPath::root().components().count(), 0);
        assert!(VfsPath::root().child("..").is_err());
    }
}
