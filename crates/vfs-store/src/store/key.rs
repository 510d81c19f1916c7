//! Keys of values: a namespace and a path.

use std::fmt;
use std::sync::Arc;

use vfs_core::{Error, Result, VfsPath};

/// Maximum length of a namespace in bytes.
const MAX_BYTES: usize = 512;
/// Maximum length of a component in bytes.
const MAX_COMPONENT_BYTES: usize = 128;

/// Namespace of files: components such as `org/user/assistant`, or none.
///
/// # Behaviour
///
/// * Namespaces are disjoint, also if the name of one is a prefix of another.
/// * A component has 1 to 128 of the characters `A-Z a-z 0-9 - _ . @ + : ~`, and is neither `.` nor `..`. Components separated by `/`
///   have at most 512 bytes.
///
/// ```
/// use vfs_store::Namespace;
///
/// let namespace = Namespace::parse("acme/ann@example.org/researcher")?;
/// assert_eq!(namespace.components().count(), 3);
/// assert!(Namespace::parse("acme//researcher").is_err());
/// assert_eq!(Namespace::default().to_string(), "");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// Parses components separated by `/`; the empty text is the namespace without components.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an invalid namespace.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |reason: String| Err(Error::invalid_argument(format!("the namespace {text:.100?} {reason}")));
        if text.len() > MAX_BYTES {
            return refuse(format!("has over {MAX_BYTES} bytes"));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.@+:~".contains(c);
        for component in text.split('/').filter(|_| !text.is_empty()) {
            if component.is_empty() {
                return refuse("has an empty component; write it as 'org/user'".to_owned());
            }
            if component.len() > MAX_COMPONENT_BYTES {
                return refuse(format!("has a component of over {MAX_COMPONENT_BYTES} bytes"));
            }
            if component == "." || component == ".." {
                return refuse(format!("has a component {component:?}; leave it out"));
            }
            if let Some(wrong) = component.chars().find(|c| !is_allowed(*c)) {
                return refuse(format!("has a {wrong:?}; a component is made of letters, digits and '-_.@+:~'"));
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the components separated by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the components, outermost first.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }
}

/// The namespace without components.
impl Default for Namespace {
    fn default() -> Self {
        Self("".into())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Namespace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Key of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Namespace of the value.
    pub namespace: Namespace,
    /// Path of the value; never the root.
    pub path: VfsPath,
}

impl Key {
    /// Returns the key of `path` in `namespace`.
    pub fn new(namespace: Namespace, path: VfsPath) -> Self {
        Self { namespace, path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_few_plain_components() {
        let long = "x".repeat(129);
        let many = vec!["abc"; 200].join("/");
        for (text, is_right) in [
            ("", true),
            ("org", true),
            ("org/user/assistant", true),
            ("a.b-c_d@e+f:g~h/...", true),
            ("/org", false),
            ("org/", false),
            ("org//user", false),
            (".", false),
            ("org/..", false),
            ("org/a b", false),
            ("org/=", false),
            ("org/%", false),
            ("org/ü", false),
            ("org\0", false),
            (&long, false),
            (&many, false),
        ] {
            assert_eq!(Namespace::parse(text).is_ok(), is_right, "{text}");
        }
    }
}
