//! Pages of values.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Attributes, ObjectStore, ObjectStoreExt, PutOptions, PutPayload};
use vfs_core::ErrorKind;
use vfs_store::{
    BucketStore, CopyOptions, Inspect, ListRequest, MemoryStore, Namespace, Page, PageToken, Precondition, PutOutcome,
    Store,
};

use crate::{everywhere, key, key_in, path, put, value};

everywhere!(
    every_value_is_listed_once_whatever_the_pages,
    one_level_has_values_and_directories,
    other_namespaces_are_hidden,
    a_token_of_another_store_is_refused,
    nothing_is_missed_while_others_remove_and_put,
);

/// All pages as one, each with at most `limit` things.
async fn all(store: &BucketStore, namespace: &str, request: ListRequest) -> Page {
    let namespace = Namespace::parse(namespace).expect("a namespace");
    let (mut whole, mut request) = (Page::default(), request);
    loop {
        let mut page = store.list(&namespace, &request).await.expect("a page");
        assert!(page.entries.len() + page.directories.len() <= request.limit);
        assert!(page.entries.is_sorted_by_key(|entry| entry.path.clone()) && page.directories.is_sorted());
        whole.entries.append(&mut page.entries);
        whole.directories.append(&mut page.directories);
        whole.problems.append(&mut page.problems);
        match page.next {
            Some(next) => request = request.from(next),
            None => return whole,
        }
    }
}

fn paths(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.path.as_str()).collect()
}

async fn every_value_is_listed_once_whatever_the_pages(store: BucketStore) {
    let mut names = vec![
        "/dir/a",
        "/dir/a b",
        "/dir/a!",
        "/dir/a\u{1}b",
        "/dir/a\n",
        "/dir/a%",
        "/dir/a%0A",
        "/dir/a-",
        "/dir/a.d/x",
        "/dir/a.d/y/z",
        "/dir/a\u{7f}",
        "/dir/ab",
        "/dir/=/x",
        "/dir/=-",
        "/dir/=0",
        "/dir/==",
        "/dir/ü",
        "/dir/日本",
    ];
    for namespace in ["", "org/user"] {
        for name in names.iter().chain(&["/dir2/a", "/di", "/other"]) {
            put(&store, &key_in(namespace, name), name).await;
        }
    }
    names.sort_unstable();
    for namespace in ["", "org/user"] {
        for limit in [1, 2, 3, 7, 1000] {
            let page = all(&store, namespace, ListRequest::all(path("/dir")).limit(limit)).await;
            assert_eq!(paths(&page), names, "{namespace:?} {limit}");
            assert_eq!(page.problems, []);
        }
    }
    let entry = &all(&store, "", ListRequest::all(path("/other"))).await;
    assert_eq!(entry.entries, [], "the value at the path itself is not below it");
    for entry in all(&store, "org/user", ListRequest::all(path("/dir"))).await.entries {
        let stored = store.head(&key_in("org/user", entry.path.as_str())).await.expect("an answer").expect("a value");
        assert_eq!((entry.stored.size, &entry.stored.version), (stored.size, &stored.version), "{}", entry.path);
    }
}

async fn one_level_has_values_and_directories(store: BucketStore) {
    for name in ["/a/1", "/a/2", "/a/b/3", "/a/b/c/4", "/a/d/5", "/a/\n/6", "/a/=/7", "/a2/8"] {
        put(&store, &key_in("org", name), name).await;
    }
    for limit in [1, 2, 3, 1000] {
        let page = all(&store, "org", ListRequest::level(path("/a")).limit(limit)).await;
        let mut directories: Vec<&str> = page.directories.iter().map(|path| path.as_str()).collect();
        directories.sort_unstable();
        assert_eq!(
            (paths(&page), directories),
            (vec!["/a/1", "/a/2"], vec!["/a/\n", "/a/=", "/a/b", "/a/d"]),
            "{limit}"
        );
    }
    let root = all(&store, "org", ListRequest::level(path("/"))).await;
    assert_eq!((root.entries, root.directories), (Vec::new(), vec![path("/a"), path("/a2")]));
    assert_eq!(all(&store, "org", ListRequest::level(path("/none"))).await, Page::default());
}

async fn other_namespaces_are_hidden(store: BucketStore) {
    for namespace in ["", "a", "a/b", "z"] {
        for name in ["/!", "/1", "/=", "/dir/x"] {
            put(&store, &key_in(namespace, name), name).await;
        }
    }
    for namespace in ["", "a", "a/b", "z"] {
        for limit in [1, 2, 1000] {
            let page = all(&store, namespace, ListRequest::all(path("/")).limit(limit)).await;
            assert_eq!(
                (paths(&page), page.problems.len()),
                (vec!["/!", "/1", "/=", "/dir/x"], 0),
                "{namespace:?} {limit}"
            );
            let page = all(&store, namespace, ListRequest::level(path("/")).limit(limit)).await;
            assert_eq!(
                (paths(&page), &page.directories),
                (vec!["/!", "/1", "/="], &vec![path("/dir")]),
                "{namespace:?} {limit}"
            );
        }
    }
}

async fn a_token_of_another_store_is_refused(store: BucketStore) {
    for token in ["", "x", "-x", "-\n", "-\nq/a", "ü"] {
        let request = ListRequest::all(path("/")).from(PageToken::new(token));
        let error = store.list(&Namespace::default(), &request).await.expect_err(token);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{token:?}");
    }
}

#[tokio::test]
async fn an_object_of_another_tool_that_no_path_names_is_a_problem() {
    let objects = Arc::new(InMemory::new());
    for key in ["a", "=", "d/=/x", "%25zz", "=/o g/=/a", "=/org/=/=", &format!("d/{}", "x".repeat(256))] {
        let location = Path::parse(key).expect("a key");
        objects.put(&location, PutPayload::from(Bytes::from("x"))).await.expect("a put");
    }
    let store = BucketStore::new(objects, "").expect("a store");
    let page = all(&store, "", ListRequest::all(path("/"))).await;
    assert_eq!((paths(&page), page.problems.len()), (vec!["/a"], 4), "{:?}", page.problems);
    assert!(page.problems.iter().all(|problem| problem.code == ErrorKind::InvalidPath));
    let page = all(&store, "org", ListRequest::level(path("/"))).await;
    assert_eq!((page.entries.len(), page.problems.len()), (0, 1), "{:?}", page.problems);
    assert_eq!(store.namespaces().await.expect("namespaces"), [Namespace::default()]);
    assert_eq!(store.check().await.expect("a check").problems.len(), 6);
}

#[tokio::test]
async fn a_check_finds_what_other_programs_put_below_files_and_over_them() {
    let objects = Arc::new(InMemory::new());
    let store = BucketStore::new(Arc::clone(&objects) as Arc<dyn ObjectStore>, "team").expect("a store");
    for name in ["/a", "/replaced", "/same", "/dir/a"] {
        put(&store, &key(name), name).await;
    }
    let write = |location: &'static str, content: &'static str, attributes: Attributes| {
        let options = PutOptions { attributes, ..PutOptions::default() };
        let objects = &objects;
        async move {
            objects.put_opts(&Path::from(location), PutPayload::from(content), options).await.expect("a put");
        }
    };
    for (location, content) in [("team/replaced", "foreign!"), ("team/same", "/same")] {
        let found = objects.get(&Path::from(location)).await.expect("an object");
        write(location, content, found.attributes).await;
    }
    for below in ["team/a-b", "team/a/b", "team/a/c/d", "team/dir/b", "team/new"] {
        write(below, "foreign", Attributes::new()).await;
    }
    let check = store.check().await.expect("a check");
    let found: Vec<_> = check.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    let expected = [
        ("team/a/b", ErrorKind::NotADirectory),
        ("team/a/c/d", ErrorKind::NotADirectory),
        ("team/replaced", ErrorKind::Unavailable),
    ];
    assert_eq!(found, expected, "{:?}", check.problems);
    for (problem, words) in check.problems.iter().zip(["'team/a' is a file", "'team/a' is a file", "replaced"]) {
        assert!(problem.message.contains(words), "{problem:?}");
    }
}

/// Keys that `object_store` cannot parse hide nothing: they are problems, and folders of other tools are no files.
#[tokio::test]
async fn keys_are_seen_as_the_service_has_them() {
    let Some(bucket) = crate::servers::moto().await else { return };
    let store = bucket.store().await;
    for key in ["/team/a", "/team/empty/", "/team/full/", "/team/full/b", "/team/full//c", "/team/%01"] {
        bucket.send("PUT", key).await;
    }
    let page = all(&store, "", ListRequest::all(path("/")).limit(2)).await;
    let problems: Vec<&str> = page.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!((paths(&page), problems), (vec!["/a", "/full/b"], vec!["/\u{1}", "/full//c"]));
    let page = all(&store, "", ListRequest::level(path("/full"))).await;
    assert_eq!((paths(&page), page.directories.len(), page.problems.len()), (vec!["/full/b"], 0, 1));
    let page = all(&store, "", ListRequest::level(path("/"))).await;
    assert_eq!((paths(&page), &page.directories), (vec!["/a"], &vec![path("/empty"), path("/full")]));
}

/// The first page of a listing of a folder of another tool may be empty.
#[tokio::test]
async fn a_copy_puts_no_file_over_a_folder_of_another_tool() {
    let Some(bucket) = crate::servers::moto().await else { return };
    let store = bucket.store().await;
    for key in ["/team/full/", "/team/full/b"] {
        bucket.send("PUT", key).await;
    }
    let source = MemoryStore::new();
    let put = source.put(&key("/full"), value("text"), &Precondition::Absent).await;
    assert!(matches!(put, Ok(PutOutcome::Applied(_))));
    let report = vfs_store::copy(&source, &store, &CopyOptions::new(), |_| {}).await.expect("the copy ends");
    let problems: Vec<_> = report.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    assert_eq!((report.files, problems), (0, vec![("/full", ErrorKind::IsADirectory)]));
}

/// A name with a control character comes before those with a space, and its key after theirs: a page has to look beyond what
/// it gives, and the next one at the same again.
async fn nothing_is_missed_while_others_remove_and_put(store: BucketStore) {
    let names: Vec<String> = (0..1000).map(|number| format!("/x {number:03}")).collect();
    let puts = names.iter().map(|name| async { put(&store, &key_in("", name), "text").await });
    futures::stream::iter(puts.collect::<Vec<_>>()).buffer_unordered(32).collect::<Vec<_>>().await;
    put(&store, &key_in("", "/x\ny"), "text").await;
    put(&store, &key_in("", "/y"), "text").await;

    let mut request = ListRequest::all(path("/")).limit(400);
    let first = store.list(&Namespace::default(), &request).await.expect("a page");
    for removed in &names[..5] {
        let removal = store.delete(&key_in("", removed), &Precondition::Any).await.expect("it is removed");
        assert!(matches!(removal, PutOutcome::Applied(_)));
    }
    put(&store, &key_in("", "/x 500+"), "text").await;
    request = request.from(first.next.clone().expect("there is more"));
    let rest = all(&store, "", request).await;
    let mut seen: Vec<&str> = paths(&first).into_iter().chain(paths(&rest)).collect();
    seen.sort_unstable();
    let is_once = seen.windows(2).all(|pair| pair[0] != pair[1]);
    assert!(is_once, "{seen:?}");
    let stays = names[5..].iter().map(String::as_str).chain(["/x\ny", "/y"]);
    let missed: Vec<&str> = stays.filter(|name| seen.binary_search(name).is_err()).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
