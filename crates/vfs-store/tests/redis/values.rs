//! What is put is got and listed, whatever it is.

use std::time::Duration;

use bytes::Bytes;
use vfs_core::{ErrorKind, VfsPath};
use vfs_store::{
    BatchOutcome, BatchStore, ChangeRecord, Condition, Inspect as _, ListRequest, Precondition, PutOutcome, RedisStore,
    Store, Write,
};

use crate::support::{Shared, content, done, key, namespace, now, path, value};

#[tokio::test]
async fn any_bytes_at_any_path() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let bytes: Bytes = (0..=255).cycle().take(5000).collect::<Vec<u8>>().into();
    for name in ["/a", "/a/b", "/new\nline", "/ü/ß", "/{x}:file:/y", "/ *?[a]", "/\u{10ffff}\r\n", "/'\"$1"] {
        let put = value(bytes.clone()).created_at(now() - Duration::from_secs(5));
        let (created_at, modified_at) = (put.created_at, put.modified_at);
        let stored = done(store.put(&key(name), put, &Precondition::Absent).await.expect("it is put"));
        assert_eq!((stored.size, stored.created_at, stored.modified_at), (5000, Some(created_at), modified_at));
        assert_eq!(store.head(&key(name)).await.expect("an answer"), Some(stored.clone()));
        let got = store.get(&key(name), None).await.expect("an answer").expect("it is there");
        assert_eq!((got.stored, got.content), (stored, bytes.clone()));
    }
    for (range, expected) in [(0..0, 0..0), (10..20, 10..20), (4990..9000, 4990..5000), (5000..5001, 0..0)] {
        let got = store.get(&key("/a"), Some(range)).await.expect("an answer").expect("it is there");
        assert_eq!((got.stored.size, got.content), (5000, bytes.slice(expected)));
    }
    let got = store.get(&key("/a"), Some(u64::MAX - 1..u64::MAX)).await.expect("an answer").expect("it is there");
    assert!(got.content.is_empty());
    assert_eq!(content(&store, "/b").await, None);
    assert_eq!(store.check().await.expect("a report").problems, []);
}

#[tokio::test]
async fn a_large_file_comes_in_pieces() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let bytes: Bytes = (0..10_000_000_u32).map(|number| (number % 251) as u8).collect::<Vec<_>>().into();
    let _ = done(store.put(&key("/large"), value(bytes.clone()), &Precondition::Any).await.expect("it is put"));
    assert_eq!(content(&store, "/large").await, Some(bytes.clone()));
    let part = store.get(&key("/large"), Some(3..9_000_000)).await.expect("an answer").expect("it is there");
    assert_eq!(part.content, bytes.slice(3..9_000_000));
    let _ = done(store.delete(&key("/large"), &Precondition::Any).await.expect("it is removed"));
}

#[tokio::test]
async fn batches_are_made_whole_or_not_at_all() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let all = namespace("");
    for name in ["/a", "/d/x", "/d/y"] {
        let _ = done(store.put(&key(name), value(name.to_owned()), &Precondition::Absent).await.expect("it is put"));
    }
    let at = now();
    let writes = vec![
        Write::Move { from: path("/d/x"), to: path("/e/x") },
        Write::Copy { from: path("/e/x"), to: path("/copy"), at },
        Write::Delete(path("/a")),
        Write::Put(path("/a"), value("new")),
        Write::Move { from: path("/copy"), to: path("/a") },
    ];
    let refused = [
        (Condition::NothingBelow(path("/d")), "/d"),
        (Condition::NothingBelow(VfsPath::root()), "/"),
        (Condition::At(path("/d/y"), Precondition::Absent), "/d/y"),
        (Condition::At(path("/none"), Precondition::Version("x".into())), "/none"),
    ];
    for (condition, about) in refused {
        let conditions = [Condition::At(path("/a"), Precondition::Any), condition];
        let outcome = store.batch(&all, &conditions, writes.clone()).await.expect("an answer");
        assert!(matches!(&outcome, BatchOutcome::PreconditionFailed(path, _) if path.as_str() == about), "{outcome:?}");
    }
    for missing in [Write::Delete(path("/d/x")), Write::Move { from: path("/d/x"), to: path("/z") }] {
        let impossible = [writes.clone(), vec![missing]].concat();
        let outcome = store.batch(&all, &[], impossible).await.expect("an answer");
        assert_eq!(outcome, BatchOutcome::PreconditionFailed(path("/d/x"), None));
    }
    assert_eq!(content(&store, "/a").await, Some("/a".into()));
    let conditions = [Condition::NothingBelow(path("/e")), Condition::At(path("/e/x"), Precondition::Absent)];
    let outcome = store.batch(&all, &conditions, writes).await.expect("an answer");
    let BatchOutcome::Applied(stored) = outcome else { panic!("{outcome:?}") };
    assert_eq!(stored.len(), 5);
    assert_eq!((stored[1].created_at, stored[1].modified_at), (Some(at), at));
    assert_eq!(content(&store, "/a").await, Some("/d/x".into()));
    assert_eq!(names(&store, ListRequest::all(VfsPath::root())).await, ["/a", "/d/y", "/e/x"]);
    assert_eq!(store.check().await.expect("a report").problems, []);
}

#[tokio::test]
async fn a_directory_is_listed_without_what_is_below_its_directories() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let writes = (0..3000).map(|number| Write::Put(path(&format!("/big/{number}")), value("x")));
    let few = ["/a", "/big", "/big-", "/big-/x", "/big0", "/z/y/x"].map(|name| Write::Put(path(name), value("x")));
    let outcome = store.batch(&namespace(""), &[], writes.chain(few).collect()).await.expect("an answer");
    assert!(matches!(outcome, BatchOutcome::Applied(stored) if stored.len() == 3006));
    let level = ["/a", "/big", "/big-", "/big0", "/big-/", "/big/", "/z/"];
    for limit in [1, 2, 3, 1000] {
        let mut found = names(&store, ListRequest::level(VfsPath::root()).limit(limit)).await;
        found.sort_by_key(|name| (name.ends_with('/'), name.clone()));
        assert_eq!(found, level, "{limit}");
    }
    let all = names(&store, ListRequest::all(path("/big")).limit(700)).await;
    assert_eq!(all.len(), 3000);
    assert!(all.is_sorted());
    assert_eq!(names(&store, ListRequest::level(path("/big"))).await, all);
    assert_eq!(names(&store, ListRequest::all(path("/a"))).await, Vec::<String>::new());
    let token = vfs_store::PageToken::new("nonsense");
    let error = store.list(&namespace(""), &ListRequest::all(VfsPath::root()).from(token)).await.expect_err("no token");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn files_expire_with_their_directories() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let brief =
        RedisStore::open(shared.config().ttl(Duration::from_millis(50)).expect("a time")).await.expect("a store");
    let _ = done(store.put(&key("/stays"), value("x"), &Precondition::Absent).await.expect("it is put"));
    let _ = done(brief.put(&key("/d/goes"), value("x"), &Precondition::Absent).await.expect("it is put"));
    let copy = vec![Write::Copy { from: path("/d/goes"), to: path("/copy"), at: now() }];
    // A copy lasts as long as the handle that makes it says.
    let has_copied = matches!(store.batch(&namespace(""), &[], copy).await, Ok(BatchOutcome::Applied(_)));
    while store.head(&key("/d/goes")).await.expect("an answer").is_some() {
        tokio::task::yield_now().await;
    }
    let nothing_below = [Condition::NothingBelow(path("/d"))];
    let outcome = store.batch(&namespace(""), &nothing_below, Vec::new()).await.expect("an answer");
    assert_eq!(outcome, BatchOutcome::Applied(Vec::new()));
    let expected: &[&str] = if has_copied { &["/copy", "/stays"] } else { &["/stays"] };
    assert_eq!(names(&store, ListRequest::level(VfsPath::root())).await, expected);
    let changes = crate::shared::all_changes(&store, "").await;
    assert_eq!(changes.last(), Some(&ChangeRecord::Removed(path("/d/goes"))));
    assert_eq!(store.check().await.expect("a report").problems, []);
}

#[tokio::test]
async fn a_value_that_is_too_large_is_refused_before_it_is_sent() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let most = store.capabilities().max_value;
    let huge = Bytes::from(vec![0; usize::try_from(most).expect("it fits") + 1]);
    let error = store.put(&key("/huge"), value(huge), &Precondition::Any).await.expect_err("too large");
    assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("/huge")));
}

#[tokio::test]
async fn what_other_programs_wrote_is_an_error_for_that_file() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let _ = done(store.put(&key("/sound"), value("x"), &Precondition::Absent).await.expect("it is put"));
    shared.send(&[b"SET", &shared.key("{/}:file:/text"), b"hello"]).await;
    shared.send(&[b"SET", &shared.key("{/}:file:/empty"), b""]).await;
    shared.send(&[b"LPUSH", &shared.key("{/}:file:/list"), b"hello"]).await;
    for name in [&b"/text"[..], b"/empty", b"/list", b"/gone", b"/\xff", b"/a//b", b"/d/../x"] {
        shared.send(&[b"ZADD", &shared.key("{/}:index"), b"0", name]).await;
    }
    shared.send(&[b"SET", &shared.key("{/}:file:/unlisted"), b"x"]).await;
    for name in ["/text", "/empty", "/list"] {
        for error in [
            store.head(&key(name)).await.expect_err(name),
            store.get(&key(name), None).await.expect_err(name),
            store.put(&key(name), value("x"), &Precondition::Any).await.expect_err(name),
            store.delete(&key(name), &Precondition::Any).await.expect_err(name),
        ] {
            assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(name)), "{error}");
        }
    }
    let report = store.check().await.expect("a report");
    let mut wrong: Vec<_> = report.problems.iter().map(|problem| problem.path.as_str()).collect();
    wrong.sort_unstable();
    let expected = ["/a//b", "/d/../x", "/empty", "/gone", "/list", "/text", "/unlisted", "/\u{fffd}"];
    assert_eq!(wrong, expected, "{report:?}");
    assert_eq!((report.files, report.bytes), (1, 1));
    let page = store.list(&namespace(""), &ListRequest::all(VfsPath::root())).await.expect("a page");
    assert_eq!((page.entries.len(), page.problems.len()), (1, 3), "{page:?}");

    shared.send(&[b"SET", &shared.key("{/log}:log"), b"x"]).await;
    shared.send(&[b"SET", &shared.key("{/index}:index"), b"x"]).await;
    for name in ["log", "index"] {
        let at = vfs_store::Key::new(namespace(name), path("/a"));
        let error = store.put(&at, value("x"), &Precondition::Absent).await.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert_eq!(store.head(&at).await.expect("an answer"), None);
    }
}

#[tokio::test]
async fn stats_count_and_check_reads_everything() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    for (owner, name) in [("a", "/x"), ("a", "/y"), ("a/b", "/x"), ("gone", "/x")] {
        let at = vfs_store::Key::new(namespace(owner), path(name));
        let _ = done(store.put(&at, value("four"), &Precondition::Absent).await.expect("it is put"));
    }
    let at = vfs_store::Key::new(namespace("gone"), path("/x"));
    let _ = done(store.delete(&at, &Precondition::Any).await.expect("it is removed"));
    assert!(matches!(store.delete(&at, &Precondition::Any).await, Ok(PutOutcome::PreconditionFailed(None))));
    assert_eq!(store.namespaces().await.expect("names"), [namespace("a"), namespace("a/b")]);
    let stats = store.stats().await.expect("stats");
    assert_eq!((stats.namespaces, stats.files, stats.bytes), (2, 3, 12));
    let report = store.check().await.expect("a report");
    assert_eq!((report.files, report.bytes, report.problems.len()), (3, 12, 0));
    let file = shared.key("{/a}:file:/x");
    shared.send(&[b"SETRANGE", &file, b"80", b"f\x00ur"]).await;
    let report = store.check().await.expect("a report");
    assert_eq!(report.problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), ["a:/x"]);
}

/// The paths of a whole listing, directories with a `/` behind them.
async fn names(store: &RedisStore, mut request: ListRequest) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let page = store.list(&namespace(""), &request).await.expect("a page");
        assert!(page.entries.len() + page.directories.len() <= request.limit);
        assert!(page.problems.is_empty(), "{:?}", page.problems);
        names.extend(page.entries.iter().map(|entry| entry.path.to_string()));
        names.extend(page.directories.iter().map(|directory| format!("{directory}/")));
        let Some(next) = page.next else { return names };
        request = request.from(next);
    }
}
