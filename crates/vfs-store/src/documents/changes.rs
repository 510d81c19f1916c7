//! Change log of documents.

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Problem, Result};

use super::{Documents, MAX_CONCURRENT_FETCHES, unable};
use crate::store::{ChangePage, ChangeRecord, Changes, Key, Namespace, Sequence, Store};

/// A change of a file.
struct FileChange {
    record: ChangeRecord,
    /// Whether what it left is another one by now, or gone, so that this cannot be looked into.
    is_past: bool,
}

impl<S: Store> Documents<S> {
    /// What `tell` says of the file in the document.
    async fn told(&self, namespace: &Namespace, mut record: ChangeRecord) -> Result<FileChange> {
        let Some((path, stored)) = record.value_mut() else { return Ok(FileChange { record, is_past: false }) };
        let key = Key::new(namespace.clone(), path.clone());
        match self.describe(&key, stored).await {
            Ok(Some(file)) => *stored = file,
            Ok(None) => return Ok(FileChange { record, is_past: true }),
            // A store that is not there is no fault of the file.
            Err(error) if error.is_temporary() => return Err(error),
            Err(error) => {
                let problem = Problem::from(error.or_path(&key.path));
                return Ok(FileChange { record: ChangeRecord::Unreadable(Box::new(record), problem), is_past: false });
            }
        }
        Ok(FileChange { record, is_past: false })
    }
}

#[async_trait]
impl<S: Store> Changes for Documents<S> {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        self.store.as_changes().ok_or_else(unable)?.last_sequence(namespace).await
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        let page = self.store.as_changes().ok_or_else(unable)?.since(namespace, seen, limit).await?;
        let ChangePage::Changes { changes, next, has_more } = page else { return Ok(page) };
        let looks: Vec<_> = changes
            .into_iter()
            .map(|(at, record)| async move { self.told(namespace, record).await.map(|told| (at, told)) })
            .collect();
        let told: Vec<(Sequence, FileChange)> =
            stream::iter(looks).buffered(MAX_CONCURRENT_FETCHES).try_collect().await?;
        // Where one has changed since, that is told next.
        let has_more = has_more || told.iter().any(|(_, told)| told.is_past);
        let changes = told.into_iter().map(|(at, told)| (at, told.record)).collect();
        Ok(ChangePage::Changes { changes, next, has_more })
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        self.store.as_changes().ok_or_else(unable)?.changed(namespace, seen).await
    }
}
