//! Tests of the ranges that are reported in a line, or in the lines of a multiline match.

use grep_matcher::Matcher as _;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use proptest::prelude::*;
use vfs_core::search::Submatch;
use vfs_core::{GrepOutput, GrepRequest};

use super::grep::{matches, one};
use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::testing::{SearchOutput, TestTree, run, run_on};

/// Returns the matching lines of an outcome, including all lines of a multiline match.
fn lines_of(outcome: &SearchOutput) -> Vec<u64> {
    let lines = matches(outcome).into_iter().filter(|found| found.kind == vfs_core::search::LineKind::Match);
    lines.flat_map(|found| found.line..=found.line + found.text.matches('\n').count() as u64).collect()
}

#[test]
fn every_line_of_a_multiline_match_is_reported() {
    let mixed = "a\n\n\n\nb\nc\n";
    for (regex, text, expected) in [
        (r"^\s*$", mixed, &[2, 3, 4][..]),
        (r"\s*$", mixed, &[1, 2, 3, 4, 5, 6]),
        (r"^\s*", mixed, &[1, 2, 3, 4, 5, 6]),
        (r"x*(?-u:)|\n", mixed, &[1, 2, 3, 4, 5, 6]),
        (r"\s*$", "a\nb", &[1, 2]),
        (r"x*\s?$", "a\nb", &[1, 2]),
        (r"\s*$", "a\n\nlast", &[1, 2, 3]),
        (r"\s*$", "a\r\n\r\nlast", &[1, 2, 3]),
        // The engine that finds the lines looks for each match as if its text started there.
        (r"^a\nb|a", "aa\nb\n", &[1, 2]),
    ] {
        let outcome = run(&TestTree::new([("/f", text)]), &GrepRequest::regex(regex).multiline());
        assert_eq!(lines_of(&outcome), expected, "{regex} {text:?}: {:?}", outcome.lines());
    }
    let dollar = GrepRequest::regex(r"[x\n]*$").multiline();
    assert_eq!(one("a\nb", &dollar), ["/f:1:a", "/f:2:b"]);
    assert_eq!(one("a\nb", &dollar.clone().output(GrepOutput::Counts)), ["/f:2"]);
    assert_eq!(one("a\nb", &dollar.output(GrepOutput::Files)), ["/f"]);
    let blank = GrepRequest::regex(r"^\s*$").multiline();
    assert_eq!(one("a\n\n\n\nb\nc", &blank.clone().context(1, 1)), ["/f-1-a", "/f:2:\n", "/f:4:", "/f-5-b"]);
    assert_eq!(one(mixed, &blank.output(GrepOutput::Counts)), ["/f:2"]);
}

#[test]
fn an_empty_match_directly_after_another_counts_at_the_start_of_a_line() {
    let outcome = run(&TestTree::new([("/f", "xa\n\nb")]), &GrepRequest::regex(r"x*\n?").multiline());
    let places: Vec<_> = matches(&outcome).iter().map(|found| (found.line, found.submatches.to_vec())).collect();
    let at = |start, end| Submatch { start, end };
    let expected = [(1, vec![at(0, 1), at(2, 2)]), (2, vec![at(0, 0)]), (3, vec![at(0, 0), at(1, 1)])];
    assert_eq!(places, expected);
}

/// Collects the lines that the engine reports.
struct LineNumberSink(Vec<u64>);

impl Sink for LineNumberSink {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        let first = found.line_number().expect("lines are counted");
        self.0.extend(first..first + found.lines().count() as u64);
        Ok(true)
    }
}

proptest! {
    #[test]
    fn all_lines_of_a_multiline_search_are_reported(
        text in prop::collection::vec(prop::sample::select(vec!["a", "b", " ", "\n", "\n\n", "\r\n", "\r"]), 0..24),
        regex in prop::sample::select(vec![
            r"\s*$", r"^\s*$", r"^\s*", r"\s*", r"a*\s?", r"a\s*|$", r"\n", r"b\n|^", r"(a\n)*", r"a[^b]*b|a", r"\n*\b", r"(?s).?$",
        ]),
    ) {
        let text = text.concat();
        let req = GrepRequest::regex(regex).multiline();
        let query = CompiledGrepRequest::new(&req).expect("a valid request");
        prop_assert!(query.multiline && query.matcher.line_terminator().is_none());
        let mut blocks = LineNumberSink(Vec::new());
        let mut searcher =
            SearcherBuilder::new().multi_line(true).binary_detection(BinaryDetection::none()).build();
        searcher.search_slice(&query.matcher, text.as_bytes(), &mut blocks).expect("it searches");
        let tree = std::sync::Arc::new(TestTree::new([("/f", &*text)]));
        let outcome = run_on(tree, req, 1, 1).expect("it searches");
        prop_assert_eq!(lines_of(&outcome), blocks.0, "{:?}", text);
    }
}

#[test]
fn fewer_submatches_are_reported_in_a_line_that_is_slow_to_search() {
    let text = "a".repeat(8 << 10);
    let tree = TestTree::new([("/f", &*text)]);
    let places = |regex: &str| {
        let outcome = run(&tree, &GrepRequest::regex(regex));
        let found = matches(&outcome);
        assert_eq!((found.len(), found[0].column), (1, 1), "{regex}");
        found[0].submatches.len()
    };
    // For each submatch the rest of the line is scanned, and in vain.
    let slow = places("[ab]*c|a");
    assert!((1 << 10..1 << 11).contains(&slow), "{slow}");
    for regex in ["[ab]", "a|b+", "(?:aa?)??a|[0-9]+"] {
        assert_eq!(places(regex), text.len(), "{regex}");
    }
    // If a line has few submatches, all of them are reported, wherever they are.
    let text = "a".repeat(100) + &"b ".repeat(4 << 10);
    let outcome = run(&TestTree::new([("/f", &*text)]), &GrepRequest::regex("[ab ]*c|a"));
    assert_eq!(matches(&outcome)[0].submatches.len(), 100);
}
