//! Concurrent batches through every handle.

use vfs_core::Result;
use vfs_store::{BatchOutcome, Condition, ListRequest, Precondition, Store, Write};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::concurrent_puts::race;
use super::law_helpers::{all_done, at, delete, done, home, key, nothing_below, path, put, rename, value};

store_laws! { "transfers":
    "SY1" Batch readers_see_complete_transfers_between_two_values,
    "SY2" Batch of_a_value_and_one_below_it_one_is_made,
    "SY3" Batch one_of_many_movers_wins,
    "SY4" Batch batches_that_cross_are_all_made,
    "SY5" Batch of_batches_that_share_a_path_one_wins,
    "SY6" Batch a_condition_holds_until_the_last_write,
}

async fn batch(store: &dyn Store, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
    store.as_batch().expect("the law needs it").batch(&home(), conditions, writes).await
}

/// Number of bytes in both values together.
const AMOUNT: usize = 1000;

/// Moves some bytes from one value to the other, as far as it has them.
async fn transfer(store: &dyn Store, from: &str, to: &str, amount: usize) -> Result<()> {
    loop {
        let giver = store.get(&key(from), None).await?.expect("it is there");
        let taker = store.get(&key(to), None).await?.expect("it is there");
        let amount = amount.min(giver.content.len());
        let conditions = [
            at(from, Precondition::Version(giver.stored.version)),
            at(to, Precondition::Version(taker.stored.version)),
        ];
        let less = giver.content.slice(amount..);
        let more = [&taker.content[..], &giver.content[..amount]].concat();
        let writes = vec![Write::Put(path(from), value(less)), Write::Put(path(to), value(more))];
        if let BatchOutcome::Applied(_) = batch(store, &conditions, writes).await? {
            return Ok(());
        }
    }
}

/// The sizes in a concurrent listing always have the same sum, because a batch becomes visible at once.
async fn readers_see_complete_transfers_between_two_values(t: &StoreTarget) -> LawResult {
    t.put("/a", vec![b'x'; AMOUNT]).await?;
    t.put("/b", "").await?;
    let reader = t.handle(1);
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let reads = tokio::spawn(async move {
        let mut reads = 0;
        while stopped.try_recv().is_err() || reads == 0 {
            let page = reader.list(&home(), &ListRequest::all(path("/"))).await?;
            let sum: u64 = page.entries.iter().map(|entry| entry.stored.size).sum();
            assert_eq!(sum, AMOUNT as u64, "{:?}", page.entries);
            reads += 1;
        }
        Ok::<_, vfs_core::Error>(())
    });
    let transferred = race(t, 6, |task, store| async move {
        for round in 0..12 {
            let (from, to) = if (task + round) % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
            transfer(&*store, from, to, 7 * task + round + 1).await?;
        }
        Ok::<_, vfs_core::Error>(())
    });
    transferred.await.into_iter().collect::<Result<Vec<_>>>()?;
    assert!(stop.send(()).is_ok(), "the reader waits for it");
    reads.await.expect("the task did not panic")?;
    let sizes = [t.head("/a").await?, t.head("/b").await?].map(|stored| stored.expect("it is there").size);
    assert_eq!(sizes.iter().sum::<u64>(), AMOUNT as u64);
    Ok(())
}

/// Puts a file, and another one in a directory of the same name: each on the condition that the other does not exist.
async fn of_a_value_and_one_below_it_one_is_made(t: &StoreTarget) -> LawResult {
    for round in 0..100 {
        let above = format!("/d/{round}");
        let below = format!("{above}/x/y");
        let outcomes = race(t, 2, |task, store| {
            let (conditions, writes) = match task {
                0 => (vec![nothing_below(&above), at(&above, Precondition::Absent)], vec![put(&above, "above")]),
                _ => (vec![at(&above, Precondition::Absent), nothing_below(&below)], vec![put(&below, "below")]),
            };
            async move { batch(&*store, &conditions, writes).await }
        });
        let outcomes = outcomes.await.into_iter().collect::<Result<Vec<_>>>()?;
        let applied: Vec<_> = outcomes.iter().map(|outcome| matches!(outcome, BatchOutcome::Applied(_))).collect();
        assert_eq!(applied.iter().filter(|applied| **applied).count(), 1, "above and below, {applied:?}");
        assert_eq!([t.head(&above).await?.is_some(), t.head(&below).await?.is_some()], applied[..]);
    }
    Ok(())
}

/// The other tasks find no value to move.
async fn one_of_many_movers_wins(t: &StoreTarget) -> LawResult {
    for round in 0..10 {
        t.put("/a", format!("{round}")).await?;
        let outcomes =
            race(
                t,
                12,
                |task, store| async move { batch(&*store, &[], vec![rename("/a", &format!("/to/{task}"))]).await },
            );
        let mut winners = Vec::new();
        for (task, outcome) in outcomes.await.into_iter().enumerate() {
            match outcome? {
                BatchOutcome::Applied(_) => winners.push(task),
                BatchOutcome::PreconditionFailed(at, found) => assert_eq!((at.as_str(), found), ("/a", None)),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?} won");
        let at = format!("/to/{}", winners[0]);
        assert_eq!(t.texts().await?, [(at.clone(), format!("{round}"))]);
        done(t.store.delete(&key(&at), &Precondition::Any).await?);
    }
    Ok(())
}

/// Tasks that change the same values in opposite orders wait for each other; none of them deadlocks or is refused.
async fn batches_that_cross_are_all_made(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/b", "/c"]).await?;
    let made = race(t, 8, |task, store| async move {
        for round in 0..15 {
            let mut paths = ["/a", "/b", "/c"];
            paths.rotate_left((task + round) % 3);
            if task % 2 == 0 {
                paths.reverse();
            }
            let content = format!("{task} {round}");
            let conditions = paths.map(|path| at(path, Precondition::Any));
            let writes = paths.map(|at| Write::Put(path(at), value(content.clone())));
            all_done(batch(&*store, &conditions, writes.into()).await?);
        }
        Ok::<_, vfs_core::Error>(())
    });
    made.await.into_iter().collect::<Result<Vec<_>>>()?;
    let texts = t.texts().await?;
    assert!(texts.len() == 3 && texts.iter().all(|(_, text)| *text == texts[0].1), "parts of two batches: {texts:?}");
    Ok(())
}

/// Each batch creates a shared path and one of its own: only the paths of the winner exist.
async fn of_batches_that_share_a_path_one_wins(t: &StoreTarget) -> LawResult {
    for _ in 0..10 {
        let outcomes = race(t, 8, |task, store| async move {
            let own = format!("/own/{task}");
            let writes = vec![Write::Put(path(&own), value("x")), Write::Put(path("/shared"), value(own.clone()))];
            batch(&*store, &[at("/shared", Precondition::Absent)], writes).await
        });
        let outcomes = outcomes.await.into_iter().collect::<Result<Vec<_>>>()?;
        assert_eq!(
            outcomes.iter().filter(|outcome| matches!(outcome, BatchOutcome::Applied(_))).count(),
            1,
            "{outcomes:?}"
        );
        let texts = t.texts().await?;
        let [(own, _), (_, winner)] = &texts[..] else { panic!("{texts:?}") };
        assert_eq!(own, winner);
        all_done(t.batch(&[], vec![delete(own), delete("/shared")]).await?);
    }
    Ok(())
}

/// Two batches, each of which changes the value that the condition of the other depends on, are applied one after the
/// other.
async fn a_condition_holds_until_the_last_write(t: &StoreTarget) -> LawResult {
    for round in 0..50 {
        let versions =
            [t.put("/a", format!("a{round}")).await?.version, t.put("/b", format!("b{round}")).await?.version];
        // Each batch changes one value on the condition that the other one is unchanged, so only one batch can succeed.
        let outcomes = race(t, 2, |task, store| {
            let (own, other) = if task == 0 { ("/a", "/b") } else { ("/b", "/a") };
            let condition = at(other, Precondition::Version(versions[1 - task].clone()));
            async move { batch(&*store, &[condition], vec![put(own, "changed")]).await }
        });
        let outcomes = outcomes.await.into_iter().collect::<Result<Vec<_>>>()?;
        let made = outcomes.iter().filter(|outcome| matches!(outcome, BatchOutcome::Applied(_))).count();
        assert_eq!(made, 1, "{outcomes:?}");
        let changed = t.texts().await?.iter().filter(|(_, text)| text == "changed").count();
        assert_eq!(changed, 1);
    }
    Ok(())
}
