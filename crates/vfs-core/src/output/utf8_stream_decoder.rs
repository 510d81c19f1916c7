//! Incremental lossy UTF-8 decoder.

use std::str;

/// An incremental decoder of UTF-8 that replaces invalid bytes.
///
/// # Behaviour
///
/// A character that is split between two chunks is decoded whole; invalid bytes become U+FFFD. The concatenated texts equal
/// [`String::from_utf8_lossy`] of all bytes.
///
/// ```
/// use vfs_core::output::Utf8StreamDecoder;
///
/// let mut decoder = Utf8StreamDecoder::default();
/// assert_eq!(decoder.decode(b"caf\xc3"), "caf");
/// assert_eq!(decoder.decode(b"\xa9 \xff"), "é \u{fffd}");
/// assert_eq!(decoder.finish(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Utf8StreamDecoder {
    /// The first bytes of an incomplete character.
    incomplete: Vec<u8>,
}

impl Utf8StreamDecoder {
    /// Decodes the next chunk and returns its complete characters.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = bytes;
        if !self.incomplete.is_empty() {
            joined = [&self.incomplete, bytes].concat();
            self.incomplete.clear();
            rest = &joined;
        }
        let mut text = String::with_capacity(rest.len());
        while !rest.is_empty() {
            let error = match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    break;
                }
                Err(error) => error,
            };
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            match error.error_len() {
                Some(length) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = invalid.get(length..).unwrap_or_default();
                }
                None => {
                    self.incomplete.extend_from_slice(invalid);
                    break;
                }
            }
        }
        text
    }

    /// Returns the text of an incomplete last character, U+FFFD or empty, at the end of the stream.
    pub fn finish(&mut self) -> String {
        let left = String::from_utf8_lossy(&self.incomplete).into_owned();
        self.incomplete.clear();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_however_it_is_cut() {
        for bytes in [
            "plain, größer, 漢字, 🦀".as_bytes(),
            b"a\xffb\xc3(\xf0\x9f\xa6",
            b"\xe2\x82\xe2\x82\xac",
            b"\xf0\x9f\xf0\x9f\xa6\x80\x80",
            b"",
        ] {
            let expected = String::from_utf8_lossy(bytes);
            for size in 1..=bytes.len().max(1) {
                let mut decoder = Utf8StreamDecoder::default();
                let mut text: String = bytes.chunks(size).map(|piece| decoder.decode(piece)).collect();
                text.push_str(&decoder.finish());
                assert_eq!(text, expected, "in pieces of {size}");
            }
        }
    }
}
