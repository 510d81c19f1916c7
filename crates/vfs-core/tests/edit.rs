//! Edits: documented behaviour, a naive model over random texts, and linear time for large inputs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use proptest::prelude::*;
use vfs_core::edit::Replacement;
use vfs_core::error::ErrorDetail;
use vfs_core::text::Encoding;
use vfs_core::{EditRequest, Error, ErrorKind, Result, VfsPath, edit, text};

const MAX: u64 = 64 << 20;

fn apply(content: &[u8], replacement: Replacement) -> Result<Vec<u8>> {
    edit::apply(content, &[replacement], MAX).map(|edited| edited.content)
}

fn one(content: &[u8], old: &str, new: &str) -> Result<Vec<u8>> {
    apply(content, Replacement::new(old, new))
}

fn all(content: &[u8], old: &str, new: &str) -> Result<Vec<u8>> {
    apply(content, Replacement::new(old, new).all())
}

#[track_caller]
fn assert_bytes(found: Result<Vec<u8>>, expected: &[u8]) {
    assert_eq!(found.map(|bytes| bytes.escape_ascii().to_string()), Ok(expected.escape_ascii().to_string()));
}

#[test]
fn arguments_are_checked_before_the_file() {
    let path = VfsPath::parse("/f").expect("valid");
    for request in [
        EditRequest::list(path.clone(), Vec::new()),
        EditRequest::new(path.clone(), "", "x"),
        EditRequest::new(path.clone(), "x", "x"),
        EditRequest::new(path.clone(), "a", "b").and("", "x"),
    ] {
        let error = edit::check(&request).expect_err("refused");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/f")), "{request:?}");
    }
    assert_eq!(edit::check(&EditRequest::new(path, "a", "")), Ok(()));
}

#[test]
fn each_place_keeps_its_own_line_endings() {
    for (content, old, new, expected) in [
        (&b"a\r\nb\r\n"[..], "a\nb", "x\ny", &b"x\r\ny\r\n"[..]),
        (b"a\r\nb\nc\r\nd", "b\nc", "x\ny\nz", b"a\r\nx\ny\nz\r\nd"),
        (b"a\r\nb\nc\r\nd", "a\nb\nc", "1\n2\n3\n4", b"1\r\n2\n3\n4\r\nd"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\nc", "b", "x\ny", b"a\r\nx\ny\nc"),
        (b"a\nb\r\nlast", "last", "x\ny", b"a\nb\r\nx\r\ny"),
        (b"a\r\nb\nlast", "last", "x\ny", b"a\r\nb\nx\ny"),
        (b"a\r\nb\r\n", "\nb", "", b"a\r\n"),
        (b"a\r\nb\r\n", "a\n", "", b"b\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\r\ny", b"a\r\nx\r\ny\n"),
        (b"a\r\r\nb", "\r\n", "-", b"a\r-b"),
        (b"a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\n", b"x\ny\nc\n"),
        (b"a\nb\r\nc", "a\r\nb\r\nc", "1\r\n2\r\n3", b"1\n2\r\n3"),
        (b"a\rb\nc\n", "a\rb\r\n", "x\r", b"x\rc\n"),
        (b"a\rb\r\n", "b", "c", b"a\rc\r\n"),
    ] {
        assert_bytes(one(content, old, new), expected);
    }
    assert_bytes(all(b"x\r\nx\nx\r\n", "x\n", "y\nz\n"), b"y\r\nz\r\ny\nz\ny\r\nz\r\n");
    assert_bytes(all(b"x\ny\nx\n", "x\r\n", "z\n"), b"z\ny\nz\n");
}

#[test]
fn new_text_has_the_line_endings_of_the_file_unless_exact() {
    for (content, old, new, matched, exact) in [
        (&b"a\nb\n"[..], "b", "x\r\ny\r\nz", &b"a\nx\ny\nz\n"[..], &b"a\nx\r\ny\r\nz\n"[..]),
        (b"a\nb\n", "b\n", "x\r\n", b"a\nx\n", b"a\nx\r\n"),
        (b"a\rb\nc\n", "\r", "\r\n", b"a\nb\nc\n", b"a\r\nb\nc\n"),
        (b"a\r\nb\r\n", "b", "x\ny\r\nz", b"a\r\nx\r\ny\r\nz\r\n", b"a\r\nx\ny\r\nz\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\ny", b"x\r\ny\r\n", b"x\ny\r\n"),
        (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n", b"x\ny\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n", b"x\r\ny\n"),
        (b"a\r\nb\nc", "c", "x\r\ny\nz", b"a\r\nb\nx\r\ny\nz", b"a\r\nb\nx\r\ny\nz"),
        (b"a\r\nb\nc", "a\r\nb", "x\ny", b"x\ny\nc", b"x\ny\nc"),
        (b"a\r\nb\nc", "a\nb", "x\ny", b"x\r\ny\nc", b"x\ny\nc"),
        (b"one line", "one", "1\r\n2\n", b"1\r\n2\n line", b"1\r\n2\n line"),
        (b"lone\rreturn", "lone", "1\r\n2", b"1\r\n2\rreturn", b"1\r\n2\rreturn"),
        (b"\xFF\xFEa\0\n\0b\0", "b", "x\r\n", b"\xFF\xFEa\0\n\0x\0\n\0", b"\xFF\xFEa\0\n\0x\0\r\0\n\0"),
        (b"caf\xE9\nb", "b", "x\r\n", b"caf\xE9\nx\n", b"caf\xE9\nx\r\n"),
    ] {
        assert_bytes(one(content, old, new), matched);
        assert_bytes(apply(content, Replacement::new(old, new).exact_line_endings()), exact);
    }
}

#[test]
fn line_endings_alone_are_changed_by_exact_bytes_only() {
    for (content, old, new, exact) in [
        (&b"a\nb\n"[..], "a\nb", "a\r\nb", &b"a\r\nb\n"[..]),
        (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        (b"a\r\nb\r\n", "\r\n", "\n", b"a\nb\n"),
        (b"a\nb\n", "\n", "\r\n", b"a\r\nb\r\n"),
    ] {
        let error = all(content, old, new).expect_err("nothing would change");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{old:?} to {new:?}: {error}");
        assert!(error.for_model().contains("line_endings"), "{}", error.for_model());
        assert_bytes(apply(content, Replacement::new(old, new).all().exact_line_endings()), exact);
    }
    // Lines of a mixed file end differently, so that there the endings are written as given.
    assert_bytes(one(b"a\nb\nc\r\n", "a\nb", "a\r\nb"), b"a\r\nb\nc\r\n");
    let error = one(b"a\nb\na\nb\n", "a\nb", "a\r\nb").expect_err("there are two");
    assert_eq!(error.kind(), ErrorKind::NotUnique);
}

#[test]
fn line_breaks_that_are_not_there_are_found_as_those_that_are() {
    let error = one(b"a\nb\na\nb\n", "a\r\nb", "x").expect_err("there are two");
    assert!(matches!(error.detail(), Some(ErrorDetail::NotUnique { count: 2, .. })), "{error:?}");
    for (content, old, new, is_the_same) in
        [(&b"a\nb"[..], "a\r\nb", "a\nb", true), (b"a\nb", "a\rb", "x", false), (b"a\nb", "a\r\nc", "x", false)]
    {
        let error = one(content, old, new).expect_err("not there");
        assert_eq!(error.kind(), ErrorKind::NoMatch, "{content:?} {old:?}");
        assert_eq!(error.for_model().contains("nothing is to be changed"), is_the_same, "{content:?} {old:?}");
    }
}

#[test]
fn a_final_newline_that_is_not_there_is_named() {
    let hint = "without a line break behind it";
    for (content, old, is_named) in [
        (&b"a\nb"[..], "b\n", true),
        (b"a\nb", "a\nb\n", true),
        (b"a\r\nb", "a\nb\n", true),
        (b"a\nb", "a\r\nb\r\n", true),
        (b"x x x", "x\n", true),
        (b"a\nb\n", "b\n\n", true),
        (b"a\nb", "c\n", false),
        (b"a\nb", "\n\n", false),
        (b"a\nb", "bb", false),
        (b"", "\n", false),
    ] {
        let error = one(content, old, "new").expect_err("not there");
        assert_eq!(error.for_model().contains(hint), is_named, "{:?} {old:?}", content.escape_ascii().to_string());
    }
}

#[test]
fn all_other_bytes_are_unchanged() {
    for (content, old, new, expected) in [
        (&b"\xEF\xBB\xBFa b"[..], "a", "x", &b"\xEF\xBB\xBFx b"[..]),
        (b"\xEF\xBB\xBFa b", "\u{FEFF}a", "\u{FEFF}x", b"\xEF\xBB\xBFx b"),
        (b"no newline", "newline", "end", b"no end"),
        (b"a\0\xFF\xFE\0key=1\0", "key=1", "key=22", b"a\0\xFF\xFE\0key=22\0"),
        (b"caf\xE9 na\xEFve", "naïve", "naïf", b"caf\xE9 na\xEFf"),
        (b"caf\xE9 na\xEFve", "café", "€", b"\x80 na\xEFve"),
        (b"\xFF\xFEa\0\r\0\n\0b\0", "a\nb", "b\n\u{1F600}", b"\xFF\xFEb\0\r\0\n\0\x3D\xD8\0\xDE"),
        (b"\xFE\xFF\0a", "a", "b", b"\xFE\xFF\0b"),
    ] {
        assert_bytes(one(content, old, new), expected);
    }
}

#[test]
fn multi_byte_encodings_are_preserved() {
    let encoding = Encoding::from_name("shift_jis").expect("known");
    let bytes = text::encode("これは日本語のテキストです。\r\n漢字とかな。\r\n", encoding).expect("encodes");
    let expected = text::encode("これは英語のテキストです。\r\n漢字\r\nとかな。\r\n", encoding).expect("encodes");
    let list = [Replacement::new("日本語", "英語"), Replacement::new("漢字", "漢字\n")];
    assert_eq!(edit::apply(&bytes, &list, MAX).map(|edited| edited.content), Ok(expected));
}

#[test]
fn a_character_that_the_encoding_lacks_is_an_error() {
    let error = one(b"caf\xE9 na\xEFve", "café", "日本").expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.for_model().contains("windows-1252"), "{}", error.for_model());
    assert_eq!(one(b"caf\xE9 na\xEFve", "日本", "x").expect_err("is not there").kind(), ErrorKind::NoMatch);
}

#[test]
fn a_list_is_applied_in_order_or_not_at_all() {
    let list = [Replacement::new("a", "b"), Replacement::new("b", "c").all(), Replacement::new("c c", "d")];
    let edited = edit::apply(b"a b", &list, MAX).expect("applies");
    assert_eq!((edited.content.as_slice(), edited.occurrences), (&b"d"[..], 4));
    let list = [Replacement::new("a", "b"), Replacement::new("a", "c")];
    let error = edit::apply(b"a", &list, MAX).expect_err("the first replacement removed it");
    assert!(matches!(error.detail(), Some(ErrorDetail::NoMatch { replacement: 1, .. })), "{error:?}");
}

#[test]
fn no_match_shows_the_nearest_lines() {
    let content = b"fn main() {\n    let total = 1;\n}\n";
    let error = one(content, "let  total = 1;\n}", "x").expect_err("not there");
    assert_eq!(
        error.for_model(),
        "Error: String not found in file: 'let  total = 1;\n}'\nMost similar: line 2:     let total = 1;"
    );
    let Some(ErrorDetail::NoMatch { replacement: 0, nearest, .. }) = error.detail() else { panic!("{error:?}") };
    assert_eq!((nearest[0].line, nearest[0].text.as_str()), (2, "    let total = 1;"));
}

#[test]
fn not_unique_counts_overlap_and_names_lines() {
    let not_unique = |error: Error| match error.detail() {
        Some(ErrorDetail::NotUnique { replacement: 0, count, lines }) => (*count, lines.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(not_unique(one(b"aaa", "aa", "b").expect_err("two places")), (2, vec![1]));
    assert_bytes(all(b"aaa", "aa", "b"), b"ba");
    let error = one(b"x\r\ny\r\nx\r\n", "x", "z").expect_err("two places");
    assert_eq!(
        error.for_model(),
        "Error: String 'x' appears 2 times in file (lines 1, 3). \
         Provide a more specific string with surrounding context, or replace all occurrences."
    );
    let error = one(b"a a\nb\na a a\n", "a", "z").expect_err("five places");
    assert!(error.for_model().contains("appears 5 times in file (lines 1, 3)"), "{}", error.for_model());
    let (count, lines) = not_unique(one("a\n".repeat(50).as_bytes(), "a", "b").expect_err("fifty places"));
    assert_eq!((count, lines), (50, (1..=20).collect()));
}

#[test]
fn sizes_are_checked_before_anything_is_allocated() {
    let content = vec![b'a'; 1 << 20];
    let error = all(&content, "a", &"x".repeat(20_000)).expect_err("20 GB");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let lines = b"a\r\n".repeat(1 << 18);
    assert_eq!(all(&lines, "a", &"x\n".repeat(10_000)).expect_err("7 GB").kind(), ErrorKind::TooLarge);
    let exact = |max| edit::apply(b"a\r\na", &[Replacement::new("a", "x\n").all()], max).map(|edited| edited.content);
    assert_bytes(exact(8), b"x\r\n\r\nx\r\n");
    assert_eq!(exact(7).expect_err("one over").kind(), ErrorKind::TooLarge);
    assert_eq!(exact(3).expect_err("the file itself").kind(), ErrorKind::TooLarge);
}

/// How long a test waits for work that is correct. This bounds a hang and says nothing about speed: the inputs are so large that
/// more than linear work takes far longer.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs `work` to its end, and fails if it hangs.
#[track_caller]
fn ends(work: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        work();
        sender.send(()).expect("the test waits");
    });
    if receiver.recv_timeout(HANG_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
        panic!("it has not ended after {HANG_TIMEOUT:?}");
    }
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn hostile_texts_cost_linear_time_and_small_messages() {
    ends(|| {
        let content = vec![b'a'; 8 << 20];
        let error = one(&content, &"a".repeat(4_000_000), "b").expect_err("many places");
        assert!(
            matches!(error.detail(), Some(ErrorDetail::NotUnique { count: 4_388_609, .. })),
            "{}",
            error.for_model()
        );
        assert!(error.for_model().len() < 2048);
        let error = one(&content, &"ab\n".repeat(1_700_000), "b").expect_err("5 MB that are not there");
        assert!(error.for_model().len() < 2048 && error.to_string().len() < 2048);
        let one_line = [b"x\r\n".as_slice(), &content].concat();
        assert_eq!(all(&one_line, "a", "b\n").map(|edited| edited.len()), Ok(3 + 3 * (8 << 20)));
    });
}

#[test]
fn a_diff_of_a_large_edit_takes_bounded_time() {
    // The one is compared for as long as there is time, the other is too large for that.
    for (lines, start) in [(130_000, "@@ -1,"), (200_000, "@@ -1,200000 +1,200000 @@\n")] {
        ends(move || {
            let old: String = (0..lines).map(|line| format!("{line}\n")).collect();
            let new: String = (0..lines).map(|line| format!("{}\n", line * 7 % lines)).collect();
            let diff = edit::diff(&VfsPath::root(), old.as_bytes(), new.as_bytes());
            assert!(diff.starts_with(&format!("--- a/\n+++ b/\n{start}")), "{}", &diff[..100]);
        });
    }
}

/// A character of a text, `\r\n` being one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Char(char),
    Newline(&'static str),
}

fn units(text: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        units.push(match char {
            '\n' => Unit::Newline("\n"),
            '\r' if chars.next_if_eq(&'\n').is_some() => Unit::Newline("\r\n"),
            char => Unit::Char(char),
        });
    }
    units
}

fn same(a: &Unit, b: &Unit) -> bool {
    matches!((a, b), (Unit::Newline(_), Unit::Newline(_))) || a == b
}

fn endings(units: &[Unit]) -> Vec<&'static str> {
    units.iter().filter_map(|unit| if let Unit::Newline(ending) = unit { Some(*ending) } else { None }).collect()
}

/// Replaces all, unit by unit, from the left, as an edit does where `old` is looked for with `\n` alone.
fn model(content: &str, old: &str, new: &str) -> Option<String> {
    let new = &matched(content, new);
    let (content, old) = (units(content), units(old));
    let mut out = String::new();
    let (mut at, mut count) = (0, 0);
    while at < content.len() {
        let place = content.get(at..at + old.len()).filter(|place| place.iter().zip(&old).all(|(a, b)| same(a, b)));
        let Some(place) = place else {
            push(&mut out, content[at]);
            at += 1;
            continue;
        };
        count += 1;
        at += old.len();
        let own = endings(place);
        let further =
            own.last().or(endings(&content[at..]).first()).or(endings(&content).last()).copied().unwrap_or("\n");
        let mut index = 0;
        for unit in units(new) {
            if let Unit::Newline(ending) = unit {
                let adapted = if ending == "\n" { own.get(index).copied().unwrap_or(further) } else { ending };
                out.push_str(adapted);
                index += 1;
            } else {
                push(&mut out, unit);
            }
        }
    }
    (count > 0).then_some(out)
}

/// New text with the line endings of a file that has one kind of them.
fn matched(content: &str, new: &str) -> String {
    let line_feeds = new.replace("\r\n", "\n");
    match (is_uniform(content), content.contains("\r\n")) {
        (true, true) => line_feeds.replace('\n', "\r\n"),
        (true, false) => line_feeds,
        (false, _) => new.to_owned(),
    }
}

/// Whether the file has line endings, all of one kind.
fn is_uniform(content: &str) -> bool {
    content.contains("\r\n") != content.replace("\r\n", "").contains('\n')
}

fn push(out: &mut String, unit: Unit) {
    match unit {
        Unit::Char(char) => out.push(char),
        Unit::Newline(ending) => out.push_str(ending),
    }
}

proptest! {
    #[test]
    fn an_edit_equals_the_naive_model(
        content in prop::collection::vec(prop::sample::select(vec!["a", "b", "\n", "\r\n", "\r"]), 0..24),
        old in "[ab\n]{1,3}",
        new in prop::collection::vec(prop::sample::select(vec!["a", "c", "\n", "\r\n"]), 0..5),
    ) {
        let (content, new) = (content.concat(), new.concat());
        let found = all(content.as_bytes(), &old, &new).map(|bytes| String::from_utf8(bytes).expect("text"));
        match model(&content, &old, &new) {
            Some(_) if old != new && old == new.replace("\r\n", "\n") && is_uniform(&content) => {
                prop_assert_eq!(found.expect_err("nothing would change").kind(), ErrorKind::InvalidArgument);
            }
            Some(expected) => prop_assert_eq!(found, Ok(expected)),
            None => prop_assert_eq!(found.expect_err("not there").kind(), ErrorKind::NoMatch),
        }
    }

    #[test]
    fn a_carriage_return_matches_bytes_first_and_line_breaks_otherwise(
        content in "[ab\r\n]{0,20}",
        new in "[c\r\n]{0,3}",
    ) {
        let found = all(content.as_bytes(), "a\r\n", &new).map(|bytes| String::from_utf8(bytes).expect("text")).ok();
        let expected = if content.contains("a\r\n") {
            Some(content.replace("a\r\n", &matched(&content, &new)))
        } else {
            model(&content, "a\n", &new.replace("\r\n", "\n"))
        };
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn bytes_beside_the_place_never_change(
        before in prop::collection::vec(any::<u8>(), 0..80),
        after in prop::collection::vec(any::<u8>(), 0..80),
        marked in any::<bool>(),
    ) {
        let mark: &[u8] = if marked { b"\0" } else { b"" };
        let content = [mark, &before, b"needle", &after].concat();
        let expected = [mark, &before, b"thread", &after].concat();
        match one(&content, "needle", "thread") {
            Ok(edited) => prop_assert_eq!(edited, expected),
            Err(error) => prop_assert!(!marked, "content with a NUL is edited as bytes: {}", error),
        }
    }

    #[test]
    fn a_diff_applied_to_the_old_text_gives_the_new(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
        let diff = edit::diff(&VfsPath::root(), old.as_bytes(), new.as_bytes());
        prop_assert_eq!(patch(&old, &diff), new);
    }
}

/// Applies a unified diff, checking every line of it against `old`.
fn patch(old: &str, diff: &str) -> String {
    let mut rest: Vec<&str> = old.split_inclusive('\n').collect();
    rest.reverse();
    let (mut out, mut taken) = (String::new(), 0);
    let lines: Vec<&str> = diff.split_inclusive('\n').skip(2).collect();
    for (at, line) in lines.iter().enumerate() {
        let ends_file = lines.get(at + 1).is_some_and(|next| next.starts_with('\\'));
        let body = if ends_file { line[1..].trim_end_matches('\n') } else { &line[1..] };
        match &line[..1] {
            "@" => {
                let (start, count) =
                    line[4..].split_once(' ').map_or(("", ""), |(old, _)| old.split_once(',').unwrap_or((old, "1")));
                let start: usize = start.parse().expect("a line number");
                let before = if count == "0" { start } else { start - 1 };
                while taken < before {
                    out.push_str(rest.pop().expect("a line before the hunk"));
                    taken += 1;
                }
            }
            " " | "-" => {
                assert_eq!(rest.pop(), Some(body));
                taken += 1;
                out.push_str(if line.starts_with(' ') { body } else { "" });
            }
            "+" => out.push_str(body),
            _ => {}
        }
    }
    while let Some(line) = rest.pop() {
        out.push_str(line);
    }
    out
}
