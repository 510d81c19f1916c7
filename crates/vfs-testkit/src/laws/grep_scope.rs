//! Text search: the files that are searched.

use vfs_core::{ErrorKind, GrepRequest};

use super::LawResult;
use super::law_helpers::ends;
use crate::target::Target;

laws! { "grep" in Semantics:
    "S19" Nothing a_search_starts_at_a_directory_or_a_file in Storage,
    "S20" Nothing a_missing_start_is_not_the_same_as_no_match in Storage,
    "S21" Nothing globs_choose_the_files,
    "S21" Nothing a_malformed_glob_is_refused,
    "S22" Nothing file_types_choose_the_files,
    "S22" Nothing an_unknown_file_type_is_refused,
    "S23" Nothing hidden_and_ignored_files_are_left_out_and_counted in Storage,
    "S23" Nothing a_file_that_is_named_is_searched,
}

async fn a_search_starts_at_a_directory_or_a_file(t: &Target) -> LawResult {
    for path in ["/a", "/d/b", "/d/e/c", "/d-x"] {
        t.put(path, "hit\n").await?;
    }
    for (path, expected) in [
        ("/d", &["/d/b:1:hit", "/d/e/c:1:hit"][..]),
        ("/d/e", &["/d/e/c:1:hit"]),
        ("/d/b", &["/d/b:1:hit"]),
        ("/a", &["/a:1:hit"]),
    ] {
        assert_eq!(t.hits(GrepRequest::literal("hit").path(t.path(path))).await?, expected, "{path}");
    }
    assert_eq!(t.hits(GrepRequest::literal("hit")).await?.len(), 4);
    Ok(())
}

async fn a_missing_start_is_not_the_same_as_no_match(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    let result = t.grep(GrepRequest::literal("hit").path(t.path("/missing"))).await;
    assert_eq!(t.refused(result, ErrorKind::NotFound).path(), Some(t.path("/missing").as_str()));
    let result = t.grep(GrepRequest::literal("absent")).await?;
    assert!(result.matches.is_empty() && result.skipped.is_empty() && result.truncated.is_none());
    assert_eq!(result.files_searched, 1);
    Ok(())
}

async fn globs_choose_the_files(t: &Target) -> LawResult {
    for path in ["/a.rs", "/b.md", "/src/c.rs", "/src/d.toml", "/src/gen/e.rs"] {
        t.put(path, "hit\n").await?;
    }
    for (globs, expected) in [
        (&["*.rs"][..], &["/a.rs", "/src/c.rs", "/src/gen/e.rs"][..]),
        (&["src/*.rs"], &["/src/c.rs"]),
        (&["/*.rs"], &["/a.rs"]),
        (&["*.rs", "*.md"], &["/a.rs", "/b.md", "/src/c.rs", "/src/gen/e.rs"]),
        (&["!*.rs"], &["/b.md", "/src/d.toml"]),
        (&["*.rs", "!src/gen/**"], &["/a.rs", "/src/c.rs"]),
        (&["!*.rs", "src/c.rs"], &["/src/c.rs"]),
        (&["*.{md,toml}"], &["/b.md", "/src/d.toml"]),
        (&["*.py"], &[]),
    ] {
        let request = globs.iter().fold(GrepRequest::literal("hit"), |request, glob| request.glob(*glob));
        let paths: Vec<_> = t.grep(request).await?.matches.iter().map(|hit| t.name(&hit.path)).collect();
        assert_eq!(paths, expected, "{globs:?}");
    }
    Ok(())
}

async fn a_malformed_glob_is_refused(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    for glob in ["[", "{a", "!{a", "{a,b}".repeat(30).as_str(), "x".repeat(1_000_000).as_str()] {
        let result = ends("a glob", t.grep(GrepRequest::literal("a").glob(glob))).await;
        if let Err(error) = &result {
            assert_eq!(error.kind(), ErrorKind::InvalidPattern);
            t.assert_fit_to_be_shown(error);
        }
        assert!(result.is_err() || glob.len() > 10, "{glob}");
    }
    for glob in ["../*", "!../*", "d/../*", ".."] {
        let result = t.grep(GrepRequest::literal("a").glob(glob)).await;
        t.refused_as(result, &[ErrorKind::InvalidPattern, ErrorKind::InvalidPath]);
    }
    Ok(())
}

async fn file_types_choose_the_files(t: &Target) -> LawResult {
    for path in ["/main.rs", "/Makefile", "/mk/rules.mk", "/a.py", "/b.txt"] {
        t.put(path, "hit\n").await?;
    }
    for (types, expected) in [
        (&["rust"][..], &["/main.rs"][..]),
        (&["make"], &["/Makefile", "/mk/rules.mk"]),
        (&["py", "rust"], &["/a.py", "/main.rs"]),
    ] {
        let request = types.iter().fold(GrepRequest::literal("hit"), |request, name| request.file_type(*name));
        let paths: Vec<_> = t.grep(request).await?.matches.iter().map(|hit| t.name(&hit.path)).collect();
        assert_eq!(paths, expected, "{types:?}");
    }
    let both = t.hits(GrepRequest::literal("hit").file_type("rust").glob("a*")).await?;
    assert!(both.is_empty(), "a file must be of the type and match the glob: {both:?}");
    Ok(())
}

async fn an_unknown_file_type_is_refused(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    let result = t.grep(GrepRequest::literal("hit").file_type("no-such-type")).await;
    let error = t.refused(result, ErrorKind::InvalidArgument);
    assert!(error.for_model().contains("no-such-type"), "{}", error.for_model());
    Ok(())
}

async fn hidden_and_ignored_files_are_left_out_and_counted(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\nvendor/\n").await?;
    for path in ["/a", "/.env", "/.config/x", "/b.log", "/vendor/y", "/vendor/z"] {
        t.put(path, "hit\n").await?;
    }
    let result = t.grep(GrepRequest::literal("hit")).await?;
    assert_eq!(t.lines(&result.matches), ["/a:1:hit"]);
    assert_eq!((result.skipped.hidden, result.skipped.ignored), (3, 2));
    let hidden = t.grep(GrepRequest::literal("hit").hidden()).await?;
    assert_eq!((hidden.matches.len(), hidden.skipped.hidden, hidden.skipped.ignored), (3, 0, 2));
    let all = t.grep(GrepRequest::literal("hit").hidden().no_ignore()).await?;
    assert_eq!(all.matches.len(), 6);
    assert!(all.skipped.is_empty());
    Ok(())
}

async fn a_file_that_is_named_is_searched(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\n").await?;
    for path in ["/.env", "/a.log", "/.dir/b"] {
        t.put(path, "hit\n").await?;
        let hits = t.hits(GrepRequest::literal("hit").path(t.path(path))).await?;
        assert_eq!(hits, [format!("{path}:1:hit")], "a file that is named is searched");
    }
    assert_eq!(t.hits(GrepRequest::literal("hit").path(t.path("/.dir"))).await?, ["/.dir/b:1:hit"]);
    Ok(())
}
