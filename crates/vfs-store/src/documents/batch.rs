//! Batches of documents.

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::{Documents, MAX_CONCURRENT_FETCHES, unable};
use crate::store::{Batch, BatchOutcome, Condition, Key, Namespace, NewValue, Precondition, Store, StoredValue, Write};

/// How often a copy in a batch is put together again when its source changed meanwhile.
const COPY_ATTEMPTS: usize = 8;

impl<S: Store> Documents<S> {
    /// `write` with documents in the place of files; a copy becomes a document of its own, if its source is still the same.
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
impl<S: Store> Batch for Documents<S> {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        let inner = self.store.as_batch().ok_or_else(unable)?;
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
                    let described = paths.zip(stored).map(|(path, stored)| self.described(namespace, path, stored));
                    let described = described.collect::<Vec<_>>();
                    return Ok(BatchOutcome::Applied(
                        stream::iter(described).buffered(MAX_CONCURRENT_FETCHES).collect().await,
                    ));
                }
                BatchOutcome::PreconditionFailed(path, found) => {
                    let is_own =
                        all[conditions.len()..].iter().any(|own| matches!(own, Condition::At(of, _) if *of == path));
                    if found.is_some() && is_own {
                        continue;
                    }
                    let found = match found {
                        Some(stored) => Some(self.described(namespace, &path, stored).await),
                        None => None,
                    };
                    return Ok(BatchOutcome::PreconditionFailed(path, found));
                }
            }
        }
        Err(Error::of(ErrorKind::Busy))
    }
}

/// The path that a write leaves something at, or takes it from.
fn target(write: &Write) -> &VfsPath {
    match write {
        Write::Put(path, _) | Write::Delete(path) => path,
        Write::Move { to, .. } | Write::Copy { to, .. } => to,
    }
}
