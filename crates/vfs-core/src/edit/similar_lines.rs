//! Search for the lines most similar to a text.

use std::borrow::Cow;

use crate::error::SimilarLine;
use crate::requests::Encoding;

/// The maximum number of lines and bytes of a file that are compared.
const MAX_LINES: usize = 20_000;
const MAX_BYTES: usize = 4 << 20;

/// The maximum size in bytes of a line that is compared and returned.
const MAX_LINE_BYTES: usize = 200;

const MAX_RESULTS: usize = 3;

/// The minimum similarity of a result; 1 is equality up to surrounding white space.
const SIMILARITY_THRESHOLD: f64 = 0.5;

/// Returns at most three lines of `content` that are most similar to the first non-blank line of `old`, best first.
pub(super) fn nearest(content: &[u8], old: &str, encoding: Encoding) -> Vec<SimilarLine> {
    let Some(target) = old.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return Vec::new();
    };
    let mut pairs = LineBigrams::new(truncate_line(target).as_bytes());
    let searched = &content[..content.len().min(MAX_BYTES)];
    let mut best: Vec<(f64, SimilarLine)> = Vec::new();
    for (number, line) in (1..).zip(searched.split(|byte| *byte == b'\n').take(MAX_LINES)) {
        let text = decode_line(&line[..line.len().min(MAX_LINE_BYTES)], encoding);
        let score = pairs.similarity(text.trim().as_bytes());
        let is_among_best = best.len() < MAX_RESULTS || best.last().is_some_and(|(worst, _)| score > *worst);
        if score >= SIMILARITY_THRESHOLD && is_among_best {
            let at = best.partition_point(|(other, _)| *other >= score);
            best.insert(at, (score, SimilarLine::new(number, truncate_line(text.trim_end_matches('\r')))));
            best.truncate(MAX_RESULTS);
        }
    }
    best.into_iter().map(|(_, line)| line).collect()
}

fn decode_line(line: &[u8], encoding: Encoding) -> Cow<'_, str> {
    match encoding {
        Encoding::Legacy(legacy) => legacy.decode_without_bom_handling(line).0,
        _ => String::from_utf8_lossy(line),
    }
}

fn truncate_line(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_LINE_BYTES)]
}

/// The bigrams of a line, to compare with those of other lines.
struct LineBigrams<'a> {
    line: &'a [u8],
    counts: Vec<u16>,
}

impl<'a> LineBigrams<'a> {
    fn new(line: &'a [u8]) -> Self {
        let mut counts = vec![0; 1 << 16];
        for pair in line.array_windows() {
            counts[index(*pair)] += 1;
        }
        Self { line, counts }
    }

    /// Returns the similarity of two lines from 0 to 1: Dice's coefficient of their bigrams.
    fn similarity(&mut self, other: &[u8]) -> f64 {
        if self.line == other {
            return 1.0;
        }
        let pairs = self.line.len().saturating_sub(1) + other.len().saturating_sub(1);
        if self.line.len().min(other.len()) < 2 {
            return 0.0;
        }
        let mut common = Vec::with_capacity(MAX_LINE_BYTES);
        for pair in other.array_windows() {
            let at = index(*pair);
            if self.counts[at] > 0 {
                self.counts[at] -= 1;
                common.push(at);
            }
        }
        for at in &common {
            self.counts[*at] += 1;
        }
        // Lines with the same bigrams in another order are not equal.
        (2.0 * common.len() as f64 / pairs as f64).min(0.999)
    }
}

fn index(pair: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_differs_in_white_space_only_is_first() {
        let content = "fn total(a: u32) {\n    let total = sum(a);\n\tlet total = sum(b);\r\n}\n";
        let near = nearest(content.as_bytes(), "\n  let total = sum(b);\nmore", Encoding::Utf8);
        assert_eq!(near[0], SimilarLine::new(3, "\tlet total = sum(b);"));
        assert_eq!(near[1], SimilarLine::new(2, "    let total = sum(a);"));
    }

    #[test]
    fn dissimilar_lines_are_omitted() {
        for (content, old) in [("alpha\nbeta\n", "zzzzzz"), ("a\n", "b"), ("", "x"), ("abc\n", "  \n\t\n")] {
            assert_eq!(nearest(content.as_bytes(), old, Encoding::Utf8), [], "{content:?} {old:?}");
        }
    }

    #[test]
    fn results_are_few_and_short() {
        let content = format!("{}\n", "xy".repeat(5_000)).repeat(50);
        let near = nearest(content.as_bytes(), &"xy".repeat(1_000_000), Encoding::Utf8);
        assert_eq!(near.iter().map(|line| line.line).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(near.iter().all(|line| line.text.len() <= 200));
    }
}
