//! Stores and bases with an event at one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, BackendExt, Error, ErrorKind, Interceptor, OpContext, Result, VfsPath};
use vfs_memory::MemoryBackend;
use vfs_versions::{CommitResult, OverlayBackend};

use crate::support::path;

/// What happens at one write of a file, or one listing of a directory.
pub(super) enum Event {
    /// It fails, and nothing is written.
    Fails(ErrorKind),
    /// It is written, and the response is an error.
    Answers(ErrorKind),
    /// It is written, and from then on no request succeeds.
    Leaves,
    /// Another overlay commits right before, or where the directory is listed.
    Commits(Box<OverlayBackend>),
    /// Another overlay finishes the recorded commit, and then commits.
    TakesOver(Box<OverlayBackend>),
    /// Something else is done right before.
    Does(Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>),
}

/// A backend where something happens at one write of a file, download of a content, or listing of a directory, counted from 0.
pub(super) struct Eventful {
    at: VfsPath,
    nth: usize,
    event: Event,
    calls: AtomicUsize,
    /// What the commit of the other overlay came to.
    outcomes: Mutex<Vec<Result<CommitResult>>>,
}

impl std::fmt::Debug for Eventful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Eventful")
    }
}

impl Interceptor for Eventful {
    fn name(&self) -> &'static str {
        "eventful"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let error = |kind| {
            let error = Error::new(kind, "it fails on purpose on db.internal:5432").with_path(&self.at);
            error.with_generic_model_message()
        };
        if matches!(self.event, Event::Leaves) && self.calls.load(Ordering::Relaxed) > self.nth {
            return Err(error(ErrorKind::Unavailable));
        }
        let is_it = match request.as_request_ref() {
            RequestRef::Write(write) => write.path == self.at,
            RequestRef::Ls(ls) => ls.path == self.at,
            RequestRef::Download(download) => download.path == self.at && self.at.as_str().contains("/objects/"),
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

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// `files`, where at the `nth` write or listing of `at` there is an `event`.
pub(super) fn eventful(files: &MemoryBackend, at: &str, nth: usize, event: Event) -> Arc<dyn Backend> {
    also(Arc::new(files.clone()), at, nth, event)
}

pub(super) fn also(files: Arc<dyn Backend>, at: &str, nth: usize, event: Event) -> Arc<dyn Backend> {
    let eventful = Eventful { at: path(at), nth, event, calls: AtomicUsize::new(0), outcomes: Mutex::default() };
    Arc::new(Intercepted::new(files, Arc::new(eventful)))
}

/// Does `other` right before.
pub(super) fn does<F: Future<Output = ()> + Send + 'static>(other: impl Fn() -> F + Send + Sync + 'static) -> Event {
    Event::Does(Box::new(move || other().boxed()))
}

pub(super) const FULL: Event = Event::Fails(ErrorKind::StorageFull);
pub(super) const LOST: Event = Event::Answers(ErrorKind::Unavailable);
pub(super) const RECORD: &str = "/journal/overlay.json";

pub(super) async fn base() -> MemoryBackend {
    let files = MemoryBackend::new();
    for at in ["/a", "/z"] {
        files.create_text(at, "old").await.expect("a new file");
    }
    files
}

pub(super) fn journaled(base: Arc<dyn Backend>, store: Arc<dyn Backend>) -> OverlayBackend {
    OverlayBackend::new(base).with_journal(store, path("/journal"))
}

/// An overlay whose commit is cut short: the file `/z` cannot be written, and after the record nothing can be recorded.
pub(super) async fn cut_short(base: &MemoryBackend, store: &MemoryBackend) -> Result<OverlayBackend> {
    let overlay = journaled(eventful(base, "/z", 0, FULL), eventful(store, RECORD, 1, FULL));
    overlay.write_text("/a", "theirs").await?;
    overlay.write_text("/z", "theirs").await?;
    Ok(overlay)
}

pub(super) async fn commit(overlay: &OverlayBackend) -> Result<()> {
    match overlay.commit(&OpContext::new()).await? {
        CommitResult::Applied(_) => Ok(()),
        other => panic!("nothing stands against it: {other:?}"),
    }
}

pub(super) async fn open(base: Arc<dyn Backend>, store: Arc<dyn Backend>) -> Result<OverlayBackend> {
    OverlayBackend::open(base, store, path("/journal")).await
}

/// Another process opens the overlay, which finishes the commit that is recorded, and then does something else.
pub(super) fn opens_and<F: Future<Output = ()> + Send + 'static>(
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

pub(super) fn opens(base: &MemoryBackend, store: &MemoryBackend) -> Event {
    opens_and(base, store, |_| async {})
}

/// Changes of `/a` and `/z`.
pub(super) async fn change_both(overlay: &OverlayBackend) -> Result<()> {
    overlay.write_text("/a", "mine").await?;
    overlay.write_text("/z", "mine").await.map(drop)
}

pub(super) async fn both(base: &MemoryBackend) -> Result<(String, String)> {
    Ok((base.read_text("/a").await?, base.read_text("/z").await?))
}

/// Another process opens the overlay and makes all of the commit, but cannot record the end; `then` something else happens.
pub(super) fn makes_all(base: &MemoryBackend, store: &MemoryBackend, then: impl Fn() + Send + Sync + 'static) -> Event {
    let (base, store, then) = (base.clone(), eventful(store, RECORD, 0, FULL), Arc::new(then));
    Event::Does(Box::new(move || {
        let (base, store, then) = (Arc::new(base.clone()), Arc::clone(&store), Arc::clone(&then));
        async move {
            open(base, store).await.expect_err("the store is full");
            then();
        }
        .boxed()
    }))
}

/// Another process finishes the commit, and then restores `/z`.
pub(super) fn finishes_and_resets(base: &MemoryBackend, store: &MemoryBackend) -> Event {
    opens_and(base, store, |base| async move {
        base.write_text("/z", "old").await.expect("it is written");
    })
}

/// Where `store` has the content `text`.
pub(super) async fn content_path(store: &MemoryBackend, text: &str) -> Result<String> {
    let found = store.grep_text(text).await?;
    Ok(found.first().expect("it is there").path.as_str().to_owned())
}

/// The same record is written again, so that it has another version.
pub(super) fn rewrites_the_record(store: &MemoryBackend) -> Event {
    let store = store.clone();
    Event::Does(Box::new(move || {
        let store = store.clone();
        async move {
            let record = store.read_text(RECORD).await.expect("it is there");
            store.delete_file(RECORD).await.expect("it is there");
            store.create_text(RECORD, &record).await.expect("it is not there");
        }
        .boxed()
    }))
}
