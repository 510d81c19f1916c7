//! Names that glob and grep skip by default, and the counts of them.

use vfs_core::search::{EntryKinds, HiddenNames};
use vfs_core::{GlobRequest, GrepOutput, GrepRequest};

use super::LawResult;
use crate::target::Target;

laws! { "glob" in Semantics:
    "V1" Nothing hidden_entries_are_left_out_and_counted in Storage,
    "V1" Nothing a_literal_dot_in_a_glob_requests_the_hidden_name,
    "V2" Nothing ignored_entries_are_left_out_and_counted in Storage,
    "V3" Nothing the_nearer_and_the_later_rule_decide,
    "V4" Nothing git_itself_is_shown_only_by_both_requests,
    "V5" Nothing grep_sees_what_glob_sees,
    "V8" Nothing only_literal_dots_match_hidden_names,
    "V7" Nothing a_gitignore_that_excludes_every_name_counts_in_a_repository_only,
    "V6" Nothing only_what_the_pattern_can_reach_is_visited in Storage,
}

async fn hidden_entries_are_left_out_and_counted(t: &Target) -> LawResult {
    t.put_each(&["/a", "/.env", "/.dir/b", "/.dir/c", "/d/.x", "/..."]).await?;
    let result = t.glob(GlobRequest::new("*")).await?;
    assert_eq!(t.names(&result.entries), ["/a"]);
    assert_eq!((result.skipped.hidden, result.skipped.ignored), (4, 0), "a directory counts once");
    let result = t.glob(GlobRequest::new("*").hidden()).await?;
    assert_eq!(t.names(&result.entries), ["/...", "/.dir/b", "/.dir/c", "/.env", "/a", "/d/.x"]);
    assert!(result.skipped.is_empty());
    Ok(())
}

async fn a_literal_dot_in_a_glob_requests_the_hidden_name(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.secret\n").await?;
    t.put_each(&["/.env", "/.env.secret", "/.git/config", "/.github/a.yml", "/.github/.ci/b.yml", "/.venv/.env"])
        .await?;
    t.put_each(&["/a.yml", "/d/.env", "/d/.github/c.yml"]).await?;
    for (pattern, expected) in [
        ("*", &["/a.yml"][..]),
        ("?env", &[]),
        (".env*", &["/.env", "/d/.env"]),
        ("/.env", &["/.env"]),
        (".venv/.e*", &["/.venv/.env"]),
        (".github/**/*.yml", &["/.github/a.yml"]),
        ("**/.github/*.{yml,yaml}", &["/.github/a.yml", "/d/.github/c.yml"]),
        ("{.github,d}/{.ci,.github}/*", &["/.github/.ci/b.yml", "/d/.github/c.yml"]),
        (".git/*", &[]),
    ] {
        assert_eq!(t.found(pattern).await?, expected, "{pattern}");
        let grep = GrepRequest::regex(".").glob(pattern).output(GrepOutput::Files);
        let searched: Vec<_> = t.grep(grep).await?.files.iter().map(|file| t.name(&file.path)).collect();
        assert_eq!(searched, expected, "{pattern}");
    }
    let result = t.glob(GlobRequest::new(".v*")).await?;
    assert_eq!((result.entries.len(), result.skipped.hidden), (0, 7), "the content of `.venv` was not visited");
    let result = t.glob(GlobRequest::new(".v*").kinds(EntryKinds::Directories)).await?;
    assert_eq!(t.names(&result.entries), ["/.venv"]);
    Ok(())
}

async fn ignored_entries_are_left_out_and_counted(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\n/target/\n# a comment\n").await?;
    t.put("/.ignore", "secret\n").await?;
    t.put("/.git/info/exclude", "local\n").await?;
    t.put_each(&["/a.log", "/src/b.log", "/target/x", "/src/target/y", "/secret", "/local", "/src/main.rs"]).await?;
    let result = t.glob(GlobRequest::new("*")).await?;
    assert_eq!(t.names(&result.entries), ["/src/main.rs", "/src/target/y"]);
    assert_eq!((result.skipped.hidden, result.skipped.ignored), (3, 5));
    let result = t.glob(GlobRequest::new("*").no_ignore()).await?;
    assert_eq!(result.entries.len(), 7);
    assert_eq!((result.skipped.hidden, result.skipped.ignored), (3, 0));
    Ok(())
}

async fn the_nearer_and_the_later_rule_decide(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\n!keep.log\nbuild/\n/only-here\n").await?;
    t.put("/d/.gitignore", "!a.log\nb.txt\n").await?;
    t.put("/d/.ignore", "c.txt\n").await?;
    t.put_each(&["/a.log", "/keep.log", "/d/a.log", "/d/b.txt", "/d/c.txt", "/b.txt", "/c.txt"]).await?;
    t.put_each(&["/build/x", "/d/build/y", "/only-here", "/d/only-here"]).await?;
    let expected = ["/b.txt", "/c.txt", "/d/a.log", "/d/only-here", "/keep.log"];
    assert_eq!(t.found("*").await?, expected);
    let below = t.glob(GlobRequest::new("*").path(t.path("/d"))).await?;
    assert_eq!(t.names(&below.entries), ["/d/a.log", "/d/only-here"], "rules above the start count, too");
    Ok(())
}

async fn a_gitignore_that_excludes_every_name_counts_in_a_repository_only(t: &Target) -> LawResult {
    t.put("/package/.gitignore", "*.log\n/*\n!/debian/\n").await?;
    t.put("/package/sub/.gitignore", "b\n").await?;
    t.put_each(&["/package/a", "/package/a.log", "/package/sub/b"]).await?;
    assert_eq!(t.found("*").await?, ["/package/a", "/package/a.log", "/package/sub/b"]);
    t.put_each(&["/.git/HEAD"]).await?;
    assert!(t.found("*").await?.is_empty());
    Ok(())
}

async fn only_literal_dots_match_hidden_names(t: &Target) -> LawResult {
    t.put("/.gitignore", "!.listed\n").await?;
    t.put_each(&["/.a/.b/x", "/.a/.x", "/.a/x", "/.listed", "/d/.a/x", "/d/e/x", "/x"]).await?;
    let everywhere = ["/.a/.b/x", "/.a/x", "/d/.a/x", "/d/e/x", "/x"];
    for (pattern, expected) in [
        ("*", &everywhere[..]),
        ("?", &everywhere),
        ("[!a]", &everywhere),
        (".x", &["/.a/.x"]),
        ("{.,}x", &["/.a/.b/x", "/.a/.x", "/.a/x", "/d/.a/x", "/d/e/x", "/x"]),
        ("**/x", &["/d/e/x", "/x"]),
        ("*/*", &[]),
        (".*/*", &["/.a/x"]),
        ("**/.a/*", &["/.a/x", "/d/.a/x"]),
        (".a/**", &["/.a/x"]),
        ("{.a/.x,*/x}", &["/.a/.x"]),
    ] {
        let globbed = t.glob(GlobRequest::new(pattern).hidden_names(HiddenNames::Spelled)).await?;
        assert_eq!(t.names(&globbed.entries), expected, "{pattern}");
        let grep = GrepRequest::regex(".").glob(pattern).hidden_names(HiddenNames::Spelled);
        let grepped = t.grep(grep.output(GrepOutput::Files)).await?;
        let searched: Vec<_> = grepped.files.iter().map(|file| t.name(&file.path)).collect();
        assert_eq!(searched, expected, "{pattern}");
        assert_eq!(globbed.skipped, grepped.skipped, "{pattern}");
    }
    Ok(())
}

async fn git_itself_is_shown_only_by_both_requests(t: &Target) -> LawResult {
    t.put_each(&["/.git/config", "/.github/ci.yml", "/a"]).await?;
    for (request, expected) in [
        (GlobRequest::new("*"), &["/a"][..]),
        (GlobRequest::new("*").no_ignore(), &["/a"]),
        (GlobRequest::new("*").hidden(), &["/.github/ci.yml", "/a"]),
        (GlobRequest::new("*").hidden().no_ignore(), &["/.git/config", "/.github/ci.yml", "/a"]),
    ] {
        assert_eq!(t.names(&t.glob(request.clone()).await?.entries), expected, "{request:?}");
    }
    Ok(())
}

async fn grep_sees_what_glob_sees(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\ntarget/\n").await?;
    t.put("/d/.ignore", "x\n").await?;
    t.put_each(&["/.git/config", "/.hidden", "/a.log", "/d/x", "/d/y", "/target/z", "/e/.dir/f"]).await?;
    let modes = [HiddenNames::Skip, HiddenNames::Include, HiddenNames::Spelled];
    for (hidden, no_ignore) in modes.into_iter().flat_map(|hidden| [(hidden, false), (hidden, true)]) {
        let mut glob = GlobRequest::new("*").hidden_names(hidden);
        let mut grep = GrepRequest::regex(".").output(GrepOutput::Files).hidden_names(hidden);
        if no_ignore {
            (glob, grep) = (glob.no_ignore(), grep.no_ignore());
        }
        let (globbed, grepped) = (t.glob(glob).await?, t.grep(grep).await?);
        let searched: Vec<_> = grepped.files.iter().map(|file| t.name(&file.path)).collect();
        assert_eq!(t.names(&globbed.entries), searched, "hidden {hidden:?} no_ignore {no_ignore}");
        assert_eq!(globbed.skipped, grepped.skipped, "hidden {hidden:?} no_ignore {no_ignore}");
    }
    Ok(())
}

async fn only_what_the_pattern_can_reach_is_visited(t: &Target) -> LawResult {
    t.put_each(&["/docs/.seen", "/docs/deep/.seen", "/src/net/.seen", "/src/net/tcp.rs", "/src/net/deep/.seen"])
        .await?;
    let result = t.glob(GlobRequest::new("src/net/*.rs")).await?;
    assert_eq!(t.names(&result.entries), ["/src/net/tcp.rs"]);
    assert!(result.skipped.hidden <= 1, "entries elsewhere were not visited: {:?}", result.skipped);
    Ok(())
}
