//! Replacements in encoded text.

use std::borrow::Cow;

use super::replace::{self, EditStep};
use super::{Edited, check_size, too_large};
use crate::error::{Error, ErrorKind, Result};
use crate::requests::{Encoding, Replacement};
use crate::text::{self, SampleExtent, Sniffed};

/// The maximum number of UTF-8 bytes for one byte of another encoding.
const MAX_GROWTH: u64 = 3;

pub(super) fn apply(content: &[u8], replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    let edit = |encoding| match encoding {
        Encoding::Utf16Le | Encoding::Utf16Be => transcoded(content, encoding, replacements, max_size),
        Encoding::Legacy(legacy) if !legacy.is_single_byte() => transcoded(content, encoding, replacements, max_size),
        Encoding::Legacy(_) => in_place(content, encoding, replacements, max_size),
        Encoding::Utf8 | Encoding::Utf8Bom => in_place(content, Encoding::Utf8, replacements, max_size),
    };
    let guessed = match text::sniff(content, SampleExtent::Whole) {
        Sniffed::Text(encoding) => encoding,
        Sniffed::Binary => Encoding::Utf8,
    };
    let Encoding::Legacy(_) = guessed else { return edit(guessed) };
    // UTF-8 with an invalid byte is detected as a legacy encoding as a whole, but as UTF-8 in a window without that byte. Try
    // both, the likelier one first.
    let (likely, other) = if is_mostly_utf8(content) { (Encoding::Utf8, guessed) } else { (guessed, Encoding::Utf8) };
    edit(likely).or_else(|failure| match failure.kind() {
        ErrorKind::NoMatch | ErrorKind::NotText => edit(other).map_err(|_| failure),
        _ => Err(failure),
    })
}

/// Returns whether `content` has more UTF-8 characters beyond ASCII than invalid bytes.
fn is_mostly_utf8(content: &[u8]) -> bool {
    let (mut good, mut bad) = (0, 0);
    for chunk in content.utf8_chunks() {
        good += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        bad += chunk.invalid().len();
    }
    good > bad
}

/// Replaces bytes by bytes, in an encoding with one form of each character.
fn in_place(content: &[u8], encoding: Encoding, replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    let mut content = Cow::Borrowed(content);
    let mut occurrences = 0;
    for (index, replacement) in replacements.iter().enumerate() {
        let encode = |text| match encoding {
            Encoding::Utf8 => Some(Cow::Borrowed(str::as_bytes(text))),
            _ => text::encode(text, encoding).map(Cow::Owned),
        };
        let new = encode(&replacement.new);
        // Report a missing old text first, as another encoding is tried then.
        let is_mappable = new.is_some();
        let step = EditStep {
            replacement,
            index,
            of: replacements.len(),
            encoding,
            // Text that the encoding lacks does not occur in the file.
            old: encode(&replacement.old),
            new: new.unwrap_or_default(),
        };
        let (edited, count) = replace::apply_step(&content, &step, max_size)?;
        if !is_mappable {
            return Err(unmappable(encoding));
        }
        content = Cow::Owned(edited);
        occurrences += count;
    }
    Ok(Edited { content: content.into_owned(), occurrences })
}

/// Replaces in the decoded text, if encoding it again reproduces the same bytes.
fn transcoded(content: &[u8], encoding: Encoding, replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    let not_text = || {
        Error::new(
            ErrorKind::NotText,
            format!("the file does not survive a round trip through {encoding}; download it and edit its bytes"),
        )
    };
    let decoded = text::decode(content, encoding).ok_or_else(not_text)?;
    if text::encode(&decoded, encoding).as_deref() != Some(content) {
        return Err(not_text());
    }
    let edited = in_place(decoded.as_bytes(), Encoding::Utf8, replacements, max_size.saturating_mul(MAX_GROWTH))
        .map_err(|error| if error.kind() == ErrorKind::TooLarge { too_large(max_size) } else { error })?;
    let edited_text = String::from_utf8(edited.content).map_err(|_| not_text())?;
    let content = text::encode(&edited_text, encoding).ok_or_else(|| unmappable(encoding))?;
    check_size(content.len() as u64, max_size)?;
    Ok(Edited { content, occurrences: edited.occurrences })
}

fn unmappable(encoding: Encoding) -> Error {
    Error::invalid_argument(format!(
        "the new text has a character that {encoding}, the encoding of the file, lacks; use other characters"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_with_a_bad_byte_is_edited_by_either_spelling_and_stays_utf8() {
        let content = b"h\xc3\xa9llo w\xc3\xb6rld\nok line\nbad \xff\n";
        for (old, new, expected) in [
            ("h\u{e9}llo", "hallo", &b"hallo w\xc3\xb6rld\nok line\nbad \xff\n"[..]),
            ("ok line", "\u{e9} line", b"h\xc3\xa9llo w\xc3\xb6rld\n\xc3\xa9 line\nbad \xff\n"),
        ] {
            let edited = apply(content, &[Replacement::new(old, new)], 1 << 20).expect(old);
            assert_eq!(edited.content, expected, "{old}");
        }
        let shown = text::decode(
            content,
            match text::sniff(content, SampleExtent::Whole) {
                Sniffed::Text(encoding) => encoding,
                Sniffed::Binary => panic!("it is text"),
            },
        );
        let first_word = shown.expect("it decodes").split(' ').next().expect("it has words").to_owned();
        let edited =
            apply(content, &[Replacement::new(first_word, "hallo")], 1 << 20).expect("what a read shows is found");
        assert!(edited.content.starts_with(b"hallo w"));
    }

    #[test]
    fn a_legacy_file_stays_in_its_encoding() {
        let content = b"caf\xe9 cr\xe8me br\xfbl\xe9e, d\xe9j\xe0 vu\n";
        for (old, kind) in [
            ("vu", ErrorKind::InvalidArgument),
            ("caf\u{e9}", ErrorKind::InvalidArgument),
            ("\u{4e2d}", ErrorKind::NoMatch),
        ] {
            let error = apply(content, &[Replacement::new(old, "\u{4e2d}\u{56fd}")], 1 << 20)
                .expect_err("the encoding lacks the characters");
            assert_eq!(error.kind(), kind, "{old}: {error}");
        }
        let edited = apply(content, &[Replacement::new("vu", "\u{e9}t\u{e9}")], 1 << 20).expect("it is found");
        assert_eq!(edited.content, b"caf\xe9 cr\xe8me br\xfbl\xe9e, d\xe9j\xe0 \xe9t\xe9\n");
    }
}
