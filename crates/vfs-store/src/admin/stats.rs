//! Counts of namespaces, values and bytes.

use vfs_core::{Result, VfsPath};

use crate::store::{ListRequest, Store, StoreStats};

/// Counts the namespaces, values and bytes of `store`.
///
/// # Errors
///
/// Errors of listing the store.
pub async fn stats(store: &dyn Store) -> Result<StoreStats> {
    match store.as_inspect() {
        Some(inspect) => inspect.stats().await,
        None => count_values(store).await,
    }
}

/// Counts namespaces, values and bytes by listing every namespace.
pub(crate) async fn count_values<S: Store + ?Sized>(store: &S) -> Result<StoreStats> {
    let mut stats = StoreStats::default();
    for namespace in store.namespaces().await? {
        stats.namespaces += 1;
        let mut next = Some(ListRequest::all(VfsPath::root()));
        while let Some(request) = next {
            let page = store.list(&namespace, &request).await?;
            stats.files += page.entries.len() as u64;
            stats.bytes += page.entries.iter().map(|entry| entry.stored.size).sum::<u64>();
            next = page.next.map(|token| request.from(token));
        }
    }
    Ok(stats)
}
