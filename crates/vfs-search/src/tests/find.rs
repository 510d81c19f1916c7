use vfs_core::{EntryKinds, ErrorKind, GlobRequest, GlobResult, LinkMode, Truncation};

use crate::testing::{self, Node, TestTree, path};

fn find(tree: &TestTree, req: &GlobRequest) -> GlobResult {
    testing::find(tree, req).unwrap_or_else(|error| panic!("{req:?}: {error}"))
}

fn paths(result: &GlobResult) -> Vec<&str> {
    result.entries.iter().map(|info| info.path.as_str()).collect()
}

#[test]
fn names_match_at_any_depth_and_paths_relative_to_the_search() {
    let tree = TestTree::new([("/p/a.rs", ""), ("/p/src/b.rs", ""), ("/p/src/net/c.rs", ""), ("/q.rs", "")]);
    for (pattern, at, expected) in [
        ("*.rs", "/", &["/p/a.rs", "/p/src/b.rs", "/p/src/net/c.rs", "/q.rs"][..]),
        ("*.rs", "/p/src", &["/p/src/b.rs", "/p/src/net/c.rs"]),
        ("/*.rs", "/p", &["/p/a.rs"]),
        ("src/*.rs", "/p", &["/p/src/b.rs"]),
        ("src/**/*.rs", "/p", &["/p/src/b.rs", "/p/src/net/c.rs"]),
        ("nothing", "/", &[]),
    ] {
        assert_eq!(paths(&find(&tree, &GlobRequest::new(pattern).path(path(at)))), expected, "{pattern} {at}");
    }
}

#[test]
fn only_what_the_pattern_can_reach_is_listed() {
    let tree =
        || TestTree::new([("/src/net/a.rs", ""), ("/src/fs/deep/b.rs", ""), ("/docs/x/c.rs", ""), ("/lib/d.rs", "")]);
    for (pattern, expected) in [
        ("src/net/*.rs", &["/", "/src/", "/src/net/"][..]),
        ("/*.rs", &["/"]),
        ("{src/net,lib}/*.rs", &["/", "/lib/", "/src/", "/src/net/"]),
        ("src/**", &["/", "/src/", "/src/fs/", "/src/fs/deep/", "/src/net/"]),
    ] {
        let tree = tree();
        find(&tree, &GlobRequest::new(pattern));
        let mut listed = tree.listed.lock().expect("not poisoned").clone();
        listed.sort_unstable();
        assert_eq!(listed, expected, "{pattern}");
    }
}

#[test]
fn kinds_choose_between_files_and_directories() {
    let tree = TestTree::new([("/a/a", ""), ("/b", "")]).with("/a-pipe", Node::Fifo);
    for (kinds, expected) in [
        (EntryKinds::Files, &["/a/a", "/b"][..]),
        (EntryKinds::Directories, &["/a"]),
        (EntryKinds::All, &["/a", "/a/a", "/b"]),
    ] {
        assert_eq!(paths(&find(&tree, &GlobRequest::new("*").kinds(kinds))), expected, "{kinds:?}");
    }
    assert_eq!(paths(&find(&tree, &GlobRequest::new("a/").kinds(EntryKinds::All))), ["/a"]);
    let error = testing::find(&tree, &GlobRequest::new("a/")).expect_err("it can match no file");
    assert_eq!(error.kind(), ErrorKind::InvalidPattern);
}

#[test]
fn a_limit_tells_whether_there_is_more() {
    let tree = TestTree::new([("/a", ""), ("/b", ""), ("/c", "")]);
    for (limit, count, truncated) in
        [(0, 0, Some(Truncation::Limit)), (2, 2, Some(Truncation::Limit)), (3, 3, None), (9, 3, None)]
    {
        let result = find(&tree, &GlobRequest::new("*").limit(limit));
        assert_eq!((result.entries.len(), result.truncated), (count, truncated), "{limit}");
    }
}

fn linked() -> TestTree {
    TestTree::new([("/d/x.rs", ""), ("/real.rs", "")])
        .with("/file.rs", Node::Link("/real.rs"))
        .with("/dir.rs", Node::Link("/d"))
        .with("/out.rs", Node::Link("outside"))
        .with("/other", Node::Link("nowhere"))
        .with("/d/up.rs", Node::Link("/"))
}

#[test]
fn links_are_shown_under_their_own_names_and_not_gone_down() {
    let result = find(&linked(), &GlobRequest::new("*.rs"));
    assert_eq!(paths(&result), ["/d/x.rs", "/file.rs", "/real.rs"]);
    assert_eq!(result.problems.len(), 1);
    assert_eq!((result.problems[0].path.as_str(), result.problems[0].code), ("/out.rs", ErrorKind::PathEscape));
    let result = find(&linked(), &GlobRequest::new("*.rs").kinds(EntryKinds::Directories));
    assert_eq!(paths(&result), ["/d/up.rs", "/dir.rs"]);
}

#[test]
fn followed_links_are_gone_down_once() {
    let result = find(&linked(), &GlobRequest::new("*.rs").links(LinkMode::Follow));
    assert_eq!(paths(&result), ["/d/x.rs", "/dir.rs/x.rs", "/file.rs", "/real.rs"]);
    let loops: Vec<_> = result.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    assert_eq!(
        loops,
        [
            ("/d/up.rs", ErrorKind::InvalidPath),
            ("/dir.rs/up.rs", ErrorKind::InvalidPath),
            ("/other", ErrorKind::PathEscape),
            ("/out.rs", ErrorKind::PathEscape),
        ]
    );
}

#[test]
fn an_unreadable_directory_is_a_problem_and_the_rest_is_found() {
    let tree = TestTree::new([("/a", ""), ("/z", "")]).with("/locked", Node::LockedDirectory);
    let result = find(&tree, &GlobRequest::new("*"));
    assert_eq!(paths(&result), ["/a", "/z"]);
    assert_eq!((result.problems[0].path.as_str(), result.problems[0].code), ("/locked", ErrorKind::PermissionDenied));
}

#[test]
fn missing_paths_files_and_bad_patterns_are_errors() {
    let tree = TestTree::new([("/f", "")]);
    for (req, kind) in [
        (GlobRequest::new("*").path(path("/nothing")), ErrorKind::NotFound),
        (GlobRequest::new("*").path(path("/f")), ErrorKind::NotADirectory),
        (GlobRequest::new("["), ErrorKind::InvalidPattern),
        (GlobRequest::new("../*"), ErrorKind::InvalidPattern),
    ] {
        assert_eq!(testing::find(&tree, &req).expect_err("refused").kind(), kind, "{req:?}");
    }
}
