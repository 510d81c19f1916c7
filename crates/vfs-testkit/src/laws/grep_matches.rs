//! Text search: contents of matches.

use vfs_core::search::{BinaryMode, LineKind, MatchedFile};
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, GrepOutput, GrepRequest, RenameRequest, WriteMode, WriteRequest,
};

use super::LawResult;
use crate::target::Target;

laws! { "grep" in Semantics:
    "S11" Nothing a_match_has_its_position in Storage,
    "S12" Nothing a_line_comes_without_its_ending,
    "S13" Nothing a_line_that_is_not_utf_8_is_shown_lossily_and_never_empty,
    "S14" Nothing context_is_marked_as_context,
    "S14" Nothing context_of_near_matches_is_shown_once,
    "S15" Nothing files_and_counts_come_by_request in Wrapper,
    "S15" Nothing counting_never_counts_context,
    "S16" Nothing matches_are_sorted_and_the_same_each_time in Storage,
    "S31" Nothing a_repeated_search_finds_the_current_content in Storage,
    "S17" Nothing binary_files_are_left_out_and_counted in Storage,
    "S18" Nothing utf_16_is_searched_as_text,
}

async fn a_match_has_its_position(t: &Target) -> LawResult {
    t.put("/d/a", "first\nüx and x\n").await?;
    let result = t.grep(GrepRequest::literal("x")).await?;
    let [hit] = &result.matches[..] else { panic!("{:?}", result.matches) };
    assert_eq!((&hit.path, hit.line, hit.column, hit.byte_offset), (&t.path("/d/a"), 2, 3, 6));
    assert_eq!((hit.text.as_str(), hit.kind, hit.cut), ("üx and x", LineKind::Match, false));
    let places: Vec<_> = hit.submatches.iter().map(|place| &hit.text[place.start..place.end]).collect();
    assert_eq!(places, ["x", "x"]);
    assert_eq!((hit.submatches[0].start, hit.submatches[1].start), (2, 8));
    assert_eq!((result.files_searched, result.truncated), (1, None));
    Ok(())
}

async fn a_line_comes_without_its_ending(t: &Target) -> LawResult {
    t.put("/a", "foo\r\nxfoo\nfoo").await?;
    assert_eq!(t.hits(GrepRequest::literal("foo")).await?, ["/a:1:foo", "/a:2:xfoo", "/a:3:foo"]);
    assert_eq!(t.hits(GrepRequest::regex("^foo$")).await?, ["/a:1:foo", "/a:3:foo"], "`$` is before `\\r\\n`, too");
    let context = t.hits(GrepRequest::literal("xfoo").context(1, 1)).await?;
    assert_eq!(context, ["/a-1-foo", "/a:2:xfoo", "/a-3-foo"]);
    Ok(())
}

async fn a_line_that_is_not_utf_8_is_shown_lossily_and_never_empty(t: &Target) -> LawResult {
    t.put("/a", b"caf\xe9 needle\n\xff\xfe needle \xff\n".to_vec()).await?;
    let result = t.grep(GrepRequest::literal("needle")).await?;
    assert_eq!(t.lines(&result.matches)[0], "/a:1:caf\u{fffd} needle");
    assert_eq!(result.matches.len(), 2);
    for hit in &result.matches {
        assert_eq!(&hit.text[hit.submatches[0].start..hit.submatches[0].end], "needle", "ranges are of the shown text");
    }
    Ok(())
}

async fn context_is_marked_as_context(t: &Target) -> LawResult {
    t.put("/a", "1\n2\n3 hit\n4\n5\n6\n7 hit\n").await?;
    for (before, after, expected) in [
        (1, 1, &["/a-2-2", "/a:3:3 hit", "/a-4-4", "/a-6-6", "/a:7:7 hit"][..]),
        (1, 0, &["/a-2-2", "/a:3:3 hit", "/a-6-6", "/a:7:7 hit"]),
        (0, 1, &["/a:3:3 hit", "/a-4-4", "/a:7:7 hit"]),
    ] {
        let result = t.grep(GrepRequest::literal("hit").context(before, after)).await?;
        assert_eq!(t.lines(&result.matches), expected);
        for line in result.matches.iter().filter(|line| line.kind == LineKind::Context) {
            assert_eq!((line.column, line.submatches.len()), (0, 0));
        }
    }
    Ok(())
}

async fn context_of_near_matches_is_shown_once(t: &Target) -> LawResult {
    t.put("/a", "1 hit\n2\n3 hit\n4 hit\n5\n").await?;
    let lines = t.hits(GrepRequest::literal("hit").context(2, 2)).await?;
    assert_eq!(lines, ["/a:1:1 hit", "/a-2-2", "/a:3:3 hit", "/a:4:4 hit", "/a-5-5"]);
    let greatest = GrepRequest::MAX_CONTEXT;
    assert_eq!(t.hits(GrepRequest::literal("hit").context(greatest, greatest)).await?.len(), 5);
    Ok(())
}

async fn files_and_counts_come_by_request(t: &Target) -> LawResult {
    t.put("/a", "hit\nhit hit\nmiss\n").await?;
    t.put("/b/c", "hit\n").await?;
    t.put("/d", "miss\n").await?;
    let files = t.grep(GrepRequest::literal("hit").output(GrepOutput::Files)).await?;
    assert!(files.matches.is_empty());
    assert_eq!(files.files, [MatchedFile::new(t.path("/a"), None), MatchedFile::new(t.path("/b/c"), None)]);
    let counts = t.grep(GrepRequest::literal("hit").output(GrepOutput::Counts)).await?;
    assert_eq!(counts.files, [MatchedFile::new(t.path("/a"), Some(2)), MatchedFile::new(t.path("/b/c"), Some(1))]);
    Ok(())
}

async fn counting_never_counts_context(t: &Target) -> LawResult {
    t.put("/a", "1\nhit\n3\n4\nhit\n6\n").await?;
    let counts = t.grep(GrepRequest::literal("hit").context(3, 3).output(GrepOutput::Counts)).await?;
    assert_eq!(counts.files, [MatchedFile::new(t.path("/a"), Some(2))]);
    let limited = t.grep(GrepRequest::literal("hit").context(1, 1).limit(2)).await?;
    assert_eq!(limited.matches.iter().filter(|line| line.kind == LineKind::Match).count(), 2);
    Ok(())
}

async fn matches_are_sorted_and_the_same_each_time(t: &Target) -> LawResult {
    let paths: Vec<_> = (0..60).map(|n| format!("/{}/{n}", ["a", "a-b", "a.c", "a/z", "é", "B"][n % 6])).collect();
    for path in &paths {
        t.put(path, "hit\nmiss\nhit\n".repeat(20)).await?;
    }
    let first = t.grep(GrepRequest::literal("hit")).await?;
    let places: Vec<_> = first.matches.iter().map(|hit| (hit.path.clone(), hit.line)).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    assert_eq!(places.len(), 60 * 40);
    assert!(places == sorted, "sorted by the bytes of the whole path, then by line");
    for _ in 0..5 {
        assert!(t.grep(GrepRequest::literal("hit")).await? == first, "the same call gives the same answer");
    }
    Ok(())
}

async fn a_repeated_search_finds_the_current_content(t: &Target) -> LawResult {
    t.put_each(&["/d/a", "/d/b", "/d/e/c"]).await?;
    let (new, old) = (GrepRequest::literal("the new words"), GrepRequest::literal("the old words"));
    for path in ["/d/a", "/d/b"] {
        t.write(WriteRequest::new(t.path(path), "the old words\n").mode(WriteMode::Overwrite)).await?;
    }
    for _ in 0..3 {
        assert_eq!(t.hits(new.clone()).await?, Vec::<String>::new());
        assert_eq!(t.hits(old.clone()).await?, ["/d/a:1:the old words", "/d/b:1:the old words"]);
    }
    t.write(WriteRequest::new(t.path("/d/a"), "the new words\n").mode(WriteMode::Overwrite)).await?;
    assert_eq!(t.hits(new.clone()).await?, ["/d/a:1:the new words"]);
    t.edit(EditRequest::new(t.path("/d/b"), "old", "new")).await?;
    assert_eq!(t.hits(new.clone()).await?, ["/d/a:1:the new words", "/d/b:1:the new words"]);
    t.rename(RenameRequest::new(t.path("/d/b"), t.path("/d/e/b"))).await?;
    t.delete(DeleteRequest::new(t.path("/d/a"))).await?;
    assert_eq!(t.hits(new.clone()).await?, ["/d/e/b:1:the new words"]);
    t.copy(CopyRequest::new(t.path("/d/e/b"), t.path("/d/e/d"))).await?;
    assert_eq!(t.hits(new).await?, ["/d/e/b:1:the new words", "/d/e/d:1:the new words"]);
    assert_eq!(t.hits(old).await?, Vec::<String>::new());
    Ok(())
}

async fn binary_files_are_left_out_and_counted(t: &Target) -> LawResult {
    t.put("/a.bin", b"\0\x01 needle\n".to_vec()).await?;
    t.put("/b.txt", "needle\n").await?;
    t.put("/c.bin", b"needle\n\0\n".to_vec()).await?;
    let result = t.grep(GrepRequest::literal("needle")).await?;
    assert_eq!((t.lines(&result.matches), result.skipped.binary), (vec!["/b.txt:1:needle".to_owned()], 2));
    let result = t.grep(GrepRequest::literal("needle").binary(BinaryMode::Text)).await?;
    assert_eq!(result.matches.len(), 3);
    assert!(result.skipped.is_empty());
    Ok(())
}

async fn utf_16_is_searched_as_text(t: &Target) -> LawResult {
    let units = || std::iter::once(0xfeff).chain("erste\r\nzweite Ü needle\r\n".encode_utf16());
    t.put("/le.txt", units().flat_map(u16::to_le_bytes).collect::<Vec<_>>()).await?;
    t.put("/be.txt", units().flat_map(u16::to_be_bytes).collect::<Vec<_>>()).await?;
    let lines = t.hits(GrepRequest::literal("Ü needle")).await?;
    assert_eq!(lines, ["/be.txt:2:zweite Ü needle", "/le.txt:2:zweite Ü needle"]);
    Ok(())
}
