//! Example of a store of one's own: values in sorted tables, with optimistic concurrency.
//!
//! [`TableStore`] implements the required methods of [`Store`] only. `StoreBackend` gives it the semantics of files, and the test
//! `laws` checks both. The tables stand for the place that you bring: a database, a service, a device.
#![cfg_attr(doctest, doc = include_str!("../../../docs/guide/writing-a-backend.md"))]

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use vfs_core::{Error, ErrorKind, Result, Version, VfsPath};
use vfs_store::{
    Entry, Key, ListDepth, ListRequest, Namespace, NewValue, Page, PageToken, Precondition, PutOutcome, Store,
    StoreCapabilities, StoredMeta, StoredValue,
};

/// The largest value in bytes: 64 MiB.
const MAX_VALUE: u64 = 64 << 20;

/// The values of each namespace, sorted by path.
type Tables = BTreeMap<Namespace, BTreeMap<VfsPath, StoredValue>>;

/// A store of values in tables. A clone is another handle of the same values.
#[derive(Debug, Clone, Default)]
pub struct TableStore(Arc<Mutex<Tables>>);

impl TableStore {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Each change is one insertion or removal, so that the tables are whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(tables: &'a Tables, key: &Key) -> Option<&'a StoredValue> {
    tables.get(&key.namespace)?.get(&key.path)
}

/// Returns the outcome of a change whose precondition fails, or `None` if it holds.
fn check(tables: &Tables, key: &Key, expected: &Precondition) -> Option<PutOutcome> {
    let found = find(tables, key).map(|value| &value.stored);
    (!expected.holds(found)).then(|| PutOutcome::PreconditionFailed(found.cloned()))
}

/// Names the store in errors and logs. A store with a URL leaves the password out.
impl fmt::Display for TableStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values in tables")
    }
}

#[async_trait]
impl Store for TableStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::new(MAX_VALUE)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        Ok(find(&self.lock(), key).map(|value| value.stored.clone()))
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        let mut value = find(&self.lock(), key).cloned();
        if let (Some(value), Some(range)) = (&mut value, range) {
            let length = value.content.len();
            let [start, end] =
                [range.start, range.end].map(|at| usize::try_from(at).map_or(length, |at| at.min(length)));
            value.content = value.content.slice(start..end.max(start));
        }
        Ok(value)
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        let content = value.content.bytes()?.clone();
        let size = content.len() as u64;
        if size > MAX_VALUE {
            return Err(Error::new(ErrorKind::TooLarge, format!("over {MAX_VALUE} bytes")).with_path(&key.path));
        }
        // The comparison and the change are one step: a place with many clients makes it a transaction, or one conditional request.
        let mut tables = self.lock();
        if let Some(failed) = check(&tables, key, expected) {
            return Ok(failed);
        }
        let version = Version::new(value.id.get().to_string());
        let stored = StoredMeta::new(size, version, value.modified_at).created_at(value.created_at);
        let value = StoredValue::new(stored.clone(), content);
        tables.entry(key.namespace.clone()).or_default().insert(key.path.clone(), value);
        Ok(PutOutcome::Applied(stored))
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        let mut tables = self.lock();
        if let Some(failed) = check(&tables, key, expected) {
            return Ok(failed);
        }
        let removed = tables.get_mut(&key.namespace).and_then(|table| table.remove(&key.path));
        Ok(removed.map_or(PutOutcome::PreconditionFailed(None), |value| PutOutcome::Applied(value.stored)))
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let mut page = Page::default();
        let tables = self.lock();
        let Some(table) = tables.get(namespace) else { return Ok(page) };
        let below = if request.below.is_root() { "/".to_owned() } else { format!("{}/", request.below) };
        // The smallest path that may come next, in the order of bytes, which is also the token of the next page. No text lies
        // between `p` and `p\0`, so that the listing continues right after the path `p`, even if its value is deleted meanwhile.
        let mut next = request.from.as_ref().map_or_else(|| format!("{below}\0"), |token| token.as_str().to_owned());
        while let Some((path, value)) = table.range::<str, _>((Bound::Included(&*next), Bound::Unbounded)).next() {
            let Some(name) = path.as_str().strip_prefix(&below) else { break };
            if page.entries.len() + page.directories.len() >= request.limit {
                page.next = Some(PageToken::new(next));
                break;
            }
            match name.split_once('/') {
                Some((directory, _)) if request.depth == ListDepth::Level => {
                    // '0' is the byte after '/', so that each text from `d/` up to `d0` begins with `d/`: one step passes all
                    // values in the directory `d`, and no other.
                    next = format!("{below}{directory}0");
                    page.directories.push(request.below.child(directory)?);
                }
                _ => {
                    next = format!("{path}\0");
                    page.entries.push(Entry { path: path.clone(), stored: value.stored.clone() });
                }
            }
        }
        // The value `/a-b/x` precedes `/a/x`, but the directory `/a` precedes `/a-b`.
        page.directories.sort_unstable();
        Ok(page)
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        Ok(self.lock().iter().filter(|(_, table)| !table.is_empty()).map(|(namespace, _)| namespace.clone()).collect())
    }
}
