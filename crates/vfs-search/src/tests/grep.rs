use bytes::Bytes;
use proptest::prelude::*;
use vfs_core::search::{BinaryMode, LinkMode, Submatch};
use vfs_core::{CaseMode, ErrorKind, GrepEvent, GrepMatch, GrepOutput, GrepRequest, TruncationReason};

use crate::testing::{SearchOutput, TestNode, TestTree, path, run, try_run};

pub(super) fn bytes(content: impl Into<Vec<u8>>) -> TestNode {
    TestNode::File(Bytes::from(content.into()))
}

pub(super) fn one(text: &str, req: &GrepRequest) -> Vec<String> {
    run(&TestTree::new([("/f", text)]), req).lines()
}

pub(super) fn matches(outcome: &SearchOutput) -> Vec<&GrepMatch> {
    let lines = outcome.events.iter().filter_map(|event| match event {
        GrepEvent::Match(line) => Some(line),
        _ => None,
    });
    lines.collect()
}

#[test]
fn matches_come_sorted_by_path_and_line() {
    let tree = TestTree::new([
        ("/a/x", "hit\n"),
        ("/a-b", "hit\n"),
        ("/a.txt", "no\nhit\nhit"),
        ("/a0", "hit"),
        ("/b", "miss"),
    ]);
    let outcome = run(&tree, &GrepRequest::literal("hit"));
    assert_eq!(outcome.lines(), ["/a-b:1:hit", "/a.txt:2:hit", "/a.txt:3:hit", "/a/x:1:hit", "/a0:1:hit"]);
    let summary = outcome.summary;
    assert_eq!((summary.matches, summary.files_matched, summary.files_searched, summary.truncated), (5, 4, 5, None));
}

#[test]
fn lines_end_at_line_feeds_alone() {
    let text = "a\u{c}hit\nb\u{2028}hit\nc\rhit\r\nd\u{85}hit";
    assert_eq!(
        one(text, &GrepRequest::literal("hit")),
        ["/f:1:a\u{c}hit", "/f:2:b\u{2028}hit", "/f:3:c\rhit", "/f:4:d\u{85}hit"]
    );
}

#[test]
fn a_dollar_matches_before_both_line_endings() {
    for (regex, text, expected) in [
        ("foo$", "foo\r\nfoo bar\r\nfoo\nfoo", &["/f:1:foo", "/f:3:foo", "/f:4:foo"][..]),
        ("^$", "\r\nx\r\n\n", &["/f:1:", "/f:3:"]),
        ("^b", "a\rb\nb", &["/f:2:b"]),
        ("(?:a|b)$", "xa\r\nby", &["/f:1:xa"]),
    ] {
        assert_eq!(one(text, &GrepRequest::regex(regex)), expected, "{regex} {text:?}");
    }
    let outcome = run(&TestTree::new([("/f", "foo\r\n")]), &GrepRequest::regex("foo$"));
    assert_eq!(matches(&outcome)[0].submatches, [Submatch { start: 0, end: 3 }]);
}

#[test]
fn options_choose_what_matches() {
    let text = "one two\nTwo three\ntwofold\n";
    for (req, expected) in [
        (GrepRequest::literal("two"), &["/f:1:one two", "/f:3:twofold"][..]),
        (GrepRequest::literal("two").case(CaseMode::Insensitive), &["/f:1:one two", "/f:2:Two three", "/f:3:twofold"]),
        (GrepRequest::literal("Two").case(CaseMode::Smart), &["/f:2:Two three"]),
        (GrepRequest::literal("two").whole_word(), &["/f:1:one two"]),
        (GrepRequest::literal("two").invert(), &["/f:2:Two three"]),
        (GrepRequest::literal("t.o"), &[]),
        (GrepRequest::regex("t.o"), &["/f:1:one two", "/f:3:twofold"]),
        (GrepRequest::regex("two.Two").multiline(), &["/f:1:one two\nTwo three"]),
        (GrepRequest::literal("two\nTwo"), &["/f:1:one two\nTwo three"]),
        (GrepRequest::regex("^twofold$").multiline(), &["/f:3:twofold"]),
        (GrepRequest::literal("two").output(GrepOutput::Files), &["/f"]),
        (GrepRequest::literal("two").output(GrepOutput::Counts), &["/f:2"]),
        (GrepRequest::literal("absent").output(GrepOutput::Counts), &[]),
        (GrepRequest::literal("two").output(GrepOutput::Counts).context(1, 1), &["/f:2"]),
    ] {
        assert_eq!(one(text, &req), expected, "{req:?}");
    }
}

#[test]
fn columns_ranges_and_offsets_are_bytes() {
    let outcome = run(&TestTree::new([("/f", "x\né hit, hit\n")]), &GrepRequest::literal("hit"));
    let found = matches(&outcome)[0];
    assert_eq!((found.line, found.column, found.byte_offset), (2, 4, 2));
    assert_eq!(found.submatches, [Submatch { start: 3, end: 6 }, Submatch { start: 8, end: 11 }]);
    let outcome = run(&TestTree::new([("/f", "a\nb hit\n")]), &GrepRequest::literal("hit").invert());
    assert_eq!((matches(&outcome)[0].column, matches(&outcome)[0].submatches.len()), (0, 0));
}

#[test]
fn ranges_of_a_multiline_match_are_of_its_whole_text() {
    let outcome = run(&TestTree::new([("/f", "x\nab\r\ncdb\r\ncd\n")]), &GrepRequest::regex(r"b.{2}c").multiline());
    let found = matches(&outcome);
    assert_eq!(found[0].text, "ab\r\ncdb\r\ncd");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].line, found[0].column), (2, 2));
    assert_eq!(found[0].submatches, [Submatch { start: 1, end: 5 }, Submatch { start: 6, end: 10 }]);
}

#[test]
fn context_is_marked_and_never_counted() {
    let text = "1\n2 hit\n3\n4\n5\n6 hit\n7\n";
    for (req, expected) in [
        (GrepRequest::literal("hit").context(1, 0), &["/f-1-1", "/f:2:2 hit", "/f-5-5", "/f:6:6 hit"][..]),
        (GrepRequest::literal("hit").context(0, 1), &["/f:2:2 hit", "/f-3-3", "/f:6:6 hit", "/f-7-7"]),
        (
            GrepRequest::literal("hit").context(2, 2),
            &["/f-1-1", "/f:2:2 hit", "/f-3-3", "/f-4-4", "/f-5-5", "/f:6:6 hit", "/f-7-7"],
        ),
    ] {
        let outcome = run(&TestTree::new([("/f", text)]), &req);
        assert_eq!(outcome.lines(), expected, "{req:?}");
        assert_eq!(outcome.summary.matches, 2);
    }
}

#[test]
fn adjacent_multiline_matches_are_matches_of_their_own() {
    let text = "m1\nm2\nm3\nx\nm5\n";
    let m = || GrepRequest::regex(r"^m\d").multiline();
    for (req, expected) in [
        (m(), &["/f:1:m1", "/f:2:m2", "/f:3:m3", "/f:5:m5"][..]),
        (m().output(GrepOutput::Counts), &["/f:4"]),
        (m().output(GrepOutput::Counts).limit_per_file(2), &["/f:2"]),
        (m().limit_per_file(1), &["/f:1:m1"]),
        (m().limit(2), &["/f:1:m1", "/f:2:m2"]),
        (m().invert(), &["/f:4:x"]),
        (GrepRequest::regex(r"1\nm|2|3").multiline(), &["/f:1:m1\nm2", "/f:3:m3"]),
        (GrepRequest::regex(r"m\d\n").multiline(), &["/f:1:m1", "/f:2:m2", "/f:3:m3", "/f:5:m5"]),
    ] {
        assert_eq!(one(text, &req), expected, "{req:?}");
    }
    let outcome = run(&TestTree::new([("/f", "\u{feff}x\nab\r\nbb\n")]), &GrepRequest::regex("b").multiline());
    let found: Vec<_> = matches(&outcome)
        .iter()
        .map(|found| (found.line, found.column, found.byte_offset, found.submatches.len()))
        .collect();
    assert_eq!(found, [(2, 2, 5, 1), (3, 1, 9, 2)]);
}

#[test]
fn the_carriage_return_of_a_line_ending_is_no_match_by_itself() {
    let text = "a\r\nab\r\n\r\na \r\na\n";
    for (req, expected) in [
        (GrepRequest::regex("[^a]"), &["/f:2:ab", "/f:4:a "][..]),
        (GrepRequest::regex("[^a]").output(GrepOutput::Counts), &["/f:2"]),
        (GrepRequest::regex("[^a]").invert(), &["/f:1:a", "/f:3:", "/f:5:a"]),
        (GrepRequest::regex("[^a]").context(1, 0), &["/f-1-a", "/f:2:ab", "/f-3-", "/f:4:a "]),
        (GrepRequest::regex(r"\s$"), &["/f:4:a "]),
        (GrepRequest::regex("[^a\\n]").multiline(), &["/f:2:ab", "/f:4:a "]),
        (GrepRequest::regex("^$"), &["/f:3:"]),
        (GrepRequest::regex("a$"), &["/f:1:a", "/f:5:a"]),
        (GrepRequest::literal("b\r\n\r\na"), &["/f:2:ab\r\n\r\na "]),
        (GrepRequest::literal(" \na"), &["/f:4:a \r\na"]),
        (GrepRequest::literal("a\r\na\r\n"), &[]),
    ] {
        assert_eq!(one(text, &req), expected, "{req:?}");
    }
    assert_eq!(one("a\r", &GrepRequest::regex("[^a]")), ["/f:1:a\r"]);
}

#[test]
fn files_are_chosen_by_glob_and_type_before_they_are_opened() {
    let tree =
        || TestTree::new([("/Makefile", "hit"), ("/src/a.rs", "hit"), ("/src/a.py", "hit"), ("/target/b.rs", "hit")]);
    let hit = || GrepRequest::literal("hit").output(GrepOutput::Files);
    for (req, expected) in [
        (hit().glob("*.rs"), &["/src/a.rs", "/target/b.rs"][..]),
        (hit().glob("*.rs").glob("!target"), &["/src/a.rs"]),
        (hit().glob("!*.rs"), &["/Makefile", "/src/a.py"]),
        (hit().glob("src/**"), &["/src/a.py", "/src/a.rs"]),
        (hit().file_type("rust"), &["/src/a.rs", "/target/b.rs"]),
        (hit().file_type("make").file_type("py"), &["/Makefile", "/src/a.py"]),
        (hit().file_type("rust").glob("!target/**"), &["/src/a.rs"]),
        (hit().path(path("/src/a.py")).file_type("rust").glob("*.rs"), &["/src/a.py"]),
        (hit().path(path("/src")).glob("/a.rs"), &["/src/a.rs"]),
    ] {
        let tree = tree();
        assert_eq!(run(&tree, &req).lines(), expected, "{req:?}");
    }
    let tree = std::sync::Arc::new(tree());
    let outcome = crate::testing::run_on(std::sync::Arc::clone(&tree), hit().glob("*.py"), 1, 1).expect("it searches");
    assert_eq!(outcome.lines(), ["/src/a.py"]);
    assert_eq!(*tree.opened.lock().expect("not poisoned"), ["/src/a.py"]);
}

#[test]
fn invalid_requests_are_refused() {
    let tree = TestTree::new([("/f", "x")]);
    for (req, kind) in [
        (GrepRequest::literal(""), ErrorKind::InvalidArgument),
        (GrepRequest::regex("("), ErrorKind::InvalidPattern),
        (GrepRequest::literal("x").glob("["), ErrorKind::InvalidPattern),
        (GrepRequest::literal("x").glob("!../x"), ErrorKind::InvalidPattern),
        (GrepRequest::literal("x").file_type("klingon"), ErrorKind::InvalidArgument),
        (GrepRequest::literal("x").context(10_001, 0), ErrorKind::InvalidArgument),
        (GrepRequest::literal("x").max_line_bytes(0), ErrorKind::InvalidArgument),
        (GrepRequest::literal("x").path(path("/nothing")), ErrorKind::NotFound),
    ] {
        assert_eq!(try_run(&tree, &req).expect_err("refused").kind(), kind, "{req:?}");
    }
}

#[test]
fn binary_files_are_left_out_and_counted() {
    let late = [vec![b'x'; 1 << 20], b"\nhit\0\n".to_vec()].concat();
    let tree = TestTree::new([("/text", "hit\n")])
        .with("/nul", bytes(&b"hit\nx\0\n"[..]))
        .with("/near", bytes([vec![b'x'; 100_000], b"\0\nhit\n".to_vec()].concat()))
        .with("/late", bytes(late));
    let outcome = run(&tree, &GrepRequest::literal("hit"));
    assert_eq!(outcome.lines(), ["/late:2:hit\0", "/text:1:hit"]);
    assert_eq!((outcome.summary.skipped.binary, outcome.summary.files_searched), (2, 2));
    let outcome = run(&tree, &GrepRequest::literal("hit").binary(BinaryMode::Text).output(GrepOutput::Files));
    assert_eq!(outcome.lines(), ["/late", "/near", "/nul", "/text"]);
}

#[test]
fn encodings_with_a_mark_are_searched_as_text() {
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(order).collect()
    };
    let text = "first\r\n日本 hit\r\n";
    let tree = TestTree::new([("/mark", "\u{feff}hit at 1\nx\nhit\n")])
        .with("/be", bytes(utf16(text, u16::to_be_bytes)))
        .with("/le", bytes(utf16(text, u16::to_le_bytes)))
        .with("/latin", bytes(&b"caf\xe9 hit\n"[..]));
    let outcome = run(&tree, &GrepRequest::literal("hit"));
    assert_eq!(
        outcome.lines(),
        ["/be:2:日本 hit", "/latin:1:caf\u{fffd} hit", "/le:2:日本 hit", "/mark:1:hit at 1", "/mark:3:hit"]
    );
    let offsets: Vec<_> = matches(&outcome).iter().map(|found| found.byte_offset).collect();
    assert_eq!(offsets, [7, 0, 7, 0, 14]);
    assert_eq!(run(&tree, &GrepRequest::regex("^hit at")).lines(), ["/mark:1:hit at 1"]);
}

#[test]
fn unsearchable_files_are_problems_and_the_others_are_searched() {
    let tree = TestTree::new([("/a", "hit"), ("/z", "hit")])
        .with("/dir", TestNode::LockedDirectory)
        .with("/locked", TestNode::Locked)
        .with("/pipe", TestNode::Fifo);
    let outcome = run(&tree, &GrepRequest::literal("hit"));
    assert_eq!(
        outcome.lines(),
        ["/a:1:hit", "/dir! permission_denied", "/locked! permission_denied", "/pipe! unsupported", "/z:1:hit"]
    );
}

#[test]
fn links_are_counted_or_followed() {
    let tree = TestTree::new([("/d/x", "hit"), ("/f", "hit")])
        .with("/l-dir", TestNode::Link("/d"))
        .with("/l-file", TestNode::Link("/f"))
        .with("/l-out", TestNode::Link("outside"))
        .with("/d/loop", TestNode::Link("/d"));
    let outcome = run(&tree, &GrepRequest::literal("hit"));
    assert_eq!(outcome.lines(), ["/d/x:1:hit", "/f:1:hit", "/l-out! path_escape"]);
    assert_eq!(outcome.summary.skipped.links, 3);
    let outcome = run(&tree, &GrepRequest::literal("hit").links(LinkMode::Follow));
    assert_eq!(outcome.lines(), ["/d/x:1:hit", "/f:1:hit", "/l-file:1:hit", "/l-out! path_escape"]);
    assert_eq!(run(&tree, &GrepRequest::literal("hit").path(path("/l-file"))).lines(), ["/l-file:1:hit"]);
}

#[test]
fn hidden_and_ignored_files_are_left_out_and_counted() {
    let tree = TestTree::new([("/.gitignore", "*.log"), ("/.env", "hit"), ("/a.log", "hit"), ("/b", "hit")]);
    let outcome = run(&tree, &GrepRequest::literal("hit"));
    assert_eq!(outcome.lines(), ["/b:1:hit"]);
    assert_eq!((outcome.summary.skipped.hidden, outcome.summary.skipped.ignored), (2, 1));
    for file in ["/.env", "/a.log"] {
        assert_eq!(run(&tree, &GrepRequest::literal("hit").path(path(file))).lines(), [format!("{file}:1:hit")]);
    }
}

fn content() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![Just("a"), Just("b"), Just("ab"), Just("é"), Just(" "), Just("\n"), Just("\r\n"), Just("\r")],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

/// Returns the lines of `text`, each without its ending.
fn naive_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n')
        .map(|line| line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line)))
        .collect()
}

/// Returns what a search must print, and whether there are more than `limit` matches.
fn naive_search(
    files: &[(String, &String)],
    literal: &str,
    (before, after): (usize, usize),
    limit: Option<u64>,
) -> (Vec<String>, bool) {
    let mut printed = Vec::new();
    let mut room = limit.map_or(usize::MAX, |limit| usize::try_from(limit).expect("small"));
    let mut more = false;
    for (path, text) in files {
        let lines = naive_lines(text);
        let mut hits: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].contains(literal)).collect();
        // Context does not extend beyond a match that the limit leaves out.
        let beyond = hits.get(room).copied();
        more |= beyond.is_some();
        hits.truncate(room);
        room -= hits.len();
        for (n, line) in lines.iter().enumerate().take(beyond.unwrap_or(usize::MAX)) {
            let is_near = hits.iter().any(|hit| n + before >= *hit && n <= hit + after);
            if hits.contains(&n) {
                printed.push(format!("{path}:{}:{line}", n + 1));
            } else if is_near {
                printed.push(format!("{path}-{}-{line}", n + 1));
            }
        }
    }
    (printed, more)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_search_finds_what_a_naive_one_finds(
        contents in prop::collection::vec(content(), 1..6),
        literal in prop_oneof![Just("a"), Just("ab"), Just("é"), Just("ba")],
        before in 0_u32..3,
        after in 0_u32..3,
        limit in prop::option::of(0_u64..6),
    ) {
        let files: Vec<_> = contents.iter().enumerate().map(|(n, text)| (format!("/{n}"), text)).collect();
        let tree = TestTree::new(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let mut req = GrepRequest::literal(literal).context(before, after);
        req.limit = limit;
        let outcome = run(&tree, &req);
        let (expected, more) = naive_search(&files, literal, (before as usize, after as usize), limit);
        prop_assert_eq!(outcome.lines(), expected);
        prop_assert_eq!(outcome.summary.truncated, (more || limit == Some(0)).then_some(TruncationReason::Limit));
        for line in matches(&outcome) {
            for submatch in &line.submatches {
                prop_assert_eq!(&line.text[submatch.start..submatch.end], literal);
            }
        }
    }
}

proptest! {
    /// The literal and the expression are searched in different ways.
    #[test]
    fn a_literal_is_found_as_its_expression_is(
        pieces in prop::collection::vec(prop::sample::select(vec!["ab", "a", "b", "\n", "\r\n", "\r", "é", "\u{feff}", " "]), 0..60),
        broken in any::<bool>(),
        needle in "[ab]{1,3}",
        output in prop::sample::select(vec![GrepOutput::Matches, GrepOutput::Counts, GrepOutput::Files]),
        limit_per_file in prop::option::of(0_u64..4),
        max_line_bytes in prop::option::of(1_u64..8),
    ) {
        let mut content = pieces.concat().into_bytes();
        if broken {
            content.splice(0..0, *b"\xffab ");
        }
        let tree = TestTree::of([("/a", bytes(content.clone())), ("/b", bytes([b"\xef\xbb\xbf".to_vec(), content].concat()))]);
        let outcome = |req: GrepRequest| {
            let mut req = req.output(output);
            (req.limit_per_file, req.max_line_bytes) = (limit_per_file, max_line_bytes);
            run(&tree, &req)
        };
        prop_assert_eq!(outcome(GrepRequest::literal(&*needle)), outcome(GrepRequest::regex(format!("(?:{needle})"))));
    }
}
