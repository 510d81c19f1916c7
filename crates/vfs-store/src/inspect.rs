//! Looking at a store as a whole.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use vfs_core::{Error, ErrorKind, Problem, Result};

use crate::key::{Key, Namespace};
use crate::pages::all;
use crate::store::{CheckReport, Entry, Store, StoreStats};

/// How many values are read at once.
const AT_ONCE: usize = 16;

/// Verifies every value of `store`, and where it can, all that it keeps beside values.
///
/// # Behaviour
///
/// * Every value is read as a whole; one that is not as long as the listing says, or cannot be read, is a problem.
/// * It may run beside writers: a value that changed or went meanwhile is none. A [`Problem`] is at the namespace and the path of
///   the value, with a `:` between them, or at the path alone in the namespace without components.
///
/// # Errors
///
/// Those that keep the store as a whole from being read.
pub async fn check(store: &dyn Store) -> Result<CheckReport> {
    if let Some(inspect) = store.as_inspect() {
        return inspect.check().await;
    }
    let mut report = CheckReport::default();
    for namespace in store.namespaces().await? {
        let mut pages = all(store, &namespace);
        while let Some(page) = pages.try_next().await? {
            report.problems.extend(page.problems);
            let mut read =
                stream::iter(page.entries).map(|entry| read(store, &namespace, entry)).buffer_unordered(AT_ONCE);
            while let Some(outcome) = read.next().await {
                match outcome {
                    Ok(Some(bytes)) => {
                        report.files += 1;
                        report.bytes += bytes;
                    }
                    Ok(None) => {}
                    Err(problem) => report.problems.push(problem),
                }
            }
        }
    }
    Ok(report)
}

/// Counts what is in `store`.
///
/// # Errors
///
/// Those of listing it.
pub async fn stats(store: &dyn Store) -> Result<StoreStats> {
    if let Some(inspect) = store.as_inspect() {
        return inspect.stats().await;
    }
    let mut stats = StoreStats::default();
    for namespace in store.namespaces().await? {
        stats.namespaces += 1;
        let mut pages = all(store, &namespace);
        while let Some(page) = pages.try_next().await? {
            stats.files += page.entries.len() as u64;
            stats.bytes += page.entries.iter().map(|entry| entry.stored.size).sum::<u64>();
        }
    }
    Ok(stats)
}

/// How long the value of `entry` is; `None` where it is another by now.
async fn read(store: &dyn Store, namespace: &Namespace, entry: Entry) -> Result<Option<u64>, Problem> {
    let key = Key::new(namespace.clone(), entry.path);
    let problem = |error: &Error| problem(place(&key), error);
    let value = store.get(&key, None).await.map_err(|error| problem(&error))?;
    let Some(value) = value.filter(|value| value.stored.version == entry.stored.version) else { return Ok(None) };
    let bytes = value.content.len() as u64;
    if bytes != entry.stored.size {
        let message = format!("it has {bytes} bytes where {} are listed", entry.stored.size);
        return Err(problem(&Error::new(ErrorKind::Internal, message)));
    }
    Ok(Some(bytes))
}

/// A problem in a report for operators, with the words that are for them.
pub(crate) fn problem(place: impl Into<String>, error: &Error) -> Problem {
    let mut problem = Problem::new(place, error);
    problem.message = error.message().to_owned();
    problem
}

/// What a problem calls a value.
pub(crate) fn place(key: &Key) -> String {
    let Key { namespace, path } = key;
    if *namespace == Namespace::default() { path.to_string() } else { format!("{namespace}:{path}") }
}
