//! Overlapping occurrences of a text.

/// The maximum number of line numbers in an error.
const MAX_REPORTED_LINES: usize = 20;

/// The occurrences of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OccurrenceLines {
    /// The number of occurrences.
    pub(super) count: u64,
    /// The 1-based numbers of the first lines in which an occurrence starts, each once.
    pub(super) lines: Vec<u64>,
    /// Whether occurrences start in further lines.
    pub(super) has_more_lines: bool,
}

/// Finds all occurrences of `needle`, which is not empty, by the Knuth-Morris-Pratt algorithm, which is linear also with overlaps.
pub(super) fn find_overlapping(haystack: &[u8], needle: &[u8]) -> OccurrenceLines {
    let borders = borders(needle);
    let mut places = OccurrenceLines::default();
    let (mut line, mut counted) = (1, 0);
    let mut matched = 0;
    for (at, byte) in haystack.iter().enumerate() {
        while matched > 0 && needle[matched] != *byte {
            matched = borders[matched - 1];
        }
        if needle[matched] == *byte {
            matched += 1;
        }
        if matched == needle.len() {
            places.count += 1;
            if !places.has_more_lines {
                let start = at + 1 - needle.len();
                line += memchr::memchr_iter(b'\n', &haystack[counted..start]).count() as u64;
                counted = start;
                let is_new = places.lines.last() != Some(&line);
                places.has_more_lines = is_new && places.lines.len() == MAX_REPORTED_LINES;
                if is_new && !places.has_more_lines {
                    places.lines.push(line);
                }
            }
            matched = borders[matched - 1];
        }
    }
    places
}

/// Returns for each prefix of `needle` the length of its longest proper prefix that is also its suffix.
fn borders(needle: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; needle.len()];
    let mut length = 0;
    for at in 1..needle.len() {
        while length > 0 && needle[length] != needle[at] {
            length = borders[length - 1];
        }
        if needle[length] == needle[at] {
            length += 1;
        }
        borders[at] = length;
    }
    borders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlapping_occurrences_count_and_lines_are_bounded() {
        for (haystack, needle, count, lines) in [
            (&b"aaa"[..], &b"aa"[..], 2, &[1][..]),
            (b"x\ny\nx\n\nx", b"x", 3, &[1, 3, 5]),
            (b"xx\nx\n\nxxx", b"x", 6, &[1, 2, 4]),
        ] {
            let places = find_overlapping(haystack, needle);
            assert_eq!((places.count, &*places.lines, places.has_more_lines), (count, lines, false));
        }
        for (lines, has_more) in [(20, false), (21, true), (100, true)] {
            let many = find_overlapping(&b"aa\n".repeat(lines), b"a");
            assert_eq!((many.count, many.lines, many.has_more_lines), (2 * lines as u64, (1..=20).collect(), has_more));
        }
    }

    proptest! {
        #[test]
        fn every_occurrence_is_found(haystack in "[ab\n]{0,60}", needle in "[ab\n]{1,4}") {
            let starts: Vec<_> = (0..haystack.len()).filter(|at| haystack[*at..].starts_with(&needle)).collect();
            let mut lines: Vec<_> = starts.iter().map(|at| haystack[..*at].matches('\n').count() as u64 + 1).collect();
            lines.dedup();
            let has_more_lines = lines.len() > 20;
            lines.truncate(20);
            prop_assert_eq!(
                find_overlapping(haystack.as_bytes(), needle.as_bytes()),
                OccurrenceLines { count: starts.len() as u64, lines, has_more_lines }
            );
        }
    }
}
