//! Text search: limits, and their report in the result.

use vfs_core::{ErrorKind, GrepOutput, GrepRequest, TruncationReason};

use super::LawResult;
use super::law_helpers::ends;
use crate::target::Target;

laws! { "grep" in Semantics:
    "S24" Nothing a_limit_ends_the_search_and_is_reported in Wrapper,
    "S24" Nothing a_limit_of_zero_is_empty_and_truncated,
    "S24" Nothing a_limit_counts_files_if_files_are_requested,
    "S24" Nothing context_ends_before_a_match_beyond_a_limit,
    "S25" Nothing a_limit_per_file_leaves_each_file,
    "S26" Nothing files_over_the_size_limit_are_left_out_and_counted in Storage,
    "S27" Nothing a_long_line_is_cut_only_at_its_end,
    "S28" Nothing a_result_is_bounded_in_bytes,
    "S29" Nothing context_beyond_the_bound_is_refused,
    "S30" Nothing many_matching_lines_are_bounded_by_the_limit in Storage,
}

async fn put_hits(t: &Target) -> LawResult {
    for path in ["/a", "/b", "/c"] {
        t.put(path, "hit 1\nhit 2\nmiss\nhit 3\n").await?;
    }
    Ok(())
}

async fn a_limit_ends_the_search_and_is_reported(t: &Target) -> LawResult {
    put_hits(t).await?;
    let all = t.hits(GrepRequest::literal("hit")).await?;
    for limit in 1..9 {
        let result = t.grep(GrepRequest::literal("hit").limit(limit as u64)).await?;
        assert_eq!(t.lines(&result.matches), all[..limit]);
        assert_eq!(result.truncated, Some(TruncationReason::Limit), "{limit}");
    }
    for limit in [10, u64::MAX] {
        let result = t.grep(GrepRequest::literal("hit").limit(limit)).await?;
        assert_eq!((result.matches.len(), result.truncated), (9, None));
    }
    Ok(())
}

async fn context_ends_before_a_match_beyond_a_limit(t: &Target) -> LawResult {
    t.put("/a", "1\nhit 2\n3\nhit 4\n5\nhit 6\n").await?;
    for (before, after) in [(0, 1), (0, 9), (1, 1), (1, 9), (9, 9)] {
        let first = if before == 0 { &["/a:2:hit 2", "/a-3-3"][..] } else { &["/a-1-1", "/a:2:hit 2", "/a-3-3"] };
        let both = [first, &["/a:4:hit 4", "/a-5-5"]].concat();
        for (limit, expected) in [(1, first), (2, &both)] {
            for request in [GrepRequest::literal("hit").limit(limit), GrepRequest::literal("hit").limit_per_file(limit)]
            {
                let result = t.grep(request.context(before, after)).await?;
                assert_eq!(t.lines(&result.matches), expected, "limit {limit}, context {before} and {after}");
                assert_eq!(result.truncated, Some(TruncationReason::Limit));
            }
        }
    }
    Ok(())
}

async fn a_limit_of_zero_is_empty_and_truncated(t: &Target) -> LawResult {
    put_hits(t).await?;
    for output in [GrepOutput::Matches, GrepOutput::Files, GrepOutput::Counts] {
        let result = t.grep(GrepRequest::literal("hit").limit(0).output(output)).await?;
        assert!(result.matches.is_empty() && result.files.is_empty());
        assert_eq!(result.truncated, Some(TruncationReason::Limit), "{output:?}");
    }
    Ok(())
}

async fn a_limit_counts_files_if_files_are_requested(t: &Target) -> LawResult {
    put_hits(t).await?;
    for output in [GrepOutput::Files, GrepOutput::Counts] {
        let result = t.grep(GrepRequest::literal("hit").limit(2).output(output)).await?;
        let paths: Vec<_> = result.files.iter().map(|file| t.name(&file.path)).collect();
        assert_eq!(paths, ["/a", "/b"], "{output:?}");
        assert_eq!(result.truncated, Some(TruncationReason::Limit), "{output:?}");
    }
    Ok(())
}

async fn a_limit_per_file_leaves_each_file(t: &Target) -> LawResult {
    put_hits(t).await?;
    let result = t.grep(GrepRequest::literal("hit").limit_per_file(2)).await?;
    let places: Vec<_> = result.matches.iter().map(|hit| (t.name(&hit.path), hit.line)).collect();
    let expected = ["/a", "/b", "/c"].iter().flat_map(|path| [1, 2].map(|line| ((*path).to_owned(), line)));
    assert_eq!(places, expected.collect::<Vec<_>>());
    assert_eq!(result.truncated, Some(TruncationReason::Limit));
    assert_eq!(t.grep(GrepRequest::literal("hit").limit_per_file(4)).await?.truncated, None);
    Ok(())
}

async fn files_over_the_size_limit_are_left_out_and_counted(t: &Target) -> LawResult {
    t.put("/small", "hit\n").await?;
    t.put("/large", "hit\n".repeat(100)).await?;
    let result = t.grep(GrepRequest::literal("hit").max_file_size(100)).await?;
    assert_eq!(t.lines(&result.matches), ["/small:1:hit"]);
    assert_eq!(result.skipped.too_large, 1);
    assert_eq!(t.grep(GrepRequest::literal("hit").max_file_size(400)).await?.skipped.too_large, 0);
    Ok(())
}

async fn a_long_line_is_cut_only_at_its_end(t: &Target) -> LawResult {
    t.put("/a", format!("hit {}\nhit short\n", "é".repeat(100_000))).await?;
    let result = t.grep(GrepRequest::literal("hit").max_line_bytes(101)).await?;
    assert!(result.matches[0].cut && result.matches[0].text.len() <= 101);
    assert!(result.matches[0].text.starts_with("hit éé"));
    assert_eq!((result.matches[1].cut, result.matches[1].text.as_str()), (false, "hit short"));
    let default = t.grep(GrepRequest::literal("hit")).await?;
    assert!(default.matches[0].cut);
    assert!(default.matches[0].text.len() as u64 <= GrepRequest::DEFAULT_MAX_LINE_BYTES);
    Ok(())
}

async fn a_result_is_bounded_in_bytes(t: &Target) -> LawResult {
    t.put("/a", "hit and more\n".repeat(10_000)).await?;
    let result = t.grep(GrepRequest::literal("hit").max_result_bytes(5000)).await?;
    let bytes: usize = result.matches.iter().map(|hit| hit.text.len() + hit.path.as_str().len()).sum();
    assert!(bytes <= 5000 && !result.matches.is_empty(), "{bytes} bytes");
    assert_eq!(result.truncated, Some(TruncationReason::MaxBytes));
    Ok(())
}

async fn context_beyond_the_bound_is_refused(t: &Target) -> LawResult {
    put_hits(t).await?;
    for (before, after) in [(GrepRequest::MAX_CONTEXT + 1, 0), (0, u32::MAX)] {
        let result = t.grep(GrepRequest::literal("hit").context(before, after)).await;
        t.refused(result, ErrorKind::InvalidArgument);
    }
    Ok(())
}

async fn many_matching_lines_are_bounded_by_the_limit(t: &Target) -> LawResult {
    t.put("/a", "hit\n".repeat(1_000_000)).await?;
    let limited = ends("ten of a million", t.grep(GrepRequest::literal("hit").limit(10))).await?;
    assert_eq!((limited.matches.len(), limited.truncated), (10, Some(TruncationReason::Limit)));
    let counted = t.grep(GrepRequest::literal("hit").output(GrepOutput::Counts)).await?;
    assert_eq!(counted.files[0].count, Some(1_000_000));
    Ok(())
}
