//! Wakeups of subscribers that wait for a change.

use std::sync::Arc;

use futures::future::{join, poll_immediate, try_join_all};
use tokio::time::timeout;
use vfs_core::Result;
use vfs_store::{Key, Precondition, Sequence, Store};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{HANG_TIMEOUT, all_done, done, home, key, namespace, path, put, rename, value};

store_laws! { "waking":
    "SW1" Changes a_change_that_was_made_before_ends_the_wait,
    "SW2" Changes a_change_of_another_task_wakes,
    "SW3" ChangesAndSecond a_change_of_another_handle_wakes,
    "SW4" BatchAndChanges every_kind_of_change_wakes,
    "SW5" Changes all_waiting_tasks_are_woken,
    "SW6" Changes an_abandoned_wait_leaves_nothing_behind,
}

async fn last_sequence(store: &dyn Store) -> Result<Sequence> {
    store.as_changes().expect("the law needs it").last_sequence(&home()).await
}

/// Waits on `waiting` for the change that `change` makes. The wait must end after the change, and may end earlier.
async fn wakes<T>(waiting: &Arc<dyn Store>, change: impl Future<Output = Result<T>>) -> Result<T> {
    let seen = last_sequence(&**waiting).await?;
    let store = Arc::clone(waiting);
    let task = tokio::spawn(async move {
        while last_sequence(&*store).await? == seen {
            store.as_changes().expect("the law needs it").changed(&home(), seen).await?;
        }
        Ok::<_, vfs_core::Error>(())
    });
    // The wait begins before the change, unless it first sends a request to a server.
    let space = home();
    let wait = waiting.as_changes().expect("the law needs it").changed(&space, seen);
    let (wake, value) = join(timeout(HANG_TIMEOUT, wait), change).await;
    let value = value?;
    wake.expect("a change wakes a waiting subscriber")?;
    timeout(HANG_TIMEOUT, task).await.expect("a change wakes").expect("the task did not panic")?;
    Ok(value)
}

async fn a_change_that_was_made_before_ends_the_wait(t: &StoreTarget) -> LawResult {
    let changes = t.store.as_changes().expect("the law needs it");
    let mut seen = last_sequence(&*t.store).await?;
    for n in 0..5 {
        t.put(&format!("/{n}"), "x").await?;
        timeout(HANG_TIMEOUT, changes.changed(&home(), seen)).await.expect("it was made before")?;
        timeout(HANG_TIMEOUT, changes.changed(&home(), Sequence(0))).await.expect("it was made before")?;
        let now = last_sequence(&*t.store).await?;
        assert!(now > seen, "{now:?} after {seen:?}");
        seen = now;
    }
    Ok(())
}

async fn a_change_of_another_task_wakes(t: &StoreTarget) -> LawResult {
    for n in 0..20 {
        wakes(&t.store, t.put("/a", format!("{n}"))).await?;
    }
    Ok(())
}

/// Changes wake subscribers in both directions, as between two processes.
async fn a_change_of_another_handle_wakes(t: &StoreTarget) -> LawResult {
    let second = t.second.clone().expect("the law needs it");
    for n in 0..5 {
        wakes(&second, t.put("/a", format!("first {n}"))).await?;
        let at = key("/a");
        wakes(&t.store, second.put(&at, value(format!("second {n}")), &Precondition::Any)).await.map(done)?;
    }
    Ok(())
}

/// A put, a replacement, a batch, a move and a removal wake.
async fn every_kind_of_change_wakes(t: &StoreTarget) -> LawResult {
    wakes(&t.store, t.put("/a", "one")).await?;
    wakes(&t.store, t.put("/a", "two")).await?;
    all_done(wakes(&t.store, t.batch(&[], vec![put("/b", "x"), put("/c", "x")])).await?);
    all_done(wakes(&t.store, t.batch(&[], vec![rename("/b", "/d")])).await?);
    done(wakes(&t.store, t.store.delete(&key("/a"), &Precondition::Any)).await?);
    Ok(())
}

/// Subscribers of several namespaces are each woken by a change of their own namespace.
async fn all_waiting_tasks_are_woken(t: &StoreTarget) -> LawResult {
    let spaces = ["a", "a/b", ""].map(namespace);
    let waits = (0..24).map(|n| {
        let (store, space) = (t.handle(n), spaces[n % 3].clone());
        tokio::spawn(async move {
            let changes = store.as_changes().expect("the law needs it");
            while changes.last_sequence(&space).await? == Sequence(0) {
                changes.changed(&space, Sequence(0)).await?;
            }
            Ok::<_, vfs_core::Error>(())
        })
    });
    let waits: Vec<_> = waits.collect();
    tokio::task::yield_now().await;
    for space in spaces {
        done(t.store.put(&Key::new(space, path("/x")), value("x"), &Precondition::Any).await?);
    }
    for woken in timeout(HANG_TIMEOUT, try_join_all(waits)).await.expect("all are woken").expect("no task panicked") {
        woken?;
    }
    Ok(())
}

/// Hundreds of dropped waits neither prevent other waits nor changes.
async fn an_abandoned_wait_leaves_nothing_behind(t: &StoreTarget) -> LawResult {
    let (changes, space) = (t.store.as_changes().expect("the law needs it"), home());
    let mut waits = Vec::new();
    for _ in 0..300 {
        waits.push(changes.changed(&space, Sequence(0)));
    }
    for wait in &mut waits {
        drop(poll_immediate(wait).await);
        drop(poll_immediate(changes.changed(&space, Sequence(0))).await);
    }
    drop(waits);
    wakes(&t.store, t.put("/a", "x")).await?;
    Ok(())
}
