//! Secret strings with redacted `Debug` output.

use std::fmt;

/// A word that `Debug` does not show.
///
/// ```
/// use vfs_remote::http::Secret;
///
/// assert_eq!(format!("{:?}", Secret::from("hunter2")), "Secret(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The word itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(word: String) -> Self {
        Self(word)
    }
}

impl From<&str> for Secret {
    fn from(word: &str) -> Self {
        Self(word.to_owned())
    }
}
