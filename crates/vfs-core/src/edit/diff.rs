//! The unified diff of an edit.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{ChangeTag, DiffOp, TextDiff};

use crate::path::VfsPath;
use crate::text::{self, Extent, Sniffed};

/// Lines shown on either side of a change.
const CONTEXT: usize = 3;

/// How a diff calls a file that is not there.
const NOTHING: &str = "/dev/null";

/// Compared in one step.
const BLOCK: usize = 4 << 10;

/// After this long the rest of a diff is coarse: correct, but not the shortest.
const PATIENCE: Duration = Duration::from_millis(500);

/// The unified diff from `old` to `new`, with `path` in its headers; empty where they are equal.
///
/// # Behaviour
///
/// * Three lines of context; lines end at `\n` and keep their `\r`. A missing final newline is marked.
/// * UTF-16 and legacy text is shown decoded. What is not text is one line, `Binary files a/x and b/x differ`.
/// * After half a second of work the rest is shown coarsely, as lines taken out and lines put in.
pub fn diff(path: &VfsPath, old: &[u8], new: &[u8]) -> String {
    diff_files(path, Some(old), Some(new))
}

/// As [`diff`], of a file that need not be there before or after: then the header names `/dev/null` in its place.
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

/// `text`, a diff of the file `from`, as one of the file `to`: only its headers name the file.
pub(crate) fn rename_in_diff(text: &str, from: &VfsPath, to: &VfsPath) -> String {
    // A file that is there on neither side has no diff.
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

/// How one side of a diff calls the file `path`.
fn side_name(side: char, path: &VfsPath, is_there: bool) -> String {
    if is_there { header_name(&format!("{side}{path}")) } else { NOTHING.to_owned() }
}

fn text_header(before: &str, after: &str) -> String {
    format!("--- {before}\n+++ {after}\n")
}

fn binary_header(before: &str, after: &str) -> String {
    format!("Binary files {before} and {after} differ\n")
}

fn decoded(content: &[u8]) -> Option<String> {
    match text::sniff(content, Extent::Whole) {
        Sniffed::Text(encoding) => text::decode(content, encoding),
        Sniffed::Binary => None,
    }
}

/// The name as it is, or as git quotes it where it would break the line.
fn header_name(name: &str) -> String {
    if name.contains(char::is_control) { format!("{name:?}") } else { name.to_owned() }
}

fn push_hunks(out: &mut String, old: &str, new: &str) {
    let skipped = same_beginning(old, new);
    let first_line = old[..skipped].matches('\n').count();
    let old: Vec<&str> = old[skipped..].split_inclusive('\n').collect();
    let new: Vec<&str> = new[skipped..].split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(PATIENCE).newline_terminated(true).diff_slices(&old, &new);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        push_hunk_header(out, hunk.ops(), first_line);
        for change in hunk.iter_changes() {
            out.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            out.push_str(change.value());
            if !change.value().ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
}

/// How many bytes of whole lines both begin with, but for the context that a diff shows of them.
fn same_beginning(old: &str, new: &str) -> usize {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let blocks = old.chunks(BLOCK).zip(new.chunks(BLOCK)).take_while(|(old, new)| old == new);
    let before: usize = blocks.map(|(block, _)| block.len()).sum();
    let same = before + old[before..].iter().zip(&new[before..]).take_while(|(old, new)| old == new).count();
    let lines = memchr::memrchr_iter(b'\n', &old[..same]);
    lines.map(|newline| newline + 1).nth(CONTEXT).unwrap_or(0)
}

fn push_hunk_header(out: &mut String, ops: &[DiffOp], first_line: usize) {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else { return };
    let side = |start: usize, end: usize| {
        let lines = end - start;
        // An empty side is named by the line before it.
        let line = first_line + start + usize::from(lines > 0);
        if lines == 1 { line.to_string() } else { format!("{line},{lines}") }
    };
    let removed = side(first.old_range().start, last.old_range().end);
    let added = side(first.new_range().start, last.new_range().end);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{removed} +{added} @@");
}

#[cfg(test)]
mod tests {
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
        let utf16 = |text: &str| text::encode(text, crate::types::Encoding::Utf16Le).expect("encodes");
        assert_eq!(
            diff(&path, &utf16("ä\n"), &utf16("ö\n")),
            "--- \"a/x\\ny\"\n+++ \"b/x\\ny\"\n@@ -1 +1 @@\n-ä\n+ö\n"
        );
        assert_eq!(diff(&path, b"a\0", b"b\0"), "Binary files \"a/x\\ny\" and \"b/x\\ny\" differ\n");
    }
}
