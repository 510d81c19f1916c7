//! File search by name: patterns and limits.

use vfs_core::search::EntryKinds;
use vfs_core::{ErrorKind, GlobRequest, TruncationReason};

use super::LawResult;
use super::law_helpers::ends;
use crate::target::Target;

laws! { "glob" in Semantics:
    "G1" Nothing a_pattern_without_a_slash_matches_names_at_any_depth in Smoke,
    "G2" Nothing a_pattern_with_a_slash_matches_the_path_below_the_start,
    "G3" Nothing the_syntax_is_that_of_globs,
    "G4" Nothing a_malformed_pattern_is_refused,
    "G5" Nothing a_bomb_is_answered_or_refused_quickly,
    "G6" Nothing files_are_found_and_directories_by_request,
    "G7" Nothing entries_are_sorted_by_the_bytes_of_the_whole_path in Storage,
    "G8" Nothing a_limit_ends_a_search_and_is_reported in Wrapper,
    "G9" Nothing a_missing_start_is_not_found in Storage,
    "G10" Nothing a_parent_component_is_refused,
    "G11" Nothing entries_agree_with_stat in Storage,
    "G12" Nothing a_pattern_that_looks_like_an_option_is_a_pattern,
}

async fn a_pattern_without_a_slash_matches_names_at_any_depth(t: &Target) -> LawResult {
    t.put_each(&["/main.rs", "/src/lib.rs", "/src/net/tcp.rs", "/src/net/tcp.rs.orig", "/rs"]).await?;
    assert_eq!(t.found("*.rs").await?, ["/main.rs", "/src/lib.rs", "/src/net/tcp.rs"]);
    assert_eq!(t.found("tcp.rs").await?, ["/src/net/tcp.rs"]);
    assert_eq!(t.found("net").await?, [""; 0]);
    let below = t.glob(GlobRequest::new("*.rs").path(t.path("/src"))).await?;
    assert_eq!(t.names(&below.entries), ["/src/lib.rs", "/src/net/tcp.rs"]);
    Ok(())
}

async fn a_pattern_with_a_slash_matches_the_path_below_the_start(t: &Target) -> LawResult {
    t.put_each(&["/a.rs", "/src/a.rs", "/src/net/a.rs", "/x/src/a.rs"]).await?;
    for (pattern, expected) in [
        ("src/*.rs", &["/src/a.rs"][..]),
        ("/src/*.rs", &["/src/a.rs"]),
        ("/*.rs", &["/a.rs"]),
        ("src/**", &["/src/a.rs", "/src/net/a.rs"]),
        ("**/src/*.rs", &["/src/a.rs", "/x/src/a.rs"]),
        ("src/**/*.rs", &["/src/a.rs", "/src/net/a.rs"]),
        ("*/a.rs", &["/src/a.rs"]),
        ("*/*/a.rs", &["/src/net/a.rs", "/x/src/a.rs"]),
        ("**/a.rs", &["/a.rs", "/src/a.rs", "/src/net/a.rs", "/x/src/a.rs"]),
        ("src/a.rs", &["/src/a.rs"]),
        ("net/a.rs", &[]),
        ("{.,src}/*.rs", &["/a.rs", "/src/a.rs"]),
        ("src/{,net}/*.rs", &["/src/a.rs", "/src/net/a.rs"]),
        ("{./src,/x/src}/a.rs", &["/src/a.rs", "/x/src/a.rs"]),
    ] {
        assert_eq!(t.found(pattern).await?, expected, "{pattern}");
    }
    let below = t.glob(GlobRequest::new("/net/*.rs").path(t.path("/src"))).await?;
    assert_eq!(t.names(&below.entries), ["/src/net/a.rs"], "a leading slash is the start, not the root");
    Ok(())
}

async fn the_syntax_is_that_of_globs(t: &Target) -> LawResult {
    let names = ["/A.txt", "/a*b", "/a.txt", "/ab.txt", "/b.txt", "/c.md", "/d-e", "/x/a.txt", "/{q}"];
    t.put_each(&names).await?;
    for (pattern, expected) in [
        ("?.txt", &["/A.txt", "/a.txt", "/b.txt", "/x/a.txt"][..]),
        ("[ab].txt", &["/a.txt", "/b.txt", "/x/a.txt"]),
        ("[a-c].*", &["/a.txt", "/b.txt", "/c.md", "/x/a.txt"]),
        ("[!a].txt", &["/A.txt", "/b.txt"]),
        ("{a,ab}.txt", &["/a.txt", "/ab.txt", "/x/a.txt"]),
        ("{a{,b},c}.{txt,md}", &["/a.txt", "/ab.txt", "/c.md", "/x/a.txt"]),
        ("a\\*b", &["/a*b"]),
        ("\\{q\\}", &["/{q}"]),
        ("[{]q[}]", &["/{q}"]),
        ("d[-x]e", &["/d-e"]),
        ("a.TXT", &[]),
        ("/*", &["/A.txt", "/a*b", "/a.txt", "/ab.txt", "/b.txt", "/c.md", "/d-e", "/{q}"]),
        ("*", &names),
        ("**", &names),
        ("**/*", &names),
        ("/**/a.txt", &["/a.txt", "/x/a.txt"]),
    ] {
        assert_eq!(t.found(pattern).await?, expected, "{pattern}");
    }
    Ok(())
}

async fn a_malformed_pattern_is_refused(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    for pattern in ["[", "a[b", "{a", "{a,{b}", "a}", "[z-a]", "a\\", "[]", "[!", ""] {
        let error = t.refused(t.glob(GlobRequest::new(pattern)).await, ErrorKind::InvalidPattern);
        assert!(error.message().len() > 10, "{pattern:?} gets words: {error:?}");
    }
    Ok(())
}

async fn a_bomb_is_answered_or_refused_quickly(t: &Target) -> LawResult {
    let long_name = format!("/{}", "a".repeat(255));
    t.put_each(&["/a.txt", &long_name]).await?;
    for pattern in [
        "{a,b}".repeat(30),
        "{1..100000000}".into(),
        "**/".repeat(30) + "x",
        "**/".repeat(2000) + "*",
        "*a".repeat(40) + "b",
        "?".repeat(100_000),
        "{".repeat(3000) + "a" + &"}".repeat(3000),
        "{a,".repeat(300) + "a" + &"}".repeat(300),
        "[".repeat(5000),
        "x".repeat(1_000_000),
        "*".repeat(1_000_000),
        "[a-z]".repeat(200_000),
        "\\".repeat(1_000_001),
    ] {
        let what = format!("{}... ({} bytes)", &pattern[..10], pattern.len());
        if let Err(error) = ends(&what, t.glob(GlobRequest::new(pattern))).await {
            assert_eq!(error.kind(), ErrorKind::InvalidPattern, "{what}: {error:?}");
            t.assert_fit_to_be_shown(&error);
        }
    }
    Ok(())
}

async fn files_are_found_and_directories_by_request(t: &Target) -> LawResult {
    t.put_each(&["/ab", "/abd/abf", "/x/abd/y"]).await?;
    for (kinds, expected) in [
        (EntryKinds::Files, &["/ab", "/abd/abf"][..]),
        (EntryKinds::Directories, &["/abd", "/x/abd"]),
        (EntryKinds::All, &["/ab", "/abd", "/abd/abf", "/x/abd"]),
    ] {
        let result = t.glob(GlobRequest::new("ab*").kinds(kinds)).await?;
        assert_eq!(t.names(&result.entries), expected, "{kinds:?}");
        assert!(result.entries.iter().all(|entry| if entry.is_dir { kinds.directories() } else { kinds.files() }));
    }
    Ok(())
}

async fn entries_are_sorted_by_the_bytes_of_the_whole_path(t: &Target) -> LawResult {
    t.put_each(&["/a/x", "/a-b", "/a.d/x", "/a/b/c", "/B", "/é"]).await?;
    assert_eq!(t.found("*").await?, ["/B", "/a-b", "/a.d/x", "/a/b/c", "/a/x", "/é"]);
    Ok(())
}

async fn a_limit_ends_a_search_and_is_reported(t: &Target) -> LawResult {
    t.put_each(&["/a/b", "/a-b", "/c", "/d/e/f"]).await?;
    let all = ["/a-b", "/a/b", "/c", "/d/e/f"];
    for limit in [0, 1, 2, 3] {
        let result = t.glob(GlobRequest::new("*").limit(limit as u64)).await?;
        assert_eq!(t.names(&result.entries), all[..limit]);
        assert_eq!(result.truncated, Some(TruncationReason::Limit), "{limit}");
    }
    for limit in [5, u64::MAX] {
        let result = t.glob(GlobRequest::new("*").limit(limit)).await?;
        assert_eq!((result.entries.len(), result.truncated), (4, None));
    }
    Ok(())
}

async fn a_missing_start_is_not_found(t: &Target) -> LawResult {
    t.put_each(&["/d/a"]).await?;
    let missing = t.glob(GlobRequest::new("*").path(t.path("/missing"))).await;
    assert_eq!(t.refused(missing, ErrorKind::NotFound).path(), Some(t.path("/missing").as_str()));
    let file = t.glob(GlobRequest::new("*").path(t.path("/d/a"))).await;
    t.refused(file, ErrorKind::NotADirectory);
    assert!(t.found("no such name").await?.is_empty(), "no match is not an error");
    Ok(())
}

async fn a_parent_component_is_refused(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/b", "/x..y/z"]).await?;
    for pattern in ["..", "../*", "d/../*", "/../etc/*", "**/..", "d/..", "{..,d}/*", "..\\/x"] {
        let result = t.glob(GlobRequest::new(pattern).path(t.path("/d"))).await;
        t.refused_as(result, &[ErrorKind::InvalidPattern, ErrorKind::InvalidPath]);
    }
    assert_eq!(t.found("x..y/*").await?, ["/x..y/z"]);
    Ok(())
}

async fn entries_agree_with_stat(t: &Target) -> LawResult {
    t.put_each(&["/a/x", "/b"]).await?;
    for entry in t.glob(GlobRequest::new("*").kinds(EntryKinds::All)).await?.entries {
        assert_eq!(t.stat(&t.name(&entry.path)).await?, entry);
    }
    Ok(())
}

async fn a_pattern_that_looks_like_an_option_is_a_pattern(t: &Target) -> LawResult {
    t.put_each(&["/--help", "/-f", "/~root", "/$HOME"]).await?;
    for name in ["--help", "-f", "~root", "$HOME"] {
        assert_eq!(t.found(name).await?, [format!("/{name}")]);
    }
    Ok(())
}
