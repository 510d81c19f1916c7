//! Errors of replacements, with hints for the next attempt.

use std::fmt::Write as _;

use memchr::memmem;

use super::line_endings::LfNormalizedText;
use super::occurrence_lines::OccurrenceLines;
use super::replace::EditStep;
use super::similar_lines::nearest;
use crate::error::{Error, ErrorDetail, ErrorKind, NoMatchHint, shorten};

/// The maximum size of `old` in a message, in bytes.
const MAX_SHOWN: usize = 300;

pub(super) fn no_match(haystack: &[u8], step: &EditStep<'_>) -> Error {
    let near = nearest(haystack, &step.replacement.old, step.encoding);
    let mut words = format!("Error: String not found in file: '{}'", shorten(&step.replacement.old, MAX_SHOWN));
    for (rank, line) in near.iter().enumerate() {
        // Writing to a string cannot fail.
        let label = if rank == 0 { "Most similar" } else { "Also similar" };
        let _ = write!(words, "\n{label}: line {}: {}", line.line, line.text);
    }
    let hint = hint(haystack, step);
    words.push_str(match hint {
        Some(NoMatchHint::LineEndings) => {
            "\nThe file has this text with other line endings, and the new string differs from it in nothing else: \
             nothing is to be changed."
        }
        Some(NoMatchHint::FinalLineBreak) => {
            "\nThe file ends with this text, but without a line break behind it: remove the last line break from the old \
             string."
        }
        None => "",
    });
    name_step(&mut words, step);
    Error::new(ErrorKind::NoMatch, "the text to replace is not in the file")
        .with_model_message(words)
        .with_detail(ErrorDetail::NoMatch { replacement: step.index, nearest: near, hint })
}

pub(super) fn not_unique(places: &OccurrenceLines, step: &EditStep<'_>) -> Error {
    let OccurrenceLines { count, lines, has_more_lines } = places;
    let mut numbers = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if *has_more_lines {
        numbers.push_str(", ...");
    }
    let mut words = format!(
        "Error: String '{}' appears {count} times in file (lines {numbers}). \
         Provide a more specific string with surrounding context, or replace all occurrences.",
        shorten(&step.replacement.old, MAX_SHOWN)
    );
    name_step(&mut words, step);
    Error::new(ErrorKind::NotUnique, format!("the text to replace is in the file {count} times"))
        .with_model_message(words)
        .with_detail(ErrorDetail::NotUnique { replacement: step.index, count: *count, lines: lines.clone() })
}

pub(super) fn same_but_for_line_endings() -> Error {
    Error::invalid_argument(
        "`old` and `new` differ only in line endings, which would become those of the file; set `line_endings` to \
         `exact` to change line endings",
    )
}

/// Returns a hint if the text differs from the file in line breaks only, which are invisible.
fn hint(haystack: &[u8], step: &EditStep<'_>) -> Option<NoMatchHint> {
    // No hint if the views cannot be allocated.
    let (text, old) = (LfNormalizedText::new(haystack).ok()?, LfNormalizedText::new(step.old.as_deref()?).ok()?);
    let (text, old) = (text.text(), old.text());
    // The text would have matched, if the new text differed in more than line endings.
    if memmem::find(text, old).is_some() && memmem::find(step.old.as_deref()?, b"\r\n").is_some() {
        return Some(NoMatchHint::LineEndings);
    }
    let unended = old.strip_suffix(b"\n").filter(|unended| !unended.is_empty() && text.ends_with(unended));
    unended.map(|_| NoMatchHint::FinalLineBreak)
}

/// Appends the number of the replacement in its list.
fn name_step(words: &mut String, step: &EditStep<'_>) {
    if step.of > 1 {
        let _ = write!(words, "\nThis was replacement {} of {}; none was made.", step.index + 1, step.of);
    }
}
