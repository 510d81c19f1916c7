//! Edits: replacements, refusals and races.

use futures::future::join_all;
use vfs_core::edit::Replacement;
use vfs_core::error::ErrorDetail;
use vfs_core::{EditRequest, ErrorKind, Version};

use super::LawResult;
use super::law_helpers::{cx, ends};
use crate::target::Target;

laws! { "edit" in Semantics:
    "E1" Nothing the_only_occurrence_is_replaced in Smoke,
    "E2" Nothing arguments_are_checked_before_the_file,
    "E3" Nothing a_missing_text_is_refused_with_the_most_similar_lines in Wrapper,
    "E4" Nothing a_text_that_occurs_twice_is_refused_with_its_lines,
    "E4" Nothing overlapping_occurrences_are_counted,
    "E5" Nothing replace_all_goes_from_the_left_without_overlap,
    "E6" Nothing replacements_are_made_in_order,
    "E6" Nothing a_list_of_replacements_is_all_or_nothing in Storage,
    "E11" Nothing an_edit_expects_the_version_that_was_read in Wrapper,
    "E12" Nothing a_dry_run_shows_the_diff_and_changes_nothing in Wrapper,
    "E12" Nothing the_diff_comes_by_request,
    "E13" Nothing parallel_edits_all_succeed in Storage,
    "E14" Nothing a_growth_beyond_the_limit_is_refused_before_it_is_made in Storage,
    "E15" Nothing an_error_about_a_huge_text_is_short,
    "E16" Nothing a_missing_file_is_not_found in Storage,
}

async fn the_only_occurrence_is_replaced(t: &Target) -> LawResult {
    let before = t.put("/a.txt", "one two three\n").await?;
    let result = t.edit(EditRequest::new(t.path("/a.txt"), "two", "$1 \\2 {}")).await?;
    assert_eq!((&result.path, result.occurrences, result.size), (&t.path("/a.txt"), 1, 19));
    assert_eq!(t.text("/a.txt").await?, "one $1 \\2 {} three\n");
    assert!(result.version != before);
    assert_eq!(t.stat("/a.txt").await?.version, Some(result.version));
    t.edit(EditRequest::new(t.path("/a.txt"), " $1 \\2 {}", "")).await?;
    assert_eq!(t.text("/a.txt").await?, "one three\n");
    Ok(())
}

async fn arguments_are_checked_before_the_file(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "text\n").await?;
    for path in ["/a.txt", "/missing.txt"] {
        let path = t.path(path);
        for request in [
            EditRequest::new(path.clone(), "", "new"),
            EditRequest::new(path.clone(), "same", "same"),
            EditRequest::list(path.clone(), Vec::new()),
            EditRequest::new(path.clone(), "text", "other").and("", "new"),
        ] {
            let error = t.refused(t.edit(request).await, ErrorKind::InvalidArgument);
            assert_eq!(error.path(), Some(path.as_str()));
        }
    }
    assert_eq!(t.stat("/a.txt").await?.version, Some(version));
    Ok(())
}

async fn a_missing_text_is_refused_with_the_most_similar_lines(t: &Target) -> LawResult {
    let version = t.put("/a.rs", "fn first() {}\nfn second_thing(a: u32) {}\nstruct Other;\n").await?;
    let result = t.edit(EditRequest::new(t.path("/a.rs"), "fn second_thing(b: u32) {}", "x")).await;
    let error = t.refused(result, ErrorKind::NoMatch);
    let Some(ErrorDetail::NoMatch { replacement: 0, nearest, .. }) = error.detail() else { panic!("{error:?}") };
    assert_eq!((nearest[0].line, nearest[0].text.as_str()), (2, "fn second_thing(a: u32) {}"));
    assert!(error.for_model().contains("second_thing(a: u32)"), "{}", error.for_model());
    assert_eq!(t.stat("/a.rs").await?.version, Some(version));
    t.put("/no-end", "first\nlast").await?;
    let error = t.refused(t.edit(EditRequest::new(t.path("/no-end"), "last\n", "x\n")).await, ErrorKind::NoMatch);
    assert!(error.for_model().contains("without a line break"), "{}", error.for_model());
    t.put("/empty", "").await?;
    t.refused(t.edit(EditRequest::new(t.path("/empty"), "x", "y")).await, ErrorKind::NoMatch);
    t.refused(t.edit(EditRequest::new(t.path("/empty"), "x", "y").replace_all()).await, ErrorKind::NoMatch);
    Ok(())
}

async fn a_text_that_occurs_twice_is_refused_with_its_lines(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "x = 1\ny\nx = 1\nx = 1, x = 1\n").await?;
    let error = t.refused(t.edit(EditRequest::new(t.path("/a.txt"), "x = 1", "z")).await, ErrorKind::NotUnique);
    let Some(ErrorDetail::NotUnique { replacement: 0, count: 4, lines }) = error.detail() else { panic!("{error:?}") };
    assert_eq!(*lines, [1, 3, 4], "a line with two places is named once");
    assert!(error.for_model().contains('4'), "{}", error.for_model());
    assert_eq!(t.stat("/a.txt").await?.version, Some(version));
    Ok(())
}

async fn overlapping_occurrences_are_counted(t: &Target) -> LawResult {
    for (content, old, places) in [("aaa", "aa", 2), ("aaaa", "aa", 3), ("abababa", "aba", 3), ("\n\n\n", "\n\n", 2)] {
        t.put("/a.txt", content).await?;
        let error = t.refused(t.edit(EditRequest::new(t.path("/a.txt"), old, "x")).await, ErrorKind::NotUnique);
        assert!(
            matches!(error.detail(), Some(ErrorDetail::NotUnique { count, .. }) if *count == places),
            "{content:?} has {places} places: {error:?}"
        );
        assert_eq!(t.text("/a.txt").await?, content);
    }
    Ok(())
}

async fn replace_all_goes_from_the_left_without_overlap(t: &Target) -> LawResult {
    for (content, old, new, expected, count) in [
        ("aaaa", "aa", "b", "bb", 2),
        ("aaa", "aa", "b", "ba", 1),
        ("abababa", "aba", "x", "xbx", 2),
        ("a,b,c\n", ",", ",,", "a,,b,,c\n", 2),
        ("one\ntwo\n", "\n", "", "onetwo", 2),
        ("only", "only", "all", "all", 1),
    ] {
        t.put("/a.txt", content).await?;
        let result = t.edit(EditRequest::new(t.path("/a.txt"), old, new).replace_all()).await?;
        assert_eq!((t.text("/a.txt").await?.as_str(), result.occurrences), (expected, count), "{content:?}");
    }
    Ok(())
}

async fn replacements_are_made_in_order(t: &Target) -> LawResult {
    t.put("/a.txt", "one two\n").await?;
    let request = EditRequest::list(
        t.path("/a.txt"),
        vec![Replacement::new("one", "two"), Replacement::new("two", "x").all(), Replacement::new("x x", "done")],
    );
    let result = t.edit(request).await?;
    assert_eq!((t.text("/a.txt").await?.as_str(), result.occurrences), ("done\n", 4));
    Ok(())
}

async fn a_list_of_replacements_is_all_or_nothing(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "one two\n").await?;
    let request = EditRequest::new(t.path("/a.txt"), "one", "1").and("two", "2").and("three", "3");
    let error = t.refused(t.edit(request).await, ErrorKind::NoMatch);
    assert!(matches!(error.detail(), Some(ErrorDetail::NoMatch { replacement: 2, .. })), "{error:?}");
    let request = EditRequest::new(t.path("/a.txt"), "one", "two").and("two", "2");
    let error = t.refused(t.edit(request).await, ErrorKind::NotUnique);
    assert!(matches!(error.detail(), Some(ErrorDetail::NotUnique { replacement: 1, .. })), "{error:?}");
    assert_eq!(t.text("/a.txt").await?, "one two\n");
    assert_eq!(t.stat("/a.txt").await?.version, Some(version));
    Ok(())
}

async fn an_edit_expects_the_version_that_was_read(t: &Target) -> LawResult {
    let first = t.put("/a.txt", "one\n").await?;
    let second = t.put("/a.txt", "one, changed\n").await?;
    let request =
        |version: &Version| EditRequest::new(t.path("/a.txt"), "one", "two").expected_version(version.clone());
    let error = t.refused(t.edit(request(&first)).await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: Some(second.clone()) }));
    t.refused(t.edit(request(&first).dry_run()).await, ErrorKind::Conflict);
    assert_eq!(t.text("/a.txt").await?, "one, changed\n");
    t.edit(request(&second)).await?;
    assert_eq!(t.text("/a.txt").await?, "two, changed\n");
    Ok(())
}

async fn a_dry_run_shows_the_diff_and_changes_nothing(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "one\ntwo\nthree\n").await?;
    let result = t.edit(EditRequest::new(t.path("/a.txt"), "two", "deux").dry_run()).await?;
    assert_eq!((result.occurrences, result.size, &result.version), (1, 15, &version));
    let diff = result.diff.expect("a dry run shows the diff");
    assert!(diff.contains("\n-two\n+deux\n") && diff.contains("@@"), "{diff}");
    assert_eq!(t.text("/a.txt").await?, "one\ntwo\nthree\n");
    assert_eq!(t.stat("/a.txt").await?.version, Some(version));
    t.refused(t.edit(EditRequest::new(t.path("/a.txt"), "four", "x").dry_run()).await, ErrorKind::NoMatch);
    Ok(())
}

async fn the_diff_comes_by_request(t: &Target) -> LawResult {
    t.put("/a.txt", "one\n").await?;
    assert_eq!(t.edit(EditRequest::new(t.path("/a.txt"), "one", "two")).await?.diff, None);
    let diff = t.edit(EditRequest::new(t.path("/a.txt"), "two", "three").with_diff()).await?.diff;
    assert!(diff.is_some_and(|diff| diff.contains("-two\n+three")));
    Ok(())
}

async fn parallel_edits_all_succeed(t: &Target) -> LawResult {
    let lines: String = (0..64).map(|line| format!("line {line:02}: old\n")).collect();
    t.put("/a.txt", lines.clone()).await?;
    let edits = (0..64).map(|line| {
        let (old, new) = (format!("line {line:02}: old"), format!("line {line:02}: new"));
        let (backend, request) = (t.shared(), EditRequest::new(t.path("/a.txt"), old, new));
        tokio::spawn(async move { backend.edit(&cx(), request).await })
    });
    for edit in join_all(edits).await {
        assert_eq!(edit.expect("the task did not panic")?.occurrences, 1);
    }
    assert_eq!(t.text("/a.txt").await?, lines.replace("old", "new"));
    Ok(())
}

async fn a_growth_beyond_the_limit_is_refused_before_it_is_made(t: &Target) -> LawResult {
    t.put("/a.txt", "a".repeat(1 << 20)).await?;
    // Two terabytes: no machine has the memory for a result that is made before it is measured.
    let long = 2 << 20;
    let request = EditRequest::new(t.path("/a.txt"), "a", "b".repeat(long)).replace_all();
    t.refused(ends("an edit to 2 TB", t.edit(request)).await, ErrorKind::TooLarge);
    let in_steps = vec![Replacement::new("a", "bb").all(), Replacement::new("b", "c".repeat(long)).all()];
    let request = EditRequest::list(t.path("/a.txt"), in_steps);
    t.refused(ends("an edit that grows in steps", t.edit(request)).await, ErrorKind::TooLarge);
    assert_eq!(t.stat("/a.txt").await?.size, 1 << 20);
    Ok(())
}

async fn an_error_about_a_huge_text_is_short(t: &Target) -> LawResult {
    t.put("/a.txt", format!("{}\nshort\n", "y".repeat(100_000))).await?;
    let huge = "x".repeat(5 << 20);
    let error = t.refused(t.edit(EditRequest::new(t.path("/a.txt"), &huge, "x")).await, ErrorKind::NoMatch);
    assert!(error.for_model().len() < 2048);
    let many_lines = "y y y\n".repeat(1 << 20);
    let error = t.refused(t.edit(EditRequest::new(t.path("/a.txt"), many_lines, "x")).await, ErrorKind::NoMatch);
    assert!(error.for_model().len() < 2048);
    let same = EditRequest::new(t.path("/a.txt"), &huge, &huge);
    assert!(t.refused(t.edit(same).await, ErrorKind::InvalidArgument).for_model().len() < 2048);
    Ok(())
}

async fn a_missing_file_is_not_found(t: &Target) -> LawResult {
    let error = t.refused(t.edit(EditRequest::new(t.path("/missing"), "a", "b")).await, ErrorKind::NotFound);
    assert_eq!(error.path(), Some(t.path("/missing").as_str()));
    assert!(t.tree().await?.is_empty());
    Ok(())
}
