//! Text search: patterns.

use std::time::Duration;

use vfs_core::{CaseMode, ErrorKind, GrepRequest, Result};

use super::LawResult;
use super::law_helpers::{cx, ends};
use crate::target::Target;

laws! { "grep" in Semantics:
    "S1" Nothing a_literal_is_literal in Smoke,
    "S2" Nothing a_regex_is_a_regex in Storage,
    "S3" Nothing an_empty_pattern_is_refused in Wrapper,
    "S4" Nothing a_malformed_regex_is_refused_with_the_standard_message,
    "S5" Nothing case_modes_decide_what_matches in Storage,
    "S6" Nothing whole_words_are_bounded_on_both_sides,
    "S7" Nothing a_multiline_match_spans_lines,
    "S7" Nothing a_literal_with_a_line_break_is_multiline,
    "S7" Nothing every_line_with_a_multiline_match_is_reported,
    "S8" Nothing inverting_finds_the_other_lines,
    "S9" Nothing a_pattern_that_looks_like_an_option_is_a_pattern,
    "S10" Nothing a_hostile_regex_is_linear_or_refused,
    "S10" Nothing a_regex_that_is_slow_in_one_line_leaves_other_searches_alone,
    "S10" Nothing a_pattern_of_a_megabyte_is_answered_or_refused,
}

async fn a_literal_is_literal(t: &Target) -> LawResult {
    t.put("/a", "a.b\naxb\n(a+)\\d$ ^x| [y]{2}\n日本\n").await?;
    for (literal, lines) in [("a.b", &["/a:1:a.b"][..]), ("(a+)\\d$ ^x| [y]{2}", &["/a:3:(a+)\\d$ ^x| [y]{2}"])] {
        assert_eq!(t.hits(GrepRequest::literal(literal)).await?, lines);
    }
    assert_eq!(t.hits(GrepRequest::literal("日")).await?, ["/a:4:日本"]);
    Ok(())
}

async fn a_regex_is_a_regex(t: &Target) -> LawResult {
    t.put("/a", "fn one() {}\nlet x = 10;\n  fn two(a: u32)\r\nend").await?;
    for (regex, lines) in [
        (r"^\s*fn (\w+)\(", &["/a:1:fn one() {}", "/a:3:  fn two(a: u32)"][..]),
        (r"\d+", &["/a:2:let x = 10;", "/a:3:  fn two(a: u32)"]),
        ("u32\\)$", &["/a:3:  fn two(a: u32)"]),
        ("^end$", &["/a:4:end"]),
        ("one|end", &["/a:1:fn one() {}", "/a:4:end"]),
        ("[^\\x00-\\x7f]", &[]),
    ] {
        assert_eq!(t.hits(GrepRequest::regex(regex)).await?, lines, "{regex}");
    }
    Ok(())
}

async fn an_empty_pattern_is_refused(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    for request in [GrepRequest::literal(""), GrepRequest::regex("")] {
        t.refused(t.grep(request).await, ErrorKind::InvalidArgument);
    }
    Ok(())
}

async fn a_malformed_regex_is_refused_with_the_standard_message(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    for regex in ["(", "a)", "[", "[z-a]", "a{2,1}", "*", "\\", "\\q", "(?<n", "(?P<n>a)(?P<n>b)", "(?=look)", "\\1"] {
        let error = t.refused(t.grep(GrepRequest::regex(regex)).await, ErrorKind::InvalidPattern);
        assert!(error.message().starts_with("Invalid regex pattern:"), "{regex}: {}", error.message());
        assert!(error.for_model().contains("Invalid regex pattern:"), "{regex}: {}", error.for_model());
    }
    assert_eq!(t.hits(GrepRequest::literal("(")).await?, [""; 0], "as a literal it is only absent");
    Ok(())
}

async fn case_modes_decide_what_matches(t: &Target) -> LawResult {
    t.put("/a", "word\nWORD\nWord\nGRÜSSE\n").await?;
    for (pattern, case, lines) in [
        ("word", CaseMode::Sensitive, &[1][..]),
        ("WORD", CaseMode::Insensitive, &[1, 2, 3]),
        ("word", CaseMode::Smart, &[1, 2, 3]),
        ("Word", CaseMode::Smart, &[3]),
        ("grüsse", CaseMode::Insensitive, &[4]),
        ("grüsse", CaseMode::Sensitive, &[]),
    ] {
        for request in [GrepRequest::literal(pattern), GrepRequest::regex(pattern)] {
            let result = t.grep(request.case(case)).await?;
            assert_eq!(result.matches.iter().map(|hit| hit.line).collect::<Vec<_>>(), lines, "{pattern} {case:?}");
        }
    }
    Ok(())
}

async fn whole_words_are_bounded_on_both_sides(t: &Target) -> LawResult {
    t.put("/a", "foo\nfoobar\nbarfoo\nfoo_\n(foo)\nfoo foo2\nx-foo-x\n").await?;
    let lines = ["/a:1:foo", "/a:5:(foo)", "/a:6:foo foo2", "/a:7:x-foo-x"];
    assert_eq!(t.hits(GrepRequest::literal("foo").whole_word()).await?, lines);
    assert_eq!(t.hits(GrepRequest::regex("fo+").whole_word()).await?, lines);
    assert_eq!(t.hits(GrepRequest::regex("foo|bar").whole_word()).await?, lines);
    Ok(())
}

async fn a_multiline_match_spans_lines(t: &Target) -> LawResult {
    t.put("/a", "start\nmiddle\nend\nstart end\nfn x(\n    a,\n)\n").await?;
    let result = t.grep(GrepRequest::regex(r"^fn x\(.*?\)$").multiline()).await?;
    assert_eq!(t.lines(&result.matches), ["/a:5:fn x(\n    a,\n)"]);
    assert_eq!(t.hits(GrepRequest::regex("middle.end").multiline()).await?, ["/a:2:middle\nend"]);
    assert_eq!(t.hits(GrepRequest::regex("middle.end")).await?, [""; 0]);
    assert_eq!(t.hits(GrepRequest::regex("^middle$").multiline()).await?, ["/a:2:middle"]);
    Ok(())
}

async fn a_literal_with_a_line_break_is_multiline(t: &Target) -> LawResult {
    t.put("/a", "one\ntwo\nthree\n").await?;
    let result = t.grep(GrepRequest::literal("e\nt")).await?;
    assert_eq!(t.lines(&result.matches), ["/a:1:one\ntwo"]);
    assert_eq!(result.matches[0].column, 3);
    Ok(())
}

async fn every_line_with_a_multiline_match_is_reported(t: &Target) -> LawResult {
    t.put("/a", "a\n\n\n\nb\nc\n").await?;
    t.put("/b", "a\n\nlast").await?;
    for (path, regex, lines) in [
        ("/a", r"^\s*$", &["/a:2:\n", "/a:4:"][..]),
        ("/a", r"[x\n]*$", &["/a:1:a\n\n", "/a:4:", "/a:5:b", "/a:6:c"]),
        ("/b", r"\s*$", &["/b:1:a", "/b:2:", "/b:3:last"]),
    ] {
        let request = GrepRequest::regex(regex).multiline().path(t.path(path));
        assert_eq!(t.hits(request).await?, lines, "{regex}");
    }
    Ok(())
}

async fn inverting_finds_the_other_lines(t: &Target) -> LawResult {
    t.put("/a", "one\ntwo\nthree\n").await?;
    t.put("/b", "one\n").await?;
    let result = t.grep(GrepRequest::literal("one").invert()).await?;
    assert_eq!(t.lines(&result.matches), ["/a:2:two", "/a:3:three"]);
    assert!(result.matches.iter().all(|hit| hit.column == 0 && hit.submatches.is_empty()));
    Ok(())
}

async fn a_pattern_that_looks_like_an_option_is_a_pattern(t: &Target) -> LawResult {
    for pattern in ["--pre=id", "-f/etc/passwd", "-e", "--help", "-", "@file", "$HOME", "`id`", "%s"] {
        t.put("/a", format!("x {pattern} y\n")).await?;
        assert_eq!(t.hits(GrepRequest::literal(pattern)).await?, [format!("/a:1:x {pattern} y")]);
    }
    t.put("/a", "--pre=id\n").await?;
    assert_eq!(t.hits(GrepRequest::regex("--pre=id")).await?, ["/a:1:--pre=id"]);
    assert_eq!(t.hits(GrepRequest::literal("id").glob("--pre=id")).await?, [""; 0]);
    Ok(())
}

async fn a_hostile_regex_is_linear_or_refused(t: &Target) -> LawResult {
    t.put("/a", "a".repeat(1 << 20)).await?;
    for regex in [
        "(a+)+$".to_owned(),
        "(a|a)*b".into(),
        "(.*)(.*)(.*)(.*)x".into(),
        "(a{1000}){1000}".into(),
        "(\\pL{1000}){1000}".into(),
        "(".repeat(10_000) + "a" + &")".repeat(10_000),
        "x".repeat(1 << 20),
        "[a-z]".repeat(200_000),
        "a|".repeat(200_000) + "b",
        "a\0b".into(),
        "(?s)a.*b".into(),
        // For each place the rest of the line is read, and in vain.
        "[ab]*c|a".into(),
    ] {
        let what = format!("{}... ({} bytes)", &regex[..3], regex.len());
        if let Err(error) = ends(&what, t.grep(GrepRequest::regex(regex))).await {
            assert_eq!(error.kind(), ErrorKind::InvalidPattern, "{what}: {error:?}");
            t.assert_fit_to_be_shown(&error);
        }
    }
    Ok(())
}

async fn a_regex_that_is_slow_in_one_line_leaves_other_searches_alone(t: &Target) -> LawResult {
    t.put("/bomb", "ab".repeat(32 << 10)).await?;
    t.put("/other", "needle\n").await?;
    // Linear, but with thousands of states for each byte: one call into an engine takes seconds.
    for regex in ["((((a{10}){10}){10}){10}){2}", "a[ab]{8000}[c-z]"] {
        // A store that stalls for a moment can hold up the others longer than the slow search takes, but not each time.
        let mut attempts = 0;
        while !others_end_before_a_slow_search(t, regex).await? {
            attempts += 1;
            assert!(attempts < 5, "other searches end only after a slow one that began before them: {regex}");
        }
    }
    Ok(())
}

/// Returns whether searches that begin after a slow one end before it, or `regex` is refused.
///
/// The order of these events does not depend on the speed of the machine, as both sides slow down together.
async fn others_end_before_a_slow_search(t: &Target, regex: &str) -> Result<bool> {
    let request = GrepRequest::regex(regex).path(t.path("/bomb"));
    let slow = tokio::spawn({
        let (backend, request) = (t.shared(), request.clone());
        async move { backend.grep(&cx(), request).await }
    });
    for _ in 0..8 {
        let deadline = cx().with_timeout(Duration::from_millis(20));
        if let Err(error) = ends("a search with a deadline", t.backend.grep(&deadline, request.clone())).await {
            assert!(matches!(error.kind(), ErrorKind::InvalidPattern | ErrorKind::Timeout), "{error:?}");
        }
    }
    let other = GrepRequest::literal("needle").path(t.path("/other"));
    assert_eq!(ends("another search", t.hits(other)).await?, ["/other:1:needle"]);
    if !slow.is_finished() {
        slow.abort();
        return Ok(true);
    }
    match slow.await.expect("the task did not panic") {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::InvalidPattern => Ok(true),
        Err(error) => Err(error),
    }
}

async fn a_pattern_of_a_megabyte_is_answered_or_refused(t: &Target) -> LawResult {
    let pattern = "needle ".repeat(150_000);
    t.put("/a", format!("{pattern}\n")).await?;
    match ends("a pattern of 1 MB", t.grep(GrepRequest::literal(&pattern))).await {
        Ok(result) => assert_eq!(result.matches.len(), 1),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::InvalidPattern | ErrorKind::TooLarge), "{error:?}");
            t.assert_fit_to_be_shown(&error);
        }
    }
    Ok(())
}
