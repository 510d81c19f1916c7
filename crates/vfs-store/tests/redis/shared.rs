//! Several handles at once, and what they are told.

use bytes::Bytes;
use vfs_store::{
    BatchOutcome, BatchStore, ChangePage, ChangeRecord, Condition, Inspect as _, Key, Precondition, PutOutcome,
    RedisStore, Sequence, Store, StoreChangeLog, Write,
};

use crate::support::{Shared, content, done, key, namespace, now, path, value};

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_that_expect_the_same_one_is_done() {
    let Some(shared) = Shared::find() else { return };
    let handles = [shared.store().await, shared.store().await];
    let first = done(handles[0].put(&key("/a"), value("0"), &Precondition::Absent).await.expect("it is put"));
    let mut expected = Precondition::Version(first.version);
    for round in 0..20 {
        let writers = (0..16).map(|writer| {
            let (store, expected) = (handles[writer % 2].clone(), expected.clone());
            let new = value(format!("{round} {writer}"));
            tokio::spawn(async move { store.put(&key("/a"), new, &expected).await.expect("an answer") })
        });
        let mut winners = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            if let PutOutcome::Applied(stored) = writer.await.expect("no panic") {
                winners.push(stored.version);
            }
        }
        assert_eq!(winners.len(), 1);
        expected = Precondition::Version(winners.remove(0));
    }
    assert_eq!(handles[0].check().await.expect("a report").problems, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_share_nothing() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let names = ["", "a", "a/b", "a.b", "ab", "b"];
    for name in names {
        let at = Key::new(namespace(name), path("/b/x"));
        let _ = done(store.put(&at, value(name.to_owned()), &Precondition::Absent).await.expect("it is put"));
    }
    for name in names {
        let found = store.get(&Key::new(namespace(name), path("/b/x")), None).await.expect("an answer");
        assert_eq!(found.map(|value| value.content), Some(Bytes::from(name)));
        assert_eq!(store.last_sequence(&namespace(name)).await.expect("a position"), Sequence(1));
    }
    let elsewhere = RedisStore::open(shared.config().prefix(&format!("{}x", shared.prefix)).expect("a prefix")).await;
    assert_eq!(elsewhere.expect("a store").namespaces().await.expect("names"), []);
}

#[tokio::test]
async fn every_change_is_told_once_and_in_order() {
    let Some(shared) = Shared::find() else { return };
    let (store, other) = (shared.store().await, shared.store().await);
    assert_eq!(other.last_sequence(&namespace("")).await.expect("a position"), Sequence(0));
    let one = done(store.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put"));
    let two =
        done(store.put(&key("/a"), value("2"), &Precondition::Version(one.version.clone())).await.expect("it is put"));
    assert!(matches!(
        store.put(&key("/a"), value("3"), &Precondition::Absent).await,
        Ok(PutOutcome::PreconditionFailed(Some(_)))
    ));
    let at = now();
    let writes = vec![
        Write::Move { from: path("/a"), to: path("/b\n") },
        Write::Copy { from: path("/b\n"), to: path("/c"), at },
        Write::Delete(path("/b\n")),
    ];
    let conditions = [Condition::At(path("/b\n"), Precondition::Absent)];
    let outcome = store.batch(&namespace(""), &conditions, writes).await.expect("an answer");
    let BatchOutcome::Applied(stored) = outcome else { panic!("{outcome:?}") };
    let expected = [
        ChangeRecord::Created(path("/a"), one),
        ChangeRecord::Changed(path("/a"), two.clone()),
        ChangeRecord::Moved { from: path("/a"), to: path("/b\n"), stored: two },
        ChangeRecord::Created(path("/c"), stored[1].clone()),
        ChangeRecord::Removed(path("/b\n")),
    ];
    assert_eq!(all_changes(&other, "").await, expected);
    let page = other.since(&namespace(""), Sequence(1), 2).await.expect("a page");
    let ChangePage::Changes { changes, next, has_more } = page else { panic!("{page:?}") };
    assert_eq!((changes.len(), next, has_more), (2, Sequence(3), true));
    let page = other.since(&namespace(""), Sequence(9), 2).await.expect("a page");
    assert_eq!(page, ChangePage::Expired(Sequence(5)));
}

#[tokio::test]
async fn the_newest_changes_are_remembered() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let all = namespace("");
    for _ in 0..6 {
        let writes = (0..1000).map(|_| Write::Put(path("/a"), value("x"))).collect();
        assert!(matches!(store.batch(&all, &[], writes).await, Ok(BatchOutcome::Applied(_))));
    }
    assert_eq!(store.since(&all, Sequence(10), 10).await.expect("a page"), ChangePage::Expired(Sequence(6000)));
    let page = store.since(&all, Sequence(6000 - 4096), 10).await.expect("a page");
    assert!(matches!(page, ChangePage::Changes { changes, .. } if changes.len() == 10));
}

#[tokio::test]
async fn who_waits_is_woken_by_another_handle() {
    let Some(shared) = Shared::find() else { return };
    let (store, other) = (shared.store().await, shared.store().await);
    // More than have a connection of their own.
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let other = other.clone();
            tokio::spawn(async move {
                while other.last_sequence(&namespace("")).await.expect("a position") == Sequence(0) {
                    other.changed(&namespace(""), Sequence(0)).await.expect("it waits");
                }
            })
        })
        .collect();
    let _ = done(store.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put"));
    for task in waiting {
        task.await.expect("no panic");
    }
    // What is there already is not waited for.
    other.changed(&namespace(""), Sequence(0)).await.expect("it returns");
    assert_eq!(content(&other, "/a").await, Some("1".into()));
}

/// All changes of a namespace.
pub(crate) async fn all_changes(store: &RedisStore, name: &str) -> Vec<ChangeRecord> {
    let mut all = Vec::new();
    let mut seen = Sequence(0);
    loop {
        let page = store.since(&namespace(name), seen, 1000).await.expect("a page");
        let ChangePage::Changes { changes, next, has_more } = page else { panic!("{page:?}") };
        all.extend(changes.into_iter().map(|(_, tell)| tell));
        seen = next;
        if !has_more {
            return all;
        }
    }
}

#[tokio::test]
async fn entries_that_another_program_removes_from_the_log_are_no_harm() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let put = async |text: &str| {
        done(store.put(&key(text), value(text.to_owned()), &Precondition::Any).await.expect("it is put"))
    };
    let (_, two) = (put("/one").await, put("/two").await);
    let log = shared.key("{/}:log");
    shared.send(&[b"XDEL", &log, b"2-0"]).await;
    assert_eq!(store.last_sequence(&namespace("")).await.expect("a position"), Sequence(2));
    let since = store.since(&namespace(""), Sequence(0), 10).await.expect("a page");
    let ChangePage::Changes { next: Sequence(1), has_more: true, .. } = since else { panic!("{since:?}") };
    let since = store.since(&namespace(""), Sequence(1), 10).await.expect("a page");
    assert_eq!(since, ChangePage::Expired(Sequence(2)));

    let three = put("/three").await;
    assert_eq!(store.last_sequence(&namespace("")).await.expect("a position"), Sequence(3));
    let since = store.since(&namespace(""), Sequence(2), 10).await.expect("a page");
    let ChangePage::Changes { changes, .. } = since else { panic!("{since:?}") };
    assert_eq!(changes, [(Sequence(3), ChangeRecord::Created(path("/three"), three))]);

    shared.send(&[b"XTRIM", &log, b"MAXLEN", b"0"]).await;
    put("/four").await;
    assert_eq!(store.last_sequence(&namespace("")).await.expect("a position"), Sequence(4));
    assert_eq!(store.head(&key("/two")).await.expect("an answer"), Some(two));
    assert_eq!(store.check().await.expect("a report").problems, []);
}

#[tokio::test]
async fn a_value_may_be_put_twice_and_in_two_places() {
    let Some(shared) = Shared::find() else { return };
    let store = shared.store().await;
    let same = value("same");
    for at in ["/a", "/b", "/a"] {
        let _ = done(store.put(&key(at), same.clone(), &Precondition::Any).await.expect("it is put"));
        assert_eq!(content(&store, at).await, Some("same".into()));
        let _ = done(store.put(&key(at), value("other"), &Precondition::Any).await.expect("it is put"));
    }
}
