//! Edits of text in its own encoding.

use std::borrow::Cow;

use super::replace::{self, Step};
use super::{Edited, check_size, too_large};
use crate::error::{Error, ErrorKind, Result};
use crate::text::{self, Extent, Sniffed};
use crate::types::{Encoding, Replacement};

/// How many bytes of UTF-8 one byte of another encoding can become.
const MOST_GROWTH: u64 = 3;

pub(super) fn apply(content: &[u8], replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    match text::sniff(content, Extent::Whole) {
        Sniffed::Text(encoding @ (Encoding::Utf16Le | Encoding::Utf16Be)) => {
            transcoded(content, encoding, replacements, max_size)
        }
        Sniffed::Text(encoding @ Encoding::Legacy(legacy)) if !legacy.is_single_byte() => {
            transcoded(content, encoding, replacements, max_size)
        }
        Sniffed::Text(encoding @ Encoding::Legacy(_)) => in_place(content, encoding, replacements, max_size),
        Sniffed::Text(Encoding::Utf8 | Encoding::Utf8Bom) | Sniffed::Binary => {
            in_place(content, Encoding::Utf8, replacements, max_size)
        }
    }
}

/// Replaces bytes by bytes, where every character has one spelling only.
fn in_place(content: &[u8], encoding: Encoding, replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    let mut content = Cow::Borrowed(content);
    let mut occurrences = 0;
    for (index, replacement) in replacements.iter().enumerate() {
        let spelled = |text| match encoding {
            Encoding::Utf8 => Some(Cow::Borrowed(str::as_bytes(text))),
            _ => text::encode(text, encoding).map(Cow::Owned),
        };
        let step = Step {
            replacement,
            index,
            of: replacements.len(),
            encoding,
            // What the encoding cannot spell is not in the file.
            old: spelled(&replacement.old),
            new: spelled(&replacement.new).ok_or_else(|| unmappable(encoding))?,
        };
        let (edited, count) = replace::step(&content, &step, max_size)?;
        content = Cow::Owned(edited);
        occurrences += count;
    }
    Ok(Edited { content: content.into_owned(), occurrences })
}

/// Replaces in the decoded text, where encoding it again gives the same bytes.
fn transcoded(content: &[u8], encoding: Encoding, replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    let not_text = || Error::new(ErrorKind::NotText, format!("its bytes do not survive a change as {encoding} text"));
    let decoded = text::decode(content, encoding).ok_or_else(not_text)?;
    if text::encode(&decoded, encoding).as_deref() != Some(content) {
        return Err(not_text());
    }
    let edited = in_place(decoded.as_bytes(), Encoding::Utf8, replacements, max_size.saturating_mul(MOST_GROWTH))
        .map_err(|error| if error.kind() == ErrorKind::TooLarge { too_large(max_size) } else { error })?;
    let edited_text = String::from_utf8(edited.content).map_err(|_| not_text())?;
    let content = text::encode(&edited_text, encoding).ok_or_else(|| unmappable(encoding))?;
    check_size(content.len() as u64, max_size)?;
    Ok(Edited { content, occurrences: edited.occurrences })
}

fn unmappable(encoding: Encoding) -> Error {
    Error::invalid_argument(format!("the new text has a character that the file's encoding, {encoding}, has not"))
}
