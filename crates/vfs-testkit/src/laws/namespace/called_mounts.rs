//! Requests reach only the mounts that they concern.

use std::sync::Arc;

use vfs_core::{GlobRequest, GrepRequest, LsRequest, ReadRequest, Result};

use super::super::LawResult;
use super::law_helpers::{around, path};
use crate::call_counter::CallCounter;
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

namespace_laws! {
    "NS15" a_glob_calls_only_the_mounts_that_its_pattern_can_reach,
    "NS15" a_search_calls_only_the_mounts_that_its_globs_can_reach,
    "NS15" a_search_calls_only_the_mounts_below_its_start_and_above,
    "NS15" a_listing_calls_only_the_mounts_that_it_shows,
    "NS15" an_operation_on_a_file_calls_only_its_mount,
}

/// A namespace, and the calls of each of its backends, the default one first.
struct CallCountFixture {
    files: Target,
    counts: Vec<Arc<CallCounter>>,
}

/// The mount points.
const PLACES: [&str; 5] = ["/a", "/a/deep/m", "/b", "/c/d", "/c/e"];

async fn counted(n: &NamespaceFactory) -> Result<CallCountFixture> {
    let counts: Vec<_> = (0..=PLACES.len()).map(|_| Arc::new(CallCounter::default())).collect();
    let mut backends = Vec::new();
    for count in &counts {
        let backend = n.backend();
        backend.put_each(&["/x.rs", "/src/y.rs"]).await?;
        backends.push(around(&backend.backend, count));
    }
    let table: Vec<_> = PLACES.into_iter().zip(&backends[1..]).collect();
    Ok(CallCountFixture { files: n.mount(&backends[0], &table), counts })
}

impl CallCountFixture {
    /// Returns the mounts with a call since `before`, without the default backend.
    fn called(&self, before: &[u64]) -> Vec<&'static str> {
        let called = self.counts[1..].iter().zip(&before[1..]).map(|(count, before)| count.total() > *before);
        PLACES.into_iter().zip(called).filter_map(|(place, is_called)| is_called.then_some(place)).collect()
    }

    fn now(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.total()).collect()
    }
}

async fn a_glob_calls_only_the_mounts_that_its_pattern_can_reach(n: &NamespaceFactory) -> LawResult {
    let counted = counted(n).await?;
    for (pattern, expected, found) in [
        ("b/*.rs", &["/b"][..], 1),
        ("b/**/*.rs", &["/b"], 2),
        ("a/*.rs", &["/a"], 1),
        ("a/**", &["/a", "/a/deep/m"], 4),
        ("{b,c/d}/x.rs", &["/b", "/c/d"], 2),
        ("c/*/x.rs", &["/c/d", "/c/e"], 2),
        ("c/[!d]/x.rs", &["/c/e"], 1),
        ("*.md", &PLACES[..], 0),
        ("src/*.rs", &[], 1),
        ("/x.rs", &[], 1),
    ] {
        let before = counted.now();
        let entries = counted.files.found(pattern).await?;
        assert_eq!((counted.called(&before), entries.len()), (expected.to_vec(), found), "{pattern}: {entries:?}");
    }
    let before = counted.now();
    counted.files.glob(GlobRequest::new("d/*.rs").path(path("/c"))).await?;
    assert_eq!(counted.called(&before), ["/c/d"]);
    Ok(())
}

async fn a_search_calls_only_the_mounts_that_its_globs_can_reach(n: &NamespaceFactory) -> LawResult {
    let counted = counted(n).await?;
    let all = || GrepRequest::regex("^");
    for (request, expected, found) in [
        (all().glob("b/**"), &["/b"][..], 2),
        (all().glob("c/*/x.rs"), &["/c/d", "/c/e"], 2),
        (all().glob("!a").glob("!b"), &["/c/d", "/c/e"], 6),
        (all().glob("*.rs"), &PLACES[..], 12),
    ] {
        let before = counted.now();
        let hits = counted.files.hits(request.clone()).await?;
        assert_eq!((counted.called(&before), hits.len()), (expected.to_vec(), found), "{request:?}: {hits:?}");
        let before = counted.now();
        assert_eq!(counted.files.events(request.clone()).await?.len(), found + 1);
        assert_eq!(counted.called(&before), expected, "{request:?}");
    }
    Ok(())
}

async fn a_search_calls_only_the_mounts_below_its_start_and_above(n: &NamespaceFactory) -> LawResult {
    let counted = counted(n).await?;
    for (start, expected, found) in [
        ("/b", &["/b"][..], 2),
        ("/b/src", &["/b"], 1),
        ("/b/src/y.rs", &["/b"], 1),
        ("/c", &["/c/d", "/c/e"], 4),
        // The mount above has a call for its ignore rules.
        ("/a/deep/m/src", &["/a", "/a/deep/m"], 1),
        ("/a", &["/a", "/a/deep/m"], 4),
        ("/src", &[], 1),
    ] {
        let before = counted.now();
        let hits = counted.files.hits(GrepRequest::regex("^").path(path(start))).await?;
        let called = counted.called(&before);
        assert!(called.iter().all(|at| expected.contains(at)), "{called:?} for {start}");
        assert_eq!(hits.len(), found, "{start}: {hits:?}");
        if !start.ends_with(".rs") {
            let before = counted.now();
            let entries = counted.files.globbed(GlobRequest::new("*").path(path(start))).await?;
            let called = counted.called(&before);
            assert!(called.iter().all(|at| expected.contains(at)), "{called:?} for {start}");
            assert_eq!(entries.len(), found, "{start}: {entries:?}");
        }
    }
    Ok(())
}

async fn a_listing_calls_only_the_mounts_that_it_shows(n: &NamespaceFactory) -> LawResult {
    let counted = counted(n).await?;
    for (request, expected) in [
        (LsRequest::new(path("/")), &[][..]),
        (LsRequest::new(path("/c")), &[]),
        (LsRequest::new(path("/b")), &["/b"]),
        (LsRequest::new(path("/c")).recursive(), &["/c/d", "/c/e"]),
        // The mounts at the depth limit show whether entries were left out.
        (LsRequest::new(path("/")).recursive().max_depth(2), &["/a", "/b", "/c/d", "/c/e"]),
        (LsRequest::new(path("/")).recursive(), &PLACES[..]),
    ] {
        let before = counted.now();
        let listed = counted.files.ls(request.clone()).await?;
        assert_eq!(counted.called(&before), expected, "{request:?}");
        assert!(listed.problems.is_empty(), "{request:?}: {:?}", listed.problems);
    }
    Ok(())
}

async fn an_operation_on_a_file_calls_only_its_mount(n: &NamespaceFactory) -> LawResult {
    let counted = counted(n).await?;
    for (at, expected) in [("/b/x.rs", Some("/b")), ("/a/deep/m/x.rs", Some("/a/deep/m")), ("/x.rs", None)] {
        let before = counted.now();
        counted.files.stat(at).await?;
        counted.files.read(ReadRequest::new(path(at))).await?;
        counted.files.bytes(at).await?;
        counted.files.put(at, "new\n").await?;
        assert_eq!(counted.called(&before), Vec::from_iter(expected), "{at}");
        let is_default_called = counted.counts[0].total() > before[0];
        assert_eq!(is_default_called, expected.is_none(), "{at}");
    }
    let before = counted.now();
    for mount_point in ["/", "/c", "/b", "/a/deep/m"] {
        assert!(counted.files.stat(mount_point).await?.is_dir);
    }
    assert_eq!(counted.called(&before), [""; 0], "a mount point exists without a call of its backend");
    Ok(())
}
