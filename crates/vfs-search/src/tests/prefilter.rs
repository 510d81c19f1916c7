//! Tests of files that a cached sketch rules out.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use vfs_core::search::{BinaryMode, InvertMatch, MatchBoundary, MultilineMode};
use vfs_core::{CaseMode, GrepOutput, GrepRequest};

use crate::testing::{TestContentSource, TestNode, TestTree, run_on};

/// Returns the files that each of the searches of `tree` opens, in turn.
fn opened(tree: TestTree, requests: &[GrepRequest]) -> Vec<Vec<String>> {
    let tree = Arc::new(tree.with_sketch_cache());
    let search = |req: &GrepRequest| {
        tree.opened.lock().expect("not poisoned").clear();
        run_on(Arc::clone(&tree), req.clone(), 1, 1).expect("it searches");
        tree.opened.lock().expect("not poisoned").clone()
    };
    requests.iter().map(search).collect()
}

fn text(content: &str) -> TestNode {
    TestNode::File(Bytes::copy_from_slice(content.as_bytes()))
}

#[test]
fn files_that_cannot_contain_the_text_are_not_opened_again() {
    let files = || {
        TestTree::of([
            ("/a", text("the first text\n")),
            ("/b", text("the second text\n")),
            ("/c", TestNode::File(Bytes::from_static(b"binary\0text"))),
        ])
    };
    for lend in [TestContentSource::Bytes, TestContentSource::Reader(usize::MAX), TestContentSource::Reader(3)] {
        let literal = GrepRequest::literal;
        let requests = [
            literal("none of them"),
            literal("none of them"),
            literal("second"),
            literal("SECOND").case(CaseMode::Insensitive),
            GrepRequest::regex(r"\w+cond t\w+"),
            GrepRequest::regex(r"\w+"),
            literal("second").invert(),
            literal("binary").binary(BinaryMode::Text),
            literal("sec"),
        ];
        let all = vec!["/a", "/b", "/c"];
        let found = opened(files().lend(lend), &requests);
        assert_eq!(found[0], all, "{lend:?}");
        let expected = [vec![], vec!["/b"], vec!["/b"], vec!["/b"], all.clone(), all.clone(), vec!["/c"], all];
        assert_eq!(found[1..], expected, "{lend:?}");
    }
}

#[test]
fn the_sketch_of_a_large_file_is_built_while_it_is_read() {
    let line = "some line of a large file\n";
    let content = line.repeat((3 << 20) / line.len());
    let tree = TestTree::of([("/large", text(&content))]).lend(TestContentSource::Reader(usize::MAX));
    let literal = GrepRequest::literal;
    // A search that ends early has not read the whole file.
    let early = literal("some line").output(GrepOutput::Files);
    let found = opened(tree, &[early.clone(), early, literal("missing"), literal("missing"), literal("large file")]);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 0, 1]);
}

#[test]
fn files_that_may_be_problems_are_opened() {
    // With so many repetitions, a line may not be so long.
    const MOST: usize = (1 << 30) / 9600;
    let lines = |length: usize| {
        let line = format!("{}\n", "x".repeat(99));
        text(&line.repeat(length / 100 + 1)[..length])
    };
    let tree = TestTree::of([
        ("/large", lines(MOST)),
        ("/small", lines(MOST - 1)),
        ("/utf16", TestNode::File(Bytes::from_static(b"\xff\xfeh\0i\0\n\0"))),
        ("/utf16-behind-a-mark", TestNode::File(Bytes::from_static(b"\xef\xbb\xbf\xff\xfeenfn"))),
    ]);
    let heavy = GrepRequest::regex("(?:needle){1600}").multiline();
    let small = GrepRequest::literal("needle").max_file_size(100);
    let found = opened(tree, &[GrepRequest::literal("needle"), GrepRequest::literal("needle"), heavy, small]);
    let transcoded = ["/utf16", "/utf16-behind-a-mark"];
    assert_eq!(found[1], transcoded);
    assert_eq!(found[2], [&["/large"][..], &transcoded].concat());
    assert_eq!(found[3], [&["/large", "/small"][..], &transcoded].concat());
}

/// Generates texts of few letters, so that patterns are found in some of them.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => "[abkKsS_ ]{1,6}".prop_map(String::into_bytes),
        1 => Just("\n".into()),
        1 => Just("\r\n".into()),
        1 => Just("\u{212a}\u{17f}é".into()),
        1 => Just(b"\xff\xfe".to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(b"\xef\xbb\xbf\xff\xfe".to_vec()),
        1 => Just(b"\0".to_vec()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Parts between two literals of an expression.
const MIDDLES: [&str; 11] =
    [".", r"\w+", "[ab]", "(?:ab|(?i)sk)", "$", "(?:sab)?", "+", "|", "[ak&&aK]", "[k&&K]", "[a~~A]"];

fn request() -> impl Strategy<Value = GrepRequest> {
    let pattern = prop_oneof![
        "[abkKsS]{3,7}".prop_map(GrepRequest::literal),
        ("[abks]{1,3}", "[abks]{4,5}").prop_map(|(above, below)| GrepRequest::literal(format!("{above}\n{below}"))),
        ("[abks]{2,4}", prop::sample::select(MIDDLES.to_vec()), "[abks]{0,4}")
            .prop_map(|(before, middle, after)| GrepRequest::regex(format!("{before}{middle}{after}"))),
        Just(GrepRequest::literal("\u{212a}sab")),
    ];
    let case = prop::sample::select(vec![CaseMode::Sensitive, CaseMode::Insensitive, CaseMode::Smart]);
    let output = prop::sample::select(vec![GrepOutput::Matches, GrepOutput::Files, GrepOutput::Counts]);
    let binary = prop::sample::select(vec![BinaryMode::Skip, BinaryMode::Text]);
    let ways = (
        prop::sample::select(vec![MatchBoundary::Anywhere, MatchBoundary::Word]),
        prop::sample::select(vec![MultilineMode::SingleLine, MultilineMode::MultiLine]),
        prop::sample::select(vec![InvertMatch::No, InvertMatch::Yes]),
    );
    (pattern, case, output, binary, ways, prop::option::weighted(0.2, 1_u64..40)).prop_map(
        |(req, case, output, binary, ways, size)| {
            let mut req = req.case(case).output(output).binary(binary);
            (req.boundary, req.span, req.invert) = ways;
            req.max_file_size = size;
            req
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cached_sketches_change_no_result(
        contents in prop::collection::vec(content(), 1..8),
        requests in prop::collection::vec(request(), 1..6),
        lend in prop::sample::select(vec![TestContentSource::Bytes, TestContentSource::Reader(3)]),
    ) {
        let names: BTreeSet<_> = (0..contents.len()).map(|n| format!("/f{n}")).collect();
        let nodes = || names.iter().map(String::as_str).zip(contents.iter().map(|bytes| TestNode::File(bytes.clone().into())));
        let (plain, with_sketch_cache) = (Arc::new(TestTree::of(nodes())), Arc::new(TestTree::of(nodes()).lend(lend).with_sketch_cache()));
        for req in requests.iter().chain(&requests) {
            let expected = run_on(Arc::clone(&plain), req.clone(), 1, 1).expect("it searches");
            let found = run_on(Arc::clone(&with_sketch_cache), req.clone(), 1, 1).expect("it searches");
            prop_assert_eq!(found, expected, "{:?}", req);
        }
    }
}
