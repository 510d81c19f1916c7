//! Replicas that follow the change log.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use vfs_core::{Result, VfsPath};
use vfs_store::{ChangePage, ChangeRecord, ListRequest, Namespace, Precondition, Sequence, Store, StoredMeta, Write};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{HANG_TIMEOUT, delete, done, home, key, list, path, value};

store_laws! { "following":
    "SF1" BatchAndChanges applying_the_records_leads_to_the_stored_values,
    "SF2" Changes every_change_of_many_writers_is_recorded_once,
    "SF3" BatchAndChanges batches_of_many_writers_are_recorded_without_interleaving,
    "SF4" Changes a_recorded_change_is_visible,
}

/// Returns all changes after `seen`, read in pages of `limit`, which must be well formed.
pub(super) async fn records_after(
    store: &dyn Store,
    namespace: &Namespace,
    seen: u64,
    limit: usize,
) -> Result<Vec<(Sequence, ChangeRecord)>> {
    let mut all = Vec::new();
    let mut seen = Sequence(seen);
    loop {
        let page = store.as_changes().expect("the law needs it").since(namespace, seen, limit).await?;
        let ChangePage::Changes { changes, next, has_more } = page else { panic!("{page:?} after {seen:?}") };
        assert!(changes.len() <= limit, "{} are more than {limit}", changes.len());
        assert!(!has_more || !changes.is_empty(), "the page after {seen:?} is empty, although there are more changes");
        for (sequence, _) in &changes {
            assert_eq!(sequence.0, seen.0 + 1, "sequence numbers have no gaps");
            seen = *sequence;
        }
        assert_eq!(next, seen, "the next page starts after the last change");
        all.extend(changes);
        if !has_more {
            return Ok(all);
        }
    }
}

/// Applies a record to `state`, and asserts that it can be applied.
fn apply(record: ChangeRecord, state: &mut BTreeMap<VfsPath, StoredMeta>) {
    match record {
        ChangeRecord::Created(path, stored) => {
            assert!(state.insert(path.clone(), stored).is_none(), "{path} was created but existed before");
        }
        ChangeRecord::Changed(path, stored) => {
            assert!(state.insert(path.clone(), stored).is_some(), "{path} was changed but did not exist before");
        }
        ChangeRecord::Removed(path) => {
            assert!(state.remove(&path).is_some(), "{path} was removed but did not exist before")
        }
        ChangeRecord::Moved { from, to, stored } => {
            assert_eq!(state.remove(&from).as_ref(), Some(&stored), "the moved value is the one at {from}");
            state.insert(to, stored);
        }
        other => panic!("{other:?} is not a kind of change"),
    }
}

async fn list_all(t: &StoreTarget) -> Result<BTreeMap<VfsPath, StoredMeta>> {
    let listing = list(&*t.store, &home(), &ListRequest::all(path("/"))).await?;
    Ok(listing.entries.into_iter().map(|entry| (entry.path, entry.stored)).collect())
}

fn assert_leads_to(t: &StoreTarget, replica: BTreeMap<VfsPath, StoredMeta>, there: &BTreeMap<VfsPath, StoredMeta>) {
    assert_eq!(replica.keys().collect::<Vec<_>>(), there.keys().collect::<Vec<_>>());
    for (path, stored) in replica {
        t.assert_same(&stored, &there[&path], path.as_str());
    }
}

/// The records lead to the current state after any history of puts, deletes, moves and copies, alone and in batches,
/// and from any point of it.
async fn applying_the_records_leads_to_the_stored_values(t: &StoreTarget) -> LawResult {
    let mut random = fastrand::Rng::with_seed(17);
    let mut state = BTreeMap::new();
    let mut seen = 0;
    for round in 0..120 {
        let at = |random: &mut fastrand::Rng| format!("/{}", ["a", "b", "c", "a/b", "a/c", "a-b"][random.usize(..6)]);
        let (from, to) = (at(&mut random), at(&mut random));
        let content = format!("{round}");
        match random.u8(..6) {
            0..=2 => drop(t.put(&to, content).await?),
            3 => drop(t.store.delete(&key(&to), &Precondition::Any).await?),
            4 => drop(
                t.batch(&[], vec![super::law_helpers::rename(&from, &to), super::law_helpers::copy(&to, &from)])
                    .await?,
            ),
            _ => {
                let writes =
                    vec![Write::Put(path(&to), value(content)), super::law_helpers::copy(&to, &from), delete(&to)];
                drop(t.batch(&[], writes).await?);
            }
        }
        if random.u8(..10) == 0 {
            let new = records_after(&*t.store, &home(), seen, random.usize(1..9)).await?;
            seen += new.len() as u64;
            new.into_iter().for_each(|(_, record)| apply(record, &mut state));
            assert_leads_to(t, state.clone(), &list_all(t).await?);
        }
    }
    let mut whole = BTreeMap::new();
    records_after(&*t.store, &home(), 0, 7).await?.into_iter().for_each(|(_, record)| apply(record, &mut whole));
    assert_leads_to(t, whole, &list_all(t).await?);
    Ok(())
}

/// Follows the changes from the first one while they are made, until there are `count` of them.
async fn follow(store: &dyn Store, count: usize) -> Result<Vec<ChangeRecord>> {
    let changes = store.as_changes().expect("the law needs it");
    let mut all = Vec::new();
    while all.len() < count {
        let seen = Sequence(all.len() as u64);
        let result = tokio::time::timeout(HANG_TIMEOUT, changes.changed(&home(), seen)).await;
        result.unwrap_or_else(|_| panic!("there is no change after {seen:?}, although {count} were made"))?;
        all.extend(records_after(store, &home(), seen.0, 10).await?.into_iter().map(|(_, record)| record));
    }
    Ok(all)
}

const TASKS: usize = 8;
const ROUNDS: usize = 25;

/// All subscribers see one order, without gaps at any moment, through each handle.
async fn every_change_of_many_writers_is_recorded_once(t: &StoreTarget) -> LawResult {
    let followers: Vec<_> = (0..3)
        .map(|turn| {
            let store = t.handle(turn);
            tokio::spawn(async move { follow(&*store, TASKS * ROUNDS).await })
        })
        .collect();
    let writers = (0..TASKS).map(|task| {
        let store = t.handle(task);
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let at = key(&format!("/{}", (task + round) % 5));
                done(store.put(&at, value(format!("{task} {round}")), &Precondition::Any).await?);
            }
            Ok::<_, vfs_core::Error>(())
        })
    });
    for writer in try_join_all(writers).await.expect("no task panicked") {
        writer?;
    }
    let mut orders = Vec::new();
    for follower in followers {
        orders.push(follower.await.expect("the task did not panic")?);
    }
    assert!(orders.windows(2).all(|pair| pair[0] == pair[1]), "subscribers saw different orders");
    let mut state = BTreeMap::new();
    assert_eq!(orders[0].len(), TASKS * ROUNDS);
    orders.swap_remove(0).into_iter().for_each(|record| apply(record, &mut state));
    assert_leads_to(t, state, &list_all(t).await?);
    Ok(())
}

/// The records of one batch are consecutive, with none of another batch between them.
async fn batches_of_many_writers_are_recorded_without_interleaving(t: &StoreTarget) -> LawResult {
    let writers = (0..TASKS).map(|task| {
        let store = t.handle(task);
        tokio::spawn(async move {
            for round in 0..10 {
                let write = |n| Write::Put(path(&format!("/{task}/{round}/{n}")), value("x"));
                let made = store
                    .as_batch()
                    .expect("the law needs it")
                    .batch(&home(), &[], (0..3).map(write).collect())
                    .await?;
                super::law_helpers::all_done(made);
            }
            Ok::<_, vfs_core::Error>(())
        })
    });
    for writer in try_join_all(writers).await.expect("no task panicked") {
        writer?;
    }
    let records = records_after(&*t.store, &home(), 0, 50).await?;
    assert_eq!(records.len(), TASKS * 30);
    for batch in records.chunks(3) {
        let paths: Vec<_> = batch
            .iter()
            .filter_map(|(_, record)| if let ChangeRecord::Created(path, _) = record { Some(path) } else { None })
            .collect();
        assert_eq!(paths.iter().map(|path| path.name()).collect::<Vec<_>>(), [Some("0"), Some("1"), Some("2")]);
        assert!(paths.iter().all(|path| path.parent() == paths[0].parent()), "{paths:?}");
    }
    Ok(())
}

/// A change with a record is visible to every read, and a visible change has a record.
async fn a_recorded_change_is_visible(t: &StoreTarget) -> LawResult {
    let writer = t.handle(1);
    let task = tokio::spawn(async move {
        for n in 0..100 {
            done(writer.put(&key(&format!("/{n}")), value("x"), &Precondition::Absent).await?);
        }
        Ok::<_, vfs_core::Error>(())
    });
    let mut seen = 0;
    while seen < 100 {
        let there = list_all(t).await?.len() as u64;
        let sequence = t.store.as_changes().expect("the law needs it").last_sequence(&home()).await?;
        assert!(sequence.0 >= there, "{there} values exist and {} have a record", sequence.0);
        for (sequence, record) in records_after(&*t.store, &home(), seen, 10).await? {
            seen = sequence.0;
            let ChangeRecord::Created(path, stored) = record else { panic!("{record:?} is not a change of this law") };
            t.assert_same(&t.head(path.as_str()).await?.expect("the record is of a value"), &stored, "recorded");
        }
    }
    task.await.expect("the task did not panic")
}
