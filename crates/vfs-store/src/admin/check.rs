//! Verification of every value of a store.

use vfs_core::{Error, ErrorKind, Result};

use super::value_traversal::visit_values;
use crate::store::{CheckReport, Store, StoredValue};

/// Verifies every value of `store`, and the indexes and counts that the store can verify itself.
///
/// # Behaviour
///
/// * Every value is read as a whole. A value that cannot be read, or whose length differs from the listing, is a problem.
/// * The check may run beside writers: a value that is changed or removed meanwhile is no problem.
/// * The path of a [`Problem`](vfs_core::Problem) is `namespace:/path`, or the path alone in the namespace without components.
///
/// # Errors
///
/// Errors of listing the store, and the last of many consecutive reads that failed because the store is not available.
pub async fn check(store: &dyn Store) -> Result<CheckReport> {
    match store.as_inspect() {
        Some(inspect) => inspect.check().await,
        None => check_values(store, |_| true).await,
    }
}

/// Reads every value and compares its length with the listing; a value for which `is_intact` is `false` is a problem.
pub(crate) async fn check_values(
    store: &dyn Store,
    is_intact: impl Fn(&StoredValue) -> bool + Send + Sync,
) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let is_intact = &is_intact;
    let visit = |key, listed: crate::store::StoredMeta| async move {
        let value = store.get(&key, None).await?;
        let Some(value) = value.filter(|value| value.stored.version == listed.version) else { return Ok(None) };
        let bytes = value.content.len() as u64;
        if bytes != listed.size {
            let message = format!("the content has {bytes} bytes, but {} are listed", listed.size);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        if !is_intact(&value) {
            return Err(Error::invalid_argument("the content does not match its version; it was damaged or replaced"));
        }
        Ok(Some(bytes))
    };
    let namespaces = store.namespaces().await?;
    visit_values(store, &namespaces, visit, |outcome| match outcome {
        Ok(Some(bytes)) => {
            report.files += 1;
            report.bytes += bytes;
        }
        Ok(None) => {}
        Err(problem) => report.problems.push(problem),
    })
    .await?;
    Ok(report)
}
