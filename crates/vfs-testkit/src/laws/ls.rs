//! Directory listings.

use vfs_core::{ErrorKind, FileUploadRequest, LsRequest, TruncationReason};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "ls" in Storage:
    "L1" Nothing one_level_is_listed_sorted_by_bytes in Smoke,
    "L2" Nothing everything_below_is_listed_sorted_by_the_bytes_of_the_whole_path,
    "L3" Nothing a_missing_directory_is_not_found,
    "L4" Nothing a_file_is_not_a_directory,
    "L5" Nothing nothing_is_hidden_from_a_listing,
    "L6" Nothing entries_agree_with_stat,
    "L7" Nothing siblings_with_the_same_beginning_do_not_leak_in in Wrapper,
    "L8" Nothing a_depth_limit_ends_a_listing_and_is_reported,
    "L9" Nothing a_limit_ends_a_listing_and_is_reported in Wrapper,
    "L10" Nothing a_thousand_entries_are_listed,
}

async fn one_level_is_listed_sorted_by_bytes(t: &Target) -> LawResult {
    t.put_each(&["/b", "/a/x", "/a-b", "/a.txt", "/B", "/é", "/a/deep/er", "/_"]).await?;
    let listing = t.ls(LsRequest::new(t.base.clone())).await?;
    assert_eq!(t.names(&listing.entries), ["/B", "/_", "/a", "/a-b", "/a.txt", "/b", "/é"]);
    assert_eq!((listing.truncated, listing.problems.len()), (None, 0));
    Ok(())
}

async fn everything_below_is_listed_sorted_by_the_bytes_of_the_whole_path(t: &Target) -> LawResult {
    t.put_each(&["/a/x", "/a/x-1", "/a/y", "/a-b", "/a.d/z", "/a/b/c"]).await?;
    let expected = ["/a", "/a-b", "/a.d", "/a.d/z", "/a/b", "/a/b/c", "/a/x", "/a/x-1", "/a/y"];
    assert_eq!(t.tree().await?, expected);
    let below = t.ls(LsRequest::new(t.path("/a")).recursive()).await?;
    assert_eq!(t.names(&below.entries), ["/a/b", "/a/b/c", "/a/x", "/a/x-1", "/a/y"]);
    Ok(())
}

async fn a_missing_directory_is_not_found(t: &Target) -> LawResult {
    t.put("/a/x", "x").await?;
    for path in ["/b", "/a/y", "/a/y/z", "/A"] {
        let error = t.refused(t.ls(LsRequest::new(t.path(path))).await, ErrorKind::NotFound);
        assert_eq!(error.path(), Some(t.path(path).as_str()));
    }
    Ok(())
}

async fn a_file_is_not_a_directory(t: &Target) -> LawResult {
    t.put("/a/x", "x").await?;
    t.refused(t.ls(LsRequest::new(t.path("/a/x"))).await, ErrorKind::NotADirectory);
    t.refused(t.ls(LsRequest::new(t.path("/a/x")).recursive()).await, ErrorKind::NotADirectory);
    Ok(())
}

async fn nothing_is_hidden_from_a_listing(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\n").await?;
    t.put_each(&["/.git/config", "/.hidden", "/x.log"]).await?;
    assert_eq!(t.tree().await?, ["/.git", "/.git/config", "/.gitignore", "/.hidden", "/x.log"]);
    Ok(())
}

async fn entries_agree_with_stat(t: &Target) -> LawResult {
    t.put_each(&["/a/x", "/a/y", "/b"]).await?;
    for entry in t.ls(LsRequest::new(t.base.clone()).recursive()).await?.entries {
        assert_eq!(t.stat(&t.name(&entry.path)).await?, entry);
    }
    Ok(())
}

async fn siblings_with_the_same_beginning_do_not_leak_in(t: &Target) -> LawResult {
    t.put_each(&["/a/x", "/a-b/x", "/ab/x", "/a.b", "/a/b/x"]).await?;
    assert_eq!(t.names(&t.ls(LsRequest::new(t.path("/a"))).await?.entries), ["/a/b", "/a/x"]);
    Ok(())
}

async fn a_depth_limit_ends_a_listing_and_is_reported(t: &Target) -> LawResult {
    t.put_each(&["/a/b/c/d", "/e"]).await?;
    let one_level = LsRequest::new(t.base.clone());
    for (depth, expected, truncated) in [
        (1, &["/a", "/e"][..], Some(TruncationReason::Depth)),
        (2, &["/a", "/a/b", "/e"], Some(TruncationReason::Depth)),
        (4, &["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/e"], None),
        (u32::MAX, &["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/e"], None),
    ] {
        let listing = t.ls(one_level.clone().recursive().max_depth(depth)).await?;
        assert_eq!(t.names(&listing.entries), expected, "{depth}");
        assert_eq!(listing.truncated, truncated, "{depth}");
    }
    assert_eq!(t.ls(one_level).await?.truncated, None, "only one level was requested");
    Ok(())
}

async fn a_limit_ends_a_listing_and_is_reported(t: &Target) -> LawResult {
    t.put_each(&["/a/b", "/a/c", "/a-b", "/d"]).await?;
    let all = t.tree().await?;
    let request = LsRequest::new(t.base.clone()).recursive();
    for limit in 0..=all.len() + 1 {
        let listing = t.ls(request.clone().limit(limit as u64)).await?;
        let shown = limit.min(all.len());
        assert_eq!(t.names(&listing.entries), all[..shown]);
        assert_eq!(listing.truncated, (limit < all.len()).then_some(TruncationReason::Limit), "{limit}");
    }
    assert_eq!(t.ls(request.limit(u64::MAX)).await?.entries.len(), all.len());
    let one_level = t.ls(LsRequest::new(t.path("/a")).limit(1)).await?;
    assert_eq!(t.names(&one_level.entries), ["/a/b"]);
    assert_eq!(one_level.truncated, Some(TruncationReason::Limit));
    Ok(())
}

async fn a_thousand_entries_are_listed(t: &Target) -> LawResult {
    let uploads = (0..1000).map(|n| FileUploadRequest::new(t.path(&format!("/d/{n:04}")), "x")).collect();
    for answer in t.backend.upload_files(&cx(), uploads).await {
        assert_eq!(answer.error, None);
    }
    let names = t.names(&t.ls(LsRequest::new(t.path("/d"))).await?.entries);
    assert_eq!(names, (0..1000).map(|n| format!("/d/{n:04}")).collect::<Vec<_>>());
    Ok(())
}
