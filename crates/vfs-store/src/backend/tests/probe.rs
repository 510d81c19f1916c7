//! A store that counts its calls, answers in small pages and late, and fails or waits on request.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::store::{
    BatchOutcome, BatchStore, CandidateKeys, ChangePage, Condition, ListDepth, ListRequest, NewValue, Page, PathStat,
    Precondition, PutOutcome, Search, Sequence, Staging, StagingToken, Store, StoreCapabilities, StoreChangeLog,
    StoredMeta, StoredValue, TextQuery, Write,
};
use crate::{Key, MemoryStore, Namespace};

/// Function that runs before a call, with its name and number.
type Hook = Arc<dyn Fn(&str, usize) + Send + Sync>;

/// Replacement of the response of an applied change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LostResponse {
    /// An error that the outcome is unknown.
    Unavailable,
    /// An error that the change took too long.
    Timeout,
    /// An error that the store panicked.
    Internal,
    /// No response at all.
    Forever,
}

pub(super) struct Probe {
    pub(super) store: MemoryStore,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    hook: Mutex<Option<Hook>>,
    /// Name of the call that fails, and the kind of its error.
    failing: Mutex<Option<(&'static str, ErrorKind)>>,
    /// Number of changes that still succeed.
    changes_left: AtomicUsize,
    /// Name and number of the call whose response is lost.
    lost: Mutex<Option<(&'static str, usize, LostResponse)>>,
    page: usize,
    /// Maximum number of bytes that a read may request.
    max_read: AtomicU64,
    /// Whether the store stages contents.
    has_staging: AtomicBool,
    /// Semaphore of which every call acquires a permit.
    gate: Semaphore,
}

impl Probe {
    pub(super) fn new(store: MemoryStore) -> Self {
        Self {
            store,
            calls: Mutex::default(),
            hook: Mutex::default(),
            failing: Mutex::default(),
            changes_left: AtomicUsize::new(usize::MAX),
            lost: Mutex::default(),
            page: 7,
            max_read: AtomicU64::new(u64::MAX),
            has_staging: AtomicBool::new(false),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        }
    }

    /// Returns and resets the number of calls of `name`.
    pub(super) fn take(&self, name: &str) -> usize {
        self.calls.lock().expect("no panic").remove(name).unwrap_or_default()
    }

    /// Returns and resets the numbers of all calls.
    pub(super) fn take_all(&self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut *self.calls.lock().expect("no panic"))
    }

    /// Runs `hook` before each call, with the name and number of the call. After a change was applied, the hook runs
    /// again before the outcome is returned, with `made` after the name.
    pub(super) fn before(&self, hook: impl Fn(&str, usize) + Send + Sync + 'static) {
        *self.hook.lock().expect("no panic") = Some(Arc::new(hook));
    }

    /// Blocks all calls until [`open`](Self::open).
    pub(super) fn close(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(super) fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// Fails every call of a name from now on, or none.
    pub(super) fn fail(&self, call: Option<(&'static str, ErrorKind)>) {
        *self.failing.lock().expect("no panic") = call;
    }

    /// Stages contents from now on.
    pub(super) fn add_staging(&self) {
        self.has_staging.store(true, Ordering::SeqCst);
    }

    /// Fails every read that requests more than `bytes` from now on.
    pub(super) fn refuse_longer_reads(&self, bytes: u64) {
        self.max_read.store(bytes, Ordering::SeqCst);
    }

    /// Fails every change after the next `changes` ones.
    pub(super) fn fail_after(&self, changes: usize) {
        self.changes_left.store(changes, Ordering::SeqCst);
    }

    /// Applies the change of call number `count` of `name`, and loses its response.
    pub(super) fn lose(&self, name: &'static str, count: usize, lost: LostResponse) {
        *self.lost.lock().expect("no panic") = Some((name, count, lost));
    }

    /// Returns or loses the outcome of the call `count` of `name`.
    async fn outcome<T>(&self, name: &'static str, count: usize, made: T) -> Result<T> {
        let hook = self.hook.lock().expect("no panic").clone();
        if let Some(hook) = hook {
            hook(&format!("{name} made"), count);
        }
        let lost = *self.lost.lock().expect("no panic");
        match lost.filter(|(lost, at, _)| (*lost, *at) == (name, count)) {
            None => Ok(made),
            Some((_, _, LostResponse::Unavailable)) => Err(Error::of(ErrorKind::Unavailable)),
            Some((_, _, LostResponse::Timeout)) => Err(Error::of(ErrorKind::Timeout)),
            Some((_, _, LostResponse::Internal)) => Err(Error::of(ErrorKind::Internal)),
            Some((_, _, LostResponse::Forever)) => futures::future::pending().await,
        }
    }

    async fn record_call(&self, name: &'static str) -> Result<usize> {
        let count = {
            let mut calls = self.calls.lock().expect("no panic");
            let count = calls.entry(name).or_default();
            *count += 1;
            *count
        };
        let hook = self.hook.lock().expect("no panic").clone();
        if let Some(hook) = hook {
            hook(name, count);
        }
        let failing = *self.failing.lock().expect("no panic");
        if let Some((_, kind)) = failing.filter(|(call, _)| *call == name) {
            return Err(Error::of(kind));
        }
        tokio::task::yield_now().await;
        drop(self.gate.acquire().await.map_err(|_| Error::of(ErrorKind::Unavailable))?);
        Ok(count)
    }

    fn record_change(&self) -> Result<()> {
        let left = self.changes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| Error::of(ErrorKind::Unavailable))
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("probe")
    }
}

#[async_trait]
impl Store for Probe {
    fn capabilities(&self) -> StoreCapabilities {
        self.store.capabilities()
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        self.record_call("head").await?;
        self.store.head(key).await
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        self.record_call("get").await?;
        let requested = range.as_ref().map_or(u64::MAX, |range| range.end - range.start);
        if requested > self.max_read.load(Ordering::SeqCst) {
            return Err(Error::of(ErrorKind::Internal));
        }
        self.store.get(key, range).await
    }

    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        self.record_call("stat many").await?;
        self.store.stat_many(namespace, paths).await
    }

    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        self.record_call("get many").await?;
        self.store.get_many(namespace, paths, max_size).await
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        let count = self.record_call("put").await?;
        self.record_change()?;
        let made = self.store.put(key, value, expected).await?;
        self.outcome("put", count, made).await
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        let count = self.record_call("delete").await?;
        self.record_change()?;
        let made = self.store.delete(key, expected).await?;
        self.outcome("delete", count, made).await
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        self.record_call(if request.depth == ListDepth::All { "list all" } else { "list level" }).await?;
        let request = request.clone().limit(request.limit.min(self.page));
        self.store.list(namespace, &request).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.store.namespaces().await
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        self.store.as_batch().map(|_| self as &dyn BatchStore)
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        self.has_staging.load(Ordering::SeqCst).then_some(self as &dyn Staging)
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        self.store.as_changes().map(|_| self as &dyn StoreChangeLog)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        self.store.as_search().map(|_| self as &dyn Search)
    }
}

#[async_trait]
impl BatchStore for Probe {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        let count = self.record_call("batch").await?;
        self.record_change()?;
        let made = self.store.batch(namespace, conditions, writes).await?;
        self.outcome("batch", count, made).await
    }
}

impl Probe {
    fn staging(&self) -> &dyn Staging {
        self.store.as_staging().expect("the memory store stages contents")
    }
}

#[async_trait]
impl Staging for Probe {
    fn max_size(&self) -> u64 {
        self.staging().max_size()
    }

    async fn begin(&self, key: &Key, created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> Result<StagingToken> {
        self.record_call("begin").await?;
        self.staging().begin(key, created_at, modified_at).await
    }

    async fn append(&self, token: &StagingToken, offset: u64, part: Bytes) -> Result<()> {
        self.record_call("append").await?;
        self.staging().append(token, offset, part).await
    }

    async fn discard(&self, token: &StagingToken) -> Result<()> {
        self.record_call("discard").await?;
        self.staging().discard(token).await
    }
}

#[async_trait]
impl StoreChangeLog for Probe {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        self.record_call("position").await?;
        self.store.last_sequence(namespace).await
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        self.record_call("since").await?;
        self.store.since(namespace, seen, limit.min(self.page)).await
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        self.record_call("changed").await?;
        self.store.changed(namespace, seen).await
    }
}

#[async_trait]
impl Search for Probe {
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>> {
        self.record_call("candidates").await?;
        self.store.candidates(namespace, prefix, query).await
    }
}
