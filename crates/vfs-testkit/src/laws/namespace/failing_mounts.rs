//! Mounts that fail.

use std::sync::Arc;

use vfs_core::{
    Backend, DeleteRequest, EditRequest, ErrorKind, GlobRequest, GrepEvent, GrepRequest, LsRequest, Problem,
    ReadRequest, Result, WriteRequest,
};

use super::super::LawResult;
use super::law_helpers::{NamespaceFixture, around, path, places};
use crate::fault_injector::{FaultInjector, FaultSchedule, InjectedFault};
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

namespace_laws! {
    "NS18" a_failing_mount_is_a_problem_beside_the_other_results,
    "NS18" a_failing_default_backend_is_a_problem_beside_the_mounts,
    "NS18" a_problem_has_a_path_of_the_namespace,
    "NS19" a_failing_mount_is_an_error_if_it_is_requested,
    "NS19" a_failing_mount_is_an_error_if_a_search_starts_in_it,
    "NS19" a_failing_mount_does_not_affect_requests_to_other_mounts,
}

/// Returns a backend whose every operation fails.
fn failing(n: &NamespaceFactory) -> Arc<dyn Backend> {
    around(&n.backend().backend, &FaultInjector::new(|_| true, FaultSchedule::Every, InjectedFault::FailBefore))
}

/// Creates a default backend and a mount with a file each, and a mount that fails.
async fn partly_failing(n: &NamespaceFactory) -> Result<Target> {
    let (default, good) = (n.backend(), n.backend());
    let files = n.mount(&default.backend, &[("/in/bad", &failing(n)), ("/in/good", &good.backend)]);
    files.put_each(&["/in/good/x", "/a"]).await?;
    Ok(files)
}

/// Asserts that there is one problem, at `place`, whose message names that path.
fn one_problem(what: &str, problems: &[Problem], place: &str) {
    assert_eq!(places(problems), [place], "{what}");
    assert_eq!(problems[0].code, ErrorKind::Unavailable, "{what}");
    assert!(problems[0].message.contains(&format!("'{place}'")), "{what}: {}", problems[0].message);
}

/// Asserts the results of a listing, a glob and a search beside their one problem.
async fn finds_beside(t: &Target, start: &str, place: &str, entries: &[&str], files: &[&str]) -> LawResult {
    let listed = t.ls(LsRequest::new(path(start)).recursive()).await?;
    assert_eq!(t.names(&listed.entries), entries);
    one_problem("ls", &listed.problems, place);
    let found = t.glob(GlobRequest::new("*").path(path(start))).await?;
    assert_eq!(t.names(&found.entries), files);
    one_problem("glob", &found.problems, place);
    let grep = GrepRequest::regex("^").path(path(start));
    let grepped = t.grep(grep.clone()).await?;
    assert_eq!(grepped.matches.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), files);
    one_problem("grep", &grepped.problems, place);
    let (mut matches, mut problems) = (Vec::new(), Vec::new());
    for event in t.events(grep).await? {
        match event {
            GrepEvent::Match(hit) => matches.push(hit.path.to_string()),
            GrepEvent::Problem(problem) => problems.push(problem),
            _ => {}
        }
    }
    assert_eq!(matches, files);
    one_problem("grep_stream", &problems, place);
    Ok(())
}

async fn a_failing_mount_is_a_problem_beside_the_other_results(n: &NamespaceFactory) -> LawResult {
    let files = partly_failing(n).await?;
    let entries = ["/a", "/in", "/in/bad", "/in/good", "/in/good/x"];
    finds_beside(&files, "/", "/in/bad", &entries, &["/a", "/in/good/x"]).await?;
    finds_beside(&files, "/in", "/in/bad", &entries[2..], &["/in/good/x"]).await
}

async fn a_failing_default_backend_is_a_problem_beside_the_mounts(n: &NamespaceFactory) -> LawResult {
    let good = n.backend();
    let files = n.mount(&failing(n), &[("/good", &good.backend), ("/in/good", &good.backend)]);
    files.put_each(&["/good/x"]).await?;
    let listed = files.ls(LsRequest::new(path("/")).recursive()).await?;
    assert_eq!(files.names(&listed.entries), ["/good", "/good/x", "/in", "/in/good", "/in/good/x"]);
    assert!(places(&listed.problems).contains(&"/"), "{:?}", listed.problems);
    let found = files.glob(GlobRequest::new("*")).await?;
    assert_eq!(files.names(&found.entries), ["/good/x", "/in/good/x"]);
    assert!(places(&found.problems).contains(&"/"), "{:?}", found.problems);
    let grepped = files.grep(GrepRequest::literal("x").path(path("/"))).await?;
    assert_eq!(files.lines(&grepped.matches), ["/good/x:1:/good/x", "/in/good/x:1:/good/x"]);
    assert!(places(&grepped.problems).contains(&"/"), "{:?}", grepped.problems);
    assert_eq!(files.found("good/*").await?, ["/good/x"]);
    Ok(())
}

async fn a_problem_has_a_path_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let inner = partly_failing(n).await?;
    let files = n.mount(&n.backend().backend, &[("/deep/m", &inner.backend)]);
    let at = |name: &str| format!("/deep/m{name}");
    let entries = ["/in", "/in/bad", "/in/good", "/in/good/x"].map(at);
    let entries: Vec<_> = entries.iter().map(String::as_str).collect();
    let found = [at("/in/good/x")];
    finds_beside(&files, "/deep/m/in", "/deep/m/in/bad", &entries[1..], &[&found[0]]).await?;
    let listed = files.ls(LsRequest::new(path("/")).recursive()).await?;
    one_problem("ls", &listed.problems, "/deep/m/in/bad");
    assert!(!listed.problems[0].message.contains("'/in/bad'"), "{}", listed.problems[0].message);
    Ok(())
}

async fn a_failing_mount_is_an_error_if_a_search_starts_in_it(n: &NamespaceFactory) -> LawResult {
    let files = partly_failing(n).await?;
    let mut accepted = Vec::new();
    for at in ["/in/bad", "/in/bad/x/y"] {
        let grep = || GrepRequest::literal("x").path(path(at));
        for (operation, answer) in [
            ("ls", files.ls(LsRequest::new(path(at))).await.map(drop)),
            ("ls -r", files.ls(LsRequest::new(path(at)).recursive()).await.map(drop)),
            ("glob", files.glob(GlobRequest::new("*").path(path(at))).await.map(drop)),
            ("grep", files.grep(grep()).await.map(drop)),
            ("grep_stream", files.events(grep()).await.map(drop)),
        ] {
            if answer.is_ok() {
                accepted.push(format!("{operation} {at}"));
                continue;
            }
            let error = files.refused(answer, ErrorKind::Unavailable);
            let named = error.path().unwrap_or_default();
            assert!(path(named).starts_with(&path("/in/bad")), "{operation} {at} is about {named}");
        }
    }
    assert_eq!(accepted, [""; 0], "there is nothing else that could be shown");
    Ok(())
}

async fn a_failing_mount_is_an_error_if_it_is_requested(n: &NamespaceFactory) -> LawResult {
    let files = partly_failing(n).await?;
    let at = || path("/in/bad/x");
    for answer in [
        files.stat("/in/bad/x").await.map(drop),
        files.read(ReadRequest::new(at())).await.map(drop),
        files.write(WriteRequest::new(at(), "x")).await.map(drop),
        files.edit(EditRequest::new(at(), "x", "y")).await.map(drop),
        files.delete(DeleteRequest::new(at())).await.map(drop),
        files.download_error("/in/bad/x").await.map_or(Ok(()), Err),
    ] {
        assert_eq!(files.refused(answer, ErrorKind::Unavailable).path(), Some("/in/bad/x"));
    }
    assert!(files.stat("/in/bad").await?.is_dir, "the mount is shown although its backend fails");
    Ok(())
}

async fn a_failing_mount_does_not_affect_requests_to_other_mounts(n: &NamespaceFactory) -> LawResult {
    let files = partly_failing(n).await?;
    let level = files.ls(LsRequest::new(path("/in"))).await?;
    assert_eq!((files.names(&level.entries), level.problems), (vec!["/in/bad".into(), "/in/good".into()], Vec::new()));
    let found = files.glob(GlobRequest::new("in/good/*")).await?;
    assert_eq!((files.names(&found.entries), found.problems), (vec!["/in/good/x".into()], Vec::new()));
    let grepped = files.grep(GrepRequest::literal("x").path(path("/in/good"))).await?;
    assert_eq!((files.lines(&grepped.matches), grepped.problems), (vec!["/in/good/x:1:/in/good/x".into()], Vec::new()));
    let NamespaceFixture { files, .. } = n.parts(&[]);
    assert_eq!(files.tree().await?, [""; 0], "a namespace without mounts is its default backend");
    Ok(())
}
