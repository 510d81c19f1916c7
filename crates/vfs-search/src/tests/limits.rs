//! Tests of the limits of a search, and of the part of a line that it reports.

use vfs_core::search::Submatch;
use vfs_core::{GrepOutput, GrepRequest, TruncationReason};

use super::grep::{bytes, matches, one};
use crate::testing::{TestTree, run};

#[test]
fn limits_stop_and_say_whether_there_is_more() {
    let tree = TestTree::new([("/a", "hit\nx\nhit\nhit\n"), ("/b", "hit\ny\n"), ("/c", "z\n")]);
    let limit = Some(TruncationReason::Limit);
    let hit = || GrepRequest::literal("hit");
    for (req, expected, truncated) in [
        (hit().limit(0), &[][..], limit),
        (hit().limit(1), &["/a:1:hit"], limit),
        (hit().limit(3), &["/a:1:hit", "/a:3:hit", "/a:4:hit"], limit),
        (hit().limit(4), &["/a:1:hit", "/a:3:hit", "/a:4:hit", "/b:1:hit"], None),
        (hit().limit(1).context(0, 1), &["/a:1:hit", "/a-2-x"], limit),
        (hit().limit(1).context(1, 0), &["/a:1:hit"], limit),
        (hit().limit(2).context(0, 1), &["/a:1:hit", "/a-2-x", "/a:3:hit"], limit),
        (hit().limit(1).context(0, 9), &["/a:1:hit", "/a-2-x"], limit),
        (hit().limit_per_file(1).context(0, 9), &["/a:1:hit", "/a-2-x", "/b:1:hit", "/b-2-y"], limit),
        (hit().limit_per_file(1).limit(2).context(0, 2), &["/a:1:hit", "/a-2-x", "/b:1:hit", "/b-2-y"], limit),
        (
            hit().limit_per_file(3).context(0, 9),
            &["/a:1:hit", "/a-2-x", "/a:3:hit", "/a:4:hit", "/b:1:hit", "/b-2-y"],
            None,
        ),
        (hit().limit(4).context(0, 1), &["/a:1:hit", "/a-2-x", "/a:3:hit", "/a:4:hit", "/b:1:hit", "/b-2-y"], None),
        (hit().limit_per_file(0), &[], limit),
        (hit().limit_per_file(1), &["/a:1:hit", "/b:1:hit"], limit),
        (hit().limit_per_file(1).context(1, 1), &["/a:1:hit", "/a-2-x", "/b:1:hit", "/b-2-y"], limit),
        (hit().limit_per_file(3), &["/a:1:hit", "/a:3:hit", "/a:4:hit", "/b:1:hit"], None),
        (hit().output(GrepOutput::Files).limit(1), &["/a"], limit),
        (hit().output(GrepOutput::Files).limit(2), &["/a", "/b"], None),
        (hit().output(GrepOutput::Counts).limit(1), &["/a:3"], limit),
        (hit().output(GrepOutput::Counts).limit_per_file(2), &["/a:2", "/b:1"], limit),
    ] {
        let outcome = run(&tree, &req);
        assert_eq!(
            (outcome.lines().as_slice(), outcome.summary.truncated),
            (&*expected.iter().map(|line| line.to_string()).collect::<Vec<_>>(), truncated),
            "{req:?}"
        );
    }
}

#[test]
fn context_ends_before_a_match_beyond_the_limit() {
    let text = "m1\nc2\nc3\nm4\nc5\nm6\n";
    let lines = GrepRequest::literal("m");
    let blocks = GrepRequest::regex(r"^m\d").multiline();
    for req in [lines, blocks] {
        for (after, expected) in [
            (0, &["/f:1:m1"][..]),
            (1, &["/f:1:m1", "/f-2-c2"]),
            (2, &["/f:1:m1", "/f-2-c2", "/f-3-c3"]),
            (4, &["/f:1:m1", "/f-2-c2", "/f-3-c3"]),
        ] {
            for req in [req.clone().limit(1), req.clone().limit_per_file(1)] {
                let outcome = run(&TestTree::new([("/f", text)]), &req.context(1, after));
                assert_eq!(outcome.lines(), expected);
                assert_eq!((outcome.summary.matches, outcome.summary.truncated), (1, Some(TruncationReason::Limit)));
            }
        }
    }
    let spanning = GrepRequest::regex(r"m\d\r\n.").multiline().limit(1).context(0, 1);
    assert_eq!(one("m1\r\na\r\nm2\r\nb\r\n", &spanning), ["/f:1:m1\r\na"]);
}

#[test]
fn long_lines_are_cut_in_the_result() {
    let text = format!("{}hit{}\n", "é".repeat(10), "x".repeat(100));
    let outcome = run(&TestTree::new([("/f", text.as_str())]), &GrepRequest::literal("hit").max_line_bytes(21));
    let found = matches(&outcome)[0];
    assert_eq!((found.text.as_str(), found.cut, found.column), (&text[..21], true, 21));
    assert_eq!(found.submatches, [Submatch { start: 20, end: 21 }]);
}

#[test]
fn only_the_first_of_very_many_submatches_are_reported() {
    const MOST: usize = 1 << 16;
    let text = format!("{}\n", "x".repeat(MOST + 10));
    let tree = TestTree::new([("/f", text.as_str())]);
    let all = |req: GrepRequest| req.max_line_bytes(u64::MAX);
    for req in [GrepRequest::literal("x"), GrepRequest::regex("[xy]"), GrepRequest::regex("[xy]").multiline()] {
        let outcome = run(&tree, &all(req.clone()));
        let found = matches(&outcome);
        assert_eq!((found.len(), found[0].column, found[0].submatches.len()), (1, 1, MOST), "{req:?}");
        assert_eq!(found[0].submatches[MOST - 1].start, MOST - 1, "{req:?}");
    }
}

#[test]
fn large_files_are_searched_to_their_end() {
    let mut text = "some line of text\n".repeat(100_000);
    text.push_str("needle\n");
    let tree = TestTree::new([("/large", text.as_str())]);
    assert_eq!(
        run(&tree, &GrepRequest::literal("needle").context(1, 0)).lines(),
        ["/large-100000-some line of text", "/large:100001:needle"]
    );
    let outcome = run(&tree, &GrepRequest::literal("needle").max_file_size(1000));
    assert_eq!((outcome.lines().len(), outcome.summary.skipped.too_large), (0, 1));
    assert_eq!(
        run(&tree, &GrepRequest::regex("text.needle").multiline()).lines(),
        ["/large:100000:some line of text\nneedle"]
    );
}

#[test]
fn a_line_that_exceeds_the_buffer_is_a_problem_of_its_file() {
    let tree = TestTree::new([("/b", "hit\n")]).with("/a", bytes(vec![b'x'; (64 << 20) + 100]));
    let outcome =
        crate::testing::run_on(std::sync::Arc::new(tree), GrepRequest::literal("hit"), 1, 1).expect("it searches");
    assert_eq!(outcome.lines(), ["/a! too_large", "/b:1:hit"]);
}
