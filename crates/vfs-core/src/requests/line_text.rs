//! Line text with shared memory.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::str::Utf8Error;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Serialize};

/// The text of a matching line: a string that is cheap to create and to clone.
///
/// # Behaviour
///
/// Lines of one search share blocks of memory of some kilobytes, each of which is freed with its last line. `to_string` returns an
/// independent copy. The JSON form is a string.
///
/// ```
/// use vfs_core::search::LineText;
///
/// let text = LineText::from("let x = 1;");
/// assert_eq!(text, "let x = 1;");
/// assert!(text.starts_with("let"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineText(ByteString);

impl LineText {
    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Shortens the text to at most `length` bytes, at the end of a character.
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

/// Copies the text, so that it shares no memory.
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

/// Shares the memory of `text`; fails unless it is UTF-8.
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
    fn truncation_respects_characters_and_shared_memory() {
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
    fn a_string_has_no_spare_capacity() {
        let shared = Bytes::from(vec![b'x'; 8192]);
        let text = LineText::try_from(shared.slice(0..20)).expect("it is UTF-8");
        drop(shared);
        assert!(String::from(text).capacity() < 100);
    }

    #[test]
    fn lists_of_lines_join_like_strings() {
        let texts = ["a", "b"].map(LineText::from);
        assert_eq!(texts.join("\n"), "a\nb");
    }

    #[test]
    fn the_json_form_is_a_string_and_bytes_must_be_utf8() {
        let text = LineText::from("a \"é\"");
        let json = serde_json::to_string(&text).expect("it is written");
        assert_eq!(json, r#""a \"é\"""#);
        assert_eq!(serde_json::from_str::<LineText>(&json).expect("it is read"), text);
        LineText::try_from(Bytes::from_static(b"a\xff")).expect_err("it is not UTF-8");
    }
}
