//! Version of the content of a file.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An opaque version of a file's content: equal versions mean equal content.
///
/// Versions are preconditions of conditional writes. A version is valid only for the backend that issued it. Those of this library's
/// backends consist of visible ASCII characters without quotation marks, so that they can be an entity tag of HTTP, except that the
/// versions of a bucket are the tags of its service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(Arc<str>);

impl Version {
    /// Creates a version from the text of a backend.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the version.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
