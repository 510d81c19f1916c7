//! Single values.

use bytes::Bytes;
use chrono::TimeDelta;
use vfs_core::ErrorKind;
use vfs_store::{BucketStore, Inspect, NewValue, Precondition, PutOutcome, Store};

use crate::{at, content, done, everywhere, key, key_in, put, refused, value};

everywhere!(
    a_value_comes_back_with_all_that_is_known_of_it,
    a_condition_is_kept,
    a_removal_has_conditions_too,
    a_part_of_a_value_is_cut_at_its_end,
    odd_names_are_names,
    namespaces_have_nothing_in_common,
    a_large_value_is_put_in_parts,
    an_empty_value_is_a_value,
);

async fn a_value_comes_back_with_all_that_is_known_of_it(store: BucketStore) {
    let key = key("/notes/a b.txt");
    assert_eq!(store.head(&key).await.expect("an answer"), None);
    assert_eq!(store.get(&key, None).await.expect("an answer"), None);
    let nanoseconds = NewValue::new(Bytes::from("héllo"), at(5) + TimeDelta::nanoseconds(789)).created_at(at(1));
    let stored = done(store.put(&key, nanoseconds, &Precondition::Absent).await.expect("a put"));
    assert_eq!((stored.size, stored.created_at, stored.modified_at), (6, Some(at(1)), at(5)));
    assert!(!stored.version.as_str().contains('"'), "{}", stored.version);
    assert_eq!(store.head(&key).await.expect("an answer").as_ref(), Some(&stored));
    let got = store.get(&key, None).await.expect("an answer").expect("a value");
    assert_eq!((got.stored, got.content), (stored, Bytes::from("héllo")));
}

async fn a_condition_is_kept(store: BucketStore) {
    let key = key("/a");
    let first = done(store.put(&key, value("one"), &Precondition::Absent).await.expect("a put"));
    assert_eq!(
        refused(store.put(&key, value("two"), &Precondition::Absent).await.expect("a put")),
        Some(first.clone())
    );
    for wrong in ["none", "a\nb", "\"", "ü", "", "*"] {
        let outcome = store.put(&key, value("two"), &Precondition::Version(wrong.into())).await.expect("a put");
        assert_eq!(refused(outcome), Some(first.clone()), "{wrong:?}");
    }
    let second =
        done(store.put(&key, value("two"), &Precondition::Version(first.version.clone())).await.expect("a put"));
    assert_ne!(second.version, first.version);
    let outcome = store.put(&key, value("three"), &Precondition::Version(first.version)).await.expect("a put");
    assert_eq!(refused(outcome), Some(second));
    assert_eq!(content(&store, &key).await.as_deref(), Some("two"));
    put(&store, &key, "four").await;
    assert_eq!(content(&store, &key).await.as_deref(), Some("four"));
    let missing = store.put(&crate::key("/b"), value("x"), &Precondition::Version("none".into())).await.expect("a put");
    assert_eq!(refused(missing), None);
}

async fn a_removal_has_conditions_too(store: BucketStore) {
    let key = key("/a");
    assert_eq!(refused(store.delete(&key, &Precondition::Any).await.expect("an answer")), None);
    let first = put(&store, &key, "one").await;
    let second = put(&store, &key, "two").await;
    assert_eq!(
        refused(store.delete(&key, &Precondition::Version(first.version)).await.expect("an answer")),
        Some(second.clone())
    );
    assert_eq!(refused(store.delete(&key, &Precondition::Absent).await.expect("an answer")), Some(second.clone()));
    assert_eq!(
        done(store.delete(&key, &Precondition::Version(second.version.clone())).await.expect("an answer")),
        second
    );
    assert_eq!(refused(store.delete(&key, &Precondition::Version(second.version)).await.expect("an answer")), None);
    assert_eq!(content(&store, &key).await, None);
}

async fn a_part_of_a_value_is_cut_at_its_end(store: BucketStore) {
    let key = key("/a");
    let stored = put(&store, &key, "0123456789").await;
    for (range, part) in [
        (0..4, "0123"),
        (4..100, "456789"),
        (9..10, "9"),
        (10..12, ""),
        (50..60, ""),
        (3..3, ""),
        (0..u64::MAX, "0123456789"),
    ] {
        let got = store.get(&key, Some(range.clone())).await.expect("an answer").expect("a value");
        assert_eq!((got.content, got.stored), (Bytes::from(part), stored.clone()), "{range:?}");
    }
    assert_eq!(store.get(&crate::key("/b"), Some(5..6)).await.expect("an answer"), None);
}

async fn odd_names_are_names(store: BucketStore) {
    let names = [
        "/=",
        "/==",
        "/a\nb",
        "/%0A",
        "/100%",
        "/ü ?#&+;:@$,[]{}\"'`^~|<>\\",
        "/\u{1}",
        "/\u{7f}",
        "/=x/=/y",
        "/%25",
        "/...",
    ];
    for name in names {
        put(&store, &key(name), name).await;
    }
    for name in names {
        assert_eq!(content(&store, &key(name)).await.as_deref(), Some(name));
    }
    let long = format!("/{}", vec!["x".repeat(200); 6].join("/"));
    for error in [
        store.head(&key(&long)).await.expect_err("it is too long"),
        store.put(&key(&long), value(""), &Precondition::Any).await.expect_err("it is too long"),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidPath);
        assert!(error.for_model().contains("1024"), "{error}");
    }
}

async fn namespaces_have_nothing_in_common(store: BucketStore) {
    let places =
        [("", "/a"), ("org", "/a"), ("org/user", "/a"), ("org/users", "/a"), ("", "/org/user/a"), ("", "/=/org/=/a")];
    for (namespace, name) in places {
        put(&store, &key_in(namespace, name), namespace).await;
    }
    for (namespace, name) in places {
        assert_eq!(content(&store, &key_in(namespace, name)).await.as_deref(), Some(namespace));
    }
    assert_eq!(content(&store, &key_in("org", "/user/a")).await, None);
    let namespaces: Vec<String> =
        store.namespaces().await.expect("namespaces").iter().map(ToString::to_string).collect();
    assert_eq!(namespaces, ["", "org", "org/user", "org/users"]);
    let (check, stats) = (store.check().await.expect("a check"), store.stats().await.expect("numbers"));
    assert_eq!((check.files, check.bytes, check.problems), (6, 3 + 8 + 9, Vec::new()));
    assert_eq!((stats.namespaces, stats.files, stats.bytes), (4, 6, 20));
}

async fn a_large_value_is_put_in_parts(store: BucketStore) {
    let key = key("/large");
    let large = |byte: u8| NewValue::new(Bytes::from(vec![byte; (20 << 20) + 1]), at(5)).created_at(at(1));
    let stored = done(store.put(&key, large(1), &Precondition::Absent).await.expect("a put"));
    assert_eq!(store.head(&key).await.expect("an answer").as_ref(), Some(&stored));
    assert_eq!(refused(store.put(&key, large(2), &Precondition::Absent).await.expect("a put")), Some(stored.clone()));
    let wrong = Precondition::Version("none".into());
    assert_eq!(refused(store.put(&key, large(2), &wrong).await.expect("a put")), Some(stored.clone()));
    let outcome = store.put(&key, large(3), &Precondition::Version(stored.version)).await.expect("a put");
    assert!(matches!(outcome, PutOutcome::Applied(_)));
    let end = store.get(&key, Some((20 << 20)..u64::MAX)).await.expect("an answer").expect("a value");
    assert_eq!((end.stored.size, end.content), ((20 << 20) + 1, Bytes::from(vec![3])));
}

async fn an_empty_value_is_a_value(store: BucketStore) {
    put(&store, &key("/a/empty"), "").await;
    assert_eq!(content(&store, &key("/a/empty")).await.as_deref(), Some(""));
    let got = store.get(&key("/a/empty"), Some(0..5)).await.expect("an answer").expect("a value");
    assert_eq!(got.content, Bytes::new());
}
