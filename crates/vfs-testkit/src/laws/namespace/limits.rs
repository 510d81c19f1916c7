//! Order and limits of results over all mounts.

use vfs_core::search::{EntryKinds, GrepSummary};
use vfs_core::{GlobRequest, GrepEvent, GrepOutput, GrepRequest, LsRequest, Result, TruncationReason};

use super::super::LawResult;
use super::law_helpers::{NamespaceFixture, path};
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

namespace_laws! {
    "NS13" entries_are_sorted_over_all_mounts,
    "NS13" matches_are_sorted_over_all_mounts,
    "NS14" a_limit_of_a_listing_is_one_budget,
    "NS14" a_limit_of_a_glob_is_one_budget,
    "NS14" a_limit_of_a_search_is_one_budget,
    "NS14" a_limit_per_file_holds_in_every_mount,
}

/// Two hits in each file, by the bytes of the whole path: `-` comes before `/`, which comes before letters.
const FILES: [&str; 8] = ["/a-b/x", "/a.rs", "/a/m/b-c/x", "/a/m/b/x", "/a/n", "/ab", "/b/x", "/c"];

async fn interleaved(n: &NamespaceFactory) -> Result<Target> {
    let NamespaceFixture { files, .. } = n.parts(&["/b", "/a/m/b", "/a-b", "/a/m"]);
    for at in FILES {
        files.put(at, "hit 1\nmiss\nhit 2\n").await?;
    }
    Ok(files)
}

fn lines() -> Vec<String> {
    FILES.iter().flat_map(|at| [format!("{at}:1:hit 1"), format!("{at}:3:hit 2")]).collect()
}

async fn entries_are_sorted_over_all_mounts(n: &NamespaceFactory) -> LawResult {
    let files = interleaved(n).await?;
    let mut all = FILES.to_vec();
    all.extend(["/a", "/a-b", "/a/m", "/a/m/b", "/a/m/b-c", "/b"]);
    all.sort_unstable();
    assert_eq!(files.tree().await?, all);
    assert_eq!(files.globbed(GlobRequest::new("*").kinds(EntryKinds::All)).await?, all);
    assert_eq!(files.found("*").await?, FILES);
    assert_eq!(files.level("/").await?, ["/a", "/a-b", "/a.rs", "/ab", "/b", "/c"]);
    assert_eq!(files.level("/a/m").await?, ["/a/m/b", "/a/m/b-c"]);
    Ok(())
}

async fn matches_are_sorted_over_all_mounts(n: &NamespaceFactory) -> LawResult {
    let files = interleaved(n).await?;
    for _ in 0..8 {
        assert_eq!(files.hits(GrepRequest::literal("hit")).await?, lines());
    }
    let counted = files.grep(GrepRequest::literal("hit").output(GrepOutput::Counts)).await?;
    let paths: Vec<_> = counted.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((paths, counted.files_searched), (FILES.to_vec(), FILES.len() as u64));
    let (matches, end) = streamed(&files, GrepRequest::literal("hit")).await?;
    assert_eq!(matches, lines());
    assert_eq!((end.files_searched, end.files_matched, end.matches), (8, 8, 16));
    Ok(())
}

/// Returns the lines of a streamed search, and its end.
async fn streamed(files: &Target, request: GrepRequest) -> Result<(Vec<String>, GrepSummary)> {
    let mut events = files.events(request).await?;
    let Some(GrepEvent::End(end)) = events.pop() else { panic!("the end is last: {events:?}") };
    let matches = events.into_iter().map(|event| match event {
        GrepEvent::Match(hit) => hit,
        other => panic!("only matches were requested: {other:?}"),
    });
    Ok((files.lines(&matches.collect::<Vec<_>>()), end))
}

fn truncated(limit: usize, all: usize) -> Option<TruncationReason> {
    (limit < all).then_some(TruncationReason::Limit)
}

async fn a_limit_of_a_listing_is_one_budget(n: &NamespaceFactory) -> LawResult {
    let files = interleaved(n).await?;
    let all = files.tree().await?;
    for limit in 0..all.len() + 2 {
        let listed = files.ls(LsRequest::new(path("/")).recursive().limit(limit as u64)).await?;
        assert_eq!(files.names(&listed.entries), all[..limit.min(all.len())]);
        assert_eq!(listed.truncated, truncated(limit, all.len()), "{limit}");
    }
    let level = files.ls(LsRequest::new(path("/")).limit(3)).await?;
    assert_eq!(files.names(&level.entries), ["/a", "/a-b", "/a.rs"]);
    assert_eq!(level.truncated, Some(TruncationReason::Limit));
    Ok(())
}

async fn a_limit_of_a_glob_is_one_budget(n: &NamespaceFactory) -> LawResult {
    let files = interleaved(n).await?;
    for (start, all) in [("/", &FILES[..]), ("/a", &FILES[2..5])] {
        for limit in 0..all.len() + 2 {
            let found = files.glob(GlobRequest::new("*").path(path(start)).limit(limit as u64)).await?;
            assert_eq!(files.names(&found.entries), all[..limit.min(all.len())]);
            assert_eq!(found.truncated, truncated(limit, all.len()), "{limit} below {start}");
        }
    }
    Ok(())
}

async fn a_limit_of_a_search_is_one_budget(n: &NamespaceFactory) -> LawResult {
    let files = interleaved(n).await?;
    let all = lines();
    for limit in 0..all.len() + 2 {
        let request = GrepRequest::literal("hit").limit(limit as u64);
        let expected = &all[..limit.min(all.len())];
        let found = files.grep(request.clone()).await?;
        assert_eq!(files.lines(&found.matches), expected);
        assert_eq!(found.truncated, truncated(limit, all.len()), "{limit}");
        let (matches, end) = streamed(&files, request).await?;
        assert_eq!((matches.as_slice(), end.truncated), (expected, truncated(limit, all.len())), "{limit}");
    }
    for limit in 0..FILES.len() + 2 {
        let found = files.grep(GrepRequest::literal("hit").output(GrepOutput::Files).limit(limit as u64)).await?;
        let paths: Vec<_> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, FILES[..limit.min(FILES.len())]);
        assert_eq!(found.truncated, truncated(limit, FILES.len()), "{limit}");
    }
    Ok(())
}

async fn a_limit_per_file_holds_in_every_mount(n: &NamespaceFactory) -> LawResult {
    let files = interleaved(n).await?;
    let found = files.grep(GrepRequest::literal("hit").limit_per_file(1)).await?;
    assert_eq!(files.lines(&found.matches), FILES.map(|at| format!("{at}:1:hit 1")));
    assert_eq!(found.truncated, Some(TruncationReason::Limit));
    let found = files.grep(GrepRequest::literal("hit").limit_per_file(2)).await?;
    assert_eq!((found.matches.len(), found.truncated), (16, None));
    let both = files.grep(GrepRequest::literal("hit").limit_per_file(1).limit(3)).await?;
    assert_eq!((both.matches.len(), both.truncated), (3, Some(TruncationReason::Limit)));
    Ok(())
}
