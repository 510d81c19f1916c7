//! Exactly-once mutations by operation id.
//!
//! A change commits together with the record of its result, which a repetition looks up.

use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_core::error::ErrorDetail;
use vfs_core::operation::Request;
use vfs_core::{Error, ErrorKind, Operation, OperationId, Result, VfsPath};

use super::namespace_view::NamespaceView;
use crate::store::{BatchOutcome, Condition, NewValue, OperationRecord, Precondition, PutOutcome, Store, Write};

/// A mutation with an id: the key of its record, and the hash of its request.
#[derive(Debug, Clone)]
pub(crate) struct IdentifiedOperation {
    key: String,
    request: String,
    path: VfsPath,
}

impl IdentifiedOperation {
    fn new(id: &OperationId, operation: Operation, paths: &[&VfsPath], request: &impl Serialize) -> Result<Self> {
        let names: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
        let path = paths.first().map(|path| (*path).clone()).unwrap_or_default();
        Ok(Self { key: hash(&(id.as_str(), operation, names))?, request: hash(request)?, path })
    }

    /// Returns the recorded result of an earlier call.
    fn result<R: DeserializeOwned>(&self, record: &OperationRecord) -> Result<R> {
        if record.request != self.request {
            let message = "the operation id was used for another request on this path; use a new id";
            let error = Error::new(ErrorKind::Conflict, message).with_path(&self.path);
            return Err(error.with_detail(ErrorDetail::OperationIdReused));
        }
        serde_json::from_str(&record.result).map_err(|error| {
            Error::new(ErrorKind::Internal, "the recorded result of the operation cannot be read")
                .with_path(&self.path)
                .with_source(error)
        })
    }
}

fn hash(value: &impl Serialize) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    serde_json::to_writer(&mut hasher, value)
        .map_err(|error| Error::invalid_argument("the request has no JSON form").with_source(error))?;
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

impl<S: Store> NamespaceView<S> {
    /// Returns a view for a mutation, which is applied once if the context has an id and the store records operations.
    pub(crate) fn for_mutation<Q: Request + Serialize>(self, request: &Q) -> Result<Self> {
        let paths: Vec<&VfsPath> = request.as_request_ref().paths().collect();
        self.for_operation(Q::OPERATION, &paths, request)
    }

    pub(crate) fn for_operation(
        mut self,
        operation: Operation,
        paths: &[&VfsPath],
        request: &impl Serialize,
    ) -> Result<Self> {
        if self.store().as_operations().is_some()
            && let Some(id) = self.cx.operation_id()
        {
            self.operation = Some(IdentifiedOperation::new(id, operation, paths, request)?.into());
        }
        Ok(self)
    }

    /// Applies the mutation of this view, or returns the result of an earlier call with its id.
    pub(crate) async fn once<R: DeserializeOwned>(&self, mutation: impl Future<Output = Result<R>>) -> Result<R> {
        let Some(operation) = &self.operation else { return mutation.await };
        if let Some(record) = self.recorded(operation).await? {
            return operation.result(&record);
        }
        let error = match mutation.await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        // A concurrent call with the id may have been faster, or the answer to this call was lost.
        match self.recorded(operation).await {
            Ok(Some(record)) => operation.result(&record),
            _ => Err(error),
        }
    }

    async fn recorded(&self, operation: &IdentifiedOperation) -> Result<Option<OperationRecord>> {
        let Some(operations) = self.store().as_operations() else { return Ok(None) };
        self.ask(&operation.path, operations.find(&self.namespace, &operation.key)).await
    }

    /// Applies `writes` as one batch, which is recorded with its `result` if the mutation has an id.
    pub(crate) async fn commit<R: Serialize>(
        &self,
        path: &VfsPath,
        conditions: &[Condition],
        writes: Vec<Write>,
        result: impl FnOnce() -> R,
    ) -> Result<BatchOutcome> {
        let (Some(operation), Some(operations)) = (&self.operation, self.store().as_operations()) else {
            return self.batch(path, conditions, writes).await;
        };
        let result = serde_json::to_string(&result()).map_err(|error| {
            Error::new(ErrorKind::Internal, "the result has no JSON form").with_path(path).with_source(error)
        })?;
        let record = OperationRecord { key: operation.key.clone(), request: operation.request.clone(), result };
        let outcome = operations.batch_once(&self.namespace, &record, conditions, writes);
        self.ask(path, outcome).await?.ok_or_else(|| {
            Error::new(ErrorKind::Conflict, "another call with the operation id was applied").with_path(path)
        })
    }

    /// Stores a value if the current one meets the precondition; recorded like a [`commit`](Self::commit).
    pub(crate) async fn commit_put<R: Serialize>(
        &self,
        path: &VfsPath,
        value: NewValue,
        expected: &Precondition,
        result: impl FnOnce() -> R,
    ) -> Result<PutOutcome> {
        if self.operation.is_none() {
            return self.put(path, value, expected).await;
        }
        let conditions = [Condition::At(path.clone(), expected.clone())];
        let outcome = self.commit(path, &conditions, vec![Write::Put(path.clone(), value)], result).await?;
        outcome.into_single().map_err(|error| error.with_path(path))
    }

    /// Removes a value if it meets the precondition; recorded like a [`commit`](Self::commit).
    pub(crate) async fn commit_delete<R: Serialize>(
        &self,
        path: &VfsPath,
        expected: &Precondition,
        result: impl FnOnce() -> R,
    ) -> Result<PutOutcome> {
        if self.operation.is_none() || path.is_root() {
            return self.delete(path, expected).await;
        }
        let conditions = [Condition::At(path.clone(), expected.clone())];
        let outcome = self.commit(path, &conditions, vec![Write::Delete(path.clone())], result).await?;
        outcome.into_single().map_err(|error| error.with_path(path))
    }
}
