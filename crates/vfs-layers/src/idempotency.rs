//! Interceptor that makes a mutation with an operation id once in this process.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vfs_core::backend::OperationIdSupport;
use vfs_core::error::ErrorDetail;
use vfs_core::operation::{
    AnyOutput, Intercepted, OutputRef, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest,
};
use vfs_core::{Backend, Capabilities, Error, ErrorKind, Interceptor, Layer, OpContext, Result};

/// Remembers mutations with an [`OperationId`](vfs_core::OperationId) in this process, for backends that do not store the ids.
///
/// # Behaviour
///
/// * A write, edit, delete, rename, copy or upload that is sent again with its id returns the first result. If the outcome of the first
///   call is unknown (`unavailable`, `timeout`, `cancelled`, dropped, or still running), the repetition is a `conflict`. A mutation that
///   failed otherwise changed nothing, and is made when it is sent again.
/// * The commit of a writer and commands are not remembered.
/// * An id belongs to the actor and the session of the call. Callers whose namespace depends on anything else use ids that differ.
/// * The last 10,000 operations are remembered. Another process, and this one after a restart, knows none of them.
/// * Operations of a backend that [stores](OperationIdSupport::Stored) the ids pass unchanged.
///
/// # Errors
///
/// `conflict` if the outcome of the first call is unknown; `conflict` with
/// [`OperationIdReused`](vfs_core::error::ErrorDetail::OperationIdReused) for an id that was used for another request on the same
/// path.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{Backend, BackendExt, Layer, OpContext, OperationId, VfsPath, WriteMode, WriteRequest};
/// use vfs_layers::Idempotency;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let files = Idempotency::new().layer(Arc::new(MemoryBackend::new()));
/// let cx = OpContext::new().with_operation_id(OperationId::parse("run-7/step-3")?);
/// for _ in 0..2 {
///     let append = WriteRequest::new(VfsPath::parse("/log")?, "line\n").mode(WriteMode::Append);
///     files.write(&cx, append).await?;
/// }
/// assert_eq!(files.read_text("/log").await?, "line\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Idempotency;

impl Idempotency {
    /// Returns the layer.
    pub fn new() -> Self {
        Self
    }
}

impl Layer for Idempotency {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(IdempotencyInterceptor::default())))
    }
}

/// Maximum number of operations that are remembered.
const MAX_OPERATIONS: usize = 10_000;

/// Interceptor that remembers mutations by their operation id.
#[derive(Default)]
struct IdempotencyInterceptor(Mutex<RememberedOperations>);

/// Remembered operations, by the hash of operation, paths and id.
#[derive(Default)]
struct RememberedOperations {
    states: HashMap<blake3::Hash, RememberedOperation>,
    /// Keys, the oldest first.
    order: VecDeque<blake3::Hash>,
}

/// An operation that was begun, with its result.
struct RememberedOperation {
    request: blake3::Hash,
    /// The result of the call; `None` while its outcome is unknown.
    output: Option<AnyOutput>,
}

impl IdempotencyInterceptor {
    fn lock(&self) -> MutexGuard<'_, RememberedOperations> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of an earlier call, or begins a new one.
    fn begin(&self, key: blake3::Hash, request: blake3::Hash) -> Result<Option<AnyOutput>> {
        let mut operations = self.lock();
        if let Some(state) = operations.states.get(&key) {
            if state.request != request {
                let message = "the operation id was used for another request on this path; use a new id";
                return Err(Error::new(ErrorKind::Conflict, message).with_detail(ErrorDetail::OperationIdReused));
            }
            let Some(output) = &state.output else {
                let message = "outcome unknown: an earlier call with this operation id may have been made; read the file before \
                               you repeat it";
                return Err(Error::new(ErrorKind::Conflict, message));
            };
            return Ok(clone_output(output));
        }
        if operations.order.len() == MAX_OPERATIONS
            && let Some(oldest) = operations.order.pop_front()
        {
            operations.states.remove(&oldest);
        }
        operations.order.push_back(key);
        operations.states.insert(key, RememberedOperation { request, output: None });
        Ok(None)
    }

    /// Stores the outcome of a call, as far as the result determines it.
    fn end<Q: UnaryRequest>(&self, key: blake3::Hash, result: &Result<Q::Output>) {
        let output = result.as_ref().map(Q::output_ref);
        // An upload has its failure in the response.
        let failure = match &output {
            Ok(OutputRef::Upload(response)) => response.cause.as_ref().map(Error::kind),
            Ok(_) => None,
            Err(error) => Some(error.kind()),
        };
        let mut operations = self.lock();
        match (failure, output) {
            (None, Ok(output)) => {
                if let Some(state) = operations.states.get_mut(&key) {
                    state.output = clone_output_ref(output);
                }
            }
            (Some(kind), _) if is_outcome_unknown(kind) => {}
            _ => {
                operations.states.remove(&key);
                operations.order.retain(|other| *other != key);
            }
        }
    }
}

fn is_outcome_unknown(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Cancelled | ErrorKind::Internal)
}

fn is_remembered(request: RequestRef<'_>) -> bool {
    match request {
        RequestRef::Edit(edit) => edit.mode == vfs_core::edit::ApplyMode::Apply,
        RequestRef::Write(_)
        | RequestRef::Delete(_)
        | RequestRef::Rename(_)
        | RequestRef::Copy(_)
        | RequestRef::Upload(_) => true,
        _ => false,
    }
}

fn clone_output(output: &AnyOutput) -> Option<AnyOutput> {
    match output {
        AnyOutput::Write(result) => clone_output_ref(OutputRef::Write(result)),
        AnyOutput::Edit(result) => clone_output_ref(OutputRef::Edit(result)),
        AnyOutput::Delete(result) => clone_output_ref(OutputRef::Delete(result)),
        AnyOutput::Rename(result) => clone_output_ref(OutputRef::Rename(result)),
        AnyOutput::Copy(result) => clone_output_ref(OutputRef::Copy(result)),
        AnyOutput::Upload(result) => clone_output_ref(OutputRef::Upload(result)),
        _ => None,
    }
}

fn clone_output_ref(output: OutputRef<'_>) -> Option<AnyOutput> {
    Some(match output {
        OutputRef::Write(result) => AnyOutput::Write(result.clone()),
        OutputRef::Edit(result) => AnyOutput::Edit(result.clone()),
        OutputRef::Delete(result) => AnyOutput::Delete(result.clone()),
        OutputRef::Rename(result) => AnyOutput::Rename(result.clone()),
        OutputRef::Copy(result) => AnyOutput::Copy(result.clone()),
        OutputRef::Upload(result) => AnyOutput::Upload(result.clone()),
        _ => return None,
    })
}

impl Interceptor for IdempotencyInterceptor {
    fn name(&self) -> &'static str {
        "idempotency"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let path = request.as_request_ref().primary_path();
        let Some(id) = cx.operation_id().filter(|_| is_remembered(request.as_request_ref())) else {
            return request.send(inner, cx).await;
        };
        if inner.capabilities(&path).operation_ids == OperationIdSupport::Stored {
            return request.send(inner, cx).await;
        }
        let paths: Vec<_> = request.as_request_ref().paths().collect();
        let key = hash(&(cx.actor(), cx.session(), id.as_str(), Q::OPERATION, paths))?;
        let hashed = hash(&request.as_request_ref().to_any())?;
        if let Some(output) = self.begin(key, hashed).map_err(|error| error.with_path(&path))? {
            return Q::from_any_output(output)
                .ok_or_else(|| Error::new(ErrorKind::Internal, "the remembered result is of another operation"));
        }
        let result = request.send(inner, cx).await;
        self.end::<Q>(key, &result);
        result
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }

    fn capabilities(&self, mut inner: Capabilities) -> Capabilities {
        if inner.operation_ids == OperationIdSupport::Ignored {
            inner.operation_ids = OperationIdSupport::Process;
        }
        inner
    }
}

fn hash(value: &impl serde::Serialize) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    serde_json::to_writer(&mut hasher, value)
        .map_err(|error| Error::invalid_argument("the request has no JSON form").with_source(error))?;
    Ok(hasher.finalize())
}

impl fmt::Debug for IdempotencyInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("operations", &self.lock().order.len()).finish()
    }
}
