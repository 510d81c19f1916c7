//! Rendering of a matched line: without its ending, cut to a maximum length, and valid UTF-8.

use vfs_core::search::{LineText, Submatch, Submatches};

use crate::searcher::line_arena::LineArena;

/// The text of a line, and its submatches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RenderedLine {
    pub(crate) text: LineText,
    pub(crate) submatches: Submatches,
    pub(crate) cut: bool,
}

/// Returns `bytes` without the `\n` or `\r\n` at the end.
pub(crate) fn strip_line_ending(bytes: &[u8]) -> &[u8] {
    match bytes.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => bytes,
    }
}

/// Renders the first `max` bytes of `line` as text, and converts `found`, ranges of `line`, to ranges of that text.
///
/// Each invalid byte sequence becomes one U+FFFD. Ranges are widened to whole characters and clipped to the text.
/// Ranges beyond the cut are dropped.
#[inline]
pub(crate) fn render_line(line: &[u8], max: usize, found: &[(usize, usize)], arena: &mut LineArena) -> RenderedLine {
    if line.len() <= max
        && let Ok(text) = arena.alloc(line)
    {
        return render_whole(text, found);
    }
    const MAX_CHAR_BYTES: usize = 4;
    let window = &line[..line.len().min(max.saturating_add(MAX_CHAR_BYTES))];
    let mut text = String::with_capacity(window.len().min(max));
    // Starts of runs in the line and in the text. Within a run, the bytes of both correspond.
    let mut runs = vec![(0, 0)];
    let mut done = 0;
    for chunk in window.utf8_chunks() {
        let valid = chunk.valid();
        let room = valid.floor_char_boundary(max - text.len());
        text.push_str(&valid[..room]);
        done += room;
        if room < valid.len() {
            break;
        }
        if !chunk.invalid().is_empty() {
            if text.len() + char::REPLACEMENT_CHARACTER.len_utf8() > max {
                break;
            }
            runs.push((done, text.len()));
            text.push(char::REPLACEMENT_CHARACTER);
            done += chunk.invalid().len();
            runs.push((done, text.len()));
        }
    }
    let cut = done < line.len();
    let place = |at: usize| {
        let (line_start, text_start) = runs[runs.partition_point(|run| run.0 <= at) - 1];
        (text_start + at - line_start).min(text.len())
    };
    let submatches = found
        .iter()
        .filter(|(start, _)| *start < done || (*start == done && !cut))
        .map(|&(start, end)| Submatch {
            start: text.floor_char_boundary(place(start)),
            end: text.ceil_char_boundary(place(end.min(done))),
        })
        .collect();
    RenderedLine { text: text.into(), submatches, cut }
}

/// Renders a line that is valid UTF-8 and not cut, so that the ranges stay as they are.
fn render_whole(text: LineText, found: &[(usize, usize)]) -> RenderedLine {
    let range = |&(start, end): &(usize, usize)| Submatch {
        start: text.floor_char_boundary(start),
        end: text.ceil_char_boundary(end.min(text.len())),
    };
    let found = &found[..found.partition_point(|(start, _)| *start <= text.len())];
    let submatches = found.iter().map(range).collect();
    RenderedLine { text, submatches, cut: false }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endings_are_stripped_and_lone_carriage_returns_are_preserved() {
        for (line, expected) in
            [("a\n", "a"), ("a\r\n", "a"), ("a", "a"), ("a\r", "a\r"), ("\n", ""), ("\r\n", ""), ("a\r\r\n", "a\r")]
        {
            assert_eq!(strip_line_ending(line.as_bytes()), expected.as_bytes(), "{line:?}");
        }
    }

    #[test]
    fn texts_are_cut_and_ranges_follow() {
        for (line, max, found, text, expected, cut) in [
            (&b"hello"[..], 100, vec![(1, 3)], "hello", vec![(1, 3)], false),
            (b"hello", 5, vec![(5, 5)], "hello", vec![(5, 5)], false),
            (b"hello", 3, vec![(1, 5), (4, 5)], "hel", vec![(1, 3)], true),
            ("aé".as_bytes(), 2, vec![(1, 3)], "a", vec![], true),
            (b"a\xffb", 100, vec![(2, 3)], "a\u{fffd}b", vec![(4, 5)], false),
            (b"a\xffb", 100, vec![(0, 2)], "a\u{fffd}b", vec![(0, 4)], false),
            (b"a\xff\xfeb", 100, vec![(1, 3)], "a\u{fffd}\u{fffd}b", vec![(1, 7)], false),
            (b"a\xffb", 2, vec![(1, 2)], "a", vec![], true),
            ("é".as_bytes(), 100, vec![(1, 2)], "é", vec![(0, 2)], false),
            (b"abc", 0, vec![(0, 1)], "", vec![], true),
        ] {
            let shown = render_line(line, max, &found, &mut LineArena::default());
            let expected: Submatches = expected.into_iter().map(|(start, end)| Submatch { start, end }).collect();
            assert_eq!((shown.text.as_str(), shown.cut), (text, cut), "{line:?} {max}");
            assert_eq!(shown.submatches, expected, "{line:?} {max}");
        }
    }

    proptest! {
        #[test]
        fn uncut_text_is_the_lossy_text_and_ranges_are_of_it(
            line in prop::collection::vec(prop_oneof![Just(b'a'), Just(0xc3), Just(0xa9), Just(0xff)], 0..20),
            max in 0_usize..30,
            range in (0_usize..20, 0_usize..20),
        ) {
            let (low, high) = (range.0.min(range.1).min(line.len()), range.0.max(range.1).min(line.len()));
            let shown = render_line(&line, max, &[(low, high)], &mut LineArena::default());
            prop_assert!(shown.text.len() <= max);
            let whole = String::from_utf8_lossy(&line);
            prop_assert!(whole.starts_with(&*shown.text));
            prop_assert_eq!(shown.cut, whole.len() > shown.text.len());
            for submatch in &shown.submatches {
                prop_assert!(shown.text.get(submatch.start..submatch.end).is_some());
            }
        }
    }
}
