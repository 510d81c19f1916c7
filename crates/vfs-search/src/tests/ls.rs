use std::sync::Arc;

use futures::executor::block_on;
use proptest::prelude::*;
use vfs_core::{ErrorKind, LsRequest, LsResult, OpContext, Result, TruncationReason};

use crate::testing::{TestNode, TestTree, path};
use crate::{Pool, ls_on};

fn ls(tree: &Arc<TestTree>, cx: &OpContext, req: &LsRequest) -> Result<LsResult> {
    crate::ls(Arc::clone(tree) as _, cx, req)
}

fn names(tree: &Arc<TestTree>, req: &LsRequest) -> Vec<String> {
    let result = ls(tree, &OpContext::new(), req).expect("it lists");
    let on_a_pool = block_on(ls_on(&Pool::new(2), Arc::clone(tree) as _, OpContext::new(), req.clone()));
    assert_eq!(on_a_pool.as_ref(), Ok(&result), "{req:?}");
    result.entries.iter().map(|info| format!("{}{}", info.path, if info.is_dir { "/" } else { "" })).collect()
}

#[test]
fn entries_are_sorted_by_the_bytes_of_their_paths() {
    let tree =
        Arc::new(TestTree::new([("/a/x", ""), ("/a-b", ""), ("/a.txt", ""), ("/a/y/z", ""), ("/.h", ""), ("/a0", "")]));
    assert_eq!(names(&tree, &LsRequest::new(path("/"))), ["/.h", "/a/", "/a-b", "/a.txt", "/a0"]);
    assert_eq!(
        names(&tree, &LsRequest::new(path("/")).recursive()),
        ["/.h", "/a/", "/a-b", "/a.txt", "/a/x", "/a/y/", "/a/y/z", "/a0"]
    );
}

#[test]
fn missing_paths_and_files_are_different_errors() {
    let tree = Arc::new(TestTree::new([("/f", "")]));
    for (at, kind) in [("/nothing", ErrorKind::NotFound), ("/f", ErrorKind::NotADirectory)] {
        let error = ls(&tree, &OpContext::new(), &LsRequest::new(path(at))).expect_err("refused");
        assert_eq!((error.kind(), error.path()), (kind, Some(at)));
    }
    assert!(names(&Arc::new(TestTree::new([])), &LsRequest::new(path("/"))).is_empty());
}

#[test]
fn limits_set_truncated() {
    let tree = Arc::new(TestTree::new([("/a/b/c", ""), ("/d", "")]));
    let flat = LsRequest::new(path("/"));
    let deep = flat.clone().recursive();
    for (req, count, truncated) in [
        (flat.clone(), 2, None),
        (flat.clone().limit(2), 2, None),
        (flat.clone().limit(1), 1, Some(TruncationReason::Limit)),
        (flat.limit(0), 0, Some(TruncationReason::Limit)),
        (deep.clone(), 4, None),
        (deep.clone().max_depth(3), 4, None),
        (deep.clone().max_depth(2), 3, Some(TruncationReason::Depth)),
        (deep.clone().max_depth(1), 2, Some(TruncationReason::Depth)),
        (deep.max_depth(0), 0, Some(TruncationReason::Depth)),
    ] {
        let result = ls(&tree, &OpContext::new(), &req).expect("it lists");
        assert_eq!((result.entries.len(), result.truncated), (count, truncated), "{req:?}");
    }
}

#[test]
fn an_empty_directory_at_the_depth_limit_does_not_truncate() {
    let tree = Arc::new(TestTree::of([("/a", TestNode::Directory)]));
    let result = ls(&tree, &OpContext::new(), &LsRequest::new(path("/")).recursive().max_depth(1)).expect("it lists");
    assert_eq!(result.truncated, None);
}

#[test]
fn entries_that_cannot_be_described_are_problems() {
    let tree = TestTree::new([("/ok", ""), ("/bad\u{fffd}", ""), ("/d/x", "")])
        .with("/out", TestNode::Link("outside"))
        .with("/dangling", TestNode::Link("/nowhere"))
        .with("/locked", TestNode::LockedDirectory)
        .with("/pipe", TestNode::Fifo)
        .with("/in", TestNode::Link("/d"));
    let tree = Arc::new(tree);
    let result = ls(&tree, &OpContext::new(), &LsRequest::new(path("/")).recursive()).expect("it lists");
    let shown: Vec<_> = result.entries.iter().map(|info| info.path.as_str()).collect();
    assert_eq!(shown, ["/d", "/d/x", "/in", "/locked", "/ok"]);
    let mut problems: Vec<_> = result.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    problems.sort_unstable();
    assert_eq!(
        problems,
        [
            ("/bad\u{fffd}", ErrorKind::InvalidPath),
            ("/dangling", ErrorKind::NotFound),
            ("/locked", ErrorKind::PermissionDenied),
            ("/out", ErrorKind::PathEscape),
            ("/pipe", ErrorKind::Unsupported),
        ]
    );
    let error = ls(&tree, &OpContext::new(), &LsRequest::new(path("/locked"))).expect_err("it cannot be listed");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_tree_deeper_than_a_path_can_name_is_truncated() {
    let deep = format!("{}/x", "/abcdefgh".repeat(500));
    let tree = Arc::new(TestTree::new([(deep.as_str(), ""), ("/b", "")]));
    let result = ls(&tree, &OpContext::new(), &LsRequest::new(path("/")).recursive()).expect("it lists");
    assert_eq!(result.truncated, Some(TruncationReason::Depth));
    assert_eq!(result.entries.len(), 4096 / 9 + 1);
    assert_eq!(result.problems.len(), 1);
    assert_eq!(result.problems[0].code, ErrorKind::InvalidPath);
}

#[test]
fn a_cancelled_context_ends_it() {
    let cx = OpContext::new();
    cx.cancel_token().cancel();
    let error = ls(&Arc::new(TestTree::new([])), &cx, &LsRequest::new(path("/"))).expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

proptest! {
    #[test]
    fn a_walk_is_in_the_order_of_its_paths(paths in prop::collection::btree_set("(/[ab.!-]{1,3}){1,4}", 0..20)) {
        let valid = |path: &&String| !path.split('/').any(|name| name == "." || name == "..");
        let is_leaf = |path: &&String| !paths.iter().any(|other| other.starts_with(&format!("{path}/")));
        let files: Vec<_> = paths.iter().filter(valid).filter(is_leaf).map(String::as_str).collect();
        let tree = Arc::new(TestTree::new(files.iter().map(|path| (*path, ""))));
        let result = ls(&tree, &OpContext::new(), &LsRequest::new(path("/")).recursive()).expect("it lists");
        let shown: Vec<_> = result.entries.iter().map(|info| info.path.clone()).collect();
        prop_assert!(shown.is_sorted());
        let mut shown_files: Vec<_> =
            result.entries.iter().filter(|info| !info.is_dir).map(|info| info.path.as_str()).collect();
        let mut files = files;
        files.sort_unstable();
        shown_files.sort_unstable();
        prop_assert_eq!(shown_files, files);
    }
}

#[test]
fn problems_are_bounded() {
    let paths: Vec<_> = (0..1500).map(|n| format!("/l{n}")).collect();
    let tree = Arc::new(TestTree::of(paths.iter().map(|path| (path.as_str(), TestNode::Link("/nothing")))));
    let listed = ls(&tree, &OpContext::new(), &LsRequest::new(path("/"))).expect("it lists").problems;
    let found = crate::testing::find(&tree, &vfs_core::GlobRequest::new("l*")).expect("it searches").problems;
    for problems in [listed, found] {
        assert_eq!(problems.len(), 1001);
        assert!(problems[1000].message.contains("500 more"), "{}", problems[1000].message);
    }
}
