//! Locking of a journal that renames and recoveries share.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};
use vfs_composite::{JournalLock, JournalLockGuard, RecoveryOutcome, RecoveryReport};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, BackendExt, Interceptor, OpContext, Operation, RenameRequest, Result};

use crate::{Namespace, path};

/// Events of a journal and its lock, in order.
type Events = Arc<Mutex<Vec<&'static str>>>;

fn add_event(events: &Events, event: &'static str) {
    events.lock().expect("not poisoned").push(event);
}

/// A lock that records when it is acquired and released.
#[derive(Debug, Default)]
struct RecordingLock {
    lock: Arc<RwLock<()>>,
    events: Events,
}

struct RecordingGuard<G> {
    _guard: G,
    events: Events,
}

impl<G> Drop for RecordingGuard<G> {
    fn drop(&mut self) {
        add_event(&self.events, "released");
    }
}

#[async_trait]
impl JournalLock for RecordingLock {
    async fn lock_shared(&self, _cx: &OpContext) -> Result<JournalLockGuard> {
        let guard: OwnedRwLockReadGuard<()> = Arc::clone(&self.lock).read_owned().await;
        add_event(&self.events, "shared");
        Ok(Box::new(RecordingGuard { _guard: guard, events: Arc::clone(&self.events) }))
    }

    async fn try_lock_exclusive(&self, _cx: &OpContext) -> Result<Option<JournalLockGuard>> {
        let guard: OwnedRwLockWriteGuard<()> = match Arc::clone(&self.lock).try_write_owned() {
            Ok(guard) => guard,
            Err(_) => {
                add_event(&self.events, "refused");
                return Ok(None);
            }
        };
        add_event(&self.events, "exclusive");
        Ok(Some(Box::new(RecordingGuard { _guard: guard, events: Arc::clone(&self.events) })))
    }
}

/// Records changes of the journal.
#[derive(Debug)]
struct RecordedChanges(Events);

impl Interceptor for RecordedChanges {
    fn name(&self) -> &'static str {
        "recorded_changes"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        match Q::OPERATION {
            Operation::Write => add_event(&self.0, "written"),
            Operation::Delete => add_event(&self.0, "removed"),
            _ => {}
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Holds up writes until it has a permit for each.
#[derive(Debug)]
struct PausedWrites(Semaphore);

impl Interceptor for PausedWrites {
    fn name(&self) -> &'static str {
        "paused_writes"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION == Operation::Write {
            self.0.acquire().await.expect("it is never closed").forget();
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// `namespace` with a lock, and the events of its journal.
fn locked(namespace: &mut Namespace) -> Events {
    let lock = RecordingLock::default();
    let events = Arc::clone(&lock.events);
    let journal = Intercepted::new(Arc::new(namespace.journal.clone()), Arc::new(RecordedChanges(Arc::clone(&events))));
    namespace.files = namespace.files.clone().with_locked_journal(Arc::new(journal), path("/moves"), Arc::new(lock));
    events
}

fn take(events: &Events) -> Vec<&'static str> {
    std::mem::take(&mut events.lock().expect("not poisoned"))
}

#[tokio::test]
async fn a_record_is_written_and_removed_under_the_lock() -> Result<()> {
    let mut namespace = Namespace::new()?;
    let events = locked(&mut namespace);
    assert_eq!(namespace.recover().await?, RecoveryReport::default());
    assert_eq!(take(&events), [] as [&str; 0], "an empty journal takes no lock");
    namespace.source.create_text("/d/a", "a").await?;
    namespace.files.rename(&OpContext::new(), RenameRequest::new(path("/d/a"), path("/m/d/a"))).await?;
    assert_eq!(take(&events), ["shared", "written", "removed", "released"]);
    namespace.source.create_text("/d/a", "a").await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&["a"]).await?).await?;
    assert_eq!(namespace.recover_one().await?, RecoveryOutcome::Finished);
    assert_eq!(take(&events), ["exclusive", "removed", "released"]);
    Ok(())
}

#[tokio::test]
async fn a_recovery_during_a_running_move_defers_it_and_reports_unreadable_files() -> Result<()> {
    let paused = Arc::new(PausedWrites(Semaphore::new(0)));
    let layer = Arc::clone(&paused);
    let mut namespace = Namespace::with(|source| source, |target| Arc::new(Intercepted::new(target, layer)))?;
    let events = locked(&mut namespace);
    namespace.write_record("move-0-0.json", &json!("damaged")).await?;
    namespace.journal.create_text("/moves/notes.txt", "of somebody else").await?;
    for name in ["a", "b"] {
        namespace.source.create_text(&format!("/d/{name}"), name).await?;
    }
    let files = namespace.files.clone();
    let request = RenameRequest::new(path("/d"), path("/m/d"));
    let moving = tokio::spawn(async move { files.rename(&OpContext::new(), request).await });
    // The first file is written, and the move waits in front of the second one.
    paused.0.add_permits(1);
    while !namespace.target.exists("/d/a").await? {
        tokio::task::yield_now().await;
    }
    let recovery = namespace.recover().await?;
    assert_eq!((recovery.moves.len(), recovery.deferred, recovery.unreadable.len()), (0, 2, 1), "{recovery:?}");
    assert!(namespace.source.exists("/d/a").await? && !namespace.target.exists("/d/b").await?);
    assert_eq!(take(&events), ["shared", "written", "refused"]);
    paused.0.add_permits(1);
    moving.await.expect("it does not panic")?;
    assert_eq!(take(&events), ["removed", "released"]);
    assert_eq!(
        (namespace.source.exists("/d").await?, namespace.target.read_text("/d/b").await?),
        (false, "b".to_owned())
    );
    assert_eq!(namespace.recover().await?.deferred, 0);
    Ok(())
}
