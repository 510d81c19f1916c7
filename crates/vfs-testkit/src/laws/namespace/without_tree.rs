//! Mounts without a tree, which are searched by calls of their operations.

use std::sync::Arc;

use vfs_core::search::EntryKinds;
use vfs_core::{Backend, ErrorKind, GlobRequest, GrepOutput, GrepRequest, LsRequest, Result, TruncationReason};

use super::super::LawResult;
use super::law_helpers::{around, path, places};
use crate::fault_injector::{FaultInjector, FaultSchedule, InjectedFault};
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;
use crate::without_facets::WithoutFacets;

namespace_laws! {
    "NS27" a_mount_that_lends_no_tree_is_searched_like_the_others,
    "NS27" a_mount_that_lends_no_tree_is_searched_by_itself,
    "NS16" rules_above_a_mount_that_lends_no_tree_hold_in_it,
    "NS27" a_failing_mount_without_a_tree_is_a_problem_beside_the_other_results,
}

fn without_tree(target: &Target) -> Arc<dyn Backend> {
    Arc::new(WithoutFacets(Arc::clone(&target.backend)))
}

const FILES: [&str; 6] = ["/a/m/x.rs", "/a/y.rs", "/b-c/z.rs", "/b/d/e/f.rs", "/b/x.rs", "/c.rs"];

/// Returns a namespace in which the default backend and some of the mounts have no tree.
async fn partly_without_tree(n: &NamespaceFactory) -> Result<Target> {
    let (default, with_tree) = (without_tree(&n.backend()), n.backend().backend);
    let mounts = [("/a", &without_tree(&n.backend())), ("/a/m", &with_tree), ("/b", &without_tree(&n.backend()))];
    let files = n.mount(&default, &mounts);
    files.put("/.gitignore", "*.log\n").await?;
    files.put_each(&FILES).await?;
    files.put_each(&["/b/.hidden", "/b/d/x.log"]).await?;
    Ok(files)
}

async fn a_mount_that_lends_no_tree_is_searched_like_the_others(n: &NamespaceFactory) -> LawResult {
    let files = partly_without_tree(n).await?;
    let found = files.glob(GlobRequest::new("*")).await?;
    assert_eq!(files.names(&found.entries), FILES);
    assert_eq!((found.skipped.hidden, found.skipped.ignored), (2, 1));
    for entry in &found.entries {
        assert_eq!(*entry, files.stat(entry.path.as_str()).await?);
    }
    let grepped = files.grep(GrepRequest::regex("^")).await?;
    assert_eq!(files.lines(&grepped.matches), FILES.map(|at| format!("{at}:1:{at}")));
    assert_eq!(grepped.skipped, found.skipped);
    assert_eq!(files.events(GrepRequest::regex("^")).await?.len(), FILES.len() + 1);
    for limit in 0..FILES.len() {
        let found = files.glob(GlobRequest::new("*").limit(limit as u64)).await?;
        assert_eq!(
            (files.names(&found.entries), found.truncated),
            (FILES[..limit].iter().map(|at| (*at).to_owned()).collect(), Some(TruncationReason::Limit))
        );
    }
    let all = GlobRequest::new("**").kinds(EntryKinds::All).hidden().no_ignore();
    assert_eq!(files.tree().await?, files.globbed(all).await?);
    assert_eq!(files.tree().await?.len(), FILES.len() + 9, "with directories, and what searches leave out");
    Ok(())
}

async fn a_mount_that_lends_no_tree_is_searched_by_itself(n: &NamespaceFactory) -> LawResult {
    let files = partly_without_tree(n).await?;
    assert_eq!(files.level("/b").await?, ["/b/.hidden", "/b/d", "/b/x.rs"]);
    assert_eq!(files.globbed(GlobRequest::new("*.rs").path(path("/b"))).await?, FILES[3..5]);
    let counted = files.grep(GrepRequest::literal("f").path(path("/b/d")).output(GrepOutput::Counts)).await?;
    assert_eq!(counted.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), [FILES[3]]);
    assert_eq!(files.hits(GrepRequest::literal("f").path(path(FILES[3]))).await?, ["/b/d/e/f.rs:1:/b/d/e/f.rs"]);
    files.refused(files.glob(GlobRequest::new("*").path(path("/b/missing"))).await, ErrorKind::NotFound);
    Ok(())
}

async fn rules_above_a_mount_that_lends_no_tree_hold_in_it(n: &NamespaceFactory) -> LawResult {
    let files = partly_without_tree(n).await?;
    for (start, shown) in [("/", &FILES[..]), ("/b", &FILES[3..5]), ("/b/d", &FILES[3..4])] {
        let found = files.glob(GlobRequest::new("*").path(path(start))).await?;
        assert_eq!(files.names(&found.entries), shown, "below {start}");
        assert_eq!(found.skipped.ignored, 1, "below {start}");
        let grepped = files.grep(GrepRequest::regex("^").path(path(start)).output(GrepOutput::Files)).await?;
        assert_eq!(grepped.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), shown, "below {start}");
    }
    Ok(())
}

async fn a_failing_mount_without_a_tree_is_a_problem_beside_the_other_results(n: &NamespaceFactory) -> LawResult {
    let failing = around(
        &without_tree(&n.backend()),
        &FaultInjector::new(|_| true, FaultSchedule::Every, InjectedFault::FailBefore),
    );
    let files = n.mount(&n.backend().backend, &[("/bad", &failing), ("/good", &without_tree(&n.backend()))]);
    files.put_each(&["/a", "/good/x"]).await?;
    let listed = files.ls(LsRequest::new(path("/")).recursive()).await?;
    assert_eq!(files.names(&listed.entries), ["/a", "/bad", "/good", "/good/x"]);
    assert_eq!(places(&listed.problems), ["/bad"]);
    let found = files.glob(GlobRequest::new("*")).await?;
    assert_eq!(files.names(&found.entries), ["/a", "/good/x"]);
    assert_eq!(places(&found.problems), ["/bad"]);
    let grepped = files.grep(GrepRequest::regex("^")).await?;
    assert_eq!(files.lines(&grepped.matches), ["/a:1:/a", "/good/x:1:/good/x"]);
    assert_eq!(places(&grepped.problems), ["/bad"]);
    let mut accepted = Vec::new();
    for (operation, answer) in [
        ("ls", files.ls(LsRequest::new(path("/bad"))).await.map(drop)),
        ("glob", files.glob(GlobRequest::new("*").path(path("/bad"))).await.map(drop)),
        ("grep", files.grep(GrepRequest::literal("x").path(path("/bad"))).await.map(drop)),
    ] {
        if answer.is_ok() {
            accepted.push(operation);
        } else {
            files.refused(answer, ErrorKind::Unavailable);
        }
    }
    assert_eq!(accepted, [""; 0], "operations on the failing mount that did not fail");
    Ok(())
}
