//! What a store keeps of an overlay, whatever fails and whoever else is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use vfs_core::{
    Action, Around, Backend, BackendExt, ChangeKind, Error, ErrorKind, Layer, OpContext, Operation, Request, Result,
    VfsPath, Wrapped,
};
use vfs_layers::{Commit, Fault, OverlayBackend};
use vfs_memory::MemoryBackend;

use super::support::path;

/// What happens at one write of a file, or one listing of a directory.
enum Event {
    /// It fails, and nothing is written.
    Fails(ErrorKind),
    /// It is written, and the answer is another one.
    Answers(ErrorKind),
    /// So it is, and from then on nothing is answered.
    Leaves,
    /// Another overlay commits right before, or where the directory is listed.
    Commits(Box<OverlayBackend>),
    /// Another overlay finishes what is noted, and then commits.
    TakesOver(Box<OverlayBackend>),
    /// Something else is done right before.
    Does(Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>),
}

/// A backend where something happens at one write of a file, download of a content, or listing of a directory, counted from 0.
struct Eventful {
    at: VfsPath,
    nth: usize,
    event: Event,
    calls: AtomicUsize,
    /// What the commit of the other overlay came to.
    outcomes: Mutex<Vec<Result<Commit>>>,
}

impl std::fmt::Debug for Eventful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Eventful")
    }
}

impl Around for Eventful {
    fn name(&self) -> &'static str {
        "eventful"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let error = |kind| {
            let error = Error::new(kind, "it fails on purpose on db.internal:5432").with_path(&self.at);
            error.with_generic_model_message()
        };
        if matches!(self.event, Event::Leaves) && self.calls.load(Ordering::Relaxed) > self.nth {
            return Err(error(ErrorKind::Unavailable));
        }
        let is_it = match request.action() {
            Action::Write(write) => write.path == self.at,
            Action::Ls(ls) => ls.path == self.at,
            Action::Download(download) => download.path == self.at && self.at.as_str().contains("/objects/"),
            _ => false,
        };
        if !is_it || self.calls.fetch_add(1, Ordering::Relaxed) != self.nth {
            return request.send(inner, cx).await;
        }
        match &self.event {
            Event::Fails(kind) => Err(error(*kind)),
            Event::Answers(kind) => request.send(inner, cx).await.and(Err(error(*kind))),
            Event::Does(other) => {
                other().await;
                request.send(inner, cx).await
            }
            Event::Leaves => request.send(inner, cx).await.and(Err(error(ErrorKind::Unavailable))),
            Event::Commits(other) | Event::TakesOver(other) => {
                if matches!(self.event, Event::TakesOver(_)) {
                    assert!(Box::pin(other.finish_commit(cx)).await?);
                }
                let outcome = Box::pin(other.commit(cx)).await;
                self.outcomes.lock().await.push(outcome);
                request.send(inner, cx).await
            }
        }
    }
}

/// `files`, where at the `nth` write or listing of `at` there is an `event`.
fn eventful(files: &MemoryBackend, at: &str, nth: usize, event: Event) -> Arc<dyn Backend> {
    also(Arc::new(files.clone()), at, nth, event)
}

fn also(files: Arc<dyn Backend>, at: &str, nth: usize, event: Event) -> Arc<dyn Backend> {
    let eventful = Eventful { at: path(at), nth, event, calls: AtomicUsize::new(0), outcomes: Mutex::default() };
    Arc::new(Wrapped::new(files, Arc::new(eventful)))
}

/// Does `other` right before.
fn does<F: Future<Output = ()> + Send + 'static>(other: impl Fn() -> F + Send + Sync + 'static) -> Event {
    Event::Does(Box::new(move || other().boxed()))
}

const FULL: Event = Event::Fails(ErrorKind::StorageFull);
const LOST: Event = Event::Answers(ErrorKind::Unavailable);
const NOTE: &str = "/journal/overlay.json";

async fn base() -> MemoryBackend {
    let files = MemoryBackend::new();
    for at in ["/a", "/z"] {
        files.create_text(at, "old").await.expect("a new file");
    }
    files
}

fn journaled(base: Arc<dyn Backend>, store: Arc<dyn Backend>) -> OverlayBackend {
    OverlayBackend::new(base).with_journal(store, path("/journal"))
}

/// An overlay whose commit is cut short: the file `/z` cannot be written, and after the note nothing can be noted.
async fn cut_short(base: &MemoryBackend, store: &MemoryBackend) -> Result<OverlayBackend> {
    let overlay = journaled(eventful(base, "/z", 0, FULL), eventful(store, NOTE, 1, FULL));
    overlay.write_text("/a", "theirs").await?;
    overlay.write_text("/z", "theirs").await?;
    Ok(overlay)
}

async fn commit(overlay: &OverlayBackend) -> Result<()> {
    match overlay.commit(&OpContext::new()).await? {
        Commit::Applied(_) => Ok(()),
        other => panic!("nothing stands against it: {other:?}"),
    }
}

#[tokio::test]
async fn a_commit_that_could_not_be_noted_leaves_its_changes_when_another_is_finished() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let mine = journaled(Arc::new(base.clone()), eventful(&store, NOTE, 0, FULL));
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
async fn a_commit_that_came_too_late_to_be_noted_leaves_its_changes_when_the_first_is_finished() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let first = Event::Commits(Box::new(cut_short(&base, &store).await?));
    let mine = journaled(Arc::new(base.clone()), eventful(&store, NOTE, 0, first));
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
async fn a_commit_whose_note_had_no_answer_is_no_more_once_something_else_is_changed() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let mine = journaled(Arc::new(base.clone()), eventful(&store, NOTE, 0, LOST));
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
async fn a_commit_whose_note_had_no_answer_can_be_made_again_or_given_up() -> Result<()> {
    let cx = OpContext::new();
    for is_discarded in [false, true] {
        for is_kept in [false, true] {
            let (base, store) = (base().await, MemoryBackend::new());
            // The first note of one that is kept is that of the change.
            let lossy = eventful(&store, NOTE, usize::from(is_kept), LOST);
            let mine = if is_kept {
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
async fn a_commit_of_nothing_leaves_what_another_process_keeps() -> Result<()> {
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
async fn contents_that_stay_in_the_store_are_no_failure_of_what_was_kept() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let open = |store: Arc<dyn Backend>| OverlayBackend::open(Arc::new(base.clone()), store, path("/kept"));
    let crowded = Fault::new(ErrorKind::Unavailable).only(Operation::Ls).layer(Arc::new(store.clone()));
    let overlay = open(Arc::clone(&crowded)).await?;
    overlay.create_text("/x", "mine").await?;
    commit(&overlay).await?;
    base.write_text("/x", "theirs, later").await?;
    assert_eq!(overlay.read_text("/x").await?, "theirs, later");
    overlay.remove("/a").await?;
    assert!(!open(Arc::new(store.clone())).await?.exists("/a").await?);
    overlay.discard(&cx).await?;
    assert!(overlay.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn what_was_applied_is_no_change_any_more_though_the_end_could_not_be_noted() -> Result<()> {
    let cx = OpContext::new();
    for event in [FULL, LOST] {
        let is_noted = matches!(event, Event::Answers(_));
        let (base, store) = (base().await, MemoryBackend::new());
        let overlay = journaled(Arc::new(base.clone()), eventful(&store, NOTE, 1, event));
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
    // It cannot be noted that the commit was taken back, and the answer that it is finished is lost.
    let journal = also(eventful(&store, NOTE, 1, FULL), NOTE, 2, LOST);
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
async fn a_change_that_was_cancelled_and_made_is_taken_back_too() -> Result<()> {
    let base = base().await;
    let overlay = OverlayBackend::new(eventful(&base, "/z", 0, Event::Answers(ErrorKind::Cancelled)));
    overlay.write_text("/a", "mine").await?;
    overlay.write_text("/z", "mine").await?;
    assert_eq!(commit(&overlay).await.expect_err("it is cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!((base.read_text("/a").await?, base.read_text("/z").await?), ("old".into(), "old".into()));
    Ok(())
}

#[tokio::test]
async fn a_change_of_which_nobody_knows_whether_it_was_made_is_told_and_can_be_finished() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let overlay = journaled(eventful(&base, "/z", 0, Event::Leaves), Arc::new(store.clone()));
    overlay.write_text("/z", "mine").await?;
    let error = commit(&overlay).await.expect_err("the base is gone");
    for words in [error.message(), &error.for_model()] {
        assert!(words.ends_with("these files could not be made what they were: /z"), "{words}");
    }
    assert!(!error.for_model().contains("db.internal"), "{}", error.for_model());
    assert_eq!(overlay.discard(&cx).await.expect_err("to be finished").kind(), ErrorKind::Conflict);

    let next = journaled(Arc::new(base.clone()), Arc::new(store.clone()));
    assert!(next.finish_commit(&cx).await?);
    assert_eq!(base.read_text("/z").await?, "mine");
    Ok(())
}

#[tokio::test]
async fn a_commit_that_begins_while_another_ends_keeps_its_contents() -> Result<()> {
    let cx = OpContext::new();
    // The second begins where the first looks for contents to remove, and where that one's end is noted.
    for (at, nth) in [("/journal", 0), (NOTE, 1)] {
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
async fn errors_of_the_store_name_none_of_its_paths() -> Result<()> {
    let (cx, root) = (OpContext::new(), Some("/"));
    let base = base().await;
    let failing = Fault::new(ErrorKind::StorageFull).only(Operation::Write).layer(Arc::new(MemoryBackend::new()));
    let overlay = journaled(Arc::new(base.clone()), failing);
    overlay.write_text("/a", "mine").await?;
    assert_eq!(commit(&overlay).await.expect_err("the store is full").path(), root);

    let overlay = journaled(Arc::new(base.clone()), eventful(&MemoryBackend::new(), NOTE, 1, FULL));
    overlay.write_text("/a", "mine").await?;
    let error = commit(&overlay).await.expect_err("the store is full");
    assert_eq!((error.kind(), error.path()), (ErrorKind::StorageFull, root));
    for words in [error.message(), &error.for_model()] {
        assert!(words.contains("; all was applied, but that could not be noted"), "{words}");
    }
    assert!(!error.for_model().contains("db.internal"), "{}", error.for_model());
    assert!(!error.to_string().contains("/journal"), "{error}");
    assert_eq!(overlay.commit(&cx).await.expect_err("to be finished").path(), root);
    assert_eq!(overlay.discard(&cx).await.expect_err("to be finished").path(), root);

    let gone = Fault::new(ErrorKind::Unavailable).layer(Arc::new(MemoryBackend::new()));
    let overlay = journaled(Arc::new(base.clone()), gone);
    assert_eq!(overlay.finish_commit(&cx).await.expect_err("the store is gone").path(), root);
    Ok(())
}

#[tokio::test]
async fn a_commit_that_another_process_finished_and_followed_by_its_own_is_not_noted_over_that() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let other = journaled(eventful(&base, "/b", 0, FULL), eventful(&store, NOTE, 2, FULL));
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

async fn open(base: Arc<dyn Backend>, store: Arc<dyn Backend>) -> Result<OverlayBackend> {
    OverlayBackend::open(base, store, path("/journal")).await
}

/// Another process opens the overlay, which finishes the commit that is noted, and then does something else.
fn opens_and<F: Future<Output = ()> + Send + 'static>(
    base: &MemoryBackend,
    store: &MemoryBackend,
    then: impl Fn(MemoryBackend) -> F + Copy + Send + Sync + 'static,
) -> Event {
    let (base, store) = (base.clone(), store.clone());
    does(move || {
        let (base, store) = (base.clone(), store.clone());
        async move {
            open(Arc::new(base.clone()), Arc::new(store)).await.expect("the commit is finished");
            then(base).await;
        }
    })
}

fn opens(base: &MemoryBackend, store: &MemoryBackend) -> Event {
    opens_and(base, store, |_| async {})
}

/// Changes of `/a` and `/z`.
async fn change_both(overlay: &OverlayBackend) -> Result<()> {
    overlay.write_text("/a", "mine").await?;
    overlay.write_text("/z", "mine").await.map(drop)
}

async fn both(base: &MemoryBackend) -> Result<(String, String)> {
    Ok((base.read_text("/a").await?, base.read_text("/z").await?))
}

#[tokio::test]
async fn a_commit_goes_on_with_what_another_process_made_of_it() -> Result<()> {
    for at in ["/a", "/z"] {
        let (base, store) = (base().await, MemoryBackend::new());
        let overtaken = eventful(&base, at, 0, opens(&base, &store));
        let overlay = open(overtaken, Arc::new(store.clone())).await?;
        change_both(&overlay).await?;
        let Commit::Applied(changes) = overlay.commit(&OpContext::new()).await? else {
            panic!("nothing stands against it")
        };
        let changes: Vec<_> = changes.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        assert_eq!(changes, [("/a", ChangeKind::Changed), ("/z", ChangeKind::Changed)]);
        assert_eq!(both(&base).await?, ("mine".into(), "mine".into()), "{at}");
        overlay.write_text("/a", "again").await?;
        assert_eq!(open(Arc::new(base), Arc::new(store)).await?.read_text("/a").await?, "again");
    }
    Ok(())
}

#[tokio::test]
async fn a_commit_that_another_process_finished_is_not_taken_back() -> Result<()> {
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

/// Another process opens the overlay and makes all of the commit, but cannot note the end; `then` something else happens.
fn makes_all(base: &MemoryBackend, store: &MemoryBackend, then: impl Fn() + Send + Sync + 'static) -> Event {
    let (base, store, then) = (base.clone(), eventful(store, NOTE, 0, FULL), Arc::new(then));
    Event::Does(Box::new(move || {
        let (base, store, then) = (Arc::new(base.clone()), Arc::clone(&store), Arc::clone(&then));
        async move {
            open(base, store).await.expect_err("the store is full");
            then();
        }
        .boxed()
    }))
}

#[tokio::test]
async fn what_another_process_made_of_a_commit_counts_as_made_here() -> Result<()> {
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
    assert!(error.message().contains("another process goes on with the commit"), "{error}");
    assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
    assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn a_commit_whose_rollback_cannot_be_noted_is_taken_back_and_can_be_finished() -> Result<()> {
    for event in [FULL, LOST] {
        let (base, store) = (base().await, MemoryBackend::new());
        // Two changes and the begin of the commit are noted before.
        let overlay = open(eventful(&base, "/z", 0, FULL), eventful(&store, NOTE, 3, event)).await?;
        change_both(&overlay).await?;
        let error = commit(&overlay).await.expect_err("the base is full");
        assert!(error.message().contains("nor could that be noted"), "{error}");
        assert_eq!(both(&base).await?, ("old".into(), "old".into()));
        assert!(overlay.finish_commit(&OpContext::new()).await?);
        assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
        assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    }
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

/// So it does, and then `/z` is made what it was.
fn finishes_and_resets(base: &MemoryBackend, store: &MemoryBackend) -> Event {
    opens_and(base, store, |base| async move {
        base.write_text("/z", "old").await.expect("it is written");
    })
}

#[tokio::test]
async fn a_process_that_opens_an_overlay_while_its_commit_is_taken_back_finishes_it() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    // Two changes, the begin of the commit, and that it is taken back are noted before.
    let overtaken = eventful(&store, NOTE, 4, opens(&base, &store));
    let overlay = open(eventful(&base, "/z", 0, FULL), overtaken).await?;
    change_both(&overlay).await?;
    let error = commit(&overlay).await.expect_err("the base is full");
    assert!(error.message().contains("another process goes on with the commit"), "{error}");
    assert_eq!(both(&base).await?, ("mine".into(), "mine".into()));
    assert!(open(Arc::new(base), Arc::new(store)).await?.is_unchanged());
    Ok(())
}

#[tokio::test]
async fn a_process_that_finishes_a_commit_late_removes_none_of_the_contents_put_since() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    // The end of the commit cannot be noted at first.
    let first = open(Arc::new(base.clone()), eventful(&store, NOTE, 3, FULL)).await?;
    change_both(&first).await?;
    commit(&first).await.expect_err("the store is full");
    // Another process is about to remove what it holds, and to note the end.
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
    // Neither the change of `/a` nor the rollback is noted: the commit is left as it began.
    let first = open(eventful(&base, "/a", 0, FULL), eventful(&store, NOTE, 3, FULL)).await?;
    first.write_text("/a", "mine").await?;
    first.remove("/z").await?;
    commit(&first).await.expect_err("the base and the store are full");
    let late = open(eventful(&base, "/a", 0, finishes_and_resets(&base, &store)), Arc::new(store)).await?;
    assert!(late.is_unchanged());
    assert_eq!(both(&base).await?, ("mine".into(), "old".into()));
    Ok(())
}

#[tokio::test]
async fn a_change_after_one_whose_answer_was_lost_keeps_its_contents() -> Result<()> {
    let (base, store) = (base().await, MemoryBackend::new());
    let overlay = open(Arc::new(base.clone()), eventful(&store, NOTE, 1, LOST)).await?;
    overlay.create_text("/one", "1").await?;
    // The note of nothing begins a new generation.
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
        assert_eq!(store.find("/journal/contents-*/objects/**").await?.len(), 1, "both files have it");
        commit(&overlay).await?;
        assert_eq!(store.find("/journal/**").await?.len(), 2, "the note, and what is not of the overlay");
        change_both(&overlay).await?;
        overlay.discard(&cx).await?;
        assert_eq!(store.find("/journal/**").await?.len(), 2, "the note, and what is not of the overlay");
    }
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

/// Where `store` has the content `text`.
async fn content_path(store: &MemoryBackend, text: &str) -> Result<String> {
    let found = store.search(text).await?;
    Ok(found.first().expect("it is there").path.as_str().to_owned())
}

/// The same note is written again, so that it has another version.
fn rewrites_the_note(store: &MemoryBackend) -> Event {
    let store = store.clone();
    Event::Does(Box::new(move || {
        let store = store.clone();
        async move {
            let note = store.read_text(NOTE).await.expect("it is there");
            store.remove(NOTE).await.expect("it is there");
            store.create_text(NOTE, &note).await.expect("it is not there");
        }
        .boxed()
    }))
}

#[tokio::test]
async fn a_note_with_another_version_is_still_that_of_the_same_commit() -> Result<()> {
    for is_journaled in [false, true] {
        for is_full in [false, true] {
            let (base, store) = (base().await, MemoryBackend::new());
            let files =
                if is_full { eventful(&base, "/z", 0, FULL) } else { Arc::new(base.clone()) as Arc<dyn Backend> };
            let files = also(files, "/a", 0, rewrites_the_note(&store));
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

#[tokio::test]
async fn changes_stay_if_the_journal_of_their_commit_is_removed() -> Result<()> {
    let (base, store, cx) = (base().await, MemoryBackend::new(), OpContext::new());
    let overlay = cut_short(&base, &store).await?;
    commit(&overlay).await.expect_err("it is cut short");
    store.remove(NOTE).await?;
    assert!(!overlay.finish_commit(&cx).await?);
    assert_eq!(overlay.read_text("/z").await?, "theirs");
    commit(&overlay).await?;
    assert_eq!(base.read_text("/z").await?, "theirs");
    Ok(())
}

#[tokio::test]
async fn a_commit_whose_note_had_no_answer_can_be_given_up_though_the_store_was_full() -> Result<()> {
    let cx = OpContext::new();
    for is_kept in [false, true] {
        let (base, store) = (base().await, MemoryBackend::new());
        // The first note of one that is kept is that of the change.
        let nth = usize::from(is_kept);
        let failing = also(eventful(&store, NOTE, nth, LOST), NOTE, nth + 1, FULL);
        let overlay = if is_kept {
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
