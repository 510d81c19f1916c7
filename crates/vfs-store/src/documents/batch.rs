//! Batches of documents.

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::{DocumentStore, MAX_CONCURRENT_FETCHES, unsupported};
use crate::store::{
    BatchOutcome, BatchStore, Condition, Key, Namespace, NewValue, Precondition, Store, StoredValue, Write,
};

/// Number of attempts of a batch with copies whose sources change meanwhile.
const COPY_ATTEMPTS: usize = 8;

impl<S: Store> DocumentStore<S> {
    /// Returns `write` with a document in place of a file. A copy becomes a put of a new document, with the condition
    /// that its source is unchanged.
    async fn translate(&self, namespace: &Namespace, write: Write) -> Result<(Write, Option<Condition>)> {
        match write {
            Write::Put(path, value) => Ok((Write::Put(path, self.encode(value)?), None)),
            Write::Copy { from, to, at } => {
                let key = Key::new(namespace.clone(), from.clone());
                let Some(document) = self.store.get(&key, None).await? else {
                    return Ok((Write::Copy { from, to, at }, None));
                };
                let StoredValue { stored, content } = self.decode(&key, document)?;
                let copy = self.encode(NewValue::new(content, at))?;
                Ok((Write::Put(to, copy), Some(Condition::At(from, Precondition::Version(stored.version)))))
            }
            other => Ok((other, None)),
        }
    }
}

#[async_trait]
impl<S: Store> BatchStore for DocumentStore<S> {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        let inner = self.store.as_batch().ok_or_else(unsupported)?;
        for _ in 0..COPY_ATTEMPTS {
            let mut all = conditions.to_vec();
            let mut documents = Vec::with_capacity(writes.len());
            let translations = writes.iter().cloned().map(|write| self.translate(namespace, write)).collect::<Vec<_>>();
            let mut translations = stream::iter(translations).buffered(MAX_CONCURRENT_FETCHES);
            while let Some(translated) = translations.next().await {
                let (write, condition) = translated?;
                documents.push(write);
                all.extend(condition);
            }
            drop(translations);
            match inner.batch(namespace, &all, documents).await? {
                BatchOutcome::Applied(stored) => {
                    let paths = writes.iter().map(target);
                    let described =
                        paths.zip(stored).map(|(path, stored)| self.describe_or_document(namespace, path, stored));
                    let described = described.collect::<Vec<_>>();
                    return Ok(BatchOutcome::Applied(
                        stream::iter(described).buffered(MAX_CONCURRENT_FETCHES).collect().await,
                    ));
                }
                BatchOutcome::PreconditionFailed(path, found) => {
                    let is_copy_source = all[conditions.len()..]
                        .iter()
                        .any(|added| matches!(added, Condition::At(of, _) if *of == path));
                    if found.is_some() && is_copy_source {
                        continue;
                    }
                    let found = match found {
                        Some(stored) => Some(self.describe_or_document(namespace, &path, stored).await),
                        None => None,
                    };
                    return Ok(BatchOutcome::PreconditionFailed(path, found));
                }
            }
        }
        Err(Error::of(ErrorKind::Busy))
    }
}

/// Returns the path of the value that a write stores or deletes.
fn target(write: &Write) -> &VfsPath {
    match write {
        Write::Put(path, _) | Write::Delete(path) => path,
        Write::Move { to, .. } | Write::Copy { to, .. } => to,
    }
}
