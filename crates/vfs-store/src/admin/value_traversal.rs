//! Bounded concurrent traversal of every value of a store.

use futures::stream::{self, StreamExt as _};
use tokio::sync::Semaphore;
use vfs_core::{Problem, Result, VfsPath};

use super::operator_problem::{place, value_problem};
use crate::store::{Entry, Key, ListRequest, Namespace, Store, StoredMeta};

/// Upper bound on the number of values that are visited concurrently.
const MAX_CONCURRENT_VISITS: usize = 16;
/// Number of consecutive visits that fail with a temporary error before the store is considered down.
const MAX_CONSECUTIVE_FAILURES: u32 = 32;
/// Upper bound on the size of the values that are visited concurrently, in mebibytes. A single value may be larger.
const MAX_VISITED_MIB: u32 = 64;

/// Calls `visit` for every value of `namespaces`, and `record` with the outcome of each visit and with each problem of a listing.
///
/// # Errors
///
/// Errors of listings, and the last of many consecutive temporary errors of visits.
pub(super) async fn visit_values<T, V>(
    store: &dyn Store,
    namespaces: &[Namespace],
    visit: impl Fn(Key, StoredMeta) -> V + Send + Sync,
    mut record: impl FnMut(Result<T, Problem>) + Send,
) -> Result<()>
where
    T: Send,
    V: Future<Output = Result<T>> + Send,
{
    let memory = Semaphore::new(MAX_VISITED_MIB as usize);
    let mut failures = 0;
    for namespace in namespaces {
        let mut next = Some(ListRequest::all(VfsPath::root()));
        while let Some(request) = next {
            let page = store.list(namespace, &request).await?;
            next = page.next.map(|token| request.from(token));
            for problem in page.problems {
                record(Err(listing_problem(store, namespace, problem).await));
            }
            let visits = stream::iter(page.entries).map(|Entry { path, stored }| {
                let key = Key::new(namespace.clone(), path);
                let permits = u32::try_from(stored.size >> 20).unwrap_or(u32::MAX).clamp(1, MAX_VISITED_MIB);
                let (visit, memory) = (&visit, &memory);
                async move {
                    // The semaphore is never closed.
                    let _permit = memory.acquire_many(permits).await.ok();
                    visit(key.clone(), stored).await.map_err(|error| (key, error))
                }
            });
            let mut visits = visits.buffer_unordered(MAX_CONCURRENT_VISITS);
            while let Some(outcome) = visits.next().await {
                let is_down = outcome.as_ref().is_err_and(|(_, error)| error.is_temporary());
                failures = if is_down { failures + 1 } else { 0 };
                match outcome {
                    Err((_, error)) if failures == MAX_CONSECUTIVE_FAILURES => return Err(error),
                    outcome => record(outcome.map_err(|(key, error)| value_problem(&key, &error))),
                }
            }
        }
    }
    Ok(())
}

/// Returns a problem of a listing as a problem for operators. If a request for this value alone fails, its error is the
/// message.
async fn listing_problem(store: &dyn Store, namespace: &Namespace, mut problem: Problem) -> Problem {
    let path = VfsPath::parse(&problem.path).ok().filter(|path| path.as_str() == problem.path && !path.is_root());
    if let Some(path) = path {
        let key = Key::new(namespace.clone(), path);
        if let Err(error) = store.head(&key).await {
            return value_problem(&key, &error);
        }
    }
    problem.path = place(namespace, &problem.path);
    problem
}
