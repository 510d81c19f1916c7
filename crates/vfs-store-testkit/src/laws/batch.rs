//! Batches: several changes in one transaction.

use vfs_store::{BatchOutcome, Condition, ListRequest, Precondition, Write};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{
    all_done, all_refused, at, copy, delete, key, noise, nothing_below, path, put, rename, value,
};

store_laws! { "batch":
    "SB1" Batch writes_are_applied_in_order,
    "SB2" Batch a_batch_returns_the_metadata_of_each_write,
    "SB3" Batch a_refused_write_refuses_the_whole_batch,
    "SB4" Batch a_missing_value_cannot_be_moved_copied_or_deleted,
    "SB5" Batch an_empty_batch_is_applied,
    "SB6" Batch a_batch_may_be_large,
    "SB7" Batch values_of_a_batch_may_be_large,
    "SB8" Batch a_value_may_be_written_more_than_once,
    "SB9" BatchAndChanges a_refused_batch_is_not_recorded,
}

/// A later write sees the effect of an earlier one.
async fn writes_are_applied_in_order(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/b"]).await?;
    let writes = vec![
        put("/c", "new"),
        copy("/c", "/d"),
        rename("/d", "/e/f"),
        delete("/c"),
        put("/c", "newer"),
        rename("/a", "/g"),
        put("/a", "another a"),
        copy("/b", "/g"),
        rename("/e/f", "/e"),
    ];
    all_done(t.batch(&[], writes).await?);
    let expected = [("/a", "another a"), ("/b", "/b"), ("/c", "newer"), ("/e", "new"), ("/g", "/b")];
    assert_eq!(t.texts().await?, expected.map(|(at, text)| (at.to_owned(), text.to_owned())));
    Ok(())
}

/// The outcome has one result for each write, in order; that of a removal is the removed value.
async fn a_batch_returns_the_metadata_of_each_write(t: &StoreTarget) -> LawResult {
    let a = t.put("/a", "content of a").await?;
    let b = t.put("/b", "b").await?;
    let writes =
        vec![put("/new", "new"), rename("/a", "/moved"), copy("/b", "/copied"), delete("/b"), put("/moved", "over")];
    let results = all_done(t.batch(&[], writes).await?);
    assert_eq!(results.iter().map(|stored| stored.size).collect::<Vec<_>>(), [3, 12, 1, 1, 4]);
    t.assert_same(&results[0], &t.head("/new").await?.expect("it is there"), "put");
    t.assert_same(&results[1], &a, "moved");
    t.assert_same(&results[2], &t.head("/copied").await?.expect("it is there"), "copied");
    t.assert_same(&results[3], &b, "deleted");
    t.assert_same(&results[4], &t.head("/moved").await?.expect("it is there"), "put over");
    Ok(())
}

/// If any condition or write is refused, every value stays as it was, with its times and version.
async fn a_refused_write_refuses_the_whole_batch(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/b", "/d/x"]).await?;
    let before = t.state().await?;
    let good = || vec![put("/a", "changed"), delete("/b"), rename("/d/x", "/e"), copy("/a", "/f"), put("/g", "new")];
    let bad_conditions = [
        at("/a", Precondition::Absent),
        at("/nowhere", Precondition::Version("v".into())),
        at("/a", Precondition::Version("v".into())),
        nothing_below("/d"),
        nothing_below("/"),
    ];
    for condition in bad_conditions {
        for place in 0..=2 {
            let mut conditions = vec![at("/a", Precondition::Any), at("/new", Precondition::Absent)];
            conditions.insert(place, condition.clone());
            all_refused(t.batch(&conditions, good()).await?);
            assert_eq!(t.state().await?, before, "{conditions:?}");
        }
    }
    let bad_writes =
        [delete("/nowhere"), rename("/nowhere", "/a"), copy("/nowhere", "/a"), delete("/d"), rename("/d", "/h")];
    for write in bad_writes {
        for place in 0..=good().len() {
            let mut writes = good();
            writes.insert(place, write.clone());
            let (path, found) = all_refused(t.batch(&[], writes).await?);
            assert!(["/nowhere", "/d"].contains(&path.as_str()) && found.is_none(), "{path} {found:?}");
            assert_eq!(t.state().await?, before, "{write:?} in place {place}");
        }
    }
    Ok(())
}

/// The refusal names the missing source. A value that an earlier write of the batch removed is missing too.
async fn a_missing_value_cannot_be_moved_copied_or_deleted(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/d/x"]).await?;
    let before = t.state().await?;
    let missing = [
        (vec![delete("/nowhere")], "/nowhere"),
        (vec![rename("/nowhere", "/a")], "/nowhere"),
        (vec![copy("/nowhere", "/a")], "/nowhere"),
        (vec![rename("/nowhere", "/nowhere")], "/nowhere"),
        (vec![copy("/nowhere", "/nowhere")], "/nowhere"),
        (vec![delete("/d")], "/d"),
        (vec![delete("/a"), delete("/a")], "/a"),
        (vec![delete("/a"), rename("/a", "/b")], "/a"),
        (vec![rename("/a", "/b"), copy("/a", "/c")], "/a"),
        (vec![rename("/a", "/b"), delete("/b"), put("/a", "x"), delete("/b")], "/b"),
    ];
    for (writes, path) in missing {
        let (at, found) = all_refused(t.batch(&[], writes.clone()).await?);
        assert_eq!((at.as_str(), found), (path, None), "{writes:?}");
        assert_eq!(t.state().await?, before, "{writes:?}");
    }
    Ok(())
}

/// The conditions of an empty batch are still checked.
async fn an_empty_batch_is_applied(t: &StoreTarget) -> LawResult {
    assert_eq!(t.batch(&[], vec![]).await?, BatchOutcome::Applied(vec![]));
    let stored = t.put("/a", "x").await?;
    let version = Precondition::Version(stored.version.clone());
    assert_eq!(t.batch(&[at("/a", version)], vec![]).await?, BatchOutcome::Applied(vec![]));
    let (path, found) = all_refused(t.batch(&[at("/a", Precondition::Absent)], vec![]).await?);
    assert_eq!(path.as_str(), "/a");
    t.assert_same(&found.expect("it is there"), &stored, "found");
    Ok(())
}

/// A thousand conditions and a thousand writes; then a move of all values; then a batch that one write fails.
async fn a_batch_may_be_large(t: &StoreTarget) -> LawResult {
    let names: Vec<_> = (0..1000).map(|n| format!("/d/{n:04}")).collect();
    let nothing: Vec<_> = names.iter().map(|name| at(name, Precondition::Absent)).collect();
    let puts: Vec<_> = names.iter().map(|name| Write::Put(path(name), value(name.clone()))).collect();
    let stored = all_done(t.batch(&nothing, puts.clone()).await?);
    assert_eq!(stored.len(), 1000);
    let versions: Vec<Condition> = names
        .iter()
        .zip(&stored)
        .map(|(name, stored)| at(name, Precondition::Version(stored.version.clone())))
        .chain([nothing_below("/e")])
        .collect();
    let moves = names.iter().map(|name| rename(name, &name.replace("/d/", "/e/"))).collect();
    let moved = all_done(t.batch(&versions, moves).await?);
    assert_eq!(moved.len(), 1000);
    let listed = t.list(ListRequest::all(path("/"))).await?;
    assert_eq!((listed.entries.len(), listed.paths()[999]), (1000, "/e/0999"));
    let mut writes = puts;
    writes.push(delete("/nowhere"));
    all_refused(t.batch(&[], writes).await?);
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), listed.paths());
    Ok(())
}

/// One batch creates, moves and deletes several values of more than a MiB.
async fn values_of_a_batch_may_be_large(t: &StoreTarget) -> LawResult {
    let contents: Vec<_> = (0..4).map(|seed| noise((1 << 20) + 1, seed)).collect();
    let puts =
        contents.iter().zip(["/a", "/b", "/c", "/d"]).map(|(content, at)| Write::Put(path(at), value(content.clone())));
    all_done(t.batch(&[], puts.collect()).await?);
    let writes = vec![
        rename("/a", "/t"),
        rename("/b", "/a"),
        rename("/t", "/b"),
        copy("/c", "/e"),
        delete("/c"),
        put("/d", "small"),
    ];
    all_done(t.batch(&[], writes).await?);
    for (at, n) in [("/a", 1), ("/b", 0), ("/e", 2)] {
        assert!(t.content(at).await?.as_ref() == Some(&contents[n]), "{at}");
    }
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/a", "/b", "/d", "/e"]);
    Ok(())
}

/// The last write determines the value.
async fn a_value_may_be_written_more_than_once(t: &StoreTarget) -> LawResult {
    t.put("/a", "old").await?;
    let writes = vec![
        put("/a", "one"),
        put("/a", "two"),
        delete("/a"),
        put("/a", "three"),
        put("/b", "b"),
        rename("/b", "/a"),
        put("/b", "c"),
    ];
    let results = all_done(t.batch(&[at("/b", Precondition::Absent)], writes).await?);
    assert_eq!(results.iter().map(|stored| stored.size).collect::<Vec<_>>(), [3, 3, 3, 5, 1, 1, 1]);
    assert_eq!(t.texts().await?, [("/a", "b"), ("/b", "c")].map(|(at, text)| (at.to_owned(), text.to_owned())));
    all_done(t.batch(&[], vec![delete("/a"), put("/a", "x"), delete("/a"), delete("/b")]).await?);
    assert_eq!(t.texts().await?, []);
    Ok(())
}

/// A refused batch leaves no record, and the next change has the next sequence number.
async fn a_refused_batch_is_not_recorded(t: &StoreTarget) -> LawResult {
    t.put("/a", "x").await?;
    let changes = t.store.as_changes().expect("the law needs it");
    let before = changes.last_sequence(&key("/a").namespace).await?;
    all_refused(t.batch(&[], vec![put("/b", "x"), put("/a", "y"), delete("/nowhere")]).await?);
    all_refused(t.batch(&[at("/a", Precondition::Absent)], vec![put("/b", "x")]).await?);
    assert_eq!(changes.last_sequence(&key("/a").namespace).await?, before);
    t.put("/c", "x").await?;
    let records = super::change_replicas::records_after(&*t.store, &key("/a").namespace, before.0, 10).await?;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].0.0, before.0 + 1);
    Ok(())
}
