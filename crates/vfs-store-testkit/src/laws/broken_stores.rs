//! Broken stores with one fault each, which the laws must detect.

use std::fmt;
use std::future::ready;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::SubsecRound;
use futures::FutureExt;
use futures::executor::block_on;
use tokio::task::yield_now;
use vfs_core::{CaseMode, Result, VfsPath};
use vfs_store::{
    BatchOutcome, BatchStore, CandidateKeys, ChangePage, Condition, Key, ListDepth, ListRequest, MemoryStore,
    Namespace, NewValue, Page, PageToken, PathStat, Precondition, PutOutcome, Search, Sequence, Staging, Store,
    StoreCapabilities, StoreChangeLog, StoredMeta, StoredValue, TextQuery, Write,
};

use super::law_helpers::moment;
use super::{STORE, StoreLaw, StoreTarget};

/// Fault of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreFault {
    Nothing,
    IgnoresConditions,
    IgnoresVersions,
    ChecksThenActs,
    ReportsMissingAsDeleted,
    CutsTimes,
    FoldsNames,
    ReadsPastTheRange,
    DropsTheLastOfAPage,
    RepeatsTheFirstOfAPage,
    ShowsSimilarNamespaces,
    InterpretsPatterns,
    SortsWithoutCase,
    PagesDirectoriesLast,
    AppliesBatchesOneByOne,
    ChecksConditionsBeforeBatches,
    CountsThePathAsBelow,
    MovesByCopying,
    LogsRefusedChanges,
    SkipsChanges,
    ExpiresEarly,
    WakesNobody,
    MissesTextAcrossChunks,
    MissesNonAsciiCase,
    MissesBinary,
    MixesUpBulkResults,
    Forgets,
    ForgetsOnceClosed,
}

/// Store in memory with a fault, which yields in every operation.
#[derive(Debug, Clone)]
struct BrokenStore {
    inner: Arc<MemoryStore>,
    fault: StoreFault,
}

impl BrokenStore {
    fn key(&self, key: &Key) -> Key {
        match self.fault {
            StoreFault::FoldsNames => {
                Key::new(key.namespace.clone(), super::law_helpers::path(&key.path.as_str().to_lowercase()))
            }
            _ => key.clone(),
        }
    }

    fn batches(&self) -> &dyn BatchStore {
        self.inner.as_batch().expect("the store in memory has this facet")
    }

    fn changes(&self) -> &dyn StoreChangeLog {
        self.inner.as_changes().expect("the store in memory has this facet")
    }

    /// Checks a precondition in a separate operation. Returns the outcome of the change if it does not hold.
    async fn check_precondition(&self, key: &Key, expected: &Precondition) -> Result<Option<PutOutcome>> {
        let found = self.inner.head(key).await?;
        yield_now().await;
        Ok((!expected.holds(found.as_ref())).then_some(PutOutcome::PreconditionFailed(found)))
    }

    fn weaken(&self, expected: &Precondition) -> Precondition {
        match (self.fault, expected) {
            (StoreFault::IgnoresConditions | StoreFault::ChecksThenActs, _)
            | (StoreFault::IgnoresVersions, Precondition::Version(_)) => Precondition::Any,
            _ => expected.clone(),
        }
    }

    /// Returns the values below a path in which `_` stands for any byte.
    async fn list_matching(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let is_below = |path: &VfsPath| {
            let (path, pattern) = (path.as_str().as_bytes(), request.below.as_str().as_bytes());
            path.get(pattern.len()) == Some(&b'/') && path.iter().zip(pattern).all(|(a, b)| a == b || *b == b'_')
        };
        let mut page = self.inner.list(namespace, &ListRequest::all(VfsPath::root()).limit(usize::MAX)).await?;
        page.entries.retain(|entry| is_below(&entry.path));
        Ok(page)
    }

    async fn list_similar_namespaces(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let mut page = self.inner.list(namespace, request).await?;
        for other in self.inner.namespaces().await? {
            if other.as_str().starts_with(namespace.as_str()) {
                page.entries.extend(self.inner.list(&other, request).await?.entries);
            }
        }
        page.entries.sort_by(|a, b| a.path.cmp(&b.path));
        page.entries.dedup_by(|a, b| a.path == b.path);
        Ok(page)
    }
}

impl BrokenStore {
    /// Returns a page of a level whose directories follow all of its values.
    async fn list_directories_last(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let all = ListRequest::level(request.below.clone()).limit(usize::MAX);
        let level = self.inner.list(namespace, &all).await?;
        let start = request.from.as_ref().map_or(0, |token| token.as_str().parse().expect("a position"));
        let values = level.entries.len();
        let count = values + level.directories.len();
        let end = count.min(start + request.limit);
        let mut page = Page::default();
        page.entries = level.entries.into_iter().take(end).skip(start).collect();
        page.directories =
            level.directories.into_iter().take(end.saturating_sub(values)).skip(start.saturating_sub(values)).collect();
        page.next = (end < count).then(|| PageToken::new(end.to_string()));
        Ok(page)
    }
}

impl fmt::Display for BrokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken({:?})", self.fault)
    }
}

#[async_trait]
impl Store for BrokenStore {
    fn capabilities(&self) -> StoreCapabilities {
        self.inner.capabilities()
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        yield_now().await;
        self.inner.head(&self.key(key)).await
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        yield_now().await;
        let range = match self.fault {
            StoreFault::ReadsPastTheRange => range.map(|range| range.start..range.end.saturating_add(1)),
            _ => range,
        };
        self.inner.get(&self.key(key), range).await
    }

    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        yield_now().await;
        let mut stats = self.inner.stat_many(namespace, paths).await?;
        if self.fault == StoreFault::MixesUpBulkResults {
            stats.reverse();
        }
        Ok(stats)
    }

    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        yield_now().await;
        let mut values = self.inner.get_many(namespace, paths, max_size).await?;
        if self.fault == StoreFault::MixesUpBulkResults {
            values.reverse();
        }
        Ok(values)
    }

    async fn put(&self, key: &Key, mut value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        yield_now().await;
        let key = self.key(key);
        if self.fault == StoreFault::CutsTimes {
            value.created_at = value.created_at.trunc_subsecs(3);
            value.modified_at = value.modified_at.trunc_subsecs(3);
        }
        if self.fault == StoreFault::ChecksThenActs
            && let Some(refused) = self.check_precondition(&key, expected).await?
        {
            return Ok(refused);
        }
        let outcome = self.inner.put(&key, value.clone(), &self.weaken(expected)).await?;
        if self.fault == StoreFault::LogsRefusedChanges && matches!(outcome, PutOutcome::PreconditionFailed(Some(_))) {
            let found = self.inner.get(&key, None).await?;
            value.content = found.map_or_else(Bytes::new, |value| value.content).into();
            drop(self.inner.put(&key, value, &Precondition::Any).await?);
        }
        Ok(outcome)
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        yield_now().await;
        let key = self.key(key);
        if self.fault == StoreFault::ChecksThenActs
            && let Some(refused) = self.check_precondition(&key, expected).await?
        {
            return Ok(refused);
        }
        match self.inner.delete(&key, &self.weaken(expected)).await? {
            PutOutcome::PreconditionFailed(None) if self.fault == StoreFault::ReportsMissingAsDeleted => {
                Ok(PutOutcome::Applied(StoredMeta::new(0, "none".into(), moment(0))))
            }
            outcome => Ok(outcome),
        }
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        yield_now().await;
        if self.fault == StoreFault::InterpretsPatterns && request.depth == ListDepth::All {
            return self.list_matching(namespace, request).await;
        }
        if self.fault == StoreFault::ShowsSimilarNamespaces {
            return self.list_similar_namespaces(namespace, request).await;
        }
        if self.fault == StoreFault::PagesDirectoriesLast && request.depth == ListDepth::Level {
            return self.list_directories_last(namespace, request).await;
        }
        let mut page = self.inner.list(namespace, request).await?;
        match self.fault {
            StoreFault::DropsTheLastOfAPage if page.next.is_some() => drop(page.entries.pop()),
            StoreFault::RepeatsTheFirstOfAPage if request.from.is_some() => {
                let first = self.inner.list(namespace, &ListRequest::all(request.below.clone()).limit(1)).await?;
                page.entries = first.entries.into_iter().chain(page.entries).take(request.limit).collect();
            }
            StoreFault::SortsWithoutCase => page.entries.sort_by_key(|entry| entry.path.as_str().to_lowercase()),
            _ => {}
        }
        Ok(page)
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.inner.namespaces().await
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        Some(self)
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        Some(self)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        Some(self)
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        self.inner.as_staging()
    }
}

#[async_trait]
impl BatchStore for BrokenStore {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        yield_now().await;
        if let StoreFault::ChecksConditionsBeforeBatches | StoreFault::AppliesBatchesOneByOne = self.fault {
            if let refused @ BatchOutcome::PreconditionFailed(..) =
                self.batches().batch(namespace, conditions, vec![]).await?
            {
                return Ok(refused);
            }
            yield_now().await;
        }
        match self.fault {
            StoreFault::ChecksConditionsBeforeBatches => self.batches().batch(namespace, &[], writes).await,
            StoreFault::AppliesBatchesOneByOne => {
                let mut all = Vec::new();
                for write in writes {
                    match self.batches().batch(namespace, &[], vec![write]).await? {
                        BatchOutcome::Applied(stored) => all.extend(stored),
                        refused => return Ok(refused),
                    }
                    yield_now().await;
                }
                Ok(BatchOutcome::Applied(all))
            }
            StoreFault::MovesByCopying => {
                let split = |write| match write {
                    Write::Move { from, to } => {
                        vec![Write::Copy { from: from.clone(), to, at: moment(1) }, Write::Delete(from)]
                    }
                    other => vec![other],
                };
                self.batches().batch(namespace, conditions, writes.into_iter().flat_map(split).collect()).await
            }
            StoreFault::CountsThePathAsBelow => {
                let at = conditions.iter().filter_map(|condition| match condition {
                    Condition::NothingBelow(path) if !path.is_root() => {
                        Some(Condition::At(path.clone(), Precondition::Absent))
                    }
                    _ => None,
                });
                let all: Vec<_> = conditions.iter().cloned().chain(at).collect();
                self.batches().batch(namespace, &all, writes).await
            }
            _ => self.batches().batch(namespace, conditions, writes).await,
        }
    }
}

#[async_trait]
impl StoreChangeLog for BrokenStore {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        yield_now().await;
        self.changes().last_sequence(namespace).await
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        yield_now().await;
        let newest = self.changes().last_sequence(namespace).await?;
        if self.fault == StoreFault::ExpiresEarly && seen.0 + 1000 < newest.0 {
            return Ok(ChangePage::Expired(newest));
        }
        let mut page = self.changes().since(namespace, seen, limit).await?;
        if let (StoreFault::SkipsChanges, ChangePage::Changes { changes, .. }) = (self.fault, &mut page) {
            changes.retain(|(sequence, _)| sequence.0 % 5 != 3);
        }
        Ok(page)
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        yield_now().await;
        if self.fault == StoreFault::WakesNobody && self.changes().last_sequence(namespace).await? == seen {
            std::future::pending::<()>().await;
        }
        self.changes().changed(namespace, seen).await
    }
}

#[async_trait]
impl Search for BrokenStore {
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>> {
        yield_now().await;
        let search = self.inner.as_search().expect("the store in memory has this facet");
        let Some(found) = search.candidates(namespace, prefix, query).await? else { return Ok(None) };
        let mut retained = CandidateKeys::new();
        for path in found {
            let key = Key::new(namespace.clone(), path);
            let content = self.inner.get(&key, None).await?.map_or_else(Bytes::new, |value| value.content);
            let holds = |part: &[u8], needle: &str| String::from_utf8_lossy(part).contains(needle);
            let is_retained = match self.fault {
                StoreFault::MissesTextAcrossChunks => {
                    content.chunks(65_536).any(|part| query.texts.iter().any(|needle| holds(part, needle)))
                }
                StoreFault::MissesNonAsciiCase if query.case != CaseMode::Sensitive => {
                    let text = content.to_ascii_lowercase();
                    query.texts.iter().any(|needle| holds(&text, &needle.to_ascii_lowercase()))
                }
                StoreFault::MissesBinary => std::str::from_utf8(&content).is_ok(),
                _ => true,
            };
            if is_retained {
                retained.insert(key.path);
            }
        }
        Ok(Some(retained))
    }
}

/// Returns whether `law` holds for a store with the `fault`. The clock is paused and advances while all tasks wait.
fn holds(law: &StoreLaw, fault: StoreFault) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime can be built").block_on(async {
        let kept = Arc::new(MemoryStore::new());
        let opened = Mutex::new(Weak::new());
        let open = move || {
            let mut opened = opened.lock().expect("no panic");
            let inner = match fault {
                StoreFault::Forgets => Arc::default(),
                StoreFault::ForgetsOnceClosed => opened.upgrade().unwrap_or_default(),
                _ => Arc::clone(&kept),
            };
            *opened = Arc::downgrade(&inner);
            ready(Ok(BrokenStore { inner, fault }))
        };
        let mut target = StoreTarget::opened_by(open).await.expect("a store in memory can be opened");
        let outcome = AssertUnwindSafe((law.run)(&mut target)).catch_unwind().await;
        matches!(outcome, Ok(Ok(())))
    })
}

fn law(number: &str) -> &'static StoreLaw {
    STORE.iter().find(|law| law.number == number).unwrap_or_else(|| panic!("there is no law {number}"))
}

#[test]
fn every_fault_breaks_the_laws_about_it() {
    let faults: &[(StoreFault, &[&str])] = &[
        (StoreFault::IgnoresConditions, &["SE1", "SE2", "SE3", "SR1", "SR2", "SH3", "SO1"]),
        (StoreFault::IgnoresVersions, &["SE1", "SE4", "SR4", "SR7"]),
        (StoreFault::ChecksThenActs, &["SR1", "SR2", "SR4"]),
        (StoreFault::ReportsMissingAsDeleted, &["SV3", "SE2", "SR3"]),
        (StoreFault::CutsTimes, &["ST1", "ST2"]),
        (StoreFault::FoldsNames, &["SN1", "SN3", "SL1"]),
        (StoreFault::ReadsPastTheRange, &["SV4", "SV5"]),
        (StoreFault::DropsTheLastOfAPage, &["SL2", "SL7", "SP3"]),
        (StoreFault::RepeatsTheFirstOfAPage, &["SL2", "SP3"]),
        (StoreFault::ShowsSimilarNamespaces, &["SA1", "SA2", "SA3"]),
        (StoreFault::InterpretsPatterns, &["SN4", "SL1"]),
        (StoreFault::SortsWithoutCase, &["SL3"]),
        (StoreFault::PagesDirectoriesLast, &["SP7"]),
        (StoreFault::AppliesBatchesOneByOne, &["SB3", "SB4", "SF3", "SY1", "SY4"]),
        (StoreFault::ChecksConditionsBeforeBatches, &["SY2", "SY5", "SY6"]),
        (StoreFault::CountsThePathAsBelow, &["SD2", "SD5"]),
        (StoreFault::MovesByCopying, &["SM1", "SC4", "SB2"]),
        (StoreFault::LogsRefusedChanges, &["SC3", "SC5"]),
        (StoreFault::SkipsChanges, &["SC2", "SC5", "SF1", "SF2"]),
        (StoreFault::ExpiresEarly, &["SC8"]),
        (StoreFault::WakesNobody, &["SW2", "SW3", "SW4"]),
        (StoreFault::MissesTextAcrossChunks, &["SS2"]),
        (StoreFault::MissesNonAsciiCase, &["SS11", "SS12"]),
        (StoreFault::MissesBinary, &["SS4"]),
        (StoreFault::MixesUpBulkResults, &["SV10", "SV11"]),
        (StoreFault::Forgets, &["SH1", "SH2", "SH6"]),
        (StoreFault::ForgetsOnceClosed, &["SH6"]),
    ];
    let pairs = faults.iter().flat_map(|(fault, numbers)| numbers.iter().map(move |number| (*fault, *number)));
    let missed: Vec<_> = pairs.filter(|(fault, number)| holds(law(number), *fault)).collect();
    assert_eq!(missed, [], "these laws hold for stores with these faults");
}

#[test]
fn every_law_holds_for_a_store_that_yields_in_every_operation() {
    let target = block_on(StoreTarget::opened_by(|| ready(Ok(MemoryStore::new())))).expect("a store can be opened");
    for law in STORE.iter().filter(|law| target.exception_of(law).is_none()) {
        assert!(holds(law, StoreFault::Nothing), "{} ({})", law.number, law.name);
    }
}
