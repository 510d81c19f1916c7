//! Writes of records that fail, or whose response is lost.

use std::sync::Arc;

use vfs_core::{Backend, BackendExt, ErrorKind, Layer, OpContext, Operation, Result};
use vfs_layers::FaultInjection;
use vfs_memory::MemoryBackend;
use vfs_versions::OverlayBackend;

use super::events::{
    Event, FULL, LOST, RECORD, also, base, both, change_both, commit, cut_short, does, eventful, journaled, open,
    rewrites_the_record,
};
use crate::support::path;

#[tokio::test]
async fn an_unacknowledged_commit_record_is_withdrawn_by_the_next_change() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let mine = journaled(Arc::new(base.clone()), eventful(&store, RECORD, 0, LOST));
    mine.create_text("/one", "1").await?;
    assert_eq!(commit(&mine).await.expect_err("the answer is lost").kind(), ErrorKind::Unavailable);
    mine.create_text("/two", "2").await?;
    mine.write_text("/one", "1 again").await?;
    let next = journaled(Arc::new(base.clone()), Arc::new(store.clone()));
    assert!(!next.finish_commit(&OpContext::new()).await?, "nothing is noted");

    commit(&mine).await?;
    assert_eq!(base.read_text("/one").await?, "1 again");
    assert_eq!(base.read_text("/two").await?, "2");
    Ok(())
}

#[tokio::test]
async fn a_commit_with_an_unacknowledged_record_can_be_repeated_or_discarded() -> Result<()> {
    let cx = OpContext::new();
    for is_discarded in [false, true] {
        for is_persistent in [false, true] {
            let (base, store) = (base().await, MemoryBackend::new());
            // The first record of a persistent overlay is the one of the change.
            let lossy = eventful(&store, RECORD, usize::from(is_persistent), LOST);
            let mine = if is_persistent {
                OverlayBackend::open(Arc::new(base.clone()), lossy, path("/journal")).await?
            } else {
                journaled(Arc::new(base.clone()), lossy)
            };
            mine.create_text("/one", "1").await?;
            assert_eq!(commit(&mine).await.expect_err("the answer is lost").kind(), ErrorKind::Unavailable);
            if is_discarded {
                mine.discard(&cx).await?;
            } else {
                assert!(!mine.finish_commit(&cx).await?, "it did not begin");
                assert_eq!(mine.read_text("/one").await?, "1");
                commit(&mine).await?;
            }
            let next = OverlayBackend::open(Arc::new(base.clone()), Arc::new(store.clone()), path("/journal")).await?;
            assert!(next.is_unchanged());
            assert_eq!(base.exists("/one").await?, !is_discarded);
        }
    }
    Ok(())
}

#[tokio::test]
async fn contents_that_cannot_be_removed_from_the_store_are_not_a_failure_of_a_change() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let open = |store: Arc<dyn Backend>| OverlayBackend::open(Arc::new(base.clone()), store, path("/kept"));
    let crowded = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Ls).layer(Arc::new(store.clone()));
    let overlay = open(Arc::clone(&crowded)).await?;
    overlay.create_text("/x", "mine").await?;
    commit(&overlay).await?;
    base.write_text("/x", "theirs, later").await?;
    assert_eq!(overlay.read_text("/x").await?, "theirs, later");
    overlay.delete_file("/a").await?;
    assert!(!open(Arc::new(store.clone())).await?.exists("/a").await?);
    overlay.discard(&cx).await?;
    assert!(overlay.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn an_applied_commit_leaves_no_changes_though_its_end_could_not_be_recorded() -> Result<()> {
    let cx = OpContext::new();
    for event in [FULL, LOST] {
        let is_noted = matches!(event, Event::Answers(_));
        let (base, store) = (base().await, MemoryBackend::new());
        let overlay = journaled(Arc::new(base.clone()), eventful(&store, RECORD, 1, event));
        overlay.write_text("/a", "mine").await?;
        commit(&overlay).await.expect_err("the end cannot be noted");
        assert!(overlay.is_unchanged());
        assert_eq!(overlay.write_text("/a", "x").await.expect_err("to be finished").kind(), ErrorKind::Conflict);
        assert_eq!(overlay.commit(&cx).await.expect_err("to be finished").kind(), ErrorKind::Conflict);
        assert_eq!(overlay.finish_commit(&cx).await?, !is_noted);
        base.write_text("/a", "theirs, later").await?;
        assert_eq!(overlay.read_text("/a").await?, "theirs, later");
    }
    Ok(())
}

#[tokio::test]
async fn a_commit_that_is_finished_twice_leaves_no_changes_either() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    // The rollback of the commit cannot be recorded, and the response that it is finished is lost.
    let journal = also(eventful(&store, RECORD, 1, FULL), RECORD, 2, LOST);
    let overlay = journaled(eventful(&base, "/z", 0, FULL), journal);
    overlay.write_text("/z", "mine").await?;
    commit(&overlay).await.expect_err("it is cut short");
    assert_eq!(overlay.finish_commit(&cx).await.expect_err("the answer is lost").kind(), ErrorKind::Unavailable);
    assert!(!overlay.finish_commit(&cx).await?, "it is finished already");
    assert!(overlay.is_unchanged());
    assert_eq!(base.read_text("/z").await?, "mine");
    Ok(())
}

#[tokio::test]
async fn a_step_that_was_cancelled_and_applied_is_rolled_back() -> Result<()> {
    let base = base().await;
    let overlay = OverlayBackend::new(eventful(&base, "/z", 0, Event::Answers(ErrorKind::Cancelled)));
    overlay.write_text("/a", "mine").await?;
    overlay.write_text("/z", "mine").await?;
    assert_eq!(commit(&overlay).await.expect_err("it is cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!((base.read_text("/a").await?, base.read_text("/z").await?), ("old".into(), "old".into()));
    Ok(())
}

#[tokio::test]
async fn a_step_with_an_unknown_result_is_reported_and_can_be_finished() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let overlay = journaled(eventful(&base, "/z", 0, Event::Leaves), Arc::new(store.clone()));
    overlay.write_text("/z", "mine").await?;
    let error = commit(&overlay).await.expect_err("the base is gone");
    for words in [error.message(), &error.for_model()] {
        assert!(words.ends_with("these files could not be restored: /z"), "{words}");
    }
    assert!(!error.for_model().contains("db.internal"), "{}", error.for_model());
    assert_eq!(overlay.discard(&cx).await.expect_err("to be finished").kind(), ErrorKind::Conflict);

    let next = journaled(Arc::new(base.clone()), Arc::new(store.clone()));
    assert!(next.finish_commit(&cx).await?);
    assert_eq!(base.read_text("/z").await?, "mine");
    Ok(())
}

#[tokio::test]
async fn errors_of_the_store_name_none_of_its_paths() -> Result<()> {
    let (cx, root) = (OpContext::new(), Some("/"));
    let base = base().await;
    let failing =
        FaultInjection::new(ErrorKind::StorageFull).only(Operation::Write).layer(Arc::new(MemoryBackend::new()));
    let overlay = journaled(Arc::new(base.clone()), failing);
    overlay.write_text("/a", "mine").await?;
    assert_eq!(commit(&overlay).await.expect_err("the store is full").path(), root);

    let overlay = journaled(Arc::new(base.clone()), eventful(&MemoryBackend::new(), RECORD, 1, FULL));
    overlay.write_text("/a", "mine").await?;
    let error = commit(&overlay).await.expect_err("the store is full");
    assert_eq!((error.kind(), error.path()), (ErrorKind::StorageFull, root));
    for words in [error.message(), &error.for_model()] {
        assert!(words.contains("; all changes were applied, but that could not be recorded"), "{words}");
    }
    assert!(!error.for_model().contains("db.internal"), "{}", error.for_model());
    assert!(!error.to_string().contains("/journal"), "{error}");
    assert_eq!(overlay.commit(&cx).await.expect_err("to be finished").path(), root);
    assert_eq!(overlay.discard(&cx).await.expect_err("to be finished").path(), root);

    let gone = FaultInjection::new(ErrorKind::Unavailable).layer(Arc::new(MemoryBackend::new()));
    let overlay = journaled(Arc::new(base.clone()), gone);
    assert_eq!(overlay.finish_commit(&cx).await.expect_err("the store is gone").path(), root);
    Ok(())
}

#[tokio::test]
async fn a_commit_whose_rollback_cannot_be_recorded_is_rolled_back_and_can_be_finished() -> Result<()> {
    for event in [FULL, LOST] {
        let (base, store) = (base().await, MemoryBackend::new());
        // Two changes and the begin of the commit are recorded before.
        let overlay = open(eventful(&base, "/z", 0, FULL), eventful(&store, RECORD, 3, event)).await?;
        change_both(&overlay).await?;
        let error = commit(&overlay).await.expect_err("the base is full");
        assert!(error.message().contains("the rollback could not be recorded"), "{error}");
        assert_eq!(both(&base).await?, ("old".into(), "old".into()));
        assert!(overlay.finish_commit(&OpContext::new()).await?);
        assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
        assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    }
    Ok(())
}

#[tokio::test]
async fn a_change_after_one_whose_answer_was_lost_keeps_its_contents() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let overlay = open(Arc::new(base.clone()), eventful(&store, RECORD, 1, LOST)).await?;
    overlay.create_text("/one", "1").await?;
    // The record of nothing begins a new generation.
    overlay.discard(&OpContext::new()).await.expect_err("the answer is lost");
    overlay.create_text("/two", "2").await?;
    let next = open(Arc::new(base), Arc::new(store)).await?;
    assert_eq!((next.read_text("/one").await?, next.read_text("/two").await?), ("1".into(), "2".into()));
    Ok(())
}

#[tokio::test]
async fn contents_go_with_the_changes_that_name_them() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    store.create_text("/journal/contents-archive/x", "of somebody else").await?;
    let overlay = open(Arc::new(base), Arc::new(store.clone())).await?;
    for _ in 0..3 {
        change_both(&overlay).await?;
        assert_eq!(store.glob_files("/journal/contents-*/objects/**").await?.len(), 1, "both files have it");
        commit(&overlay).await?;
        assert_eq!(store.glob_files("/journal/**").await?.len(), 2, "the note, and what is not of the overlay");
        change_both(&overlay).await?;
        overlay.discard(&cx).await?;
        assert_eq!(store.glob_files("/journal/**").await?.len(), 2, "the note, and what is not of the overlay");
    }
    Ok(())
}

#[tokio::test]
async fn a_record_with_another_version_is_of_the_same_commit() -> Result<()> {
    for is_journaled in [false, true] {
        for is_full in [false, true] {
            let (base, store) = (base().await, MemoryBackend::new());
            let files =
                if is_full { eventful(&base, "/z", 0, FULL) } else { Arc::new(base.clone()) as Arc<dyn Backend> };
            let files = also(files, "/a", 0, rewrites_the_record(&store));
            let overlay = if is_journaled {
                journaled(files, Arc::new(store.clone()))
            } else {
                open(files, Arc::new(store.clone())).await?
            };
            change_both(&overlay).await?;
            if is_full {
                assert_eq!(commit(&overlay).await.expect_err("the base is full").kind(), ErrorKind::StorageFull);
                assert_eq!(both(&base).await?, ("old".into(), "old".into()));
            }
            if !is_full {
                commit(&overlay).await?;
                assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
            }
            assert_eq!(overlay.is_unchanged(), !is_full);
            assert!(!journaled(Arc::new(base), Arc::new(store)).finish_commit(&OpContext::new()).await?, "it is ended");
        }
    }
    Ok(())
}

#[tokio::test]
async fn changes_stay_if_the_journal_of_their_commit_is_removed() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let overlay = cut_short(&base, &store).await?;
    commit(&overlay).await.expect_err("it is cut short");
    store.delete_file(RECORD).await?;
    assert!(!overlay.finish_commit(&cx).await?);
    assert_eq!(overlay.read_text("/z").await?, "theirs");
    commit(&overlay).await?;
    assert_eq!(base.read_text("/z").await?, "theirs");
    Ok(())
}

#[tokio::test]
async fn a_commit_with_an_unacknowledged_record_can_be_discarded_after_the_store_was_full() -> Result<()> {
    let cx = OpContext::new();
    for is_persistent in [false, true] {
        let (base, store) = (base().await, MemoryBackend::new());
        // The first record of a persistent overlay is the one of the change.
        let nth = usize::from(is_persistent);
        let failing = also(eventful(&store, RECORD, nth, LOST), RECORD, nth + 1, FULL);
        let overlay = if is_persistent {
            open(Arc::new(base.clone()), failing).await?
        } else {
            journaled(Arc::new(base.clone()), failing)
        };
        overlay.write_text("/a", "mine").await?;
        assert_eq!(commit(&overlay).await.expect_err("the answer is lost").kind(), ErrorKind::Unavailable);
        let error = overlay.write_text("/z", "mine").await.expect_err("the store is full");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        overlay.discard(&cx).await?;
        assert!(overlay.is_unchanged());
        assert!(!journaled(Arc::new(base.clone()), Arc::new(store)).finish_commit(&cx).await?, "nothing is noted");
        assert_eq!(both(&base).await?, ("old".into(), "old".into()));
    }
    Ok(())
}

#[tokio::test]
async fn a_commit_whose_record_is_removed_before_its_rollback_keeps_its_changes() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let removes = {
        let store = store.clone();
        does(move || {
            let store = store.clone();
            async move { store.delete_file(RECORD).await.expect("the record exists") }
        })
    };
    let overlay = journaled(also(eventful(&base, "/z", 0, FULL), "/z", 0, removes), Arc::new(store));
    change_both(&overlay).await?;
    let error = commit(&overlay).await.expect_err("the base is full");
    assert!(error.message().contains("the rollback could not be recorded"), "{error}");
    assert_eq!(both(&base).await?, ("old".into(), "old".into()));
    assert_eq!((overlay.read_text("/a").await?, overlay.read_text("/z").await?), ("mine".into(), "mine".into()));
    Ok(())
}
