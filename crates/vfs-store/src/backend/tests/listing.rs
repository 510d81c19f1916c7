//! Limited listings of one level.

use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;
use vfs_core::{Backend, LsRequest, LsResult, TruncationReason};

use super::{cx, path, probed};
use crate::store::{Precondition, Store};
use crate::{Key, MemoryStore, Namespace, NewValue, StoreBackend};

fn filled<'a>(names: impl IntoIterator<Item = &'a str>) -> MemoryStore {
    let store = MemoryStore::new();
    for name in names {
        let value = NewValue::new(Bytes::from_static(b"text"), chrono::Utc::now());
        let _ = block_on(store.put(&Key::new(Namespace::default(), path(name)), value, &Precondition::Any));
    }
    store
}

fn names(result: &LsResult) -> Vec<&str> {
    result.entries.iter().map(|entry| entry.path.as_str()).collect()
}

#[test]
fn a_limited_listing_reads_what_it_needs() {
    let all: Vec<String> = (0..5000).map(|number| format!("/d/{number:04}.txt")).collect();
    let (files, probe) = probed(filled(all.iter().map(String::as_str)));
    for (limit, pages) in [(0, 1), (1, 1), (6, 1), (20, 4)] {
        probe.take_all();
        let found = block_on(files.ls(&cx(), LsRequest::new(path("/d")).limit(limit))).expect("it is listed");
        assert_eq!(names(&found), all.iter().take(limit as usize).collect::<Vec<_>>());
        assert_eq!(found.truncated, Some(TruncationReason::Limit));
        assert!(probe.take("list") <= pages, "{limit}");
    }
    let found = block_on(files.ls(&cx(), LsRequest::new(path("/d")).limit(5000))).expect("it is listed");
    assert_eq!((found.entries.len(), found.truncated), (5000, None));
}

proptest! {
    /// Directories sort after files that start with their name by key, and before them by path.
    #[test]
    fn a_limited_listing_has_the_first_entries_of_the_whole_one(
        paths in prop::collection::btree_set("/d(/[ab .-]{0,3}[ab]){1,2}", 0..40),
        limit in 0..30_u64,
    ) {
        let files = StoreBackend::new(filled(paths.iter().map(String::as_str)));
        let ls = |request| block_on(files.ls(&cx(), request));
        let Ok(all) = ls(LsRequest::new(path("/d"))) else { return Ok(()) };
        let some = ls(LsRequest::new(path("/d")).limit(limit)).expect("it is listed");
        let expected = usize::try_from(limit).expect("it fits").min(all.entries.len());
        prop_assert_eq!(names(&some), &names(&all)[..expected]);
        prop_assert_eq!(some.truncated.is_some(), all.entries.len() > expected);
    }
}
