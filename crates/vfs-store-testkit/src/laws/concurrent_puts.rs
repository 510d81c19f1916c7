//! Concurrent changes of one value through every handle.

use std::sync::Arc;

use futures::future::join_all;
use tokio::sync::Barrier;
use vfs_core::{Result, Version};
use vfs_store::{ListRequest, Precondition, PutOutcome, Store, StoredMeta};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{done, key, list, path, value};

store_laws! { "races":
    "SR1" Nothing one_of_many_writers_on_a_version_wins,
    "SR2" Nothing one_of_many_creators_wins,
    "SR3" Nothing one_of_many_deleters_of_a_version_wins,
    "SR4" Nothing counters_end_right,
    "SR5" Nothing a_reader_gets_whole_values,
    "SR6" Nothing a_dropped_change_is_complete_or_absent,
    "SR7" Nothing of_a_writer_and_a_deleter_one_wins,
    "SR8" Nothing writers_of_different_values_do_not_hinder_each_other,
}

/// Number of tasks that change one value concurrently.
const TASKS: usize = 16;

/// Runs `attempt` in each task, all at once, and returns their results.
pub(super) async fn race<T, F>(t: &StoreTarget, tasks: usize, attempt: impl Fn(usize, Arc<dyn Store>) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(tasks));
    let racers = (0..tasks).map(|task| {
        let (start, work) = (Arc::clone(&start), attempt(task, t.handle(task)));
        tokio::spawn(async move {
            start.wait().await;
            work.await
        })
    });
    join_all(racers.collect::<Vec<_>>())
        .await
        .into_iter()
        .map(|result| result.expect("the task did not panic"))
        .collect()
}

/// Returns the one task whose change was applied. Every other task got the current metadata, or nothing if there is no
/// value.
async fn winner(t: &StoreTarget, outcomes: Vec<Result<PutOutcome>>) -> Result<usize> {
    let now = t.head("/d/a").await?;
    let mut winners = Vec::new();
    for (task, outcome) in outcomes.into_iter().enumerate() {
        match outcome? {
            PutOutcome::Applied(_) => winners.push(task),
            PutOutcome::PreconditionFailed(found) => {
                let version = |stored: &StoredMeta| stored.version.clone();
                assert_eq!(
                    found.as_ref().map(version),
                    now.as_ref().map(version),
                    "the refusal has the current version"
                );
            }
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?} won");
    Ok(winners[0])
}

async fn one_of_many_writers_on_a_version_wins(t: &StoreTarget) -> LawResult {
    let mut version = t.put("/d/a", "nobody").await?.version;
    for round in 0..10 {
        let content = move |task| format!("{task} in {round}");
        let outcomes = race(t, TASKS, |task, store| {
            let expected = Precondition::Version(version.clone());
            async move { store.put(&key("/d/a"), value(content(task)), &expected).await }
        });
        let winner = winner(t, outcomes.await).await?;
        assert_eq!(t.content("/d/a").await?, Some(content(winner).into()));
        version = t.head("/d/a").await?.expect("it is there").version;
    }
    Ok(())
}

async fn one_of_many_creators_wins(t: &StoreTarget) -> LawResult {
    for round in 0..10 {
        let content = move |task| format!("{task} in {round}");
        let outcomes = race(t, TASKS, |task, store| async move {
            store.put(&key("/d/a"), value(content(task)), &Precondition::Absent).await
        });
        let winner = winner(t, outcomes.await).await?;
        assert_eq!(t.content("/d/a").await?, Some(content(winner).into()));
        assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/d/a"]);
        done(t.store.delete(&key("/d/a"), &Precondition::Any).await?);
    }
    Ok(())
}

async fn one_of_many_deleters_of_a_version_wins(t: &StoreTarget) -> LawResult {
    for round in 0..10 {
        let version = t.put("/d/a", format!("{round}")).await?.version;
        let outcomes = race(t, TASKS, |task, store| {
            let expected = if task % 2 == 0 { Precondition::Version(version.clone()) } else { Precondition::Any };
            async move { store.delete(&key("/d/a"), &expected).await }
        });
        winner(t, outcomes.await).await?;
        assert_eq!(t.head("/d/a").await?, None);
    }
    Ok(())
}

fn number(content: &[u8]) -> u64 {
    std::str::from_utf8(content).expect("a number is text").parse().expect("it is a number")
}

/// Increments a counter, retrying as often as other tasks come first.
async fn increment(store: &dyn Store, at: &str) -> Result<()> {
    loop {
        let got = store.get(&key(at), None).await?.expect("it is there");
        let next = value((number(&got.content) + 1).to_string());
        if let PutOutcome::Applied(_) = store.put(&key(at), next, &Precondition::Version(got.stored.version)).await? {
            return Ok(());
        }
    }
}

/// Two counters, each increased by compare-and-swap from eight tasks.
async fn counters_end_right(t: &StoreTarget) -> LawResult {
    t.put("/a", "0").await?;
    t.put("/b", "0").await?;
    let counted = race(t, 8, |task, store| async move {
        for round in 0..20 {
            increment(&*store, if (task + round) % 2 == 0 { "/a" } else { "/b" }).await?;
        }
        Ok::<_, vfs_core::Error>(())
    });
    counted.await.into_iter().collect::<Result<Vec<_>>>()?;
    for at in ["/a", "/b"] {
        assert_eq!(number(&t.content(at).await?.expect("it is there")), 80, "{at}");
    }
    Ok(())
}

/// A read returns the content, version and size of one value, while large and small values replace each other.
async fn a_reader_gets_whole_values(t: &StoreTarget) -> LawResult {
    let size = |round: usize| if round.is_multiple_of(2) { 300_000 } else { 1_200_000 };
    let content =
        move |round: usize| vec![u8::try_from(b'a' as usize + round % 26).expect("it is a letter"); size(round)];
    t.put("/a", content(0)).await?;
    let writer = t.handle(1);
    let task = tokio::spawn(async move {
        for round in 1..40 {
            done(writer.put(&key("/a"), value(content(round)), &Precondition::Any).await?);
        }
        Ok::<_, vfs_core::Error>(())
    });
    let mut versions = std::collections::BTreeMap::<Version, u8>::new();
    let mut reads = 0;
    while !task.is_finished() || reads == 0 {
        let range = if reads % 2 == 0 { None } else { Some(299_990..1_100_000) };
        let part = range.clone().map_or(0, |range: std::ops::Range<u64>| range.start);
        let got = t.store.get(&key("/a"), range.clone()).await?.expect("it is there");
        let whole = range.map_or(got.stored.size, |range| range.end.min(got.stored.size)) - part;
        let first = got.content[0];
        assert_eq!(got.content.len() as u64, whole, "of {} bytes", got.stored.size);
        assert!(got.content.iter().all(|byte| *byte == first), "parts of two values");
        assert_eq!(got.stored.size, size(usize::from(first - b'a')) as u64, "the size of another value");
        assert_eq!(*versions.entry(got.stored.version).or_insert(first), first, "one version of two values");
        reads += 1;
    }
    task.await.expect("the task did not panic")
}

/// A change whose task is aborted at any time is applied as a whole or not at all, and the store works as before.
async fn a_dropped_change_is_complete_or_absent(t: &StoreTarget) -> LawResult {
    t.put("/a", vec![b'a'; 200_000]).await?;
    for round in 0..40 {
        let content = vec![b'b' + round % 2; 200_000];
        let store = t.handle(usize::from(round));
        let task = tokio::spawn(async move { store.put(&key("/a"), value(content), &Precondition::Any).await });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        task.abort();
        // The change may or may not have been applied; the following read finds out.
        drop(task.await);
        let got = t.store.get(&key("/a"), None).await?.expect("it is there");
        assert!(
            got.content.len() == 200_000 && got.content.iter().all(|byte| *byte == got.content[0]),
            "a part of a value"
        );
        t.put("/b", format!("{round}")).await?;
    }
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/a", "/b"]);
    Ok(())
}

/// Both expect the same version: either the value is changed and exists, or it is deleted.
async fn of_a_writer_and_a_deleter_one_wins(t: &StoreTarget) -> LawResult {
    for round in 0..50 {
        let version = t.put("/d/a", format!("{round}")).await?.version;
        let outcomes = race(t, 2, |task, store| {
            let expected = Precondition::Version(version.clone());
            async move {
                match task {
                    0 => store.put(&key("/d/a"), value("changed"), &expected).await,
                    _ => store.delete(&key("/d/a"), &expected).await,
                }
            }
        });
        let winner = winner(t, outcomes.await).await?;
        assert_eq!(t.head("/d/a").await?.is_some(), winner == 0);
        drop(t.store.delete(&key("/d/a"), &Precondition::Any).await?);
    }
    Ok(())
}

/// All values exist at the end, each with its own content.
async fn writers_of_different_values_do_not_hinder_each_other(t: &StoreTarget) -> LawResult {
    let written = race(t, TASKS, |task, store| async move {
        for round in 0..10 {
            let at = format!("/{task}/{round}");
            done(store.put(&key(&at), value(at.clone()), &Precondition::Absent).await?);
        }
        Ok::<_, vfs_core::Error>(())
    });
    written.await.into_iter().collect::<Result<Vec<_>>>()?;
    let listed = list(&*t.handle(1), &super::law_helpers::home(), &ListRequest::all(path("/"))).await?;
    assert_eq!(listed.entries.len(), TASKS * 10);
    for (at, text) in t.texts().await? {
        assert_eq!(at, text);
    }
    Ok(())
}
