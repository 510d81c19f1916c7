//! A single replacement in bytes.

use std::borrow::Cow;

use memchr::memmem;

use super::line_endings::{self, LfNormalizedText, LineEndingAdaptiveText};
use super::{check_size, occurrence_lines, replacement_errors};
use crate::error::Result;
use crate::fallible_alloc;
use crate::requests::{Encoding, LineEnding, NewLineEndings, Replacement, ReplacementScope};
use crate::text;

/// A replacement of a list in the encoding of the file.
pub(super) struct EditStep<'a> {
    /// The replacement of the request.
    pub(super) replacement: &'a Replacement,
    /// The index in the list, from 0.
    pub(super) index: usize,
    /// The number of replacements in the list.
    pub(super) of: usize,
    /// The encoding of the file.
    pub(super) encoding: Encoding,
    /// The bytes to replace; `None` if the encoding lacks a character.
    pub(super) old: Option<Cow<'a, [u8]>>,
    /// The new bytes.
    pub(super) new: Cow<'a, [u8]>,
}

impl EditStep<'_> {
    fn is_exact(&self) -> bool {
        self.replacement.line_endings == NewLineEndings::Exact
    }
}

/// Applies one replacement, and returns the content and the number of replaced occurrences.
pub(super) fn apply_step(content: &[u8], step: &EditStep<'_>, max_size: u64) -> Result<(Vec<u8>, u64)> {
    let Some(old) = step.old.as_deref() else {
        return Err(replacement_errors::no_match(content, step));
    };
    if step.is_exact() {
        return replace_occurrences(content, old, step, max_size);
    }
    let ending = if memchr::memchr(b'\n', &step.new).is_some() { text::line_ending(content) } else { LineEnding::None };
    let new = match ending {
        LineEnding::Lf => LfNormalizedText::new(&step.new)?.into_text(),
        LineEnding::Crlf => line_endings::to_crlf(&step.new)?,
        LineEnding::None | LineEnding::Mixed => return replace_occurrences(content, old, step, max_size),
    };
    let made = replace_occurrences(content, old, &EditStep { old: Some(Cow::Borrowed(old)), new, ..*step }, max_size)?;
    let is_same =
        || -> Result<bool> { Ok(LfNormalizedText::new(old)?.text() == LfNormalizedText::new(&step.new)?.text()) };
    if step.replacement.old != step.replacement.new && is_same()? {
        return Err(replacement_errors::same_but_for_line_endings());
    }
    Ok(made)
}

/// Replaces `old` by the new text of `step`, whose line endings are already those of the file if it has one kind.
fn replace_occurrences(content: &[u8], old: &[u8], step: &EditStep<'_>, max_size: u64) -> Result<(Vec<u8>, u64)> {
    if let Some([old, new]) = in_line_feeds(content, old, step)? {
        return replace_lines(content, &old, &EditStep { old: None, new, ..*step }, max_size);
    }
    match in_bytes(content, old, &step.new)? {
        Some(old) => replace_bytes(content, &old, step, max_size),
        None => replace_lines(content, old, step, max_size),
    }
}

/// Returns the bytes with which [`replace_bytes`] makes the same change as [`replace_lines`] does with `old`, without a copy of
/// the file; `None` if the file has mixed line endings and `old` or `new` contains a line break.
fn in_bytes<'t>(content: &[u8], old: &'t [u8], new: &[u8]) -> Result<Option<Cow<'t, [u8]>>> {
    let has = |text, byte| memchr::memchr(byte, text).is_some();
    if has(old, b'\r') || !(has(old, b'\n') || has(new, b'\n')) {
        return Ok(Some(Cow::Borrowed(old)));
    }
    Ok(match text::line_ending(content) {
        LineEnding::None | LineEnding::Lf => Some(Cow::Borrowed(old)),
        LineEnding::Crlf => Some(line_endings::to_crlf(old)?),
        LineEnding::Mixed => None,
    })
}

/// Returns `old` and the new text with every `\r\n` as `\n`, if `old` occurs only in this form and the text would change. New text
/// with exact line endings is unchanged.
fn in_line_feeds<'t>(content: &[u8], old: &'t [u8], step: &'t EditStep<'_>) -> Result<Option<[Cow<'t, [u8]>; 2]>> {
    if memmem::find(old, b"\r\n").is_none() || memmem::find(content, old).is_some() {
        return Ok(None);
    }
    let (old, new) = (LfNormalizedText::new(old)?.into_text(), LfNormalizedText::new(&step.new)?.into_text());
    let is_there = old != new && memmem::find(LfNormalizedText::new(content)?.text(), &old).is_some();
    let new = if step.is_exact() { Cow::Borrowed(&*step.new) } else { new };
    Ok(is_there.then_some([old, new]))
}

/// Replaces byte for byte.
fn replace_bytes(content: &[u8], old: &[u8], step: &EditStep<'_>, max_size: u64) -> Result<(Vec<u8>, u64)> {
    check_places(content, old, step)?;
    let finder = memmem::Finder::new(old);
    let count = finder.find_iter(content).count() as u64;
    let unchanged = content.len() as u64 - count * old.len() as u64;
    let size = unchanged.saturating_add(count.saturating_mul(step.new.len() as u64));
    check_size(size, max_size)?;
    let mut edited = fallible_alloc::with_capacity(usize::try_from(size).unwrap_or(usize::MAX))?;
    let mut copied = 0;
    for at in finder.find_iter(content) {
        edited.extend_from_slice(&content[copied..at]);
        edited.extend_from_slice(&step.new);
        copied = at + old.len();
    }
    edited.extend_from_slice(&content[copied..]);
    Ok((edited, count))
}

/// Replaces as if every `\r\n` were `\n`, and restores the line endings at each position.
fn replace_lines(content: &[u8], old: &[u8], step: &EditStep<'_>, max_size: u64) -> Result<(Vec<u8>, u64)> {
    let view = LfNormalizedText::new(content)?;
    check_places(view.text(), old, step)?;
    let finder = memmem::Finder::new(old);
    let template = if step.is_exact() {
        LineEndingAdaptiveText::exact(&step.new)
    } else {
        LineEndingAdaptiveText::new(old, &step.new)
    };
    let mut count = 0;
    let mut size = content.len() as u64;
    let mut endings = view.endings();
    for at in finder.find_iter(view.text()) {
        let raw = view.raw_range(at, at + old.len());
        count += 1;
        size = (size - raw.len() as u64).saturating_add(template.length(&mut endings, at) as u64);
    }
    check_size(size, max_size)?;
    let mut edited = fallible_alloc::with_capacity(usize::try_from(size).unwrap_or(usize::MAX))?;
    let mut copied = 0;
    let mut endings = view.endings();
    for at in finder.find_iter(view.text()) {
        let raw = view.raw_range(at, at + old.len());
        edited.extend_from_slice(&content[copied..raw.start]);
        template.write(&mut endings, at, &mut edited);
        copied = raw.end;
    }
    edited.extend_from_slice(&content[copied..]);
    Ok((edited, count))
}

/// Fails if there is no occurrence, or more than one for [`ReplacementScope::Unique`].
fn check_places(haystack: &[u8], old: &[u8], step: &EditStep<'_>) -> Result<()> {
    let Some(first) = memmem::find(haystack, old) else {
        return Err(replacement_errors::no_match(haystack, step));
    };
    let is_unique = || memmem::find(&haystack[first + 1..], old).is_none();
    if step.replacement.occurrences == ReplacementScope::All || is_unique() {
        return Ok(());
    }
    Err(replacement_errors::not_unique(&occurrence_lines::find_overlapping(haystack, old), step))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::{Error, ErrorKind};

    proptest! {
        #[test]
        fn a_change_in_bytes_is_the_change_by_lines(
            lines in prop::collection::vec("[ab\r]{0,3}", 0..6),
            ending in prop::sample::select(vec!["\n", "\r\n"]),
            old in "[ab\n]{1,4}",
            new in "[ab\n]{0,4}",
            exact in any::<bool>(),
            all in any::<bool>(),
        ) {
            let content = lines.join(ending).into_bytes();
            let mut replacement = Replacement::new(old.clone(), new.clone());
            if all {
                replacement = replacement.all();
            }
            let mut new = Cow::Borrowed(new.as_bytes());
            if exact {
                replacement.line_endings = NewLineEndings::Exact;
            } else if text::line_ending(&content) == LineEnding::Crlf {
                new = line_endings::to_crlf(&new).expect("there is memory").into_owned().into();
            }
            let step = EditStep { replacement: &replacement, index: 0, of: 1, encoding: Encoding::Utf8, old: None, new };
            let places = |error: Error| (error.kind(), error.detail().filter(|_| error.kind() == ErrorKind::NotUnique).cloned());
            let made = |result: Result<(Vec<u8>, u64)>| result.map_err(places);
            let by_lines = made(replace_lines(&content, old.as_bytes(), &step, u64::MAX));
            if let Some(in_file) = in_bytes(&content, old.as_bytes(), &step.new).expect("there is memory") {
                prop_assert_eq!(made(replace_bytes(&content, &in_file, &step, u64::MAX)), by_lines);
            }
        }
    }
}
