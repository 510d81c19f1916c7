//! The text of a found line.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::str::Utf8Error;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Serialize};

/// The text of a found line: a `str` that is cheap to make and to clone.
///
/// # Behaviour
///
/// The lines of a search share memory, some kilobytes of it: whoever keeps one line keeps as much. `to_string` makes a text
/// of its own. It is written as a string.
///
/// ```
/// use vfs_core::LineText;
///
/// let text = LineText::from("let it = 1;");
/// assert_eq!(text, "let it = 1;");
/// assert!(text.starts_with("let"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineText(ByteString);

impl LineText {
    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Leaves the first `length` bytes of it, or up to three fewer where a character would be cut.
    pub fn truncate(&mut self, length: usize) {
        let first = &self.0[..self.0.floor_char_boundary(length)];
        self.0 = self.0.slice_ref(first);
    }
}

impl Deref for LineText {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for LineText {
    #[inline]
    fn as_ref(&self) -> &str {
        self
    }
}

impl From<&str> for LineText {
    #[inline]
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for LineText {
    #[inline]
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&String> for LineText {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Cow<'_, str>> for LineText {
    fn from(text: Cow<'_, str>) -> Self {
        text.into_owned().into()
    }
}

impl From<Box<str>> for LineText {
    fn from(text: Box<str>) -> Self {
        text.into_string().into()
    }
}

/// A text of its own, which keeps no other in memory.
impl From<LineText> for String {
    fn from(text: LineText) -> Self {
        text.as_str().to_owned()
    }
}

impl Borrow<str> for LineText {
    fn borrow(&self) -> &str {
        self
    }
}

/// In the same memory; an error where it is not UTF-8.
impl TryFrom<Bytes> for LineText {
    type Error = Utf8Error;

    #[inline]
    fn try_from(text: Bytes) -> Result<Self, Utf8Error> {
        text.try_into().map(Self)
    }
}

impl PartialEq<str> for LineText {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for LineText {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<String> for LineText {
    fn eq(&self, other: &String) -> bool {
        **self == **other
    }
}

impl PartialEq<LineText> for str {
    fn eq(&self, other: &LineText) -> bool {
        *self == **other
    }
}

impl PartialEq<LineText> for &str {
    fn eq(&self, other: &LineText) -> bool {
        **self == **other
    }
}

impl PartialEq<LineText> for String {
    fn eq(&self, other: &LineText) -> bool {
        **self == **other
    }
}

impl fmt::Display for LineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for LineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_keeps_what_shares_its_memory() {
        for (text, length, expected) in [
            ("abc", 5, "abc"),
            ("abc", 3, "abc"),
            ("abc", 1, "a"),
            ("abc", 0, ""),
            ("", 0, ""),
            ("aé", 2, "a"),
            ("😀", 3, ""),
        ] {
            let whole = LineText::from(text);
            let mut cut = whole.clone();
            cut.truncate(length);
            assert_eq!((cut.as_str(), whole.as_str()), (expected, text), "{length}");
        }
    }

    #[test]
    fn a_string_of_it_is_no_longer_than_the_text() {
        let shared = Bytes::from(vec![b'x'; 8192]);
        let text = LineText::try_from(shared.slice(0..20)).expect("it is UTF-8");
        drop(shared);
        assert!(String::from(text).capacity() < 100);
    }

    #[test]
    fn lists_of_it_are_joined_as_lists_of_strings_are() {
        let texts = ["a", "b"].map(LineText::from);
        assert_eq!(texts.join("\n"), "a\nb");
    }

    #[test]
    fn it_is_written_as_a_string_and_is_utf_8() {
        let text = LineText::from("a \"é\"");
        let json = serde_json::to_string(&text).expect("it is written");
        assert_eq!(json, r#""a \"é\"""#);
        assert_eq!(serde_json::from_str::<LineText>(&json).expect("it is read"), text);
        LineText::try_from(Bytes::from_static(b"a\xff")).expect_err("it is not UTF-8");
    }
}
