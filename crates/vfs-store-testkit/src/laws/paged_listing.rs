//! Paged listings during concurrent changes.

use std::collections::BTreeMap;

use vfs_core::Result;
use vfs_store::{ListRequest, Page, Precondition};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{done, home, key, path};

store_laws! { "pages":
    "SP1" Nothing a_page_continues_after_its_last_entry_is_deleted,
    "SP2" Nothing a_page_continues_after_its_last_directory_disappears,
    "SP3" Nothing an_unchanged_entry_is_listed_exactly_once,
    "SP4" Nothing a_page_token_is_valid_again_and_for_another_handle,
    "SP5" Nothing the_last_page_is_marked_as_the_last,
    "SP6" Nothing a_page_of_deleted_entries_is_empty,
    "SP7" KeyOrder pages_of_a_level_are_in_the_order_of_keys,
}

/// Returns the first page that is not empty, or the last page.
async fn page(t: &StoreTarget, mut request: ListRequest) -> Result<Page> {
    for _ in 0..1000 {
        let page = t.store.list(&home(), &request).await?;
        match (&page.next, page.entries.is_empty() && page.directories.is_empty()) {
            (Some(next), true) => request = request.from(next.clone()),
            _ => return Ok(page),
        }
    }
    panic!("a thousand empty pages: {request:?}");
}

/// The values of a page can be deleted before the next page is requested.
async fn a_page_continues_after_its_last_entry_is_deleted(t: &StoreTarget) -> LawResult {
    for request in [ListRequest::all(path("/d")), ListRequest::level(path("/d"))] {
        t.put_each(&["/d/a", "/d/b", "/d/c", "/d/d"]).await?;
        let first = page(t, request.clone().limit(2)).await?;
        for entry in &first.entries {
            done(t.store.delete(&key(entry.path.as_str()), &Precondition::Any).await?);
        }
        let rest = t.list(request.from(first.next.expect("there is more"))).await?;
        let mut all: Vec<_> = first.entries.iter().map(|entry| entry.path.as_str()).collect();
        all.extend(rest.paths());
        all.sort_unstable();
        assert_eq!(all, ["/d/a", "/d/b", "/d/c", "/d/d"]);
    }
    Ok(())
}

async fn a_page_continues_after_its_last_directory_disappears(t: &StoreTarget) -> LawResult {
    let tree = ["/d/a/1", "/d/a/2", "/d/b/1", "/d/c/1", "/d/c/2"];
    t.put_each(&tree).await?;
    let first = page(t, ListRequest::level(path("/d")).limit(2)).await?;
    let removed: Vec<_> = first.directories.clone();
    for text in tree.iter().filter(|text| removed.iter().any(|directory| path(text).starts_with(directory))) {
        done(t.store.delete(&key(text), &Precondition::Any).await?);
    }
    let rest = t.list(ListRequest::level(path("/d")).from(first.next.expect("there is more"))).await?;
    let mut all: Vec<_> = removed.iter().map(vfs_core::VfsPath::as_str).collect();
    all.extend(rest.folders());
    all.sort_unstable();
    assert_eq!(all, ["/d/a", "/d/b", "/d/c"]);
    Ok(())
}

/// Values that exist throughout are listed once, however many others are put and deleted in the meantime.
async fn an_unchanged_entry_is_listed_exactly_once(t: &StoreTarget) -> LawResult {
    for (depth, limit) in [(ListRequest::all as fn(_) -> _, 3), (ListRequest::level, 3), (ListRequest::level, 1)] {
        let stays: Vec<_> = (0..20).map(|n| format!("/d/{n:02}/stays")).collect();
        for at in &stays {
            t.put(at, "x").await?;
        }
        let mut seen = BTreeMap::<String, usize>::new();
        let mut request: ListRequest = depth(path("/d")).limit(limit);
        for round in 0..200 {
            let page = t.store.list(&home(), &request).await?;
            let directories = page.directories.iter().map(|path| format!("{path}/stays"));
            for at in page.entries.iter().map(|entry| entry.path.to_string()).chain(directories) {
                *seen.entry(at).or_default() += 1;
            }
            let Some(next) = page.next else { break };
            request = request.from(next);
            t.put(&format!("/d/{:02}/comes-{round}", round % 20), "x").await?;
            t.put(&format!("/d/{:02}-{round}/comes", round % 20), "x").await?;
            if round > 2 {
                drop(
                    t.store
                        .delete(&key(&format!("/d/{:02}/comes-{}", (round - 2) % 20, round - 2)), &Precondition::Any)
                        .await?,
                );
            }
        }
        for at in &stays {
            assert_eq!(seen.get(at), Some(&1), "{at}");
        }
        for entry in t.list(ListRequest::all(path("/"))).await?.entries {
            done(t.store.delete(&key(entry.path.as_str()), &Precondition::Any).await?);
        }
    }
    Ok(())
}

/// A token is not bound to one connection: another handle can continue from it, and it can be used again.
async fn a_page_token_is_valid_again_and_for_another_handle(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/b/1", "/b/2", "/b%/x", "/c\n'\"", "/d", "/é/x", "/z"]).await?;
    for request in [ListRequest::all(path("/")), ListRequest::level(path("/"))] {
        for limit in 1..7 {
            let first = page(t, request.clone().limit(limit)).await?;
            let request = request.clone().from(first.next.expect("there is more"));
            let rest = t.list(request.clone()).await?;
            assert_eq!(super::law_helpers::list(&*t.handle(1), &home(), &request).await?, rest);
            let again = t.list(request.limit(1)).await?;
            assert_eq!((again.paths(), again.folders()), (rest.paths(), rest.folders()));
        }
    }
    Ok(())
}

/// A caller that follows `next` reaches the end, also if the number of values is a multiple of the limit.
async fn the_last_page_is_marked_as_the_last(t: &StoreTarget) -> LawResult {
    for count in 1..=6 {
        t.put(&format!("/{count}"), "x").await?;
        for limit in 1..=7 {
            for request in [ListRequest::all(path("/")), ListRequest::level(path("/"))] {
                assert_eq!(t.list(request.limit(limit)).await?.entries.len(), count);
            }
        }
    }
    Ok(())
}

async fn a_page_of_deleted_entries_is_empty(t: &StoreTarget) -> LawResult {
    for request in [ListRequest::all(path("/d")), ListRequest::level(path("/d"))] {
        let tree = ["/d/a", "/d/b", "/d/c/x", "/e"];
        t.put_each(&tree).await?;
        let first = page(t, request.clone().limit(1)).await?;
        for text in tree.iter().filter(|text| **text != "/e") {
            done(t.store.delete(&key(text), &Precondition::Any).await?);
        }
        assert_eq!(
            t.list(request.from(first.next.expect("there is more"))).await?,
            super::law_helpers::Listing::default()
        );
    }
    Ok(())
}

/// A caller that wants the first names stops after the first pages. A directory has the key of its values, which begins with its
/// name and `/`: `a-` and `a.txt` come before the directory `a`, and `a0` after it.
async fn pages_of_a_level_are_in_the_order_of_keys(t: &StoreTarget) -> LawResult {
    t.put_each(&["/d/a-", "/d/a.txt", "/d/a/x", "/d/a/y/z", "/d/a0", "/d/b/x", "/d/c", "/d/\u{e9}/x", "/e"]).await?;
    let expected = ["/d/a-", "/d/a.txt", "/d/a/", "/d/a0", "/d/b/", "/d/c", "/d/\u{e9}/"];
    for limit in 1..=expected.len() {
        let mut request = ListRequest::level(path("/d")).limit(limit);
        let mut keys = Vec::new();
        loop {
            let page = t.store.list(&home(), &request).await?;
            let directories = page.directories.iter().map(|directory| format!("{directory}/"));
            let mut of_page: Vec<_> =
                page.entries.iter().map(|entry| entry.path.to_string()).chain(directories).collect();
            of_page.sort_unstable();
            keys.extend(of_page);
            assert!(keys.len() <= expected.len(), "{keys:?}");
            let Some(next) = page.next else { break };
            request = request.from(next);
        }
        assert_eq!(keys, expected, "with pages of {limit}");
    }
    Ok(())
}
