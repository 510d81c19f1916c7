//! Records of the change log.

use vfs_core::VfsPath;
use vfs_store::{ChangePage, ChangeRecord, Precondition, Sequence, StoredMeta, Write};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::change_replicas::records_after;
use super::law_helpers::{all_done, copy, delete, done, home, key, path, put, refused, rename, value};

store_laws! { "changes":
    "SC1" Changes a_namespace_begins_at_zero,
    "SC2" Changes each_change_is_recorded_with_its_kind,
    "SC3" Changes a_refused_change_is_not_recorded,
    "SC4" BatchAndChanges the_writes_of_a_batch_are_recorded_in_order,
    "SC5" Changes changes_are_numbered_without_gaps,
    "SC6" Changes a_page_has_no_more_records_than_requested,
    "SC7" Changes after_the_last_change_there_are_no_records,
    "SC8" BatchAndChanges the_newest_4096_are_retained,
    "SC9" Changes putting_the_same_content_again_is_recorded,
}

async fn a_namespace_begins_at_zero(t: &StoreTarget) -> LawResult {
    let changes = t.store.as_changes().expect("the law needs it");
    assert_eq!(changes.last_sequence(&home()).await?, Sequence(0));
    assert_eq!(records_after(&*t.store, &home(), 0, 10).await?, []);
    t.put("/a", "x").await?;
    assert_eq!(changes.last_sequence(&home()).await?, Sequence(1));
    Ok(())
}

fn describe(record: &ChangeRecord) -> (&'static str, &VfsPath, Option<&StoredMeta>) {
    match record {
        ChangeRecord::Created(path, stored) => ("created", path, Some(stored)),
        ChangeRecord::Changed(path, stored) => ("changed", path, Some(stored)),
        ChangeRecord::Removed(path) => ("removed", path, None),
        ChangeRecord::Moved { to, stored, .. } => ("moved", to, Some(stored)),
        other => panic!("{other:?} is not a kind of change"),
    }
}

/// A value is created, replaced and removed; each record has its metadata.
async fn each_change_is_recorded_with_its_kind(t: &StoreTarget) -> LawResult {
    let created = t.put("/d/a", "one").await?;
    let changed = t.put("/d/a", "two").await?;
    let other = t.put("/d/a\n%", "other").await?;
    done(t.store.delete(&key("/d/a"), &Precondition::Any).await?);
    let again = t.put("/d/a", "again").await?;
    let records = records_after(&*t.store, &home(), 0, 10).await?;
    let expected = [
        ("created", "/d/a", Some(&created)),
        ("changed", "/d/a", Some(&changed)),
        ("created", "/d/a\n%", Some(&other)),
        ("removed", "/d/a", None),
        ("created", "/d/a", Some(&again)),
    ];
    for ((_, record), (what, path, stored)) in records.iter().zip(expected) {
        assert_eq!(describe(record), (what, &super::law_helpers::path(path), stored));
    }
    assert_eq!(records.len(), expected.len(), "{records:?}");
    Ok(())
}

/// Refused puts and deletes leave no trace.
async fn a_refused_change_is_not_recorded(t: &StoreTarget) -> LawResult {
    t.put("/a", "x").await?;
    let wrong = Precondition::Version("no version".into());
    for expected in [&wrong, &Precondition::Absent] {
        assert!(refused(t.store.put(&key("/a"), value("y"), expected).await?).is_some());
        assert!(refused(t.store.delete(&key("/a"), expected).await?).is_some());
    }
    assert!(refused(t.store.delete(&key("/missing"), &Precondition::Any).await?).is_none());
    assert!(refused(t.store.put(&key("/missing"), value("y"), &wrong).await?).is_none());
    t.put("/b", "x").await?;
    let records = records_after(&*t.store, &home(), 0, 10).await?;
    assert_eq!(
        records.iter().map(|(sequence, record)| (sequence.0, describe(record).1.as_str())).collect::<Vec<_>>(),
        [(1, "/a"), (2, "/b")]
    );
    Ok(())
}

/// There is one record for each write; a copy is a put, and a move is one record with both paths.
async fn the_writes_of_a_batch_are_recorded_in_order(t: &StoreTarget) -> LawResult {
    t.put("/a", "a").await?;
    t.put("/b", "b").await?;
    let writes = vec![
        put("/c", "c"),
        put("/a", "new"),
        rename("/a", "/d/a"),
        copy("/b", "/e"),
        copy("/b", "/c"),
        rename("/d/a", "/b"),
        delete("/c"),
    ];
    let results = all_done(t.batch(&[], writes).await?);
    let records = records_after(&*t.store, &home(), 2, 3).await?;
    let expected = [
        ("created", "/c"),
        ("changed", "/a"),
        ("moved", "/d/a"),
        ("created", "/e"),
        ("changed", "/c"),
        ("moved", "/b"),
        ("removed", "/c"),
    ];
    for (((_, record), (what, at)), result) in records.iter().zip(expected).zip(&results) {
        let (kind, to, stored) = describe(record);
        assert_eq!((kind, to), (what, &path(at)));
        stored.iter().for_each(|stored| t.assert_same(stored, result, at));
    }
    assert_eq!(records.len(), expected.len(), "{records:?}");
    let sources = records.iter().filter_map(|(_, record)| {
        if let ChangeRecord::Moved { from, .. } = record { Some(from.as_str()) } else { None }
    });
    assert_eq!(sources.collect::<Vec<_>>(), ["/a", "/d/a"]);
    Ok(())
}

/// Each change has the sequence number after that of the previous one; refused changes have none.
async fn changes_are_numbered_without_gaps(t: &StoreTarget) -> LawResult {
    let changes = t.store.as_changes().expect("the law needs it");
    for n in 1..=40_u64 {
        t.put(&format!("/{}", n % 7), "x").await?;
        assert!(refused(t.store.put(&key("/1"), value("y"), &Precondition::Absent).await?).is_some());
        drop(t.store.delete(&key("/missing"), &Precondition::Any).await?);
        assert_eq!(changes.last_sequence(&home()).await?, Sequence(n));
    }
    assert_eq!(records_after(&*t.store, &home(), 0, 7).await?.len(), 40);
    Ok(())
}

/// From every sequence number and with every limit, the pages have the same changes.
async fn a_page_has_no_more_records_than_requested(t: &StoreTarget) -> LawResult {
    for n in 0..12 {
        t.put(&format!("/{n}"), "x").await?;
    }
    let all = records_after(&*t.store, &home(), 0, 100).await?;
    for seen in 0..=12 {
        for limit in (1..=13).chain([1 << 31, 1 << 32, usize::MAX]) {
            let rest = records_after(&*t.store, &home(), seen, limit).await?;
            assert_eq!(rest, all[usize::try_from(seen).expect("it is small")..], "{limit} after {seen}");
        }
    }
    Ok(())
}

async fn after_the_last_change_there_are_no_records(t: &StoreTarget) -> LawResult {
    let changes = t.store.as_changes().expect("the law needs it");
    for n in 0..3 {
        let end = changes.last_sequence(&home()).await?;
        match changes.since(&home(), end, 10).await? {
            ChangePage::Changes { changes, next, has_more } => {
                assert_eq!((changes, next, has_more), (vec![], end, false))
            }
            other => panic!("{other:?} at {end:?}, after {n} changes"),
        }
        t.put("/a", "x").await?;
    }
    Ok(())
}

/// A subscriber that is further behind gets all changes, or the sequence from which to continue. No change is lost
/// silently.
async fn the_newest_4096_are_retained(t: &StoreTarget) -> LawResult {
    let changes = t.store.as_changes().expect("the law needs it");
    for round in 0..10 {
        let write = |n| Write::Put(path(&format!("/d/{n}")), value(format!("{round}")));
        all_done(t.batch(&[], (0..500).map(write).collect()).await?);
    }
    assert_eq!(changes.last_sequence(&home()).await?, Sequence(5000));
    let rest = records_after(&*t.store, &home(), 5000 - 4096, 1000).await?;
    assert_eq!(rest.len(), 4096);
    let resume_at = match changes.since(&home(), Sequence(0), 1000).await? {
        ChangePage::Expired(sequence) => sequence,
        ChangePage::Changes { changes, .. } => {
            assert_eq!(changes.first().map(|(sequence, _)| *sequence), Some(Sequence(1)), "the first are missing");
            assert_eq!(records_after(&*t.store, &home(), 0, 1000).await?.len(), 5000);
            Sequence(5000)
        }
        other => panic!("{other:?} is not a kind of page"),
    };
    assert_eq!(resume_at, Sequence(5000), "a listing from here on includes all earlier changes");
    t.put("/new", "x").await?;
    assert_eq!(records_after(&*t.store, &home(), resume_at.0, 10).await?.len(), 1);
    Ok(())
}

/// A put of the same content may change the times of the value.
async fn putting_the_same_content_again_is_recorded(t: &StoreTarget) -> LawResult {
    t.put("/a", "same").await?;
    t.put("/a", "same").await?;
    let records = records_after(&*t.store, &home(), 0, 10).await?;
    assert_eq!(records.iter().map(|(_, record)| describe(record).0).collect::<Vec<_>>(), ["created", "changed"]);
    Ok(())
}
