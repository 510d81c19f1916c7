//! Complete listings.

use std::collections::BTreeSet;

use vfs_core::VfsPath;
use vfs_store::{ListRequest, Precondition};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::concurrent_puts::race;
use super::law_helpers::{done, key, path, value};

store_laws! { "listing":
    "SL1" Nothing a_listing_has_only_the_values_below,
    "SL2" Nothing every_page_size_gives_the_same,
    "SL3" Nothing entries_are_in_the_order_of_bytes,
    "SL4" Nothing a_directory_may_have_the_path_of_a_value,
    "SL5" Nothing a_listing_of_nothing_is_empty,
    "SL6" Nothing names_around_the_separator_are_distinguished,
    "SL7" Nothing more_than_a_server_gives_at_once_is_listed,
    "SL8" Nothing any_limit_is_a_limit,
    "SL9" Nothing a_listing_shows_changes_at_once,
}

/// Paths whose names share a beginning, sort around `/`, or are values and directories at the same time.
const TREE: &[&str] = &[
    "/a",
    "/a b/x",
    "/a!",
    "/a-b",
    "/a-b/c",
    "/a.txt",
    "/a/b",
    "/a/b/c",
    "/a/b/c/d",
    "/a/b-c",
    "/a/b0",
    "/a0",
    "/a0/x",
    "/aa/b",
    "/A/b",
    "/b/x/y/z/1",
    "/b/x/y/z/2",
    "/b/x/y2/z",
    "/_/x",
    "/é/x",
    "/z",
    "/\u{1f600}",
];

/// Returns the values and directories of one level.
fn level<'a>(tree: &[&'a str], below: &VfsPath) -> (Vec<&'a str>, Vec<String>) {
    let prefix = if below.is_root() { "/".to_owned() } else { format!("{below}/") };
    let rest = |path: &&'a str| path.strip_prefix(prefix.as_str());
    let mut values: Vec<_> =
        tree.iter().copied().filter(|path| rest(path).is_some_and(|rest| !rest.contains('/'))).collect();
    values.sort_unstable();
    let names = tree.iter().filter_map(rest).filter_map(|rest| Some(rest.split_once('/')?.0));
    let directories: BTreeSet<_> = names.map(|name| format!("{prefix}{name}")).collect();
    (values, directories.into_iter().collect())
}

/// Returns all values.
fn all<'a>(tree: &[&'a str], below: &VfsPath) -> Vec<&'a str> {
    let prefix = if below.is_root() { "/".to_owned() } else { format!("{below}/") };
    let mut values: Vec<_> = tree.iter().copied().filter(|path| path.starts_with(&prefix)).collect();
    values.sort_unstable();
    values
}

/// Returns the paths below which to list: directories, values, and missing paths.
fn places(tree: &[&str]) -> BTreeSet<VfsPath> {
    let mut places: BTreeSet<_> = ["/", "/nowhere", "/a/b/c/d/e", "/a ", "/%", "/a_"].map(path).into();
    for text in tree {
        let mut at = Some(path(text));
        while let Some(place) = at {
            at = place.parent();
            places.insert(place);
        }
    }
    places
}

async fn assert_listed(t: &StoreTarget, tree: &[&str], limit: usize) -> LawResult {
    for place in places(tree) {
        let listed = t.list(ListRequest::level(place.clone()).limit(limit)).await?;
        let (values, directories) = level(tree, &place);
        assert_eq!(listed.paths(), values, "one level of {place}, {limit} at once");
        assert_eq!(listed.folders(), directories, "one level of {place}, {limit} at once");
        let listed = t.list(ListRequest::all(place.clone()).limit(limit)).await?;
        assert_eq!(listed.paths(), all(tree, &place), "all of {place}, {limit} at once");
    }
    Ok(())
}

/// Lists one level and all levels below every directory, value and missing path.
async fn a_listing_has_only_the_values_below(t: &StoreTarget) -> LawResult {
    t.put_each(TREE).await?;
    assert_listed(t, TREE, ListRequest::DEFAULT_LIMIT).await
}

/// With pages from one entry to all entries, no entry is missing or repeated.
async fn every_page_size_gives_the_same(t: &StoreTarget) -> LawResult {
    t.put_each(TREE).await?;
    for limit in 1..=TREE.len() + 1 {
        for place in ["/", "/a", "/b"].map(path) {
            let listed = t.list(ListRequest::level(place.clone()).limit(limit)).await?;
            let (values, directories) = level(TREE, &place);
            assert_eq!((listed.paths(), listed.folders()), (values, directories.iter().map(String::as_str).collect()));
            let listed = t.list(ListRequest::all(place.clone()).limit(limit)).await?;
            assert_eq!(listed.paths(), all(TREE, &place), "all of {place}, {limit} at once");
        }
    }
    Ok(())
}

/// The order is that of UTF-8 bytes, not that of a language, of components or of UTF-16.
async fn entries_are_in_the_order_of_bytes(t: &StoreTarget) -> LawResult {
    let sorted = [
        "/\u{1}",
        "/ ",
        "/!",
        "/-",
        "/.x",
        "/0",
        "/10",
        "/9",
        "/A",
        "/B",
        "/Z",
        "/_",
        "/a",
        "/a b",
        "/a!",
        "/a-",
        "/a.b",
        "/a/z",
        "/a0",
        "/aa",
        "/b",
        "/z",
        "/~",
        "/\u{7f}",
        "/e\u{301}",
        "/\u{e9}",
        "/ß",
        "/Ω",
        "/日",
        "/\u{ff21}",
        "/\u{fffd}",
        "/\u{1f600}",
    ];
    let mut expected = sorted.to_vec();
    expected.sort_unstable();
    let mut shuffled = sorted.to_vec();
    fastrand::Rng::with_seed(3).shuffle(&mut shuffled);
    t.put_each(&shuffled).await?;
    for limit in [1000, 5] {
        let listed = t.list(ListRequest::all(path("/")).limit(limit)).await?;
        let paths: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, expected, "{limit} at once");
    }
    Ok(())
}

/// Both are listed, whatever page they are on.
async fn a_directory_may_have_the_path_of_a_value(t: &StoreTarget) -> LawResult {
    let tree = ["/d", "/d/x", "/d/x/y", "/d/x/y/z", "/e/f", "/e/f/g"];
    t.put_each(&tree).await?;
    for limit in 1..5 {
        assert_listed(t, &tree, limit).await?;
    }
    done(t.store.delete(&key("/d"), &Precondition::Any).await?);
    done(t.store.delete(&key("/e/f/g"), &Precondition::Any).await?);
    assert_listed(t, &["/d/x", "/d/x/y", "/d/x/y/z", "/e/f"], 2).await
}

/// The listings of an empty store, of a missing directory and below a value are empty.
async fn a_listing_of_nothing_is_empty(t: &StoreTarget) -> LawResult {
    for places in [&["/", "/d"][..], &["/d", "/a", "/a/b", "/ab"]] {
        for request in places.iter().flat_map(|at| [ListRequest::all(path(at)), ListRequest::level(path(at))]) {
            let page = t.store.list(&super::law_helpers::home(), &request).await?;
            assert!(page.entries.is_empty() && page.directories.is_empty() && page.problems.is_empty(), "{page:?}");
            assert_eq!(t.list(request).await?, super::law_helpers::Listing::default());
        }
        t.put("/a", "a value").await?;
    }
    Ok(())
}

/// `-`, `.` and others sort before `/`, `0` and others after it, and none of them is a separator.
async fn names_around_the_separator_are_distinguished(t: &StoreTarget) -> LawResult {
    let mut tree = Vec::new();
    for after in ["", " ", "!", "-", ".", "0", "1", ":", "\\", "~", "\u{7f}", "\u{80}", "\u{10ffff}"] {
        tree.extend([
            format!("/d{after}/x"),
            format!("/d{after}/x{after}y"),
            format!("/c/d{after}"),
            format!("/c/d{after}/e"),
        ]);
    }
    tree.sort_unstable();
    tree.dedup();
    let tree: Vec<_> = tree.iter().map(String::as_str).collect();
    t.put_each(&tree).await?;
    for limit in [1, 3, 1000] {
        assert_listed(t, &tree, limit).await?;
    }
    Ok(())
}

/// Servers return a thousand names at once. A larger directory is still one directory, and entries after it are found.
async fn more_than_a_server_gives_at_once_is_listed(t: &StoreTarget) -> LawResult {
    let mut tree: Vec<_> = (0..1050).map(|n| format!("/d/many/{n:04}")).collect();
    tree.extend(["/d/a".to_owned(), "/d/many".to_owned(), "/d/many0".to_owned(), "/d/z/z".to_owned()]);
    tree.sort_unstable();
    let all = tree.clone();
    let shares = race(t, 16, move |task, store| {
        let share: Vec<_> = all.iter().skip(task).step_by(16).cloned().collect();
        async move {
            for at in share {
                done(store.put(&key(&at), value("x"), &Precondition::Absent).await?);
            }
            Ok::<_, vfs_core::Error>(())
        }
    });
    shares.await.into_iter().collect::<vfs_core::Result<Vec<_>>>()?;
    let tree: Vec<_> = tree.iter().map(String::as_str).collect();
    for limit in [300, 1000, 5000] {
        let listed = t.list(ListRequest::all(path("/")).limit(limit)).await?;
        assert!(listed.paths() == tree, "{} of {} are listed, {limit} at once", listed.entries.len(), tree.len());
    }
    for limit in [1, 2, 1000] {
        let listed = t.list(ListRequest::level(path("/d")).limit(limit)).await?;
        assert_eq!((listed.paths(), listed.folders()), (vec!["/d/a", "/d/many", "/d/many0"], vec!["/d/many", "/d/z"]));
        let listed = t.list(ListRequest::level(path("/")).limit(limit)).await?;
        assert_eq!((listed.paths(), listed.folders()), (vec![], vec!["/d"]));
    }
    Ok(())
}

/// A limit may be larger than any number that a server supports.
async fn any_limit_is_a_limit(t: &StoreTarget) -> LawResult {
    t.put_each(TREE).await?;
    for limit in [1 << 16, 1 << 31, 1 << 32, usize::MAX >> 1, usize::MAX] {
        assert_eq!(t.list(ListRequest::all(path("/")).limit(limit)).await?.entries.len(), TREE.len(), "{limit}");
        let (values, directories) = level(TREE, &path("/"));
        let listed = t.list(ListRequest::level(path("/")).limit(limit)).await?;
        assert_eq!((listed.entries.len(), listed.directories.len()), (values.len(), directories.len()), "{limit}");
    }
    Ok(())
}

/// An acknowledged write is listed, and an acknowledged removal is not.
async fn a_listing_shows_changes_at_once(t: &StoreTarget) -> LawResult {
    for round in 0..20 {
        let at = format!("/d/{round}/x");
        let stored = t.put(&at, "x").await?;
        let listed = t.list(ListRequest::all(path("/d"))).await?;
        assert_eq!(listed.paths(), [at.as_str()]);
        t.assert_same(&listed.entries[0].stored, &stored, "listed");
        assert_eq!(t.list(ListRequest::level(path("/d"))).await?.folders(), [format!("/d/{round}")]);
        done(t.store.delete(&key(&at), &Precondition::Any).await?);
        assert_eq!(t.list(ListRequest::level(path("/"))).await?.folders(), Vec::<&str>::new());
    }
    Ok(())
}
