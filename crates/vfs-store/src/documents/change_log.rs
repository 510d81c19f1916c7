//! Change log of documents.

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Problem, Result};

use super::{DocumentStore, MAX_CONCURRENT_FETCHES, unsupported};
use crate::store::{ChangePage, ChangeRecord, Key, Namespace, Sequence, Store, StoreChangeLog};

/// Change of a file.
struct DocumentChange {
    record: ChangeRecord,
    /// `true` if the document was replaced or removed since, so that the file of this change cannot be read.
    is_outdated: bool,
}

impl<S: Store> DocumentStore<S> {
    /// Returns `record` with the metadata of the file in the document.
    async fn convert_record(&self, namespace: &Namespace, mut record: ChangeRecord) -> Result<DocumentChange> {
        let Some((path, stored)) = record.value_mut() else { return Ok(DocumentChange { record, is_outdated: false }) };
        let key = Key::new(namespace.clone(), path.clone());
        match self.describe(&key, stored).await {
            Ok(Some(file)) => *stored = file,
            Ok(None) => return Ok(DocumentChange { record, is_outdated: true }),
            // An unavailable store is not a problem of the file.
            Err(error) if error.is_temporary() => return Err(error),
            Err(error) => {
                let problem = Problem::from(error.or_path(&key.path));
                return Ok(DocumentChange {
                    record: ChangeRecord::Unreadable(Box::new(record), problem),
                    is_outdated: false,
                });
            }
        }
        Ok(DocumentChange { record, is_outdated: false })
    }
}

#[async_trait]
impl<S: Store> StoreChangeLog for DocumentStore<S> {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        self.store.as_changes().ok_or_else(unsupported)?.last_sequence(namespace).await
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        let page = self.store.as_changes().ok_or_else(unsupported)?.since(namespace, seen, limit).await?;
        let ChangePage::Changes { changes, next, has_more } = page else { return Ok(page) };
        let conversions: Vec<_> = changes
            .into_iter()
            .map(|(at, record)| async move { self.convert_record(namespace, record).await.map(|change| (at, change)) })
            .collect();
        let changes: Vec<(Sequence, DocumentChange)> =
            stream::iter(conversions).buffered(MAX_CONCURRENT_FETCHES).try_collect().await?;
        // The log has a newer change of an outdated document.
        let has_more = has_more || changes.iter().any(|(_, change)| change.is_outdated);
        let changes = changes.into_iter().map(|(at, change)| (at, change.record)).collect();
        Ok(ChangePage::Changes { changes, next, has_more })
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        self.store.as_changes().ok_or_else(unsupported)?.changed(namespace, seen).await
    }
}
