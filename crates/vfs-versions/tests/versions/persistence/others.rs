//! Other processes that use the same records at the same time.

use std::sync::Arc;

use futures::FutureExt;
use vfs_core::snapshots::SnapshotDiffKind;
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, Result};
use vfs_memory::MemoryBackend;
use vfs_versions::{CommitResult, OverlayBackend};

use super::events::{
    Event, FULL, RECORD, also, base, both, change_both, commit, content_path, cut_short, eventful, finishes_and_resets,
    journaled, makes_all, open, opens,
};
use crate::support::path;

#[tokio::test]
async fn a_commit_that_could_not_be_recorded_keeps_its_changes_when_another_is_finished() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let mine = journaled(Arc::new(base.clone()), eventful(&store, RECORD, 0, FULL));
    mine.create_text("/mine", "mine").await?;
    assert_eq!(commit(&mine).await.expect_err("the store is full").kind(), ErrorKind::StorageFull);
    commit(&cut_short(&base, &store).await?).await.expect_err("it is cut short");

    assert!(mine.finish_commit(&cx).await?);
    assert_eq!(base.read_text("/z").await?, "theirs");
    assert_eq!(mine.read_text("/mine").await?, "mine");
    commit(&mine).await?;
    assert_eq!(base.read_text("/mine").await?, "mine");
    Ok(())
}

#[tokio::test]
async fn a_commit_that_came_too_late_to_be_recorded_keeps_its_changes_when_the_first_is_finished() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let first = Event::Commits(Box::new(cut_short(&base, &store).await?));
    let mine = journaled(Arc::new(base.clone()), eventful(&store, RECORD, 0, first));
    mine.create_text("/mine", "mine").await?;
    assert_eq!(commit(&mine).await.expect_err("another was noted").kind(), ErrorKind::Conflict);

    assert!(mine.finish_commit(&cx).await?);
    assert_eq!(base.read_text("/z").await?, "theirs");
    assert_eq!(mine.read_text("/mine").await?, "mine");
    commit(&mine).await?;
    assert_eq!(base.read_text("/mine").await?, "mine");
    Ok(())
}

#[tokio::test]
async fn a_commit_without_changes_leaves_the_record_of_another_process() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let open = || OverlayBackend::open(Arc::new(base.clone()), Arc::new(store.clone()), path("/kept"));
    let (first, second) = (open().await?, open().await?);
    second.create_text("/x", "acknowledged").await?;
    commit(&first).await?;
    assert_eq!(open().await?.read_text("/x").await?, "acknowledged");
    // It found nothing in the store, which is not to have looked at nothing.
    let error = first.finish_commit(&OpContext::new()).await.expect_err("it is behind");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(!base.exists("/x").await?);
    Ok(())
}

#[tokio::test]
async fn a_commit_that_begins_while_another_ends_keeps_its_contents() -> Result<()> {
    let cx = OpContext::new();
    // The second begins where the first looks for contents to remove, and where that one's end is recorded.
    for (at, nth) in [("/journal", 0), (RECORD, 1)] {
        let (base, store) = (base().await, MemoryBackend::new());
        let second = cut_short(&base, &store).await?;
        let store_of_first = eventful(&store, at, nth, Event::Commits(Box::new(second.clone())));
        let first = journaled(Arc::new(base.clone()), store_of_first);
        first.create_text("/x", "theirs").await?;
        commit(&first).await?;
        commit(&second).await.expect_err("it is cut short, or another is noted");
        second.finish_commit(&cx).await?;
        if !second.is_unchanged() {
            commit(&second).await?;
        }
        assert_eq!(base.read_text("/z").await?, "theirs");
    }
    Ok(())
}

#[tokio::test]
async fn a_commit_that_another_process_finished_does_not_overwrite_the_record_of_the_next() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let other = journaled(eventful(&base, "/b", 0, FULL), eventful(&store, RECORD, 2, FULL));
    other.create_text("/b", "theirs").await?;
    let over = also(eventful(&base, "/z", 0, FULL), "/z", 0, Event::TakesOver(Box::new(other)));
    let mine = journaled(also(over, "/a", 1, FULL), Arc::new(store.clone()));
    mine.write_text("/a", "mine").await?;
    mine.write_text("/z", "mine").await?;
    commit(&mine).await?;
    assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));

    mine.create_text("/c", "mine").await?;
    assert!(mine.finish_commit(&cx).await?);
    assert_eq!(base.read_text("/b").await?, "theirs");
    assert!(!mine.is_unchanged(), "that was not its own");
    commit(&mine).await
}

#[tokio::test]
async fn a_commit_continues_after_steps_of_another_process() -> Result<()> {
    for at in ["/a", "/z"] {
        let (base, store) = (base().await, MemoryBackend::new());
        let overtaken = eventful(&base, at, 0, opens(&base, &store));
        let overlay = open(overtaken, Arc::new(store.clone())).await?;
        change_both(&overlay).await?;
        let CommitResult::Applied(changes) = overlay.commit(&OpContext::new()).await? else {
            panic!("nothing stands against it")
        };
        let changes: Vec<_> = changes.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        assert_eq!(changes, [("/a", SnapshotDiffKind::Changed), ("/z", SnapshotDiffKind::Changed)]);
        assert_eq!(both(&base).await?, ("mine".into(), "mine".into()), "{at}");
        overlay.write_text("/a", "again").await?;
        assert_eq!(open(Arc::new(base), Arc::new(store)).await?.read_text("/a").await?, "again");
    }
    Ok(())
}

#[tokio::test]
async fn a_commit_that_another_process_finished_is_not_rolled_back() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let overtaken = also(eventful(&base, "/z", 0, FULL), "/z", 0, finishes_and_resets(&base, &store));
    let overlay = open(overtaken, Arc::new(store.clone())).await?;
    change_both(&overlay).await?;
    let error = commit(&overlay).await.expect_err("the base is full");
    assert!(error.message().contains("another process has finished the commit"), "{error}");
    assert_eq!(both(&base).await?, ("mine".into(), "old".into()));
    assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn steps_that_another_process_applied_count_as_applied() -> Result<()> {
    for is_cancelled in [false, true] {
        let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
        let within = cx.clone();
        let then = move || {
            if is_cancelled {
                within.cancel_token().cancel()
            }
        };
        let fails =
            if is_cancelled { Arc::new(base.clone()) as Arc<dyn Backend> } else { eventful(&base, "/z", 0, FULL) };
        let at = if is_cancelled { "/a" } else { "/z" };
        let overtaken = also(fails, at, 0, makes_all(&base, &store, then));
        let overlay = open(overtaken, Arc::new(store.clone())).await?;
        change_both(&overlay).await?;
        let outcome = overlay.commit(&cx).await;
        if is_cancelled {
            assert_eq!(outcome.expect_err("it is cancelled").kind(), ErrorKind::Cancelled);
            assert_eq!(both(&base).await?, ("old".into(), "old".into()));
            commit(&open(Arc::new(base.clone()), Arc::new(store)).await?).await?;
        } else {
            // What the other one wrote is there, though this one could not write it.
            outcome?;
        }
        assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_restored_while_another_process_finishes_the_commit_is_made_again() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let overtaken = also(eventful(&base, "/z", 0, FULL), "/a", 1, opens(&base, &store));
    let overlay = open(overtaken, Arc::new(store.clone())).await?;
    change_both(&overlay).await?;
    let error = commit(&overlay).await.expect_err("the base is full");
    assert!(error.message().contains("another process continues the commit"), "{error}");
    assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
    assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn a_commit_makes_no_change_again_after_another_process_finished_it() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let overlay = open(eventful(&base, "/a", 0, finishes_and_resets(&base, &store)), Arc::new(store.clone())).await?;
    change_both(&overlay).await?;
    commit(&overlay).await?;
    assert_eq!(both(&base).await?, ("mine".into(), "old".into()));
    Ok(())
}

#[tokio::test]
async fn a_process_that_opens_an_overlay_during_a_rollback_finishes_the_commit() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    // Two changes, the begin of the commit and its rollback are recorded before.
    let overtaken = eventful(&store, RECORD, 4, opens(&base, &store));
    let overlay = open(eventful(&base, "/z", 0, FULL), overtaken).await?;
    change_both(&overlay).await?;
    let error = commit(&overlay).await.expect_err("the base is full");
    assert!(error.message().contains("another process continues the commit"), "{error}");
    assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
    assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn a_process_that_finishes_a_commit_late_removes_none_of_the_contents_put_since() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    // The end of the commit cannot be recorded at first.
    let first = open(Arc::new(base.clone()), eventful(&store, RECORD, 3, FULL)).await?;
    change_both(&first).await?;
    commit(&first).await.expect_err("the store is full");
    // Another process is about to remove unused contents, and to record the end.
    let goes_on = || {
        let (first, cx) = (first.clone(), cx.clone());
        Event::Does(Box::new(move || {
            let (first, cx) = (first.clone(), cx.clone());
            async move {
                assert!(first.finish_commit(&cx).await.expect("it is noted"));
                first.create_text("/new", "since").await.expect("a new file");
            }
            .boxed()
        }))
    };
    let late = eventful(&store, "/journal", 0, goes_on());
    assert_eq!(open(Arc::new(base.clone()), late).await?.read_text("/new").await?, "since");
    assert_eq!(open(Arc::new(base), Arc::new(store)).await?.read_text("/new").await?, "since");
    Ok(())
}

#[tokio::test]
async fn a_process_that_finishes_a_commit_late_makes_no_change_again() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    // Neither the change of `/a` nor the rollback is recorded: the commit is left as it began.
    let first = open(eventful(&base, "/a", 0, FULL), eventful(&store, RECORD, 3, FULL)).await?;
    first.write_text("/a", "mine").await?;
    first.delete_file("/z").await?;
    commit(&first).await.expect_err("the base and the store are full");
    let late = open(eventful(&base, "/a", 0, finishes_and_resets(&base, &store)), Arc::new(store)).await?;
    assert!(late.is_unchanged());
    assert_eq!(both(&base).await?, ("mine".into(), "old".into()));
    Ok(())
}

#[tokio::test]
async fn an_overlay_that_another_process_discards_while_it_is_opened_shows_the_base() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let first = open(Arc::new(base.clone()), Arc::new(store.clone())).await?;
    first.write_text("/a", "mine").await?;
    first.write_text("/z", "another").await?;
    let discards = Event::Does(Box::new(move || {
        let first = first.clone();
        async move { first.discard(&OpContext::new()).await.expect("it is discarded") }.boxed()
    }));
    let another = content_path(&store, "another").await?;
    let opened = open(Arc::new(base.clone()), eventful(&store, &another, 0, discards)).await?;
    assert!(opened.is_unchanged());
    assert_eq!(both(&base).await?, (opened.read_text("/a").await?, opened.read_text("/z").await?));
    Ok(())
}

#[tokio::test]
async fn an_overlay_with_a_journal_goes_on_after_another_process_finished_its_commit() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let other = journaled(Arc::new(base.clone()), Arc::new(store.clone()));
    let resets = {
        let base = base.clone();
        Event::Does(Box::new(move || {
            let (base, other, cx) = (base.clone(), other.clone(), cx.clone());
            async move {
                assert!(other.finish_commit(&cx).await.expect("it is noted"));
                base.write_text("/z", "old").await.expect("it is written");
            }
            .boxed()
        }))
    };
    let overlay = journaled(also(eventful(&base, "/z", 0, FULL), "/z", 0, resets), Arc::new(store));
    change_both(&overlay).await?;
    let error = commit(&overlay).await.expect_err("the base is full");
    assert!(error.message().ends_with("another process has finished the commit"), "{error}");
    assert!(overlay.is_unchanged());
    overlay.write_text("/z", "again").await?;
    commit(&overlay).await?;
    overlay.write_text("/z", "and again").await?;
    assert!(!overlay.finish_commit(&OpContext::new()).await?, "nothing is noted");
    assert!(!overlay.is_unchanged());
    commit(&overlay).await?;
    assert_eq!(both(&base).await?, ("mine".into(), "and again".into()));
    Ok(())
}

#[tokio::test]
async fn a_commit_that_another_process_finished_after_it_was_cut_short_can_be_made_again() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let overlay = cut_short(&base, &store).await?;
    commit(&overlay).await.expect_err("it is cut short");
    let other = journaled(Arc::new(base.clone()), Arc::new(store.clone()));
    assert!(other.finish_commit(&cx).await?);
    assert!(!overlay.finish_commit(&cx).await?, "nothing is noted");
    overlay.create_text("/new", "mine").await?;
    assert!(!overlay.finish_commit(&cx).await?, "nothing is noted");
    commit(&overlay).await?;
    assert_eq!((base.read_text("/new").await?, base.read_text("/z").await?), ("mine".into(), "theirs".into()));
    Ok(())
}
