//! Unified diffs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use similar::{ChangeTag, DiffOp, DiffTag, TextDiff};

use crate::path::VfsPath;
use crate::text::{self, SampleExtent, Sniffed};

/// The number of context lines on each side of a change.
const CONTEXT_LINES: usize = 3;

/// The name of a missing file in a header.
const DEV_NULL: &str = "/dev/null";

/// The size of a block in the comparison of two sides, in bytes.
const COMPARE_BLOCK_BYTES: usize = 4 << 10;

/// The time after which the rest of a diff is coarse: correct, but not minimal.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum number of lines, on both sides together, that are compared; each needs about 60 bytes of memory.
const MAX_LINES: usize = 1 << 18;

/// Returns the unified diff from `old` to `new` with `path` in its headers, which is empty if both are equal.
///
/// # Behaviour
///
/// * A change has three lines of context. Lines end at `\n` and keep their `\r`. A missing final newline is marked.
/// * UTF-16 and legacy text is decoded. The diff of binary files is one line, `Binary files a/x and b/x differ`.
/// * The rest of a diff is coarse, all removed lines before all added ones, after half a second of work, and if over 262,144 lines
///   lie between the first change and the last, on both sides together.
pub fn diff(path: &VfsPath, old: &[u8], new: &[u8]) -> String {
    diff_files(path, Some(old), Some(new))
}

/// Returns the unified diff of a file that may be missing before or after, in which case the header names `/dev/null`.
pub fn diff_files(path: &VfsPath, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    if old == new {
        return String::new();
    }
    let (before, after) = (side_name('a', path, old.is_some()), side_name('b', path, new.is_some()));
    match (decoded(old.unwrap_or_default()), decoded(new.unwrap_or_default())) {
        (Some(old), Some(new)) => {
            let mut out = text_header(&before, &after);
            push_hunks(&mut out, &old, &new);
            out
        }
        _ => binary_header(&before, &after),
    }
}

/// Replaces the path `from` by `to` in the headers of the diff `text`.
pub(crate) fn rename_in_diff(text: &str, from: &VfsPath, to: &VfsPath) -> String {
    // A file that is missing on both sides has no diff.
    for (is_before, is_after) in [(true, true), (false, true), (true, false)] {
        let headers = |path: &VfsPath| {
            let (before, after) = (side_name('a', path, is_before), side_name('b', path, is_after));
            [text_header(&before, &after), binary_header(&before, &after)]
        };
        for (old, new) in headers(from).into_iter().zip(headers(to)) {
            if let Some(rest) = text.strip_prefix(&old) {
                return new + rest;
            }
        }
    }
    text.to_owned()
}

/// Returns the name of the file `path` on one side of a diff.
fn side_name(side: char, path: &VfsPath, is_there: bool) -> String {
    if is_there { header_name(&format!("{side}{path}")) } else { DEV_NULL.to_owned() }
}

fn text_header(before: &str, after: &str) -> String {
    format!("--- {before}\n+++ {after}\n")
}

fn binary_header(before: &str, after: &str) -> String {
    format!("Binary files {before} and {after} differ\n")
}

fn decoded(content: &[u8]) -> Option<Cow<'_, str>> {
    if let Some((text, _)) = text::utf8_text(content, SampleExtent::Whole) {
        return Some(Cow::Borrowed(text));
    }
    match text::sniff(content, SampleExtent::Whole) {
        Sniffed::Text(encoding) => text::decode(content, encoding).map(Cow::Owned),
        Sniffed::Binary => None,
    }
}

/// Returns the name, quoted as git does if it would break the line.
fn header_name(name: &str) -> String {
    if name.contains(char::is_control) { format!("{name:?}") } else { name.to_owned() }
}

fn push_hunks(out: &mut String, old: &str, new: &str) {
    let (beginning, end) = common(old, new);
    let skipped = without_last_lines(&old[..beginning], CONTEXT_LINES);
    let left_out = end - first_lines(&old[old.len() - end..], CONTEXT_LINES);
    let around = CommonEnds { before: &old[..skipped], behind: &old[old.len() - left_out..] };
    let first_line = memchr::memchr_iter(b'\n', around.before.as_bytes()).count();
    let (old, new) = (&old[skipped..old.len() - left_out], &new[skipped..new.len() - left_out]);
    if count_lines(old) + count_lines(new) > MAX_LINES {
        return push_coarse_hunk(out, old, new, first_line);
    }
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).newline_terminated(true).diff_slices(&old, &new);
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        let (Some(first), Some(last)) = (hunk.ops().first(), hunk.ops().last()) else { continue };
        let (before, after) =
            (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        let leading = if before.start == 0 { around.leading(missing_context(first)) } else { "" };
        let trailing = if before.end == old.len() { around.trailing(missing_context(last)) } else { "" };
        let whole = |side: Range<usize>| {
            (first_line + side.start - count_lines(leading))..(first_line + side.end + count_lines(trailing))
        };
        push_hunk_header(out, whole(before), whole(after));
        leading.split_inclusive('\n').for_each(|line| push_line(out, ChangeTag::Equal, line));
        for change in hunk.iter_changes() {
            push_line(out, change.tag(), change.value());
        }
        trailing.split_inclusive('\n').for_each(|line| push_line(out, ChangeTag::Equal, line));
    }
}

/// The common beginning and end of both sides, which are not compared.
///
/// If lines repeat, a change has several positions, and the reported one may lie next to the common lines. The missing context
/// lines are then taken from here.
struct CommonEnds<'a> {
    before: &'a str,
    behind: &'a str,
}

impl<'a> CommonEnds<'a> {
    fn leading(&self, lines: usize) -> &'a str {
        &self.before[without_last_lines(self.before, lines)..]
    }

    fn trailing(&self, lines: usize) -> &'a str {
        &self.behind[..first_lines(self.behind, lines)]
    }
}

/// Returns the number of context lines that a hunk lacks if it begins or ends with `op`.
fn missing_context(op: &DiffOp) -> usize {
    let context = if op.tag() == DiffTag::Equal { op.old_range().len() } else { 0 };
    CONTEXT_LINES.saturating_sub(context)
}

/// Adds one hunk that removes all lines of `old` and adds all of `new`, except for common context.
fn push_coarse_hunk(out: &mut String, old: &str, new: &str, first_line: usize) {
    push_hunk_header(out, first_line..first_line + count_lines(old), first_line..first_line + count_lines(new));
    let (beginning, end) = common(old, new);
    for (tag, lines) in [
        (ChangeTag::Equal, &old[..beginning]),
        (ChangeTag::Delete, &old[beginning..old.len() - end]),
        (ChangeTag::Insert, &new[beginning..new.len() - end]),
        (ChangeTag::Equal, &old[old.len() - end..]),
    ] {
        lines.split_inclusive('\n').for_each(|line| push_line(out, tag, line));
    }
}

fn push_line(out: &mut String, tag: ChangeTag, line: &str) {
    out.push(match tag {
        ChangeTag::Equal => ' ',
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
    });
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

fn count_lines(text: &str) -> usize {
    let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    newlines + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the sizes of the common whole lines at the beginning and at the end, which do not overlap.
fn common(old: &str, new: &str) -> (usize, usize) {
    let beginning = same_beginning(old.as_bytes(), new.as_bytes());
    (beginning, same_end(&old.as_bytes()[beginning..], &new.as_bytes()[beginning..]))
}

/// Returns the size of the common whole lines at the beginning.
fn same_beginning(old: &[u8], new: &[u8]) -> usize {
    let blocks =
        old.chunks(COMPARE_BLOCK_BYTES).zip(new.chunks(COMPARE_BLOCK_BYTES)).take_while(|(old, new)| old == new);
    let before: usize = blocks.map(|(block, _)| block.len()).sum();
    let same = before + old[before..].iter().zip(&new[before..]).take_while(|(old, new)| old == new).count();
    memchr::memrchr(b'\n', &old[..same]).map_or(0, |newline| newline + 1)
}

/// Returns the size of the common whole lines at the end.
fn same_end(old: &[u8], new: &[u8]) -> usize {
    let blocks =
        old.rchunks(COMPARE_BLOCK_BYTES).zip(new.rchunks(COMPARE_BLOCK_BYTES)).take_while(|(old, new)| old == new);
    let after: usize = blocks.map(|(block, _)| block.len()).sum();
    let rest = old[..old.len() - after].iter().rev().zip(new[..new.len() - after].iter().rev());
    let same = after + rest.take_while(|(old, new)| old == new).count();
    let begins_line = |text: &[u8]| text[..text.len() - same].last().is_none_or(|&before| before == b'\n');
    if begins_line(old) && begins_line(new) {
        return same;
    }
    memchr::memchr(b'\n', &old[old.len() - same..]).map_or(0, |newline| same - newline - 1)
}

/// Returns the size of `text`, which consists of whole lines, without its last `count` lines.
fn without_last_lines(text: &str, count: usize) -> usize {
    memchr::memrchr_iter(b'\n', text.as_bytes()).nth(count).map_or(0, |newline| newline + 1)
}

/// Returns the size of the first `count` lines of `text`.
fn first_lines(text: &str, count: usize) -> usize {
    text.split_inclusive('\n').take(count).map(str::len).sum()
}

fn push_hunk_header(out: &mut String, old: Range<usize>, new: Range<usize>) {
    let side = |lines: Range<usize>| {
        // The format numbers an empty side by the line before it.
        let line = lines.start + usize::from(!lines.is_empty());
        if lines.len() == 1 { line.to_string() } else { format!("{line},{}", lines.len()) }
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{} +{} @@", side(old), side(new));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let path = VfsPath::parse("/d/f.txt").expect("valid");
        let expected =
            if expected.is_empty() { String::new() } else { format!("--- a/d/f.txt\n+++ b/d/f.txt\n{expected}") };
        assert_eq!(diff(&path, old.as_bytes(), new.as_bytes()), expected, "{old:?} {new:?}");
    }

    #[test]
    fn hunks_have_context_and_the_numbers_of_the_whole_file() {
        check("a\n", "a\n", "");
        check("a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check("a\n", "", "@@ -1 +0,0 @@\n-a\n");
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        check(&old, &old.replace("12\n", "twelve\n"), "@@ -9,7 +9,7 @@\n 9\n 10\n 11\n-12\n+twelve\n 13\n 14\n 15\n");
        check(&old, &format!("{old}21\n"), "@@ -18,3 +18,4 @@\n 18\n 19\n 20\n+21\n");
    }

    #[test]
    fn lines_that_both_end_with_are_context_once() {
        let old: String = (1..=2000).map(|line| format!("{line}\n")).collect();
        check(&old, &old.replacen("5\n", "five\n", 1), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
        check(&old, &format!("0\n{old}"), "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n");
        check(&old, &old[2..], "@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n");
        let same = "x\n".repeat(2000);
        check(&same, &format!("{same}x\n"), "@@ -1998,3 +1998,4 @@\n x\n x\n x\n+x\n");
        check(&format!("a{same}y"), &format!("b{same}y"), "@@ -1,4 +1,4 @@\n-ax\n+bx\n x\n x\n x\n");
    }

    #[test]
    fn repeated_lines_around_a_change_have_context_on_both_sides() {
        let (before, after) = ("x\n".repeat(10), "B\nC\nD\nE\n");
        let (old, new) = (format!("{before}{after}"), format!("{before}x\n{after}"));
        check(&old, &new, "@@ -8,6 +8,7 @@\n x\n x\n x\n+x\n B\n C\n D\n");
        check(&new, &old, "@@ -8,7 +8,6 @@\n x\n x\n x\n-x\n B\n C\n D\n");
        let function = |name: &str| format!("fn {name}() {{\n}}\n\n");
        let (old, new) = ([function("a"), function("b")].concat(), ["a", "x", "b"].map(function).concat());
        check(&old, &new, "@@ -1,6 +1,9 @@\n fn a() {\n }\n \n+fn x() {\n+}\n+\n fn b() {\n }\n \n");
    }

    #[test]
    fn a_change_over_the_line_limit_is_one_hunk() {
        let middle = "\n".repeat(MAX_LINES / 2);
        let (old, new) =
            (format!("1\n2\n3\n4\na\n{middle}b\n5\n6\n7\n8"), format!("1\n2\n3\n4\nc\n{middle}d\n5\n6\n7\n8"));
        let lines = MAX_LINES / 2 + 8;
        let [removed, added] = ['-', '+'].map(|sign| format!("{sign}\n").repeat(MAX_LINES / 2));
        let expected = format!("@@ -2,{lines} +2,{lines} @@\n 2\n 3\n 4\n-a\n{removed}-b\n+c\n{added}+d\n 5\n 6\n 7\n");
        check(&old, &new, &expected);
    }

    #[test]
    fn a_missing_newline_and_carriage_returns_show() {
        check("a\r\n", "b\r\n", "@@ -1 +1 @@\n-a\r\n+b\r\n");
        check("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
    }

    #[test]
    fn a_diff_is_renamed_in_its_headers_only() {
        let path = |text| VfsPath::parse(text).expect("valid");
        let states: [Option<&[u8]>; 5] = [None, Some(b"--- a/a b\n"), Some(b"+++ b/a b"), Some(b"\0"), Some(b"")];
        for (from, to) in [("/a b", "/m/a b"), ("/d/x\ny", "/x\ny"), ("/dev/null", "/m/dev/null")] {
            let (from, to) = (path(from), path(to));
            for old in states {
                for new in states {
                    let text = diff_files(&from, old, new);
                    assert_eq!(rename_in_diff(&text, &from, &to), diff_files(&to, old, new), "{text}");
                }
            }
        }
    }

    #[test]
    fn other_encodings_are_decoded_and_binary_is_named() {
        let path = VfsPath::parse("/x\ny").expect("valid");
        let utf16 = |text: &str| text::encode(text, crate::requests::Encoding::Utf16Le).expect("encodes");
        assert_eq!(
            diff(&path, &utf16("ä\n"), &utf16("ö\n")),
            "--- \"a/x\\ny\"\n+++ \"b/x\\ny\"\n@@ -1 +1 @@\n-ä\n+ö\n"
        );
        assert_eq!(diff(&path, b"a\0", b"b\0"), "Binary files \"a/x\\ny\" and \"b/x\\ny\" differ\n");
    }

    /// The first line of each hunk in the old file, and its lines.
    fn hunks(diff: &str) -> Vec<(usize, Vec<&str>)> {
        let mut hunks: Vec<(usize, Vec<&str>)> = Vec::new();
        for line in diff.split_inclusive('\n').skip(2) {
            match (line.strip_prefix("@@ -"), hunks.last_mut()) {
                (Some(header), _) => {
                    let (place, _) = header.split_once(' ').expect("two sides");
                    let (start, count) = place.split_once(',').unwrap_or((place, "1"));
                    let (start, count): (usize, usize) =
                        (start.parse().expect("a line"), count.parse().expect("a count"));
                    hunks.push((start - usize::from(count > 0), Vec::new()));
                }
                (None, Some((_, lines))) => lines.push(line),
                (None, None) => panic!("no hunk has begun: {diff}"),
            }
        }
        hunks
    }

    proptest! {
        #[test]
        fn a_diff_leads_from_the_old_to_the_new_with_all_of_its_context(
            old in prop::collection::vec(prop::sample::select(vec!["x\n", "y\n", "\n", "}\n"]), 0..24),
            new in prop::collection::vec(prop::sample::select(vec!["x\n", "y\n", "\n", "}\n"]), 0..24),
        ) {
            let path = VfsPath::parse("/f").expect("valid");
            let diff = diff(&path, old.concat().as_bytes(), new.concat().as_bytes());
            let (mut made, mut at) = (Vec::new(), 0);
            for (start, lines) in hunks(&diff) {
                made.extend_from_slice(&old[at..start]);
                at = start;
                let context = |lines: &mut dyn Iterator<Item = &&str>| lines.take_while(|line| line.starts_with(' ')).count();
                let (before, behind) = (context(&mut lines.iter()), context(&mut lines.iter().rev()));
                prop_assert!(before == CONTEXT_LINES || (before < CONTEXT_LINES && start == 0), "{}", diff);
                for line in &lines {
                    let (sign, text) = line.split_at(1);
                    if sign != "+" {
                        prop_assert_eq!(old[at], text, "{}", diff);
                        at += 1;
                    }
                    if sign != "-" {
                        made.push(text);
                    }
                }
                prop_assert!(behind == CONTEXT_LINES || (behind < CONTEXT_LINES && at == old.len()), "{}", diff);
            }
            made.extend_from_slice(&old[at..]);
            prop_assert_eq!(made, new, "{}", diff);
        }
    }
}
