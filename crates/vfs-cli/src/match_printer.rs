//! Printer of search results in the format of ripgrep.

use std::io::{self, Write};

use vfs_core::search::{LineKind, MatchedFile, Submatch};
use vfs_core::{GrepMatch, VfsPath};

use crate::standard_output::Palette;

/// The line between groups of adjacent lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupSeparator {
    /// The line `--`, as with context lines.
    Dashes,
    /// No line.
    None,
}

/// Writes matches as `path:line:text` and context lines as `path-line-text`.
#[derive(Debug)]
pub(crate) struct MatchPrinter {
    palette: Palette,
    is_plain: bool,
    separator: GroupSeparator,
    last_line: Option<(VfsPath, u64)>,
}

impl MatchPrinter {
    /// Creates a printer.
    pub(crate) fn new(palette: Palette, separator: GroupSeparator) -> Self {
        let is_plain = [palette.path, palette.line, palette.matched].into_iter().all(anstyle::Style::is_plain);
        Self { palette, is_plain, separator, last_line: None }
    }

    /// Writes the lines of one match, or one context line.
    pub(crate) fn write_match(&mut self, out: &mut impl Write, found: &GrepMatch) -> io::Result<()> {
        if self.separator == GroupSeparator::Dashes
            && self.last_line.as_ref().is_some_and(|last| !is_adjacent(last, found))
        {
            out.write_all(b"--\n")?;
        }
        let Palette { path: path_style, line: line_style, .. } = self.palette;
        let separator = match found.kind {
            LineKind::Match => b":",
            LineKind::Context => b"-",
        };
        let mut start = 0;
        let mut number = found.line;
        for text in found.text.split('\n') {
            if self.is_plain {
                // Formatting is slow, and there may be millions of results.
                out.write_all(found.path.as_str().as_bytes())?;
                out.write_all(separator)?;
                out.write_all(itoa::Buffer::new().format(number).as_bytes())?;
                out.write_all(separator)?;
                out.write_all(text.as_bytes())?;
            } else {
                write!(out, "{path_style}{}{path_style:#}", found.path)?;
                out.write_all(separator)?;
                write!(out, "{line_style}{number}{line_style:#}")?;
                out.write_all(separator)?;
                self.write_highlighted(out, text, start, &found.submatches)?;
            }
            out.write_all(b"\n")?;
            start += text.len() + 1;
            number += 1;
        }
        if self.separator == GroupSeparator::Dashes {
            self.last_line = Some((found.path.clone(), number - 1));
        }
        Ok(())
    }

    /// Writes `text`, which starts at offset `start` of the match, with its submatches highlighted.
    fn write_highlighted(&self, out: &mut impl Write, text: &str, start: usize, parts: &[Submatch]) -> io::Result<()> {
        let style = self.palette.matched;
        let mut written = 0;
        for part in parts {
            let from = part.start.saturating_sub(start).clamp(written, text.len());
            let to = part.end.saturating_sub(start).min(text.len());
            let (Some(before), Some(matched)) = (text.get(written..from), text.get(from..to)) else { continue };
            if !matched.is_empty() {
                write!(out, "{before}{style}{matched}{style:#}")?;
                written = to;
            }
        }
        out.write_all(&text.as_bytes()[written..])
    }

    /// Writes the path of a file, with its number of matches if there is one.
    pub(crate) fn write_file(&self, out: &mut impl Write, file: &MatchedFile) -> io::Result<()> {
        let style = self.palette.path;
        write!(out, "{style}{}{style:#}", file.path)?;
        match file.count {
            Some(count) => writeln!(out, ":{count}"),
            None => out.write_all(b"\n"),
        }
    }
}

/// Returns whether `found` is on the last printed line or the one after it.
fn is_adjacent((path, line): &(VfsPath, u64), found: &GrepMatch) -> bool {
    *path == found.path && found.line <= line + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: u64, text: &str, kind: LineKind) -> GrepMatch {
        let mut found = GrepMatch::new(VfsPath::parse(path).expect("the path is valid"), line, text);
        found.kind = kind;
        found
    }

    fn printed(palette: Palette, separator: GroupSeparator, lines: &[GrepMatch]) -> String {
        let mut printer = MatchPrinter::new(palette, separator);
        let mut out = Vec::new();
        for line in lines {
            printer.write_match(&mut out, line).expect("memory takes all");
        }
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn groups_are_separated_at_gaps_and_between_files() {
        let lines = [
            found("/a", 1, "one", LineKind::Context),
            found("/a", 2, "two", LineKind::Match),
            found("/a", 9, "nine", LineKind::Match),
            found("/b", 10, "ten", LineKind::Match),
        ];
        let separated = "/a-1-one\n/a:2:two\n--\n/a:9:nine\n--\n/b:10:ten\n";
        assert_eq!(printed(Palette::default(), GroupSeparator::Dashes, &lines), separated);
        assert_eq!(printed(Palette::default(), GroupSeparator::None, &lines), separated.replace("--\n", ""));
    }

    #[test]
    fn each_line_of_a_multiline_match_has_its_number_and_its_highlighted_part() {
        let mut lines = found("/a", 3, "x ab\ncd y", LineKind::Match);
        lines.submatches = [Submatch { start: 2, end: 7 }].into();
        let palette = Palette { matched: anstyle::Style::new().bold(), ..Palette::default() };
        let expected = "/a:3:x \u{1b}[1mab\u{1b}[0m\n/a:4:\u{1b}[1mcd\u{1b}[0m y\n";
        assert_eq!(printed(palette, GroupSeparator::None, &[lines]), expected);
    }

    #[test]
    fn submatches_beyond_the_text_are_ignored() {
        let mut line = found("/a", 1, "é", LineKind::Match);
        line.submatches =
            [Submatch { start: 1, end: 2 }, Submatch { start: 5, end: 3 }, Submatch { start: 0, end: 9 }].into();
        let palette = Palette { matched: anstyle::Style::new().bold(), ..Palette::default() };
        assert_eq!(printed(palette, GroupSeparator::None, &[line]), "/a:1:\u{1b}[1mé\u{1b}[0m\n");
    }
}
