//! Bytes as text, as they arrive.

use std::str;

/// Turns the bytes of one stream into text, piece by piece.
///
/// # Behaviour
/// A character that is split between two pieces is kept whole; what is not UTF-8 becomes U+FFFD. All texts together are what
/// [`String::from_utf8_lossy`] makes of all the bytes.
///
/// ```
/// use vfs_core::output::Decoder;
///
/// let mut decoder = Decoder::default();
/// assert_eq!(decoder.decode(b"caf\xc3"), "caf");
/// assert_eq!(decoder.decode(b"\xa9 \xff"), "é \u{fffd}");
/// assert_eq!(decoder.finish(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// The beginning of a character whose rest has not arrived.
    begun: Vec<u8>,
}

impl Decoder {
    /// The text that is known with these bytes.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            joined = [&self.begun, bytes].concat();
            self.begun.clear();
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
                    self.begun.extend_from_slice(invalid);
                    break;
                }
            }
        }
        text
    }

    /// What is left when nothing more arrives.
    pub fn finish(&mut self) -> String {
        let left = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun.clear();
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
                let mut decoder = Decoder::default();
                let mut text: String = bytes.chunks(size).map(|piece| decoder.decode(piece)).collect();
                text.push_str(&decoder.finish());
                assert_eq!(text, expected, "in pieces of {size}");
            }
        }
    }
}
