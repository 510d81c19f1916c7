//! Random histories, compared with the reference store in memory.

use std::collections::BTreeMap;

use fastrand::Rng;
use vfs_core::{Result, Version, VfsPath};
use vfs_store::{
    BatchOutcome, Condition, ListRequest, MemoryStore, Precondition, PutOutcome, Store, StoredMeta, Write,
};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{home, key, list, moment, path, value};

store_laws! { "history":
    "SO1" Nothing any_history_of_changes_ends_as_in_memory,
    "SO2" Batch any_history_of_batches_ends_as_in_memory,
}

/// Paths above, below and next to each other.
const PATHS: &[&str] = &["/a", "/a/b", "/a/b/c", "/a-b", "/a0", "/b", "/b/a", "/_/%", "/é"];

/// Store and reference store with the same history.
struct ReferenceComparison<'a> {
    store: &'a dyn Store,
    reference: MemoryStore,
    /// Versions of the reference with the corresponding versions of the store.
    versions: BTreeMap<Version, Version>,
    random: Rng,
}

/// Returns the metadata of a value that is the same in both stores.
fn size_of(found: Option<&StoredMeta>) -> Option<u64> {
    found.map(|stored| stored.size)
}

impl<'a> ReferenceComparison<'a> {
    fn new(store: &'a dyn Store, seed: u64) -> Self {
        Self { store, reference: MemoryStore::new(), versions: BTreeMap::new(), random: Rng::with_seed(seed) }
    }

    fn path(&mut self) -> VfsPath {
        path(PATHS[self.random.usize(..PATHS.len())])
    }

    /// Returns a precondition for the reference and the same one for the store.
    async fn expected(&mut self, at: &VfsPath) -> Result<[Precondition; 2]> {
        let versions: Vec<_> = self.versions.iter().map(|(a, b)| (a.clone(), b.clone())).collect();
        Ok(match self.random.u8(..6) {
            0 | 1 => [Precondition::Any, Precondition::Any],
            2 => [Precondition::Absent, Precondition::Absent],
            3 | 4 => {
                let found = (self.reference.head(&key(at.as_str())).await?, self.store.head(&key(at.as_str())).await?);
                match found {
                    (Some(one), Some(other)) => {
                        [Precondition::Version(one.version), Precondition::Version(other.version)]
                    }
                    _ => [Precondition::Absent, Precondition::Absent],
                }
            }
            _ => match self.random.choice(versions) {
                // The same content may have been put again, and then has another version if versions depend on changes.
                Some((one, other)) if one == other => [Precondition::Version(one), Precondition::Version(other)],
                _ => [Precondition::Version("none".into()), Precondition::Version("none".into())],
            },
        })
    }

    fn record_versions(&mut self, one: &StoredMeta, other: &StoredMeta) {
        assert_eq!(one.size, other.size);
        self.versions.insert(one.version.clone(), other.version.clone());
    }

    fn compare(&mut self, what: &str, reference: PutOutcome, store: PutOutcome) {
        match (reference, store) {
            (PutOutcome::Applied(one), PutOutcome::Applied(other)) => self.record_versions(&one, &other),
            (PutOutcome::PreconditionFailed(one), PutOutcome::PreconditionFailed(other)) => {
                assert_eq!(size_of(one.as_ref()), size_of(other.as_ref()), "{what}")
            }
            (one, other) => panic!("{what}: {other:?} instead of {one:?}"),
        }
    }

    async fn change_one(&mut self, round: usize) -> LawResult {
        let at = self.path();
        let key = key(at.as_str());
        let [one, other] = self.expected(&at).await?;
        if self.random.u8(..3) == 0 {
            let outcomes = (self.reference.delete(&key, &one).await?, self.store.delete(&key, &other).await?);
            self.compare(&format!("delete {at} {one:?}"), outcomes.0, outcomes.1);
        } else {
            let new = value("x".repeat(round % 23));
            let outcomes =
                (self.reference.put(&key, new.clone(), &one).await?, self.store.put(&key, new, &other).await?);
            self.compare(&format!("put {at} {one:?}"), outcomes.0, outcomes.1);
        }
        Ok(())
    }

    async fn change_many(&mut self, round: usize) -> LawResult {
        let (mut ones, mut others, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.random.usize(..3) {
            let at = self.path();
            if self.random.u8(..4) == 0 {
                ones.push(Condition::NothingBelow(at.clone()));
                others.push(Condition::NothingBelow(at));
            } else {
                let [one, other] = self.expected(&at).await?;
                ones.push(Condition::At(at.clone(), one));
                others.push(Condition::At(at, other));
            }
        }
        for n in 0..self.random.usize(..5) {
            let (from, to) = (self.path(), self.path());
            writes.push(match self.random.u8(..6) {
                0..=2 => Write::Put(to, value("y".repeat((round + n) % 19))),
                3 => Write::Delete(to),
                4 => Write::Move { from, to },
                _ => Write::Copy { from, to, at: moment(round as i64) },
            });
        }
        let what = format!("{ones:?} {writes:?}");
        let batch = self.store.as_batch().expect("the law needs it");
        let store = batch.batch(&home(), &others, writes.clone()).await?;
        let reference = self.reference.as_batch().expect("it has them").batch(&home(), &ones, writes).await?;
        match (reference, store) {
            (BatchOutcome::Applied(one), BatchOutcome::Applied(other)) => {
                assert_eq!(one.len(), other.len(), "{what}");
                one.iter().zip(&other).for_each(|(one, other)| self.record_versions(one, other));
            }
            (BatchOutcome::PreconditionFailed(one, found), BatchOutcome::PreconditionFailed(other, seen)) => {
                assert_eq!((one, size_of(found.as_ref())), (other, size_of(seen.as_ref())), "{what}");
            }
            (one, other) => panic!("{what}: {other:?} instead of {one:?}"),
        }
        Ok(())
    }

    async fn assert_equal(&mut self) -> LawResult {
        let (one, other) = (
            super::law_helpers::state_of(&self.reference, &home()).await?,
            super::law_helpers::state_of(self.store, &home()).await?,
        );
        let fields = |(path, value): (VfsPath, vfs_store::StoredValue)| (path, value.content, value.stored.created_at);
        assert!(one.into_iter().map(fields).eq(other.into_iter().map(fields)), "the stores have different values");
        let below = self.path();
        let request = ListRequest::level(below).limit(self.random.usize(1..5));
        let (one, other) =
            (list(&self.reference, &home(), &request).await?, list(self.store, &home(), &request).await?);
        assert_eq!((one.paths(), one.folders()), (other.paths(), other.folders()), "{request:?}");
        Ok(())
    }
}

async fn any_history_of_changes_ends_as_in_memory(t: &StoreTarget) -> LawResult {
    let mut pair = ReferenceComparison::new(&*t.store, 31);
    for round in 0..200 {
        pair.change_one(round).await?;
        if round % 20 == 0 {
            pair.assert_equal().await?;
        }
    }
    pair.assert_equal().await
}

async fn any_history_of_batches_ends_as_in_memory(t: &StoreTarget) -> LawResult {
    let mut pair = ReferenceComparison::new(&*t.store, 37);
    for round in 0..200 {
        pair.change_many(round).await?;
        if round % 10 == 0 {
            pair.assert_equal().await?;
        }
    }
    pair.assert_equal().await
}
