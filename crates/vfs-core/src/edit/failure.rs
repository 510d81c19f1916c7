//! Why a replacement was not made, in words that help to ask again.

use std::fmt::Write as _;

use memchr::memmem;

use super::endings::LineFeeds;
use super::nearest::nearest;
use super::places::Places;
use super::replace::Step;
use crate::error::{Error, ErrorDetail, ErrorKind, shorten};

/// How much of `old` a message repeats.
const MAX_SHOWN: usize = 300;

pub(super) fn no_match(haystack: &[u8], step: &Step<'_>) -> Error {
    let near = nearest(haystack, &step.replacement.old, step.encoding);
    let mut words = format!("Error: String not found in file: '{}'", shorten(&step.replacement.old, MAX_SHOWN));
    for (rank, line) in near.iter().enumerate() {
        // Writing to a string cannot fail.
        let label = if rank == 0 { "Most similar" } else { "Also similar" };
        let _ = write!(words, "\n{label}: line {}: {}", line.line, line.text);
    }
    if is_there_with_line_feeds(haystack, step) {
        words.push_str(
            "\nThe file has this text, but its lines end with \\n and not with \\r\\n, as in the new string, which is the same \
             apart from that: nothing is to be changed.",
        );
    }
    if lacks_only_the_last_line_break(haystack, step) {
        words.push_str(
            "\nThe file ends with this text, but without a line break behind it: leave the last line break of the old string \
             out.",
        );
    }
    name_step(&mut words, step);
    Error::new(ErrorKind::NoMatch, "the text to replace is not in the file")
        .with_model_message(words)
        .with_detail(ErrorDetail::NoMatch { replacement: step.index, nearest: near })
}

pub(super) fn not_unique(places: &Places, step: &Step<'_>) -> Error {
    let Places { count, lines } = places;
    let mut numbers = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if *count > lines.len() as u64 {
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

/// Whether the text is there but for the `\r` before its line breaks. It was not replaced as it was the same as the new one.
fn is_there_with_line_feeds(haystack: &[u8], step: &Step<'_>) -> bool {
    let old = step.old.as_deref().filter(|old| memmem::find(old, b"\r\n").is_some());
    old.is_some_and(|old| memmem::find(LineFeeds::new(haystack).text(), LineFeeds::new(old).text()).is_some())
}

/// Whether the text would be at the end of the file, were there a final newline, which the lines of a read do not show.
fn lacks_only_the_last_line_break(haystack: &[u8], step: &Step<'_>) -> bool {
    let unended = step.old.as_deref().and_then(|old| old.strip_suffix(b"\n"));
    let unended = unended.map(|old| old.strip_suffix(b"\r").unwrap_or(old));
    unended.is_some_and(|old| !old.is_empty() && haystack.ends_with(old))
}

/// Says which replacement of a list it was.
fn name_step(words: &mut String, step: &Step<'_>) {
    if step.of > 1 {
        let _ = write!(words, "\nThis was replacement {} of {}; none was made.", step.index + 1, step.of);
    }
}
